"""The fit of a table: its numbers, their bootstrap, and what single runs weigh in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError, real, whole
from seqlaw.model.flags import Flag, flag
from seqlaw.model.randomness import generator
from seqlaw.runs.form import Form
from seqlaw.runs.solve import HUBER, Points, minimise, predict, start_points
from seqlaw.runs.table import Runs, enough_rows, table_flags

BOOTSTRAPS = 1000
LEVEL = 0.9
_STARTS = 12
_DROPPED = 0.02  # the share of the runs that may decide nothing
_WIDE = 3


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with its interval and its standard error over the bootstrap; None without one."""

    value: float
    low: float | None = None
    high: float | None = None
    se: float | None = None


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A form at its best numbers p = (E, A_1 …, φ), losses and columns in units of their middle."""

    form: Form
    p: Array
    middle: Mapping[str, float]
    """The geometric mean of each column."""
    level: float
    """The geometric mean of the loss."""
    objective: float
    """Mean Huber loss of a run, as the field prints it (δ = 1e-3)."""

    def log_loss(self, columns: Mapping[str, Any], p: Array | None = None) -> Array:
        """log predicted loss, shape (fits, rows), at the fit or at other numbers p (fits, numbers)."""
        x = np.column_stack([np.asarray(columns[name], float) for name in self.form.columns])
        u = np.log(x / np.array([self.middle[name] for name in self.form.columns]))
        return predict(self.form, self.p[None] if p is None else p, u) + np.log(self.level)


def fit_form(form: Form, runs: Runs) -> Fitted:
    """The best fit from a grid of starts."""
    enough_rows(runs, form)
    points = runs.points(form)
    starts = start_points(form, points, _STARTS)
    found, value = minimise(form, points, np.ones((len(starts), runs.n)), starts)
    best = int(np.argmin(value))
    return Fitted(
        form=form,
        p=found[best],
        middle=dict(zip(form.columns, runs.middle(form.columns).tolist(), strict=True)),
        level=float(np.exp(np.mean(np.log(runs.loss)))),
        objective=float(value[best]) * HUBER / runs.n,
    )


def refit(fitted: Fitted, points: Points, weights: Array) -> Array:
    """The numbers (fits, numbers) at other weights of the rows (fits, rows), from the fit's own."""
    starts = np.repeat(fitted.p[None], len(weights), axis=0)
    count = 1 + len(fitted.form.terms)
    # A coefficient at zero has exponents without slope: every replicate may take it up again.
    starts[:, :count] = np.maximum(starts[:, :count], 1e-3)
    return minimise(fitted.form, points, weights, starts, (10 * HUBER, HUBER))[0]


def counts(runs: Runs, replicates: int, seed: int, *names: str) -> Array:
    """How often each row is drawn, shape (replicates, rows): rows with replacement, or whole groups."""
    rng = generator(seed, "runs", *names)
    which = np.arange(runs.n) if runs.groups is None else runs.groups
    size = int(which.max()) + 1
    drawn = rng.multinomial(size, np.full(size, 1 / size), size=replicates)
    return np.asarray(drawn[:, which], dtype=float)


def estimate(value: float, draws: Array | None, level: float) -> Estimate:
    """A number with the percentiles of its draws."""
    if draws is None:
        return Estimate(value=float(value))
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value=float(value), low=float(low), high=float(high), se=float(np.std(draws, ddof=1)))
