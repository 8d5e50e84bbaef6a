"""Measured curves: rows of a panel → one value for each sketch and point, and the slope with its error."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from seqlaw.fit import fit_power_law
from seqlaw.methods.terms import Row
from seqlaw.model.checks import Array
from seqlaw.model.randomness import generator
from seqlaw.paper.experiments.panels import Panel, Series
from seqlaw.paper.experiments.roles import role

RESAMPLES = 4000


@dataclass(frozen=True, kw_only=True, eq=False)
class Curve:
    """One series as one method gives it."""

    series: Series
    method: str
    by_sketch: Array
    """Sketches × points, each the mean over its repetitions; a single line where nothing is random."""

    @property
    def x(self) -> Array:
        return np.array(self.series.x)

    @property
    def y(self) -> Array:
        """The mean over the sketches."""
        return np.asarray(self.by_sketch.mean(axis=0))

    @property
    def error(self) -> Array | None:
        """The paper's error bars: standard deviation over sketches (approximation, bias), or standard error
        of the mean over sketch-level means (variance)."""
        n = len(self.by_sketch)
        if n < 2:
            return None
        spread = self.by_sketch.std(axis=0, ddof=1)
        return np.asarray(spread / np.sqrt(n) if self.series.quantity == "variance" else spread)

    @property
    def slope(self) -> float:
        """The least-squares slope of the mean curve on logarithmic axes."""
        return slope_of(self.x, self.y)

    def slope_se(self, seed: int) -> float | None:
        """The standard error of the slope, by resampling whole sketches with their nested data sets.

        A bootstrap over n sketches falls short by √(1 - 1/n), which is made up for; with one sketch there
        is none.
        """
        n = len(self.by_sketch)
        if n < 2:
            return None
        draws = generator(seed, "bootstrap", *self.series.key, self.method)
        weights = draws.multinomial(n, np.full(n, 1 / n), size=RESAMPLES) / n
        u = np.log(self.x) - np.log(self.x).mean()
        slopes = np.log(weights @ self.by_sketch) @ u / (u @ u)
        return float(slopes.std() * np.sqrt(n / (n - 1)))


def slope_of(x: Sequence[float] | Array, y: Sequence[float] | Array) -> float:
    """The least-squares slope of log y against log x."""
    return fit_power_law(np.asarray(x), np.asarray(y)).slope


def curve(rows: Iterable[Row], panel: Panel, series: Series, method: str, column: str | None = None) -> Curve:
    """A series as measured on a method (`column` defaults to its quantity)."""
    name = series.quantity if column is None else column
    wanted = role(method).rows(series.quantity)
    points = {setting: index for index, setting in enumerate(panel.settings)}
    places = {points[setting]: place for place, setting in enumerate(series.settings)}
    values: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        if row["panel"] == panel.name and row["method"] == wanted and row["point"] in places:
            values.setdefault((row["sketch"], places[row["point"]]), []).append(row[name])
    sketches = sorted({sketch for sketch, _ in values})
    by_sketch = [[float(np.mean(values[k, place])) for place in range(len(places))] for k in sketches]
    return Curve(series=series, method=method, by_sketch=np.array(by_sketch))
