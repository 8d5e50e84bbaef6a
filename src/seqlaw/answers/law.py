"""A law of training runs: exponents with intervals, whether a column matters, the best sizes at a cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from seqlaw.answers import law_words as said
from seqlaw.answers.answer import Answer, named, shown
from seqlaw.answers.render import Block, Note, Table
from seqlaw.answers.style import Axes
from seqlaw.answers.words import Side
from seqlaw.model.amount import amount
from seqlaw.runs import ask
from seqlaw.runs.form import PAPER
from seqlaw.runs.law import Estimate
from seqlaw.runs.logs import read_any
from seqlaw.runs.rollout import Prediction

_SHOWN = 20  # predictions on a page


@dataclass(frozen=True, kw_only=True, eq=False)
class Law(Answer, ask.Law):
    """A law of a table of runs, and what was asked about it."""

    command: ClassVar[str] = "law"
    pictures: ClassVar[tuple[int, float, float]] = (3, 13, 4)
    unsaid = frozenset({"tested-at-own"})  # said in the first lines

    def fields(self) -> Mapping[str, Any]:
        fitted, found, nested = self.fitted, self.comparison, self.nested
        comparison = found and {
            **named(found, "without", "verdict", "rollout", "largest"),
            **{"difference": found.held_out.value, "low": found.held_out.low, "high": found.held_out.high},
            "sentence": said.comparison_sentence(found),
            "moves_with": found.moves_with or None,
            "law_without": nested and named(nested, "E", "terms"),
        }
        length, forms = self.length, self.forms
        return {
            **{"form": fitted.form.kind, "middle": fitted.middle, "objective": fitted.objective},
            **named(self, "q", "E", "terms", "numbers", "n", "huber", "scatter", "drift", "predictions"),
            **named(self, "extrapolation", "influence"),
            "comparison": comparison,
            "length": length and {**vars(length), "sentence": said.effect_sentence(length)},
            "forms": forms and {**vars(forms), "sentence": said.forms_sentence(forms, "python")},
            "allocation": self._allocation(),
            "points": self.tidy_rows(),
        }

    def _allocation(self) -> Mapping[str, Any] | None:
        found = self.allocation
        if found is None:
            return None
        return {
            **named(found, "budget", "sizes", "loss", "beyond", "largest"),
            **{"cost": found.cost.text, "cost_r2": found.cost.r2, "fixed": found.cost.fixed},
            "sentence": said.allocation_sentence(found),
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        yield from said.law_sentences(self, side)
        if self.allocation is not None:
            yield said.allocation_sentence(self.allocation)
            yield from map(Note, said.allocation_notes(self.allocation))
        if self.predictions:
            yield from self._shown(self.predictions).blocks(side)
        yield self._numbers()
        middle = ", ".join(f"{name} = {amount(value, 3)}" for name, value in self.fitted.middle.items())
        yield (
            f"low and high are the ends of the {100 * self.level:.3g} % interval and se is the standard "
            f"error, over {len(self.draws)} redrawn tables. In the middle is the size of a term at {middle}. "
            f"Runs scatter by {100 * self.scatter:.2g} % about the law."
        )
        if self.extrapolation is not None:
            yield said.extrapolation_sentence(self.extrapolation)
        if self.forms is not None:
            yield said.forms_sentence(self.forms, side)
        if self.drift is not None:
            yield said.drift_sentence(self.drift)

    def more(self, side: Side) -> Iterable[Block]:
        yield Table(
            rows=[
                (one.number, ", ".join(map(str, one.rows[:5])), f"{one.shift:+.3f}", f"{one.expected:.3f}")
                for one in self.influence
            ],
            header=("exponent", "most influential rows", "change without them", "expected by chance"),
        )

    def _numbers(self) -> Table:
        paper = self.fitted.form.preset in PAPER
        rows = [("floor E" if self.fitted.form.floor is None else "floor E (given)", *_cells(self.E))]
        if self.fitted.form.kind != "sum":
            rows.append(("power mean's q", *_cells(self.q)))
        if paper:
            rows += [(name, *_cells(one)) for name, one in self.numbers.items()]
        for term in self.terms:
            rows.append((f"{term.label} in the middle", *_cells(term.coefficient)))
            if not paper:
                rows += [(f"e in {name}^-e", *_cells(one)) for name, one in term.exponents.items()]
        return Table(rows=rows, header=("number", "value", "low", "high", "se"))

    def predict(self, frame: Any) -> Predictions:
        """The loss of runs that have none, one a row of `frame`: a DataFrame, or a .csv or .parquet file."""
        table = read_any(frame, field="predict")
        return self._shown(ask.predict(self, table), table.to_dict("records"))

    def _shown(
        self, predictions: tuple[Prediction, ...], given: Sequence[Mapping[str, Any]] = ()
    ) -> Predictions:
        kept: dict[str, Any] = {"loss": self.loss, "level": self.level, "asked": self.asked}
        return Predictions(predictions=predictions, given=given, **kept)

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """One row a run: its columns, loss, what is predicted, and what each exponent gains without it."""
        predicted = np.exp(self.fitted.log_loss(self.runs.columns)[0])
        return [
            {
                "row": int(self.runs.rows[k]),
                **{name: float(values[k]) for name, values in self.runs.columns.items()},
                "loss": float(self.runs.loss[k]),
                "predicted": float(predicted[k]),
                "residual": float(np.log(self.runs.loss[k] / predicted[k])),
                **{f"moves_{name}": float(self.alone[k, j]) for j, name in enumerate(self.numbers)},
            }
            for k in range(self.n)
        ]

    def draw(self, axes: Sequence[Axes]) -> None:
        """The law with the runs, what it leaves over, and the largest runs predicted from the others."""
        from seqlaw.answers.law_plot import draw_extrapolation, draw_law, draw_residuals

        draw_law(self, axes[0])
        draw_residuals(self, axes[1])
        draw_extrapolation(self, axes[2])


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictions(Answer):
    """The predicted loss of runs, with the interval of one new run: a row each."""

    predictions: tuple[Prediction, ...]
    given: Sequence[Mapping[str, Any]]
    """The rows that were predicted, with all their columns."""
    loss: str
    level: float
    asked: Mapping[str, Any]
    command: ClassVar[str] = "law"

    def fields(self) -> Mapping[str, Any]:
        return {"predictions": self.predictions}

    def blocks(self, side: Side) -> Iterable[Block]:
        shown, left = self.predictions[:_SHOWN], len(self.predictions[_SHOWN:])
        where = "--to FILE, or JSON" if side == "cli" else "to_frame()"
        more = f" ({left} more rows: {where})" if left else ""
        yield Table(
            rows=[
                (*map(amount, one.columns.values()), *_cells(one.loss)[:3], f"{one.beyond:.3g}")
                for one in shown
            ],
            header=(*self.predictions[0].columns, self.loss, "low", "high", "outside"),
            title=f"Predicted {self.loss} of one new run{more}. Outside is the factor by which a run lies "
            "beyond the table, in cost or in a column.",
        )

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """One row a run, in their order: its columns, the loss and its interval, how far outside."""
        return [
            {
                **{str(name): value for name, value in row.items()},
                "predicted": one.loss.value,
                **named(one.loss, "low", "high", "se"),
                "outside": one.beyond,
                "level": self.level,
            }
            for row, one in zip(self.given, self.predictions, strict=True)
        ]


def _cells(one: Estimate) -> tuple[Any, ...]:
    return tuple("-" if x is None else x for x in (one.value, one.low, one.high, one.se))


fit_law = shown(Law, ask.fit_law)
