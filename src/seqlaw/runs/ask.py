"""The door: a table and a question in, the law with all that was asked about it out. Records, no words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError, positive, real, whole
from seqlaw.model.flags import Flag, flag
from seqlaw.model.signature import checked
from seqlaw.runs.allocate import DEFAULT_COST, Allocation, Cost, allocate, make_cost
from seqlaw.runs.compare import Comparison, FormChoice, compare, compare_forms, largest_runs
from seqlaw.runs.form import PAPER, make_form
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
from seqlaw.runs.length import LengthEffect, length_effect, length_flags
from seqlaw.runs.logs import TAKES, read_any
from seqlaw.runs.rollout import (
    Drift,
    Prediction,
    Reach,
    Widening,
    columns_ahead,
    measure_drift,
    pattern_flags,
    predictions,
)
from seqlaw.runs.solve import HUBER
from seqlaw.runs.table import Runs, positive_column, read_runs

_SLOW = 0.1  # an exponent below which a term takes the place of a floor that is missing
_ABOUT = 0.01  # an interval that comes so near to 0 holds it


@dataclass(frozen=True, kw_only=True)
class Term:
    """A_k Π x_c^-e_kc; the coefficient is the term's loss in the middle of the table."""

    label: str
    columns: tuple[str, ...]
    coefficient: Estimate
    exponents: Mapping[str, Estimate]
    at_one: float
    """The coefficient with every column at one, as papers print it."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Numbers:
    """A fit, and its numbers with their intervals."""

    fitted: Fitted
    E: Estimate
    terms: tuple[Term, ...]
    numbers: Mapping[str, Estimate]
    """The exponents, or what the exponents of a preset are made of."""
    q: Estimate
    """How terms are added, loss = E + (Σ t_k^q)^{1/q}; 1 for a sum."""


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Law(Numbers):
    """A law of a table of runs, and what was asked about it."""

    runs: Runs
    draws: Array
    """The numbers (E, A_1 …, φ, 1/q) in redrawn tables, in units of the middle: (bootstraps, numbers)."""
    loss: str
    level: float
    seed: int
    scatter: float
    """Of the runs about the law: 1.4826 times the median of |log measured - log predicted|."""
    influence: tuple[Influence, ...]
    alone: Array
    """What each exponent gains where a run is left out, shape (rows, numbers)."""
    extrapolation: Extrapolation | None
    comparison: Comparison | None = None
    nested: Numbers | None = None
    """Of the law without the term, to be read where the comparison found no evidence of it."""
    length: LengthEffect | None = None
    """What of an effect of length is the test's, where a second table says."""
    forms: FormChoice | None = None
    drift: Drift | None = None
    """How errors grow beyond the table; measured where a prediction or a budget asks for it."""
    cost: Cost | None = None
    allocation: Allocation | None = None
    predictions: tuple[Prediction, ...] = ()
    flags: tuple[Flag, ...] = ()
    asked: Mapping[str, Any]
    """The arguments of `fit_law`; of a table its file, if it was one."""

    @property
    def n(self) -> int:
        return self.runs.n

    @property
    def huber(self) -> float:
        return HUBER


@checked
def fit_law(
    frame: Any,
    *,
    loss: str,
    terms: Sequence[str] | None = None,
    preset: str | None = None,
    without: str | None = None,
    tested_at: str | None = None,
    common: Any = None,
    take: str = TAKES[0],
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
    """The law loss = E + Σ_k A_k Π_c x_c^-e_kc of a table of training runs, one row a run.

    Parameters
    ----------
    frame
        A DataFrame, a .csv or .parquet file, or a log of runs: JSON lines of W&B's API, or a folder of
        Hugging Face `trainer_state.json`, of TensorBoard's event files or of Lightning's `metrics.csv`.
    loss
        The column of the loss.
    terms
        Columns, or products of them: `["params", "tokens", "params*length"]`.
    preset
        In the place of terms: "chinchilla", or "seqlaw-1" and "seqlaw-2", the paper's regimes in the columns
        M, N, P, R.
    without
        A term or a column: does it matter?
    tested_at
        The column of the length that a run was tested at.
    common
        The same runs tested at one length, if `frame` has each tested at its own: what of an effect of length
        is the test's?
    take
        Of a log: "last", the last value of every metric of a run, or "best", the values up to its least loss.
    groups
        A column whose values are redrawn together.
    form
        "sum", or "power-mean": E + (Σ_k t_k^q)^{1/q} of the same terms, q ≥ 1 fitted.
    floor
        E, where you know it.
    cost, budget
        The sizes of least loss at this budget. The cost is a formula in the columns (6*params*tokens), a
        measured column, "transformer" (with attention by length) or "linear" (a recurrent model).
    predict
        A table of runs without a loss.
    bootstraps, level, seed
        How many tables are redrawn, the confidence of the intervals, and the seed of the draws.

    Returns
    -------
    Law
        `.E`, `.terms` and `.numbers` with their intervals; `.predict(frame)` predicts further runs.

    Examples
    --------
    >>> from seqlaw import fit_law
    >>> sizes = [(x, t) for x in (1e6, 1e7, 1e8, 1e9) for t in (1e9, 1e10, 1e11)]
    >>> import pandas
    >>> runs = pandas.DataFrame(sizes, columns=["params", "tokens"])
    >>> runs["loss"] = 1.7 + 400 * runs.params**-0.3 + 900 * runs.tokens**-0.35
    >>> law = fit_law(runs, loss="loss", terms=["params", "tokens"], bootstraps=20)
    >>> round(law.numbers["params"].value, 2)
    0.3
    """
    asked = dict(locals())
    tables = {"file": asked.pop("frame"), "predict": asked.pop("predict"), "common": asked.pop("common")}
    files = {name: str(one) for name, one in tables.items() if isinstance(one, (str, Path))}
    asked |= {"terms": list(terms or []), **files}
    frame = read_any(frame, loss=loss, take=take)
    predict = None if predict is None else read_any(predict, field="predict")
    common = None if common is None else read_any(common, loss=loss, take=take, field="common")
    if not 0 < real("level", level) < 1:
        raise InputError("level", "must lie in (0, 1)", level)
    budget = None if budget is None else positive("budget", budget)
    bootstraps = whole("bootstraps", bootstraps, least=20, most=100_000)
    shape = make_form(terms, preset, form, floor)
    known = [str(name) for name in frame]
    if preset is not None and not set(shape.columns) <= set(known):
        needs = f"needs the columns {', '.join(shape.columns)}; the table has {', '.join(known)}"
        raise InputError("preset", needs, preset)
    runs = read_runs(frame, loss, shape.columns, groups)
    ahead = None if predict is None else columns_ahead(predict, shape)
    if without is not None:
        shape.without(without)  # an error now rather than later
    fitted = fit_form(shape, runs)
    price = _cost(cost, budget, frame, runs, fitted)
    tests = [] if preset in PAPER else length_flags(frame, runs, tested_at)  # the paper tests at P
    own = next((one for one in tests if one.code == "tested-at-own"), None)
    if common is not None and own is None:
        raise InputError("common", "goes with runs each tested at its own length", tested_at)
    draws = bootstrap(fitted, runs, bootstraps, seed)
    weighty, alone = influences(fitted, runs, level)
    reach = _reach(runs, price)
    flags = law_flags(fitted, runs, weighty) + pattern_flags(fitted, runs, reach)
    size = runs.size(shape)
    if price is not None and price.formula is not None:
        used = {*price.free, *price.fixed} & set(known)
        size = price.of({name: positive_column(frame, name, "cost") for name in used})
    drift = None
    if ahead is not None or budget is not None:
        drift = measure_drift(fitted, runs, reach, seed)
        if drift is None:
            flags.append(flag("no-rollout", n=runs.n))

    wider = Widening(reach=reach, drift=drift, seed=seed)
    allocation = None
    if budget is not None:
        assert price is not None
        allocation = allocate(fitted, draws, runs, price, budget, level, wider)
        flags += allocation.flags
    comparison = None if without is None else compare(fitted, runs, without, size, level=level, seed=seed)
    nested = None
    if comparison is not None and comparison.verdict == "no-evidence":
        smaller = fit_form(shape.without(comparison.without), runs)
        again = bootstrap(smaller, runs, bootstraps, seed)
        nested = _numbers(smaller, again, level)
    effect = None
    if common is not None and own is not None:
        read = {"loss": loss, "groups": groups}
        effect = length_effect(fitted, draws, runs, common, own, read, level, seed)
    found = _numbers(fitted, draws, level)
    fixed = preset in PAPER or floor is not None
    alike = [] if fixed else floor_flags(found.E, found.terms, fitted.level, comparison, flags)
    idle = {one["term"] for one in alike if one["refit"]}
    claimed = {c for term in found.terms if term.label not in idle for c in term.columns}
    if nested is not None:
        claimed &= set(nested.fitted.form.columns)
    flags += alike + [one for one in tests if one.code == "tests-differ" or one["column"] in claimed]
    return Law(
        runs=runs,
        draws=draws,
        loss=loss,
        **vars(found),
        level=level,
        seed=seed,
        scatter=fitted.scatter(fitted.rest(runs)),
        influence=tuple(weighty),
        alone=alone,
        extrapolation=_extrapolation(fitted, runs, size),
        comparison=comparison,
        nested=nested,
        length=effect,
        forms=compare_forms(fitted, runs, size, level=level, seed=seed),
        drift=drift,
        cost=price,
        allocation=allocation,
        predictions=() if ahead is None else predictions(fitted, draws, runs, ahead, level, wider),
        flags=tuple(flags),
        asked=asked,
    )


def predict(law: Law, frame: Any) -> tuple[Prediction, ...]:
    """The runs of a table that has the columns of a law, predicted by it."""
    columns, reach = columns_ahead(frame, law.fitted.form), _reach(law.runs, law.cost)
    drift = law.drift or measure_drift(law.fitted, law.runs, reach, law.seed)
    wider = Widening(reach=reach, drift=drift, seed=law.seed)
    return predictions(law.fitted, law.draws, law.runs, columns, law.level, wider)


def _numbers(fitted: Fitted, draws: Array, level: float) -> Numbers:
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
    return Numbers(
        fitted=fitted,
        E=estimate(scale * fitted.p[0], None if form.floor is not None else scale * draws[:, 0], level),
        q=estimate(fitted.q, inverse, level),
        terms=tuple(terms),
        numbers={name: estimate(phi[j], phis[:, j], level) for j, name in enumerate(form.numbers)},
    )


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
            "cost", f"must be given with a budget, unless the law has the columns of {DEFAULT_COST}", None
        )
    return None


def _reach(runs: Runs, cost: Cost | None) -> Reach:
    """How far the table reaches: in the cost if it is a formula, else in the product of the columns."""
    if cost is not None and cost.formula is not None:
        return Reach.of(runs.columns, lambda x: cost.of({**cost.fixed, **x}), cost.text)
    names = tuple(runs.columns)
    return Reach.of(runs.columns, lambda x: np.prod([x[name] for name in names], axis=0), "*".join(names))


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
