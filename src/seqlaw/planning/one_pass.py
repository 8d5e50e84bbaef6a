"""The best one pass: width, batch, length, steps and step size for tokens b·P·L and compute b·P·L·M²."""

from __future__ import annotations

import math
from dataclasses import dataclass

from seqlaw.methods.one_pass.equivalent import one_pass_equivalent
from seqlaw.methods.one_pass.tuning import critical_tokens
from seqlaw.methods.terms import Risk
from seqlaw.model.checks import InputError, whole, whole_or_infinite
from seqlaw.model.flags import Flag
from seqlaw.model.schedule import Schedule, as_schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes, Teacher, as_teacher
from seqlaw.model.threads import one_thread
from seqlaw.planning.budget import PAPER_COST, Budget
from seqlaw.planning.passes import Passes, Run, best_pass

_AGAIN = 3  # times at most that the sizes beside the best one show a better one


@dataclass(frozen=True, kw_only=True)
class OnePassPlan:
    """What to do with compute C and tokens T in one pass."""

    teacher: Teacher | Modes
    schedule: Schedule
    regime: str
    budget: Budget
    d: float
    d_by_default: bool
    eval_length: int | None
    setting: Setting
    """The best."""
    risk: Risk
    flat: dict[str, tuple[int, int]]
    """Of M, P and batch: from where to where the risk is within 1 % of the least, the others chosen anew."""
    limits: dict[str, tuple[str | None, str | None]]
    """The limit that an end of that range is, if it is one."""
    by_batch: tuple[Run, ...]
    by_length: tuple[Run, ...]
    by_width: tuple[Run, ...]
    critical_tokens: float
    flags: tuple[Flag, ...]

    @property
    def compute(self) -> float:
        one = self.setting
        return float(self.budget.formula(M=one.M, N=one.batch, P=one.P, L=one.schedule.L))


@one_thread()
def plan_one_pass(
    teacher: Teacher | Modes | str,
    budget: Budget,
    *,
    schedule: Schedule | str = "wsd",
    d: float | None = None,
    eval_length: int | None = None,
) -> OnePassPlan:
    """The best (M, b, P, L, γ) for tokens b·P·L and compute; γ of `schedule` is not used."""
    teacher, schedule = as_teacher("teacher", teacher), as_schedule("schedule", schedule)
    if budget.cost != PAPER_COST:
        raise InputError("cost", f"must be {PAPER_COST} in one pass, with N the batch", budget.cost)
    if budget.max_P < budget.shortest:
        raise InputError("max_P", f"must be at least {budget.shortest}", budget.max_P)
    eval_length = None if eval_length is None else whole("eval_length", eval_length)
    chosen = whole_or_infinite("d", math.inf if d is None else d)
    if isinstance(teacher, Modes):
        chosen = float(teacher.d)
    search = Passes(teacher, chosen, schedule, eval_length, budget)
    best = best_pass(search)
    if not math.isfinite(best.reducible):
        least = schedule.least_steps()
        raise InputError("tokens", f"or compute must allow {least} steps of one sequence", budget.tokens)
    for _ in range(_AGAIN):
        profiles = {size: search.profile(best, size) for size in ("M", "P", "batch")}
        runs = (run for profile in profiles.values() for run in profile)
        best, before = min((best, *runs), key=lambda run: run.reducible), best
        if best is before:
            break
    flat = {size: search.flat(profile, size, best) for size, profile in profiles.items()}
    setting = search.setting(best)
    risk = one_pass_equivalent([setting])[0]
    return OnePassPlan(
        teacher=teacher,
        schedule=schedule,
        regime=setting.regime,
        budget=budget,
        d=chosen,
        d_by_default=d is None and not isinstance(teacher, Modes),
        eval_length=eval_length,
        setting=setting,
        risk=risk,
        flat=flat,
        limits={size: search.limits(size, ends) for size, ends in flat.items()},
        by_batch=tuple(profiles["batch"]),
        by_length=tuple(profiles["P"]),
        by_width=tuple(profiles["M"]),
        critical_tokens=critical_tokens(setting, search.learners),
        flags=risk.flags,
    )
