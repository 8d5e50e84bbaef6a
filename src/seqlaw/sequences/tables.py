"""A user's table as recordings: one a value of the sequence column, in the order of the time column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.model.checks import Array, InputError, library, shown
from seqlaw.model.flags import Flag, flag

Index = NDArray[np.int64]
_GAP = 1.5  # of the median step: less is jitter
_LEAST_STEPS = 20  # of a column that always rises, for it not to be chance
_LEAST_ROWS = 2  # of a stretch, on average, for the order of rows to mean anything
_NUMBERED = "number sequences through, not anew in every group"


@dataclass(frozen=True, kw_only=True)
class Columns:
    """What the columns of a table are; those that are not named here are features."""

    sequence: str | None = None
    """Tells sequences apart."""
    time: str | None = None
    """Orders the states of a sequence."""
    groups: str | None = None
    """Labels sequences that are not independent of each other."""
    features: Sequence[str] = ()
    """The features, if not all the rest."""
    leave_out: Sequence[str] = ()
    """Further columns that are not features."""

    def asked(self) -> dict[str, Any]:
        """What was named, but for the groups, which other forms have too."""
        return {name: getattr(self, name) for name in ("sequence", "time", "features", "leave_out")}

    def refuse(self) -> None:
        """Raise an error if a column is named but there is no table; other forms have groups too."""
        for field, value in self.asked().items():
            if value is not None and len(value) > 0:
                raise InputError(field, "goes with tables (.csv, .parquet, a DataFrame) only", value)

    def of_features(self, known: Sequence[str]) -> list[str]:
        """The columns of a table that hold features; a name that it does not have is refused."""
        named = {"sequence": self.sequence, "time": self.time, "groups": self.groups}
        asked = [(field, name) for field, name in named.items() if name is not None]
        asked += [("features", name) for name in self.features]
        asked += [("leave_out", name) for name in self.leave_out]
        for field, name in asked:
            if name not in known:
                columns = shown(", ".join(map(str, known)), str)
                raise InputError(field, f"must be a column, one of {columns}", name)
        for field, used in named.items():
            if used is not None and used in self.features:
                raise InputError("features", f"must not name the {field} column", used)
        if len(set(self.features)) < len(self.features):
            raise InputError("features", "must name every column once", list(self.features))
        if self.features and self.leave_out:
            raise InputError("features", "cannot be given together with leave_out", list(self.features))
        others = {*named.values(), *self.leave_out}
        return list(self.features) or [name for name in known if name not in others]


@dataclass(frozen=True, kw_only=True, eq=False)
class Recordings:
    """What a source holds, before it is cut."""

    states: Any
    """An array N × S × D; a list, or something indexed like one, of S_i × D; or a stream of these."""
    labels: Any = None
    """The group of each recording, if they have labels."""
    files: Index | None = None
    """The number of the file of each, if there are several."""
    flags: tuple[Flag, ...] = ()

    @property
    def streamed(self) -> bool:
        """Whether the recordings can be read only once, one after the other."""
        return isinstance(self.states, Iterator)


def is_table(X: Any) -> bool:
    return hasattr(X, "columns")


def joined(tables: Sequence[Any], names: Sequence[str]) -> tuple[Any, Index | None]:
    """Tables one below the other, and for each row the number of its table if they are several."""
    frames = [one.to_pandas() if hasattr(one, "to_pandas") else one for one in tables]
    if len(frames) == 1:
        return frames[0], None
    for frame, name in zip(frames, names, strict=True):
        if list(frame.columns) != list(frames[0].columns):
            rule = f"must have the columns of {names[0]}, in the same order ({name})"
            raise InputError("file", rule, ", ".join(map(str, frame.columns)))
    numbers = np.repeat(np.arange(len(frames), dtype=np.int64), [len(frame) for frame in frames])
    return library("pandas").concat(frames, ignore_index=True), numbers


def from_table(frame: Any, columns: Columns, files: Index | None = None) -> Recordings:
    """The recordings of a DataFrame; rows of different `files` are never of one sequence."""
    if len(frame) == 0:
        raise InputError("X", "must hold rows", "a table without")
    known = list(frame.columns)
    if len(set(known)) < len(known):
        again = next(name for name in known if known.count(name) > 1)
        raise InputError("X", "must have every column once", str(again))
    values = frame[columns.of_features(known)]
    text = [str(name) for name, kind in values.dtypes.items() if getattr(kind, "kind", "O") not in "fiub"]
    if text:
        rule = (
            "must hold numbers only: name other columns as sequence, time or groups, or set them aside with "
            "leave_out or features"
        )
        rule += f"; text is in column{'s' * (len(text) > 1)}"
        raise InputError("X", rule, ", ".join(text))
    states = values.to_numpy(dtype=np.float64, na_value=np.nan)
    if states.size == 0:
        raise InputError("X", "must hold rows and columns of numbers", f"shape {states.shape}")
    sequence, time = columns.sequence, columns.time
    owner = np.zeros(len(frame), dtype=np.int64)
    if sequence is not None:
        owner = frame[sequence].factorize(sort=True, use_na_sentinel=False)[0].astype(np.int64)
    if files is not None:
        owner = np.unique(files * (owner.max() + 1) + owner, return_inverse=True)[1]
    flags = _repeated(owner)
    moments = np.arange(len(frame)) if time is None else frame[time].to_numpy()
    if time is not None and (gone := int(frame[time].isna().sum())):
        raise InputError("time", f"must leave no row of {time} empty", gone)
    try:
        order = np.lexsort((moments, owner))
    except TypeError:
        raise InputError("time", "must hold numbers or times", time) from None
    owner, states, moments = owner[order], states[order], moments[order]
    inside = np.diff(owner) == 0
    twice = np.flatnonzero(inside & (moments[1:] == moments[:-1]))
    if twice.size:
        asked = _NUMBERED if sequence else "give the sequence column too"
        rule = f"must have every moment once in a sequence: {asked}"
        where = f" twice in {frame[sequence].to_numpy()[order][twice[0]]}" if sequence else " twice"
        raise InputError("time", rule, f"{moments[twice[0]]}{where}")
    edges = np.flatnonzero(~inside) + 1
    firsts = np.concatenate([[0], edges]).astype(np.int64)
    told, within = sequence is not None or files is not None, np.diff(states, axis=0)[inside]
    clocks = tuple(str(name) for name, step in zip(values, within.T, strict=True) if _ticks(step, told=told))
    if clocks:
        flags += (flag("clock", columns=clocks, of=values.shape[1]),)
    still = ~within.any(axis=0) & (np.ptp(states, axis=0) > 0) if told and len(within) else np.zeros(0)
    if still.any():
        names = tuple(str(name) for name, one in zip(values, still, strict=True) if one)
        flags += (flag("labels", columns=names, of=values.shape[1]),)
    if time is not None:
        flags += _gaps(moments, inside)
    labels = None
    if columns.groups is not None:
        labels = frame[columns.groups].to_numpy()[order]
        for part in np.split(labels, edges):
            if len(set(part.tolist())) > 1:
                rule = f"must be the same all through a sequence: {_NUMBERED}"
                raise InputError("groups", rule, str(part[0]))
        labels = labels[firsts]
    return Recordings(
        states=np.split(states, edges),
        labels=labels,
        files=None if files is None else files[order][firsts],
        flags=flags,
    )


def _repeated(owner: Index) -> tuple[Flag, ...]:
    """A flag where a sequence lies in several stretches of rows: its number may be given twice.

    Rows that are shuffled, or sorted by time, alternate between sequences from row to row and say nothing.
    """
    starts = np.concatenate([[0], np.flatnonzero(np.diff(owner)) + 1])
    count = np.bincount(owner[starts])
    if count.max() == 1 or _LEAST_ROWS * starts.size > owner.size:
        return ()
    return (flag("repeated-numbers", sequences=int((count > 1).sum()), of=count.size),)


def _gaps(moments: Any, inside: NDArray[np.bool_]) -> tuple[Flag, ...]:
    """A flag where steps of time within a sequence are much longer than most: states may be missing there."""
    if moments.dtype.kind not in "fiuM":
        return ()
    steps = np.diff(moments)[inside] / np.ones(1, dtype="m8[ns]" if moments.dtype.kind == "M" else float)
    if not steps.size or (longer := int(np.sum(steps > _GAP * np.median(steps)))) == 0:
        return ()
    return (flag("gaps", steps=longer, of=int(steps.size), largest=float(steps.max() / np.median(steps))),)


def _ticks(steps: Array, *, told: bool) -> bool:
    """Whether a column is a clock or counter by its steps from row to row of a sequence: it rises in each.

    Where sequences are not `told` apart it may also count them, or start anew with the same step in each.
    """
    up = steps > 0
    if steps.size < _LEAST_STEPS or not up.any():
        return False
    if told:
        return bool(up.all())
    same = np.ptp(steps[up]) <= 1e-6 * steps[up].max()
    return bool((steps >= 0).all() or (same and 2 * up.sum() > up.size))
