"""Lengths that change: the best length, mixture and ladder, or two lengths at each share of the longer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

from seqlaw.answers.answer import Answer, named, shown
from seqlaw.answers.render import Block, Note, Table
from seqlaw.answers.risk import parameters
from seqlaw.answers.style import SERIES, Axes
from seqlaw.answers.words import Side, describe_teacher, percent_words, regime_words
from seqlaw.files import output_path
from seqlaw.methods.terms import frozen_error, reach
from seqlaw.model.amount import amount
from seqlaw.model.lengths import Length, Lengths, words
from seqlaw.model.setting import Setting
from seqlaw.planning import ladder as planning
from seqlaw.planning import ladder_curve as shares
from seqlaw.planning.ladder import Choice
from seqlaw.planning.ladder_curve import WAYS, At

_ROW = ("name", "approx", "bias", "variance", "reducible", "error", "against", "against_error")


@dataclass(frozen=True, kw_only=True)
class Ladder(Answer, planning.Ladder):
    """The best single length, mixture and ladder for so many tokens, and presets beside them."""

    command: ClassVar[str] = "ladder"
    pictures: ClassVar[tuple[int, float, float]] = (1, 6.4, 3.6)

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        alone = f"training at {words(self.single.lengths)} alone"
        if not self.helps:
            return (
                f"Changing the length does not help here: no ladder of at most {self.most_phases} phases "
                f"beats {alone} by more than its error.{self._mixed}"
            )
        assert isinstance(self.ladder.lengths, Lengths)
        way = ", then ".join(f"{P:,} for {100 * share:.0f} %" for P, share in self.ladder.lengths)
        return (
            f"Train at {way} of the steps: {percent_words(self.gain, self.gain_error)} less "
            f"reducible risk than {alone}, tested at {self.eval_length:,}."
        )

    @property
    def _mixed(self) -> str:
        """The best mixture, where it beats the best single length and no ladder does."""
        gain, error = 1 - self.mixture.against, self.mixture.against_error
        if gain <= reach(self.sketches, 0.95) * error:
            return ""
        return f" Mixing {words(self.mixture.lengths)} leaves {percent_words(gain, error)} less risk."

    @property
    def steps_taken(self) -> int:
        """L: given, or what the tokens allow in one pass."""
        if self.setting.batch is None:
            return self.setting.schedule.L
        return self.tokens // (self.setting.batch * self.candidates[-1])

    def schedule(self) -> list[dict[str, int]]:
        """The phases to train in: length, sequences a step, and steps. One phase where no ladder helps.

        In one pass every step has the tokens of a batch at the longest candidate. In the full batch each step
        of a phase sees all its sequences; its share of the tokens is its share of the steps.
        """
        best, batch = self.ladder.lengths if self.helps else self.single.lengths, self.setting.batch
        steps = best.steps(self.steps_taken) if isinstance(best, Lengths) else (self.steps_taken,)
        phases = []
        for (P, share), n in zip(_pairs(best), steps, strict=True):
            each = share * self.tokens if batch is None else batch * self.candidates[-1]
            phases.append({"length": P, "batch": max(1, round(each / P)), "steps": n})
        return phases

    def export(self, path: str | Path) -> None:
        """Write the phases to a .toml or .json file, for a training loop."""
        path, phases = check_export(path), self.schedule()
        if path.suffix == ".json":
            kept = {"answer": self.sentence, "phases": phases}
            path.write_text(json.dumps(kept, indent=2) + "\n", encoding="utf-8")
            return
        tables = ["\n".join(["[[phases]]", *(f"{k} = {v}" for k, v in one.items())]) for one in phases]
        path.write_text("\n\n".join([f"# {self.sentence}", *tables]) + "\n", encoding="utf-8")

    def inputs(self) -> Mapping[str, Any]:
        return {**_asked(self), "most_phases": self.most_phases, "tune": self.step is not None}

    def fields(self) -> Mapping[str, Any]:
        steps = self.steps(self.steps_taken)
        pairs, mixed = _pairs(self.ladder.lengths), _pairs(self.mixture.lengths)
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
            **named(self, "gain", "gain_error", "helps"),
            "rows": [_row(one) for one in self._choices()],
            **({} if self.step is None else {"gamma": self.ladder.gammas, "half": self.step.half}),
            "accuracy": planning.accuracy(self),
        }

    def _choices(self) -> tuple[Choice, ...]:
        return (*self.singles, self.mixture, self.ladder, *self.presets)

    def _name(self, choice: Choice) -> str:
        return "only" if choice in self.singles else choice.name

    def blocks(self, side: Side) -> Iterable[Block]:
        one = self.setting
        each = None if one.batch is None else amount(one.batch * self.candidates[-1])
        step = f" of size {one.schedule.gamma:g}" * (self.step is None)
        how = "full batch" if each is None else f"one pass, {each} a step"
        yield self.sentence
        yield describe_teacher(one.teacher)
        yield Table(
            rows=[
                (
                    self._name(choice),
                    words(choice.lengths),
                    f"{choice.reducible:.4g} ± {choice.error:.1g}",
                    _against(choice),
                )
                for choice in self._choices()
            ],
            header=("trained at", "lengths", "reducible", "over the best single"),
            title=f"{regime_words(one)}: {amount(self.tokens)} tokens, {_sizes(one)}, "
            f"{amount(self.steps_taken)} steps{step}, {how}, tested at length {self.eval_length:,}",
        )
        if self.step is not None:
            yield Note(self.step_words(self.step))
        yield Note(f"{_chance(self)} Shares were chosen on other sketches.")

    def step_words(self, step: planning.Step) -> str:
        """The peak step size of the ladder, and what half of it costs."""
        pairs = zip(self.ladder.gammas, _pairs(self.ladder.lengths), strict=True)
        sizes = ", then ".join(f"{gamma:.3g} at length {P:,}" for gamma, (P, _) in pairs)
        below = "" if step.factor == 1 else f"{step.factor:.2g} times "
        return (
            f"The best peak step size is {sizes}: {below}the largest that the safeguard allows. Half of it "
            f"would raise the risk by {100 * step.half:.2g} %. Every row has its best step size."
        )

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        return _tidy(self, self._choices())

    def draw(self, axes: Sequence[Axes]) -> None:
        """Each choice over the best single length."""
        from matplotlib import ticker

        (place,) = axes
        choices = self._choices()
        for k, one in enumerate(choices):
            colour = SERIES[0] if one in self.singles else SERIES[1] if one is self.ladder else SERIES[2]
            place.errorbar(one.against, -k, xerr=one.against_error, color=colour, marker="o", markersize=5)
        place.axvline(1.0, color="0.6", linewidth=0.8, linestyle=":")
        place.set_xscale("log")
        place.xaxis.set_major_locator(ticker.LogLocator(subs=(1.0, 2.0, 5.0)))
        place.xaxis.set_major_formatter(ticker.FormatStrFormatter("%g"))
        place.xaxis.set_minor_formatter(ticker.NullFormatter())
        names = [f"{self._name(one)}: {words(one.lengths)}" for one in choices]
        place.set_yticks([-k for k in range(len(choices))], names, fontsize="small")
        place.set_xlabel("reducible risk over the best single length")
        place.set_title(f"tested at length {self.eval_length:,}", fontsize="medium")
        for side in ("top", "right"):
            place.spines[side].set_visible(False)


@dataclass(frozen=True, kw_only=True)
class LadderCurve(Answer, shares.LadderCurve):
    """Short first, long first and mixed, at each share of the long length."""

    command: ClassVar[str] = "ladder"
    pictures: ClassVar[tuple[int, float, float]] = (1, 6.0, 3.8)

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        best, (short, long) = self.best, self.candidates
        gain, error, alone = 1 - best.against, best.against_error, f"{words(self.single.lengths)} alone"
        if gain <= reach(self.sketches, 0.95) * error:
            return f"At none of these shares is {short:,} first and {long:,} last better than {alone}."
        return (
            f"Of these shares {100 * best.share:.3g} % of {long:,} last, after {short:,}, is best: "
            f"{percent_words(gain, error)} less reducible risk than {alone}."
        )

    def inputs(self) -> Mapping[str, Any]:
        return {**_asked(self), "shares": self.shares, "tune": self.tune}

    def fields(self) -> Mapping[str, Any]:
        return {
            "answer": self.sentence,
            "regime": self.regime,
            "single": _row(self.single),
            "best": _row(self.best),
            "rows": [_row(row) for row in self.rows],
            "accuracy": _chance(self),
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        one, alone = self.setting, self.single
        curves = [self.curve(way) for way in WAYS]
        yield self.sentence
        yield describe_teacher(one.teacher)
        yield Table(
            rows=[
                (f"{share:.3g}", *(_against(curve[k]) for curve in curves))
                for k, share in enumerate(self.shares)
            ],
            header=(f"share of {self.candidates[1]:,}", *WAYS),
            title=f"{regime_words(one)}: reducible risk over {words(alone.lengths)} alone "
            f"({alone.reducible:.4g} ± {alone.error:.1g}); {amount(self.tokens)} tokens, "
            f"{_sizes(one)}, tested at length {self.eval_length:,}",
        )
        only = (f"only {words(row.lengths)}: {_against(row)}" for row in self.curve("only"))
        yield "; ".join(only)
        yield Note(_chance(self))

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        return _tidy(self, self.rows)

    def draw(self, axes: Sequence[Axes]) -> None:
        """The three ways over the better length alone."""
        (place,) = axes
        for way, colour, style in zip(WAYS, SERIES, ("-", "--", ":"), strict=False):
            rows = self.curve(way)
            y, error = [row.against for row in rows], [row.against_error for row in rows]
            place.errorbar(self.shares, y, yerr=error, color=colour, linestyle=style, marker="o", label=way)
        for row in self.curve("only"):
            place.axhline(row.against, color="0.6", linewidth=0.8, linestyle=":")
        place.set_xlim(0, 1)
        place.set_yscale("log")
        place.set_xlabel(f"share of {self.candidates[1]:,}")
        place.set_ylabel(f"risk over {words(self.single.lengths)} alone")
        place.set_title(f"tested at length {self.eval_length:,}", fontsize="medium")
        place.legend(frameon=False, fontsize="small")


def check_export(path: str | Path) -> Path:
    """A path that phases can be written to."""
    return output_path(path, "export", ".toml", ".json")


def _asked(found: Ladder | LadderCurve) -> dict[str, Any]:
    student = named(found.setting, "teacher", "M", "d", "schedule", "batch")
    return student | named(found, "tokens", "eval_length", "candidates", "sketches", "seed")


def _sizes(setting: Setting) -> str:
    return f"M={amount(setting.M)} d={amount(setting.d or 0)}"


def _against(one: Choice) -> str:
    return f"{one.against:.4g} ± {one.against_error:.1g}"


def _chance(found: Ladder | LadderCurve) -> str:
    """What ± means, and how far the numbers themselves are accurate."""
    seen = f"± is the standard error over {found.sketches} sketches; ratios are paired by sketch."
    if found.tokens_per_dimension is None:
        return seen
    error = frozen_error(found.tokens_per_dimension)
    order = "to leading order in the data, with a relative error of"
    return f"{seen} Bias + variance are {order} about {error:.1g}."


def _pairs(lengths: Length) -> list[tuple[int, float]]:
    return list(lengths) if isinstance(lengths, Lengths) else [(lengths, 1.0)]


def _row(one: Choice) -> dict[str, Any]:
    """What was tried, as `--json` has it."""
    share = {"share": one.share} if isinstance(one, At) else {}
    return share | named(one, *_ROW) | {"trained": str(one.lengths)}


def _tidy(found: Ladder | LadderCurve, choices: Sequence[Choice]) -> list[dict[str, Any]]:
    common = parameters(replace(found.setting, P=found.candidates[0]))
    return [
        common
        | {"P": one.lengths if isinstance(one.lengths, int) else None, "lengths": str(one.lengths)}
        | {"tokens": found.tokens, "eval_length": found.eval_length}
        | _row(one)
        for one in choices
    ]


ladder = shown(Ladder, planning.ladder)
ladder_curve = shown(LadderCurve, shares.ladder_curve)
