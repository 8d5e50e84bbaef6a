"""Lengths that change: the best length, the best mixture and the best ladder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from seqlaw.answers.answer import Answer, fields_of
from seqlaw.answers.blocks import Block, Note, Sentence, Table
from seqlaw.answers.risk import parameters
from seqlaw.answers.style import SERIES
from seqlaw.answers.words import Side, describe_teacher, percent_words, regime_words
from seqlaw.model.amount import amount
from seqlaw.model.checks import checked
from seqlaw.model.lengths import Length, Lengths, words
from seqlaw.model.setting import Setting
from seqlaw.planning import ladder as planning
from seqlaw.planning.ladder import CANDIDATES, Choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True)
class Ladder(Answer, planning.Ladder):
    """The best single length, mixture and ladder for so many tokens, and presets beside them."""

    setting: Setting
    command: ClassVar[str] = "ladder"
    pictures: ClassVar[tuple[int, float, float]] = (1, 6.4, 3.6)

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        alone = f"training at {words(self.single.lengths)} alone"
        if not self.helps:
            return (
                f"Lengths that change do not help here: no ladder of at most {self.most_phases} phases "
                f"beats {alone} by more than its error."
            )
        assert isinstance(self.ladder.lengths, Lengths)
        way = ", then ".join(f"{P:,} for {100 * share:.0f} %" for P, share in self.ladder.lengths)
        return (
            f"Train at {way} of the steps: {percent_words(self.gain, self.gain_error)} less "
            f"reducible risk than {alone}, tested at {self.eval_length:,}."
        )

    @property
    def steps_taken(self) -> int:
        """L: given, or what the tokens allow in one pass."""
        if self.setting.batch is None:
            return self.setting.schedule.L
        return self.tokens // (self.setting.batch * self.candidates[-1])

    def inputs(self) -> Mapping[str, Any]:
        one = self.setting
        return {
            **{"teacher": one.teacher, "M": one.M, "d": one.d, "schedule": one.schedule, "batch": one.batch},
            **{"tokens": self.tokens, "eval_length": self.eval_length, "candidates": self.candidates},
            **{"most_phases": self.most_phases, "sketches": self.sketches, "seed": self.seed},
        }

    def fields(self) -> Mapping[str, Any]:
        steps = self.steps(self.steps_taken)
        pairs = _pairs(self.ladder.lengths)
        mixed = _pairs(self.mixture.lengths)
        return {
            "answer": self.sentence,
            "regime": self.regime,
            "single": {"P": self.single.lengths, "reducible": self.single.reducible},
            "mixture": {
                "lengths": [P for P, _ in mixed],
                "shares": [share for _, share in mixed],
                "reducible": self.mixture.reducible,
            },
            "ladder": {
                "phases": [
                    {"P": P, "share": share, "steps": n} for (P, share), n in zip(pairs, steps, strict=True)
                ],
                "reducible": self.ladder.reducible,
            },
            "gain": self.gain,
            "gain_error": self.gain_error,
            "helps": self.helps,
            "rows": [choice_row(one) for one in self._choices()],
            "accuracy": planning.accuracy(self),
        }

    def _choices(self) -> tuple[Choice, ...]:
        return (*self.singles, self.mixture, self.ladder, *self.presets)

    def blocks(self, side: Side) -> Iterable[Block]:
        one = self.setting
        yield Sentence(self.sentence)
        yield Sentence(describe_teacher(one.teacher))
        how = (
            "full batch"
            if one.batch is None
            else f"one pass, {amount(one.batch * self.candidates[-1])} a step"
        )
        yield Table(
            rows=[
                (
                    "only" if choice in self.singles else choice.name,
                    words(choice.lengths),
                    f"{choice.reducible:.4g} ± {choice.error:.1g}",
                    f"{choice.against:.4g} ± {choice.against_error:.1g}",
                )
                for choice in self._choices()
            ],
            header=("trained at", "lengths", "reducible", "over the best single"),
            title=f"{regime_words(one)}: {amount(self.tokens)} tokens, {sizes(one)}, "
            f"{amount(self.steps_taken)} steps, {how}, tested at length {self.eval_length:,}",
        )
        stated = planning.accuracy(self)
        yield Note(
            f"mean ± standard error over {self.sketches} sketches, ratios paired by sketch; shares were "
            "chosen on other sketches" + (f"; {stated['reducible']}" if "reducible" in stated else "")
        )

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        shared = parameters(replace(self.setting, P=self.candidates[0]))
        return [
            shared
            | {"P": choice.lengths if isinstance(choice.lengths, int) else None}
            | {"lengths": str(choice.lengths), "tokens": self.tokens, "eval_length": self.eval_length}
            | choice_row(choice)
            for choice in self._choices()
        ]

    def draw(self, axes: Sequence[Axes]) -> None:
        """Each choice over the best single length."""
        from matplotlib import ticker

        (place,) = axes
        choices = self._choices()
        names = [
            f"only {words(one.lengths)}" if one in self.singles else f"{one.name}: {words(one.lengths)}"
            for one in choices
        ]
        for k, one in enumerate(choices):
            colour = SERIES[0] if one in self.singles else SERIES[1] if one is self.ladder else SERIES[2]
            place.errorbar(one.against, -k, xerr=one.against_error, color=colour, marker="o", markersize=5)
        place.axvline(1.0, color="0.6", linewidth=0.8, linestyle=":")
        place.set_xscale("log")
        place.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        place.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        place.xaxis.set_minor_formatter(ticker.NullFormatter())
        place.set_yticks([-k for k in range(len(choices))], names, fontsize="small")
        place.set_xlabel("reducible risk over the best single length")
        place.set_title(f"tested at length {self.eval_length:,}", fontsize="medium")
        for side in ("top", "right"):
            place.spines[side].set_visible(False)


def sizes(setting: Setting) -> str:
    """M and d, for a title."""
    return f"M={amount(setting.M)} d={amount(setting.d or 0)}"


def _pairs(lengths: Length) -> list[tuple[int, float]]:
    return list(lengths) if isinstance(lengths, Lengths) else [(lengths, 1.0)]


def choice_row(one: Choice) -> dict[str, Any]:
    """What was tried, as `--json` has it."""
    names = ("name", "approx", "bias", "variance", "reducible", "error", "against", "against_error")
    return {name: getattr(one, name) for name in names} | {"trained": str(one.lengths)}


@checked
def ladder(
    setting: Setting,
    tokens: float,
    *,
    candidates: Sequence[int] = CANDIDATES,
    most_phases: int = 2,
    sketches: int = 8,
    seed: int = 0,
) -> Ladder:
    """The best length, the best mixture and the best ladder (lengths in phases) for so many tokens.

    `setting` gives the teacher, M, d, the schedule and the test length, which must be chosen; its N and P do
    not matter. With a batch, which counts sequences of the longest candidate, it is one pass: all students
    have those tokens a step, and the steps follow.
    """
    found = planning.ladder(
        setting, tokens, candidates=candidates, most_phases=most_phases, sketches=sketches, seed=seed
    )
    return Ladder(**fields_of(found, setting=setting))
