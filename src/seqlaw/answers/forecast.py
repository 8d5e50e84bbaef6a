"""Longer or more on one's own sequences: the held-out loss, measured and forecast."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from seqlaw.answers.answer import Answer, named, shown
from seqlaw.answers.forecast_words import data, more, starts, trust, verdict
from seqlaw.answers.render import Block, Table
from seqlaw.answers.style import MARKERS, SERIES, Axes, few_ticks, tidy
from seqlaw.answers.words import Side
from seqlaw.model.amount import amount
from seqlaw.sequences import forecast as records
from seqlaw.sequences.learning_curve import LearningCurve, Needed, Row


@dataclass(frozen=True, kw_only=True, eq=False)
class Forecast(Answer, records.Forecast):
    """The held-out loss along P at equal tokens: measured where the pilot reaches, forecast beyond."""

    command: ClassVar[str] = "forecast"
    pictures: ClassVar[tuple[int, float, float]] = (2, 10.4, 4.0)

    @property
    def advice(self) -> tuple[str, ...]:
        """The verdict; then how many more would change it, and what reaches the target."""
        return verdict(self), *more(self)

    def fields(self) -> Mapping[str, Any]:
        nothing = dict.fromkeys(("ratio", "low", "high", "difference"))  # is forecast
        return {
            "rows": [asdict(row) | self._over(row) for row in self.rows],
            "accuracy": self.accuracy or nothing,
            "overlap": [asdict(one) | {"ratio": one.forecast and one.ratio} for one in self.overlap],
            "lengths": [self._curve_fields(curve) for curve in self.curves],
            **named(
                self, "null_loss", "best", "advice", "tokens", "crossings", "needed", "test_se", "groups"
            ),
            **named(self, "tested", "D", "M", "gamma", "eval_length"),
            "pilot": self.n,
            "L": self.steps,
            "gain": {"mean": self.gain, "error": self.doubt},
            "start": named(self.start, "ratio", "shift") | {"alike": not any(self.start.differ)},
        }

    def _curve_fields(self, curve: LearningCurve) -> dict[str, Any]:
        """What is known of a length; its limit where that is forecast."""
        low, high = curve.interval(math.inf) if curve.forecast else (None, None)
        own = named(curve, "P", "variance", "learned", "forecast", "largest")
        limit = {"limit": curve.limit if curve.forecast else None, "low": low, "high": high}
        return own | limit | {"gamma": curve.schedule.gamma}

    def blocks(self, side: Side) -> Iterable[Block]:
        yield from (*self.advice, data(self))
        if self.rows:
            yield Table(
                rows=[
                    (amount(row.P), amount(row.N), row.loss, row.low, row.high, row.kind, self._behind(row))
                    for row in self.rows
                ],
                header=("P", "N", "loss", "low", "high", "kind", "above the best"),
                title=f"Held-out loss at length {amount(self.eval_length)} with {amount(self.tokens)} "
                "tokens, and its 90 % interval (all rows share the test sequences)",
            )
        if self.needed:
            yield Table(
                rows=[self._need(each) for each in self.needed],
                header=("P", "N", "from", "to", "tokens"),
                title=f"Number N of sequences that reach a loss of {self.target_loss:.5g}, and its 90 % "
                "interval",
            )
        yield trust(self.accuracy)
        yield starts(self)

    def more(self, side: Side) -> Iterable[Block]:
        if self.accuracy is not None:
            quarter = {one.P: one for one in self.overlap if one.N == self.n // 4}
            yield Table(
                rows=[
                    (
                        amount(curve.P),
                        curve.limit,
                        *curve.interval(math.inf),
                        f"{quarter[curve.P].ratio:.4f}" if curve.P in quarter else "-",
                    )
                    for curve in self.curves
                    if curve.forecast
                ],
                header=("P", "limit", "low", "high", "forecast/measured"),
                title="The limit is the loss with infinitely many sequences. The last column checks the "
                "forecast at a quarter of the pilot",
            )

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
        common = named(self, "null_loss", "test_se", "eval_length", "n", "D", "M", "student")
        gammas = {curve.P: curve.schedule.gamma for curve in self.curves}
        common |= {"L": self.steps, "T": self.tokens}
        return [asdict(row) | self._over(row) | common | {"gamma": gammas[row.P]} for row in self.rows]

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
        line = [(one.P, one.at(self.tokens / one.P)) for one in self.curves if self._reaches(one)]
        if line:
            place.plot(*zip(*line, strict=True), "--", color=SERIES[1], linewidth=1.2)
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

    def _reaches(self, curve: LearningCurve) -> bool:
        return curve.forecast and self.tokens / curve.P >= curve.n // 8

    def _draw_counts(self, place: Axes) -> None:
        """The length of least loss, and one more."""
        band = "" if self.accuracy is None else "; band: 90 % interval"
        for k, curve in enumerate(self._shown()):
            seen = [(one.N, one.measured, one.se) for one in self.overlap if one.P == curve.P]
            style: dict[str, Any] = {"color": SERIES[k], "marker": MARKERS[k], "markersize": 4}
            name = f"P = {amount(curve.P)}"
            N, loss, errors = (list(column) for column in zip(*seen, strict=True))
            label = f"{name}, measured"
            place.errorbar(N, loss, errors, capsize=2, linestyle="none", label=label, **style)
            if curve.forecast:
                line = np.geomspace(max(1, curve.n // 2), 30 * curve.n, 60)
                losses = [curve.at(each) for each in line]
                low, high = np.array([curve.interval(each) for each in line]).T
                place.plot(line, losses, "--", color=SERIES[k], linewidth=1.2, label=f"{name}, forecast")
                place.fill_between(line, low, high, color=SERIES[k], alpha=0.12, linewidth=0)
                place.axhline(curve.limit, color=SERIES[k], linewidth=0.8, label=f"{name}, limit")
        tidy(
            place, "number N of training sequences", "", f"tested at length {amount(self.eval_length)}{band}"
        )
        if self.accuracy is None:  # three numbers of one decade
            counts = sorted({one.N for one in self.overlap})
            place.set_xticks(counts, [amount(N) for N in counts])
            place.set_xticks([], minor=True)

    def _shown(self) -> list[LearningCurve]:
        curves = {curve.P: curve for curve in self.curves}
        first = min(self.rows, key=lambda row: row.loss).P if self.rows else self.curves[0].P
        known = [curve.P for curve in self.curves if curve.forecast] or [self.curves[0].P]
        return [curves[P] for P in dict.fromkeys((first, known[-1] if known[-1] != first else known[0]))]


forecast = shown(Forecast, records.forecast)
