"""What the report adds to the paper's panels; no random number is drawn here.

Measured variance against the exact method, the theorem's schedule next to the experiments', the risk itself
next to its five terms, and every curve in P at a common test length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqlaw.methods.equivalent import equivalent_risks
from seqlaw.methods.terms import TERMS, Row
from seqlaw.model.checks import Array
from seqlaw.model.schedule import WSD, BlockDecay, Schedule
from seqlaw.model.setting import Setting
from seqlaw.paper.experiments.panels import GAMMA, TEACHERS, Panel
from seqlaw.paper.experiments.roles import role
from seqlaw.paper.experiments.slopes import Measured, slope_of
from seqlaw.planning.tradeoff import Tradeoff, tradeoff

TOKENS = 2**24
"""As in the first figure of the README."""
LONGER: dict[str, Any] = {"M": 128, "d": 1024, "schedule": BlockDecay(gamma=GAMMA, L=30000)}
"""The student of "longer or more", in both regimes."""
COMMON = (4, 48, 4096)
"""The common test lengths of the panels in P: their shortest and longest, and a long one."""


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseCheck:
    """A sampled variance series over two predictions of it, one line for each data set.

    A data set is the independent unit: all points of a sweep share it, nested in N and P, the same in R.
    """

    measured: Measured
    over_exact: Array
    """Data sets × points: over the exact method of the same sketch."""
    over_finite_filter: Array
    """Data sets × points: over the paper's guide for the same sketch."""

    @property
    def error(self) -> Array | None:
        """Standard error of each point's mean over the data sets; points stray together."""
        n = len(self.over_exact)
        return np.asarray(self.over_exact.std(axis=0, ddof=1) / np.sqrt(n)) if n > 1 else None

    @property
    def mean(self) -> float:
        """Over the points and the data sets."""
        return float(self.over_exact.mean())

    @property
    def mean_error(self) -> float | None:
        """Standard error of `mean` from these data sets: one number each, its mean over the points."""
        each = self.over_exact.mean(axis=1)
        return float(each.std(ddof=1) / np.sqrt(each.size)) if each.size > 1 else None

    @property
    def expected_error(self) -> float:
        """Standard error of `mean` from the spread that is known beforehand."""
        return self.measured.curve.series.printed.noise / float(np.sqrt(len(self.over_exact)))


def noise_checks(rows: Sequence[Row], series: Sequence[Measured]) -> list[NoiseCheck]:
    """The sampled variance over the exact method of its own sketch, and over the paper's guide.

    Data set by data set, so that what the sketch gives cancels and only the noise of the data is left.
    """
    drawn = [one for one in series if role(one.curve.method).repetitions and one.panel.quantity == "variance"]
    return [_noise_check(rows, one) for one in drawn]


def _noise_check(rows: Sequence[Row], one: Measured) -> NoiseCheck:
    method, mean = one.curve.method, role(one.curve.method).method.expectation
    here = {_place(row): row for row in rows if row["panel"] == one.panel.name}
    sets = dict.fromkeys(place[1:4] for place in here if place[0] == method)
    points = [one.panel.settings.index(setting) for setting in one.curve.series.settings]

    def over(column: str) -> Array:
        lines = [[(here[method, i, j, k, p], here[mean, i, j, 0, p]) for p in points] for i, j, k in sets]
        return np.array([[row["variance"] / exact[column] for row, exact in line] for line in lines])

    return NoiseCheck(
        measured=one, over_exact=over("variance"), over_finite_filter=over("finite_filter_variance")
    )


def _place(row: Row) -> tuple[str, int, int, int, int]:
    return row["method"], row["seed"], row["sketch"], row.get("repetition", 0), row["point"]


@dataclass(frozen=True, kw_only=True, eq=False)
class ScheduleCurve:
    """A series in R under another schedule."""

    panel: Panel
    name: str
    x: Array
    """The horizons R of the block schedule, which the other schedules are matched to."""
    y: Array
    sum_over_R: float
    """Σγ_t over the R of the block schedule, at the last point."""

    @property
    def slope(self) -> float:
        return slope_of(self.x, self.y)


def wsd_of_sum(total: float) -> WSD:
    """The WSD schedule whose steps sum to about `total`; its share of γL depends on L through ln L only."""
    L = max(10, round(total / GAMMA))
    for _ in range(20):
        L = max(10, round(L * total / WSD(gamma=GAMMA, L=L).total))
    return WSD(gamma=GAMMA, L=L)


def schedule_curves(panels: Sequence[Panel]) -> list[ScheduleCurve]:
    """Every series in R: block decay, WSD at the same R, WSD at the same sum of steps (equivalent method)."""
    curves = []
    for panel in panels:
        for series in (series for series in panel.series if series.against == "R"):
            block = [setting.schedule for setting in series.settings]
            kinds: dict[str, list[Schedule]] = {
                "block decay": block,
                "WSD, same R": [WSD.from_horizon(one.horizon, GAMMA) for one in block],
                "WSD, same sum": [wsd_of_sum(one.total) for one in block],
            }
            for name, schedules in kinds.items():
                risks = equivalent_risks(
                    [replace(s, schedule=kind) for s, kind in zip(series.settings, schedules, strict=True)]
                )
                curves.append(
                    ScheduleCurve(
                        panel=panel,
                        name=name,
                        x=np.array(series.x),
                        y=np.array([getattr(risk, series.quantity) for risk in risks]),
                        sum_over_R=schedules[-1].total / block[-1].horizon,
                    )
                )
    return curves


@dataclass(frozen=True, kw_only=True)
class TermCheck:
    """The mean risk at the reference point of a variance panel: its terms, their sum, and the risk itself."""

    panel: Panel
    means: dict[str, float]
    """By column: the terms, `total` for their sum and `loss` for the risk."""
    worst: float
    """The largest |sum - risk| over the reducible risk, on all data sets and points of the panel."""
    cross_share: float
    """Mean |cross| over √(bias · variance), which the theorem bounds by a constant."""


def term_checks(rows: Sequence[Row], panels: Sequence[Panel]) -> list[TermCheck]:
    """L_M(B_L) of the trained B_L against the sum of its five terms, on the sampled data sets."""
    checks = []
    for panel in panels:
        mine = [row for row in rows if row["panel"] == panel.name and role(row["method"]).repetitions]
        if not mine or panel.reference not in panel.settings:
            continue
        place = panel.settings.index(panel.reference)
        here = [row for row in mine if row["point"] == place]
        means = {name: float(np.mean([row[name] for row in here])) for name in (*TERMS, "total", "loss")}
        shares = [abs(row["cross"]) / np.sqrt(row["bias"] * row["variance"]) for row in mine]
        checks.append(
            TermCheck(
                panel=panel,
                means=means,
                worst=max(abs(row["loss"] - row["total"]) / row["reducible"] for row in mine),
                cross_share=float(np.mean(shares)),
            )
        )
    return checks


def common_tests(panels: Sequence[Panel]) -> list[tuple[Panel, dict[str, float]]]:
    """The slope of every series in P by the length of the test; "own" is the paper's (equivalent method)."""
    found = []
    for panel in panels:
        for series in (series for series in panel.series if series.against == "P"):
            slopes = {}
            for length in (None, *COMMON):
                risks = equivalent_risks([replace(s, eval_length=length) for s in series.settings])
                y = [getattr(risk, series.quantity) for risk in risks]
                slopes["own" if length is None else str(length)] = slope_of(series.x, y)
            found.append((panel, slopes))
    return found


def longer_or_more() -> dict[str, Tradeoff]:
    """Both regimes at a fixed number of tokens, tested at the own length and at common ones."""
    return {
        regime: tradeoff(Setting(teacher=teacher, N=1, P=2, **LONGER), TOKENS, tune=False)
        for regime, teacher in TEACHERS.items()
    }
