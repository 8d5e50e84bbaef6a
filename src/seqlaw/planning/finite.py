"""The finite-size optimum: integers (M, N, P, L) of least risk under the budgets, constants included.

The search is over (M, P, L) (see `budget`), in logarithms and with N real: a grid, pattern searches from its
best points. Then come the neighbouring integers, N among them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass

import numpy as np

from seqlaw.model.checks import InputError
from seqlaw.planning.budget import Allocation as Allocation
from seqlaw.planning.budget import Box, Search, Triple, limits
from seqlaw.planning.budget import Budget as Budget
from seqlaw.rungs.equivalent import equivalent_risks
from seqlaw.rungs.terms import Risk

# Moves in units of the step along (log M, log P, log L): the cube, and along the edges of the budgets.
_MOVES = np.array(
    [*itertools.product((-1, 0, 1), repeat=3), (1, 0, -2), (-1, 0, 2), (1, -2, 0), (-1, 2, 0)], dtype=float
)
_MOVES = _MOVES[np.any(_MOVES != 0, axis=1)]
# Where the profiles of M, P and L are taken, on both sides of the optimum; P is often nearly free.
_FACTORS = ((1.25, 2.5, 15.0), (2.0, 15.0, 1e3), (1.25, 2.5, 15.0))


@dataclass(frozen=True, kw_only=True)
class FinitePlan:
    """The best allocation with its terms, the isoFLOP curve through it, and how flat it is."""

    best: Allocation
    risk: Risk
    isoflop: tuple[Allocation, ...]
    """The best allocation at each of several widths, under the same budgets."""
    by_length: tuple[Allocation, ...]
    """The best allocation at each of several lengths: what another P would cost."""
    flat: dict[str, tuple[float, float]]
    """The range of each size over which the risk, the other sizes chosen anew, stays within 1 %."""


def finite_plan(search: Search) -> FinitePlan:
    """The optimum, its profile along each size, and its terms from the accurate sums."""
    box = limits(search)
    if _count(search, box) <= 3000:
        search.look(_all(search, box))
    else:
        search.look(_grid(box))
        starts = sorted(search.seen, key=search.relaxed)[:2]
        _descend(search, starts, box, frozen=[None] * len(starts), finest=2e-3, rounds=80)
        _polish(search, min(search.seen, key=search.relaxed), box)
    if not search.seen:
        raise InputError("compute", "leaves no allocation under these limits", search.budget.compute)
    profiles = _profiles(search, search.best(), box)
    _polish(search, search.best(), box)  # a profile may have passed closer to the optimum
    # The search took quick sums, right to 1e-4: the accurate ones decide between the best few.
    finalists = sorted(search.seen, key=search.value)[:12]
    risks = dict(zip(finalists, equivalent_risks([search.setting(t) for t in finalists]), strict=True))
    best = min(finalists, key=lambda t: risks[t].reducible)
    return FinitePlan(
        best=dataclasses.replace(search.allocation(best), reducible=risks[best].reducible),
        risk=risks[best],
        isoflop=_best_by("M", [search.allocation(t) for t in {best, *profiles[0]}]),
        by_length=_best_by("P", [search.allocation(t) for t in {best, *profiles[1]}]),
        flat=_flat(search, best, profiles),
    )


def _best_by(size: str, allocations: list[Allocation]) -> tuple[Allocation, ...]:
    """One allocation a size, the best: a ceiling can bring several searches to the same one."""
    best: dict[int, Allocation] = {}
    for allocation in sorted(allocations, key=lambda a: (getattr(a, size), -a.reducible)):
        if allocation.reducible < math.inf:
            best[getattr(allocation, size)] = allocation
    return tuple(best.values())


def _grid(box: Box) -> list[Triple]:
    axes = [np.linspace(box.logs[0, k], box.logs[1, k], n) for k, n in enumerate((11, 9, 11))]
    return [box.integers(x) for x in itertools.product(*axes)]


def _count(search: Search, box: Box) -> float:
    """An upper bound on the number of feasible (M, P, L): Σ_M Σ_P C/(P M²)."""
    low, high = box.low[1], box.high[1]
    return search.budget.compute * 1.65 * (1 / low + math.log(high / low))


def _all(search: Search, box: Box) -> list[Triple]:
    C, low, high = int(search.budget.compute), box.low, box.high
    return [
        (M, P, L)
        for M in range(low[0], high[0] + 1)
        for P in range(low[1], min(high[1], C // (M**2 * low[2])) + 1)
        for L in range(low[2], min(high[2], C // (P * M**2)) + 1)
    ]


def _descend(
    search: Search,
    starts: list[Triple],
    box: Box,
    *,
    frozen: list[int | None],
    finest: float,
    rounds: int,
) -> list[Triple]:
    """Pattern searches side by side, so that each round is one batch; `frozen` holds one size fixed."""
    points = list(starts)
    # From a grid cell down; a profile starts where the optimum is already near.
    width = float((box.logs[1] - box.logs[0]).max()) / 10
    steps = [width / 2 if axis is None else min(width / 2, 0.5) for axis in frozen]
    for _ in range(rounds):
        moves: list[list[Triple]] = [[] for _ in points]
        for k, (point, step, axis) in enumerate(zip(points, steps, frozen, strict=True)):
            if step >= finest:
                allowed = _MOVES if axis is None else _MOVES[_MOVES[:, axis] == 0]
                here = np.array([math.log(size) for size in point])
                candidates = [box.integers(here + step * move) for move in allowed]
                # Rounding must not move the frozen size.
                moves[k] = [t for t in candidates if axis is None or t[axis] == point[axis]]
        if not any(moves):
            break
        search.look(itertools.chain.from_iterable(moves))
        for k, candidates in enumerate(moves):
            best = min(candidates, key=search.relaxed, default=points[k])
            # Near an optimum a step s gains about s² of the risk: less is wandering along a flat valley.
            if search.relaxed(best) < search.relaxed(points[k]) * (1 - 1e-3 * steps[k] ** 2):
                points[k] = best
            else:
                steps[k] /= 2.5
    return points


def _polish(search: Search, start: Triple, box: Box) -> None:
    """Neighbouring integers until none is better, with the P or L that spends the budgets at nearby N."""
    best = start
    budget = search.budget
    for _ in range(30):
        M, P, L = best
        N = search.trajectories(best)
        counts = range(max(1, N - 2), N + 4)
        # Few and short trajectories: how N·P·M²·L packs into the compute outweighs the valley's floor.
        packed = N <= 8 and P <= 400
        near = []
        for m in _around(M, 2):
            room = min(int(budget.tokens), int(budget.compute) // (max(m, 1) ** 2 * L))  # tokens
            for p in {*_around(P, round(0.2 * P) + 2 if packed else 2), *(room // n for n in counts)}:
                if box.holds((m, p, box.low[2])):
                    deep = int(budget.compute) // (p * m**2)
                    steps = {*([] if packed else _around(L, 2)), *(deep // n for n in counts)}
                    near += [(m, p, count) for count in steps if box.holds((m, p, count))]
        search.look(near)
        before, best = best, search.best()
        if search.value(best) > search.value(before) * (1 - 1e-7):
            return


def _around(size: int, reach: int) -> list[int]:
    """The integers near a small size; a large one is not worth its neighbours."""
    return list(range(size - reach, size + reach + 1)) if size < 500 else [size]


def _profiles(search: Search, best: Triple, box: Box) -> list[list[Triple]]:
    """For each of M, P, L: the best allocations with that size at several multiples of its optimum."""
    starts: list[Triple] = []
    frozen: list[int | None] = []
    low, high = box.logs
    for axis in range(3):
        for factor in (*_FACTORS[axis], *(1 / f for f in _FACTORS[axis])):
            x = np.log(np.array(best, dtype=float))
            x[axis] = np.clip(x[axis] + math.log(factor), low[axis], high[axis])
            # Stay inside the compute: what a larger size takes, the others give back.
            spent = float(np.array([2.0, 1.0, 1.0]) @ x) - math.log(max(search.budget.compute, 1.0))
            others = [k for k in (2, 1, 0) if k != axis]
            for k in others:
                if spent > 0:
                    give = min(spent / (2.0 if k == 0 else 1.0), x[k] - low[k])
                    x[k] -= give
                    spent -= give * (2.0 if k == 0 else 1.0)
            triple = box.integers(x)
            if triple[axis] != best[axis]:
                starts.append(triple)
                frozen.append(axis)
    search.look(starts)
    ends = _descend(search, starts, box, frozen=frozen, finest=0.08, rounds=6)
    ends = _spend(search, ends, frozen, box)
    return [[best, *(t for t, a in zip(ends, frozen, strict=True) if a == axis)] for axis in range(3)]


def _spend(search: Search, ends: list[Triple], frozen: list[int | None], box: Box) -> list[Triple]:
    """Each allocation with P or L drawn out to what whole numbers of trajectories leave of the compute."""
    choices: list[list[Triple]] = []
    for (M, P, L), axis in zip(ends, frozen, strict=True):
        room = min(int(search.budget.tokens), int(search.budget.compute) // (M**2 * L))
        deep = int(search.budget.compute) // (P * M**2)
        N = max(1, search.trajectories((M, P, L)))
        near = [(M, P, L)]
        near += [(M, room // n, L) for n in (N, N + 1) if axis != 1]
        near += [(M, P, deep // n) for n in (N, N + 1) if axis != 2]
        choices.append([t for t in near if box.holds(t)])
    search.look(itertools.chain.from_iterable(choices))
    return [
        min((t for t in near if t in search.seen), key=search.value, default=end)
        for near, end in zip(choices, ends, strict=True)
    ]


def _flat(search: Search, best: Triple, profiles: list[list[Triple]]) -> dict[str, tuple[float, float]]:
    """Where each profile crosses 1.01 of the best risk, by interpolation in logarithms."""
    level = math.log(1.01 * search.relaxed(best))
    flat: dict[str, tuple[float, float]] = {}
    for axis, name in enumerate("MPL"):
        points = {t for t in (best, *profiles[axis]) if search.relaxed(t) < math.inf}
        flat[name] = _crossings(
            sorted((t[axis], math.log(search.relaxed(t))) for t in points), best[axis], level
        )
    inside = [t for profile in profiles for t in profile if search.relaxed(t) <= math.exp(level)]
    counts = [search.trajectories(t) for t in (best, *inside)]
    return {"M": flat["M"], "N": (float(min(counts)), float(max(counts))), "P": flat["P"], "L": flat["L"]}


def _crossings(points: list[tuple[int, float]], centre: int, level: float) -> tuple[float, float]:
    ends = []
    for side in (-1, 1):
        path = [p for p in points if (p[0] - centre) * side >= 0]
        path.sort(key=lambda p: abs(p[0] - centre))
        end = float(centre)
        for inner, outer in itertools.pairwise(path):
            if outer[1] > level:
                share = (level - inner[1]) / (outer[1] - inner[1])
                end = math.exp(math.log(inner[0]) + share * (math.log(outer[0]) - math.log(inner[0])))
                break
            end = float(outer[0])
        ends.append(end)
    return ends[0], ends[1]
