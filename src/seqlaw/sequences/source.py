"""Where sequences come from: arrays, files and iterables, read a few megabytes at a time.

A batch is the states of whole sequences one after another (rows × D) and the length of each. Every batch
belongs to one group of sequences; the bootstrap resamples groups.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.model.checks import Array, InputError, needs

BATCH = 2**21
"""Numbers in a batch: 16 MB of float64."""
GROUPS = 32
"""Groups of sequences for the bootstrap."""
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
        source = _open_file(Path(source))
    if isinstance(source, (list, tuple)) and len({np.shape(x) for x in source}) == 1:
        source = np.asarray(source)
    if hasattr(source, "shape") and hasattr(source, "dtype"):
        if len(source.shape) != 3 or 0 in source.shape:
            raise InputError("X", "must be an array N x P x D", f"shape {tuple(source.shape)}")
        if np.dtype(source.dtype).kind not in "fiu":
            raise InputError("X", "must hold real numbers", str(source.dtype))
        if source.shape[1] < 2:
            raise InputError("X", "must have at least 2 positions a sequence", source.shape[1])
        return source
    if isinstance(source, Iterable):
        return source
    raise InputError("X", "must be an array N x P x D, a file or an iterable of sequences", source)


def _open_file(path: Path) -> Any:
    if not path.exists():
        raise InputError("file", "must exist", str(path))
    try:
        if path.suffix == ".npy":
            return np.load(path, mmap_mode="r", allow_pickle=False)
        if path.suffix == ".npz":
            with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
                return archive[_only(list(archive.files), path)]
        if path.suffix == ".zarr":
            return _open_zarr(path)
    except InputError:
        raise
    except (OSError, ValueError, EOFError, TypeError, zipfile.BadZipFile) as error:
        # NumPy takes what it does not know for a pickle, and would have people load it unsafely.
        reason = f" ({error.strerror})" if isinstance(error, OSError) and error.strerror else ""
        rule = f"must be a readable {path.suffix} file of numbers{reason}"
        raise InputError("file", rule, str(path)) from None
    raise InputError("file", "must end in .npy, .npz or .zarr", str(path))


def _open_zarr(path: Path) -> Any:
    try:
        import zarr
    except ModuleNotFoundError:
        raise InputError("file", needs("zarr", "measure"), str(path)) from None
    found: Any = zarr.open(str(path), mode="r")
    return found if hasattr(found, "dtype") else found[_only(list(found.array_keys()), path)]


def _only(names: Sequence[str], path: Path) -> str:
    """The array to read: the only one, or the one named X."""
    if len(names) == 1:
        return names[0]
    if "X" in names:
        return "X"
    raise InputError(path.name, "must hold one array, or one named X", sorted(names))


def batches(source: Any, *, first: int = 0, last: int | None = None) -> Iterator[Batch]:
    """The sequences in batches; `first` and `last` cut the trajectories of an array."""
    if hasattr(source, "shape"):
        yield from _array_batches(source, first, source.shape[0] if last is None else last)
    else:
        yield from _ragged_batches(source)


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
            if not np.isfinite(block).all():
                row = start + int(np.flatnonzero(~np.isfinite(block).all(axis=1))[0]) // P
                raise InputError("X", "must be finite", f"NaN or infinity in trajectory {row}")
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
        if not np.isfinite(states).all():
            raise InputError("X", "must be finite", f"NaN or infinity in trajectory {index}")
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
