"""Longer or more on one's own sequences: the held-out loss, measured and forecast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from seqlaw.answers.answer import Answer, fields_of
from seqlaw.answers.blocks import Block, Sentence, Table
from seqlaw.answers.forecast_words import data, more, starts, trust, verdict
from seqlaw.answers.style import MARKERS, SERIES, few_ticks, tidy
from seqlaw.answers.words import Side
from seqlaw.model.amount import amount
from seqlaw.model.checks import checked
from seqlaw.sequences import forecast as records
from seqlaw.sequences.law import Law, Row
from seqlaw.sequences.needed import Needed
from seqlaw.sequences.opening import file_names
from seqlaw.sequences.tables import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True, eq=False)
class Forecast(Answer, records.Forecast):
    """The held-out loss along P at equal tokens: measured where the pilot reaches, forecast beyond."""

    asked: Mapping[str, Any]
    command: ClassVar[str] = "forecast"
    pictures: ClassVar[tuple[int, float, float]] = (2, 10.4, 4.0)

    @property
    def advice(self) -> tuple[str, ...]:
        """The verdict; then how many more would change it, and what reaches the target."""
        return verdict(self), *more(self)

    def inputs(self) -> Mapping[str, Any]:
        return self.asked

    def fields(self) -> Mapping[str, Any]:
        return {
            "rows": [asdict(row) | self._over(row) for row in self.rows],
            "null_loss": self.null_loss,
            "accuracy": self.accuracy
            or dict.fromkeys(("ratio", "low", "high", "difference")),  # nothing is forecast
            "best": self.best,
            "advice": self.advice,
            "tokens": self.tokens,
            "overlap": [asdict(one) | {"ratio": one.forecast and one.ratio} for one in self.overlap],
            "lengths": [
                {
                    "P": law.P,
                    "limit": law.limit if law.forecast else None,
                    "low": law.interval(math.inf)[0] if law.forecast else None,
                    "high": law.interval(math.inf)[1] if law.forecast else None,
                    "variance": law.variance,
                    "learned": law.learned,
                    "forecast": law.forecast,
                }
                for law in self.laws
            ],
            "crossings": self.crossings,
            "needed": self.needed,
            "test_se": self.test_se,
            "pilot": self.n,
            "groups": self.groups,
            "tested": self.tested,
            "D": self.D,
            "M": self.M,
            "L": self.schedule.L,
            "gamma": self.schedule.gamma,
            "eval_length": self.eval_length,
            "gain": {"mean": self.gain, "error": self.doubt},
            "start": {
                "ratio": self.start.ratio,
                "shift": self.start.shift,
                "alike": not any(self.start.differ),
            },
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        yield from map(Sentence, (*self.advice, data(self)))
        if self.rows:
            yield Table(
                rows=[
                    (amount(row.P), amount(row.N), row.loss, row.low, row.high, row.kind, self._behind(row))
                    for row in self.rows
                ],
                header=("P", "N", "loss", "low", "high", "kind", "above the best"),
                title=f"Held-out loss at length {amount(self.eval_length)} with {amount(self.tokens)} "
                "tokens, and its 90 % interval (what the test sequences add to it is common to all rows)",
            )
        if self.needed:
            yield Table(
                rows=[self._need(each) for each in self.needed],
                header=("P", "N", "from", "to", "tokens"),
                title=f"Sequences that reach a loss of {self.target_loss:.5g}, and where the ends of the "
                "interval do",
            )
        yield Sentence(trust(self.accuracy))
        if self.accuracy is not None:
            quarter = {one.P: one for one in self.overlap if one.N == self.n // 4}
            yield Table(
                rows=[
                    (
                        amount(law.P),
                        law.limit,
                        *law.interval(math.inf),
                        f"{quarter[law.P].ratio:.4f}" if law.P in quarter else "-",
                    )
                    for law in self.laws
                    if law.forecast
                ],
                header=("P", "no N beats", "low", "high", "forecast/measured"),
            )
        yield Sentence(starts(self))

    def _over(self, row: Row) -> dict[str, float]:
        """How far a row lies above the best, and how far it must to be distinguished; both relative."""
        least = min(row.loss for row in self.rows)
        return {"over": row.loss / least - 1, "apart": self.apart[row.P] / least}

    def _behind(self, row: Row) -> str:
        over = self._over(row)
        return "-" if over["over"] == 0 else f"{100 * over['over']:.2f} ± {100 * over['apart']:.2f} %"

    def _need(self, each: Needed) -> tuple[str, ...]:
        """A row; "at most" and "≤" where fewer may do, "never" where the limit may lie above the target."""
        N, low, high = ("never" if x is None else amount(x) for x in (each.N, each.low, each.high))
        if each.low == each.trusted:
            low = f"≤ {low}"
        tokens = "-" if each.N is None else amount(each.N * each.P)
        return amount(each.P), f"at most {N}" if each.at_most else N, low, high, tokens

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """One row a length, with the student's sizes and what is common to all."""
        names = ("null_loss", "test_se", "eval_length", "n", "D", "M", "student")
        common = {name: getattr(self, name) for name in names}
        steps = {"L": self.schedule.L, "gamma": self.schedule.gamma, "T": self.tokens}
        return [asdict(row) | self._over(row) | common | steps for row in self.rows]

    def draw(self, axes: Sequence[Axes]) -> None:
        """Loss against P at equal tokens; loss against N, with its interval and what no N can beat."""
        self._draw_lengths(axes[0])
        self._draw_counts(axes[1])
        if not self.rows:
            axes[0].clear()
            axes[0].set_axis_off()
            axes[0].text(0.5, 0.5, f"nothing can be said\nat {amount(self.tokens)} tokens", ha="center")
        for place in axes[0 if self.rows else 1 :]:
            self._draw_nothing(place)
            few_ticks(place)
            place.legend(frameon=False, fontsize="small")

    def _draw_nothing(self, place: Axes) -> None:
        """A line where it leaves room for what is compared, else a word at the edge where it would be."""
        low, high = place.dataLim.intervaly
        nothing, name = self.null_loss, f"predicting nothing: {self.null_loss:.4g}"
        if nothing < high + 3 * (high - low) or (low == high and nothing < 1.2 * high):
            place.axhline(nothing, color="0.4", linewidth=1, linestyle=":", label=name)
            return
        room = 0.08 * (high - low) or 0.02 * high
        place.set_ylim(low - room, high + 3 * room)
        place.annotate(f"↑ {name}", (0.02, 0.96), xycoords="axes fraction", va="top", fontsize="small")

    def _draw_lengths(self, place: Axes) -> None:
        law = [(one.P, one.at(self.tokens / one.P)) for one in self.laws if self._reaches(one)]
        if law:
            place.plot(*zip(*law, strict=True), "--", color=SERIES[1], linewidth=1.2)
        for k, kind in enumerate(("measured", "forecast")):
            rows = [
                (row.P, row.loss, row.loss - row.low, row.high - row.loss)
                for row in self.rows
                if row.kind == kind
            ]
            style: dict[str, Any] = {"color": SERIES[k], "marker": MARKERS[k], "markersize": 4}
            if rows:
                P, loss, *errors = (list(column) for column in zip(*rows, strict=True))
                style |= {"linestyle": ":" if kind == "measured" else "none", "linewidth": 0.8}
                place.errorbar(P, loss, errors, capsize=2, label=f"{kind}, 90 % interval", **style)
        tidy(
            place, "length P of the training sequences", "held-out loss", f"{amount(self.tokens)} tokens each"
        )
        lengths = [row.P for row in self.rows]
        place.set_xticks(lengths, [amount(P) for P in lengths])
        place.set_xticks([], minor=True)

    def _reaches(self, law: Law) -> bool:
        return law.forecast and self.tokens / law.P >= law.n // 8

    def _draw_counts(self, place: Axes) -> None:
        """The length of least loss, and one more."""
        band = "" if self.accuracy is None else "; band: 90 % interval"
        for k, law in enumerate(self._shown()):
            seen = [(one.N, one.measured, one.se) for one in self.overlap if one.P == law.P]
            style: dict[str, Any] = {"color": SERIES[k], "marker": MARKERS[k], "markersize": 4}
            name = f"P = {amount(law.P)}"
            N, loss, errors = (list(column) for column in zip(*seen, strict=True))
            label = f"{name}, measured"
            place.errorbar(N, loss, errors, capsize=2, linestyle="none", label=label, **style)
            if law.forecast:
                line = np.geomspace(max(1, law.n // 2), 30 * law.n, 60)
                losses = [law.at(each) for each in line]
                low, high = np.array([law.interval(each) for each in line]).T
                place.plot(line, losses, "--", color=SERIES[k], linewidth=1.2, label=f"{name}, forecast")
                place.fill_between(line, low, high, color=SERIES[k], alpha=0.12, linewidth=0)
                place.axhline(law.limit, color=SERIES[k], linewidth=0.8, label=f"{name}, no N beats")
        tidy(
            place, "number N of training sequences", "", f"tested at length {amount(self.eval_length)}{band}"
        )
        if self.accuracy is None:  # three numbers of one decade
            counts = sorted({one.N for one in self.overlap})
            place.set_xticks(counts, [amount(N) for N in counts])
            place.set_xticks([], minor=True)

    def _shown(self) -> list[Law]:
        laws = {law.P: law for law in self.laws}
        first = min(self.rows, key=lambda row: row.loss).P if self.rows else self.laws[0].P
        known = [law.P for law in self.laws if law.forecast] or [self.laws[0].P]
        return [laws[P] for P in dict.fromkeys((first, known[-1] if known[-1] != first else known[0]))]


@checked
def forecast(
    X: Any,
    *,
    tokens: float | None = None,
    lengths: Sequence[int] | None = None,
    eval_length: int | None = None,
    student: str = "all",
    M: int | None = None,
    steps: int = 500,
    target_loss: float | None = None,
    sequence: str | None = None,
    time: str | None = None,
    groups: Any = None,
    window: int | None = None,
    features: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    test: Any = None,
    standardise: bool = False,
    drop_missing: bool = False,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
) -> Forecast:
    """The held-out loss of students of `tokens` tokens, split into N sequences of each length P.

    X: an array N × P × D (NumPy, torch, JAX), an iterable of P_i × D sequences, a .npy, .npz, .zarr, .mat or
    .jsonl file; a .csv or .parquet file or a DataFrame whose columns are features (`sequence` and `time` name
    the columns that order them; `features` the features, or `leave_out` what is none); a recording S × D,
    with the `window` of states to cut it by; or several files, as a list or a folder. `groups` labels
    sequences that are not independent (a column, the name of an array in the file, one label a sequence, or
    "file" for several files).

    Lengths count transitions and default to powers of two up to the longest, where students are tested too
    (`eval_length`). The student sees "all" features, the first M principal directions ("pca") or a Gaussian
    "sketch" of M. `tokens` defaults to what the pilot has. A fifth of the groups is held out for the test,
    unless `test` has sequences of its own (in any form that X may have).
    """
    how: dict[str, Any] = {
        "tokens": tokens,
        "lengths": lengths,
        "eval_length": eval_length,
        "student": student,
        "M": M,
        "steps": steps,
        "target_loss": target_loss,
        "window": window,
        "standardise": standardise,
        "drop_missing": drop_missing,
        "seed": seed,
    }
    columns = Columns(sequence=sequence, time=time, features=features, leave_out=leave_out)
    found = records.forecast(X, columns=columns, **how, groups=groups, test=test, progress=progress)
    named = groups if isinstance(groups, str) or groups is None else "given"
    asked = {"file": file_names(X), **how, **columns.asked(), "groups": named}
    return Forecast(**fields_of(found), asked=asked)
