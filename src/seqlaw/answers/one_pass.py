"""The best one pass, and the tokens a step beyond which they are wasted."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from seqlaw.answers.answer import Answer, fields_of
from seqlaw.answers.blocks import Block, Note, Sentence, Table
from seqlaw.answers.plan_words import range_words
from seqlaw.answers.risk import DEARER, parameters, two_digits
from seqlaw.answers.style import SERIES, mark, share_range, tidy
from seqlaw.answers.words import Side, describe_teacher, tested_words
from seqlaw.methods.rows import with_sums
from seqlaw.methods.terms import TERMS
from seqlaw.model.amount import amount
from seqlaw.model.checks import checked
from seqlaw.model.schedule import Schedule, kind_name
from seqlaw.model.teacher import Modes, Teacher
from seqlaw.planning import one_pass as planning
from seqlaw.planning.budget import Budget

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True)
class OnePassPlan(Answer, planning.OnePassPlan):
    """The best (M, b, P, L, γ) for tokens b·P·L and compute b·P·L·M²."""

    command: ClassVar[str] = "plan"
    pictures: ClassVar[tuple[int, float, float]] = (2, 7.6, 3.6)

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        one = self.setting
        each = f"{amount(one.batch or 0)} a step" if one.batch != 1 else "one a step"
        return (
            f"Train M = {one.M:,} once through {amount(one.N)} sequences of {one.P:,}, {each}, "
            f"for {amount(one.schedule.L)} steps with a peak step of {one.schedule.gamma:.3g}; "
            f"{self._critical()}."
        )

    def _critical(self) -> str:
        if math.isinf(self.critical_tokens):
            return "no batch that these tokens allow is too large"
        return f"beyond about {two_digits(self.critical_tokens)} tokens a step bias + variance are {DEARER}"

    def inputs(self) -> Mapping[str, Any]:
        return {
            "teacher": self.teacher,
            "budget": self.budget,
            "schedule": {"kind": kind_name(self.schedule)},
            "d": "inf" if self.d == math.inf else int(self.d),
            "eval_length": self.eval_length,
            "one_pass": True,
        }

    def fields(self) -> Mapping[str, Any]:
        one, risk = self.setting, self.risk
        return {
            "answer": self.sentence,
            "regime": self.regime,
            "batch": one.batch,
            "tokens": one.tokens,
            "finite": {
                **{"M": one.M, "N": int(one.N), "P": one.P, "L": one.schedule.L, "batch": one.batch},
                "gamma": one.schedule.gamma,
                "compute": self.compute,
                "tokens": one.tokens,
                "terms": with_sums({name: getattr(risk, name) for name in TERMS}),
                "accuracy": risk.stated,
                "flat": self.flat,
                "limits": self.limits,
            },
            "by_batch": [run._asdict() for run in self.by_batch],
            "by_length": [run._asdict() for run in self.by_length],
            "by_width": [run._asdict() for run in self.by_width],
            "diagnostics": {**risk.diagnostics, "critical_tokens": self.critical_tokens},
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        one, risk = self.setting, self.risk
        least = risk.reducible
        yield Sentence(self.sentence)
        yield Sentence(describe_teacher(self.teacher))
        why = " (the default: d never limits M)" if self.d_by_default else ""
        yield Sentence(
            f"Regime {self.regime}, d = {amount(self.d)}{why}, tested at {tested_words(self.eval_length)}"
        )
        named = {"M": one.M, "P": one.P, "batch": one.batch or 0}
        yield Table(
            rows=[
                (name, f"{value:,}", *range_words(self.flat[name], self.limits[name], side))
                for name, value in named.items()
            ]
            + [("L", f"{one.schedule.L:,}", "", ""), ("peak step", f"{one.schedule.gamma:.4g}", "", "")],
            header=("size", "best", "within 1 % from", "to"),
            title=f"Least risk with {amount(one.tokens)} of {amount(self.budget.tokens)} tokens "
            f"and {amount(self.compute)} of {amount(self.budget.compute)} compute = b·P·L·M²",
        )
        yield Table(
            rows=[
                (
                    f"{run.P:,}",
                    f"{run.reducible / least:.3g}",
                    *(f"{size:,}" for size in (run.M, run.batch, run.L)),
                )
                for run in self.by_length
            ],
            header=("if P were", "risk over the best", "M", "batch", "L"),
        )
        yield Table(
            rows=[
                (name, value, risk.stated.get(name, ""))
                for name, value in with_sums({name: getattr(risk, name) for name in TERMS}).items()
            ],
            header=("term", "value", "uncertainty"),
        )
        if one.P == self.budget.shortest:
            yield Note(f"the best length, {one.P}, is the least that is considered")
        yield Note(
            "for another width or length the other sizes and the step are chosen anew, for another batch all "
            "but the length; the best and its ranges are good to about 0.3 % of the risk, other lengths to "
            "1 %"
        )

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        terms = with_sums({name: getattr(self.risk, name) for name in TERMS})
        rows: list[dict[str, Any]] = [{"choice": "best"} | parameters(self.setting) | terms]
        for choice in ("by_batch", "by_length", "by_width"):
            rows += [{"choice": choice} | run._asdict() for run in getattr(self, choice)]
        return rows

    def draw(self, axes: Sequence[Axes]) -> None:
        """The least risk at other tokens a step, and at other lengths."""
        for place, name, runs, x in (
            (
                axes[0],
                "tokens a step, batch · P",
                self.by_batch,
                [run.batch * run.P for run in self.by_batch],
            ),
            (axes[1], "length P", self.by_length, [run.P for run in self.by_length]),
        ):
            place.plot(x, [run.reducible for run in runs], color=SERIES[0], marker="o", markersize=4)
            tidy(place, f"{name}, the step tuned", "", "")
        share_range(axes)
        if math.isfinite(self.critical_tokens):
            mark(axes[0], self.critical_tokens, "critical", side="left")
        axes[0].set_ylabel("least reducible risk at this budget")


@checked
def plan_one_pass(
    teacher: Teacher | Modes | str,
    budget: Budget,
    *,
    schedule: Schedule | str = "wsd",
    d: float | None = None,
    eval_length: int | None = None,
) -> OnePassPlan:
    """The best single pass over fresh mini-batches: width, batch, length, steps and step size.

    For tokens batch·P·L and compute batch·P·L·M². `schedule` gives the kind and shape; its step is tuned.
    """
    found = planning.plan_one_pass(teacher, budget, schedule=schedule, d=d, eval_length=eval_length)
    return OnePassPlan(**fields_of(found))
