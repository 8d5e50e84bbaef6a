"""What a finite number of data makes of the variance of one trajectory, over the nodes of a search.

Splines are of the frozen filter, whose risk is approx + bias + variance₁/N. Where the law at any amount of
data says otherwise, variance₁ is multiplied by what gives that law's risk at the N which the budgets allow: a
factor that is smooth in the sizes, so a few nodes are enough.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from seqlaw.methods.equivalent import equivalent_risks
from seqlaw.model.checks import Array
from seqlaw.planning.budget import Allocation, Search
from seqlaw.planning.landscape import Landscape

_NODES = 8  # along each size
_WORTH = 30.0  # times the least risk, beyond which nobody looks
_LEAST = 1e-3
AMPLE = 2e3  # effective tokens a learned dimension, which change the risk by 0.1 % at most
_STRIDES, _MOVES, _GAIN = (0.1, 0.03, 0.01), 8, 1e-5
_SMALL = 200
_DIRECTIONS = [
    (sign * M, sign * P, sign * L)
    for sign in (-1, 1)
    for M, P, L in ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, -2), (0, 1, -1))
]
"""In log M, log P, log L: each alone, and at about the same compute."""


def factors(search: Search, sizes: Sequence[tuple[int, int, int, int]]) -> Array:
    """The factor at each (M, N, P, L)."""
    settings = [search.setting(*one) for one in sizes]
    law, frozen = (
        equivalent_risks(settings, quick=True, frozen=plain, mean_step=True) for plain in (False, True)
    )
    return np.array(
        [
            max(1 + (there.reducible - here.reducible) / here.variance, _LEAST) if here.variance > 0 else 1.0
            for there, here in zip(law, frozen, strict=True)
        ]
    )


def factors_on(search: Search, nodes: dict[str, Array], room: Array, risk: Array) -> Array:
    """The factor on all nodes (M, P, L), interpolated from a few nodes near the least risk.

    `room` is the real N of each node, `risk` the frozen filter's there.
    """
    from scipy.interpolate import RegularGridInterpolator  # slow to import

    some = [_some(nodes[axis].size) for axis in ("M", "P", "L")]
    places = np.stack(np.meshgrid(*some, indexing="ij"), axis=-1).reshape(-1, 3)
    at = tuple(places.T)
    worth = (room[at] >= 1) & (risk[at] <= _WORTH * np.min(risk))
    logs = np.zeros(len(places))
    wanted = places[worth]
    if len(wanted):
        sizes = [
            (int(nodes["M"][i]), int(room[i, j, k]), int(nodes["P"][j]), int(nodes["L"][k]))
            for i, j, k in wanted
        ]
        logs[worth] = np.log(factors(search, sizes))
    # What is not worth looking at takes the value of the nearest that is.
    if len(wanted) and not worth.all():
        near = np.argmin(np.abs(places[~worth][:, None] - wanted).sum(axis=-1), axis=1)
        logs[~worth] = logs[worth][near]
    grid = [np.log(nodes[axis][index]) for axis, index in zip(("M", "P", "L"), some, strict=True)]
    table = logs.reshape([index.size for index in some])
    for place, x in enumerate(grid):  # a size without a choice
        if x.size == 1:
            grid[place], table = np.append(x, x + 1), np.repeat(table, 2, axis=place)
    full = np.stack(np.meshgrid(*(np.log(nodes[axis]) for axis in ("M", "P", "L")), indexing="ij"), axis=-1)
    return np.asarray(np.exp(RegularGridInterpolator(grid, table)(full)))


def polished(ground: Landscape, start: Allocation) -> Allocation:
    """The best allocation that small moves of M, P and L reach under the law, at the largest N."""
    search, box, best = ground.search, ground.box, start
    for stride in _STRIDES:
        for _ in range(_MOVES):
            rivals = []
            for move in _DIRECTIONS:
                sizes = {}
                for axis, share in zip(("M", "P", "L"), move, strict=True):
                    here = getattr(best, axis)
                    moved = round(here * math.exp(share * stride))
                    moved = here + int(math.copysign(1, share)) if share and moved == here else moved
                    sizes[axis] = min(max(moved, box.low[axis]), box.high[axis])
                rivals += _fitting(ground, sizes)
            better = min(stated(search, [best, *rivals]), key=lambda a: a.reducible)
            gained = better.reducible < best.reducible * (1 - _GAIN)
            best = better
            if not gained:
                break
    if small(best):  # which whole numbers fill the budget best
        rivals = []
        near = ((best.M, 1), (best.N, 1), (best.P, 8))
        for M, N, P in itertools.product(*(range(max(x - w, 1), x + w + 1) for x, w in near)):
            if box.low["P"] <= P <= box.high["P"] and M <= box.high["M"]:
                L = int(search.budget.most_steps(M, P, N))
                rivals += _fitting(ground, {"M": M, "P": P, "L": L}) if L >= box.low["L"] else []
        best = min(stated(search, [best, *dict.fromkeys(rivals)]), key=lambda a: a.reducible)
    return best


def small(best: Allocation) -> bool:
    """Whether the allocation is so small that rounding to whole numbers matters."""
    return max(best.M, best.N, best.P) < _SMALL


def _fitting(ground: Landscape, sizes: dict[str, int]) -> list[Allocation]:
    """The allocation with the largest N; if no sequence fits, with fewer steps or a shorter length."""
    budget, box = ground.search.budget, ground.box
    room = float(budget.most_sequences(**sizes))
    ways = [sizes]
    if room < 1:
        fewer = min(sizes["L"], int(budget.most_steps(sizes["M"], sizes["P"], budget.fewest)))
        ways = [sizes | {"L": fewer}, sizes | {"P": int(room * sizes["P"])}]
    found = []
    for way in ways:
        if all(box.low[axis] <= size <= box.high[axis] for axis, size in way.items()):
            N = int(budget.most_sequences(**way))
            found.append(ground.allocation((way["M"], N, way["P"], way["L"]), math.inf) if N else None)
    return [one for one in found if one is not None]


def stated(search: Search, found: Sequence[Allocation]) -> list[Allocation]:
    """The same allocations with the risks of the finite-sample law instead of interpolated ones."""
    settings = [search.setting(a.M, a.N, a.P, a.L) for a in found]
    risks = equivalent_risks(settings, quick=True, ample=AMPLE, mean_step=True)
    return [replace(a, reducible=risk.reducible) for a, risk in zip(found, risks, strict=True)]


def _some(count: int) -> Array:
    """Indices of a few nodes, both ends among them."""
    return np.unique(np.round(np.linspace(0, count - 1, min(count, _NODES))).astype(int))
