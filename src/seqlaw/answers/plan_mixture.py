"""A plan with a mixture of lengths held fixed, beside the best single length under the same budgets."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from seqlaw.answers.blocks import Block, Note, Sentence, Table
from seqlaw.answers.plan import Plan, spent
from seqlaw.answers.plan_words import confirmed
from seqlaw.answers.risk import parameters
from seqlaw.answers.style import SERIES, share_range, tidy
from seqlaw.answers.words import Side, beaten_words, describe_teacher
from seqlaw.methods.rows import with_sums
from seqlaw.methods.terms import SUMS, TERMS
from seqlaw.model.amount import amount, rounded
from seqlaw.model.lengths import Counted, Lengths, one_or_many, words
from seqlaw.model.setting import Setting
from seqlaw.planning import plan as planning
from seqlaw.planning.budget import PAPER_COST, Allocation
from seqlaw.planning.search import FinitePlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class MixturePlan(Plan):
    """The best M, N and L of a mixture, and what the best single length has of its risk."""

    lengths: Lengths
    single: FinitePlan

    def student(self, chosen: Allocation) -> Setting:
        return replace(super().student(chosen), P=one_or_many(self.lengths))

    @property
    def ratio(self) -> float:
        """The risk of the best single length over the mixture's."""
        return self.single.risk.reducible / self.finite.risk.reducible

    @property
    def ratio_error(self) -> float:
        """From the stated accuracy of both."""
        errors = [found.risk.diagnostics["error"] for found in (self.single, self.finite)]
        return self.ratio * math.hypot(*errors)

    @property
    def _named(self) -> str:
        return words(self.setting.P)  # as trained on: of a file's lengths the rarest may have no sequence

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        best, other = self.finite.best, self.single.best
        about = "" if amount(best.N) == rounded(best.N) else "about "
        sizes = ", ".join(f"{size} = {amount(getattr(other, size))}" for size in "MNPL")
        return (
            f"Train M = {amount(best.M)} on {about}{rounded(best.N)} sequences of {self._named} for "
            f"{rounded(best.L)} steps; {beaten_words(self.ratio, self.ratio_error)} ({sizes})."
        )

    @property
    def notes(self) -> tuple[str, ...]:
        return tuple(self._remarks())

    def _remarks(self) -> list[str]:
        tested = (
            "Tested as trained: the mixture on the mixture, a single length at that length. These are "
            "different tests. Give a test length to compare them fairly."
            if self.eval_length is None
            else f"Both tested at length {self.eval_length:,}."
        )
        return [tested, *confirmed(self)]

    def inputs(self) -> Mapping[str, Any]:
        return {**super().inputs(), "lengths": self.lengths}

    def fields(self) -> Mapping[str, Any]:
        found = dict(super().fields())
        P = self.setting.P
        counts = {"counts": P.counts} if isinstance(P, Counted) else {}
        shares = {"lengths": self.lengths.lengths, "shares": self.lengths.shares}
        held = {name: value for name, value in found["finite"].items() if name not in ("by_length", "least")}
        held |= {name: _without_P(held[name]) for name in ("flat", "limits")}
        held["isoflop"] = [_without_P(point) for point in held["isoflop"]]
        return found | {
            "finite": _without_P(held) | {"mixture": shares | counts},
            "single": spent(self.single.best) | {"ratio": self.ratio, "ratio_error": self.ratio_error},
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        best, other, risk = self.finite.best, self.single.best, self.finite.risk
        unit, compute = (planning.FLOPS_PER_UNIT, "FLOPs") if self.flops else (1, "compute")
        yield Sentence(self.sentence)
        yield Sentence(describe_teacher(self.teacher))
        why = " (the default: d never limits M)" if self.d_by_default else ""
        tested = "as trained" if self.eval_length is None else f"at length {self.eval_length:,}"
        yield Sentence(f"Regime {self.regime}, d = {amount(self.d)}{why}, tested {tested}")
        yield Table(
            rows=[(s, f"{getattr(best, s):,}", *self._range(s, side)) for s in "MNL"],
            header=("size", "best", "within 1 % from", "to"),
            title=f"Least risk of {self._named} with {amount(best.tokens)} of {amount(self.budget.tokens)} "
            f"tokens and {amount(best.compute * unit)} of {amount(self.budget.compute * unit)} {compute}"
            + ("" if self.budget.cost == PAPER_COST else f" = {self.budget.cost}"),
        )
        yield Table(
            rows=[
                (name, *map(amount, (a.M, a.N, a.L, a.tokens)), a.reducible, over)
                for name, a, over in (
                    (self._named, best, "1"),
                    (amount(other.P), other, f"{self.ratio:.3g} ± {self.ratio_error:.1g}"),
                )
            ],
            header=("trained at", "M", "N", "L", "tokens", "reducible", "over the mixture"),
        )
        yield Table(
            rows=[(name, getattr(risk, name), risk.stated.get(name, "")) for name in (*TERMS, *SUMS)],
            header=("term of the mixture", "value", "uncertainty"),
        )
        yield from map(Note, self._remarks())

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """The mixture's student, the best single length, and other single lengths."""
        rows = [
            {"choice": choice}
            | parameters(student)
            | with_sums({name: getattr(found.risk, name) for name in TERMS})
            | {"tokens": found.best.tokens}
            for choice, student, found in (
                ("best", self.setting, self.finite),
                ("single", super().student(self.single.best), self.single),
            )
        ]
        others = [
            {"choice": "by_length"}
            | parameters(super(MixturePlan, self).student(point))
            | {"reducible": point.reducible, "tokens": point.tokens}
            for point in self.single.by_length
        ]
        return [*rows, *others]

    def draw(self, axes: Sequence[Axes]) -> None:
        """The mixture's least risk at each width, and single lengths beside it."""
        best, other = self.finite.best, self.single.best
        for place, points, size, star, name in (
            (axes[0], self.finite.isoflop, "M", best, "width M of the mixture's student"),
            (axes[1], self.single.by_length, "P", other, "one length P instead"),
        ):
            x = [getattr(point, size) for point in points]
            place.plot(x, [point.reducible for point in points], color=SERIES[0], marker="o", markersize=4)
            here = getattr(star, size)
            place.plot([here], [star.reducible], color=SERIES[1], marker="*", markersize=13, linestyle="none")
            place.axhline(best.reducible, color=SERIES[1], linewidth=0.9, linestyle="--")
            tidy(place, f"{name}, the other sizes chosen anew", "", f"{size} = {here:,}")
        share_range(axes)
        axes[0].set_ylabel("least reducible risk at this budget")

    def decorate(self, figure: Figure) -> None:
        tested = "as trained" if self.eval_length is None else f"at length {self.eval_length}"
        figure.suptitle(
            f"Regime {self.regime}, tested {tested}: {self._named} (dashed) and one length", fontsize="medium"
        )


def _without_P(sizes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sizes.items() if name != "P"}
