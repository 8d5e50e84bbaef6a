"""The exact rung: the expectation over trajectories in closed form, for given sketches.

The filter is frozen at G (the paper's leading order); the cross term is then of lower order.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np

from seqlaw.model.arrays import namespace
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import InputError
from seqlaw.model.descent import Spectrum
from seqlaw.model.flags import flag
from seqlaw.model.schedule import Schedule, as_schedule
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import Problem, gaussian_sketch, sketched_problem, weighted_square
from seqlaw.model.threads import one_thread
from seqlaw.rungs.rows import Row, columns, families, indices, summarise, with_sums
from seqlaw.rungs.rung import BLOCK, Cost, Draws, Progress, Rung, sketch_memory
from seqlaw.rungs.score import Score, score
from seqlaw.rungs.terms import Risk, frozen_filter_flags

DIAGNOSTICS = ("finite_filter_variance", "score_low", "score_high", "clipped", "tokens_per_dimension")


def population_bias(problem: Problem, schedule: Schedule, test: Problem) -> float:
    """Bias of gradient descent on the population loss, scored on `test` (the same sketch at P').

    ½ ‖B*_P ψ(G)‖²_G = ½ Σ_j ‖C v_j‖² ψ(μ_j)²/μ_j at the own length;
    ½ ‖B*_P (I - ψ(G)) - B*_{P'}‖²_{G'} at another (MATH §12).
    """
    spectrum, xp = Spectrum(mu=problem.eigenvalues, U=problem.eigenvectors), namespace(problem.C)
    if test.P == problem.P:
        image = xp.sum((problem.C @ spectrum.U) ** 2, axis=0)
        return float(xp.sum(image * schedule.residual(spectrum.mu) ** 2 / spectrum.mu) / 2)
    return weighted_square(spectrum.response(problem.C, schedule) - test.B_star, test.G) / 2


def exact_variance(problem: Problem, N: int, schedule: Schedule, test: Problem, noise: Score) -> float:
    """½ E‖Q g(G)‖²_{G'} = (2NP)^-1 Σ_jk g_j g_k [Uᵀ(NP·E[QᵀQ])U]_jk [UᵀG'U]_jk.

    `noise` is `score(problem)`; at the own length G' = G is diag(μ) in the basis U.
    """
    xp = namespace(problem.eigenvectors)
    filtered = problem.eigenvectors * schedule.response(problem.eigenvalues)
    if test.P == problem.P:
        return float(xp.sum((noise.covariance @ filtered) * filtered * problem.eigenvalues)) / (
            2.0 * N * problem.P
        )
    weight = problem.eigenvectors.T @ test.G @ problem.eigenvectors
    return float(xp.sum((noise.covariance @ filtered) * (filtered @ weight))) / (2.0 * N * problem.P)


def finite_filter_variance(problem: Problem, N: int, schedule: Schedule | str, test: Problem) -> float:
    """The paper's guide Var^ff = tr(Ω_P)/(2NP) Σ_j (μ_j g(μ_j))², which drops the lagged scores.

    At another test length Σ_j μ_j g(μ_j)² [UᵀG'U]_jj takes the place of the sum.
    """
    g, xp = as_schedule("schedule", schedule).response(problem.eigenvalues), namespace(problem.eigenvalues)
    weight = (
        problem.eigenvalues
        if test.P == problem.P
        else xp.sum((test.G @ problem.eigenvectors) * problem.eigenvectors, axis=0)
    )
    filtered = float(xp.sum(problem.eigenvalues * g**2 * weight))
    return float(xp.linalg.trace(problem.residual_covariance)) / (2.0 * N * problem.P) * filtered


def learned_dimensions(problem: Problem, schedule: Schedule) -> float:
    """Σ_j (1 - ψ(μ_j)): the directions, out of M, that the schedule has learned."""
    return float(-np.expm1(schedule.log_residual(problem.eigenvalues)).sum())


def _solved(
    settings: Sequence[Setting], sketches: int | Sequence[int], seed: int
) -> Iterator[tuple[list[int], int, dict[int, Problem]]]:
    """(indices of a family, sketch, its problems by length) for settings that share teacher and width."""
    for family in families(settings):
        members = [settings[index] for index in family]
        modes, M = members[0].modes, members[0].M
        lengths = dict.fromkeys(P for member in members for P in (member.P, member.test_length))
        for sketch in indices("sketches", sketches):
            S = gaussian_sketch(M, modes.d, seed=seed, index=sketch)
            yield family, sketch, {P: sketched_problem(modes, S, P) for P in lengths}


class Exact(Rung):
    """The expectation over trajectories in closed form, given sketches: O(d² M + M³) for any N, P and L."""

    name: ClassVar[str] = "exact"
    draws: ClassVar[tuple[str, ...]] = ("sketches",)
    population: ClassVar[bool] = True
    expectation: ClassVar[str] = "exact"

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        return exact_risks(settings, sketches=draws.count("sketches"), seed=draws.seed)

    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        return exact_rows(settings, sketches=draws.sketches, seed=draws.seed)

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        seconds, memory = 0.0, 0.0
        for family in families(settings):
            M, d = settings[family[0]].M, float(settings[family[0]].d or 0)
            lengths = {settings[index].P for index in family}
            passes = sum(0.003 + d**2 * (3e-8 * math.log2(2 * P) + 2e-10 * M) for P in lengths)
            seconds += draws.count("sketches") * (passes + 5e-4 * len(family))
            memory = max(memory, sketch_memory(M, d, len(family)))
        return Cost(seconds=seconds, memory=memory)


class SketchesOnly(Rung):
    """Approximation and bias given sketches, without data: rows of the experiments, not a rung to ask for."""

    name: ClassVar[str] = "population"
    draws: ClassVar[tuple[str, ...]] = ("sketches",)

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        raise InputError("rung", "has no risk without data", self.name)

    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        return population_rows(settings, sketches=draws.sketches, seed=draws.seed)

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        problems = {(one.M, one.P): float(one.d or 0) for one in settings}
        each = (0.001 + 2e-10 * M**2 * (d + M) for (M, _), d in problems.items())
        return Cost(seconds=draws.count("sketches") * sum(each), memory=BLOCK)


def exact_rows(settings: Sequence[Setting], *, sketches: int | Sequence[int] = 1, seed: int = 0) -> list[Row]:
    """One row for each setting and sketch: parameters, five terms, diagnostics.

    Settings of one teacher and width share their sketches (a count, or the numbers of those wanted), and all
    settings of one length share the closed score covariance, whatever their N, schedules and test lengths.
    """
    return _rows("exact", settings, sketches, seed)


def population_rows(
    settings: Sequence[Setting], *, sketches: int | Sequence[int] = 1, seed: int = 0
) -> list[Row]:
    """Approximation and bias of each setting and sketch: what needs no data, and none of the cost of noise.

    N plays no part. The sketches are those of `exact_rows`.
    """
    return _rows("population", settings, sketches, seed)


@one_thread()
def _rows(rung: str, settings: Sequence[Setting], sketches: int | Sequence[int], seed: int) -> list[Row]:
    rows: list[Row] = []
    for family, sketch, problems in _solved(settings, sketches, seed):
        lengths = dict.fromkeys(settings[index].P for index in family) if rung == "exact" else ()
        scores = {P: score(problems[P]) for P in lengths}
        for index in family:
            setting = settings[index]
            problem, test = problems[setting.P], problems[setting.test_length]
            rows.append(
                {"rung": rung, "point": index, "sketch": sketch, **columns(setting)}
                | _evaluate(setting, problem, test, scores.get(setting.P))
            )
    return sorted(rows, key=lambda row: (row["point"], row["sketch"]))


def _evaluate(setting: Setting, problem: Problem, test: Problem, noise: Score | None) -> Row:
    schedule = setting.schedule.safeguarded(float(problem.eigenvalues[-1]))
    terms = {"irreducible": test.irreducible, "approx": test.approx}
    terms |= {"bias": population_bias(problem, schedule, test)}
    clipped = {"clipped": float(schedule is not setting.schedule)}
    if noise is None:
        return terms | clipped
    terms |= {"variance": exact_variance(problem, setting.N, schedule, test, noise), "cross": 0.0}
    tokens = noise.effective_share * setting.N * setting.P
    return with_sums(terms) | {
        "finite_filter_variance": finite_filter_variance(problem, setting.N, schedule, test),
        "score_low": noise.low,
        "score_high": noise.high,
        **clipped,
        "tokens_per_dimension": tokens / learned_dimensions(problem, schedule),
    }


def exact_risks(settings: Sequence[Setting], *, sketches: int = 1, seed: int = 0) -> list[Risk]:
    """The expected risk of each setting: means and standard errors over sketches."""
    rows = exact_rows(settings, sketches=sketches, seed=seed)
    return [
        _summary(setting, [row for row in rows if row["point"] == index])
        for index, setting in enumerate(settings)
    ]


def exact_risk(setting: Setting, *, sketches: int = 1, seed: int = 0) -> Risk:
    """The expected risk at one setting; cost O(sketches · (d² M + M³)) for any N, P and L."""
    return exact_risks([setting], sketches=sketches, seed=seed)[0]


def _summary(setting: Setting, rows: Sequence[Row]) -> Risk:
    flags = [*setting_flags(setting), flag("cross")]
    if any(row["clipped"] for row in rows):
        flags.append(flag("safeguard"))
    flags += frozen_filter_flags(min(row["tokens_per_dimension"] for row in rows))
    return summarise("exact", setting, rows, diagnostics=DIAGNOSTICS, flags=flags, assumed=("cross",))
