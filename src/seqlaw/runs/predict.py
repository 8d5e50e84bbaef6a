"""Runs that have no loss, predicted by a law: the interval of one new run, and how far outside it lies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError
from seqlaw.model.randomness import generator
from seqlaw.runs.form import Form
from seqlaw.runs.law import Estimate, Fitted, estimate
from seqlaw.runs.rollout import Drift, Reach
from seqlaw.runs.table import Runs, positive_column


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The loss of a run that has none, with the interval of one new run, and how far outside the table."""

    columns: Mapping[str, float]
    loss: Estimate
    beyond: float
    """The largest factor by which its cost or a column lies outside the table's range; 1 inside."""


@dataclass(frozen=True, kw_only=True)
class Widening:
    """Errors of the log loss that grow with the distance from the table; none where none were found."""

    reach: Reach
    drift: Drift | None
    seed: int

    def __call__(self, columns: Mapping[str, Array], count: int, name: str) -> Array:
        """Errors (count, rows) at runs of these columns; `name` says what they are drawn for."""
        far = self.reach.beyond(columns)
        if self.drift is None:
            return np.zeros((count, far.size))
        return self.drift.errors(far, count, generator(self.seed, "runs", f"drift-{name}"))


def columns_ahead(frame: Any, form: Form) -> dict[str, Array]:
    """The columns of a law in a table of runs to predict."""
    known = [str(name) for name in frame]
    if len(set(known)) < len(known):
        raise InputError("predict", "must name every column once", ", ".join(known))
    if not set(form.columns) <= set(known):
        raise InputError("predict", f"must have the columns {', '.join(form.columns)}", ", ".join(known))
    return {name: positive_column(frame, name, "predict") for name in form.columns}


def predictions(
    fitted: Fitted, draws: Array, runs: Runs, columns: Mapping[str, Array], level: float, wider: Widening
) -> tuple[Prediction, ...]:
    """Each row by the fit, with the spread of the law, of one run about it, and of the way beyond the table.

    Residuals are smaller than errors of new runs by √((n - p)/n): p numbers were fitted to them.
    """
    value = np.exp(fitted.log_loss(columns)[0])
    rest = fitted.rest(runs) * np.sqrt(runs.n / max(1, runs.n - fitted.form.size))
    drawn = fitted.log_loss(columns, draws)
    drawn = drawn + generator(wider.seed, "runs", "predict").choice(rest, size=drawn.shape)
    drawn = np.exp(drawn + wider(columns, len(drawn), "predict"))
    beyond = wider.reach.beyond(columns)
    return tuple(
        Prediction(
            columns={name: float(x[k]) for name, x in columns.items()},
            loss=estimate(value[k], drawn[:, k], level),
            beyond=float(beyond[k]),
        )
        for k in range(value.size)
    )
