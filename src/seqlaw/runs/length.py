"""Where runs were tested: whether an effect of length may be the test's, and how much of it is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError
from seqlaw.model.flags import Flag, flag
from seqlaw.runs.law import Estimate, Fitted, bootstrap, estimate, fit_form
from seqlaw.runs.table import Runs, positive_column, read_runs

_LENGTH = re.compile(r"(?i)(?:p|.*len.*|.*context.*|ctx.*)")
CLAIMED = 0.99
"""The confidence from which a part of the effect is said to be there: of two parts, neither in error."""


@dataclass(frozen=True, kw_only=True)
class LengthEffect:
    """The change of log loss from the shortest to the longest training length, by what causes it."""

    column: str
    low: float
    high: float
    tested: float | None
    """The common test length; None where the table does not say it."""
    own: Estimate
    """With each run tested at its own length."""
    training: Estimate
    """With all runs tested at the common length."""
    test: Estimate
    """The difference: own less training."""
    shown: tuple[str, ...]
    """Of training and test those whose interval at 99 % leaves out zero."""


def length_flags(frame: Any, runs: Runs, tested_at: str | None) -> list[Flag]:
    """Whether an effect of a length could be the test's: at which length each run was tested.

    A test length that is itself a term is modelled only if a training length beside it is another term.
    """
    lengths = [name for name in runs.columns if _LENGTH.fullmatch(name.rpartition(".")[2])]
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


def length_effect(
    fitted: Fitted, draws: Array, runs: Runs, common: Any, own: Flag, read: Mapping[str, Any], level: float,
    seed: int,
) -> LengthEffect:  # fmt: skip
    """What of the effect of length is the test's: `common` has runs of the law tested at one length.

    The same runs are redrawn together, so that what is common to both tables cancels in the difference.
    """
    column, tested_at = str(own["column"]), str(own["tested_at"])
    known, tested = [str(name) for name in common], None
    if tested_at != column and tested_at in known:
        tests = np.unique(positive_column(common, tested_at, "common"))
        if tests.size > 1:
            rule = f"must have runs tested at one length; {tested_at} has {tests.size}"
            raise InputError("common", rule, float(tests[-1]))
        tested = float(tests[0])
    other = _aligned(read_runs(common, columns=fitted.form.columns, field="common", **read), runs)
    there = fit_form(fitted.form, other)
    low, high = float(runs.columns[column].min()), float(runs.columns[column].max())
    place = {name: np.full(2, value) for name, value in fitted.middle.items()} | {
        column: np.array([low, high])
    }

    def change(fit: Fitted, p: Array | None = None) -> Array:
        found = fit.log_loss(place, p)
        return np.asarray(found[:, 1] - found[:, 0])

    here, then = change(fitted, draws), change(there, bootstrap(there, other, len(draws), seed))
    parts = {"own": (change(fitted)[0], here), "training": (change(there)[0], then)}
    parts["test"] = (parts["own"][0] - parts["training"][0], here - then)
    ends = [(1 - CLAIMED) / 2, (1 + CLAIMED) / 2]
    sure = {name: np.quantile(drawn, ends) for name, (_, drawn) in parts.items()}
    return LengthEffect(
        column=column,
        low=low,
        high=high,
        tested=tested,
        **{name: estimate(*pair, level) for name, pair in parts.items()},
        shown=tuple(name for name in ("training", "test") if sure[name][0] * sure[name][1] > 0),
    )


def _aligned(other: Runs, runs: Runs) -> Runs:
    """The rows of `other` in the order of `runs`, where both have the same sizes; else as they are."""
    if other.n != runs.n:
        return other
    sizes, mine = ([one.columns[name] for name in runs.columns] for one in (other, runs))
    order = np.empty(runs.n, dtype=int)
    order[np.lexsort(mine)] = np.lexsort(sizes)
    if not all(np.allclose(x[order], y, rtol=1e-9) for x, y in zip(sizes, mine, strict=True)):
        return other
    return other.picked(order)
