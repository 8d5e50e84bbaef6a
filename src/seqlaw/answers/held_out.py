"""Does it predict? The held-out loss of trained students, beside what the measured spectra say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from seqlaw.answers.answer import Answer, fields_of
from seqlaw.answers.blocks import Block, Sentence, Table
from seqlaw.answers.measurement import Measurement, answered
from seqlaw.answers.style import MARKERS, SERIES, few_ticks, tidy
from seqlaw.answers.words import Side
from seqlaw.model.amount import amount
from seqlaw.sequences import held_out as records

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOut(Answer, records.HeldOut):
    """Measured against predicted loss along P at equal tokens."""

    measurement: Measurement
    """Of the training sequences alone."""
    command: ClassVar[str] = "held_out"
    pictures: ClassVar[tuple[int, float, float]] = (1, 5.2, 3.8)

    @property
    def words(self) -> tuple[str, ...]:
        """The best lengths, why so few tokens are used, and what the comparison is good for."""
        P, N = self.rows[0].P, self.rows[0].N
        return (
            f"Best length: {amount(self.best[0])} measured, {amount(self.best[1])} predicted.",
            f"Only {amount(self.tokens)} of the {amount(self.available)} training tokens are used, since "
            f"every row has as many: at P = {amount(P)} they take {amount(N)} sequences, half of those not "
            "held out.",
            "The check says how well the measured spectra predict the loss of this student at so few tokens. "
            "It is no advice for another width or more tokens, which can favour another length.",
        )

    def inputs(self) -> Mapping[str, Any]:
        return {
            "file": self.measurement.file,
            "lengths": [row.P for row in self.rows],
            "eval_length": self.eval_length,
            "steps": self.schedule.L,
            "repetitions": self.repetitions,
            "share": self.share,
            "seed": self.measurement.seed,
        }

    def fields(self) -> Mapping[str, Any]:
        return {
            "rows": self.rows,
            "eval_length": self.eval_length,
            "tokens": self.tokens,
            "available": self.available,
            "M": self.M,
            "L": self.schedule.L,
            "null": self.null,
            "test_se": self.test_se,
            "best": dict(zip(("measured", "predicted"), self.best, strict=True)),
            "agreement": self.agreement,
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        yield Table(
            rows=[
                (
                    amount(row.P),
                    amount(row.N),
                    row.measured,
                    f"± {row.se:.2g}",
                    row.predicted,
                    row.measured / row.predicted,
                )
                for row in self.rows
            ],
            header=("P", "N", "measured", "se", "predicted", "ratio"),
            title=f"Held-out loss at length {amount(self.eval_length)} of students of width "
            f"{amount(self.M)} (all features) after {amount(self.schedule.L)} steps on "
            f"{amount(self.tokens)} tokens (test sequences: ± {self.test_se:.2g}, common to all; "
            f"predicting nothing: {self.null:.5g})",
        )
        yield from map(Sentence, self.words)

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """One row a length, with the student's sizes and what is common to all."""
        names = ("eval_length", "tokens", "M", "null", "test_se")
        common = {name: getattr(self, name) for name in names}
        steps = {"L": self.schedule.L, "gamma": self.schedule.gamma}
        return [asdict(row) | common | steps for row in self.rows]

    def draw(self, axes: Sequence[Axes]) -> None:
        """Measured loss with its standard errors, and the predicted one, against P."""
        (place,), P = axes, [row.P for row in self.rows]
        measured, errors = [row.measured for row in self.rows], [row.se for row in self.rows]
        predicted = [row.predicted for row in self.rows]
        seen: dict[str, Any] = {"color": SERIES[0], "marker": MARKERS[0], "markersize": 4}
        place.errorbar(P, measured, yerr=errors, capsize=2, label="measured, ± s.e. over subsets", **seen)
        told: dict[str, Any] = {"color": SERIES[1], "marker": MARKERS[1], "markersize": 4}
        place.plot(P, predicted, linestyle="--", label="predicted from the measured spectra", **told)
        common = f"test sequences: ± {self.test_se:.2g}, common to all"
        title = f"{self.tokens:,} tokens each, tested at length {self.eval_length:,}\n({common})"
        tidy(place, "length P of the training sequences", "held-out loss", title)
        few_ticks(place)
        place.set_xticks(P, [f"{length:,}" for length in P])
        place.set_xticks([], minor=True)
        place.legend(frameon=False, fontsize="small")


def held_out(
    X: Any,
    *,
    lengths: Sequence[int] | None = None,
    eval_length: int | None = None,
    steps: int = 500,
    repetitions: int = 4,
    share: float = 0.2,
    seed: int = 0,
) -> HeldOut:
    """Train at several (N, P) with equal tokens, test at one length on held-out sequences, compare.

    `share` of the sequences (spread evenly over the file) is held out. Lengths count transitions and
    default to powers of two up to the longest; the tokens are what half the training sequences give at the
    shortest length.
    """
    found = records.held_out(X, lengths, eval_length, steps, repetitions, share, seed)
    return HeldOut(**fields_of(found, measurement=answered(found.measurement, X)))
