"""A plan for a budget: the optimum, what was asked beside it, and the paper's corollary and programs."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from seqlaw.methods.best_step import UNLIMITED, best_steps, largest_step
from seqlaw.methods.equivalent import equivalent_risk, equivalent_risks
from seqlaw.methods.method import Draws, Progress
from seqlaw.methods.sampled import Sampled
from seqlaw.methods.terms import Risk
from seqlaw.model.assumptions import teacher_flags
from seqlaw.model.checks import InputError, whole, whole_or_infinite
from seqlaw.model.filters import LISTED
from seqlaw.model.flags import Flag
from seqlaw.model.lengths import Length, Lengths, as_lengths, one_or_many, words
from seqlaw.model.momentum import Momentum
from seqlaw.model.preconditioned import preconditioned
from seqlaw.model.schedule import Explicit, Schedule, as_schedule
from seqlaw.model.setting import Setting
from seqlaw.model.signature import checked
from seqlaw.model.teacher import Modes, Teacher, as_teacher
from seqlaw.model.uncertain import Uncertain
from seqlaw.planning.budget import PAPER_COST, Allocation, Budget, Search, limits
from seqlaw.planning.corollary import Corollary, corollary
from seqlaw.planning.epochs import BEST, MOST, epochs_plan
from seqlaw.planning.mixed import mixed
from seqlaw.planning.one_pass import OnePass
from seqlaw.planning.one_pass import one_pass as best_one_pass
from seqlaw.planning.program import SETTINGS, Program, program
from seqlaw.planning.search import FinitePlan, finite_plan
from seqlaw.planning.uncertain import DRAWS, Over, check_draws, plan_over

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
    """What to do with compute C and tokens T, and what was asked; a part that was not asked for is None."""

    teacher: Teacher | Modes
    schedule: Schedule
    """Its kind, shape and peak step: the best one, or the one that was given."""
    tune: bool = True
    """Whether the step was chosen too."""
    budget: Budget
    d: float
    d_by_default: bool
    """Whether nobody chose d: it is then infinite, so that it never limits M."""
    eval_length: int | None
    """The test length; None for the training length."""
    finite: FinitePlan | OnePass
    """The optimum for this teacher, its risk, and what other sizes cost; `OnePass` in a single pass."""
    epochs: int | str | None = None
    """How often each sequence is used in mini-batches, as it was asked for: a number or "best"."""
    batch: int | None = None
    """With epochs, the sequences a step that were asked for."""
    flops: bool
    """Whether the budget and the answer count compute in FLOPs."""
    confirm: bool
    seed: int
    confirmation: Confirmation | None = None
    """A sample of the optimum, if it was asked for and within reach."""
    lengths: Lengths | None = None
    """The mixture that was held fixed: `finite` has its M, N and L, and its P is not used."""
    single: FinitePlan | None = None
    """With a mixture, the best single length under the same budgets."""
    uncertain: Uncertain | None = None
    """The intervals of a teacher that is not known exactly; `teacher` is then their middle."""
    over: Over | None = None
    """What those intervals do to the plan."""

    @property
    def best(self) -> Allocation:
        """The sizes to train: the optimum, or over intervals the choice that loses least on average."""
        return self.finite.best if self.over is None else self.over.single.allocation

    @property
    def setting(self) -> Setting:
        """The student to train."""
        return self.finite.setting if isinstance(self.finite, OnePass) else self.student(self.best)

    def student(self, chosen: Allocation, lengths: Length | None = None) -> Setting:
        """The full-batch student of an allocation, trained on the plan's mixture unless told otherwise."""
        held = chosen.P if self.lengths is None else one_or_many(self.lengths)
        return Setting(
            teacher=self.teacher,
            M=chosen.M,
            N=chosen.N,
            P=lengths or held,
            d=self.d,
            schedule=self.schedule.with_steps(chosen.L),
            eval_length=self.eval_length,
        )

    @property
    def regime(self) -> str:
        return self.teacher.regime if isinstance(self.teacher, Teacher) else "unknown"

    @property
    def flags(self) -> tuple[Flag, ...]:
        return self.finite.risk.flags

    @property
    def K(self) -> float:
        """γC, the compute that rates are powers of; γ is the step of the plan."""
        return self.schedule.gamma * self.budget.compute

    @property
    def tau(self) -> float:
        """T = K^tau."""
        return math.log(self.budget.tokens) / math.log(self.K) if self.K > 1 else math.inf

    @cached_property
    def corollary(self) -> Corollary | None:
        """The paper's corollary, where its assumptions hold: about its own cost, and one length."""
        ruled = self.K > 1 and self.budget.cost == PAPER_COST and self.lengths is None
        ruled = ruled and self.schedule.plain is self.schedule
        if not ruled or isinstance(self.teacher, Modes) or teacher_flags(self.teacher):
            return None
        return corollary(self.teacher, self.tau)

    @cached_property
    def programs(self) -> dict[str, Program | None]:
        """The optimum in exponents of each setting, where the theorem applies; solved when asked for."""
        if self.corollary is None or isinstance(self.teacher, Modes):
            return dict.fromkeys(SETTINGS)
        return {name: program(self.teacher, self.tau, name) for name in SETTINGS}

    @property
    def ratio(self) -> float:
        """With a mixture: the risk of the best single length over the mixture's."""
        assert self.single is not None
        return self.single.risk.reducible / self.finite.risk.reducible

    @property
    def ratio_error(self) -> float:
        """From the stated accuracy of both."""
        assert self.single is not None
        errors = [found.risk.diagnostics["error"] for found in (self.single, self.finite)]
        return self.ratio * math.hypot(*errors)


@checked
def plan(
    teacher: Teacher | Modes | Uncertain | str,
    budget: Budget,
    *,
    schedule: Schedule | str = "wsd",
    tune: bool = True,
    precondition: float = 0.0,
    d: float | None = None,
    eval_length: int | None = None,
    one_pass: bool = False,
    epochs: int | str | None = None,
    batch: int | None = None,
    lengths: Lengths | str | None = None,
    confirm: bool = False,
    flops: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> Plan:
    """The sizes of least risk under a budget: width M, sequences N, length P and steps L.

    Parameters
    ----------
    teacher
        A `Teacher`, `Modes`, a preset's name, or an `Uncertain` teacher. With the last the budget is planned
        for `draws` teachers of its intervals, and one choice for all of them is recommended.
    budget
        The ceilings on compute, on tokens and on each size.
    schedule
        The kind and shape of training; the number of steps is chosen.
    tune
        Choose the peak step size too: the largest that the safeguard allows, since compute grows with the
        number of steps. Otherwise it is the schedule's, by name 0.1.
    precondition
        The power p of the preconditioner, as in `Setting`; the budget does not count what it costs.
    d
        The number of modes; infinitely many by default, so that d never limits M.
    eval_length
        The test length; by default each student is tested at its own training length.
    one_pass
        Train once through fresh mini-batches: the batch and the step are chosen too.
    epochs
        Train on mini-batches and use each sequence so often; "best" chooses how often. The tokens of the
        budget are then those that differ, and its compute counts every epoch.
    batch
        With `epochs`: the sequences a step, chosen if not given.
    lengths
        A mixture of lengths to hold fixed: M, N and L are chosen for it and compared with the best single
        length.
    confirm
        Sample the optimum too, which can take minutes on `workers` threads.
    flops
        Speak of compute in FLOPs (4 a unit of N·P·M²·L); the budget itself stays in units.
    seed
        Of the draws and of the sample.
    progress
        Called with what is done and what there is to do.

    Returns
    -------
    Plan
        `.best` has the sizes, `.setting` the student, `.finite` its risk and what other sizes cost.

    Examples
    --------
    >>> from seqlaw import Budget, plan
    >>> plan("regime2", Budget(compute=1e7, tokens=1e4), d=64, eval_length=16).best.P
    2
    """
    uncertain = teacher if isinstance(teacher, Uncertain) else None
    teacher = as_teacher("teacher", teacher if uncertain is None else uncertain.teacher)
    schedule, lengths = as_schedule("schedule", schedule), as_lengths("lengths", lengths)
    _require_possible(budget, schedule)
    schedule = preconditioned(schedule, precondition, schedule.weight_decay)
    if lengths is not None and uncertain is not None:
        raise InputError("lengths", "must be left out where the teacher has intervals", words(lengths))
    if uncertain is not None:
        check_draws(uncertain, draws, d)
    if isinstance(teacher, Modes) and d not in (None, teacher.d):
        raise InputError("d", f"must be {teacher.d}, the number of modes given", d)
    size = teacher.d if isinstance(teacher, Modes) else whole_or_infinite("d", math.inf if d is None else d)
    eval_length = None if eval_length is None else whole("eval_length", eval_length)
    asked: dict[str, Any] = {"schedule": schedule, "d": size, "eval_length": eval_length}
    found = partial(
        Plan,
        d=size,
        eval_length=eval_length,
        tune=tune,
        teacher=teacher,
        budget=budget,
        d_by_default=d is None and isinstance(teacher, Teacher),
        confirm=confirm,
        seed=seed,
        flops=flops,
    )
    if epochs is None and batch is not None:
        raise InputError("batch", 'goes with epochs: a number, or "best"', batch)
    if isinstance(epochs, str) and epochs != BEST and not epochs.isdecimal():
        raise InputError("epochs", f'must be a number or "{BEST}"', epochs)
    if epochs is not None:
        epochs = epochs if epochs == BEST else whole("epochs", epochs, most=MOST)
        batch = None if batch is None else whole("batch", batch)
        if one_pass and (epochs, batch) != (1, None):
            raise InputError("epochs", "must be left out in one pass", epochs)
        one_pass, epochs = True, None if (epochs, batch) == (1, None) else epochs
    if one_pass:
        given = {"lengths": str(lengths or ""), "confirm": confirm, "flops": flops}
        way = "in one pass" if epochs is None else "with epochs"
        if precondition:
            rule = "works with the full batch only here; for mini-batches call tradeoff with a batch"
            raise InputError("precondition", rule, precondition)
        for name, value in given.items():
            if value:
                raise InputError(name, f"works with the full batch only, not {way}", value)
        if uncertain is not None:
            raise InputError("teacher", f"must be without intervals {way}", uncertain)
        if not tune:
            raise InputError("tune", "must be true in one pass, which chooses the step", tune)
        if epochs is None:
            return found(schedule=schedule, finite=best_one_pass(teacher, budget, **asked))
        repeated = epochs_plan(Search(teacher=teacher, budget=budget, **asked), epochs, batch)
        return found(schedule=schedule, finite=repeated, epochs=epochs, batch=batch)
    if tune:
        asked["schedule"] = schedule.scaled(UNLIMITED)
    search = Search(teacher=teacher, budget=budget, **asked)
    held = search if lengths is None else replace(search, budget=mixed(budget, lengths))
    _steps_in_closed_form(held)
    finite = finite_plan(held)
    over = None
    if uncertain is not None:
        over = plan_over(uncertain, search, finite, draws=draws, seed=seed, progress=progress)
    single = None if lengths is None else finite_plan(search)
    if tune:
        single = single and _with_step(search, single, None)[0]
        finite, schedule = _with_step(held, finite, None if over is None else over.single.allocation)
        over = over and _without_news(over)
        held = replace(held, schedule=schedule)
    return found(
        schedule=schedule,
        finite=finite,
        confirmation=_confirm(held, finite, seed, workers, progress) if confirm else None,
        lengths=lengths,
        single=single,
        uncertain=uncertain,
        over=over,
    )


def _with_step(search: Search, finite: FinitePlan, chosen: Allocation | None) -> tuple[FinitePlan, Schedule]:
    """The optimum with its step named, and the schedule of what is `chosen` (the optimum unless said).

    Only with the fewest steps that the schedule allows can a step below the largest be better.
    """
    best = finite.best
    setting, risk = search.setting(best.M, best.N, best.P, best.L), finite.risk
    if best.L > search.least_steps:
        step = largest_step(setting, risk)
    else:
        [step] = best_steps([setting])
        [risk] = equivalent_risks([step.setting])
    named = replace(finite, risk=step.told(risk), best=replace(best, reducible=risk.reducible))
    if chosen in (None, best):
        return named, step.setting.schedule
    assert chosen is not None
    other = equivalent_risk(search.setting(chosen.M, chosen.N, chosen.P, chosen.L))
    return named, search.schedule.scaled(other.diagnostics["gamma"])


def _without_news(over: Over) -> Over:
    """That the safeguard acts is no news where the step is the largest that it allows."""
    draws = (replace(one, flags=tuple(f for f in one.flags if f.code != "safeguard")) for one in over.draws)
    return replace(over, draws=tuple(draws))


def _require_possible(budget: Budget, schedule: Schedule) -> None:
    if not isinstance(budget, Budget):
        raise InputError("budget", "must be a Budget(compute=…, tokens=…)", budget)
    if isinstance(schedule, Explicit):
        raise InputError("schedule", "must have a free number of steps", "explicit")
    if isinstance(schedule, Momentum):
        rule = "is not planned with; at a fixed beta it is plain descent with gamma/(1 - beta)"
        raise InputError("beta", rule, schedule.beta)


def _steps_in_closed_form(search: Search) -> None:
    """Refuses at once a schedule of the user's that lists its steps, where the budget allows too many."""
    budget, schedule = search.budget, search.schedule.plain
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
