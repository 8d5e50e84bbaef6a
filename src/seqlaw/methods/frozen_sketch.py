"""The frozen filter on a given sketch: its bias, its variance, and the paper's guide to the latter."""

from __future__ import annotations

from typing import NamedTuple

from seqlaw.methods.finite_sample.law import Question, boundary_error
from seqlaw.methods.finite_sample.norm import Rise
from seqlaw.methods.score import Score
from seqlaw.model.arrays import namespace, on_host
from seqlaw.model.descent import Spectrum
from seqlaw.model.lengths import mean_length
from seqlaw.model.schedule import Schedule, as_schedule
from seqlaw.model.sketch import Problem, weighted_square


def population_bias(problem: Problem, schedule: Schedule, test: Problem) -> float:
    """Bias of gradient descent on the population loss, scored on `test` (the same sketch at P').

    ½ ‖B*_P ψ(G)‖²_G = ½ Σ_j ‖C v_j‖² ψ(μ_j)²/μ_j at the own length;
    ½ ‖B*_P (I - ψ(G)) - B*_{P'}‖²_{G'} at another (MATH §12).
    """
    spectrum, xp = Spectrum(mu=problem.eigenvalues, U=problem.eigenvectors), namespace(problem.C)
    if test.P == problem.P:
        image = xp.sum((problem.C @ spectrum.U) ** 2, axis=0)
        return float(xp.sum(image * on_host(schedule.residual, spectrum.mu) ** 2 / spectrum.mu) / 2)
    return weighted_square(spectrum.response(problem.C, schedule) - test.B_star, test.G) / 2


def exact_variance(
    problem: Problem, N: int, schedule: Schedule, test: Problem, noise: Score, *, leading: bool = False
) -> float:
    """½ E‖Q g(G)‖²_{G'} = (2NP)^-1 Σ_jk g_j g_k [Uᵀ(NP·E[QᵀQ])U]_jk [UᵀG'U]_jk.

    `noise` is `score(problem)`, of which `leading` takes the leading part alone; at the own length G' = G is
    diag(μ) in the basis U.
    """
    xp = namespace(problem.eigenvectors)
    covariance = noise.leading if leading else noise.covariance
    filtered = problem.eigenvectors * on_host(schedule.response, problem.eigenvalues)
    count = 2.0 * N * mean_length(problem.P)
    if test.P == problem.P:
        return float(xp.sum((covariance @ filtered) * filtered * problem.eigenvalues)) / count
    weight = problem.eigenvectors.T @ test.G @ problem.eigenvectors
    return float(xp.sum((covariance @ filtered) * (filtered @ weight))) / count


def finite_filter_variance(problem: Problem, N: int, schedule: Schedule | str, test: Problem) -> float:
    """The paper's guide Var^ff = tr(Ω_P)/(2NP) Σ_j (μ_j g(μ_j))², which drops the lagged scores.

    At another test length Σ_j μ_j g(μ_j)² [UᵀG'U]_jj takes the place of the sum.
    """
    xp = namespace(problem.eigenvalues)
    g = on_host(as_schedule("schedule", schedule).response, problem.eigenvalues)
    weight = (
        problem.eigenvalues
        if test.P == problem.P
        else xp.sum((test.G @ problem.eigenvectors) * problem.eigenvectors, axis=0)
    )
    filtered = float(xp.sum(problem.eigenvalues * g**2 * weight))
    return problem.residual_trace / (2.0 * N * mean_length(problem.P)) * filtered


class FrozenGiven(NamedTuple):
    """Bias and variance of the frozen filter given a sketch, and what is asked of the law at any data."""

    bias: float
    variance: float
    leading: float
    """The variance as the law has it, without the elementwise products."""
    question: Question


def frozen_given(
    problem: Problem, test: Problem, N: int, safe: Schedule, noise: Score, rise: Rise
) -> FrozenGiven:
    """The frozen filter on a sketch, with a schedule after its safeguard."""
    tokens, norm = N * mean_length(problem.P), float(problem.eigenvalues[-1])
    leading, full = (exact_variance(problem, N, safe, test, noise, leading=part) for part in (True, False))
    question = Question(
        M=float(problem.M),
        N=float(N),
        P=problem.P,
        eval_length=test.P,
        schedule=safe,
        share=noise.effective_share,
        learned=learned_dimensions(problem, safe),
        edge=rise.edge(1.1 * norm, tokens),
        chance=rise.chance(tokens),
        boundary=boundary_error(problem.modes, problem.P),
    )
    return FrozenGiven(population_bias(problem, safe, test), full, leading, question)


def learned_dimensions(problem: Problem, schedule: Schedule) -> float:
    """Σ_j (1 - ψ(μ_j)): the directions, out of M, that the schedule has learned."""
    return float((problem.eigenvalues * on_host(schedule.response, problem.eigenvalues)).sum())
