"""Budgets in, a verdict out: longer or more sequences, tested where, and by how much."""

from __future__ import annotations

from dataclasses import dataclass, replace

from seqlaw.model.checks import InputError, positive, whole
from seqlaw.model.flags import Flag
from seqlaw.model.schedule import Schedule, as_schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import MODES, Modes, Teacher, as_teacher
from seqlaw.planning.budget import Budget
from seqlaw.planning.plan import Plan, plan
from seqlaw.planning.tradeoff import OWN, Tradeoff, split_lengths, tradeoff
from seqlaw.sequences.findings import void
from seqlaw.sequences.measure import Measurement

WIDEST = 128
"""A wider student changes the accuracy, not the verdict."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Which split of the tokens wins at one test length."""

    tested: str
    """"own", or the common test length."""
    kind: str
    """"single" (one split only), "level" (no difference worth having), "shorter", "longer", "middle", or
    "ends" (both ends win over the middle)."""
    best: int
    worst: int
    """The lengths P of least and of largest risk."""
    ratio: float
    """Of the largest reducible risk to the least."""
    low: int
    high: int
    """The shortest and the longest P whose risk is the least one, as far as the rung can tell."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Advice:
    """Longer or more for a student, and the numbers behind it."""

    source: Measurement | Teacher | Modes
    tokens: float | None
    compute: float | None
    eval_length: int | None
    void: tuple[Flag, ...] = ()
    """Why nothing can be predicted; all that follows is then missing, as it is without tokens."""
    student: Setting | None = None
    """Its teacher, width, modes and schedule; N and P are what is compared."""
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
    def covered(self) -> bool:
        """Whether the theory covers the source, so that the rung's accuracy may be claimed."""
        return self.measured is None or self.measured.reliable

    @property
    def margin(self) -> float:
        """A relative difference of risks not worth having: the rung's accuracy 1/M, at least 2 %."""
        return 0.02 if self.student is None else _margin(self.student)

    @property
    def disagrees(self) -> Verdict | None:
        """The common test whose best lengths are all other than those at the own length."""
        own = next((each for each in self.verdicts if each.tested == OWN), None)
        apart = (each for each in self.verdicts if own and (each.low > own.high or own.low > each.high))
        return next(apart, None)


def advise(
    source: Measurement | Teacher | Modes | str,
    *,
    tokens: float | None = None,
    compute: float | None = None,
    eval_length: int | None = None,
    M: int | None = None,
    schedule: Schedule | str = "wsd",
    d: int | None = None,
) -> Advice:
    """The record behind `seqlaw.advise`, which says what the arguments are."""
    if compute is not None and M is not None:
        raise InputError("M", "cannot be given together with compute, which chooses it", M)
    if not isinstance(source, Measurement):
        source = as_teacher("source", source)
    schedule = as_schedule("schedule", schedule)
    tokens = None if tokens is None else positive("tokens", tokens)
    stop = void(source.flags) if isinstance(source, Measurement) else ()
    advice = Advice(source=source, tokens=tokens, compute=compute, eval_length=eval_length, void=stop)
    if stop or tokens is None:
        return advice
    teacher = source.modes if isinstance(source, Measurement) else source
    size = teacher.d if isinstance(teacher, Modes) else (MODES if d is None else whole("d", d))
    planned = None
    if compute is not None:
        budget = Budget(compute=compute, tokens=tokens)
        planned = plan(teacher, budget, schedule=schedule, d=size, eval_length=eval_length, confirm=False)
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
        lengths=split_lengths(int(tokens)),
        eval_lengths=() if eval_length is None else (eval_length,),
    )
    return replace(
        advice,
        student=student,
        chosen=chosen,
        tradeoff=curves,
        plan=planned,
        verdicts=tuple(_verdict(curves, name, _margin(student)) for name in curves.best),
    )


def _margin(student: Setting) -> float:
    return max(0.02, 1 / student.M)


def _verdict(curves: Tradeoff, tested: str, margin: float) -> Verdict:
    curve = curves.curve(tested)
    best, worst = (choose(curve, key=lambda row: row.reducible) for choose in (min, max))
    ratio = worst.reducible / best.reducible if best.reducible > 0 else 1.0
    near = [row.P for row in curve if row.reducible <= best.reducible * (1 + margin)]
    low, high = min(near), max(near)
    at_ends = low == min(row.P for row in curve), high == max(row.P for row in curve)
    kinds = {
        (True, True): "ends",
        (True, False): "shorter",
        (False, True): "longer",
        (False, False): "middle",
    }
    kind = "single" if len(curve) == 1 else "level" if ratio <= 1 + margin else kinds[at_ends]
    return Verdict(tested=tested, kind=kind, best=best.P, worst=worst.P, ratio=ratio, low=low, high=high)
