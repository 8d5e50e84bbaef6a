"""The door: a table and a question in, the law with all that was asked about it out. Records, no words."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError, positive, real, whole
from seqlaw.model.flags import Flag, flag
from seqlaw.model.randomness import generator
from seqlaw.runs.allocate import DEFAULT_COST, Allocation, Cost, Wider, allocate, make_cost
from seqlaw.runs.compare import Comparison, FormChoice, compare, compare_forms, largest_runs
from seqlaw.runs.form import PAPER, Form, make_form
from seqlaw.runs.law import (
    BOOTSTRAPS,
    LEVEL,
    Estimate,
    Fitted,
    Influence,
    bootstrap,
    estimate,
    fit_form,
    influences,
    law_flags,
    refit,
)
from seqlaw.runs.rollout import Drift, Reach, measure_drift, pattern_flags
from seqlaw.runs.solve import HUBER
from seqlaw.runs.table import Runs, positive_column, read_runs

_SLOW = 0.1  # an exponent below which a term takes the place of a floor that is missing
_ABOUT = 0.01  # an interval that comes so near to 0 holds it
_LENGTH = re.compile(r"(?i)(?:p|.*len.*|.*context.*|ctx.*)")


@dataclass(frozen=True, kw_only=True)
class Term:
    """A_k Π x_c^-e_kc; the coefficient is the term's loss in the middle of the table."""

    label: str
    columns: tuple[str, ...]
    coefficient: Estimate
    exponents: Mapping[str, Estimate]
    at_one: float
    """The coefficient with every column at one, as papers print it."""


@dataclass(frozen=True, kw_only=True)
class Nested:
    """The law without a term that these runs do not speak for, from as many redrawn tables."""

    form: Form
    E: Estimate
    terms: tuple[Term, ...]
    numbers: Mapping[str, Estimate]
    q: Estimate


@dataclass(frozen=True, kw_only=True)
class Extrapolation:
    """The largest fifth of the runs, predicted by the law fitted to the others."""

    rows: tuple[int, ...]
    measured: tuple[float, ...]
    predicted: tuple[float, ...]
    error: float
    """Median of |log predicted - log measured|."""
    lean: float
    """Median of log predicted - log measured: above zero, too pessimistic."""


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """The loss of a run that has none, with the interval of one new run, and how far outside the table."""

    columns: Mapping[str, float]
    loss: Estimate
    beyond: float
    """The largest factor by which its cost or a column lies outside the table's range; 1 inside."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Law:
    """A law of a table of runs, and what was asked about it."""

    fitted: Fitted
    runs: Runs
    draws: Array
    """The numbers (E, A_1 …, φ, 1/q) in redrawn tables, in units of the middle: (bootstraps, numbers)."""
    loss: str
    E: Estimate
    terms: tuple[Term, ...]
    numbers: Mapping[str, Estimate]
    """The exponents, or what the exponents of a preset are made of."""
    q: Estimate
    """How terms are added, loss = E + (Σ t_k^q)^{1/q}; 1 for a sum."""
    level: float
    seed: int
    scatter: float
    """Of the runs about the law: 1.4826 times the median of |log measured - log predicted|."""
    influence: tuple[Influence, ...]
    alone: Array
    """What each exponent gains where a run is left out, shape (rows, numbers)."""
    extrapolation: Extrapolation | None
    comparison: Comparison | None = None
    nested: Nested | None = None
    """The law to read where the comparison found no evidence of a term."""
    forms: FormChoice | None = None
    drift: Drift | None = None
    """How errors grow beyond the table; measured where a prediction or a budget asks for it."""
    cost: Cost | None = None
    allocation: Allocation | None = None
    predictions: tuple[Prediction, ...] = ()
    tested_at: str | None = None
    flags: tuple[Flag, ...] = ()

    @property
    def n(self) -> int:
        return self.runs.n

    @property
    def huber(self) -> float:
        return HUBER


def fit_law(
    frame: Any,
    *,
    loss: str,
    terms: Sequence[str] | None = None,
    preset: str | None = None,
    without: str | None = None,
    tested_at: str | None = None,
    groups: str | None = None,
    form: str = "sum",
    floor: float | None = None,
    cost: str | None = None,
    budget: float | None = None,
    predict: Any = None,
    bootstraps: int = BOOTSTRAPS,
    level: float = LEVEL,
    seed: int = 0,
) -> Law:
    """See `seqlaw.answers.law.fit_law`."""
    if not 0 < real("level", level) < 1:
        raise InputError("level", "must lie in (0, 1)", level)
    budget = None if budget is None else positive("budget", budget)
    bootstraps = whole("bootstraps", bootstraps, least=20, most=100_000)
    shape = make_form(terms, preset, form, floor)
    known = [str(name) for name in frame]
    if len(set(known)) < len(known):
        raise InputError("predict", "must name every column once", ", ".join(known))
    if preset is not None and not set(shape.columns) <= set(known):
        needs = f"needs the columns {', '.join(shape.columns)}; the table has {', '.join(known)}"
        raise InputError("preset", needs, preset)
    runs = read_runs(frame, loss, shape.columns, groups)
    ahead = None if predict is None else _ahead(predict, shape)
    if without is not None:
        shape.without(without)  # an error now rather than later
    fitted = fit_form(shape, runs)
    price = _cost(cost, budget, frame, runs, fitted)
    tests = [] if preset in PAPER else length_flags(frame, runs, tested_at)  # the paper tests at P
    draws = bootstrap(fitted, runs, bootstraps, seed)
    weighty, alone = influences(fitted, runs, level)
    reach = _reach(runs, price)
    flags = law_flags(fitted, runs, weighty) + pattern_flags(fitted, runs, reach)
    size = runs.size(shape) if price is None or price.formula is None else _spent(price, frame)
    drift = None
    if ahead is not None or budget is not None:
        drift = measure_drift(fitted, runs, reach, seed)
        if drift is None:
            flags.append(flag("no-rollout", n=runs.n))

    allocation = None
    if budget is not None:
        assert price is not None
        allocation = allocate(fitted, draws, runs, price, budget, level, _wider(reach, drift, seed))
        flags += allocation.flags
    comparison = None if without is None else compare(fitted, runs, without, size, level=level, seed=seed)
    nested = None
    if comparison is not None and comparison.verdict == "no-evidence":
        smaller = fit_form(shape.without(comparison.without), runs)
        again = bootstrap(smaller, runs, bootstraps, seed)
        nested = Nested(form=smaller.form, **_estimates(smaller, again, level))
    found = _estimates(fitted, draws, level)
    E, parts = found["E"], found["terms"]
    fixed = preset in PAPER or floor is not None
    alike = [] if fixed else floor_flags(E, parts, fitted.level, comparison, flags)
    idle = {one["term"] for one in alike if one["refit"]}
    claimed = {c for term in parts if term.label not in idle for c in term.columns}
    if nested is not None:
        claimed &= set(nested.form.columns)
    flags += alike + [one for one in tests if one.code == "tests-differ" or one["column"] in claimed]
    return Law(
        fitted=fitted,
        runs=runs,
        draws=draws,
        loss=loss,
        **found,
        level=level,
        seed=seed,
        scatter=fitted.scatter(fitted.rest(runs)),
        influence=tuple(weighty),
        alone=alone,
        extrapolation=_extrapolation(fitted, runs, size),
        comparison=comparison,
        nested=nested,
        forms=compare_forms(fitted, runs, size, level=level, seed=seed),
        drift=drift,
        cost=price,
        allocation=allocation,
        predictions=()
        if ahead is None
        else _predictions(fitted, draws, runs, ahead, level, seed, reach, drift),
        tested_at=tested_at,
        flags=tuple(flags),
    )


def predict(law: Law, frame: Any) -> tuple[Prediction, ...]:
    """The runs of a table that has the columns of a law, predicted by it."""
    columns, reach = _ahead(frame, law.fitted.form), _reach(law.runs, law.cost)
    drift = law.drift or measure_drift(law.fitted, law.runs, reach, law.seed)
    return _predictions(law.fitted, law.draws, law.runs, columns, law.level, law.seed, reach, drift)


def _ahead(frame: Any, form: Form) -> dict[str, Array]:
    known = [str(name) for name in frame]
    if len(set(known)) < len(known):
        raise InputError("predict", "must name every column once", ", ".join(known))
    if not set(form.columns) <= set(known):
        raise InputError("predict", f"must have the columns {', '.join(form.columns)}", ", ".join(known))
    return {name: positive_column(frame, name, "predict") for name in form.columns}


def _wider(reach: Reach, drift: Drift | None, seed: int) -> Wider:
    """Errors of the log loss that grow with the distance, shape (count, rows); none where none were found."""

    def errors(columns: Mapping[str, Array], count: int, name: str) -> Array:
        far = reach.beyond(columns)
        rng = generator(seed, "runs", f"drift-{name}")
        return np.zeros((count, far.size)) if drift is None else drift.errors(far, count, rng)

    return errors


def _estimates(fitted: Fitted, draws: Array, level: float) -> dict[str, Any]:
    """E, terms and numbers with their intervals."""
    form = fitted.form
    value, drawn = form.exponents(fitted.phi(fitted.p)), form.exponents(fitted.phi(draws))
    scale = fitted.level
    terms = []
    for k, columns in enumerate(form.terms):
        places = [form.columns.index(name) for name in columns]
        middle = np.log([fitted.middle[name] for name in columns])
        with np.errstate(over="ignore"):
            at_one = scale * fitted.p[1 + k] * np.exp(value[k, places] @ middle)
        terms.append(
            Term(
                label=form.labels[k],
                columns=columns,
                coefficient=estimate(scale * fitted.p[1 + k], scale * draws[:, 1 + k], level),
                exponents={
                    name: estimate(value[k, c], drawn[:, k, c], level)
                    for name, c in zip(columns, places, strict=True)
                },
                at_one=float(at_one),
            )
        )
    phi, phis = fitted.phi(fitted.p), fitted.phi(draws)
    inverse = None if form.kind == "sum" else 1 / draws[:, -1]
    return {
        "E": estimate(scale * fitted.p[0], None if form.floor is not None else scale * draws[:, 0], level),
        "q": estimate(fitted.q, inverse, level),
        "terms": tuple(terms),
        "numbers": {name: estimate(phi[j], phis[:, j], level) for j, name in enumerate(form.numbers)},
    }


def floor_flags(
    E: Estimate, terms: Sequence[Term], level: float, comparison: Comparison | None, flags: Sequence[Flag]
) -> list[Flag]:
    """Terms that the floor could be: their exponents may be 0, or are small where there is no floor.

    `refit` says that the law without the term should be read: not where it was found to matter, where its
    column moves with another, or where no term would be left.
    """
    moving = {one["column"] for one in flags if one.code == "collinear"}
    judged = () if comparison is None or comparison.verdict == "no-evidence" else (comparison.without,)
    slow = []
    for term in terms:
        powers = term.exponents.values()
        may_be_zero = all((e.low or 0) <= _ABOUT and (e.high or 0) >= -_ABOUT for e in powers)
        if may_be_zero or (E.value <= 1e-3 * level and all(abs(e.value) < _SLOW for e in powers)):
            slow.append(term)
    return [
        flag(
            "no-floor",
            term=term.label,
            low=E.low,
            high=E.high,
            refit=len(slow) < len(terms)
            and not moving & set(term.columns)
            and not {term.label, *term.columns} & set(judged),
        )
        for term in slow
    ]


def _cost(cost: str | None, budget: float | None, frame: Any, runs: Runs, fitted: Fitted) -> Cost | None:
    """The cost that was asked for; 6·params·tokens where the law has these columns."""
    if cost is not None:
        return make_cost(cost, frame, runs, fitted)
    if {"params", "tokens"} <= set(fitted.form.columns):
        return make_cost(DEFAULT_COST, frame, runs, fitted)
    if budget is not None:
        raise InputError(
            "cost", f"must be given beside a budget, unless the law has the columns of {DEFAULT_COST}", None
        )
    return None


def _spent(cost: Cost, frame: Any) -> Array:
    names = {*cost.free, *cost.fixed} & {str(name) for name in frame}
    return cost.of({name: positive_column(frame, name, "cost") for name in names})


def _reach(runs: Runs, cost: Cost | None) -> Reach:
    """How far the table reaches: in the cost if it is a formula, else in the product of the columns."""
    if cost is not None and cost.formula is not None:
        return Reach.of(runs.columns, lambda x: cost.of({**cost.fixed, **x}), cost.text)
    names = tuple(runs.columns)
    return Reach.of(
        runs.columns, lambda x: np.exp(np.sum([np.log(x[name]) for name in names], axis=0)), "*".join(names)
    )


def _extrapolation(fitted: Fitted, runs: Runs, size: Array) -> Extrapolation | None:
    large = largest_runs(size)
    if (~large).sum() <= fitted.form.size + 2 or large.all():
        return None
    p = refit(fitted, runs.points(fitted.form), (~large)[None].astype(float))
    predicted = fitted.log_loss(runs.columns, p)[0][large]
    off = predicted - np.log(runs.loss[large])
    return Extrapolation(
        rows=tuple(int(row) for row in runs.rows[large]),
        measured=tuple(runs.loss[large].tolist()),
        predicted=tuple(np.exp(predicted).tolist()),
        error=float(np.median(np.abs(off))),
        lean=float(np.median(off)),
    )


def _predictions(
    fitted: Fitted,
    draws: Array,
    runs: Runs,
    columns: Mapping[str, Array],
    level: float,
    seed: int,
    reach: Reach,
    drift: Drift | None,
) -> tuple[Prediction, ...]:
    """Each row by the fit, with the spread of the law, of one run about it, and of the way beyond the table.

    Residuals are smaller than errors of new runs by √((n - p)/n): p numbers were fitted to them.
    """
    value = np.exp(fitted.log_loss(columns)[0])
    rest = fitted.rest(runs) * np.sqrt(runs.n / max(1, runs.n - fitted.form.size))
    drawn = fitted.log_loss(columns, draws)
    drawn = drawn + generator(seed, "runs", "predict").choice(rest, size=drawn.shape)
    drawn = np.exp(drawn + _wider(reach, drift, seed)(columns, len(drawn), "predict"))
    beyond = reach.beyond(columns)
    return tuple(
        Prediction(
            columns={name: float(x[k]) for name, x in columns.items()},
            loss=estimate(value[k], drawn[:, k], level),
            beyond=float(beyond[k]),
        )
        for k in range(value.size)
    )


def length_flags(frame: Any, runs: Runs, tested_at: str | None) -> list[Flag]:
    """Whether an effect of a length could be the test's: at which length each run was tested.

    A test length that is itself a term is modelled only if a training length beside it is another term.
    """
    lengths = [name for name in runs.columns if _LENGTH.fullmatch(name)]
    if tested_at is None:
        return [flag("test-length", column=name) for name in lengths]
    tests = positive_column(frame, tested_at, "tested_at")
    if np.unique(tests).size == 1:
        return []
    others = [name for name in runs.columns if name != tested_at]
    own = [name for name in others if np.allclose(runs.columns[name], tests, rtol=1e-9)]
    if tested_at in runs.columns and not own:
        if set(lengths) & set(others):
            return []
        own = [tested_at]
    if own:
        return [flag("tested-at-own", column=own[0], tested_at=tested_at)]
    return [flag("tests-differ", tested_at=tested_at, tests=int(np.unique(tests).size))]
