"""A plan over intervals: one choice for all teachers, what it loses, and how far the optimum moves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields, replace
from typing import TYPE_CHECKING, Any, ClassVar

from seqlaw.answers.answer import fields_of
from seqlaw.answers.blocks import Block, Note, Sentence, Table
from seqlaw.answers.plan import Plan, spent
from seqlaw.answers.risk import parameters
from seqlaw.answers.style import MARKERS, SERIES, few_ticks, tidy
from seqlaw.answers.words import Side
from seqlaw.methods.method import Progress
from seqlaw.model.amount import amount
from seqlaw.model.flags import Flag, merge_flags
from seqlaw.model.setting import Setting
from seqlaw.model.uncertain import Uncertain
from seqlaw.planning import uncertain as planning
from seqlaw.planning.budget import SIZES, Allocation, Search

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LOSES = "loses on average {mean} and at worst {worst}"


@dataclass(frozen=True, kw_only=True)
class UncertainPlan(Plan):
    """The plan of the middle teacher, and what the intervals do to it."""

    uncertain: Uncertain
    over: planning.Over
    pictures: ClassVar[tuple[int, float, float]] = (2, 8.8, 3.8)

    @property
    def setting(self) -> Setting:
        """The student that is recommended: the best single choice."""
        return self.student(self.over.single.allocation)

    @property
    def middle(self) -> Plan:
        """The plan of the middle teacher alone."""
        return Plan(**{f.name: getattr(self, f.name) for f in fields(Plan)})

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        chosen, spread = self.over.single.allocation, self.over.spread["M"]
        sizes = ", ".join(f"{size} = {amount(getattr(chosen, size))}" for size in "MNP")
        low, high = amount(spread.low), amount(spread.high)
        runs = f"runs from {low} to {high}" if low != high else f"is {low}"
        loss = _loss(self.over.single)
        steps = f"for L = {amount(chosen.L)} steps"
        spread_over = "for 8 in 10 teachers drawn"
        return f"Train {sizes} {steps}; the best M {runs} {spread_over}; this single choice {loss}."

    def inputs(self) -> Mapping[str, Any]:
        return {**self.middle.inputs(), "intervals": self.uncertain.intervals, "draws": len(self.over.draws)}

    def fields(self) -> Mapping[str, Any]:
        single, middle = self.over.single, self.over.middle
        return {
            **self.middle.fields(),
            "answer": self.sentence,
            "spread": self.over.spread,
            "regret": {
                **spent(single.allocation),
                "mean": single.mean,
                "worst": single.worst,
                "middle": {"mean": middle.mean, "worst": middle.worst},
            },
            "draws": [
                {
                    **asdict(draw.teacher),
                    "regime": draw.teacher.regime,
                    **spent(draw.best),
                    "regret": draw.regret,
                }
                for draw in self.over.draws
            ],
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        over, chosen = self.over, self.over.single.allocation
        yield Sentence(self.sentence)
        spans = ", ".join(f"{name} {a:.4g} to {b:.4g}" for name, (a, b) in self.uncertain.intervals.items())
        yield Table(
            rows=[
                (size, *map(amount, (getattr(chosen, size), getattr(self.finite.best, size), *_span(spread))))
                for size, spread in over.spread.items()
            ],
            header=("size", "choose", "of the middle", "10 %", "median", "90 %"),
            title=f"The best for {len(over.draws)} teachers drawn from {spans}",
        )
        if over.middle.allocation != over.single.allocation:
            yield Note(f"The optimum of the middle teacher, below, {_loss(over.middle)}.")
        yield Note(
            "A loss is the reducible risk over the least that each drawn teacher allows, minus 1; the choice "
            "is that of least average loss among the optima of the draws and of the middle."
        )
        regimes = Counter(draw.teacher.regime for draw in over.draws)
        if len(regimes) > 1:
            counts = ", ".join(f"{regime} in {n}" for regime, n in sorted(regimes.items()))
            yield Note(f"The intervals do not settle the regime: {counts} of {len(over.draws)} draws.")
        yield Sentence("The plan of the middle teacher:")
        yield from self.middle.blocks(side)

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """The single choice and the middle's optimum under the middle teacher, then each draw's optimum.

        `regret` is the average over the draws, and of a draw what the single choice loses there.
        """
        rows = [
            {"choice": name} | self._row(one.allocation, self.student(one.allocation)) | {"regret": one.mean}
            for name, one in (("single", self.over.single), ("middle", self.over.middle))
        ]
        for draw in self.over.draws:
            student = replace(self.student(draw.best), teacher=draw.teacher)
            rows.append({"choice": "draw"} | self._row(draw.best, student) | {"regret": draw.regret})
        return rows

    def _row(self, chosen: Allocation, student: Setting) -> dict[str, Any]:
        return parameters(student) | {"reducible": chosen.reducible, "tokens": chosen.tokens}

    def flagged(self) -> Sequence[Flag]:
        """Those of the middle's optimum, and those that only draws have, with how many."""
        first: dict[Any, Flag] = {_about(flag): flag for flag in self.flags}
        # The numbers of an assumption that fails differ from draw to draw: the first stands for all.
        found = [[first.setdefault(_about(flag), flag) for flag in draw.flags] for draw in self.over.draws]
        merged = merge_flags(found, "draw", range(1, len(found) + 1))
        return [*self.flags, *(flag for flag in merged if replace(flag, where=None) not in self.flags)]

    def draw(self, axes: Sequence[Axes]) -> None:
        """How far each draw's best sizes lie from the single choice, and what that loses."""
        over, chosen = self.over, self.over.single.allocation
        for k, size in enumerate(SIZES):
            ratios = [getattr(draw.best, size) / getattr(chosen, size) for draw in over.draws]
            axes[0].plot(
                [k] * len(ratios), ratios, color=SERIES[k], marker=MARKERS[k], linestyle="none", alpha=0.5
            )
        axes[0].axhline(1.0, color="0.6", linewidth=0.8, linestyle=":")
        tidy(axes[0], "", "best of a draw over the single choice", "how far the optimum moves")
        axes[0].set_xscale("linear")
        axes[0].set_xticks(range(len(SIZES)), SIZES)
        few_ticks(axes[0])
        shares = [(k + 1) / len(over.draws) for k in range(len(over.draws))]
        for k, (name, lost) in enumerate(
            (
                ("single choice", [draw.regret for draw in over.draws]),
                ("optimum of the middle", [draw.regret_of_middle for draw in over.draws]),
            )
        ):
            percent = [100 * one for one in sorted(lost)]
            axes[1].plot(shares, percent, color=SERIES[k], marker=MARKERS[k], markersize=4, label=name)
        tidy(axes[1], "share of the draws that lose at most this", "lost, %", "what one choice for all loses")
        axes[1].set_xscale("linear")
        axes[1].set_yscale("linear")
        axes[1].legend(frameon=False, fontsize="small")

    def decorate(self, figure: Figure) -> None:
        chosen = self.over.single.allocation
        sizes = "  ".join(f"{size}={getattr(chosen, size):,}" for size in SIZES)
        figure.suptitle(f"{len(self.over.draws)} draws of the intervals: {sizes}", fontsize="medium")


def _span(spread: planning.Spread) -> tuple[float, float, float]:
    return spread.low, spread.median, spread.high


def _loss(choice: planning.Choice) -> str:
    return _LOSES.format(mean=_percent(choice.mean), worst=_percent(choice.worst))


def _percent(share: float) -> str:
    """Two digits: a draw more or less moves the second."""
    return "nothing" if share < 5e-5 else f"{100 * share:.2g} %"


def _about(flag: Flag) -> tuple[str, Any]:
    """What a flag is about: its code, and of which number."""
    return flag.code, dict(flag.numbers).get("of")


def over(
    middle: Plan, uncertain: Uncertain, *, draws: int = planning.DRAWS, progress: Progress | None = None
) -> UncertainPlan:
    """The plan of the middle teacher with the same question asked for each draw."""
    search = Search(
        teacher=middle.teacher,
        d=middle.d,
        schedule=middle.schedule,
        budget=middle.budget,
        eval_length=middle.eval_length,
    )
    found = planning.plan_over(
        uncertain, search, middle.finite, draws=draws, seed=middle.seed, progress=progress
    )
    return UncertainPlan(**fields_of(middle, uncertain=uncertain, over=found))
