"""Pattern searches over (M, P, L) in logarithms, several side by side, each with one size held if wanted."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from seqlaw.model.checks import Array
from seqlaw.planning.budget import Box, Search, Triple

# Moves in units of the step along (log M, log P, log L): the cube, and along the edges of the budgets.
_MOVES = np.array(
    [*itertools.product((-1, 0, 1), repeat=3), (1, 0, -2), (-1, 0, 2), (1, -2, 0), (-1, 2, 0)], dtype=float
)
_MOVES = _MOVES[np.any(_MOVES != 0, axis=1)]
# With N held the steps mostly follow from the other sizes: the corners of the cube are not worth their price.
_FEWER = _MOVES[np.count_nonzero(_MOVES, axis=1) <= 2]

N_AXIS = 3
"""Sizes are numbered M, P, L, N: the first three are a Triple."""
Held = tuple[int, int] | None
"""A size that a search holds: which, and at what."""


def judge(search: Search, held: Held) -> Callable[[Triple], float]:
    """What a search makes small: the risk at the N that is held, else at the largest real N."""
    return partial(search.at, held[1]) if held and held[0] == N_AXIS else search.relaxed


def descend(
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
    values = [judge(search, held) for _, held in starts]
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
    moves = _MOVES if axis is None else _FEWER if axis == N_AXIS else _MOVES[_MOVES[:, axis] == 0]
    N = size if axis == N_AXIS else 1
    sizes = (cut(search, _moved(here, step * move, box), N, axis) for move in moves)
    return [t for t in sizes if box.holds(t) and (axis in (None, N_AXIS) or t[axis] == size)]


def _moved(here: Triple, move: Array, box: Box) -> Triple:
    """The sizes moved in logarithms: a small one by one at least, one that stays to the last digit."""
    there = box.integers(np.log(np.array(here, dtype=float)) + move)
    M, P, L = (
        a if u == 0 else b if a != b else a + (1 if u > 0 else -1)
        for a, b, u in zip(here, there, move.tolist(), strict=True)
    )
    return box.clip((M, P, L))


def cut(search: Search, triple: Triple, N: int, axis: int | None) -> Triple:
    """The allocation with no more steps (no longer, if they are held) than N trajectories leave.

    Along the edge of the compute a move that rounds upwards would be lost.
    """
    M, P, L = triple
    most = int(search.budget.compute) // (N * M**2)
    return (M, min(P, most // L), L) if axis == 2 else (M, P, min(L, most // P))
