"""Where sequences come from: arrays, files and iterables, read a few megabytes at a time.

A batch is the states of whole sequences one after another (rows × D) and the length of each. Every batch
belongs to one group of sequences; the bootstrap resamples groups.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.model.checks import Array, InputError, needs
from seqlaw.model.stored import EXPANDED, open_archive, reading
from seqlaw.sequences.mat import load_mat
from seqlaw.sequences.tables import TABLES

BATCH = 2**21
"""Numbers in a batch: 16 MB of float64."""
GROUPS = 32
"""Groups of sequences for the bootstrap."""
LARGEST = 1e60
FINITE = "must be finite and below 1e60"
_MEMORY = 2**29  # bytes for the second moments of all groups
_MATRICES = 4  # of D × D that a group keeps
_LEAST_GROUPS = 8


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Whole sequences of one group, one after another."""

    group: int
    states: Array
    """Σ lengths × D."""
    lengths: NDArray[np.int64]


def group_count(D: int) -> int:
    """How many groups of D × D moments fit in half a gigabyte, from 8 to 32."""
    return int(max(_LEAST_GROUPS, min(GROUPS, _MEMORY // (_MATRICES * 8 * D * D))))


def open_source(source: Any) -> Any:
    """An array-like N × P × D (NumPy, memory map or zarr) from a path, an array or nested lists.

    Anything else that can be iterated is passed through as ragged sequences.
    """
    if isinstance(source, (str, Path)):
        source, _ = open_file(Path(source))
    if isinstance(source, (list, tuple)) and len({np.shape(x) for x in source}) == 1:
        source = np.asarray(source)
    if hasattr(source, "shape"):
        source = as_array(source)
        if len(source.shape) != 3 or 0 in source.shape:
            raise InputError("X", "must be an array N x P x D", f"shape {tuple(source.shape)}")
        if source.shape[1] < 2:
            raise InputError("X", "must have at least 2 positions a sequence", source.shape[1])
        return source
    if isinstance(source, Iterable):
        return source
    raise InputError("X", "must be an array N x P x D, a file or an iterable of sequences", source)


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


def open_file(path: Path, groups: str | None = None) -> tuple[Any, Any]:
    """The array of a file, memory-mapped where that is possible, and the labels `groups` beside it."""
    with reading("file", path, f"a readable {path.suffix} file of numbers", _hint):
        path.stat()  # it exists
        if path.suffix not in OPENERS:
            tables = " (tables: `seqlaw forecast`)" if path.suffix in TABLES else ""
            raise InputError("file", f"must end in one of {', '.join(OPENERS)}{tables}", str(path))
        return OPENERS[path.suffix](path, groups)


def _hint(error: Exception) -> str:
    """What may help. NumPy takes what it does not know for a pickle, which nobody should load."""
    if isinstance(error, OSError) and error.strerror:
        return f" ({error.strerror})"
    ragged = isinstance(error, ValueError) and "Object arrays" in str(error)
    return "; sequences of different lengths go into a table or a .mat file" * ragged


def _open_npy(path: Path, groups: str | None) -> tuple[Any, Any]:
    if groups is not None:
        raise InputError("groups", "must be an array of an .npz file, or a column of a table", groups)
    return np.lib.format.open_memmap(path, mode="r"), None


def _open_npz(path: Path, groups: str | None) -> tuple[Any, Any]:
    with open_archive(path) as archive:
        return _named(archive, list(archive.files), groups, path)


def _open_zarr(path: Path, groups: str | None) -> tuple[Any, Any]:
    try:
        import zarr
    except ModuleNotFoundError:
        raise InputError("file", needs("zarr", "measure"), str(path)) from None
    found: Any = zarr.open(str(path), mode="r")
    if hasattr(found, "dtype"):
        return Chunked(found, path), None
    arrays = {name: Chunked(found[name], path) for name in found.array_keys()}
    return _named(arrays, list(arrays), groups, path)


class Chunked:
    """A zarr array, read piece by piece: its sizes are checked first, and a damaged piece is one line.

    What is not on disk counts as zeros, so a small folder may claim any size. It may have 1 GiB, or 10⁴ times
    what lies on disk, in 10⁴ pieces, or 100 times those on disk; a piece may have 1 GiB.
    """

    def __init__(self, array: Any, path: Path) -> None:
        self._array, self._path = array, path
        self.shape, self.dtype, self.size = tuple(array.shape), np.dtype(array.dtype), math.prod(array.shape)
        pieces = math.prod(-(-n // c) for n, c in zip(array.shape, array.chunks, strict=True))
        claimed, piece = (self.dtype.itemsize * math.prod(shape) for shape in (array.shape, array.chunks))
        if claimed > EXPANDED or pieces > 10**4:
            sizes = [one.stat().st_size for one in path.rglob("*") if one.is_file()]
            if claimed > EXPANDED + 10**4 * sum(sizes) or pieces > 10**4 + 100 * len(sizes):
                raise InputError("file", "must have the data that it claims on disk", f"{path}: {self.shape}")
        if piece > EXPANDED:
            raise InputError("file", "must have chunks of at most 1 GiB", f"{path}: {tuple(array.chunks)}")

    def __len__(self) -> int:
        return int(self.shape[0])

    def __getitem__(self, index: Any) -> Array:
        with reading("file", self._path, "a readable .zarr file of numbers"):
            return np.asarray(self._array[index])


def _open_mat(path: Path, groups: str | None) -> tuple[Any, Any]:
    """MATLAB's files up to version 7; a cell array holds ragged sequences."""
    held = load_mat(path)
    if held is None:
        rule = "must be a MATLAB file up to version 7 (save it with -v7)"
        raise InputError("file", rule, str(path))
    return _named(held, list(held), groups, path)


def _named(arrays: Any, names: Sequence[str], groups: str | None, path: Path) -> tuple[Any, Any]:
    """The array to read, the one named X or the only one, single numbers aside, and the labels."""
    if groups is not None and groups not in names:
        raise InputError("groups", f"must be an array of {path.name}, one of {', '.join(names)}", groups)
    rest = [name for name in names if name != groups]
    if len(rest) > 1:
        rest = ["X"] if "X" in rest else [name for name in rest if _several(arrays[name])]
    if len(rest) != 1:
        rule = f"must hold one array, or one named X ({path.name})"
        raise InputError("file", rule, ", ".join(sorted(names)))
    labels = None if groups is None else np.asarray(arrays[groups][...])
    return arrays[rest[0]], labels


def _several(held: Any) -> bool:
    """Whether it is more than a single number."""
    return isinstance(held, list) or held.size > 1


OPENERS = {".npy": _open_npy, ".npz": _open_npz, ".zarr": _open_zarr, ".mat": _open_mat}


def batches(source: Any, *, first: int = 0, last: int | None = None) -> Iterator[Batch]:
    """The sequences in batches; `first` and `last` cut the trajectories of an array."""
    if hasattr(source, "shape"):
        yield from _array_batches(source, first, source.shape[0] if last is None else last)
    else:
        yield from _ragged_batches(source)


def usable(x: Array) -> NDArray[np.bool_]:
    """Where states can be computed with: their fourth powers are summed."""
    found: NDArray[np.bool_] = np.abs(x) < LARGEST
    return found


def _array_batches(X: Any, first: int, last: int) -> Iterator[Batch]:
    """Groups are runs of neighbouring trajectories, so what drifts along a file counts as noise."""
    _, P, D = X.shape
    groups = min(group_count(D), last - first)
    edges = [first + (last - first) * g // groups for g in range(groups + 1)]
    step = max(1, BATCH // (P * D))
    for group in range(groups):
        for start in range(edges[group], edges[group + 1], step):
            stop = min(start + step, edges[group + 1])
            block = np.asarray(X[start:stop], dtype=np.float64).reshape(-1, D)
            if not usable(block).all():
                row = start + int(np.flatnonzero(~usable(block).all(axis=1))[0]) // P
                raise InputError("X", FINITE, f"NaN, infinity or more in trajectory {row}")
            yield Batch(group=group, states=block, lengths=np.full(stop - start, P, dtype=np.int64))


def _ragged_batches(sequences: Iterable[Any]) -> Iterator[Batch]:
    """Sequence number i goes to group i mod K: their number is not known in advance."""
    waiting: list[list[Array]] = []
    D = 0
    for index, item in enumerate(sequences):
        try:
            states = np.asarray(item, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError("X", "must hold real numbers", f"sequence {index}") from None
        if states.ndim != 2 or states.size == 0:
            raise InputError("X", "must hold sequences P x D", f"sequence {index} of shape {states.shape}")
        if not waiting:
            D = states.shape[1]
            waiting = [[] for _ in range(group_count(D))]
        if states.shape[1] != D:
            raise InputError("X", f"must have D = {D} features everywhere", f"{states.shape[1]} in {index}")
        if not usable(states).all():
            raise InputError("X", FINITE, f"NaN, infinity or more in trajectory {index}")
        if len(states) < 2:
            continue  # no transition in it
        group = index % len(waiting)
        waiting[group].append(states)
        if sum(s.size for s in waiting[group]) > BATCH // 16:
            yield _joined(group, waiting[group])
            waiting[group] = []
    for group, part in enumerate(waiting):
        if part:
            yield _joined(group, part)


def _joined(group: int, part: list[Array]) -> Batch:
    return Batch(group=group, states=np.concatenate(part), lengths=np.array([len(s) for s in part]))
