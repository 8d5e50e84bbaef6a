"""A plan in words, numbers and pictures: of the full batch, of one pass, of a mixture, over intervals."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

from seqlaw.answers import plan_words as said
from seqlaw.answers.answer import Answer, named, shown
from seqlaw.answers.plan_rates import rate_fields, rate_notes, rate_tables
from seqlaw.answers.render import Block, Note, Table
from seqlaw.answers.risk import headline, parameters, terms_table
from seqlaw.answers.style import MARKERS, SERIES, Axes, Figure, few_ticks, mark, share_range, tidy
from seqlaw.answers.words import Side, describe_teacher, tested_words
from seqlaw.methods.terms import TERMS, Risk, with_sums
from seqlaw.model.amount import amount
from seqlaw.model.flags import Flag, merge_flags
from seqlaw.model.lengths import Counted
from seqlaw.model.schedule import kind_name
from seqlaw.planning import plan as planning
from seqlaw.planning.budget import PAPER_COST, SIZES, Allocation
from seqlaw.planning.epochs import Epochs
from seqlaw.planning.one_pass import OnePass
from seqlaw.planning.search import FinitePlan
from seqlaw.planning.uncertain import Over


@dataclass(frozen=True, kw_only=True)
class Plan(Answer, planning.Plan):
    """What to do with compute C and tokens T: `plan.best.M`, `plan.setting`, `plan.finite.risk`."""

    command: ClassVar[str] = "plan"
    unsaid = frozenset({"cross-rest"})
    pictures: ClassVar[tuple[int, float, float]] = (2, 8.8, 3.8)

    @property
    def sentence(self) -> str:
        """The answer in a sentence or two."""
        return said.plan_sentence(self)

    @property
    def notes(self) -> tuple[str, ...]:
        """What else is known of the optimum, and where corollary and programs differ from it, and why."""
        once = isinstance(self.finite, OnePass)
        rates = () if once or self.lengths is not None else rate_notes(self)
        return (*rates, *said.finite_notes(self), *said.confirmed(self))

    @property
    def _once(self) -> OnePass | None:
        return self.finite if isinstance(self.finite, OnePass) else None

    @property
    def _full(self) -> FinitePlan:
        assert isinstance(self.finite, FinitePlan)
        return self.finite

    def inputs(self) -> Mapping[str, Any]:
        one_pass = self._once is not None
        step = {} if one_pass else {"gamma": self.schedule.gamma}
        asked: dict[str, Any] = {
            "teacher": self.teacher,
            "budget": self.budget,
            "schedule": {"kind": kind_name(self.schedule), **step},
            "d": "inf" if self.d == math.inf else int(self.d),
            "eval_length": self.eval_length,
        }
        if self.epochs is not None:
            return asked | named(self, "epochs", "batch")
        if one_pass:
            return asked | {"one_pass": True}
        # Of wsd only: the fractions that were used, given or not.
        fractions = {name: getattr(self.schedule.plain, name, None) for name in ("warmup", "decay")}
        asked |= {**fractions, "tune": self.tune, "precondition": self.schedule.precondition}
        asked |= {"confirm": self.confirm, "seed": self.seed}
        if self.uncertain is not None and self.over is not None:
            asked |= {"intervals": self.uncertain.intervals, "draws": len(self.over.draws)}
        return asked if self.lengths is None else asked | {"lengths": self.lengths}

    def fields(self) -> Mapping[str, Any]:
        head = {"answer": self.sentence, "regime": self.regime}
        if self._once is not None:
            return head | self._once_fields(self._once)
        finite, seen = self._full, self.confirmation
        found = {
            **head,
            "phase": self.corollary and self.corollary.phase,
            "K": self.K,
            "tau": self.tau,
            **rate_fields(self),
            "finite": {
                **asdict(finite.best),
                "least": asdict(finite.least),
                **_risk_fields(finite.risk),
                "eval_length": finite.risk.eval_length,
                **named(finite, "flat", "limits"),
                "isoflop": [asdict(point) for point in finite.isoflop],
                "by_length": [asdict(point) for point in finite.by_length],
            },
            "confirmation": seen
            and {"standard_error": seen.risk.standard_error.get("reducible"), "d": seen.d}
            | named(seen.risk, "reducible"),
            "notes": self.notes,
            "flops": {"factor": planning.FLOPS_PER_UNIT, "given_in_flops": self.flops},
        }
        if self.single is not None:
            beside = {"ratio": self.ratio, "ratio_error": self.ratio_error}
            found |= {"finite": self._held(found["finite"]), "single": asdict(self.single.best) | beside}
        return found if self.over is None else found | _over_fields(self.over)

    def _once_fields(self, once: OnePass) -> dict[str, Any]:
        batch = once.setting.batch
        found = {name: value for name, value in asdict(once.best).items() if name != "reducible"}
        repeated: dict[str, Any] = {}
        if isinstance(once, Epochs):
            repeated = {"epochs": once.setting.epochs, "once": once.once._asdict()}
        critical = {} if repeated else {"critical_tokens": once.critical_tokens}
        return {
            "batch": batch,
            "tokens": once.best.tokens,
            **repeated,
            "finite": {
                **found,
                "batch": batch,
                "gamma": once.setting.schedule.gamma,
                **_risk_fields(once.risk),
                **named(once, "flat", "limits"),
            },
            **{name: [run._asdict() for run in getattr(once, name)] for name in _profiles_of(once)},
            "diagnostics": {**once.risk.diagnostics, **critical},
        }

    def _held(self, finite: Mapping[str, Any]) -> dict[str, Any]:
        """The optimum of a mixture, which has no P."""
        P = self.setting.P
        assert self.lengths is not None
        shares = {"lengths": self.lengths.lengths, "shares": self.lengths.shares}
        held = {name: value for name, value in finite.items() if name not in ("by_length", "least", "P")}
        held |= {name: _without_P(finite[name]) for name in ("flat", "limits")}
        held["isoflop"] = [_without_P(point) for point in finite["isoflop"]]
        return held | {"mixture": shares | ({"counts": P.counts} if isinstance(P, Counted) else {})}

    def blocks(self, side: Side) -> Iterable[Block]:
        yield self.sentence
        if self.over is not None:
            yield from self._over_blocks(self.over)
        yield headline(self.finite.risk)
        yield describe_teacher(self.teacher)
        why = " (the default: d never limits M)" if self.d_by_default else ""
        tested = (
            "what each is trained on"
            if self.lengths is not None and self.eval_length is None
            else tested_words(self.eval_length)
        )
        yield f"Regime {self.regime}, d = {amount(self.d)}{why}, tested at {tested}"
        if self.over is None:
            yield self._sizes(side)
        yield self._single_table() if self.single is not None else self._length_table()
        if isinstance(self.finite, Epochs):
            yield _epochs_table(self.finite)
        yield from map(Note, (*said.act_on(self), *said.confirmed(self)))

    def more(self, side: Side) -> Iterable[Block]:
        if self.over is not None:
            yield self._sizes(side)
        yield terms_table(self.finite.risk)
        known = [*said.act_on(self), *said.confirmed(self)]
        if self._once is None and self.lengths is None:
            yield from rate_tables(self)
        yield from (Note(text) for text in self.notes if text not in known)

    def _sizes(self, side: Side) -> Table:
        """The optimum for this teacher, and how far each size may move."""
        unit, compute = (planning.FLOPS_PER_UNIT, "FLOPs") if self.flops else (1, "compute")
        best, finite, once = self.finite.best, self.finite, self._once
        tried = isinstance(once, Epochs)  # its ranges are of the sizes that were tried
        sizes = ("M", "P", "batch") if once else "MNL" if self.lengths is not None else "MNPL"
        rows = [
            (size, f"{_size(finite, size):,}", *self._range(size, side))
            for size in (*sizes, *(["epochs"] if tried else []))
        ]
        if once is not None:
            rows += [
                ("L", f"{best.L:,}", "", ""),
                ("peak step", f"{once.setting.schedule.gamma:.4g}", "", ""),
            ]
        cost = "b·P·L·M²" if once else self.budget.cost
        return Table(
            rows=rows,
            header=("size", "best", "tried, within 1 % from" if tried else "within 1 % from", "to"),
            title=f"Least risk{f' of {said.mixture_words(self)}' if self.lengths is not None else ''}, with "
            f"{amount(best.tokens)} of {amount(self.budget.tokens)} tokens and "
            f"{amount(best.compute * unit)} of {amount(self.budget.compute * unit)} {compute}"
            + ("" if cost == PAPER_COST else f" = {cost}"),
        )

    def _range(self, size: str, side: Side) -> Iterable[str]:
        """The ends of a range; nothing where no other size was as good among those tried."""
        low, high = self.finite.flat[size]
        if isinstance(self.finite, Epochs) and low == high:
            return "", ""
        return said.range_words((low, high), self.finite.limits[size], side)

    def _length_table(self) -> Table:
        runs, third = self.finite.by_length, "batch" if self._once else "N"
        least = min(run.reducible for run in runs)  # of the same, quicker sums
        return Table(
            rows=[
                (
                    amount(run.P),
                    f"{run.reducible / least:.2f}",
                    *(amount(getattr(run, size)) for size in ("M", third, "L")),
                )
                for run in runs
            ],
            header=("if P were", "risk over the best", "M", third, "L"),
        )

    def _single_table(self) -> Table:
        assert self.single is not None
        pairs = (
            (said.mixture_words(self), self.finite.best, "1"),
            (amount(self.single.best.P), self.single.best, f"{self.ratio:.3g} ± {self.ratio_error:.1g}"),
        )
        return Table(
            rows=[
                (name, *map(amount, (a.M, a.N, a.L, a.tokens)), a.reducible, over) for name, a, over in pairs
            ],
            header=("trained at", "M", "N", "L", "tokens", "reducible", "over the mixture"),
        )

    def _over_blocks(self, over: Over) -> Iterable[Block]:
        """How far the best moves over the draws."""
        assert self.uncertain is not None
        spans = ", ".join(f"{name} {a:.4g} to {b:.4g}" for name, (a, b) in self.uncertain.intervals.items())
        yield Table(
            rows=[
                (
                    size,
                    *(amount(getattr(one, size)) for one in (self.best, self.finite.best)),
                    *map(amount, (spread.low, spread.median, spread.high)),
                )
                for size, spread in over.spread.items()
            ],
            header=("size", "choose", "of the middle", "10 %", "median", "90 %"),
            title=f"The best for {len(over.draws)} teachers drawn from {spans}",
        )
        if over.middle.allocation != over.single.allocation:
            yield Note(f"The optimum of the middle teacher {said.loss_words(over.middle)}.")
        yield Note(
            "A loss is relative to the least risk that each drawn teacher allows. The choice has the least "
            "average loss among the optima of the draws and of the middle."
        )
        regimes = Counter(draw.teacher.regime for draw in over.draws)
        if len(regimes) > 1:
            counts = ", ".join(f"{regime} in {n}" for regime, n in sorted(regimes.items()))
            yield Note(f"The intervals do not settle the regime: {counts} of {len(over.draws)} draws.")
        yield "For the middle teacher:"

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """The choice, then what else was looked at: other widths, lengths and batches, or draws."""
        terms = with_sums(named(self.finite.risk, *TERMS))
        if self.over is not None:
            return self._over_rows(self.over)
        if self._once is not None:
            others = [
                {"choice": name} | run._asdict()
                for name in _profiles_of(self._once)
                for run in getattr(self._once, name)
            ]
            return [{"choice": "best"} | parameters(self.setting) | terms, *others]
        rows = [self._row("best", self.best) | terms]
        if self.single is not None:
            single = with_sums(named(self.single.risk, *TERMS))
            rows.append(self._row("single", self.single.best, self.single.best.P) | single)
            return rows + [self._row("by_length", point, point.P) for point in self.single.by_length]
        for choice in ("isoflop", "by_length"):
            rows += [self._row(choice, point) for point in getattr(self.finite, choice)]
        return rows

    def _row(self, choice: str, chosen: Allocation, P: int | None = None) -> dict[str, Any]:
        own = {"reducible": chosen.reducible, "tokens": chosen.tokens}
        return {"choice": choice} | parameters(self.student(chosen, P)) | own

    def _over_rows(self, over: Over) -> list[dict[str, Any]]:
        """`regret` is the average over the draws, and of a draw what the single choice loses there."""
        rows = [
            self._row(name, one.allocation) | {"regret": one.mean}
            for name, one in (("single", over.single), ("middle", over.middle))
        ]
        return rows + [
            replace(self, teacher=draw.teacher)._row("draw", draw.best) | {"regret": draw.regret}
            for draw in over.draws
        ]

    def flagged(self) -> Sequence[Flag]:
        """Those of the optimum, and those that only draws have, with how many."""
        if self.over is None:
            return self.flags
        first: dict[Any, Flag] = {_about(flag): flag for flag in self.flags}
        # The numbers of an assumption that fails differ from draw to draw: the first stands for all.
        found = [[first.setdefault(_about(flag), flag) for flag in draw.flags] for draw in self.over.draws]
        merged = merge_flags(found, "draw", range(1, len(found) + 1))
        return [*self.flags, *(flag for flag in merged if replace(flag, where=None) not in self.flags)]

    def draw(self, axes: Sequence[Axes]) -> None:
        """The least risk under the budgets at other widths or batches and at other lengths.

        Over intervals: how far each draw's best sizes lie from the choice, and what that loses.
        """
        if self.over is not None:
            _draw_moves(axes[0], self.over)
            _draw_losses(axes[1], self.over)
            return
        for place, (name, points, x, star) in zip(axes, self._profiles(), strict=True):
            place.plot(x, [point.reducible for point in points], color=SERIES[0], marker="o", markersize=4)
            here, y = star
            place.plot([here], [y], color=SERIES[1], marker="*", markersize=13, linestyle="none")
            tidy(place, f"{name}, the other sizes chosen anew", "", f"{name.rsplit(' ', 1)[-1]} = {here:,}")
            if self.single is not None:
                place.axhline(self.best.reducible, color=SERIES[1], linewidth=0.9, linestyle="--")
        share_range(axes)  # or a fall of 5 % along P would look as steep as one to a fifth along M
        if self._once is not None and math.isfinite(self._once.critical_tokens):
            mark(axes[0], self._once.critical_tokens, "critical", side="left")
        axes[0].set_ylabel("least reducible risk at this budget")

    def _profiles(self) -> Iterable[tuple[str, Sequence[Any], list[int], tuple[int, float]]]:
        """For each panel its name, the points, where they stand, and the star."""
        best, once = self.best, self._once
        if once is not None:
            each = once.setting.step_tokens
            x = [run.batch * run.P for run in once.by_batch]
            if isinstance(once, Epochs):
                at = [run.epochs for run in once.by_epochs]
                yield "epochs K", once.by_epochs, at, (once.setting.epochs, best.reducible)
            else:
                yield "tokens a step", once.by_batch, x, (each, best.reducible)
            yield "length P", once.by_length, [run.P for run in once.by_length], (best.P, best.reducible)
            return
        other = self._full if self.single is None else self.single
        name = "width M" if self.single is None else "the mixture's width M"
        yield name, self._full.isoflop, [a.M for a in self._full.isoflop], (best.M, best.reducible)
        name = "length P" if self.single is None else "a single length P"
        star = other.best.P, other.best.reducible
        yield name, other.by_length, [a.P for a in other.by_length], star

    def decorate(self, figure: Figure) -> None:
        best = self.best
        trained = said.mixture_words(self) if self.lengths is not None else f"P={best.P:,}"
        sizes = f"M={best.M:,}  N={best.N:,}  {trained}  L={best.L:,}"
        tested = "the training length" if self.eval_length is None else f"length {self.eval_length}"
        of = f"{len(self.over.draws)} draws, " if self.over is not None else ""
        figure.suptitle(f"Regime {self.regime}, {of}tested at {tested}: {sizes}", fontsize="medium")


def _epochs_table(found: Epochs) -> Table:
    names = ("M", "N", "P", "batch", "L")
    return Table(
        rows=[
            (
                amount(run.epochs),
                f"{run.reducible / found.risk.reducible:.2f}",
                *(amount(getattr(run, name)) for name in names),
            )
            for run in found.by_epochs
        ],
        header=("if the epochs were", "risk over the best", *names),
    )


def _profiles_of(once: OnePass) -> tuple[str, ...]:
    more = ("by_epochs",) if isinstance(once, Epochs) else ()
    return ("by_batch", "by_length", "by_width", *more)


def _risk_fields(risk: Risk) -> dict[str, Any]:
    terms = with_sums(named(risk, *TERMS))
    return {"terms": terms, "accuracy": risk.stated}


def _size(finite: FinitePlan | OnePass, size: str) -> int:
    if size in ("batch", "epochs") and isinstance(finite, OnePass):
        return getattr(finite.setting, size) or 0
    return int(getattr(finite.best, size))


def _without_P(sizes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sizes.items() if name != "P"}


def _over_fields(over: Over) -> dict[str, Any]:
    single, middle = over.single, over.middle
    return {
        "spread": over.spread,
        "regret": {
            **asdict(single.allocation),
            **{"mean": single.mean, "worst": single.worst},
            "middle": {"mean": middle.mean, "worst": middle.worst},
        },
        "draws": [
            {
                **asdict(draw.teacher),
                "regime": draw.teacher.regime,
                **asdict(draw.best),
                "regret": draw.regret,
            }
            for draw in over.draws
        ],
    }


def _about(flag: Flag) -> tuple[str, Any]:
    """What a flag is about: its code, and of which number."""
    return flag.code, dict(flag.numbers).get("of")


def _draw_moves(place: Axes, over: Over) -> None:
    chosen = over.single.allocation
    for k, size in enumerate(SIZES):
        ratios = [getattr(draw.best, size) / getattr(chosen, size) for draw in over.draws]
        x = [k] * len(ratios)
        place.plot(x, ratios, color=SERIES[k], marker=MARKERS[k], linestyle="none", alpha=0.5)
    place.axhline(1.0, color="0.6", linewidth=0.8, linestyle=":")
    tidy(place, "", "best of a draw over the choice", "how far the optimum moves")
    place.set_xscale("linear")
    place.set_xticks(range(len(SIZES)), SIZES)
    few_ticks(place)


def _draw_losses(place: Axes, over: Over) -> None:
    shares = [(k + 1) / len(over.draws) for k in range(len(over.draws))]
    lost = {
        "the choice": [draw.regret for draw in over.draws],
        "optimum of the middle": [draw.regret_of_middle for draw in over.draws],
    }
    for k, (name, values) in enumerate(lost.items()):
        percent = [100 * one for one in sorted(values)]
        place.plot(shares, percent, color=SERIES[k], marker=MARKERS[k], markersize=4, label=name)
    tidy(place, "share of the draws that lose at most this", "lost, %", "what one choice for all loses")
    place.set_xscale("linear")
    place.set_yscale("linear")
    place.legend(frameon=False, fontsize="small")


plan = shown(Plan, planning.plan)
