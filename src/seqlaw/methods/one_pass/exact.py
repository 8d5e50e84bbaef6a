"""One pass given sketches: the expected risk in closed form, with no frozen filter (docs/one-pass.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from seqlaw.methods.drawn import sketches_cost
from seqlaw.methods.frozen_sketch import population_bias
from seqlaw.methods.method import Cost, Draws, Method, Progress, device_for
from seqlaw.methods.one_pass.law import diagonal_error, mean_filter, variances
from seqlaw.methods.one_pass.nodes import Nodes, given_sketch, grouped
from seqlaw.methods.one_pass.step import DIAGNOSTICS, no_law, step_flags, stepped
from seqlaw.methods.rows import Row, columns, families, indices, summaries, summarise, with_sums
from seqlaw.methods.terms import Risk
from seqlaw.model.arrays import host, namespace, on_host
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import Array, InputError
from seqlaw.model.filters import LARGEST_STEP, Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import Problem, gaussian_sketch, sketched_problem, weighted_square
from seqlaw.model.threads import one_thread

WIDEST = 64
"""M up to which every direction has a node of its own; beyond, alike ones share it (4e-4 of the variance)."""


class OnePassExact(Method):
    """The expectation over fresh mini-batches, given sketches: any number of steps for the cost of ln L."""

    name: ClassVar[str] = "exact"
    mixtures: ClassVar[bool] = True
    draws: ClassVar[tuple[str, ...]] = ("sketches",)
    one_pass: ClassVar[bool] = True

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        count, seed = draws.count("sketches"), draws.seed
        rows = one_pass_rows(settings, sketches=count, seed=seed, device=draws.device)
        return summaries(settings, rows, _summary)

    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        return one_pass_rows(settings, sketches=draws.sketches, seed=draws.seed, device=draws.device)

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        def core(M: int, d: float, lengths: set[int]) -> float:
            each = 0.01 + 1e-10 * M * d**2 + 1.5e-8 * d * M**2
            return sum(each + 5e-8 * d**2 * math.log2(2 * P) for P in lengths)

        def channels(M: int, d: float, lengths: set[int]) -> float:
            return len(lengths) * (2e-5 * d + 1e-11 * d * M**2)

        return sketches_cost(settings, draws, core, (0.1, 0.2), channels)

    def refuses(self, setting: Setting) -> InputError | None:
        return super().refuses(setting) or no_law(setting)


class Learner(NamedTuple):
    """One sketch at one training length: its nodes, and those of the law where there are many."""

    problem: Problem
    nodes: Nodes
    """One a direction: γ_max and the step are theirs."""

    def tested(self, test: Problem) -> Array:
        """[UᵀG'U]_ii, on the host."""
        if test.P == self.problem.P:
            own: Array = host(self.problem.eigenvalues)
            return own
        U = self.problem.eigenvectors
        other: Array = host(namespace(U).sum((test.G @ U) * U, axis=0))
        return other


def mean_bias(problem: Problem, schedule: Schedule, test: Problem) -> float:
    """The bias of the mean, which is the full batch's on the population; steps up to γ‖G‖ = 2."""
    if schedule.gamma * float(problem.eigenvalues[-1]) <= LARGEST_STEP:
        return population_bias(problem, schedule, test)
    return weighted_square(mean_error(problem, schedule, test), test.G) / 2


def mean_error(problem: Problem, schedule: Schedule, test: Problem) -> Array:
    """E[B_L] - B*' = -B* ψ(G) + B* - B*'."""
    U = problem.eigenvectors
    psi = on_host(lambda mu: mean_filter(schedule, mu), problem.eigenvalues)
    left: Array = -((problem.B_star @ U) * psi) @ U.T
    return left if test.P == problem.P else left + (problem.B_star - test.B_star)


@one_thread()
def one_pass_rows(
    settings: Sequence[Setting],
    *,
    sketches: int | Sequence[int] = 1,
    seed: int = 0,
    device: str | None = None,
) -> list[Row]:
    """One row for each setting and sketch; settings of one teacher and width share sketches and nodes."""
    rows: list[Row] = []
    where = device_for(settings, device)
    for family in families(settings):
        members = [settings[index] for index in family]
        modes, M = members[0].modes, members[0].M
        for sketch in indices("sketches", sketches):
            S = gaussian_sketch(M, modes.d, seed=seed, index=sketch, device=where)
            lengths = dict.fromkeys(P for one in members for P in (one.P, one.test_length))
            problems = {P: sketched_problem(modes, S, P) for P in lengths}
            learners = {
                P: Learner(problems[P], given_sketch(problems[P])) for P in {one.P for one in members}
            }
            for index, one in zip(family, members, strict=True):
                point = {"rung": "exact", "point": index, "sketch": sketch, **columns(one)}
                rows.append(point | _terms(one, learners[one.P], problems[one.test_length]))
    return sorted(rows, key=lambda row: (row["point"], row["sketch"]))


def _terms(setting: Setting, learner: Learner, test: Problem) -> Row:
    assert setting.batch is not None
    step, weight, nodes = stepped(setting, learner.nodes), learner.tested(test), learner.nodes.on_host()
    if nodes.mu.size > WIDEST:
        nodes, weight = grouped(nodes, weight)
    additive, variance = math.inf, math.inf
    if not step.diverges:
        gamma = np.array([step.schedule.gamma])
        found = variances(nodes, step.schedule, np.array([float(setting.batch)]), gamma)
        variance, additive = (float((nodes.w * weight) @ part[0]) / 2 for part in found)
    terms = {
        "irreducible": test.irreducible,
        "approx": test.approx,
        "bias": mean_bias(learner.problem, step.schedule, test),
        "variance": variance,
        "cross": 0.0,
    }
    parts = {"additive": additive, "multiplicative": 0.0 if step.diverges else variance - additive}
    return with_sums(terms) | parts | step.diagnostics(learner.nodes, setting.P)


def _summary(setting: Setting, rows: Sequence[Row]) -> Risk:
    flags = list(setting_flags(setting))
    flags += step_flags(rows)
    exact = setting.P == 1 and setting.eval_length in (None, 1)
    error = diagonal_error(*(float(np.mean([row[name] for row in rows])) for name in ("bias", "variance")))
    accuracy = {"variance": "exact besides" if exact else f"relative error about {error:.2g} besides"}
    return summarise(
        "exact", setting, rows, diagnostics=DIAGNOSTICS, flags=flags, assumed=("cross",), accuracy=accuracy
    )
