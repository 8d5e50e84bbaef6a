"""A plan for a budget: the corollary, the program in exponents, the finite optimum, and a sample of it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from seqlaw.methods.equivalent import equivalent_risk
from seqlaw.methods.method import Draws, Progress
from seqlaw.methods.sampled import Sampled
from seqlaw.methods.terms import Risk
from seqlaw.model.assumptions import teacher_flags
from seqlaw.model.checks import InputError, whole_or_infinite
from seqlaw.model.filters import LISTED
from seqlaw.model.flags import Flag
from seqlaw.model.lengths import Lengths
from seqlaw.model.momentum import Momentum
from seqlaw.model.schedule import Explicit, Schedule, as_schedule
from seqlaw.model.teacher import Modes, Teacher, as_teacher
from seqlaw.planning.budget import PAPER_COST, Budget, Search, limits
from seqlaw.planning.corollary import Corollary, corollary
from seqlaw.planning.mixed import mixed
from seqlaw.planning.program import SETTINGS, Program, program
from seqlaw.planning.search import FinitePlan, finite_plan

FLOPS_PER_UNIT = 4
"""FLOPs of one unit N·P·M²·L: 2M² for the prediction and 2M² for the gradient, a token and step."""
_DRAWS = 3e8  # normals that a confirmation may cost


@dataclass(frozen=True, kw_only=True)
class Confirmation:
    """The optimum as sampled, beside what the equivalent method says at the same d."""

    risk: Risk
    told: Risk
    d: int
    """8 M where the plan has infinitely many modes."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What to do with compute C and tokens T."""

    teacher: Teacher | Modes
    schedule: Schedule
    """Its kind, shape and peak step; the plan chooses L."""
    regime: str
    phase: str | None
    budget: Budget
    d: float
    d_by_default: bool
    """Whether nobody chose d: it is then infinite, so that it never limits M."""
    eval_length: int | None
    """The test length; None for the training length."""
    K: float
    tau: float
    corollary: Corollary | None
    finite: FinitePlan
    confirm: bool
    seed: int
    confirmation: Confirmation | None
    """If it was asked for and within reach."""
    unconfirmed: bool
    """Asked for, and out of reach."""
    flags: tuple[Flag, ...]
    lengths: Lengths | None = None
    """The mixture that was held fixed: `finite` has its M, N and L, and P stands for nothing there."""
    single: FinitePlan | None = None
    """With a mixture, the best single length under the same budgets."""

    @cached_property
    def programs(self) -> dict[str, Program | None]:
        """The optimum in exponents of each setting, where the theorem applies; solved when asked for."""
        if self.corollary is None or isinstance(self.teacher, Modes):
            return dict.fromkeys(SETTINGS)
        return {name: program(self.teacher, self.tau, name) for name in SETTINGS}


def plan(
    teacher: Teacher | Modes | str,
    budget: Budget,
    *,
    schedule: Schedule | str = "wsd",
    d: float | None = None,
    eval_length: int | None = None,
    confirm: bool = False,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    lengths: Lengths | None = None,
) -> Plan:
    """The record behind `seqlaw.plan`, which says what the arguments are."""
    teacher, schedule = as_teacher("teacher", teacher), as_schedule("schedule", schedule)
    if not isinstance(budget, Budget):
        raise InputError("budget", "must be a Budget(compute=…, tokens=…)", budget)
    if isinstance(schedule, Explicit):
        raise InputError("schedule", "must have a free number of steps", "explicit")
    if isinstance(schedule, Momentum):
        rule = "is not planned with; at a fixed beta it is plain descent with gamma/(1 - beta)"
        raise InputError("beta", rule, schedule.beta)
    K = schedule.gamma * budget.compute
    tau = math.log(budget.tokens) / math.log(K) if K > 1 else math.inf
    law: Corollary | None = None
    # The rates are about the paper's cost, and one length.
    ruled = K > 1 and budget.cost == PAPER_COST and lengths is None
    if ruled and isinstance(teacher, Teacher) and not teacher_flags(teacher):
        law = corollary(teacher, tau)
    if isinstance(teacher, Modes) and d not in (None, teacher.d):
        raise InputError("d", f"must be {teacher.d}, the number of modes given", d)
    size = teacher.d if isinstance(teacher, Modes) else whole_or_infinite("d", math.inf if d is None else d)
    search = Search(teacher=teacher, d=size, schedule=schedule, budget=budget, eval_length=eval_length)
    held = search if lengths is None else replace(search, budget=mixed(budget, lengths))
    _steps_in_closed_form(held)
    finite = finite_plan(held)
    sample = _confirm(held, finite, seed, workers, progress) if confirm else None
    return Plan(
        teacher=teacher,
        schedule=schedule,
        regime=teacher.regime if isinstance(teacher, Teacher) else "unknown",
        phase=law.phase if law else None,
        budget=budget,
        d=size,
        d_by_default=d is None and isinstance(teacher, Teacher),
        eval_length=eval_length,
        K=K,
        tau=tau,
        corollary=law,
        finite=finite,
        confirm=confirm,
        seed=seed,
        confirmation=sample,
        unconfirmed=confirm and sample is None,
        flags=finite.risk.flags,
        lengths=lengths,
        single=None if lengths is None else finite_plan(search),
    )


def _steps_in_closed_form(search: Search) -> None:
    """Refuses at once a schedule of the user's that lists its steps, where the budget allows too many."""
    budget, schedule = search.budget, search.schedule
    if limits(search).high["L"] <= LISTED:
        return
    try:
        schedule.with_steps(10**15).log_psi(np.array([0.5 / schedule.gamma]))  # 8 PB as a list: never there
    except MemoryError:
        rule = f"must be at most {LISTED} for a schedule whose log_psi lists its steps"
        raise InputError("max_L", rule, budget.max_L) from None


def _confirm(
    search: Search, finite: FinitePlan, seed: int, workers: int, progress: Progress | None
) -> Confirmation | None:
    """The sampled risk at the optimum, where it is within reach."""
    best = finite.best
    setting = search.setting(best.M, best.N, best.P, best.L)
    d = 8 * best.M if setting.d in (None, math.inf) else int(setting.d or 0)
    setting = replace(setting, d=d)
    if d > 4096 or min(best.tokens, best.P * d) * d * 8 > _DRAWS:
        return None
    draws = Draws(sketches=8, repetitions=2, seed=seed, workers=workers)
    [seen] = Sampled().risks([setting], draws, progress=progress)
    return Confirmation(risk=seen, told=equivalent_risk(setting), d=d)
