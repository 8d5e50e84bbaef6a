"""A user's table as recordings: one a value of the sequence column, in the order of the time column."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError, shown
from seqlaw.model.flags import Flag, flag
from seqlaw.model.stored import read_frame

TABLES = (".csv", ".parquet")
_GAP = 1.5  # of the median step: less is jitter
_LEAST_STEPS = 20  # of a column that always rises, for it not to be chance


def is_table(X: Any) -> bool:
    """Whether X is a table, or the name of a file that holds one."""
    return (isinstance(X, (str, Path)) and Path(X).suffix in TABLES) or hasattr(X, "columns")


_NUMBERED = "number sequences through, not anew in every group"


def from_table(
    X: Any, sequence: str | None, time: str | None, groups: Any, leave_out: Sequence[str]
) -> tuple[list[Array], Any, tuple[Flag, ...]]:
    """Recordings of a table, one a value of the sequence column, in the order of the time column.

    With the labels of the groups, and flags where a feature looks like a clock or moments are missing.
    """
    if groups is not None and not isinstance(groups, str):
        raise InputError("groups", "must name a column of the table", groups)
    frame = _frame(X)
    if len(frame) == 0:
        raise InputError("X", "must hold rows", "a table without")
    columns = list(frame.columns)
    if len(set(columns)) < len(columns):
        again = next(name for name in columns if columns.count(name) > 1)
        raise InputError("X", "must have every column once", str(again))
    left = list(leave_out)
    named = (("sequence", sequence), ("time", time), ("groups", groups))
    for field, name in (*named, *(("leave_out", name) for name in left)):
        if name is not None and name not in columns:
            known = shown(", ".join(map(str, columns)), str)
            raise InputError(field, f"must be a column, one of {known}", name)
    values = frame.drop(columns=list({sequence, time, groups, *left} - {None}))
    for name, kind in values.dtypes.items():
        if getattr(kind, "kind", "O") not in "fiub":
            rule = "must hold numbers only, or be named as sequence, time or groups, or be left out: column"
            raise InputError("X", rule, str(name))
    states = values.to_numpy(dtype=np.float64, na_value=np.nan)
    if states.size == 0:
        raise InputError("X", "must hold rows and columns of numbers", f"shape {states.shape}")
    owner = np.zeros(len(frame), dtype=np.int64)
    if sequence is not None:
        owner = frame[sequence].factorize(sort=True, use_na_sentinel=False)[0].astype(np.int64)
    moments = np.arange(len(frame)) if time is None else frame[time].to_numpy()
    try:
        order = np.lexsort((moments, owner))
    except TypeError:
        raise InputError("time", "must hold numbers or times", time) from None
    owner, states, moments = owner[order], states[order], moments[order]
    again = np.flatnonzero((owner[1:] == owner[:-1]) & (moments[1:] == moments[:-1]))
    if again.size:
        asked = _NUMBERED if sequence else "give the sequence column too"
        rule = f"must have every moment once in a sequence: {asked}"
        where = f" twice in {frame[sequence].to_numpy()[order][again[0]]}" if sequence else " twice"
        raise InputError("time", rule, f"{moments[again[0]]}{where}")
    edges = np.flatnonzero(np.diff(owner)) + 1
    recordings = np.split(states, edges)
    steps = np.diff(states, axis=0)[np.diff(owner) == 0]
    clocks = tuple(str(name) for name, step in zip(values, steps.T, strict=True) if _ticks(step, sequence))
    flags: tuple[Flag, ...] = (flag("clock", columns=clocks, of=values.shape[1]),) if clocks else ()
    if time is not None:
        flags += _gaps(moments, np.diff(owner) == 0)
    if groups is None:
        return recordings, None, flags
    labels = frame[groups].to_numpy()[order]
    for part in np.split(labels, edges):
        if len(set(part.tolist())) > 1:
            raise InputError("groups", f"must be the same all through a sequence: {_NUMBERED}", str(part[0]))
    return recordings, labels[np.concatenate([[0], edges]).astype(np.int64)], flags


def _gaps(moments: Any, inside: Array) -> tuple[Flag, ...]:
    """A flag where steps of time within a sequence are much longer than most: states may be missing there."""
    if moments.dtype.kind not in "fiuM":
        return ()
    steps = np.diff(moments)[inside] / np.ones(1, dtype="m8[ns]" if moments.dtype.kind == "M" else float)
    if not steps.size or (longer := int(np.sum(steps > _GAP * np.median(steps)))) == 0:
        return ()
    return (flag("gaps", steps=longer, of=int(steps.size), largest=float(steps.max() / np.median(steps))),)


def _ticks(steps: Array, sequence: str | None) -> bool:
    """Whether a column is a clock or counter by its steps from row to row of a sequence: it rises in each.

    Where sequences are not told apart it may also count them, or start anew with the same step in each.
    """
    up = steps > 0
    if steps.size < _LEAST_STEPS or not up.any():
        return False
    if sequence is not None:
        return bool(up.all())
    same = np.ptp(steps[up]) <= 1e-6 * steps[up].max()
    return bool((steps >= 0).all() or (same and 2 * up.sum() > up.size))


def _frame(X: Any) -> Any:
    if isinstance(X, (str, Path)):
        return read_frame(Path(X))
    return X.to_pandas() if hasattr(X, "to_pandas") else X
