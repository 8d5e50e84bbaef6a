"""The frozen filter on a given sketch: its bias, and the paper's guide to its variance."""

from __future__ import annotations

from seqlaw.methods.stage import at_rest, moved
from seqlaw.model.arrays import namespace, on_host
from seqlaw.model.lengths import mean_length
from seqlaw.model.schedule import Schedule, as_schedule
from seqlaw.model.sketch import Problem


def population_bias(problem: Problem, schedule: Schedule, test: Problem) -> float:
    """Bias of gradient descent on the population loss, scored on `test` (the same sketch at P').

    ½ ‖B*_P (I - ψ(G)) - B*_{P'}‖²_{G'}, at the own length ½ ‖B*_P ψ(G)‖²_G.
    """
    return moved(at_rest(problem), problem, schedule).terms(test)["bias"]


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
    return problem.residual_trace / (2.0 * N * mean_length(problem.length)) * filtered


def learned_dimensions(problem: Problem, schedule: Schedule) -> float:
    """Σ_j (1 - ψ(μ_j)): the directions, out of M, that the schedule has learned."""
    return float((problem.eigenvalues * on_host(schedule.response, problem.eigenvalues)).sum())
