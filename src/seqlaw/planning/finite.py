"""The finite-size optimum: integers (M, N, P, L) of least risk under the budgets, constants included.

The search is over (M, P, L) (see `budget`), in logarithms and with N real: a grid, then pattern searches from
its best points (`pattern`). Then come the neighbouring integers, N among them, and how the risk rises on both
sides of the best (`profiles`).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from seqlaw.model.checks import InputError
from seqlaw.planning.budget import Allocation as Allocation
from seqlaw.planning.budget import Box, Search, Triple, limits
from seqlaw.planning.pattern import descend
from seqlaw.planning.profiles import flat_ranges, take_profiles
from seqlaw.rungs.equivalent import equivalent_risks
from seqlaw.rungs.terms import Risk

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class FinitePlan:
    """The best allocation with its terms, the isoFLOP curve through it, and how flat it is."""

    best: Allocation
    risk: Risk
    isoflop: tuple[Allocation, ...]
    """The best allocation at each of several widths, under the same budgets."""
    by_length: tuple[Allocation, ...]
    """The best allocation at each of several lengths: what another P would cost."""
    flat: dict[str, tuple[int, int]]
    """The range of each size over which the risk, the other sizes chosen anew, stays within about 1 %.

    N counts as a real number where another size is held: few trajectories, rounded, cost more in between.
    """


def finite_plan(search: Search) -> FinitePlan:
    """The optimum, its profile along each size, and its terms from the accurate sums."""
    box = limits(search)
    if _count(search, box) <= 3000:
        search.look(_all(search, box))
    else:
        search.look(_grid(box))
        starts = sorted(search.seen, key=search.relaxed)[:2]
        ends = descend(search, [(triple, None) for triple in starts], box, finest=0.1, rounds=40)
        near = min(ends, key=search.relaxed)
        descend(search, [(near, None)], box, finest=4e-3, rounds=40, step=0.15)
        _polish(search, min(search.seen, key=search.relaxed), box)
    if not search.seen:
        raise InputError("compute", "leaves no allocation under these limits", search.budget.compute)
    profiles = take_profiles(search, search.best(), box)
    _polish(search, search.best(), box)  # a profile may have passed closer to the optimum
    # The search took quick sums, right to 2e-4: the accurate ones decide between the best few.
    finalists = sorted(search.seen, key=search.value)[:12]
    risks = dict(zip(finalists, equivalent_risks([search.setting(t) for t in finalists]), strict=True))
    best = _thriftiest(finalists, lambda t: risks[t].reducible, lambda t: search.allocation(t).compute)
    return FinitePlan(
        best=dataclasses.replace(search.allocation(best), reducible=risks[best].reducible),
        risk=risks[best],
        isoflop=_best_by(search, 0, {best[0], *(size for size, _, _ in profiles[0])}),
        by_length=_best_by(search, 1, {best[1], *(size for size, _, _ in profiles[1])}),
        flat=flat_ranges(search, profiles),
    )


def _best_by(search: Search, axis: int, sizes: Collection[int]) -> tuple[Allocation, ...]:
    """The best allocation seen with each of these widths (axis 0) or lengths (axis 1)."""
    found: dict[int, list[Allocation]] = {size: [] for size in sorted(sizes)}
    for triple in search.seen:
        if triple[axis] in found:
            found[triple[axis]].append(search.allocation(triple))
    return tuple(
        _thriftiest(seen, lambda a: a.reducible, lambda a: a.compute) for seen in found.values() if seen
    )


def _thriftiest(choices: Sequence[T], risk: Callable[[T], float], compute: Callable[[T], int]) -> T:
    """The least risk; where several have it, to nine digits, the least compute."""
    least = min(map(risk, choices))
    return min((c for c in choices if risk(c) <= least * (1 + 1e-9)), key=compute)


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
