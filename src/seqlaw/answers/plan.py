"""A plan in words, numbers and pictures: the one place that words an allocation."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from seqlaw.answers.answer import Answer
from seqlaw.answers.blocks import Block, Note, Sentence, Table
from seqlaw.answers.risk import parameters
from seqlaw.answers.style import SERIES, share_range, tidy
from seqlaw.answers.words import Side, describe_teacher, tested_words
from seqlaw.model.amount import amount
from seqlaw.model.assumptions import teacher_flags
from seqlaw.model.flags import Flag
from seqlaw.model.schedule import Schedule, kind_name
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes, Teacher
from seqlaw.planning import plan as planning
from seqlaw.planning.budget import Allocation, Budget
from seqlaw.planning.corollary import SIZES, Exponents
from seqlaw.planning.finite import FinitePlan
from seqlaw.planning.program import SETTINGS, Program
from seqlaw.rungs.rows import with_sums
from seqlaw.rungs.rung import Progress
from seqlaw.rungs.terms import SUMS, TERMS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PROGRAMS = {
    "corollary": "corollary, as printed",
    "paper": "paper: spend all, conditions",
    "proved": "proved: ceilings, conditions",
    "free": "free: ceilings, risk alone",
}
"""What each row of the rates assumes."""


@dataclass(frozen=True, kw_only=True)
class Plan(Answer, planning.Plan):
    """What to do with compute C and tokens T."""

    flops: bool = False
    """Whether compute is spoken of in FLOPs."""
    command: ClassVar[str] = "plan"
    pictures: ClassVar[tuple[int, float, float]] = (2, 8.8, 3.8)

    @property
    def setting(self) -> Setting:
        """The student that is recommended."""
        best = self.finite.best
        return Setting(
            teacher=self.teacher,
            M=best.M,
            N=best.N,
            P=best.P,
            d=self.d,
            schedule=self.schedule.with_steps(best.L),
            eval_length=self.eval_length,
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Where the corollary, the programs and the optimum differ, and why, in plain words."""
        return (*_rate_notes(self), *finite_notes(self), *_confirmed(self))

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
        law, best, risk = self.corollary, self.finite.best, self.finite.risk
        seen = self.confirmation
        return {
            "regime": self.regime,
            "phase": self.phase,
            "K": self.K,
            "tau": self.tau,
            "tau_crit": None if law is None else law.tau_crit,
            "corollary": None
            if law is None
            else {**self._sizes(law.exponents), "exponents": asdict(law.exponents)},
            "program": {name: self._program(self.programs[name]) for name in SETTINGS},
            "finite": {
                **_spent(best),
                "terms": with_sums({name: getattr(risk, name) for name in TERMS}),
                "accuracy": dict(risk.accuracy),
                "eval_length": risk.eval_length,
                "flat": self.finite.flat,
                "isoflop": [_spent(point) for point in self.finite.isoflop],
                "by_length": [_spent(point) for point in self.finite.by_length],
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

    def _sizes(self, exponents: Exponents) -> dict[str, float]:
        """The sizes that exponents mean at this K, with constants of one."""
        powers = {s: float(self.K ** getattr(exponents, s)) for s in SIZES}
        return {"M": powers["M"], "N": powers["N"], "P": powers["P"], "L": powers["R"] / self.schedule.gamma}

    def _program(self, result: Program | None) -> dict[str, Any] | None:
        if result is None:
            return None
        return {
            **{s: self.K ** getattr(result.exponents, s) for s in SIZES},
            "risk": result.exponents.risk,
            "exponents": asdict(result.exponents),
            "ranges": result.ranges,
            "binding": result.binding,
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        best, risk = self.finite.best, self.finite.risk
        unit, compute = (planning.FLOPS_PER_UNIT, "FLOPs") if self.flops else (1, "compute")
        yield Sentence(describe_teacher(self.teacher))
        why = " (the default: d never limits M)" if self.d_by_default else ""
        yield Sentence(
            f"Regime {self.regime}, d = {amount(self.d)}{why}, tested at {tested_words(self.eval_length)}"
        )
        yield Table(
            rows=[(s, f"{getattr(best, s):,}", *map(amount, self.finite.flat[s])) for s in "MNPL"],
            header=("size", "best", "1 % from", "to"),
            title=f"Least risk with {amount(best.tokens)} of {amount(self.budget.tokens)} tokens "
            f"and {amount(best.compute * unit)} of {amount(self.budget.compute * unit)} {compute}",
        )
        least = min(p.reducible for p in self.finite.by_length)  # of the same, quicker sums
        yield Table(
            rows=[
                (amount(p.P), f"{p.reducible / least:.2f}", *map(amount, (p.M, p.N, p.L)))
                for p in self.finite.by_length
            ],
            header=("if P were", "risk over the best", "M", "N", "L"),
        )
        rows = [(name, getattr(risk, name), risk.accuracy.get(name, "")) for name in (*TERMS, *SUMS)]
        if self.confirmation is not None:
            seen = self.confirmation.risk
            error = seen.standard_error.get("reducible", math.nan)
            sampled = f"± {error:.2g}, at d = {self.confirmation.d}"
            rows.insert(-1, ("reducible, sampled", seen.reducible, sampled))
        yield Table(rows=rows, header=("term", "value", "uncertainty"))
        yield from self._rates()
        yield from map(Note, self.notes)

    def _rates(self) -> Iterable[Block]:
        """The corollary and the three programs, as powers of K and as sizes."""
        if self.corollary is None:
            return
        lines = [(PROGRAMS["corollary"], self.corollary.exponents)]
        lines += [(PROGRAMS[name], p.exponents) for name, p in self.programs.items() if p is not None]
        yield Table(
            rows=[(name, *(f"{getattr(e, s):.4f}" for s in (*SIZES, "risk"))) for name, e in lines],
            header=("powers of K", *SIZES, "risk"),
            title=f"Rates in powers of K = gamma C = {amount(self.K)}; T = K^{self.tau:.3g}, {self.phase}",
        )
        yield Table(
            rows=[(name, *(amount(x) for x in self._sizes(e).values())) for name, e in lines],
            header=("sizes", "M", "N", "P", "L"),
            title="The same as sizes, with every constant one: rates do not know the constants.",
        )

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """The recommended student, then the best at other widths and lengths."""
        risk = self.finite.risk
        terms = with_sums({name: getattr(risk, name) for name in TERMS})
        rows = [{"choice": "best"} | parameters(self.setting) | terms]
        for choice, points in (("isoflop", self.finite.isoflop), ("by_length", self.finite.by_length)):
            for point in points:
                setting = replace(
                    self.setting, M=point.M, N=point.N, P=point.P, schedule=self.schedule.with_steps(point.L)
                )
                rows.append({"choice": choice} | parameters(setting) | {"reducible": point.reducible})
        return [row | {"tokens": row["N"] * row["P"]} for row in rows]

    def flagged(self) -> Sequence[Flag]:
        return self.flags

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


def _spent(point: Allocation) -> dict[str, Any]:
    return asdict(point) | {"compute": point.compute, "tokens": point.tokens}


def _rate_notes(plan: Plan) -> list[str]:
    """Where the corollary and the three programs differ, and why."""
    if isinstance(plan.teacher, Modes):
        return ["The teacher is given as arrays: no exponents, so neither corollary nor program applies."]
    law = plan.corollary
    if teacher_flags(plan.teacher):
        return ["Outside the theorem (see the flags), so neither corollary nor program applies."]
    if law is None:
        return [f"K = gamma * C = {plan.K:.3g} is not above 1: rates say nothing at this budget."]
    notes = []
    theta, r, tau, printed = plan.teacher.theta, plan.teacher.r, plan.tau, law.exponents.risk
    paper, proved, free = (plan.programs[name] for name in SETTINGS)
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


def finite_notes(plan: planning.Plan) -> list[str]:
    """What a reader of the finite optimum should know."""
    best, budget = plan.finite.best, plan.budget
    notes = []
    if plan.eval_length is None:
        notes.append(
            "Tested at the training length, as in the paper: allocations of different P take different "
            "tests, so P is chosen partly for an easier one. Give a test length to compare them fairly."
        )
    else:
        rates = (
            "" if isinstance(plan.teacher, Modes) else "; the rates are about tests at the training length"
        )
        notes.append(f"Tested at length {plan.eval_length}, whatever the training length{rates}.")
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
    if len(plan.finite.by_length) > 1:  # else there was nothing to choose
        notes += _length_notes(plan.finite, budget)
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


def _confirmed(plan: Plan) -> list[str]:
    if plan.unconfirmed:
        return ["Not checked by sampling: the optimum is too large to simulate."]
    if plan.confirmation is None:
        return []
    seen, told, d = plan.confirmation.risk, plan.confirmation.told, plan.confirmation.d
    error = seen.standard_error["reducible"]
    near = abs(seen.reducible - told.reducible) < 3 * error + told.reducible / plan.finite.best.M
    return [
        f"Sampled at these sizes with d = {d}: {seen.reducible:.3g} ± {error:.1g}, which "
        f"{'agrees with' if near else 'DIFFERS from'} the equivalent's {told.reducible:.3g} at that d."
    ]


def plan(
    teacher: Teacher | Modes | str,
    budget: Budget,
    *,
    schedule: Schedule | str = "wsd",
    d: float | None = None,
    eval_length: int | None = None,
    confirm: bool | None = None,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> Plan:
    """The allocation of a budget; `schedule` gives the kind, shape and peak step (by name: γ = 0.1).

    d defaults to infinitely many modes. `confirm` samples the optimum on the sampled rung; by default where
    the frozen filter is flagged. That can take minutes: it runs on `workers` threads and tells `progress`.
    """
    found = planning.plan(
        teacher,
        budget,
        schedule=schedule,
        d=d,
        eval_length=eval_length,
        confirm=confirm,
        seed=seed,
        workers=workers,
        progress=progress,
    )
    return Plan(**{f.name: getattr(found, f.name) for f in fields(planning.Plan)})
