"""Advice in sentences: which split of the tokens wins, for which student, and how far to trust it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from seqlaw.answers.answer import Answer, fields_of, named, record
from seqlaw.answers.forecast import Forecast
from seqlaw.answers.forecast_words import trust
from seqlaw.answers.measurement import Measurement
from seqlaw.answers.measurement_words import what_would_help, why_void
from seqlaw.answers.plan import Plan
from seqlaw.answers.plan_words import act_on, finite_notes, unused
from seqlaw.answers.render import Block, Flagged
from seqlaw.answers.style import Axes, Figure
from seqlaw.answers.tradeoff import WINS, Tradeoff
from seqlaw.answers.words import Side, sentences
from seqlaw.model.amount import amount
from seqlaw.model.checks import positive
from seqlaw.model.flags import Flag
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.signature import checked
from seqlaw.model.teacher import Modes, Teacher, as_teacher
from seqlaw.planning.tradeoff import OWN, Verdict
from seqlaw.sequences import advise as records
from seqlaw.sequences.advise import WIDEST
from seqlaw.sequences.findings import outside, void
from seqlaw.sequences.measure import Measurement as Measured

_WHY = {
    "plan": "the plan's, see below",
    "quarter": "a quarter of the {d} directions, so that it leaves most of them out as the theory has it",
    "widest": f"the default where there are {4 * WIDEST} directions or more",
    "asked": "as asked",
}
_UNTIL = {"shorter": " down to P = {high}", "longer": " up to P = {low}", "middle": ""}
"""Where a range is best: a longer sequence need not be better within it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Advice(Answer, records.Advice):
    """Sentences, and the numbers behind them."""

    tradeoff: Tradeoff | None
    plan: Plan | None
    command: ClassVar[str] = "advise"
    unsaid = Tradeoff.unsaid

    @property
    def pictures(self) -> tuple[int, float, float]:  # type: ignore[override]  # those of the tradeoff
        return (0, 0.0, 0.0) if self.tradeoff is None else self.tradeoff.pictures

    @property
    def words(self) -> tuple[str, ...]:
        """The sentences, for who reads them in Python."""
        return tuple(self.said("python"))

    def said(self, side: Side) -> Iterator[str]:
        """How far to trust it, the student, the split that wins at each test, the plan, and its notes."""
        yield from self._first(side)
        yield from self._rest()

    def _first(self, side: Side) -> Iterator[str]:
        if self.measured is not None:
            yield _trust(self.measured, side)
        if self.void or self.outside:
            return
        if self.student is None or self.tradeoff is None:
            how = "--tokens" if side == "cli" else "tokens=…"
            yield f"Give a number of tokens ({how}) for advice on how to split them."
            return
        yield _student(self.student, _WHY[self.chosen or "asked"])
        yield from (self._verdict(each, self.student, self.tradeoff.tokens) for each in self.verdicts)
        if self.disagrees is not None:
            yield (
                "The two tests disagree because a longer training length is also an easier test: "
                f"compare lengths at the one you care about ({amount(int(self.disagrees.tested))})."
            )
        if self.plan is not None:
            yield from self._planned(self.plan, self.student)

    def _verdict(self, verdict: Verdict, student: Setting, tokens: int) -> str:
        """One test length: which split wins, by how much, and whether that is worth having."""
        where = "Tested at the training length, as in the paper,"
        if verdict.tested != OWN:
            where = f"Tested at length {amount(int(verdict.tested))},"
        budget, ratio = f"{amount(tokens)} tokens and width {student.M}", verdict.ratio
        best, worst, low, high = map(amount, (verdict.best, verdict.worst, verdict.low, verdict.high))
        if verdict.kind == "single":
            return f"{where} {budget} allow one split only, P = {best}."
        if verdict.kind == "level":
            accuracy = f"{100 / student.M:.2g} %"
            good = f" (such a prediction is accurate to about {accuracy})" if self.covered else ""
            return (
                f"{where} the difference is negligible at {budget}: the worst split, P = {worst}, has "
                f"{ratio:.3f} times the reducible risk of the best, P = {best}{good}."
            )
        share = f"{100 * self.margin:.2g} %"
        within = f"best (risks less than {share} apart count as one)"
        if self.covered:
            within = f"best to within {share}"
        if verdict.kind == "ends":
            return (
                f"{where} both ends win over the middle at {budget}: P = {low} and P = {high} are {within}, "
                f"P = {worst} has {ratio:.3g} times the reducible risk."
            )
        wins, span, counts = WINS[verdict.kind], f"P = {low}", f"N = {amount(tokens // verdict.low)}"
        if verdict.low < verdict.high:
            wins += _UNTIL[verdict.kind].format(low=low, high=high)
            span = f"P from {low} to {high}"
            counts = f"N = {amount(tokens // verdict.high)} to {amount(tokens // verdict.low)}"
        return (
            f"{where} {wins} at {budget}: {span} ({counts}) is {within}, and P = {worst} has "
            f"{ratio:.3g} times the reducible risk."
        )

    def _planned(self, plan: Plan, student: Setting) -> Iterator[str]:
        best = plan.finite.best
        yield (
            f"Within {amount(plan.budget.compute)} of compute (N·P·M²·L) the best student has "
            f"M = {amount(best.M)}, trained on N = {amount(best.N)} sequences of length P = {amount(best.P)} "
            f"for L = {amount(best.L)} steps, with a peak step size of {plan.schedule.gamma:.3g}."
        )
        yield from unused(plan)
        if best.M == student.d:
            yield (
                f"M = {student.d} uses every measured direction. A wider student may be better; judging it "
                "needs more features."
            )
        yield from act_on(plan)

    def _rest(self) -> list[str]:
        """What the plan notes, beyond what a reader may act on."""
        if self.plan is None:
            return []
        # Measured data have exponents: the plan's note that its arrays have none would confuse.
        notes = self.plan.notes if self.measured is None else finite_notes(self.plan)
        return [note for note in notes if note not in act_on(self.plan)]

    def inputs(self) -> Mapping[str, Any]:
        teacher = self.source if self.measured is None else self.measured.modes
        budgets = named(self, "tokens", "compute", "eval_length")
        return {"teacher": teacher, "measured": self.measured is not None, **budgets}

    def fields(self) -> Mapping[str, Any]:
        student = self.student
        return {
            "words": self.words,
            "student": None
            if student is None
            else {"M": student.M, "chosen": self.chosen, "d": student.d, "schedule": student.schedule},
            "verdicts": self.verdicts,
            "tradeoff": None if self.tradeoff is None else self.tradeoff.fields(),
            "plan": None if self.plan is None else self.plan.fields(),
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        return self._first(side)

    def more(self, side: Side) -> Iterable[Block]:
        return self._rest()

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """Those of the tradeoff."""
        return [] if self.tradeoff is None else self.tradeoff.tidy_rows()

    def flagged(self) -> Sequence[Flag]:
        """Those of the tradeoff and the plan, each once; what a measurement has flagged, its page says."""
        found = [flag for answer in (self.tradeoff, self.plan) if answer for flag in answer.flagged()]
        once = [flag for k, flag in enumerate(found) if flag not in found[:k]]
        return [flag for flag in once if self.measured is None or flag.code != "regime-unknown"]

    def draw(self, axes: Sequence[Axes]) -> None:
        if self.tradeoff is not None:
            self.tradeoff.draw(axes)

    def decorate(self, figure: Figure) -> None:
        if self.tradeoff is not None:
            self.tradeoff.decorate(figure)


def _trust(found: Measured, side: Side) -> str:
    """How far a measurement carries."""
    stop, regime = void(found.flags), found.regime
    ask = "`seqlaw forecast FILE`" if side == "cli" else "`forecast(X)`"
    if stop:
        help_ = what_would_help(stop, found.N)
        told = f"No advice is given: {why_void(stop)}. What would help: {help_}."
        # These break the theory, not the data: students can still be trained on them.
        forecasts = any(
            flag.code in ("unit-root", "same-start")
            or (flag.code == "too-little-data" and flag["of"] == "directions")
            for flag in stop
        )
        return f"{told} {ask} needs no theory of the data." if forecasts else told
    if found.reliable:
        if not regime.applies or regime.probability is None:
            return "These data do not determine the regime."
        return f"The data look like regime {regime.name} (probability {regime.probability:.2f})."
    causes = outside(found.flags)
    if causes:
        codes = ", ".join(sorted({flag.code for flag in causes}))
        return (
            f"No advice is given: the theory does not cover these data ({codes}). {ask} needs no theory of "
            "the data: it trains students on them, extrapolates beyond them and states its accuracy."
        )
    return (
        "These data do not decide it (uncertain). What follows is computed from the measured spectra anyway, "
        f"without a claim to accuracy; {ask} measures the loss of students on the data themselves."
    )


def _student(student: Setting, why: str) -> str:
    schedule = student.schedule
    return (
        f"The student compared has width M = {amount(student.M)} ({why.format(d=student.d)}) and trains for "
        f"{amount(schedule.L)} steps ({schedule.name}), at each length with the peak step size of least "
        "risk; another width or number of steps can favour another split."
    )


@checked
def advise(
    source: Measured | Teacher | Modes | str,
    *,
    tokens: float | None = None,
    compute: float | None = None,
    eval_length: int | None = None,
    M: int | None = None,
    schedule: Schedule | str = "wsd",
    d: int | None = None,
) -> Advice:
    """What to do with `tokens` (and `compute` N·P·M²·L, if it is limited), tested at length `eval_length`.

    A measurement is used through its measured spectra (`Measurement.modes`), not its fitted law. Without
    compute the student has width M (default: a quarter of the modes, at most 128) and the given schedule
    (by name 30000 steps); with it the plan chooses M and L. Each length has the peak step size of least
    risk, whatever the schedule's. Where a flag leaves nothing to predict from, the only sentence says so.
    """
    source = source if isinstance(source, Measured) else as_teacher("source", source)
    tokens = None if tokens is None else positive("tokens", tokens)
    asked = records.Advice(source=source, tokens=tokens, compute=compute, eval_length=eval_length)
    found = records.advise(asked, M, schedule, d)
    curves = found.tradeoff and Tradeoff(**fields_of(found.tradeoff, setting=found.student))
    plan = found.plan and Plan(**fields_of(found.plan))
    return Advice(**fields_of(found, tradeoff=curves, plan=plan))


@dataclass(frozen=True, kw_only=True, eq=False)
class Advised(Answer):
    """All that `seqlaw measure` tells: a measurement, its advice, and a forecast if asked for."""

    asked: Mapping[str, Any]
    measurement: Measurement
    advice: Advice
    held_out: Forecast | None = None
    teacher_file: str | None = None
    law_file: str | None = None
    command: ClassVar[str] = "measure"
    unsaid = Advice.unsaid
    pictures: ClassVar[tuple[int, float, float]] = Measurement.pictures

    def fields(self) -> Mapping[str, Any]:
        told: dict[str, Any] = {"advice": list(self.advice.said("cli"))}
        told |= {"teacher_file": self.teacher_file, "law_file": self.law_file}
        if self.held_out is not None:
            flags = self.held_out.flags
            told["held_out"] = {
                **self.held_out.fields(),
                "flags": sentences(flags, "cli"),
                "flag_records": [record(flag) for flag in flags],
            }
        return {**self.measurement.fields(), **told}

    def blocks(self, side: Side) -> Iterable[Block]:
        yield from self.measurement.blocks(side)
        advice = list(self.advice.blocks(side))
        yield from advice[self.measurement.reliable :]  # the first would repeat the line of the regime
        if self.held_out is not None:
            yield from (*self.held_out.advice, trust(self.held_out.accuracy))
            yield (
                f"The forecast's students train for {self.held_out.steps:,} steps and are tested at length "
                f"{self.held_out.eval_length}. The loss of each length: `--verbose`, or `seqlaw forecast`."
            )
            yield from map(Flagged, self.held_out.flags)

    def more(self, side: Side) -> Iterable[Block]:
        yield from self.measurement.more(side)
        yield from self.advice.more(side)
        if self.held_out is not None:
            yield from list(self.held_out.blocks(side))[len(self.held_out.advice) :]  # these were said
            yield from self.held_out.more(side)

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        return self.measurement.tidy_rows()

    def flagged(self) -> Sequence[Flag]:
        return [*self.measurement.flags, *self.advice.flagged()]

    def draw(self, axes: Sequence[Axes]) -> None:
        self.measurement.draw(axes)
