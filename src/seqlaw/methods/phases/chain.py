"""From phase to phase, on one sketch: the whole mean of the iterate and the whole covariance are carried.

Full batch, each phase with data of its own and the noise to leading order:
    B ← B*_k + (B - B*_k) ψ_k(G_k),   V ← ψ_k V ψ_k + g_k E[Q_kᵀQ_k] g_k.
One pass: the same mean; of the covariance in the phase's eigenbasis the diagonal by the law of one pass, the
rest without feedback. The G_k share the sketch but do not commute.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seqlaw.methods.one_pass.law import between, left, spread
from seqlaw.methods.one_pass.nodes import Ground, given_sketch
from seqlaw.model.checks import Array
from seqlaw.model.pieces import Pieces, filters
from seqlaw.model.sketch import Problem, weighted_square

FULL_RATIO = 1.05
"""Of the levels at which a smooth schedule is cut for the full batch: a piece keeps its Σγ and Σγ², so the
filter errs in the third order of γs only."""


class State(NamedTuple):
    """The mean of the iterate, and its covariance summed over rows."""

    mean: Array
    covariance: Array

    def terms(self, test: Problem) -> dict[str, float]:
        """The five terms on the same sketch at a test length."""
        return {
            "irreducible": test.irreducible,
            "approx": test.approx,
            "bias": weighted_square(self.mean - test.B_star, test.G) / 2,
            "variance": float(np.sum(self.covariance * test.G)) / 2,
            "cross": 0.0,
        }


def at_rest(M: int) -> State:
    return State(np.zeros((M, M)), np.zeros((M, M)))


def moved(state: State, problem: Problem, runs: Pieces) -> State:
    """The mean after one phase, any steps that do not diverge; the covariance as it was."""
    U = problem.eigenvectors
    kept = left(runs, problem.eigenvalues)
    return State(problem.B_star + ((state.mean - problem.B_star) @ U * kept) @ U.T, state.covariance)


def full_batch(state: State, problem: Problem, noise: Array | None, runs: Pieces) -> State:
    """After one phase; `noise` is E[QᵀQ] of its data, none where there is no end of them."""
    U = problem.eigenvectors
    psi, g = filters(runs, problem.eigenvalues)
    mean = problem.B_star + ((state.mean - problem.B_star) @ U * psi) @ U.T
    inner = psi[:, None] * (U.T @ state.covariance @ U) * psi
    if noise is not None:
        inner = inner + g[:, None] * (U.T @ noise @ U) * g
    return State(mean, U @ inner @ U.T)


def one_pass(state: State, problem: Problem, known: Ground, batch: float, runs: Pieces) -> State:
    """After one phase of mini-batches."""
    U, mu = problem.eigenvectors, problem.eigenvalues
    nodes = given_sketch(problem, known, state.mean)
    before = U.T @ state.covariance @ U
    after = between(known.A, before, mu, batch, runs)
    turned = None if known.kept is None else known.kept.turned
    own = spread(nodes, np.array([batch]), runs, np.ones(1), np.diag(before), turned=turned)
    np.fill_diagonal(after, own.v[0])
    return State(moved(state, problem, runs).mean, U @ after @ U.T)


def norm_of(problems: Sequence[Problem]) -> float:
    """The largest ‖G‖."""
    return max(float(problem.eigenvalues[-1]) for problem in problems)


def full_batch_ladder(
    problems: Sequence[Problem],
    noises: Sequence[Array | None],
    runs: Sequence[Pieces],
) -> State:
    """From zero through all phases, a problem, E[QᵀQ] and runs a phase."""
    state = at_rest(problems[0].M)
    for problem, noise, run in zip(problems, noises, runs, strict=True):
        state = full_batch(state, problem, noise, run)
    return state


def one_pass_ladder(
    problems: Sequence[Problem],
    known: Sequence[Ground],
    batches: Sequence[float],
    runs: Sequence[Pieces],
) -> State:
    """The same in one pass."""
    state = at_rest(problems[0].M)
    for problem, one, batch, run in zip(problems, known, batches, runs, strict=True):
        state = one_pass(state, problem, one, batch, run)
    return state


def refined(coarse: State, fine: State) -> State:
    """One Richardson step, for smooth schedules cut at two ratios."""
    return State(*((4 * second - first) / 3 for first, second in zip(coarse, fine, strict=True)))
