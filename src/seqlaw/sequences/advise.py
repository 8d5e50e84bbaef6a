"""Budgets in, a verdict out: longer or more sequences, tested where, and by how much."""

from __future__ import annotations

from dataclasses import dataclass, replace

from seqlaw.model.checks import InputError, whole
from seqlaw.model.flags import Flag
from seqlaw.model.schedule import Schedule, as_schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import MODES, Modes, Teacher
from seqlaw.planning.budget import Budget
from seqlaw.planning.plan import Plan, plan
from seqlaw.planning.tradeoff import OWN, Tradeoff, Verdict, tradeoff
from seqlaw.sequences.findings import outside, void
from seqlaw.sequences.measure import Measurement

WIDEST = 128
"""A wider student changes the accuracy, not the verdict."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Advice:
    """Longer or more for a student, and the numbers behind it."""

    source: Measurement | Teacher | Modes
    tokens: float | None
    compute: float | None
    eval_length: int | None
    student: Setting | None = None
    """Its teacher, width, modes and schedule; N and P are what is compared, each P at its best step. It and
    all that follows are missing without tokens, and where nothing can be predicted or the theory does not
    apply."""
    chosen: str | None = None
    """Why this width: "asked", "plan", "quarter" (of the modes) or "widest" (the default's largest)."""
    tradeoff: Tradeoff | None = None
    plan: Plan | None = None
    verdicts: tuple[Verdict, ...] = ()
    """One a test."""

    @property
    def measured(self) -> Measurement | None:
        return self.source if isinstance(self.source, Measurement) else None

    @property
    def void(self) -> tuple[Flag, ...]:
        """Why nothing can be predicted."""
        return () if self.measured is None else void(self.measured.flags)

    @property
    def outside(self) -> tuple[Flag, ...]:
        """Why the theory does not apply."""
        return () if self.measured is None else outside(self.measured.flags)

    @property
    def covered(self) -> bool:
        """Whether the theory covers the source, so that the method's accuracy may be claimed."""
        return self.measured is None or self.measured.reliable

    @property
    def margin(self) -> float:
        """Relative differences of risks below this are negligible: the accuracy 1/M, at least 2 %."""
        return 0.02 if self.student is None else _margin(self.student)

    @property
    def disagrees(self) -> Verdict | None:
        """The common test whose best lengths are all other than those at the own length."""
        own = next((each for each in self.verdicts if each.tested == OWN), None)
        apart = (each for each in self.verdicts if own and (each.low > own.high or own.low > each.high))
        return next(apart, None)


def advise(asked: Advice, M: int | None, schedule: Schedule | str, d: int | None) -> Advice:
    """What was asked, with the student, its verdicts and the plan behind `seqlaw.advise`."""
    source, tokens, compute, eval_length = asked.source, asked.tokens, asked.compute, asked.eval_length
    if compute is not None and M is not None:
        raise InputError("M", "cannot be given together with compute, which chooses it", M)
    schedule = as_schedule("schedule", schedule)
    if asked.void or asked.outside or tokens is None:
        return asked
    teacher = source.modes if isinstance(source, Measurement) else source
    size = teacher.d if isinstance(teacher, Modes) else (MODES if d is None else whole("d", d))
    planned = None
    if compute is not None:
        budget = Budget(compute=compute, tokens=tokens)
        planned = plan(teacher, budget, schedule=schedule, d=size, eval_length=eval_length)
        best = planned.finite.best
        M, chosen, schedule = best.M, "plan", schedule.with_steps(best.L)
    elif M is None:
        M = min(WIDEST, max(1, size // 4))
        chosen = "widest" if M == WIDEST else "quarter"
    else:
        M, chosen = whole("M", M, most=size), "asked"
    student = Setting(teacher=teacher, M=M, N=1, P=2, d=size, schedule=schedule)
    curves = tradeoff(
        student,
        tokens,
        eval_lengths=() if eval_length is None else (eval_length,),
    )
    return replace(
        asked,
        student=student,
        chosen=chosen,
        tradeoff=curves,
        plan=planned,
        verdicts=tuple(curves.verdict(name, _margin(student)) for name in curves.best),
    )


def _margin(student: Setting) -> float:
    return max(0.02, 1 / student.M)
