"""Ten series and their slopes: measured, beside the paper's guides and beside what the paper printed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqlaw.methods.terms import Row
from seqlaw.model.checks import Array
from seqlaw.paper.experiments.curves import Curve, curve
from seqlaw.paper.experiments.guides import Guide, guide
from seqlaw.paper.experiments.panels import Panel, Series, size
from seqlaw.paper.experiments.roles import role

ROUNDING = 0.001 / math.sqrt(12)
"""Standard deviation of what three printed digits leave out."""


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
