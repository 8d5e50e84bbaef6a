"""A table of training runs, checked: positive losses and columns, groups, and which columns move together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.model.checks import Array, InputError, shown
from seqlaw.model.flags import Flag, flag
from seqlaw.runs.form import Form
from seqlaw.runs.solve import Points

Whole = NDArray[np.integer[Any]]

COLLINEAR = 0.95
"""A column of whose logarithm the others explain more than this share cannot be told from them."""
FEWEST_SIZES = 3
"""Distinct values that a power law beside a floor needs: two fit any exponent."""


@dataclass(frozen=True, kw_only=True)
class Runs:
    """Rows of a table: the loss, the columns of a law, and a number for each row's group."""

    loss: Array
    columns: Mapping[str, Array]
    groups: Whole | None = None
    rows: Whole
    """What each row is called: its place in the table that was read, from 0."""

    @property
    def n(self) -> int:
        return self.loss.size

    @property
    def units(self) -> Whole:
        """What a bootstrap draws and a fold leaves out: rows, or groups of them; numbered from 0."""
        return np.arange(self.n) if self.groups is None else self.groups

    def picked(self, order: Whole) -> Runs:
        """These rows, in this order."""
        return Runs(
            loss=self.loss[order],
            columns={name: x[order] for name, x in self.columns.items()},
            groups=None if self.groups is None else self.groups[order],
            rows=self.rows[order],
        )

    def middle(self, names: Iterable[str]) -> Array:
        """The geometric mean of each column: the unit that coefficients are given in."""
        return np.array([np.exp(np.mean(np.log(self.columns[name]))) for name in names])

    def size(self, form: Form) -> Array:
        """How large a run is where no cost says so: the product of the law's columns."""
        return np.asarray(np.exp(np.sum([np.log(self.columns[name]) for name in form.columns], axis=0)))

    def points(self, form: Form) -> Points:
        """Rows for a form, in units of their middle."""
        u = np.log(np.column_stack([self.columns[name] for name in form.columns]))
        v = np.log(self.loss)
        floor = None if form.floor is None else float(form.floor / np.exp(v.mean()))
        return Points(u=u - u.mean(axis=0), v=v - v.mean(), floor=floor)


def read_runs(
    frame: Any, loss: str, columns: Sequence[str], groups: str | None = None, field: str | None = None
) -> Runs:
    """The runs of a DataFrame (or any mapping of columns); errors name the column and its first bad row.

    They name `field` too, if the table is not the first one.
    """
    found = {name: positive_column(frame, name, field or "term") for name in columns}
    y = positive_column(frame, loss, field or "loss")
    if loss in columns:
        raise InputError("term", "must not be the loss itself", loss)
    for name, values in found.items():
        if np.unique(values).size < 2:
            raise InputError("term", f"must be a column of several values, {name} has one", float(values[0]))
    numbered = None
    if groups is not None:
        _require(frame, groups, "groups")
        names, numbered = np.unique(np.asarray(frame[groups]).astype(str), return_inverse=True)
        if names.size < 5:
            rule = "must name a column with at least five different groups"
            raise InputError("groups", rule, f"{groups} with {names.size}")
    index = np.asarray(getattr(frame, "index", np.arange(y.size)))  # of a selection: rows of the whole table
    rows = index if index.dtype.kind in "iu" else np.arange(y.size)
    return Runs(loss=y, columns=found, groups=numbered, rows=rows)


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def positive_column(frame: Any, name: str, field: str) -> Array:
    """A column of positive finite numbers."""
    _require(frame, name, field)
    try:
        values = np.array(frame[name], dtype=np.float64)
    except (TypeError, ValueError):
        row, value = next((k, x) for k, x in enumerate(frame[name]) if not _is_number(x))
        raise InputError(field, f"must be a column of numbers: {name} in row {row}", str(value)) from None
    if values.size == 0:
        raise InputError(field, "must be a column of a table with rows", name)
    bad = ~(np.isfinite(values) & (values > 0))
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        rule = f"must be positive and finite in every row; {name} in row {row} (from 0) is not"
        raise InputError(field, rule, float(values[row]))
    if values.max() > 1e100 or values.min() < 1e-100:
        raise InputError(field, f"must lie between 1e-100 and 1e100; {name} does not", float(values.max()))
    return values


def _require(frame: Any, name: str, field: str) -> None:
    known = [str(one) for one in frame]
    if name not in known:
        raise InputError(field, f"must be a column ({shown(', '.join(known), str)})", name)


def enough_rows(runs: Runs, form: Form) -> None:
    """Refuse a floor above a loss, and fewer rows than numbers to fit and one more for their scatter."""
    if form.floor is not None and form.floor >= runs.loss.min():
        raise InputError("floor", f"must lie below the smallest loss, {runs.loss.min():g}", form.floor)
    if runs.n <= form.size:
        rule = f"must have more than {form.size} rows to fit {form.size} numbers"
        raise InputError("file", rule, f"{runs.n} rows")


def explained(runs: Runs, form: Form, name: str) -> tuple[float, str]:
    """The share of a column's logarithm that the others explain, and the one that moves most with it."""
    others = [other for other in form.columns if other != name]
    y = np.log(runs.columns[name])
    if not others:
        return 0.0, ""
    X = np.log(np.column_stack([runs.columns[other] for other in others]))
    X, y = X - X.mean(axis=0), y - y.mean()
    rest = y - X @ np.linalg.lstsq(X, y, rcond=None)[0]
    near = np.abs(X.T @ y) / np.linalg.norm(X, axis=0)
    return 1 - float(rest @ rest) / float(y @ y), others[int(np.argmax(near))]


def table_flags(runs: Runs, form: Form) -> list[Flag]:
    """Collinear columns, and columns of too few sizes for a power law beside a floor."""
    found = []
    for name in form.columns:
        share, other = explained(runs, form, name)
        if share > COLLINEAR:
            found.append(flag("collinear", column=name, other=other, share=share))
        sizes = np.unique(runs.columns[name]).size
        if sizes < FEWEST_SIZES:
            found.append(flag("few-sizes", column=name, sizes=sizes, needed=FEWEST_SIZES))
    return found
