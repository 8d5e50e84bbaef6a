"""Students trained by an optimizer of `model.optimizer`, step by step, and the choice of its peak step.

Training sees moments: in step t the slope at B is BĜ_t - Ĉ_t, with the same Ĝ and Ĉ in every step of the full
batch, those of a mini-batch otherwise, and G and C for the population's run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import repeat
from typing import NamedTuple

import numpy as np

from seqlaw.methods.one_pass import descent
from seqlaw.model.checks import Array
from seqlaw.model.optimizer import Optimizer
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import Problem

Seen = Iterable[tuple[Array, Array]]
"""Ĝ_t and Ĉ_t of each step, runs × M × M."""

FACTORS = 2.0 ** np.arange(-1, 8)
"""Peak steps that are tried, in units of the least one whose steps add up to B*.

The best was 1 to 16 units in 24 settings (both regimes, M = 8, 32, 64, 100 steps, full batch and
mini-batches). Twice the best step cost 6 % more in the median, half of it up to five times as much for Muon.
"""


class Step(NamedTuple):
    """A peak step."""

    size: float
    edge: bool = False
    """Whether it is the first or last candidate, so that a better step may lie outside the grid."""


def trained(optimizer: Optimizer, seen: Seen, schedule: Schedule, steps: Sequence[float]) -> Array:
    """B_L from zero with each peak step, side by side: runs × M × M.

    `seen` has as many runs as there are steps, or one that all of them share. A run that leaves all bounds
    is no number.
    """
    sizes = _sizes(schedule, steps)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        for t, ((G, C), size) in enumerate(zip(seen, sizes, strict=True), 1):
            if t == 1:
                B = np.zeros(np.broadcast_shapes(C.shape, size.shape))
                state = optimizer.start(B)
            direction, state = optimizer.direction(B @ G - C, state, t)
            B = B - size * direction
    return B


def _sizes(schedule: Schedule, steps: Sequence[float]) -> Iterator[Array]:
    """η_t = step · γ_t/γ of each run, runs × 1 × 1."""
    block = 2**16  # step sizes at a time: L may be long
    for first in range(1, schedule.L + 1, block):
        for weight in schedule.at(np.arange(first, min(first + block, schedule.L + 1))) / schedule.gamma:
            yield weight * np.asarray(steps, dtype=np.float64)[:, None, None]


def repeated(stages: Iterable[tuple[Array, Array, int]]) -> Iterator[tuple[Array, Array]]:
    """The same moments (M × M) in all steps of a stage: the full batch, or the population."""
    for G, C, steps in stages:
        yield from repeat((G[None], C[None]), steps)


def batch_moments(
    setting: Setting, S: Array, keys: Sequence[tuple[int, int, int]]
) -> Iterator[tuple[Array, Array]]:
    """The moments of each step's mini-batch, one run a (seed, sketch, repetition)."""
    for seen in descent.batches(setting, S, keys, None):
        tokens = sum(U.shape[2] * (U.shape[3] - 1) for U in seen)
        for k in range(seen[0].shape[1]):
            G, C = np.zeros((2, len(keys), setting.M, setting.M))
            for U in seen:
                u, y = (U[:, k, :, part].reshape(len(keys), -1, setting.M) for part in _PARTS)
                G += np.swapaxes(u, 1, 2) @ u
                C += np.swapaxes(y, 1, 2) @ u
            yield G / tokens, C / tokens


_PARTS = (slice(None, -1), slice(1, None))  # states that are inputs, and targets


def best_step(optimizer: Optimizer, schedule: Schedule, data: Sequence[tuple[Seen, Problem]]) -> Step:
    """The step of `FACTORS` with the least mean risk over data sets, each with the problem that tests it."""
    reach = float(np.mean([optimizer.reach(test.B_star) for _, test in data]))
    tried = FACTORS * reach * schedule.gamma / schedule.total
    risks = np.zeros(len(tried))
    for seen, test in data:
        students = trained(optimizer, seen, schedule, tried.tolist())  # which all see the same data
        risks += [test.excess(B) if np.isfinite(B).all() else np.inf for B in students]
    least = int(np.argmin(risks))
    return Step(float(tried[least]), edge=least in (0, len(tried) - 1))


def seconds(setting: Setting) -> float:
    """About what the steps of a run take: up to sixteen products each; nothing for plain descent."""
    if setting.optimizer is None:
        return 0.0
    return setting.schedule.L * (2e-5 + 6e-9 * setting.M**2 + 1.3e-9 * setting.M**3)
