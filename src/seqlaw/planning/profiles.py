"""Profiles of the optimum: the least risk with one size held, along each size, and where 1 % is lost."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence

import numpy as np

from seqlaw.planning.budget import Box, Search, Triple
from seqlaw.planning.pattern import N_AXIS, cut, descend

# Where the profiles of M, P, L and N are taken, on both sides of the optimum; P and N are often nearly free.
_FACTORS = ((1.25, 2.5, 6.0, 15.0), (2.0, 15.0, 1e3), (1.6,), (2.0,))
Point = tuple[int, Triple, float]
"""A point of a profile: the size that is held, the best (M, P, L) with it, and its risk."""


def take_profiles(search: Search, best: Triple, box: Box) -> list[list[Point]]:
    """For each of M, P, L, N: the optimum, then the size held at multiples of it and where 1 % is lost."""
    sizes = (*best, search.trajectories(best))
    least = [search.relaxed(best)] * 3 + [search.value(best)]
    profiles = [[(size, best, risk)] for size, risk in zip(sizes, least, strict=True)]
    wide = [(k, size * x) for k, size in enumerate(sizes) for f in _FACTORS[k] for x in (f, 1 / f)]
    # The lengths that a reader will ask about: that of the test, and the longest allowed.
    asked = [P for P in (search.eval_length, search.budget.max_P) if P is not None and P < math.inf]
    near = [(k, x) for k, x in wide if k == 1 and any(abs(math.log(x / P)) < 0.3 for P in asked)]
    wide = [target for target in wide if target not in near] + [(1, P) for P in asked]
    _hold(search, wide, box, profiles, step=0.3, finest=0.1)
    # A side that has not lost 1 % yet is looked at where it ends.
    edges = [*zip(box.low, box.high, strict=True), (1, search.trajectories(box.low))]
    ends = [(k, end) for k, profile in enumerate(profiles) for end in flat_range(profile, edges[k])]
    _hold(search, ends, box, profiles, step=0.12, finest=0.03)  # from neighbours that are known by now
    return profiles


def _hold(
    search: Search,
    targets: Iterable[tuple[int, float]],
    box: Box,
    profiles: list[list[Point]],
    *,
    step: float,
    finest: float,
) -> None:
    """Add to the profiles the best allocations with one size held at each target (axis, size)."""
    choices: list[tuple[list[Triple], tuple[int, int]]] = []
    for axis, target in targets:
        edges = (1, search.trajectories(box.low)) if axis == N_AXIS else (box.low[axis], box.high[axis])
        size = min(max(round(target), edges[0]), edges[1])
        neighbour, triple, _ = min(profiles[axis], key=lambda point: abs(math.log(point[0] / size)))
        if size != neighbour:
            near = [_shrink(search, triple, axis, size, box)]
            if axis < 2 and not neighbour / 3 < size < neighbour * 3:
                near += [_shrink(search, t, axis, size, box) for t in _another(search, near[0], axis, box)]
            choices.append((near, (axis, size)))
    search.look(itertools.chain.from_iterable(near for near, _ in choices))
    starts = [(t, held) for near, held in choices for t in dict.fromkeys(near) if t in search.seen]
    ends = descend(search, starts, box, finest=finest, rounds=12, step=step)
    for end, (_, (axis, size)) in zip(_spend(search, ends, starts, box), starts, strict=True):
        risk = search.at(size, end) if axis == N_AXIS else search.relaxed(end)
        profiles[axis].append((size, end, risk))


def _another(search: Search, start: Triple, axis: int, box: Box) -> list[Triple]:
    """The best so far with about the same M (or P) and another P (or M): far out its valley may be deeper."""
    reach, other = float(box.logs[1, axis] - box.logs[0, axis]) / 16, 1 - axis
    layer = [
        t
        for t in search.seen
        if abs(math.log(t[axis] / start[axis])) <= reach and abs(math.log(t[other] / start[other])) > 0.4
    ]
    return [min(layer, key=search.relaxed)] if layer else []


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
    sizes = list(box.integers(x))
    if axis != N_AXIS:
        sizes[axis] = size  # a large one would not survive its logarithm
    M, P, L = sizes
    return box.clip(cut(search, (M, P, L), N, axis))


def _spend(
    search: Search, ends: list[Triple], starts: Sequence[tuple[Triple, tuple[int, int]]], box: Box
) -> list[Triple]:
    """Each allocation with P or L drawn out to what whole numbers of trajectories leave of the compute."""
    choices: list[list[Triple]] = []
    for (M, P, L), (_, (axis, _)) in zip(ends, starts, strict=True):
        near = [(M, P, L)]
        if axis != N_AXIS:
            C = int(search.budget.compute)
            room = min(int(search.budget.tokens), C // (M**2 * L))
            N = max(1, search.trajectories((M, P, L)))
            near += [(M, room // n, L) for n in (N, N + 1) if axis != 1]
            near += [(M, P, C // (n * P * M**2)) for n in (N, N + 1) if axis != 2]
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


def flat_ranges(search: Search, profiles: list[list[Point]]) -> dict[str, tuple[int, int]]:
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
