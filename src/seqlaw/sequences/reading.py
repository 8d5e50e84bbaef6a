"""A user's data as sequences that can be read in any order: arrays, tables, recordings to be cut, groups.

Whatever the source, it becomes recordings (states × D each) and, of each, the windows that count as one
sequence. Sequences of one group (a subject, a recording) are not independent of each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.model.checks import Array, InputError, whole
from seqlaw.model.flags import Flag, flag
from seqlaw.sequences.source import BATCH, FINITE, OPENERS, as_array, open_file, usable
from seqlaw.sequences.tables import TABLES, from_table, is_table

Index = NDArray[np.int64]
_BLOCKS = 40  # that one recording is cut into, at most
_LEAST_WINDOWS = 3  # in such a block, so that the gaps leave three quarters of the data


@dataclass(frozen=True, kw_only=True, eq=False)
class Sequences:
    """Sequence i is the states starts[i] … starts[i] + lengths[i] of a recording."""

    recordings: Any
    """Indexed by number: states × D each; an array N × S × D or a list."""
    owner: Index
    """The recording of each sequence."""
    starts: Index
    lengths: Index
    """In states."""
    groups: Index
    """Numbers of the groups, from 0."""
    grouped: bool
    """Whether some group has two sequences."""
    D: int
    flags: tuple[Flag, ...] = ()
    own: int | None = None
    """Sequences before those that the user gave for the test, if there are such."""

    @property
    def N(self) -> int:
        return int(self.owner.size)

    def kept(self, chosen: NDArray[np.bool_], *more: Flag) -> Sequences:
        """Some of the sequences."""
        _, groups = np.unique(self.groups[chosen], return_inverse=True)
        return replace(
            self,
            owner=self.owner[chosen],
            starts=self.starts[chosen],
            lengths=self.lengths[chosen],
            groups=groups,
            grouped=bool(groups.size > groups.max(initial=-1) + 1),
            flags=(*self.flags, *more),
        )

    def read(self, rows: Index, states: int) -> Array:
        """The first states of these sequences: rows × states × D."""
        owner, first = self.owner[rows], int(self.starts[rows[0]])
        run = hasattr(self.recordings, "shape") and np.array_equal(owner, owner[0] + np.arange(rows.size))
        if run and np.all(self.starts[rows] == first):
            part = self.recordings[int(owner[0]) : int(owner[-1]) + 1, first : first + states]
            return np.asarray(part, dtype=np.float64)
        out = np.empty((rows.size, states, self.D))
        for k, (i, start) in enumerate(zip(owner.tolist(), self.starts[rows].tolist(), strict=True)):
            recording = self.recordings[i]
            out[k] = recording[start : start + states]
        return out

    def chunks(self, rows: Index, states: int) -> Iterable[tuple[Index, Array]]:
        """These sequences in this order, some megabytes at a time; NaN and infinity are refused."""
        step = max(1, BATCH // (states * self.D))
        for start in range(0, rows.size, step):
            part = rows[start : start + step]
            x = self.read(part, states)
            if not usable(x).all():
                row = int(part[np.flatnonzero(~usable(x).all(axis=(1, 2)))[0]])
                rule = f"{FINITE} (--drop-missing, drop_missing=True, leaves such sequences out)"
                field, row = ("X", row) if self.own is None or row < self.own else ("test", row - self.own)
                raise InputError(field, rule, f"NaN, infinity or more in sequence {row}")
            yield part, x


def sequences(
    X: Any,
    *,
    sequence: str | None = None,
    time: str | None = None,
    groups: Any = None,
    window: int | None = None,
    leave_out: Sequence[str] = (),
    drop_missing: bool = False,
) -> Sequences:
    """The sequences of an array, a file, a table or an iterable; see `seqlaw.forecast`."""
    labels: Any = groups
    clocks: tuple[Flag, ...] = ()
    if isinstance(X, (str, Path)) and Path(X).suffix not in (*OPENERS, *TABLES):
        raise InputError("file", f"must end in one of {', '.join((*OPENERS, *TABLES))}", str(X))
    if is_table(X):
        if sequence is None and window is None:
            rule = "must name the column that tells sequences apart, unless a window cuts one recording"
            raise InputError("sequence", rule, None)
        recordings, labels, clocks = from_table(X, sequence, time, groups, leave_out)
    else:
        for field, value in (("sequence", sequence), ("time", time), ("leave_out", leave_out)):
            if value is not None and len(value) > 0:
                raise InputError(field, "goes with tables (.csv, .parquet, a DataFrame) only", value)
        if isinstance(X, (str, Path)):
            X, labels = open_file(Path(X), groups if isinstance(groups, str) else None)
        recordings = _recordings(X, window)
    if labels is not None:
        labels = _labels(labels, len(recordings))
    if window is None:
        found = _whole(recordings, labels)
        found = _complete(found) if drop_missing else found
    else:
        found = _cut(recordings, whole("window", window, least=2), labels, drop_missing)
    return replace(found, flags=(*clocks, *found.flags))


def _recordings(X: Any, window: int | None) -> Any:
    """An array N × S × D, or a list of S_i × D; one recording S × D where it is to be cut."""
    if not hasattr(X, "shape"):
        if not isinstance(X, Iterable) or isinstance(X, (str, bytes, dict)):
            raise InputError("X", "must be an array, a table, a file or an iterable of sequences", X)
        items = [_sequence(k, item) for k, item in enumerate(X)]
        if not items:
            raise InputError("X", "must hold sequences", "none")
        if all(item.ndim == 1 and item.shape == items[0].shape for item in items):
            return _recordings(np.stack(items), window)  # nested lists of one recording
        D = items[0].shape[1] if items[0].ndim == 2 else "D"
        for k, item in enumerate(items):
            if item.ndim != 2 or item.size == 0 or item.shape[1] != D:
                rule = f"must hold sequences P x {D}"
                raise InputError("X", rule, f"sequence {k} of shape {item.shape}")
        return items
    X = as_array(X)
    if len(X.shape) not in (2, 3) or 0 in X.shape:
        raise InputError("X", "must be an array N x P x D", f"shape {tuple(X.shape)}")
    if len(X.shape) == 3:
        return X
    if window is None:
        rule = "must be an array N x P x D, or one recording S x D with a window to cut it by"
        raise InputError("X", rule, f"shape {tuple(X.shape)}")
    return [X]


def _sequence(index: int, item: Any) -> Array:
    try:
        return np.asarray(as_array(item), dtype=np.float64)
    except (TypeError, ValueError, InputError):
        raise InputError("X", "must hold real numbers", f"sequence {index}") from None


def _labels(labels: Any, count: int) -> Index:
    """The group of each recording, numbered from 0."""
    values = np.asarray(labels).ravel()
    if values.size != count:
        raise InputError("groups", f"must have one label a sequence, {count}", values.size)
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.int64)


def _sizes(recordings: Any) -> tuple[int, Index]:
    """The number of features, and the states of each recording."""
    shape = getattr(recordings, "shape", None)
    if shape is not None:
        return int(shape[2]), np.full(shape[0], shape[1], dtype=np.int64)
    return int(recordings[0].shape[1]), np.array([len(one) for one in recordings], dtype=np.int64)


def _whole(recordings: Any, labels: Index | None) -> Sequences:
    D, sizes = _sizes(recordings)
    owner = np.arange(sizes.size)
    found = Sequences(
        recordings=recordings,
        owner=owner,
        starts=np.zeros_like(sizes),
        lengths=sizes,
        groups=owner if labels is None else labels,
        grouped=False,
        D=D,
    )
    return found.kept(sizes > 1)


def _cut(recordings: Any, window: int, labels: Index | None, drop_missing: bool) -> Sequences:
    """Windows of recordings one after another, or of the stretches in which no value is missing.

    Windows have their recording as the group, unless they have labels. Those of a single recording are
    grouped in blocks, with one window left out between two blocks.
    """
    D, sizes = _sizes(recordings)
    runs, first, states = np.arange(sizes.size), np.zeros_like(sizes), sizes
    flags, longest = tuple[Flag, ...](), "recording"
    if drop_missing:
        runs, first, states = _stretches(recordings, sizes.size)
        if lost := int(sizes.sum() - states.sum()):
            flags, longest = (flag("missing", states=lost, of=int(sizes.sum())),), "stretch without gaps"
    if window > states.max(initial=0):
        rule = f"must be at most the longest {longest}, {states.max(initial=0)} states"
        raise InputError("window", rule, window)
    counts = states // window
    owner = np.repeat(runs, counts)
    place = np.concatenate([np.arange(count) for count in counts])
    groups, keep = owner, np.ones(owner.size, dtype=bool)
    if labels is not None:
        groups = labels[owner]
    elif sizes.size == 1:
        block = max(_LEAST_WINDOWS, -(-owner.size // _BLOCKS) - 1)
        groups, inside = np.divmod(np.arange(owner.size), block + 1)
        keep = inside < block
        flags += (flag("blocks", blocks=int(groups[keep].max()) + 1, windows=block, states=window),)
    found = Sequences(
        recordings=recordings,
        owner=owner,
        starts=np.repeat(first, counts) + place * window,
        lengths=np.full(owner.size, window, dtype=np.int64),
        groups=groups,
        grouped=True,
        D=D,
    )
    return found.kept(keep, *flags)


def _stretches(recordings: Any, count: int) -> tuple[Index, Index, Index]:
    """Runs of states in which no value is missing: their recording, first state and size."""
    found = []
    for k in range(count):
        good = usable(np.asarray(recordings[k], dtype=np.float64)).all(axis=1)
        edges = np.flatnonzero(np.diff(good, prepend=False, append=False))
        found += [(k, start, stop - start) for start, stop in edges.reshape(-1, 2).tolist()]
    owner, first, states = np.array(found, dtype=np.int64).reshape(-1, 3).T
    return owner, first, states


def _complete(found: Sequences) -> Sequences:
    """Without the sequences in which a value is missing."""
    good = np.ones(found.N, dtype=bool)
    for k in range(found.N):
        good[k] = bool(usable(found.read(np.array([k]), int(found.lengths[k]))).all())
    if good.all():
        return found
    return found.kept(good, flag("dropped", sequences=int((~good).sum()), of=found.N))


def equal_lengths(found: Sequences, longest: int | None) -> tuple[Sequences, int]:
    """The sequences that reach a length (in transitions), by default that which keeps most of the data."""
    lengths = np.sort(found.lengths) - 1
    if found.N == 0:
        raise InputError("X", "must hold sequences of two states or more", "none")
    if longest is None:
        longest = int(lengths[np.argmax(lengths * np.arange(lengths.size, 0, -1))])
    elif longest > lengths[-1]:
        raise InputError("longest", f"must be at most the longest sequence's, {lengths[-1]}", longest)
    enough = found.lengths > longest
    if enough.all():
        return found, longest
    return found.kept(enough, flag("shorter", sequences=int((~enough).sum()), of=found.N, P=longest)), longest


def split(found: Sequences, share: float, order: Index) -> tuple[Index, Index]:
    """Rows of the pilot and of the test: whole groups in the order given, three or a half for the test."""
    count = int(found.groups.max()) + 1
    tested = np.zeros(count, dtype=bool)
    tested[order[: max(min(3, count // 2), round(share * count))]] = True
    chosen, by_group = tested[found.groups], np.argsort(found.groups, kind="stable")
    return by_group[~chosen[by_group]], by_group[chosen[by_group]]


class _Both:
    """The recordings of two sources, numbered on."""

    def __init__(self, first: Any, second: Any) -> None:
        self.first, self.second = first, second

    def __getitem__(self, index: int) -> Any:
        return self.first[index] if index < len(self.first) else self.second[index - len(self.first)]


def join(pilot: Sequences, test: Sequences, longest: int) -> tuple[Sequences, Index, Index]:
    """A pilot and a test that was given, as one; with the rows of each, by group."""
    if test.D != pilot.D:
        raise InputError("test", f"must have the {pilot.D} features of X", test.D)
    if not test.N or test.groups.max() < 1:
        raise InputError("test", "must hold at least 2 sequences or groups", test.N)
    if test.lengths.min() <= longest:
        rule = f"must have sequences of {longest + 1} states or more"
        raise InputError("test", rule, int(test.lengths.min()))
    both = Sequences(
        recordings=_Both(pilot.recordings, test.recordings),
        owner=np.concatenate([pilot.owner, test.owner + len(pilot.recordings)]),
        starts=np.concatenate([pilot.starts, test.starts]),
        lengths=np.concatenate([pilot.lengths, test.lengths]),
        groups=np.concatenate([pilot.groups, test.groups + pilot.groups.max() + 1]),
        grouped=pilot.grouped,
        D=pilot.D,
        flags=pilot.flags,
        own=pilot.N,
    )
    order = np.argsort(both.groups, kind="stable")
    return both, order[order < pilot.N], order[order >= pilot.N]
