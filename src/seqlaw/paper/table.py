"""The slope table and what stands beside it: agreement with guides, clipping, the theorem's conditions."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from seqlaw.paper.curves import Curve, Row, curve, source
from seqlaw.paper.guides import Guide, guide
from seqlaw.paper.panels import QUANTITIES, Panel
from seqlaw.rungs.rates import Condition, rates

ROUNDING = 0.001 / math.sqrt(12)
"""Standard deviation of what three printed digits leave out."""

PRINTED_RATIOS = {
    "approx_P": (1.000, 0.996, 1.003),
    "bias_P": (0.987, 0.953, 1.006),
    "variance_N": (1.037, 0.980, 1.088),
    "variance_P": (0.983, 0.966, 1.001),
    "variance_R": (1.030, 1.000, 1.053),
}
"""The paper's "Checkpoint agreement", Regime II: mean, least and largest ratio of measured to guide."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measured:
    """One series with its guide and, where the rung has one, the exact rung's curve."""

    panel: Panel
    curve: Curve
    guide: Guide
    exact: Curve | None
    finite_filter: Curve | None


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


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Ratios of measured to guide along a series, next to the paper's."""

    mean: float
    low: float
    high: float
    paper_mean: float
    paper_low: float
    paper_high: float


def measured(rows: Sequence[Row], panels: Sequence[Panel], rung: str) -> list[Measured]:
    """The series of the panels on a rung, with their guides."""
    found = []
    for panel in panels:
        for series in panel.series:
            here = curve(rows, panel, series, rung)
            exact = finite = None
            if panel.quantity == "variance":
                noiseless = "equivalent" if rung == "equivalent" else "exact"
                exact = curve(rows, panel, series, noiseless) if rung == "sampled" else None
                finite = curve(rows, panel, series, noiseless, "finite_filter_variance")
            found.append(
                Measured(
                    panel=panel, curve=here, guide=guide(here, finite), exact=exact, finite_filter=finite
                )
            )
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
        # The exact rung's variance has no data, the equivalent rung no sketches: one noisy run is left.
        runs = 2 if source(one.curve.rung, key[1]) in ("sampled", "population") else 1
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
    ratios = {}
    for one in series:
        key = one.curve.series.key
        if key[0] == "II":
            name, ratio = f"{key[1]}_{key[2]}", one.guide.ratio
            mean, low, high = PRINTED_RATIOS[name]
            ratios[name] = Agreement(
                mean=float(ratio.mean()),
                low=float(ratio.min()),
                high=float(ratio.max()),
                paper_mean=mean,
                paper_low=low,
                paper_high=high,
            )
    return ratios


def clipping_rate(rows: Sequence[Row]) -> float:
    """The share of rows in which the safeguard was active (the paper: zero)."""
    return float(np.mean([row["clipped"] for row in rows]))


_CONDITIONS = {
    "approx": ("ambient",),
    "bias": ("unsaturated", "horizon", "step size", "ambient"),
    "variance": ("unsaturated", "horizon", "samples", "trajectories", "step size", "ambient"),
}
"""The conditions that have a meaning where there is no training, no data, or both."""


def conditions(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """For each panel the theorem's conditions with unnamed constants: value over needed along its points.

    `fails` counts the points on the wrong side of one, `scaled_fails` with the scales c_ξ and c_0.
    """
    table = []
    for panel in panels:
        found: dict[str, list[Condition]] = {}
        for setting in panel.settings:
            for condition in rates(setting).conditions:
                if (
                    condition.name.partition(":")[0] in _CONDITIONS[panel.quantity]
                    and condition.holds is None
                ):
                    found.setdefault(condition.name, []).append(condition)
        for name, many in found.items():
            ratios = [one.ratio for one in many]
            scaled = [one.ratio_scaled for one in many if one.ratio_scaled is not None]
            sign = 1 if many[0].relation == "<=" else -1
            table.append(
                {
                    "panel": panel.name,
                    "condition": name,
                    "relation": many[0].relation,
                    "points": len(many),
                    "ratio_low": min(ratios),
                    "ratio_high": max(ratios),
                    "fails": sum(sign * ratio > sign for ratio in ratios),
                    "scaled_low": min(scaled, default=None),
                    "scaled_high": max(scaled, default=None),
                    "scaled_fails": sum(sign * ratio > sign for ratio in scaled) if scaled else None,
                }
            )
    return table


def named_conditions(panels: Sequence[Panel]) -> dict[str, dict[str, bool]]:
    """By regime: the conditions that need no unnamed constant, and whether each holds at every point."""
    found: dict[str, dict[str, bool]] = {}
    for panel in panels:
        mine = found.setdefault(panel.regime, {})
        for setting in panel.settings:
            for condition in rates(setting).conditions:
                if condition.holds is not None:
                    mine[condition.name] = mine.get(condition.name, True) and condition.holds
    return found


HEADER = ("Regime", "Quantity", "Slope", "± se", "Guide", "Paper", "Paper's guide", "z")
NAMES = {"approx": "Approx", "bias": "Bias", "variance": "Var"}


def cells(row: SlopeRow) -> list[str]:
    """A row as the table prints it."""
    return [
        row.regime,
        f"{NAMES[row.quantity]} vs. {row.against}",
        f"{row.slope:.3f}" if row.spread > 0.001 else f"{row.slope:.4f}",
        "–" if row.slope_se is None else f"{row.slope_se:.2g}",
        f"{row.guide:.3f}",
        f"{row.paper_slope:.3f}",
        f"{row.paper_guide:.3f}",
        "–" if row.z is None else f"{row.z:+.1f}",
    ]


def grid(table: Sequence[SlopeRow]) -> tuple[list[str], list[list[str]]]:
    """Header and cells; the replicates add two columns."""
    header, body = list(HEADER), [cells(row) for row in table]
    if any(row.replicate_mean is not None for row in table):
        header += ["Replicates' mean", "spread"]
        for line, row in zip(body, table, strict=True):
            line += [f"{row.replicate_mean:.4f}", f"{row.replicate_spread:.2g}"]
    return header, body


def as_markdown(table: Sequence[SlopeRow], ratios: Mapping[str, Agreement]) -> str:
    """The tables for people."""
    header, body = grid(table)
    text = _markdown(header, body)
    if ratios:
        text += "\nRegime II, measured over guide: mean [least, largest]\n\n"
        text += _markdown(["", "Here", "Paper"], ratio_cells(ratios))
    return text


def ratio_cells(ratios: Mapping[str, Agreement]) -> list[list[str]]:
    """The agreement table as text."""
    lines = []
    for name, one in ratios.items():
        quantity, _, against = name.partition("_")
        here = f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]"
        there = f"{one.paper_mean:.3f} [{one.paper_low:.3f}, {one.paper_high:.3f}]"
        lines.append([f"{QUANTITIES[quantity].removeprefix('GD ')} along {against}", here, there])
    return lines


def _markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def as_csv(table: Sequence[SlopeRow]) -> str:
    """All fields, one row a slope."""
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(asdict(table[0])), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in table)
    return out.getvalue()


def as_json(result: Mapping[str, Any]) -> str:
    """A document of plain types."""
    return json.dumps(result, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def as_tex(table: Sequence[SlopeRow]) -> str:
    """A booktabs table like the paper's, with its two columns beside ours."""
    lines = [r"\begin{tabular}{llcccccc}", r"  \toprule"]
    lines += [r"  Regime & Quantity & Slope & s.e. & Guide & Paper & Paper's guide & $z$ \\", r"  \midrule"]
    before = table[0].regime
    for row in table:
        if row.regime != before:
            lines.append(r"  \midrule")
            before = row.regime
        regime, _, *numbers = cells(row)
        name = rf"\(\operatorname{{{NAMES[row.quantity]}}}\) vs.\ \({row.against}\)"
        numbers = [rf"\({text}\)" if text != "–" else "--" for text in numbers]
        lines.append("  " + " & ".join([regime, name, *numbers]) + r" \\")
    return "\n".join([*lines, r"  \bottomrule", r"\end{tabular}", ""])
