"""A user's data as sequences: arrays, files, folders, tables, lists, recordings to be cut, groups.

Whatever the source, it becomes recordings (states × D each) and, of each, the windows that count as one
sequence. Sequences of one group (a subject, a recording) are not independent of each other.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.model.checks import Array, InputError, whole
from seqlaw.model.flags import Flag, flag
from seqlaw.sequences.opening import open_file, paths_of
from seqlaw.sequences.tables import Columns, Index, Recordings, from_table, is_table, joined

BATCH = 2**21
"""Numbers read at a time: 16 MB of float64."""
BY_FILE = "file"
"""The groups that make each of several files one."""
_LARGEST = 1e60
FINITE = "must be finite and below 1e60"
NONE = "must hold sequences of two states or more"
_BLOCKS = 40  # that one recording is cut into, at most
_LEAST_WINDOWS = 3  # in such a block, so that the gaps leave three quarters of the data


def usable(x: Array) -> NDArray[np.bool_]:
    """Where states are finite and small enough that sums of their fourth powers do not overflow."""
    found: NDArray[np.bool_] = np.abs(x) < _LARGEST
    return found


# --- recordings ----------------------------------------------------------------------------------------


def recordings(
    X: Any, columns: Columns, *, groups: Any = None, window: int | None = None, stream: bool = False
) -> Recordings:
    """The recordings of an array, files, a folder, a table or an iterable; see `seqlaw.forecast`.

    A recording S × D alone is refused without a window. `stream` leaves an iterable unread.
    """
    paths = paths_of(X)
    several = paths is not None and len(paths) > 1
    by_file = several and isinstance(groups, str) and groups == BY_FILE
    named = groups if isinstance(groups, str) and not by_file else None
    names = [path.name for path in paths or ()]
    held: list[tuple[Any, Any]] = [] if paths else [(X, None)]
    for path in paths or ():
        with _naming(path.name if several else ""):
            held.append(open_file(path, named))
    alone = not several and window is None
    if any(is_table(one) for one, _ in held):
        if not all(is_table(one) for one, _ in held):
            raise InputError("file", "must be files of one kind: tables, or arrays", ", ".join(names))
        if alone and columns.sequence is None:
            rule = "must name the column that tells sequences apart, unless a window cuts one recording"
            raise InputError("sequence", f"{rule} (forecast)", None)
        if groups is not None and not isinstance(groups, str):
            raise InputError("groups", "must name a column of the table", groups)
        frame, numbers = joined([one for one, _ in held], names)
        found = from_table(frame, replace(columns, groups=named), numbers)
        return replace(found, labels=found.files) if by_file else found
    columns.refuse()
    parts = []
    for (one, _), name in zip(held, names if several else [""], strict=True):
        with _naming(name):
            parts.append(_states(one, alone=alone, stream=stream and not several))
    labels = groups if named is None else np.concatenate([np.ravel(one) for _, one in held])
    if not several:
        return Recordings(states=parts[0], labels=labels)
    files = np.repeat(np.arange(len(parts), dtype=np.int64), list(map(len, parts)))
    return Recordings(states=Joined(parts, names), labels=files if by_file else labels, files=files)


@contextmanager
def _naming(file: str) -> Iterator[None]:
    """An error about one of several files names it; of a single one nothing is added."""
    try:
        yield
    except InputError as error:
        if not file or file in str(error):
            raise
        raise InputError(error.field, f"{error.rule} ({file})", error.value) from None


def _states(X: Any, *, alone: bool, stream: bool) -> Any:
    """An array N × S × D, or a list or stream of S_i × D; one recording S × D unless it is alone."""
    if not hasattr(X, "shape"):
        if not isinstance(X, Iterable) or isinstance(X, (str, bytes, dict)):
            raise InputError("X", "must be an array, a table, a file or an iterable of sequences", X)
        if stream and not isinstance(X, (list, tuple)):
            return _alike(X)
        items = [_sequence(k, item) for k, item in enumerate(X)]
        if not items or not all(item.ndim == 1 and item.shape == items[0].shape for item in items):
            return list(_alike(items))
        X = np.stack(items)  # nested lists of one recording
    X = as_array(X)
    if len(X.shape) not in (2, 3) or 0 in X.shape:
        raise InputError("X", "must be an array N x P x D", f"shape {tuple(X.shape)}")
    if len(X.shape) == 3:
        return X
    if alone:
        rule = "must be an array N x P x D, or one recording S x D with a window to cut it by (forecast)"
        raise InputError("X", rule, f"shape {tuple(X.shape)}")
    return [X]


def _alike(items: Iterable[Any]) -> Iterator[Array]:
    """The sequences, which must be P_i × D with one D."""
    D: int | str = "D"
    for k, item in enumerate(items):
        x = _sequence(k, item)
        D = x.shape[1] if D == "D" and x.ndim == 2 else D
        if x.ndim != 2 or x.size == 0 or x.shape[1] != D:
            raise InputError("X", f"must hold sequences P x {D}", f"sequence {k} of shape {x.shape}")
        yield x


def _sequence(index: int, item: Any) -> Array:
    try:
        return np.asarray(as_array(item))
    except (TypeError, ValueError, InputError):
        raise InputError("X", "must hold real numbers", f"sequence {index}") from None


def as_array(source: Any) -> Any:
    """An array of real numbers as it is; a tensor of torch, JAX or the like as NumPy sees it."""
    foreign = hasattr(source, "__dlpack__") and not isinstance(source, np.ndarray)
    if foreign or not isinstance(getattr(source, "dtype", None), np.dtype):
        try:
            source = _fetched(source)
        except (TypeError, ValueError, RuntimeError) as error:
            reason = str(error).splitlines()[0]
            raise InputError("X", f"must be an array that NumPy can read ({reason})", type(source)) from None
    if source.dtype.kind not in "fiu":
        raise InputError("X", "must hold real numbers", str(source.dtype))
    return source


def _fetched(source: Any) -> Array:
    """From an accelerator and out of a graph, where torch has it; bfloat16, which NumPy lacks, widens."""
    for step in ("detach", "cpu"):
        source = getattr(source, step)() if hasattr(source, step) else source
    if "bfloat16" in str(getattr(source, "dtype", "")):
        source = source.float() if hasattr(source, "float") else source.astype(np.float32)
    return np.asarray(source)


class Joined:
    """The recordings of several sources, numbered on; an array where all of them are arrays of one shape.

    Nothing is copied before it is read.
    """

    def __init__(self, parts: Sequence[Any], names: Sequence[str] = ()) -> None:
        self.parts = parts
        self.edges = np.cumsum([0, *map(len, parts)])
        D = [sizes(part)[0] for part in parts]
        for k, name in enumerate(names):
            if D[k] != D[0]:
                raise InputError("file", f"must have the {D[0]} features of {names[0]} ({name})", D[k])
        shapes = {tuple(getattr(part, "shape", (0,))[1:]) for part in parts}
        if len(shapes) == 1 and shapes != {()}:
            self.shape = len(self), *shapes.pop()

    def __len__(self) -> int:
        return int(self.edges[-1])

    def __getitem__(self, index: Any) -> Any:
        """A recording, or with two slices the states of neighbouring ones."""
        if not isinstance(index, tuple):
            part = int(np.searchsorted(self.edges, index, side="right")) - 1
            return self.parts[part][index - int(self.edges[part])]
        rows, states = index
        spans = [(max(rows.start - edge, 0), max(rows.stop - edge, 0)) for edge in self.edges[:-1].tolist()]
        return np.concatenate([part[a:b, states] for part, (a, b) in zip(self.parts, spans, strict=True)])


def sizes(recordings: Any) -> tuple[int, Index]:
    """The number of features, and the states of each recording."""
    if isinstance(recordings, Joined):
        found = [sizes(part) for part in recordings.parts]
        return found[0][0], np.concatenate([states for _, states in found])
    shape = getattr(recordings, "shape", None)
    if shape is not None:
        return int(shape[2]), np.full(shape[0], shape[1], dtype=np.int64)
    D = int(recordings[0].shape[1]) if recordings else 0
    return D, np.array([len(one) for one in recordings], dtype=np.int64)


# --- sequences -----------------------------------------------------------------------------------------


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
    """How many sequences come before the user's test sequences; None without any."""

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
    columns: Columns | None = None,
    *,
    groups: Any = None,
    window: int | None = None,
    drop_missing: bool = False,
) -> Sequences:
    """The sequences of anything that `recordings` reads."""
    held = recordings(X, columns or Columns(), groups=groups, window=window)
    labels = None if held.labels is None else _labels(held.labels, len(held.states))
    if window is None:
        found = whole_sequences(held.states, labels)
        found = _complete(found) if drop_missing else found
    else:
        found = _cut(held.states, whole("window", window, least=2), labels, drop_missing)
    flags = held.flags
    if labels is None and window is None and held.files is not None and held.files.max() + 1 < found.N:
        flags += (flag("files", files=int(held.files.max()) + 1, sequences=found.N),)
    return replace(found, flags=(*flags, *found.flags))


def _labels(labels: Any, count: int) -> Index:
    """The group of each recording, numbered from 0."""
    values = np.asarray(labels).ravel()
    if values.size != count:
        raise InputError("groups", f"must have one label a sequence, {count}", values.size)
    missing = [one for one in values.tolist() if one is None or one != one or one == ""]
    if missing:
        raise InputError("groups", "must leave no sequence without a label", len(missing))
    values = values.astype(str) if values.dtype == object else values
    return np.asarray(np.unique(values, return_inverse=True)[1], dtype=np.int64)


def whole_sequences(recordings: Any, labels: Index | None = None) -> Sequences:
    """Every recording of two states or more as one sequence."""
    D, states = sizes(recordings)
    owner = np.arange(states.size)
    found = Sequences(
        recordings=recordings,
        owner=owner,
        starts=np.zeros_like(states),
        lengths=states,
        groups=owner if labels is None else labels,
        grouped=False,
        D=D,
    )
    if not (states > 1).any():
        raise InputError("X", NONE, "none")
    return found.kept(states > 1)


def _cut(recordings: Any, window: int, labels: Index | None, drop_missing: bool) -> Sequences:
    """Windows of recordings one after another, or of the stretches in which no value is missing.

    Windows have their recording as the group, unless they have labels. Those of a single recording are
    grouped in blocks, with one window left out between two blocks.
    """
    D, held = sizes(recordings)
    runs, first, states = np.arange(held.size), np.zeros_like(held), held
    flags, longest = tuple[Flag, ...](), "recording"
    if drop_missing:
        runs, first, states = _stretches(recordings, held.size)
        if lost := int(held.sum() - states.sum()):
            flags, longest = (flag("missing", states=lost, of=int(held.sum())),), "stretch without gaps"
    if window > states.max(initial=0):
        rule = f"must be at most the longest {longest}, {states.max(initial=0)} states"
        raise InputError("window", rule, window)
    counts = states // window
    owner = np.repeat(runs, counts)
    place = np.concatenate([np.arange(count) for count in counts])
    groups, keep = owner, np.ones(owner.size, dtype=bool)
    if labels is not None:
        groups = labels[owner]
    elif held.size == 1:
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
        raise InputError("X", NONE, "none")
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


def join(pilot: Sequences, test: Sequences, longest: int) -> tuple[Sequences, Index, Index]:
    """A pilot and a test that was given, as one; with the rows of each, by group."""
    if test.D != pilot.D:
        raise InputError("test", f"must have the {pilot.D} features of X", test.D)
    if not test.N or test.groups.max() < 1:
        what = "groups, for an error between groups" if test.grouped else "sequences"
        raise InputError("test", f"must hold at least 2 {what}", int(test.groups.max()) + 1 if test.N else 0)
    if test.lengths.min() <= longest:
        rule = f"must have sequences of {longest + 1} states or more"
        raise InputError("test", rule, int(test.lengths.min()))
    both = Sequences(
        recordings=Joined([pilot.recordings, test.recordings]),
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
