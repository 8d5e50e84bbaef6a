"""Ten series and their slopes: measured, beside the paper's guides and beside what the paper printed.

Rows of a panel give one value for each sketch and point, and a slope with its error. The guides are the
curves that the paper draws next to its measurements, recovered with their scales. Regime I: the theorem's
asymptotic power laws. Regime II: the finite two-scale curves of approximation and bias, and the finite-filter
variance averaged over the sketches. A guide known up to a factor is scaled once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from seqlaw.fit import fit_power_law
from seqlaw.methods.rates import approx_guide, bias_guide
from seqlaw.methods.terms import Row
from seqlaw.model.checks import Array
from seqlaw.model.randomness import generator
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Teacher
from seqlaw.paper.experiments.panels import TEACHERS, Panel, Series, size
from seqlaw.paper.experiments.roles import role

RESAMPLES = 4000
ROUNDING = 0.001 / math.sqrt(12)
"""Standard deviation of what three printed digits leave out."""


# --- measured ------------------------------------------------------------------------------------------


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


# --- the paper's guides --------------------------------------------------------------------------------


POWERS: dict[tuple[str, str], Callable[[Teacher], float]] = {
    ("approx", "M"): lambda teacher: 1 - teacher.beta_alpha,
    ("bias", "R"): lambda teacher: (1 - teacher.beta_alpha) / teacher.alpha,
    ("variance", "N"): lambda teacher: -1.0,
    ("variance", "P"): lambda teacher: -1.0,
    ("variance", "R"): lambda teacher: 1 / teacher.alpha,
}
"""Regime I's exponents (Theorem 1), before the active dimension meets the width."""

TWO_SCALE: dict[str, Callable[[Setting], float]] = {
    "approx": lambda s: approx_guide(TEACHERS["II"], s.M, s.one_length),
    "bias": lambda s: bias_guide(TEACHERS["II"], s.schedule.horizon, s.one_length),
}

FORMULAS = {
    ("I", "approx"): "M^{1-β_α}",
    ("I", "bias"): "R^{(1-β_α)/α}",
    ("I", "variance"): "N^{-1}, P^{-1}, R^{1/α}",
    ("II", "approx"): "c_ξ M^{1-β_α} + c_0 P^{-1} M^{1-β_θ}",
    ("II", "bias"): "c_ξ κ^{1-β_α} + c_0 P^{-1} κ^{1-β_θ}, R(c_ξ κ^{-α} + c_0 P^{-1} κ^{-θ}) = 1",
    ("II", "variance"): "tr(Ω_P)/(2NP) Σ_j (μ_j g(μ_j))²",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Guide:
    """The dashed curve of a series, scaled to its measurement."""

    y: Array
    slope: float
    ratio: Array
    """Measured over guide, at each point."""


def guide(measured: Curve, finite_filter: Curve | None) -> Guide:
    """The paper's guide for a measured curve; `finite_filter` is Var^ff for the variance of Regime II.

    Scale: none for Var^ff; 1 at the middle point for the bias of Regime II, as the paper's printed ratios
    show; otherwise the mean ratio is 1.
    """
    series, y = measured.series, measured.y
    if series.regime == "I":
        exponent = POWERS[series.quantity, series.against](TEACHERS["I"])
        shape = measured.x**exponent
        return _scaled(shape, exponent, y, float(np.mean(y / shape)))
    if series.quantity == "variance":
        assert finite_filter is not None
        return _scaled(finite_filter.y, slope_of(measured.x, finite_filter.y), y, 1.0)
    shape = two_scale(series)
    ratio = y / shape
    scale = ratio[len(ratio) // 2] if series.quantity == "bias" else ratio.mean()
    return _scaled(shape, slope_of(measured.x, shape), y, float(scale))


def two_scale(series: Series) -> Array:
    """The unscaled two-scale curve of a Regime II series."""
    return np.array([TWO_SCALE[series.quantity](setting) for setting in series.settings])


def _scaled(shape: Array, slope: float, y: Array, scale: float) -> Guide:
    return Guide(y=shape * scale, slope=slope, ratio=y / (shape * scale))


# --- slopes --------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """One series on one method, with its guide."""

    panel: Panel
    curve: Curve
    guide: Guide

    @property
    def relative_x(self) -> Array:
        """The size itself, or in a variance panel the size relative to the point where its sweeps meet."""
        reference, x = self.panel.reference, self.curve.x
        return x if reference is None else x / size(reference, self.curve.series.against)


@dataclass(frozen=True, kw_only=True)
class SlopeRow:
    """One row of the table."""

    panel: str
    regime: str
    quantity: str
    against: str
    slope: float
    slope_se: float | None
    guide: float
    paper_slope: float
    paper_guide: float
    z: float | None
    """(slope - paper's) / √(runs · spread² + rounding²); None on a smaller grid, which has another spread."""
    spread: float
    """Standard deviation of the slope over repetitions of the whole experiment, known beforehand."""
    replicate_mean: float | None = None
    replicate_spread: float | None = None


@dataclass(frozen=True)
class Agreement:
    """Ratios of measured to guide along a series, next to the paper's."""

    series: Series
    mean: float
    low: float
    high: float
    paper_mean: float
    paper_low: float
    paper_high: float

    @property
    def overlaps(self) -> bool:
        """Whether the range of the ratios and the paper's have a number in common."""
        return self.low <= self.paper_high and self.paper_low <= self.high


def measured(rows: Sequence[Row], panels: Sequence[Panel], method: str) -> list[Measured]:
    """The series of the panels on a method, with their guides."""
    found = []
    for panel in panels:
        for series in panel.series:
            here, finite = curve(rows, panel, series, method), None
            if series.key[:2] == ("II", "variance"):
                finite = curve(rows, panel, series, role(method).method.expectation, "finite_filter_variance")
            found.append(Measured(panel=panel, curve=here, guide=guide(here, finite)))
    return found


def z_score(slope: float, printed: float, spread: float, runs: int) -> float:
    """Difference over √(runs · spread² + rounding²): 2 where this run is as noisy as the paper's, else 1."""
    return (slope - printed) / math.sqrt(runs * spread**2 + ROUNDING**2)


def slope_table(
    series: Sequence[Measured], *, seed: int, quick: bool, replicates: Sequence[Sequence[Measured]] = ()
) -> list[SlopeRow]:
    """The rows of the table; `replicates` are all repetitions of the whole experiment, the first included."""
    table = []
    for place, one in enumerate(series):
        key, printed = one.curve.series.key, one.curve.series.printed
        slope = one.curve.slope
        # The exact method's variance has no data, the equivalent method no sketches: one noisy run is left.
        runs = 2 if role(role(one.curve.method).rows(key[1])).noisy else 1
        again = np.array([replicate[place].curve.slope for replicate in replicates])
        table.append(
            SlopeRow(
                panel=one.panel.name,
                regime=key[0],
                quantity=key[1],
                against=key[2],
                slope=slope,
                slope_se=one.curve.slope_se(seed),
                guide=one.guide.slope,
                paper_slope=printed.slope,
                paper_guide=printed.guide,
                z=None if quick else z_score(slope, printed.slope, printed.spread, runs),
                spread=printed.spread,
                replicate_mean=float(again.mean()) if again.size > 1 else None,
                replicate_spread=float(again.std(ddof=1)) if again.size > 1 else None,
            )
        )
    return table


def agreement(series: Sequence[Measured]) -> dict[str, Agreement]:
    """Measured over guide in Regime II, by quantity and size."""
    found = {}
    for one in series:
        curve, ratio = one.curve.series, one.guide.ratio
        if curve.printed.ratio is not None:
            here = float(ratio.mean()), float(ratio.min()), float(ratio.max())
            found[f"{curve.quantity}_{curve.against}"] = Agreement(curve, *here, *curve.printed.ratio)
    return found


def clipping_rate(rows: Sequence[Row]) -> float:
    """The share of rows in which the safeguard was active (the paper: zero)."""
    return float(np.mean([row["clipped"] for row in rows]))
