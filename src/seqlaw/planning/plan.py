"""A plan for a budget: the corollary, the program in exponents, the finite optimum, and why they differ."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from seqlaw.model.amount import amount
from seqlaw.model.assumptions import teacher_flags
from seqlaw.model.checks import InputError
from seqlaw.model.schedule import Explicit, Schedule, as_schedule
from seqlaw.model.teacher import Modes, Teacher, as_teacher
from seqlaw.planning.budget import Budget, Search
from seqlaw.planning.corollary import Corollary, corollary
from seqlaw.planning.finite import FinitePlan, finite_plan
from seqlaw.planning.program import SETTINGS, Program, program
from seqlaw.rungs.ask import Progress
from seqlaw.rungs.equivalent import equivalent_risk
from seqlaw.rungs.sampled import sampled_risks
from seqlaw.rungs.terms import Risk

FLOPS_PER_UNIT = 4
"""FLOPs of one unit N·P·M²·L: 2M² for the prediction and 2M² for the gradient, a token and step."""
_DRAWS = 3e8  # normals that a confirmation may cost


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to do with compute C and tokens T."""

    regime: str
    phase: str | None
    gamma: float
    budget: Budget
    d: float
    eval_length: int | None
    """The test length; None for the training length."""
    K: float
    tau: float
    corollary: Corollary | None
    programs: dict[str, Program | None]
    finite: FinitePlan
    confirmation: Risk | None
    """The optimum on the sampled rung, if it was asked for and within reach."""
    confirmation_d: int | None
    """The modes of that sample: 8 M where the plan has infinitely many."""
    notes: tuple[str, ...]
    flags: tuple[str, ...]


def plan(
    teacher: Teacher | Modes | str,
    budget: Budget,
    *,
    schedule: Schedule | str | None = None,
    d: float | None = None,
    eval_length: int | None = None,
    confirm: bool | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> Plan:
    """The allocation of a budget; `teacher` and `schedule` may be names.

    `schedule` gives the kind, shape and peak step (default and of a name: WSD, γ = 0.1); its own L does not
    matter. d defaults to infinitely many modes, so that it never limits M. `confirm` samples the optimum on
    the sampled rung; by default where the frozen filter is flagged. That can take minutes: it runs on
    `workers` threads and tells `progress`.
    """
    teacher = as_teacher("teacher", teacher)
    schedule = as_schedule("schedule", "wsd" if schedule is None else schedule)
    if isinstance(schedule, Explicit):
        raise InputError("schedule", "must have a free number of steps", "explicit")
    K = schedule.gamma * budget.compute
    tau = math.log(budget.tokens) / math.log(K) if K > 1 else math.inf
    notes: list[str] = []
    law: Corollary | None = None
    programs: dict[str, Program | None] = dict.fromkeys(SETTINGS)
    if isinstance(teacher, Modes):
        notes.append(
            "The teacher is given as arrays: no exponents, so neither corollary nor program applies."
        )
    elif teacher_flags(teacher):
        notes.append("Outside the theorem (see the flags), so neither corollary nor program applies.")
    elif K <= 1:
        notes.append(f"K = gamma * C = {K:.3g} is not above 1: rates say nothing at this budget.")
    else:
        law = corollary(teacher, tau)
        programs = {name: program(teacher, tau, name) for name in SETTINGS}
        notes += rate_notes(teacher, tau, law, programs)
    if isinstance(teacher, Modes) and d not in (None, teacher.d):
        raise InputError("d", f"must be {teacher.d}, the number of modes given", d)
    size = teacher.d if isinstance(teacher, Modes) else math.inf if d is None else d
    search = Search(teacher=teacher, d=size, schedule=schedule, budget=budget, eval_length=eval_length)
    finite = finite_plan(search)
    notes += finite_notes(teacher, finite, budget, eval_length)
    wanted = confirm if confirm is not None else any(flag.startswith("frozen") for flag in finite.risk.flags)
    sample = _confirm(search, finite, notes, seed, workers, progress) if wanted else None
    return Plan(
        regime=teacher.regime if isinstance(teacher, Teacher) else "unknown",
        phase=law.phase if law else None,
        gamma=schedule.gamma,
        budget=budget,
        d=size,
        eval_length=eval_length,
        K=K,
        tau=tau,
        corollary=law,
        programs=programs,
        finite=finite,
        confirmation=sample[0] if sample else None,
        confirmation_d=sample[1] if sample else None,
        notes=tuple(notes),
        flags=finite.risk.flags,
    )


def rate_notes(
    teacher: Teacher, tau: float, law: Corollary, programs: dict[str, Program | None]
) -> list[str]:
    """Where the corollary and the three programs differ, and why, in plain words."""
    notes = []
    theta, r = teacher.theta, teacher.r
    printed = law.exponents.risk
    paper, proved, free = (programs[name] for name in SETTINGS)
    if paper is None:
        notes.append(
            f"No allocation of T = K^{tau:.3g} tokens can spend all the compute under the theorem's sample "
            "conditions; the corollary assumes that it is spent. Treat compute as a ceiling (`proved`)."
        )
    elif paper.exponents.risk < printed - 1e-9:
        if law.regime == "II" and law.exponents.P < 0:
            cause = f"tau = {tau:.3g} < (theta+1)/(2theta+3), so the corollary's P* is below 1"
        elif law.regime == "II" and theta + 6 * r > 6:
            cause = "theta + 6r > 6: shorter sequences win, the corollary's P* is not optimal"
        else:
            cause = "theta + 3r < 3/2 in the token-limited phase: a longer P than the corollary's wins"
        notes.append(
            f"The corollary's risk exponent {printed:.4g} is not optimal under its own conditions "
            f"({paper.exponents.risk:.4g} is): {cause}."
        )
    if proved is not None and paper is not None and proved.exponents.risk < paper.exponents.risk - 1e-9:
        notes.append(
            f"Budgets are ceilings: not spending all the compute improves the risk exponent from "
            f"{paper.exponents.risk:.4g} to {proved.exponents.risk:.4g}. In the token-limited phase the "
            "corollary's risk gets worse with more compute: its sample condition ties R to the tokens."
        )
    if free is not None and proved is not None and free.exponents.risk < proved.exponents.risk - 1e-9:
        notes.append(
            "The sample conditions NP >~ RM and N >~ RM serve the proof, not the risk: without them the "
            f"exponent is {free.exponents.risk:.4g} instead of {proved.exponents.risk:.4g} (M grows as "
            f"K^{free.exponents.M:.3g} instead of K^{proved.exponents.M:.3g})."
        )
    if free is not None and free.ranges["P"][1] - free.ranges["P"][0] > 1e-6:
        low, high = free.ranges["P"]
        notes.append(
            f"In rate the length is free: P from K^{low:.3g} to K^{high:.3g} attains it. Which is best is up "
            "to the constants, and these the allocation above has."
        )
    return notes


def finite_notes(
    teacher: Teacher | Modes, finite: FinitePlan, budget: Budget, eval_length: int | None
) -> list[str]:
    """What a reader of the finite optimum should know."""
    best = finite.best
    notes = []
    if eval_length is None:
        notes.append(
            "Tested at the training length, as in the paper: allocations of different P take different "
            "tests, so P is chosen partly for an easier one. Give a test length to compare them fairly."
        )
    else:
        rates = "" if isinstance(teacher, Modes) else "; the rates are about tests at the training length"
        notes.append(f"Tested at length {eval_length}, whatever the training length{rates}.")
    reached = [size for size in "MNPL" if getattr(best, size) == getattr(budget, f"max_{size}")]
    limits = f"the ceiling on {' and '.join(reached)} is reached" if reached else "no use was found for more"
    spent = best.compute >= 0.99 * budget.compute
    if best.tokens < 0.99 * budget.tokens:
        held = not spent or "N" in reached or "P" in reached
        why = limits if held else "more would take compute from width and steps"
        if (best.N + 1) * best.P > budget.tokens and best.N * (best.P + 1) > budget.tokens:
            why = f"{best.N} whole sequences fill no more, but tokens do limit this plan"
        notes.append(f"{amount(best.tokens)} of {amount(budget.tokens)} tokens are used: {why}.")
    if not spent:
        notes.append(f"{best.compute / budget.compute:.2g} of the compute is used: {limits}.")
    if len(finite.by_length) > 1:  # else there was nothing to choose
        notes += _length_notes(finite, budget)
    return notes


def _length_notes(finite: FinitePlan, budget: Budget) -> list[str]:
    """Longer or more, in a sentence, where one can be said."""
    best, (low, high) = finite.best, finite.flat["P"]
    if high > 4 * low:
        least = min(point.reducible for point in finite.by_length)
        costs = [
            f"P = {amount(point.P)} costs {point.reducible / least:.3g} times the risk"
            for point in (finite.by_length[0], finite.by_length[-1])
            if point.reducible > 1.05 * least
        ]
        outside = f" Outside it does: {', '.join(costs)}." if costs else ""
        return [
            f"Longer or more hardly matters from P = {amount(low)} to {amount(high)}: within 1 % of the "
            f"best, but for the rounding of N to whole sequences.{outside}"
        ]
    if best.P <= budget.shortest:
        least_that = "considered" if budget.min_P <= 2 else "allowed"
        return [f"More, shorter sequences win: the best length, {best.P}, is the least that is {least_that}."]
    if best.N == 1 < budget.max_N:
        all_of_them = " takes all the tokens" if best.tokens >= 0.99 * budget.tokens else ""
        return [f"Longer wins outright: one sequence{all_of_them}."]
    return []


def _confirm(
    search: Search, finite: FinitePlan, notes: list[str], seed: int, workers: int, progress: Progress | None
) -> tuple[Risk, int] | None:
    """The sampled risk at the optimum and its d, where it is within reach."""
    best = finite.best
    setting = search.setting((best.M, best.P, best.L))
    d = 8 * best.M if setting.d in (None, math.inf) else int(setting.d or 0)
    setting = replace(setting, d=d)
    if d > 4096 or min(best.tokens, best.P * d) * d * 8 > _DRAWS:
        notes.append("Not checked by sampling: the optimum is too large to simulate.")
        return None
    [seen] = sampled_risks(
        [setting], sketches=8, repetitions=2, seed=seed, workers=workers, progress=progress
    )
    told = equivalent_risk(setting)
    error = seen.standard_error["reducible"]
    near = abs(seen.reducible - told.reducible) < 3 * error + told.reducible / best.M
    notes.append(
        f"Sampled at these sizes with d = {d}: {seen.reducible:.3g} ± {error:.1g}, which "
        f"{'agrees with' if near else 'DIFFERS from'} the equivalent's {told.reducible:.3g} at that d."
    )
    return seen, d
