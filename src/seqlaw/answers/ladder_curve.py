"""Two lengths against the share of the longer, in words, numbers and a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from seqlaw.answers.answer import Answer, fields_of
from seqlaw.answers.blocks import Block, Note, Sentence, Table
from seqlaw.answers.ladder import choice_row, sizes
from seqlaw.answers.risk import parameters
from seqlaw.answers.style import SERIES
from seqlaw.answers.words import Side, describe_teacher, percent_words, regime_words
from seqlaw.methods.terms import frozen_error, reach
from seqlaw.model.amount import amount
from seqlaw.model.checks import checked
from seqlaw.model.setting import Setting
from seqlaw.planning import ladder_curve as planning
from seqlaw.planning.ladder_curve import SHARES, WAYS, At

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True)
class LadderCurve(Answer, planning.LadderCurve):
    """Short first, long first and mixed, at each share of the long length."""

    setting: Setting
    command: ClassVar[str] = "ladder"
    pictures: ClassVar[tuple[int, float, float]] = (1, 6.0, 3.8)

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        best, (short, long) = self.best, self.candidates
        gain, error = 1 - best.against, best.against_error
        alone = f"{self.single.lengths:,} alone" if isinstance(self.single.lengths, int) else ""
        if gain <= reach(self.sketches, 0.95) * error:
            return f"Of these shares none makes {short:,} first and {long:,} last better than {alone}."
        return (
            f"Of these shares {100 * best.share:.3g} % of {long:,} last, after {short:,}, is best: "
            f"{percent_words(gain, error)} less reducible risk than {alone}."
        )

    @property
    def accuracy(self) -> str:
        """What is known of the numbers."""
        seen = f"± standard error over {self.sketches} sketches, ratios paired by sketch"
        if self.tokens_per_dimension is None:
            return seen
        error = frozen_error(self.tokens_per_dimension)
        return f"{seen}; to leading order in the data, relative error of bias + variance about {error:.1g}"

    def inputs(self) -> Mapping[str, Any]:
        one = self.setting
        return {
            **{"teacher": one.teacher, "M": one.M, "d": one.d, "schedule": one.schedule, "batch": one.batch},
            **{"tokens": self.tokens, "eval_length": self.eval_length, "candidates": self.candidates},
            **{"shares": self.shares, "sketches": self.sketches, "seed": self.seed},
        }

    def fields(self) -> Mapping[str, Any]:
        return {
            "answer": self.sentence,
            "regime": self.regime,
            "single": _row(self.single),
            "best": _row(self.best),
            "rows": [_row(row) for row in self.rows],
            "accuracy": self.accuracy,
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        one, long = self.setting, self.candidates[1]
        curves = [self.curve(way) for way in WAYS]
        yield Sentence(self.sentence)
        yield Sentence(describe_teacher(one.teacher))
        yield Table(
            rows=[
                (f"{share:.3g}", *(f"{c[k].against:.4g} ± {c[k].against_error:.1g}" for c in curves))
                for k, share in enumerate(self.shares)
            ],
            header=(f"share of {long:,}", *WAYS),
            title=f"{regime_words(one)}: reducible risk over {self.single.lengths:,} alone "
            f"({self.single.reducible:.4g} ± {self.single.error:.1g}); {amount(self.tokens)} tokens, "
            f"{sizes(one)}, tested at length {self.eval_length:,}",
        )
        yield Sentence(
            "; ".join(
                f"only {row.lengths:,}: {row.against:.4g} ± {row.against_error:.1g}"
                for row in self.curve("only")
            )
        )
        yield Note(self.accuracy)

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        shared = parameters(replace(self.setting, P=self.candidates[0]))
        return [
            shared
            | {"P": row.lengths if isinstance(row.lengths, int) else None, "lengths": str(row.lengths)}
            | {"tokens": self.tokens, "eval_length": self.eval_length}
            | _row(row)
            for row in self.rows
        ]

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
        place.set_ylabel(f"risk over {self.single.lengths:,} alone")
        place.set_title(f"tested at length {self.eval_length:,}", fontsize="medium")
        place.legend(frameon=False, fontsize="small")


def _row(row: At) -> dict[str, Any]:
    return {"share": row.share} | choice_row(row)


@checked
def ladder_curve(
    setting: Setting,
    tokens: float,
    *,
    candidates: Sequence[int] = (2, 4096),
    shares: Sequence[float] = SHARES,
    sketches: int = 4,
    seed: int = 0,
) -> LadderCurve:
    """Two lengths at each share of the longer: short first, long first, and mixed, for so many tokens.

    As in `ladder`, `setting` gives the teacher, M, d, the schedule and the test length; with a batch it is
    one pass. Ratios are to the better of the two lengths alone.
    """
    found = planning.ladder_curve(
        setting, tokens, candidates=candidates, shares=shares, sketches=sketches, seed=seed
    )
    return LadderCurve(**fields_of(found, setting=setting))
