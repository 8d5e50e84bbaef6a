"""The theorem's conditions at the points of the panels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from seqlaw.methods.rates import Condition, rates
from seqlaw.paper.experiments.panels import QUANTITIES, Panel


def conditions(panels: Sequence[Panel]) -> list[dict[str, Any]]:
    """For each panel the theorem's conditions with unnamed constants: value over needed along its points.

    `fails` counts the points on the wrong side of one, `scaled_fails` with the scales c_ξ and c_0.
    """
    table = []
    for panel in panels:
        found: dict[str, list[Condition]] = {}
        for setting in panel.settings:
            for condition in rates(setting).conditions:
                if condition.kind in QUANTITIES[panel.quantity].conditions and condition.holds is None:
                    found.setdefault(condition.name, []).append(condition)
        for name, many in found.items():
            ratios = [one.ratio for one in many]
            scaled = [one.ratio_scaled for one in many if one.ratio_scaled is not None]
            sign = 1 if many[0].relation == "<=" else -1
            table.append(
                {
                    "panel": panel.name,
                    "kind": many[0].kind,
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
