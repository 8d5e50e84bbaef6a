"""The map of where lengths that change help: horizon by test length."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from seqlaw.answers.answer import Answer, fields_of, with_other_presets
from seqlaw.answers.blocks import Block, Note, Sentence, Table
from seqlaw.answers.ladder import sizes
from seqlaw.answers.risk import parameters
from seqlaw.answers.style import SERIES, tidy
from seqlaw.answers.words import Side, describe_teacher, percent_words, regime_words
from seqlaw.model.amount import amount
from seqlaw.model.checks import checked
from seqlaw.model.setting import Setting
from seqlaw.planning import ladder_map as maps
from seqlaw.planning.ladder import CANDIDATES
from seqlaw.planning.ladder_map import HORIZONS, TESTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True, kw_only=True)
class LadderMap(Answer, maps.LadderMap):
    """The phase diagram: where a two-phase ladder beats every single length, by horizon and test length."""

    setting: Setting
    command: ClassVar[str] = "ladder"
    pictures: ClassVar[tuple[int, float, float]] = (2, 8.2, 3.8)

    @property
    def sentence(self) -> str:
        """The answer in one sentence."""
        best = max(self.cells, key=lambda cell: cell.gain)
        if not best.helps:
            return "No ladder of two phases beats the best single length at any of these horizons and tests."
        helped = sum(cell.helps for cell in self.cells)
        return (
            f"Two phases beat the best single length in {helped} of {len(self.cells)} cells, by "
            f"{percent_words(best.gain, best.error)} at most: {best.first:,} and, for the last "
            f"{100 * best.share:.0f} % of {best.L:,} steps, {best.last:,}, tested at {best.eval_length:,}."
        )

    def inputs(self) -> Mapping[str, Any]:
        one = self.setting
        return {
            **{"teacher": one.teacher, "M": one.M, "d": one.d, "schedule": one.schedule},
            **{"tokens": self.tokens, "candidates": self.candidates, "map": True},
            **{"sketches": self.sketches, "seed": self.seed},
        }

    def fields(self) -> Mapping[str, Any]:
        return {"answer": self.sentence, "regime": self.regime, "cells": [_cell(one) for one in self.cells]}

    def blocks(self, side: Side) -> Iterable[Block]:
        one = self.setting
        yield Sentence(self.sentence)
        yield Sentence(describe_teacher(one.teacher))
        yield Table(
            rows=[
                (
                    amount(cell.L),
                    amount(cell.eval_length),
                    amount(cell.single),
                    f"{cell.first:,} then {cell.last:,}",
                    f"{100 * cell.share:.0f} %",
                    f"{100 * cell.gain:.2f} % ± {100 * cell.error:.1g}",
                )
                for cell in self.cells
            ],
            header=("steps", "tested at", "best single P", "best two phases", "last phase", "gain"),
            title=f"{regime_words(one)}: {amount(self.tokens)} tokens, {sizes(one)}",
        )
        yield Note(
            f"mean ± standard error over {self.sketches} sketches, paired; chosen on other sketches; "
            "full batch, each phase with data of its own, to leading order in the data"
        )

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        shared = parameters(self.setting)
        return [shared | _cell(cell) for cell in self.cells]

    def draw(self, axes: Sequence[Axes]) -> None:
        """The gain and the share of the last phase against the horizon, one line a test length."""
        self.draw_beside(axes, ())

    def draw_beside(self, axes: Sequence[Axes], others: Sequence[LadderMap]) -> None:
        """The same with other teachers beside it, dashed."""
        for answer in (self, *others):
            style: dict[str, Any] = {
                "linestyle": "-" if answer is self else "--",
                "marker": "o",
                "markersize": 3.5,
            }
            for k, test in enumerate(dict.fromkeys(cell.eval_length for cell in answer.cells)):
                cells = [cell for cell in answer.cells if cell.eval_length == test]
                label = f"Regime {answer.regime}, tested at {test:,}"
                axes[0].errorbar(
                    [cell.R for cell in cells],
                    [100 * cell.gain for cell in cells],
                    yerr=[100 * cell.error for cell in cells],
                    color=SERIES[k],
                    label=label,
                    **style,
                )
                helped = [cell for cell in cells if cell.helps]
                axes[1].plot(
                    [cell.R for cell in helped],
                    [100 * cell.share for cell in helped],
                    color=SERIES[k],
                    **style,
                )
        axes[0].axhline(0.0, color="0.6", linewidth=0.8, linestyle=":")
        for place, y in (
            (axes[0], "gain over the best single length, %"),
            (axes[1], "last phase, % of steps"),
        ):
            tidy(place, "horizon R", y)
            place.set_yscale("linear")
        axes[0].set_ylim(bottom=max(axes[0].get_ylim()[0], -5.0))
        axes[1].set_xlim(axes[0].get_xlim())

    def decorate(self, figure: Figure) -> None:
        handles, labels = figure.axes[0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False, fontsize="small")
        figure.suptitle("Short first, long last: where it beats every single length", fontsize="medium")

    def draw_file(self, axes: Sequence[Axes]) -> None:
        self.draw_beside(axes, self.other_presets())

    def other_presets(self) -> list[LadderMap]:
        return [
            ladder_map(
                other,
                self.tokens,
                candidates=self.candidates,
                horizons=list(dict.fromkeys(cell.L for cell in self.cells)),
                tests=list(dict.fromkeys(cell.eval_length for cell in self.cells)),
                sketches=self.sketches,
                seed=self.seed,
            )
            for other in with_other_presets(self.setting)
        ]


def _cell(cell: maps.Cell) -> dict[str, Any]:
    names = (
        "L",
        "R",
        "eval_length",
        "single",
        "reducible",
        "first",
        "last",
        "share",
        "gain",
        "error",
        "helps",
    )
    return {name: getattr(cell, name) for name in names}


@checked
def ladder_map(
    setting: Setting,
    tokens: float,
    *,
    candidates: Sequence[int] = CANDIDATES,
    horizons: Sequence[int] = HORIZONS,
    tests: Sequence[int] = TESTS,
    sketches: int = 4,
    seed: int = 0,
) -> LadderMap:
    """The phase diagram of a teacher: the best two-phase ladder against the best single length.

    At each number of steps of `horizons` and each test length of `tests`; full batch, to leading order.
    """
    found = maps.ladder_map(
        setting, tokens, candidates=candidates, horizons=horizons, tests=tests, sketches=sketches, seed=seed
    )
    return LadderMap(**fields_of(found, setting=setting))
