"""Mean and covariance of the student through one stage of training, on one sketch.

Full batch, where each stage has its own data, whose noise enters to leading order:
    B ← B*_k + (B - B*_k) ψ_k(G_k),   V ← ψ_k V ψ_k + g_k E[Q_kᵀQ_k] g_k.
Mini-batches have the same mean. In the eigenbasis of G_k the diagonal of V follows the law of one pass, the
other entries the same recursion without feedback. The G_k share the sketch but do not commute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seqlaw.methods.one_pass.law import between, mean_filter, spread
from seqlaw.methods.one_pass.noise import StepNoise, sketch_directions
from seqlaw.model.arrays import host, like, on_host, zeros
from seqlaw.model.checks import Array
from seqlaw.model.filters import Schedule
from seqlaw.model.pieces import Part, Pieces, stretches
from seqlaw.model.sketch import Problem, weighted_square

CUT = 1.05
"""Ratio of the step sizes at which the full batch cuts a smooth schedule into constant pieces. A piece keeps
its Σγ and Σγ², so the filter errs only in the third order of γs."""


class State(NamedTuple):
    """The mean of the student B, and V = E (B - EB)ᵀ(B - EB), M × M each."""

    mean: Array
    covariance: Array

    def terms(self, test: Problem) -> dict[str, float]:
        """The five terms of the risk at the length of `test`, which has the same sketch."""
        return {
            "irreducible": test.irreducible,
            "approx": test.approx,
            "bias": weighted_square(self.mean - test.B_star, test.G) / 2,
            "variance": float((self.covariance * test.G).sum()) / 2,
            "cross": 0.0,
        }


def at_rest(problem: Problem) -> State:
    """The student before any training, B = 0."""
    return State(zeros(problem.S, problem.M, problem.M), zeros(problem.S, problem.M, problem.M))


def moved(state: State, problem: Problem, schedule: Schedule) -> State:
    """The state with the mean after one stage, and the covariance left as it was; steps must not diverge."""
    kept = on_host(lambda mu: mean_filter(schedule, mu), problem.eigenvalues)
    return State(_mean(state, problem, kept), state.covariance)


def full_batch(state: State, problem: Problem, noise: Array | None, schedule: Schedule) -> State:
    """The state after one stage of full-batch training; `noise` is E[QᵀQ], None for infinite data."""
    U, mu = problem.eigenvectors, problem.eigenvalues
    psi, g = (like(mu, x) for x in schedule.both(host(mu)))
    inner = psi[:, None] * (U.T @ state.covariance @ U) * psi
    if noise is not None:
        inner = inner + g[:, None] * (U.T @ noise @ U) * g
    return State(_mean(state, problem, psi), U @ inner @ U.T)


def _mean(state: State, problem: Problem, kept: Array) -> Array:
    """B* + (B - B*) ψ(G)."""
    U, best = problem.eigenvectors, problem.B_star
    found: Array = best + ((state.mean - best) @ U * kept) @ U.T
    return found


def one_pass(state: State, problem: Problem, noise: StepNoise, batch: float, schedule: Schedule) -> State:
    """The state after one stage of mini-batches; the schedule must consist of runs of equal steps."""
    U, mu, runs = problem.eigenvectors, problem.eigenvalues, Pieces(*(schedule.runs() or ()))
    nodes = sketch_directions(problem, noise, state.mean)
    before = U.T @ state.covariance @ U
    after = between(noise.A, before, mu, batch, runs)
    eigensystems = None if noise.products is None else noise.products.eigensystems
    start = np.diag(before)
    own = spread(nodes, np.array([batch]), runs, np.ones(1), start, eigensystems=eigensystems)
    np.fill_diagonal(after, own.v[0])
    return State(moved(state, problem, schedule).mean, U @ after @ U.T)


def refined(coarse: State, fine: State) -> State:
    """One Richardson step, (4 fine - coarse)/3, from a smooth schedule cut at two ratios."""
    return State(*((4 * second - first) / 3 for first, second in zip(coarse, fine, strict=True)))


def parts_of(schedule: Schedule, steps: Sequence[int], norm: float, ratio: float = CUT) -> list[Schedule]:
    """The schedule divided into stages of these numbers of steps; smooth ones are cut for ‖G‖ = norm."""
    if len(steps) == 1:
        return [schedule]
    cut = stretches(schedule, steps, ratio, schedule.speed(norm))
    return [schedule.with_plain(Part(one)) for one in cut]
