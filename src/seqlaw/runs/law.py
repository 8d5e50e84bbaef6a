"""The fit of a table: its numbers, their bootstrap, and what single runs weigh in them."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqlaw.model.checks import Array
from seqlaw.model.flags import Flag, flag
from seqlaw.model.randomness import generator
from seqlaw.runs.form import LARGEST_Q, Form
from seqlaw.runs.solve import HUBER, Points, linearise, minimise, predict, start_points
from seqlaw.runs.table import Runs, enough_rows, table_flags

BOOTSTRAPS = 1000
LEVEL = 0.9
_STARTS = 12
_LEFT_OUT = 400  # runs, each left out of a fit of its own; of larger tables to first order
_DROPPED = 0.02  # the share of the runs that should decide nothing
_RUNS_A_NUMBER = 3  # fewer, and any run may weigh more than chance explains: in 4 of 20 made tables at 2
_WEIGHTY = 2.5  # times what the others account for: 1.3 at most in 60 made tables, 2 in two real ones


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number with its interval and its standard error over the bootstrap; None without one."""

    value: float
    low: float | None = None
    high: float | None = None
    se: float | None = None


@dataclass(frozen=True, kw_only=True)
class Fitted:
    """A form at its best numbers p = (E, A_1 …, φ), and 1/q of a power mean, in units of the middle."""

    form: Form
    p: Array
    middle: Mapping[str, float]
    """The geometric mean of each column."""
    level: float
    """The geometric mean of the loss."""
    objective: float
    """Mean Huber loss of a run (δ = 1e-3)."""

    def log_loss(self, columns: Mapping[str, Any], p: Array | None = None) -> Array:
        """log predicted loss, shape (fits, rows), at the fit or at other numbers p (fits, numbers).

        A column is a number, (rows), or (fits, rows) where every fit has rows of its own.
        """
        names = self.form.columns
        x = np.stack(np.broadcast_arrays(*(np.asarray(columns[name], float) for name in names)), axis=-1)
        u = np.log(x / np.array([self.middle[name] for name in names]))
        return np.asarray(predict(self.form, self.p[None] if p is None else p, u) + np.log(self.level))

    def phi(self, p: Array) -> Array:
        """The numbers that exponents are made of."""
        return np.asarray(p[..., self.form.place])

    @property
    def q(self) -> float:
        """How terms are added: 1 is their sum."""
        return 1.0 if self.form.kind == "sum" else float(1 / self.p[-1])

    def rest(self, runs: Runs) -> Array:
        """log measured minus log predicted, shape (rows)."""
        return np.asarray(np.log(runs.loss) - self.log_loss(runs.columns)[0])

    def scatter(self, rest: Array) -> float:
        """The standard deviation of runs about the law, from the median: relative.

        Least absolute deviations goes through about as many runs as it has numbers: these say nothing.
        """
        free = np.sort(np.abs(rest))[min(self.form.size, rest.size - 1) :]
        return 1.4826 * float(np.median(free))


@dataclass(frozen=True, kw_only=True)
class Influence:
    """What the runs that weigh most do to one number of the law."""

    number: str
    rows: tuple[int, ...]
    """The runs, the most influential first, as many as 2 % of the table."""
    shift: float
    """By how much the number moves without them."""
    expected: float
    """Half of the interval that the scatter of the other runs accounts for, to first order."""


def fit_form(form: Form, runs: Runs) -> Fitted:
    """The best fit from a grid of starts; for a power mean also from the sum's own fit, which is q = 1."""
    enough_rows(runs, form)
    points = runs.points(form)
    starts = start_points(form, points, _STARTS)
    if form.kind != "sum":
        p = fit_form(replace(form, kind="sum"), runs).p
        starts = np.concatenate([starts, [[*p, s] for s in (1.0, 0.8)]])
    found, value = minimise(form, points, np.ones((len(starts), runs.n)), starts)
    best = int(np.argmin(value))
    return Fitted(
        form=form,
        p=found[best],
        middle=dict(zip(form.columns, runs.middle(form.columns).tolist(), strict=True)),
        level=float(np.exp(np.mean(np.log(runs.loss)))),
        objective=float(value[best]) * HUBER / runs.n,
    )


def refit(fitted: Fitted, points: Points, weights: Array, starts: Array | None = None) -> Array:
    """The numbers (fits, numbers) at other weights of the rows (fits, rows), from starts or the fit's own."""
    return _from(fitted, points, weights, starts)[0]


def _from(fitted: Fitted, points: Points, weights: Array, starts: Array | None = None) -> tuple[Array, Array]:
    """The numbers and their objectives at other weights, from starts or the fit's own."""
    starts = np.repeat(fitted.p[None], len(weights), axis=0) if starts is None else starts.copy()
    count = 1 + len(fitted.form.terms)
    # A coefficient at zero has exponents without slope: every replicate may take it up again.
    starts[:, :count] = np.maximum(starts[:, :count], 1e-3)
    return minimise(fitted.form, points, weights, starts, (10 * HUBER, HUBER))


def counts(runs: Runs, replicates: int, seed: int, name: str) -> Array:
    """How often each row is drawn, shape (replicates, rows): rows with replacement, or whole groups."""
    rng = generator(seed, "runs", name)
    which = runs.units
    size = int(which.max()) + 1
    drawn = rng.multinomial(size, np.full(size, 1 / size), size=replicates)
    return np.asarray(drawn[:, which], dtype=float)


def bootstrap(fitted: Fitted, runs: Runs, replicates: int, seed: int) -> Array:
    """The numbers p of the law in redrawn tables, shape (replicates, numbers).

    The better of two fits each, from the table's own numbers and from a start of the grid: a weak term and
    the floor may lie in a long valley, and a replicate should not stay at the end where the table was.
    """
    form, points = fitted.form, runs.points(fitted.form)
    weights = counts(runs, replicates, seed, "bootstrap")
    near, value = _from(fitted, points, weights)
    pool = start_points(form, points, 2 * _STARTS)
    far, other = minimise(form, points, weights, pool[np.arange(replicates) % len(pool)])
    return np.where((other < value)[:, None], far, near)


def estimate(value: float, draws: Array | None, level: float) -> Estimate:
    """A number with the percentiles of its draws."""
    if draws is None or draws.size < 2:
        return Estimate(value=float(value))
    low, high = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2])
    return Estimate(value=float(value), low=float(low), high=float(high), se=float(np.std(draws, ddof=1)))


def influences(fitted: Fitted, runs: Runs, level: float) -> tuple[list[Influence], Array]:
    """For each exponent the runs that move it most, and its change without each run, shape (rows, numbers).

    Every run of up to 400 is left out once. Those that push a number one way hardest, 2 % of the table, are
    left out together: five of 245 may move an exponent far, and each alone a little.
    """
    from scipy.special import ndtri

    points, n = runs.points(fitted.form), runs.n
    middle = fitted.phi(fitted.p)
    smooth = one_step(fitted, points)
    alone = smooth
    if n <= _LEFT_OUT:
        alone = np.asarray(fitted.phi(refit(fitted, points, 1 - np.eye(n))) - middle)
    most = max(1, round(_DROPPED * n))
    sets = [np.argsort(sign * alone[:, j])[:most] for j in range(alone.shape[1]) for sign in (1, -1)]
    weights = np.ones((len(sets), n))
    for k, rows in enumerate(sets):
        weights[k, rows] = 0
    together = fitted.phi(refit(fitted, points, weights)) - middle
    found = []
    for j, number in enumerate(fitted.form.numbers):
        k = 2 * j + int(abs(together[2 * j + 1, j]) > abs(together[2 * j, j]))
        others = np.delete(smooth[:, j], sets[k])
        found.append(
            Influence(
                number=number,
                rows=tuple(int(row) for row in runs.rows[sets[k]]),
                shift=float(together[k, j]),
                expected=float(ndtri((1 + level) / 2) * np.sqrt(np.sum(others**2))),
            )
        )
    return found, alone


def one_step(fitted: Fitted, points: Points) -> Array:
    """What leaving out each run changes to first order, shape (rows, numbers).

    H⁻¹ J_i ψ(r_i) with H = 2f Σ JJᵀ, f the density of the residuals at zero: the asymptotics of least
    absolute deviations, which Huber's loss at δ = 1e-3 nearly is.
    """
    rest, jacobian = (part[0] for part in linearise(fitted.form, points, fitted.p[None]))
    density = 1 / max(math.sqrt(2 * math.pi) * fitted.scatter(rest), 4 * HUBER)
    pull = np.clip(rest / HUBER, -1, 1)
    return fitted.phi(pull[:, None] * (jacobian.T @ np.linalg.pinv(2 * density * jacobian @ jacobian.T)))


def law_flags(fitted: Fitted, runs: Runs, weighty: Sequence[Influence]) -> list[Flag]:
    """What a reader must know of the table and of the fit."""
    found, numbers_fitted = table_flags(runs, fitted.form), fitted.form.size
    units = int(runs.units.max()) + 1
    few = units < _RUNS_A_NUMBER * numbers_fitted
    if few:
        found.append(flag("few-runs", n=units, numbers=numbers_fitted, grouped=units < runs.n))
    for one in weighty:
        if abs(one.shift) > _WEIGHTY * one.expected and not few:
            rows = ", ".join(map(str, one.rows))
            numbers = {"number": one.number, "rows": rows, "shift": one.shift, "expected": one.expected}
            found.append(flag("influential", **numbers, count=len(one.rows), n=runs.n))
    low, high = fitted.form.bounds
    for name, value, least, most in zip(fitted.form.numbers, fitted.phi(fitted.p), low, high, strict=True):
        if value <= least or value >= most:
            found.append(flag("at-bound", number=name, value=float(value)))
    if fitted.q >= LARGEST_Q * (1 - 1e-9):
        found.append(flag("at-bound", number="q", value=fitted.q))
    count = 1 + len(fitted.form.terms)
    for label, coefficient in zip(fitted.form.labels, fitted.p[1:count], strict=True):
        if coefficient <= 0:
            found.append(flag("no-term", term=label))
    return found
