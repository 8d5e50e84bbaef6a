"""A plan in words, numbers and pictures: the one place that words an allocation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from seqlaw.answers.answer import Answer, fields_of
from seqlaw.answers.blocks import Block, Note, Sentence, Table
from seqlaw.answers.plan_rates import rate_fields, rate_notes, rate_tables
from seqlaw.answers.plan_words import confirmed, finite_notes, range_words, unused
from seqlaw.answers.risk import headline, parameters
from seqlaw.answers.style import SERIES, share_range, tidy
from seqlaw.answers.words import Side, describe_teacher, tested_words
from seqlaw.methods.method import Progress
from seqlaw.methods.rows import with_sums
from seqlaw.methods.terms import TERMS
from seqlaw.model.amount import amount, rounded
from seqlaw.model.checks import InputError, checked
from seqlaw.model.lengths import Lengths, as_lengths, words
from seqlaw.model.schedule import Schedule, kind_name
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes, Teacher
from seqlaw.model.uncertain import Uncertain
from seqlaw.planning import plan as planning
from seqlaw.planning.budget import PAPER_COST, Allocation, Budget
from seqlaw.planning.uncertain import DRAWS, check_draws

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_WIDE = 1.5  # a range of lengths that is worth its words


@dataclass(frozen=True, kw_only=True)
class Plan(Answer, planning.Plan):
    """What to do with compute C and tokens T."""

    flops: bool = False
    """Whether compute is spoken of in FLOPs."""
    rates: bool = False
    """Whether the corollary and the programs in exponents are shown too."""
    command: ClassVar[str] = "plan"
    unsaid = frozenset({"cross-rest"})
    pictures: ClassVar[tuple[int, float, float]] = (2, 8.8, 3.8)

    @property
    def setting(self) -> Setting:
        """The student that is recommended."""
        return self.student(self.finite.best)

    def student(self, chosen: Allocation) -> Setting:
        """The student of an allocation."""
        return Setting(
            teacher=self.teacher,
            M=chosen.M,
            N=chosen.N,
            P=chosen.P,
            d=self.d,
            schedule=self.schedule.with_steps(chosen.L),
            eval_length=self.eval_length,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the corollary, the programs and the optimum differ, and why, in plain words."""
        return (*rate_notes(self), *self._remarks())

    def _remarks(self) -> list[str]:
        return [*finite_notes(self), *confirmed(self)]

    @property
    def sentence(self) -> str:
        """The answer in a sentence or two."""
        best, (low, high) = self.finite.best, self.finite.flat["P"]
        about = "" if amount(best.N) == rounded(best.N) else "about "
        sequences = f"{about}{rounded(best.N)} sequence{'s' * (best.N > 1)} of length {amount(best.P)}"
        said = [f"Train M = {amount(best.M)} on {sequences} for {rounded(best.L)} steps."]
        if high >= _WIDE * low:
            inside = [point for point in self.finite.by_length if low <= point.P <= high]
            rough = any(point.reducible > 1.015 * self.finite.least.reducible for point in inside)
            where = " at which whole sequences fill the tokens" * rough
            said.append(f"Any P from {rounded(low)} to {rounded(high)}{where} is as good.")
        return " ".join([*said, *unused(self)])

    def inputs(self) -> Mapping[str, Any]:
        return {
            "teacher": self.teacher,
            "budget": self.budget,
            "schedule": {"kind": kind_name(self.schedule), "gamma": self.schedule.gamma},
            # Of wsd only: the fractions that were used, given or not.
            "warmup": getattr(self.schedule, "warmup", None),
            "decay": getattr(self.schedule, "decay", None),
            "d": "inf" if self.d == math.inf else int(self.d),
            "eval_length": self.eval_length,
            "confirm": self.confirm,
            "seed": self.seed,
        }

    def fields(self) -> Mapping[str, Any]:
        best, risk = self.finite.best, self.finite.risk
        seen = self.confirmation
        return {
            "answer": self.sentence,
            "regime": self.regime,
            "phase": self.phase,
            "K": self.K,
            "tau": self.tau,
            **rate_fields(self),
            "finite": {
                **spent(best),
                "least": spent(self.finite.least),
                "terms": with_sums({name: getattr(risk, name) for name in TERMS}),
                "accuracy": risk.stated,
                "eval_length": risk.eval_length,
                "flat": self.finite.flat,
                "limits": self.finite.limits,
                "isoflop": [spent(point) for point in self.finite.isoflop],
                "by_length": [spent(point) for point in self.finite.by_length],
            },
            "confirmation": None
            if seen is None
            else {
                "reducible": seen.risk.reducible,
                "standard_error": seen.risk.standard_error.get("reducible"),
                "d": seen.d,
            },
            "notes": self.notes,
            "flops": {"factor": planning.FLOPS_PER_UNIT, "given_in_flops": self.flops},
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        best, risk = self.finite.best, self.finite.risk
        unit, compute = (planning.FLOPS_PER_UNIT, "FLOPs") if self.flops else (1, "compute")
        yield Sentence(self.sentence)
        yield Sentence(headline(risk, risk.stated.get("reducible", "")))
        yield Sentence(describe_teacher(self.teacher))
        why = " (the default: d never limits M)" if self.d_by_default else ""
        yield Sentence(
            f"Regime {self.regime}, d = {amount(self.d)}{why}, tested at {tested_words(self.eval_length)}"
        )
        yield Table(
            rows=[(s, f"{getattr(best, s):,}", *self._range(s, side)) for s in "MNPL"],
            header=("size", "best", "within 1 % from", "to"),
            title=f"Least risk, with {amount(best.tokens)} of {amount(self.budget.tokens)} tokens "
            f"and {amount(best.compute * unit)} of {amount(self.budget.compute * unit)} {compute}"
            + ("" if self.budget.cost == PAPER_COST else f" = {self.budget.cost}"),
        )
        least = min(p.reducible for p in self.finite.by_length)  # of the same, quicker sums
        yield Table(
            rows=[
                (amount(p.P), f"{p.reducible / least:.2f}", *map(amount, (p.M, p.N, p.L)))
                for p in self.finite.by_length
            ],
            header=("if P were", "risk over the best", "M", "N", "L"),
        )
        if self.rates:
            yield from rate_tables(self)
            yield from map(Note, rate_notes(self))
        yield from map(Note, self._remarks())

    def _range(self, size: str, side: Side) -> Iterable[str]:
        """The ends of a size's flat range."""
        return range_words(self.finite.flat[size], self.finite.limits[size], side)

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """The recommended student, then the best at other widths and lengths."""
        risk = self.finite.risk
        terms = with_sums({name: getattr(risk, name) for name in TERMS})
        rows = [{"choice": "best"} | parameters(self.setting) | terms]
        for choice, points in (("isoflop", self.finite.isoflop), ("by_length", self.finite.by_length)):
            for point in points:
                rows.append(
                    {"choice": choice} | parameters(self.student(point)) | {"reducible": point.reducible}
                )
        return [row | {"tokens": row["N"] * row["P"]} for row in rows]

    def draw(self, axes: Sequence[Axes]) -> None:
        """The least risk under the budgets at each width (the isoFLOP curve) and at each length."""
        best = self.finite.best
        for place, size, name, points in (
            (axes[0], "M", "width M", self.finite.isoflop),
            (axes[1], "P", "length P", self.finite.by_length),
        ):
            x = [getattr(point, size) for point in points]
            place.plot(x, [point.reducible for point in points], color=SERIES[0], marker="o", markersize=4)
            here = getattr(best, size)
            place.plot([here], [best.reducible], color=SERIES[1], marker="*", markersize=13, linestyle="none")
            tidy(place, f"{name}, the other sizes chosen anew", "", f"{size} = {here:,}")
        share_range(axes)  # or a fall of 5 % along P would look as steep as one to a fifth along M
        axes[0].set_ylabel("least reducible risk at this budget")

    def decorate(self, figure: Figure) -> None:
        best = self.finite.best
        tested = "the training length" if self.eval_length is None else f"length {self.eval_length}"
        sizes = f"M={best.M:,}  N={best.N:,}  P={best.P:,}  L={best.L:,}"
        figure.suptitle(f"Regime {self.regime}, tested at {tested}: {sizes}", fontsize="medium")


def spent(point: Allocation) -> dict[str, Any]:
    """Sizes, compute, tokens and risk, as `--json` has them."""
    return asdict(point) | {"tokens": point.tokens}


@checked
def plan(
    teacher: Teacher | Modes | Uncertain | str,
    budget: Budget,
    *,
    schedule: Schedule | str = "wsd",
    d: float | None = None,
    eval_length: int | None = None,
    confirm: bool = False,
    draws: int = DRAWS,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
    lengths: Lengths | str | None = None,
) -> Plan:
    """The allocation of a budget; `schedule` gives the kind, shape and peak step (by name: γ = 0.1).

    d defaults to infinitely many modes. `confirm` samples the optimum on the sampled method. That can take
    minutes: it runs on `workers` threads and tells `progress`.
    For an `Uncertain` teacher an `UncertainPlan`: the middle's, and those of `draws` from the intervals.
    `lengths` holds a mixture fixed: a `MixturePlan` of its M, N and L, beside the best single length.
    """
    lengths = as_lengths("lengths", lengths)
    if lengths is not None and isinstance(teacher, Uncertain):
        raise InputError("lengths", "must be left out where the teacher has intervals", words(lengths))
    if isinstance(teacher, Uncertain):
        check_draws(teacher, draws, d)
    found = planning.plan(
        teacher.teacher if isinstance(teacher, Uncertain) else teacher,
        budget,
        schedule=schedule,
        d=d,
        eval_length=eval_length,
        confirm=confirm,
        seed=seed,
        workers=workers,
        progress=progress,
        lengths=lengths,
    )
    if lengths is not None:
        from seqlaw.answers.plan_mixture import MixturePlan  # which shows a plan and more

        return MixturePlan(**fields_of(found))
    answer = Plan(**fields_of(found))
    if isinstance(teacher, Uncertain):
        from seqlaw.answers.uncertain import over  # which shows a plan and more

        return over(answer, teacher, draws=draws, progress=progress)
    return answer
