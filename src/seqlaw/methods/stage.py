"""Mean and covariance of the student through one stage of training, on one sketch.

Full batch, each stage with data of its own and their noise to leading order:
    B ← B*_k + (B - B*_k) ψ_k(G_k),   V ← ψ_k V ψ_k + g_k E[Q_kᵀQ_k] g_k.
Mini-batches: the same mean; of the covariance in the stage's eigenbasis the diagonal by the law of one pass,
the rest without feedback. The G_k share the sketch but do not commute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seqlaw.methods.one_pass.directions import Ground, directions_of
from seqlaw.methods.one_pass.law import between, mean_filter, spread
from seqlaw.model.arrays import host, like, on_host, zeros
from seqlaw.model.checks import Array
from seqlaw.model.filters import Schedule
from seqlaw.model.pieces import Part, Pieces, stretches
from seqlaw.model.sketch import Problem, weighted_square

CUT = 1.05
"""Ratio of the levels at which a smooth schedule is cut for the full batch: a piece keeps its Σγ and Σγ², so
the filter errs in the third order of γs only."""


class State(NamedTuple):
    """The mean of the student, and its covariance summed over rows."""

    mean: Array
    covariance: Array

    def terms(self, test: Problem) -> dict[str, float]:
        """The five terms on the same sketch at a test length."""
        return {
            "irreducible": test.irreducible,
            "approx": test.approx,
            "bias": weighted_square(self.mean - test.B_star, test.G) / 2,
            "variance": float((self.covariance * test.G).sum()) / 2,
            "cross": 0.0,
        }


def at_rest(problem: Problem) -> State:
    """At zero, before any training."""
    return State(zeros(problem.S, problem.M, problem.M), zeros(problem.S, problem.M, problem.M))


def moved(state: State, problem: Problem, schedule: Schedule) -> State:
    """The mean after one stage, any steps that do not diverge; the covariance as it was."""
    kept = on_host(lambda mu: mean_filter(schedule, mu), problem.eigenvalues)
    return State(_mean(state, problem, kept), state.covariance)


def full_batch(state: State, problem: Problem, noise: Array | None, schedule: Schedule) -> State:
    """After one stage; `noise` is E[QᵀQ] of its data, None for infinite data."""
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


def one_pass(state: State, problem: Problem, known: Ground, batch: float, schedule: Schedule) -> State:
    """After one stage of mini-batches, of a schedule that is runs of equal steps."""
    U, mu, runs = problem.eigenvectors, problem.eigenvalues, Pieces(*(schedule.runs() or ()))
    nodes = directions_of(problem, known, state.mean)
    before = U.T @ state.covariance @ U
    after = between(known.A, before, mu, batch, runs)
    turned = None if known.kept is None else known.kept.turned
    own = spread(nodes, np.array([batch]), runs, np.ones(1), np.diag(before), turned=turned)
    np.fill_diagonal(after, own.v[0])
    return State(moved(state, problem, schedule).mean, U @ after @ U.T)


def refined(coarse: State, fine: State) -> State:
    """One Richardson step, for smooth schedules cut at two ratios."""
    return State(*((4 * second - first) / 3 for first, second in zip(coarse, fine, strict=True)))


def parts_of(schedule: Schedule, steps: Sequence[int], norm: float, ratio: float = CUT) -> list[Schedule]:
    """The schedule's parts of so many steps, smooth ones cut for ‖G‖ = norm; a single one is as it is."""
    if len(steps) == 1:
        return [schedule]
    return [Part(one) for one in stretches(schedule, steps, ratio, norm)]
