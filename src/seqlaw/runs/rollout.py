"""How wrong a law becomes beyond the runs that it was fitted to, measured in the table itself.

A rollout fits the runs that are smaller along one axis (the cost, or a column) and predicts the larger ones.
The distance d of a run is how many e-folds it lies beyond the fitted runs, in cost or in its farthest column.
A line through zero in d, fitted to the errors of one rollout, has a slope b, and by the scatter of the runs
and by redrawn tables a variance v. Slopes of an axis have mean square v + τ²: τ² is the estimate of
DerSimonian and Laird, not below zero, averaged over the axes. Predictions of runs without a loss get an error
of τ·d beside the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc

from seqlaw.model.checks import Array, InputError
from seqlaw.model.flags import Flag, flag
from seqlaw.model.randomness import generator
from seqlaw.runs.form import Form
from seqlaw.runs.law import Estimate, Fitted, counts, estimate, refit
from seqlaw.runs.solve import minimise, start_points
from seqlaw.runs.table import FEWEST_SIZES, Runs, positive_column

CUTS = (0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
"""The shares of the runs that rollouts are fitted to."""
_REPLICATES = 20  # redrawn tables a rollout: its variance to a third
_STARTS = 4
_SPARE = 8  # runs beyond the numbers of a law that a rollout must have: else its own scatter is a guess
_PREDICTED = 3  # runs that it must predict
_OUTLIER = 2.5  # scatters beyond the line: as far as an error of one run counts
_FREEDOM = 3  # the degrees of freedom of τ: rollouts of one axis share most of their runs
_CHANCE = 0.01
_BINS, _IN_A_BIN = 6, 8


@dataclass(frozen=True, kw_only=True)
class Reach:
    """How far the runs of a table reach, and how large a run is: its cost, or the product of its columns."""

    label: str
    """What the size is called: a formula in the columns."""
    size: Callable[[Mapping[str, Array]], Array]
    low: Mapping[str, float]
    high: Mapping[str, float]
    largest: float

    @classmethod
    def of(
        cls, columns: Mapping[str, Array], size: Callable[[Mapping[str, Array]], Array], label: str = ""
    ) -> Reach:
        return cls(
            label=label,
            size=size,
            low={name: float(x.min()) for name, x in columns.items()},
            high={name: float(x.max()) for name, x in columns.items()},
            largest=float(size(columns).max()),
        )

    def beyond(self, columns: Mapping[str, Array]) -> Array:
        """The largest factor by which a run lies outside: in size, or in a column; 1 inside."""
        found = np.maximum(1.0, self.size(columns) / self.largest)
        for name, low in self.low.items():
            found = np.maximum(found, np.maximum(columns[name] / self.high[name], low / columns[name]))
        return np.asarray(found)


@dataclass(frozen=True, kw_only=True)
class Drift:
    """What the rollouts of a table found."""

    rate: float
    """τ: the relative error for a factor e beyond the fitted runs, beside what redrawn tables show."""
    rollouts: int
    axes: Mapping[str, float]
    """τ along each axis."""

    def errors(self, beyond: Array, draws: int, rng: np.random.Generator) -> Array:
        """Errors of the log loss at distances (rows), shape (draws, rows): τ·d·t of Student's t."""
        return np.asarray(self.rate * np.log(beyond) * rng.standard_t(_FREEDOM, (draws, beyond.size)))


def measure_drift(fitted: Fitted, runs: Runs, reach: Reach, seed: int) -> Drift | None:
    """Rollouts along the size and along each column; None where the table has too few runs for one."""
    form = fitted.form
    cuts = list[tuple[str, Any, Array]]()  # axis, the runs fitted, log distance of all
    for axis, x in _axes(runs, reach).items():
        for share in CUTS:
            small = x <= np.quantile(x, share)
            inside = {name: values[small] for name, values in runs.columns.items()}
            sizes = min(np.unique(values).size for values in inside.values())
            known = any(a == axis and np.array_equal(small, other) for a, other, _ in cuts)
            if small.sum() < form.size + _SPARE or sizes < FEWEST_SIZES or known:
                continue
            far = np.log(Reach.of(inside, reach.size).beyond(runs.columns)) * ~small
            if (far > 0).sum() >= _PREDICTED:
                cuts.append((axis, small, far))
    if not cuts:
        return None
    p = _fits(fitted, runs, np.array([small for _, small, _ in cuts], dtype=float), seed)
    measured, scatter = np.log(runs.loss), fitted.scatter(fitted.rest(runs))
    squares: dict[str, list[tuple[float, float]]] = {}
    for (axis, _, far), own in zip(cuts, p, strict=True):
        predicted = fitted.log_loss(runs.columns, own)
        weight = far / np.sum(far**2)
        off = measured - predicted[0]
        slope = float(weight @ off)
        for _ in range(5):  # a wrong run counts no more than 2.5 scatters from the line
            line = slope * far
            slope = float(weight @ (line + np.clip(off - line, -_OUTLIER * scatter, _OUTLIER * scatter)))
        chance = float(np.mean(((predicted[1:] - predicted[0]) @ weight) ** 2))
        squares.setdefault(axis, []).append((slope**2, chance + scatter**2 * float(weight @ weight)))
    excess = {axis: _excess(np.array(found)) for axis, found in squares.items()}
    return Drift(
        rate=float(np.sqrt(np.mean(list(excess.values())))),
        rollouts=len(cuts),
        axes={axis: float(np.sqrt(value)) for axis, value in excess.items()},
    )


def _axes(runs: Runs, reach: Reach) -> dict[str, Array]:
    """The size and every column: what runs can be ordered by; of a single column the two are one."""
    sizes = {reach.label: reach.size(runs.columns)} if len(runs.columns) > 1 else {}
    return sizes | dict(runs.columns)


def _excess(found: Array) -> float:
    """τ² of squares b² and variances v, shape (rollouts, 2): (Σ b²/v - K)/Σ 1/v, not below zero."""
    square, v = found.T
    v = np.maximum(v, 1e-30)
    return max(0.0, float(np.sum(square / v - 1) / np.sum(1 / v)))


def _fits(fitted: Fitted, runs: Runs, small: Array, seed: int) -> Array:
    """The numbers of every rollout, its own fit first and then redrawn ones: (rollouts, fits, numbers).

    Its own fit is the best of several starts: the table's law alone would know the runs that are left out.
    """
    form, points = fitted.form, runs.points(fitted.form)
    best, value = minimise(form, points, small, np.repeat(fitted.p[None], len(small), axis=0))
    for start in start_points(form, points, _STARTS):
        found, worth = minimise(form, points, small, np.repeat(start[None], len(small), axis=0))
        best, value = np.where((worth < value)[:, None], found, best), np.minimum(worth, value)
    own = []
    for k, rows in enumerate(small):
        drawn = counts(runs, _REPLICATES, seed, f"rollout-{k}") * rows
        drawn[(drawn > 0).sum(axis=1) <= form.size] = rows
        own.append(drawn)
    drawn = refit(fitted, points, np.concatenate(own), np.repeat(best, _REPLICATES, axis=0))
    return np.concatenate([best[:, None], drawn.reshape(len(small), _REPLICATES, -1)], axis=1)


def pattern_flags(fitted: Fitted, runs: Runs, reach: Reach) -> list[Flag]:
    """Axes along which residuals have a pattern, by the test of Kruskal and Wallis on sixths of the runs.

    It compares ranks, so a wrong run does not decide. Chance raises one in a hundred tables or fewer: the
    level is shared among the axes, and the fit has taken out what it could. Groups count once, in the middle.
    """
    units = int(runs.units.max()) + 1
    size = np.bincount(runs.units)
    rest = np.bincount(runs.units, fitted.rest(runs)) / size
    rank = np.argsort(np.argsort(rest)) + 1.0
    axes = _axes(runs, reach)
    found = []
    for axis, values in axes.items():
        x = np.bincount(runs.units, np.log(values)) / size
        bins = min(_BINS, units // _IN_A_BIN)
        inner = np.quantile(x, np.arange(1, max(bins, 1)) / max(bins, 1))
        which = np.unique(np.searchsorted(np.unique(inner), x), return_inverse=True)[1]
        members = np.bincount(which)
        if members.size < FEWEST_SIZES:
            continue
        off = np.bincount(which, rank) / members - (units + 1) / 2
        p = float(chdtrc(members.size - 1, 12 / (units * (units + 1)) * np.sum(members * off**2)))
        if p < _CHANCE / len(axes):
            middle = [float(np.median(rest[which == k])) for k in range(members.size)]
            numbers = {"p": p, "parts": len(middle), "low": min(middle), "high": max(middle)}
            coupled = fitted.form.kind == "sum" and len(fitted.form.terms) > 1
            found.append(flag("pattern", column=axis, **numbers, coupled=coupled))
    return found


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


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The loss of a run that has none, with the interval of one new run, and how far outside the table."""

    columns: Mapping[str, float]
    loss: Estimate
    beyond: float
    """The largest factor by which its cost or a column lies outside the table's range; 1 inside."""


def columns_ahead(frame: Any, form: Form) -> dict[str, Array]:
    """The columns of a law in a table of runs to predict."""
    if not set(form.columns) <= set(known := [str(name) for name in frame]):
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
