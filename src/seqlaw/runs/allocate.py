"""The law's best sizes at a cost: a formula in the columns, or a measured column such as hours.

min loss(x) over the columns that both law and cost know, with cost(x) = budget; the others stay at the
table's middle. Every draw of the bootstrap has an optimum of its own, all found together by a pattern search.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError
from seqlaw.model.flags import Flag, flag
from seqlaw.model.formula import Formula
from seqlaw.model.pattern_search import pattern_search
from seqlaw.runs.law import Estimate, Fitted, estimate
from seqlaw.runs.rollout import Widening
from seqlaw.runs.table import Runs, positive_column

COSTS = {"linear": "6*params*tokens", "transformer": "6*params*tokens + 12*layers*width*length*tokens"}
"""Floating-point operations of training. A recurrent model's do not depend on the length. A transformer's
attention adds scores and averages of the values, 2·2·layers·width·length a token, three times with the
backward pass; a causal mask is not counted as a saving."""
DEFAULT_COST = COSTS["linear"]
FAR = 10.0
"""Times beyond the largest run from which a sentence says so."""
_REACH = np.log(1e6)  # e-folds beyond the table that a search may go


def identifier(name: str) -> str:
    """What a column is called in a formula: letters, digits and underscores."""
    text = re.sub(r"\W", "_", name)
    return f"_{text}" if text[:1].isdigit() else text


@dataclass(frozen=True, kw_only=True)
class Cost:
    """A cost that is solved for one column: a + b·x in a formula, a·x^b of a measured column."""

    text: str
    free: tuple[str, ...]
    """The columns that the budget is shared among; the last is solved for."""
    fixed: Mapping[str, float]
    """The columns that stay, at the table's middle."""
    formula: Formula | None = None
    powers: Mapping[str, float] | None = None
    """Exponents of the columns where the cost is a measured column."""
    scale: float = 1.0
    r2: float | None = None

    @property
    def last(self) -> str:
        return self.free[-1]

    def solve(self, values: Mapping[str, Any], budget: Any) -> Array:
        """The last column at which the budget is spent; not a number where the rest costs more."""
        with np.errstate(all="ignore"):
            if self.formula is not None:
                known = {identifier(name): value for name, value in {**self.fixed, **values}.items()}
                constant, slope = self.formula.parts(known)
                found = (budget - constant) / slope
            else:
                assert self.powers is not None
                spent = np.log(self.scale)
                for name in self.free[:-1]:
                    spent = spent + self.powers[name] * np.log(values[name])
                found = np.exp((np.log(budget) - spent) / self.powers[self.last])
            return np.asarray(np.where(found > 0, found, np.nan))

    def of(self, values: Mapping[str, Any]) -> Array:
        """The cost of runs."""
        if self.formula is not None:
            return np.asarray(self.formula(**{identifier(name): x for name, x in values.items()}), float)
        assert self.powers is not None
        logs = sum(power * np.log(np.asarray(values[name], float)) for name, power in self.powers.items())
        return np.asarray(self.scale * np.exp(logs))


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """The best sizes at a budget."""

    budget: float
    cost: Cost
    sizes: Mapping[str, Estimate]
    loss: Estimate
    beyond: float
    """The budget over the cost of the dearest run."""
    largest: Mapping[str, float]
    """Each size over the table's largest."""
    flags: tuple[Flag, ...]


def make_cost(text: str, frame: Any, runs: Runs, fitted: Fitted) -> Cost:
    """The cost that a user writes: a formula, or the name of a measured column."""
    columns = [str(name) for name in frame]
    law = fitted.form.columns
    if not isinstance(text, str):
        raise InputError("cost", "must be a formula or a column", text)
    if text in COSTS and text not in columns:
        text = _model(text, frame, columns)
    if text in columns and text not in law:
        return _measured(text, positive_column(frame, text, "cost"), runs, law)
    names = {identifier(name): name for name in columns}
    plain = Formula(text, tuple(names), field="cost")
    used = [names[name] for name in plain.used]
    free = [name for name in law if name in used]
    if not free:
        raise InputError("cost", f"must speak of a column of the law ({', '.join(law)})", text)
    fixed = {name: _middle(frame, name) for name in used if name not in free}
    for last in reversed(free):
        try:
            formula = Formula(text, tuple(names), identifier(last), field="cost")
        except InputError:
            continue
        order = [name for name in free if name != last] + [last]
        rest = {name: fitted.middle[name] for name in law if name not in free}
        cost = Cost(text=text, free=tuple(order), fixed=fixed | rest, formula=formula)
        _growing(cost, runs)
        return cost
    raise InputError("cost", f"must be linear in one of {', '.join(free)}", text)


def _model(name: str, frame: Any, columns: list[str]) -> str:
    """The formula of a kind of model; layers·width grows with params as a power fitted to the table."""
    needed = [one for one in ("params", "tokens", "length", "layers", "width") if one in COSTS[name]]
    if not set(needed) <= set(columns):
        raise InputError("cost", f"needs the columns {', '.join(needed)} ({COSTS[name]})", name)
    if name == "linear":
        return COSTS[name]
    params, layers, width = (np.log(positive_column(frame, one, "cost")) for one in needed[:1] + needed[3:])
    away, size = params - params.mean(), layers + width
    power = float(away @ size / max(away @ away, 1e-300))
    factor = 12 * np.exp(size.mean() - power * params.mean())
    return f"6*params*tokens + {factor:.4g}*params**{power:.3g}*length*tokens"


def _middle(frame: Any, name: str) -> float:
    return float(np.exp(np.mean(np.log(positive_column(frame, name, "cost")))))


def _growing(cost: Cost, runs: Runs) -> None:
    """Refuse a cost that falls with a size: no budget would bind it."""
    middle = {name: float(np.exp(np.mean(np.log(runs.columns[name])))) for name in cost.free}
    here = float(cost.of({**cost.fixed, **middle}))
    for name in cost.free:
        more = float(cost.of({**cost.fixed, **middle, name: 2 * middle[name]}))
        if not (np.isfinite(more) and more > here > 0):
            raise InputError("cost", f"must be positive and grow with {name}", cost.text)


def _measured(text: str, values: Array, runs: Runs, law: tuple[str, ...]) -> Cost:
    """A measured column as a product of powers of the law's columns, by least squares on logarithms."""
    logs = np.log(np.column_stack([runs.columns[name] for name in law]))
    design = np.column_stack([np.ones(runs.n), logs])
    y = np.log(values)
    found = np.linalg.lstsq(design, y, rcond=None)[0]
    spread = float(np.sum((y - y.mean()) ** 2))
    if spread == 0:
        raise InputError("cost", f"must be a column of several values, {text} has one", float(values[0]))
    powers = dict(zip(law, found[1:].tolist(), strict=True))
    free = tuple(sorted((name for name in law if powers[name] > 0.05), key=lambda name: powers[name]))
    if not free:
        raise InputError("cost", "must grow with a column of the law", text)
    fixed = {name: float(np.exp(logs[:, k].mean())) for k, name in enumerate(law) if name not in free}
    scale = np.exp(found[0] + sum(powers[name] * np.log(value) for name, value in fixed.items()))
    return Cost(
        text=text,
        free=free,
        fixed=fixed,
        powers={name: powers[name] for name in free},
        scale=float(scale),
        r2=1 - float(np.sum((y - design @ found) ** 2)) / spread,
    )


def allocate(
    fitted: Fitted, draws: Array, runs: Runs, cost: Cost, budget: float, level: float, wider: Widening
) -> Allocation:
    """The sizes of least loss at cost = budget, for the fit and for every draw of its numbers.

    `wider` gives the errors that grow with the distance from the table; they are in the loss's interval.
    """
    p = np.concatenate([fitted.p[None], draws])
    ends = {name: (runs.columns[name].min(), runs.columns[name].max()) for name in cost.free}
    reach = {name: (low * np.exp(-_REACH), high * np.exp(_REACH)) for name, (low, high) in ends.items()}

    def sizes_of(z: Array) -> dict[str, Array]:
        """The free columns (fits, tries) at logarithms z (fits, tries, free - 1) of all but the last."""
        values = {name: np.exp(z[..., k]) for k, name in enumerate(cost.free[:-1])}
        values[cost.last] = np.broadcast_to(cost.solve(values, budget), z.shape[:-1])
        return values

    def loss(fits: Any, z: Array) -> Array:
        """log loss (fits, tries) of some fits, infinite where the last column leaves its reach."""
        values = sizes_of(z)
        low, high = reach[cost.last]
        inside = (low <= values[cost.last]) & (values[cost.last] <= high)
        values[cost.last] = np.where(inside, values[cost.last], high)
        return np.where(inside, fitted.log_loss({**cost.fixed, **values}, p[fits]), np.inf)

    starts = np.repeat(_start(cost, fitted, budget)[None], len(p), axis=0)
    bounds = np.log([reach[name] for name in cost.free[:-1]]).reshape(-1, 2)
    moves = np.concatenate([np.eye(len(bounds)), -np.eye(len(bounds))])
    z, best = pattern_search(loss, starts, moves, low=bounds[:, 0], high=bounds[:, 1])
    if not np.isfinite(best[0]):
        raise InputError("budget", "must pay for a run within a million times of the table's sizes", budget)
    sizes = sizes_of(z)
    kept = np.isfinite(best[1:])
    place = {name: np.atleast_1d(x[0]) for name, x in sizes.items()}
    place |= {name: np.atleast_1d(x) for name, x in cost.fixed.items() if name in fitted.form.columns}
    losses = best[1:] + wider(place, len(best) - 1, "allocate")[:, 0]
    beyond = float(budget / np.max(cost.of({**cost.fixed, **runs.columns})))
    flags = [
        flag("no-optimum", column=name)
        for name, (low, high) in reach.items()
        if not 1.01 * low < sizes[name][0] < high / 1.01
    ]
    if beyond > FAR:
        flags.append(flag("extrapolation", beyond=beyond))
    return Allocation(
        budget=budget,
        cost=cost,
        sizes={
            name: estimate(float(sizes[name][0]), sizes[name][1:][kept], level)
            for name in fitted.form.columns
            if name in sizes
        },
        loss=estimate(float(np.exp(best[0])), np.exp(losses[kept]), level),
        beyond=beyond,
        largest={
            name: float(sizes[name][0] / ends[name][1]) for name in fitted.form.columns if name in sizes
        },
        flags=tuple(flags),
    )


def _start(cost: Cost, fitted: Fitted, budget: float) -> Array:
    """The table's middle, all sizes grown alike until the budget is nearly spent."""
    middle = np.log([fitted.middle[name] for name in cost.free[:-1]])
    for shift in np.linspace(_REACH, -_REACH, 400):
        values = {name: np.exp(middle[k] + shift) for k, name in enumerate(cost.free[:-1])}
        if float(cost.solve(values, budget)) >= fitted.middle[cost.last] * np.exp(shift):
            return np.asarray(middle + shift)
    return np.asarray(middle - _REACH)
