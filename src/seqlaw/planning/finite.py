"""The finite-size optimum: integers (M, N, P, L) of least risk under the budgets, constants included.

The search is over (M, P, L) (see `budget`), in logarithms and with N real: a grid, pattern searches from its
best points. Then come the neighbouring integers, N among them.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from seqlaw.model.checks import Array, InputError
from seqlaw.planning.budget import Allocation as Allocation
from seqlaw.planning.budget import Box, Search, Triple, limits
from seqlaw.rungs.equivalent import equivalent_risks
from seqlaw.rungs.terms import Risk

# Moves in units of the step along (log M, log P, log L): the cube, and along the edges of the budgets.
_MOVES = np.array(
    [*itertools.product((-1, 0, 1), repeat=3), (1, 0, -2), (-1, 0, 2), (1, -2, 0), (-1, 2, 0)], dtype=float
)
_MOVES = _MOVES[np.any(_MOVES != 0, axis=1)]
# Where the profiles of M, P, L and N are taken, on both sides of the optimum; P and N are often nearly free.
_FACTORS = ((1.25, 2.5, 6.0, 15.0), (2.0, 15.0, 1e3), (1.25, 2.5), (1.3, 4.0))

N_AXIS = 3
"""Sizes are numbered M, P, L, N: the first three are a Triple."""
Held = tuple[int, int] | None
"""A size that a search holds: which, and at what."""
Point = tuple[int, Triple, float]
"""A point of a profile: the size that is held, the best (M, P, L) with it, and its risk."""


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
        ends = _descend(search, [(triple, None) for triple in starts], box, finest=0.05, rounds=40)
        near = min(ends, key=search.relaxed)
        _descend(search, [(near, None)], box, finest=4e-3, rounds=40, step=0.1)
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
        isoflop=_best_by("M", [search.allocation(t) for t in {best, *(t for _, t, _ in profiles[0])}]),
        by_length=_best_by("P", [search.allocation(t) for t in {best, *(t for _, t, _ in profiles[1])}]),
        flat=_flat(search, profiles),
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
    starts: Sequence[tuple[Triple, Held]],
    box: Box,
    *,
    finest: float,
    rounds: int,
    step: float = math.inf,
) -> list[Triple]:
    """Pattern searches side by side, so that each round is one batch.

    A size that is held is not moved; N is, by cutting every candidate to the steps that so many leave.
    """
    points = [triple for triple, _ in starts]
    values: list[Callable[[Triple], float]] = [
        partial(search.at, held[1]) if held and held[0] == N_AXIS else search.relaxed for _, held in starts
    ]
    # From half a grid cell down; a profile starts where the optimum is already near, with a smaller `step`.
    steps = [min(step, float((box.logs[1] - box.logs[0]).max()) / 20)] * len(points)
    for _ in range(rounds):
        moves: list[list[Triple]] = [[] for _ in points]
        for k, (_, held) in enumerate(starts):
            if steps[k] >= finest:
                moves[k] = _candidates(search, points[k], steps[k], held, box)
        if not any(moves):
            break
        search.look(itertools.chain.from_iterable(moves))
        for k, candidates in enumerate(moves):
            best = min(candidates, key=values[k], default=points[k])
            # Near an optimum a step s gains about s² of the risk: less is wandering along a flat valley.
            if values[k](best) < values[k](points[k]) * (1 - 1e-2 * steps[k] ** 2):
                points[k] = best
            else:
                steps[k] /= 2.5
    return points


def _candidates(search: Search, here: Triple, step: float, held: Held, box: Box) -> list[Triple]:
    """The moves from a point, inside the box and the compute, with what is held as it is."""
    axis, size = held or (None, 0)
    moves = _MOVES if axis is None or axis == N_AXIS else _MOVES[_MOVES[:, axis] == 0]
    N = size if axis == N_AXIS else 1
    sizes = (_cut(search, _moved(here, step * move, box), N, axis) for move in moves)
    return [t for t in sizes if box.holds(t) and (axis in (None, N_AXIS) or t[axis] == size)]


def _moved(here: Triple, move: Array, box: Box) -> Triple:
    """The sizes moved in logarithms: a small one by one at least."""
    there = box.integers(np.log(np.array(here, dtype=float)) + move)
    M, P, L = (
        a + (u > 0) - (u < 0) if a == b else b for a, b, u in zip(here, there, move.tolist(), strict=True)
    )
    return box.clip((M, P, L))


def _cut(search: Search, triple: Triple, N: int, axis: int | None) -> Triple:
    """The allocation with no more steps (no longer, if they are held) than N trajectories leave.

    Along the edge of the compute a move that rounds upwards would be lost.
    """
    M, P, L = triple
    most = int(search.budget.compute) // (N * M**2)
    return (M, min(P, most // L), L) if axis == 2 else (M, P, min(L, most // P))


def _steps(search: Search, M: int, P: int, N: int) -> int:
    """The most steps that the compute leaves."""
    return int(search.budget.compute) // (N * P * M**2)


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


def _profiles(search: Search, best: Triple, box: Box) -> list[list[Point]]:
    """For each of M, P, L, N: the optimum, then the size held at multiples of it and where 1 % is lost."""
    sizes = (*best, search.trajectories(best))
    least = [search.relaxed(best)] * 3 + [search.value(best)]
    profiles = [[(size, best, risk)] for size, risk in zip(sizes, least, strict=True)]
    wide = [(k, size * x) for k, size in enumerate(sizes) for f in _FACTORS[k] for x in (f, 1 / f)]
    if search.eval_length is not None:  # the length that its reader will ask about
        wide.append((1, max(search.eval_length, 1)))
    _hold(search, wide, box, profiles, finest=0.1)
    # A side that has not lost 1 % yet is looked at where it ends.
    edges = [*zip(box.low, box.high, strict=True), (1, search.trajectories(box.low))]
    ends = [(k, end) for k, profile in enumerate(profiles) for end in flat_range(profile, edges[k])]
    _hold(search, ends, box, profiles, finest=0.03)
    return profiles


def _hold(
    search: Search,
    targets: Iterable[tuple[int, float]],
    box: Box,
    profiles: list[list[Point]],
    *,
    finest: float,
) -> None:
    """Add to the profiles the best allocations with one size held at each target (axis, size)."""
    choices: list[tuple[list[Triple], tuple[int, int]]] = []
    for axis, target in targets:
        optimum, best, _ = profiles[axis][0]
        edges = (1, search.trajectories(box.low)) if axis == N_AXIS else (box.low[axis], box.high[axis])
        size = min(max(round(target), edges[0]), edges[1])
        if size != optimum:
            near = [best, *_seen_near(search, axis, size, box)]
            choices.append(([_shrink(search, t, axis, size, box) for t in near], (axis, size)))
    search.look(itertools.chain.from_iterable(near for near, _ in choices))
    starts = [
        (min(near, key=partial(search.at, held[1]) if held[0] == N_AXIS else search.relaxed), held)
        for near, held in choices
    ]
    ends = _descend(search, starts, box, finest=finest, rounds=12, step=0.3)
    for end, (_, (axis, size)) in zip(_spend(search, ends, starts, box), starts, strict=True):
        risk = search.at(size, end) if axis == N_AXIS else search.relaxed(end)
        profiles[axis].append((size, end, risk))


def _seen_near(search: Search, axis: int, size: int, box: Box) -> list[Triple]:
    """The best allocation so far with about this size: far from the optimum another valley may be deeper."""
    if axis == N_AXIS:
        return []
    reach = float(box.logs[1, axis] - box.logs[0, axis]) / 16
    layer = [t for t in search.seen if abs(math.log(t[axis] / size)) <= reach]
    return sorted(layer, key=search.relaxed)[:1]


def _shrink(search: Search, start: Triple, axis: int, size: int, box: Box) -> Triple:
    """The allocation with one size set: what this takes of the compute, the others give back, L first."""
    low, _ = box.logs
    x = np.log(np.array(start, dtype=float))
    N = 1
    if axis == N_AXIS:
        N = size
        x[1] = min(x[1], max(low[1], math.log(search.budget.tokens / N)))
    else:
        x[axis] = math.log(size)
    spent = float(np.array([2.0, 1.0, 1.0]) @ x) - math.log(max(search.budget.compute / N, 1.0))
    for k in (2, 1, 0):
        if k != axis and spent > 0:
            give = min(spent / (2.0 if k == 0 else 1.0), x[k] - low[k])
            x[k] -= give
            spent -= give * (2.0 if k == 0 else 1.0)
    return box.clip(_cut(search, box.integers(x), N, axis))


def _spend(
    search: Search, ends: list[Triple], starts: Sequence[tuple[Triple, tuple[int, int]]], box: Box
) -> list[Triple]:
    """Each allocation with P or L drawn out to what whole numbers of trajectories leave of the compute."""
    choices: list[list[Triple]] = []
    for (M, P, L), (_, (axis, _)) in zip(ends, starts, strict=True):
        near = [(M, P, L)]
        if axis != N_AXIS:
            room = min(int(search.budget.tokens), int(search.budget.compute) // (M**2 * L))
            N = max(1, search.trajectories((M, P, L)))
            near += [(M, room // n, L) for n in (N, N + 1) if axis != 1]
            near += [(M, P, _steps(search, M, P, n)) for n in (N, N + 1) if axis != 2]
        choices.append([t for t in near if box.holds(t)])
    search.look(itertools.chain.from_iterable(choices))
    return [
        min((t for t in near if t in search.seen), key=search.value, default=end)
        for near, end in zip(choices, ends, strict=True)
    ]


def flat_range(profile: list[Point], edges: tuple[int, int] | None = None) -> tuple[float, float]:
    """The sizes at which a profile, which begins with the optimum, crosses 1.01 of the least risk.

    Where it does not, `edges` if given, else the last of its points.

    Between its points the excess is taken as a power of the distance in log size: quadratic at a smooth
    optimum, linear where a budget or a floor makes a kink.
    """
    centre, _, least = profile[0]
    ends = []
    for side in (-1, 1):
        path = sorted(
            (abs(math.log(size / centre)), max(risk / least - 1, 1e-9))
            for size, _, risk in profile[1:]
            if (size - centre) * side > 0 and risk < math.inf
        )
        beyond = next((k for k, (_, excess) in enumerate(path) if excess > 0.01), len(path))
        if beyond == len(path):
            edge = edges[side > 0] if edges else None
            reach = abs(math.log(edge / centre)) if edge else path[-1][0] if path else 0.0
        else:
            first = max(0, min(beyond - 1, len(path) - 2))
            (near, below), (far, above) = path[first], path[min(first + 1, len(path) - 1)]
            power = math.log(above / below) / math.log(far / near) if far > near and above > below else 2.0
            reach = near * (0.01 / below) ** (1 / (power if beyond else min(max(power, 1.0), 2.0)))
        ends.append(centre * math.exp(side * reach))
    return ends[0], ends[1]


def _flat(search: Search, profiles: list[list[Point]]) -> dict[str, tuple[int, int]]:
    """The whole sizes of each flat range; N's holds every N that was seen to lose less than 1 %."""
    ranges = {}
    for axis, name in enumerate("MPLN"):
        low, high = flat_range(profiles[axis])
        ranges[name] = (math.ceil(low * (1 - 1e-12)), math.floor(high * (1 + 1e-12)))
    level = 1.01 * search.value(search.best())
    counts = [search.trajectories(triple) for triple in search.seen if search.value(triple) <= level]
    low_N, high_N = ranges["N"]
    return {
        "M": ranges["M"],
        "N": (min(low_N, *counts), max(high_N, *counts)),
        "P": ranges["P"],
        "L": ranges["L"],
    }
