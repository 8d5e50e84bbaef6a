"""One pass given a sketch: the closed mean over data, no frozen filter (docs/one-pass-theory.md)."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from seqlaw.methods.accuracy import fine
from seqlaw.methods.one_pass.epochs import FullBatchRisk, epochs_error, epochs_noise, excess
from seqlaw.methods.one_pass.law import variances
from seqlaw.methods.one_pass.noise import grouped
from seqlaw.methods.one_pass.step import require_full_batch, stepped
from seqlaw.methods.stage import State, at_rest, moved, one_pass, parts_of, refined
from seqlaw.methods.terms import Row, with_sums
from seqlaw.methods.workbench import Workbench
from seqlaw.model.arrays import host, namespace
from seqlaw.model.checks import Array
from seqlaw.model.filters import Schedule
from seqlaw.model.pieces import is_cut
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import Problem

WIDEST = 64
"""M up to which every direction has a node of its own; beyond, alike ones share it (4e-4 of the variance)."""


OfFullBatch = Callable[[Setting, Schedule, Workbench], FullBatchRisk]
"""The full batch at N with this schedule, without a safeguard of its own."""


def one_pass_row(setting: Setting, bench: Workbench, full_batch: OfFullBatch) -> Row:
    """The five terms of a setting with mini-batches, and its step; of epochs cross is in the variance."""
    step = stepped(setting, [bench.nodes(P) for P, *_ in setting.stages])
    test = bench.problem(setting.test_length)
    if len(setting.stages) > 1:
        about = {"gamma": step.schedule.gamma, "clipped": float(step.clipped), "gamma_max": step.largest}
        if not step.diverges:
            return with_sums(carried_student(setting, step.schedule, bench).terms(test)) | about
        mean = mean_student(setting, step.schedule, bench).terms(test)
        return with_sums(mean | {"variance": math.inf}) | about
    [(P, batch, _)] = setting.stages
    problem, nodes = bench.problem(P), bench.nodes(P)
    terms = mean_student(setting, step.schedule, bench).terms(test)
    additive = terms["variance"] = math.inf
    if not step.diverges:
        here, weight = nodes.on_host(), _tested(problem, test)
        if here.mu.size > WIDEST:
            here, weight = grouped(here, weight)
        if setting.epochs > 1:
            require_full_batch(setting, here, step.schedule)
            noise = epochs_noise(here, step.schedule, float(batch), float(setting.N), setting.epochs)
            whole = full_batch(setting, step.schedule, bench)
            terms["variance"] = excess(noise, here.w * weight, whole.excess, terms["bias"]) - terms["bias"]
            about = {"full_batch": whole.excess, "error": epochs_error(whole.error)}
            return with_sums(terms) | step.diagnostics(nodes, P) | about
        gamma = np.array([step.schedule.gamma])
        found = variances(here, step.schedule, np.array([float(batch)]), gamma)
        terms["variance"], additive = (float((here.w * weight) @ part[0]) / 2 for part in found)
    more = 0.0 if step.diverges else terms["variance"] - additive
    return with_sums(terms) | {"additive": additive, "multiplicative": more} | step.diagnostics(nodes, P)


def mean_student(setting: Setting, schedule: Schedule, bench: Workbench) -> State:
    """The mean after all stages, which is the full batch's on the population; no covariance."""
    problems = [bench.problem(P) for P, *_ in setting.stages]
    state = at_rest(problems[0])
    for problem, part in zip(problems, _cut(setting, schedule, problems), strict=True):
        state = moved(state, problem, part)
    return state


def carried_student(setting: Setting, schedule: Schedule, bench: Workbench) -> State:
    """The mean and the covariance after all stages."""
    problems = [bench.problem(P) for P, *_ in setting.stages]

    def once(ratio: float) -> State:
        state = at_rest(problems[0])
        cut = _cut(setting, schedule, problems, ratio)
        for problem, part, (P, batch, _) in zip(problems, cut, setting.stages, strict=True):
            state = one_pass(state, problem, bench.step_noise(P), batch, part)
        return state

    return refined(once(fine.cut), once(fine.cut**0.5)) if is_cut(schedule) else once(fine.cut)


def _cut(setting: Setting, schedule: Schedule, problems: list[Problem], *ratio: float) -> list[Schedule]:
    norm = max(float(one.eigenvalues[-1]) for one in problems)
    return parts_of(schedule, [steps for *_, steps in setting.stages], norm, *ratio)


def _tested(problem: Problem, test: Problem) -> Array:
    """[UᵀG'U]_ii, on the host."""
    U = problem.eigenvectors
    own = test.P == problem.P
    found: Array = host(problem.eigenvalues if own else namespace(U).sum((test.G @ U) * U, axis=0))
    return found
