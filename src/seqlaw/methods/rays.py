"""The frozen filter's terms for a search: many points and schedules at once, with κ solved once per point.

The nodes of a ray are in units of 1/γ, so points whose γ is clipped differently share one ψ.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from seqlaw.methods.accuracy import search
from seqlaw.methods.contours import Path, loop, on_ray, shared_path
from seqlaw.methods.expected import Population, noise, pick, population, score_diagonal
from seqlaw.methods.functional import solve, terms
from seqlaw.methods.resolvent import Complex, spectral_edge
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model.checks import Array
from seqlaw.model.filters import Schedule
from seqlaw.model.lengths import Length, mean_length

_TOGETHER = 64  # points on one path
_DEEP = 1e-2
"""Of the spectrum's lower edge, as `frozen` has it, for a search."""


def norms(rule: Rule, own: Population, schedule: Schedule) -> tuple[Array, Array]:
    """The edge of each spectrum and γ̄ = min(γ, 1/(2‖G‖)); an upper bound of the edge where γ is safe."""
    gamma = schedule.gamma
    top = own.h.max(axis=1)
    edge = 2 * top * (1 + (own.h / (2 * top[:, None] - own.h)) @ rule.weights / own.M)
    peak = np.full(edge.shape, gamma)
    near = np.flatnonzero(2 * gamma * schedule.speed(edge) > 1)
    if near.size:
        edge[near], norm = spectral_edge(own.h[near], own.weights, own.M[near])
        peak[near] = np.minimum(gamma, 1 / (2 * schedule.speed(norm)))
    return edge, peak


def surface(
    rule: Rule, M: Array, P: Sequence[Length], schedules: Sequence[Schedule], *tests: int | None
) -> tuple[Array, Array]:
    """approx + bias, and the variance of one trajectory, at tests × points (M, P) × schedules.

    The first has the largest γ, which the safeguard lowers; the others keep their ratio to it. A test is a
    length, or None for that of training.
    """
    gamma = schedules[0].gamma
    own = population(rule, P, np.minimum(M, rule.weights.sum()))  # which counts d to five digits or so
    edge, peak = norms(rule, own, schedules[0])
    fixed, variance = np.empty((2, len(tests), M.size, len(schedules)))
    scored = score_diagonal(own, rule, P, noise(rule))
    deepest = _DEEP * own.lower_edge * peak
    widest = float((edge * peak).max())
    order = np.argsort(deepest)  # points of like depth share a path, a part of the deepest

    def add(at: NDArray[np.intp], columns: list[int], path: Path, psi: Complex, unit: Array | float) -> None:
        here, each = pick(own, at), np.array([mean_length(P[k]) for k in at])
        plain = solve(here, path, None, (rule, rule), scored.of(at), unit=unit, close=search.newton)
        for place, length in enumerate(tests):
            solved = plain if length is None else plain.tested_at([length] * at.size, rule)
            found = terms(solved, psi[..., : path.z.shape[1]], diagnostics=False)
            index = np.ix_(np.array([place]), at, np.array(columns))
            fixed[index] = solved.approx[:, None] + np.maximum(found["bias"], 0.0)
            variance[index] = found["variance"] / each[:, None]

    if not schedules[0].entire:  # a loop for each point
        for at in order[:, None]:
            chosen = [schedule.scaled(float(peak[at[0]]) * schedule.gamma / gamma) for schedule in schedules]
            path = loop(chosen, edge[at], _DEEP * own.lower_edge[at], search.ray)
            add(at, list(range(len(schedules))), path, path.residuals(chosen), 1.0)
        return fixed, variance
    for long in (True, False):
        columns = [k for k, schedule in enumerate(schedules) if on_ray(schedule, gamma) == long]
        if not columns:
            continue
        chosen = [schedules[k] for k in columns]
        step = _TOGETHER if long else order.size
        psi: Complex | None = None
        for first in range(0, order.size, step):
            at = order[first : first + step]
            path = shared_path(chosen, float(deepest[at].min()), widest, gamma, search.ray)
            psi = path.residuals(chosen, gamma) if psi is None else psi  # of the longest path first
            add(at, columns, path, psi, peak[at])
    return fixed, variance
