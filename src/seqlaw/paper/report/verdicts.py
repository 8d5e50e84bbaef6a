"""What agrees with the paper and with its guides, and what does not: one rule for all rows, in sentences."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from seqlaw.paper.experiments.panels import QUANTITIES, Panel
from seqlaw.paper.experiments.roles import role
from seqlaw.paper.experiments.slopes import Agreement, SlopeRow, z_score
from seqlaw.paper.report.formats import ratio_cells, slope_text

if TYPE_CHECKING:
    from seqlaw.paper.answer import Reproduction

FAR = 2.0
"""Standard deviations beyond which a slope is said to differ."""
_LAGS = "leaves out the covariances of scores at different positions, and is 2 to 3 % low on this grid"
_POWER_LAW = "is the theorem's power law, which is for large sizes, and this grid is finite"
_WHY = {
    ("I", "approx"): _POWER_LAW,
    ("I", "bias"): _POWER_LAW,
    ("I", "variance"): _POWER_LAW,
    ("II", "approx"): "is a sum of two power laws, which is right in order only",
    ("II", "bias"): "puts a sharp cutoff κ in place of the filter, which is right in order only",
    ("II", "variance"): _LAGS,
}
"""Why a guide may miss a slope even without noise: "the guide …"."""


def headline(result: Reproduction) -> str:
    """How many slopes are the paper's."""
    judged = [abs(row.z) for row in result.slopes if row.z is not None]
    if not judged:
        return "The smaller grid has different slopes, so they are not compared with the paper's."
    near, beyond = sum(z <= FAR for z in judged), sum(z > 3 for z in judged)
    rest = "all" if not beyond else f"all but {beyond}"
    return (
        f"{near} of {len(judged)} slopes agree with the paper's within two standard deviations (|z| ≤ 2 in "
        f"the table of slopes); {rest} lie within three."
    )


def verdicts(result: Reproduction) -> tuple[list[str], list[str]]:
    """What agrees; what differs or needs care. A smaller grid has other slopes, and is not compared."""
    smooth = {one.curve.series.key: one.curve.slope for one in result.smooth}
    agree: list[str] = []
    differ: list[str] = []
    if result.quick:
        return agree, differ
    for row in result.slopes:
        if row.z is not None:
            (agree if abs(row.z) <= FAR else differ).append(_beside_paper(row))
        differ += _beside_guide(row, smooth[row.regime, row.quantity, row.against])
    for kind, items in zip((agree, differ), _ratios(result), strict=True):
        kind += items
    noisy = [row.spread for row in result.slopes if row.quantity == "variance" and row.spread > 0.02]
    if noisy:
        differ.append(
            f"The paper's variance slopes come from few data sets. Repeating the whole experiment moves them "
            f"by {min(noisy):.3f} to {max(noisy):.3f} (one standard deviation), so their second digit is not "
            "reproducible."
        )
    return agree, differ


def _name(row: SlopeRow) -> str:
    return f"{QUANTITIES[row.quantity].short} against {row.against}, Regime {row.regime}"


def _beside_paper(row: SlopeRow) -> str:
    text = f"{_name(row)}: {slope_text(row)}, paper {row.paper_slope:.3f} (z = {row.z:+.1f})."
    if abs(row.z or 0.0) > FAR:
        text += f" Repeating the experiment moves this slope by {row.spread:g} only. No cause is known"
        tiny = abs(row.slope - row.paper_slope) < 0.001
        text += "; the gap is less than one unit of the last digit that the paper prints." if tiny else "."
    return text


def _beside_guide(row: SlopeRow, smooth: float) -> list[str]:
    """A sentence where the slope is farther from its guide than repeating the experiment moves it."""

    def far(slope: float, guide: float) -> bool:
        return abs(z_score(slope, guide, row.spread, runs=1)) > FAR

    if not far(row.slope, row.guide):
        return []
    both = row.z is not None and far(row.paper_slope, row.paper_guide)
    too = f", here as in the paper ({row.paper_slope:.3f})" if both else ""
    why = f"Without any sampling it is {smooth:.3f}: the gap may be the noise of this run."
    if far(smooth, row.guide):
        why = (
            f"The guide {_WHY[row.regime, row.quantity]}; without any sampling the slope is {smooth:.3f}, so "
            "the gap is not noise."
        )
    return [
        f"{_name(row)}: the measured slope {slope_text(row)} is not the guide's {row.guide:.3f}{too}. {why}"
    ]


def _ratios(result: Reproduction) -> tuple[list[str], list[str]]:
    """Measured over guide in Regime II: ranges that overlap the paper's, and those that do not."""
    same: list[str] = []
    apart: list[str] = []
    cells = ratio_cells(result.agreement)
    for one, (title, here, paper) in zip(result.agreement.values(), cells, strict=True):
        if one.overlaps:
            same.append(title)
            continue
        text = f"Measured over guide, {title}, Regime II: {here}, paper {paper}; the ranges do not overlap."
        if one.series.quantity == "variance":
            text += _as_a_whole(one, result.panels, result.method)
        apart.append(text)
    said = f"Measured over guide, Regime II: the ranges of {', '.join(same)} overlap the paper's."
    return [said] if same else [], apart


def _as_a_whole(one: Agreement, panels: Sequence[Panel], method: str) -> str:
    """How far two such curves lie apart by chance: the points of a sweep share their data sets."""
    panel = next(panel for panel in panels if one.series in panel.series)
    sets = panel.sketches * panel.repetitions
    error = one.series.printed.noise / math.sqrt(sets)
    runs = 2 if role(method).noisy else 1
    z = abs(one.mean - one.paper_mean) / (math.sqrt(runs) * error)
    return (
        f" All points of a sweep share {sets} data sets, so a curve is high or low as a whole, by "
        f"{error:.3f} (one standard deviation); the difference of the two means is {z:.1f} of its own "
        f"standard deviation. The guide {_LAGS}."
    )
