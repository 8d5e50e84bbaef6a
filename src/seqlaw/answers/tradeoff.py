"""Longer or more: the risk along P at a fixed number of tokens."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from seqlaw.answers.answer import Answer, named, shown
from seqlaw.answers.render import Block, Note, Table
from seqlaw.answers.risk import parameters
from seqlaw.answers.style import MARKERS, SERIES, Axes, Figure, share_range, tidy
from seqlaw.answers.words import Side, beaten_words, describe_teacher, regime_words
from seqlaw.model.amount import amount
from seqlaw.model.flags import Flag, merge_flags
from seqlaw.model.lengths import words
from seqlaw.model.setting import Setting
from seqlaw.planning import tradeoff as splits
from seqlaw.planning.budget import PAPER_COST
from seqlaw.planning.tradeoff import OWN

_TERMS = ("approx", "bias", "variance", "cross", "reducible")
_COLUMNS = ("P", "N", "L", "gamma", "tested", "eval_length", "compute", *_TERMS)
WINS = {
    "shorter": "more and shorter sequences win",
    "longer": "fewer and longer sequences win",
    "middle": "a middle length wins",
    "ends": "both ends win over the middle",
}
"""The kind of a verdict in words."""


@dataclass(frozen=True, kw_only=True)
class Tradeoff(Answer, splits.Tradeoff):
    """The curves, and for each test length the range of P around the best that lies within 1 % of it."""

    command: ClassVar[str] = "tradeoff"
    unsaid = frozenset({"cross-rest"})

    @property
    def pictures(self) -> tuple[int, float, float]:  # type: ignore[override]  # one panel a test
        return len(self.best), 3.3 * len(self.best) + 0.4, 3.8

    @property
    def lengths(self) -> list[int]:
        """The training lengths."""
        return [row.P for row in self.curve(OWN)]

    @property
    def tests(self) -> list[int]:
        """The common test lengths."""
        return [int(name) for name in self.best if name != OWN]

    def inputs(self) -> Mapping[str, Any]:
        setting = self.setting
        beyond = {name: getattr(setting, name) for name in ("network", "optimizer") if getattr(setting, name)}
        if self.method != splits.Tradeoff.method:
            beyond = {"method": self.method, **({} if self.draws is None else self.draws.inputs()), **beyond}
        student = named(setting, "teacher", "M", "d", "schedule", "batch")
        asked = named(self, "tokens", "lengths", "tests", "compute", "cost", "tune", "mixture")
        return student | asked | beyond

    def fields(self) -> Mapping[str, Any]:
        rows = [_columns(row) for row in self.rows]
        found = {"regime": self.regime, "rows": rows, "best": self.best}
        return found | ({} if self.mixture is None else {"mixture": [_beside(one) for one in self.held]})

    def blocks(self, side: Side) -> Iterable[Block]:
        setting = self.setting
        own_cost = self.compute is not None or self.cost != PAPER_COST
        head = ("compute",) * own_cost

        def spent(row: splits.Split | splits.Held) -> tuple[str, ...]:
            return (amount(row.compute),) * own_cost

        if self.mixture is not None:
            yield self.sentence
        yield from (self.verdict_words(name) for name in sorted(self.best, key=OWN.__eq__))
        yield describe_teacher(setting.teacher)
        yield Table(
            rows=[
                (amount(row.P), amount(row.N), *spent(row), *self._cells(k))
                for k, row in enumerate(self.curve(OWN))
            ]
            + [
                (
                    words(one.setting.P),
                    amount(one.setting.N),
                    *spent(one),
                    *(_measured(x.risk.reducible, x.risk.standard_error.get("reducible")) for x in self.held),
                )
                for one in self.held[:1]
            ],
            header=("P", "N", *head, "at own length", *(f"at {P}" for P in self.tests)),
            title=f"{regime_words(setting)}: reducible risk "
            f"{'at' if self.compute is None else 'with at most'} {amount(self.tokens)} tokens, "
            f"M={amount(setting.M)}, d={amount(setting.d or 0)}, {self._training()}",
        )
        if any(row.standard_error for row in self.rows):
            yield Note("± is one standard error; all lengths share their sketches")

    def _cells(self, k: int) -> list[float | str]:
        """The reducible risk of a length at each test."""
        here = [self.curve(test)[k] for test in self.best]
        return [_measured(one.reducible, one.standard_error) for one in here]

    def verdict_words(self, tested: str) -> str:
        """Which length is best at one test, and what the worst costs."""
        found, (low, high) = self.verdict(tested), self.best[tested]
        where = (
            f"Tested at length {amount(int(tested))}"
            if tested != OWN
            else "Each tested at its own length, as in the paper"
        )
        if found.kind == "single":
            return f"{where}: only P = {amount(found.best)} was computed."
        if found.kind == "level":
            return f"{where}, length hardly matters: risks differ by {100 * (found.ratio - 1):.2g} % at most."
        best = f"P = {amount(low)}" + (f" to {amount(high)}" if high > low else "")
        beyond = [amount(P) for P in self.near(tested) if not low <= P <= high]
        also = f" (also {', '.join(beyond)}, within 1 %)" if beyond else ""
        wins = f"{where}, {WINS[found.kind]}: {best} is best{also}"
        return f"{wins}; P = {amount(found.worst)} has {found.ratio:.3g} times its reducible risk."

    @property
    def sentence(self) -> str:
        """With a mixture: whether the best single length beats it, at each test."""
        assert self.mixture is not None
        named = words(self.held[0].setting.P)  # as trained on
        return (
            f"Trained on {named}: "
            + "; ".join(
                f"tested {'as trained' if one.tested == OWN else f'at {int(one.tested):,}'} "
                f"{beaten_words(one.ratio, one.error)} (P = {amount(one.best.P)})"
                for one in self.held
            )
            + ". As trained: the mixture on the mixture, a length on that length."
        )

    def _training(self) -> str:
        """How the students were trained."""
        setting, p = self.setting, self.setting.schedule.precondition
        if setting.batch is None:
            size = "the best size at each length" if self.tune else f"size {setting.schedule.gamma:g}"
            steps = f"{amount(setting.schedule.L)} steps of {size}"
        else:
            passes = "one pass" if setting.epochs == 1 else f"{setting.epochs} epochs"
            steps = f"{passes}, {amount(setting.batch)} a step{', the best step at each' * self.tune}"
        method = f"method {self.method}" if self.method != splits.Tradeoff.method else ""
        named = [one.name for one in (setting.network, setting.optimizer) if one is not None]
        return ", ".join(filter(None, (steps, f"p = {p:g}" if p > 0 else "", *named, method)))

    def student(self, row: splits.Split) -> Setting:
        """The setting of a row."""
        schedule = self.setting.schedule.with_steps(row.L).scaled(row.gamma)
        sizes: Any = {} if self.setting.batch else {"N": row.N}
        return replace(self.setting, P=row.P, schedule=schedule, eval_length=row.eval_length, **sizes)

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        rows = [parameters(self.student(row)) | _columns(row) for row in self.rows]
        return [*rows, *(parameters(one.setting) | _beside(one) for one in self.held)]

    def flagged(self) -> Sequence[Flag]:
        flags = merge_flags(self.flags, "P", [row.P for row in self.rows])
        own = {one.code: one for held in self.held for one in held.risk.flags}
        return [*flags, *(one for code, one in own.items() if code not in {each.code for each in flags})]

    def draw(self, axes: Sequence[Axes]) -> None:
        """One panel a test, relative to the shortest sequences; other teachers thin and dashed."""
        for place, tested in zip(axes, self.best, strict=True):
            for k, found in enumerate((self, *self.beside)):
                _draw_curve(place, found, tested, k)
            for held in (one for one in self.held if one.tested == tested):
                level = held.risk.reducible / self.curve(tested)[0].reducible
                place.axhline(level, color=SERIES[2], linewidth=1, linestyle="--", label="the mixture")
            place.axhline(1.0, color="0.6", linewidth=0.8, linestyle=":")
            where = f"all tested at length {int(tested):,}" if tested != OWN else _PAPERS_VIEW
            first = f"reducible risk relative to P = {self.lengths[0]:,}" if place is axes[0] else ""
            tidy(place, "length P of the training sequences", first, where)
        share_range(axes, below=0.2, above=0.2)

    def decorate(self, figure: Figure) -> None:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize="small"
        )
        figure.suptitle(
            f"Longer sequences or more of them? {'The same' if self.compute is None else 'At most'} "
            f"{self.tokens:,} tokens, split",
            fontsize="medium",
        )


def _columns(row: splits.Split) -> dict[str, Any]:
    """A row as plain types; a standard error where there is one."""
    return named(row, *_COLUMNS, *(() if row.standard_error is None else ("standard_error",)))


def _measured(reducible: float, error: float | None) -> float | str:
    return reducible if error is None else f"{amount(reducible, 4)} ± {error:.2g}"


def _beside(held: splits.Held) -> dict[str, Any]:
    """The mixture at one test, as `--json` and rows have it."""
    one, risk = held.setting, held.risk
    return {
        **{"P": str(one.lengths or one.P), "N": int(one.N), "L": one.schedule.L, "gamma": one.schedule.gamma},
        **{"tested": held.tested, "eval_length": str(risk.eval_length), "compute": held.compute},
        **named(risk, *_TERMS),
        **{"best_single": held.best.P, "ratio": held.ratio, "ratio_error": held.error},
    }


_PAPERS_VIEW = "tested at the training length\n(the paper's view)"


def _draw_curve(axes: Axes, answer: splits.Tradeoff, tested: str, k: int) -> None:
    curve = answer.curve(tested)
    x, y = [row.P for row in curve], [row.reducible / curve[0].reducible for row in curve]
    style: dict[str, Any] = {"label": f"Regime {answer.regime}"}
    if k:
        style = {"label": f"Regime {answer.regime}, for comparison", "linestyle": "--", "linewidth": 1}
    axes.plot(x, y, color=SERIES[k], marker=MARKERS[k], markersize=4, **style)
    verdict = "longer wins" if y[-1] < 0.95 else "more wins" if y[-1] > 1.05 else "no difference"
    above, times = y[-1] > 1, max(y[-1], 1 / y[-1])
    axes.annotate(
        f"{verdict}, {times:.{3 if times < 2 else 2}g}×",
        (x[-1], y[-1]),
        textcoords="offset points",
        xytext=(0, 6 if above else -12),
        ha="right",
        fontsize="small",
        color=SERIES[k],
    )


tradeoff = shown(Tradeoff, splits.tradeoff)
