"""The rate-optimal allocation as a linear program in exponents.

Every term and condition of the theorem is a maximum of linear functions of (log M, log N, log P, log R), so
at T = K^τ the best exponent e solves: minimise e subject to each term ≤ e, unsaturated R, NP ≤ T and compute
N P M² R ≤ K. Three settings differ in what else they ask:
    paper   compute spent exactly, the theorem's sample conditions
    proved  budgets as ceilings, the sample conditions
    free    budgets as ceilings, the risk alone
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqlaw.model.checks import InputError
from seqlaw.model.teacher import Teacher, as_power_law
from seqlaw.planning.corollary import SIZES, Exponents, risk_terms

SETTINGS = ("paper", "proved", "free")
_SLACK = 1e-12  # how far from the optimum still counts as attaining it


@dataclass(frozen=True, kw_only=True)
class Program:
    """The optimum of one setting: the thriftiest allocation, and the range of all that attain it."""

    exponents: Exponents
    ranges: dict[str, tuple[float, float]]
    binding: tuple[str, ...]
    """The terms and conditions that hold with equality."""


def program(teacher: Teacher | str, tau: float, setting: str) -> Program | None:
    """The optimum at T = K^τ (None: no allocation satisfies the setting); a preset's name is a teacher."""
    teacher = as_power_law("teacher", teacher)
    if setting not in SETTINGS:
        raise InputError("setting", f"must be one of {', '.join(SETTINGS)}", setting)
    names, rows, limits = _constraints(teacher, tau, conditions=setting != "free")
    equality = (_COMPUTE, 1.0) if setting == "paper" else None
    if setting != "paper":
        names, rows, limits = [*names, "compute"], [*rows, _COMPUTE], [*limits, 1.0]
    best = _minimise((0.0, 0.0, 0.0, 0.0, 1.0), rows, limits, equality)
    if best is None:
        return None
    exponent = best[4]
    rows, limits = [*rows, (0.0, 0.0, 0.0, 0.0, 1.0)], [*limits, exponent + _SLACK]
    thrifty = _minimise(_COMPUTE, rows, limits, equality)
    thrifty = best if thrifty is None else thrifty  # the slack can be too narrow for the solver
    ranges = {}
    for k, name in enumerate(SIZES):
        unit = tuple(float(k == i) for i in range(5))
        ends = [_minimise(tuple(s * u for u in unit), rows, limits, equality) for s in (1.0, -1.0)]
        low, high = (float(end[k]) if end is not None else float("nan") for end in ends)
        ranges[name] = (_clean(low), _clean(high))
    slack = np.array(limits[:-1]) - np.array(rows[:-1]) @ thrifty
    return Program(
        exponents=Exponents(**dict(zip(SIZES, map(_clean, thrifty[:4]), strict=True)), risk=float(exponent)),
        ranges=ranges,
        binding=tuple(dict.fromkeys(name for name, gap in zip(names, slack, strict=False) if gap < 1e-9)),
    )


def _clean(exponent: float) -> float:
    """Without the slack's trace in the last digits."""
    return max(0.0, round(float(exponent), 10))


_Row = tuple[float, float, float, float, float]
_COMPUTE: _Row = (2.0, 1.0, 1.0, 1.0, 0.0)  # N P M² R in the order M, N, P, R, e


def _constraints(
    teacher: Teacher, tau: float, *, conditions: bool
) -> tuple[list[str], list[_Row], list[float]]:
    """Rows with row · (M, N, P, R, e) ≤ limit."""
    heavy = teacher.theta < teacher.alpha
    table: list[tuple[str, _Row, float]] = [(name, (*row, -1.0), 0.0) for name, row in risk_terms(teacher)]
    table.append(("unsaturated", (-teacher.alpha, 0.0, 0.0, 1.0, 0.0), 0.0))
    if heavy:
        table.append(("unsaturated", (-teacher.theta, 0.0, -1.0, 1.0, 0.0), 0.0))
    table.append(("tokens", (0.0, 1.0, 1.0, 0.0, 0.0), tau))
    if conditions:
        table.append(("NP >= RM", (1.0, -1.0, -1.0, 1.0, 0.0), 0.0))
        if heavy:
            table.append(("N >= RM", (1.0, -1.0, 0.0, 1.0, 0.0), 0.0))
    names, rows, limits = zip(*table, strict=True)
    return list(names), list(rows), list(limits)


def _minimise(
    cost: tuple[float, ...], rows: list[_Row], limits: list[float], equality: tuple[_Row, float] | None
) -> np.ndarray | None:
    from scipy.optimize import linprog  # slow to import

    result = linprog(
        cost,
        A_ub=rows,
        b_ub=limits,
        A_eq=None if equality is None else [equality[0]],
        b_eq=None if equality is None else [equality[1]],
        bounds=[(0, None)] * 4 + [(None, None)],
        method="highs-ds",
        options={"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10},
    )
    return np.asarray(result.x) if result.status == 0 else None
