"""Files of sequences: what each kind holds, opened without reading it where that is possible."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError, library, needs
from seqlaw.model.stored import EXPANDED, open_archive, read_frame, reading
from seqlaw.sequences.mat import load_mat


def paths_of(X: Any) -> list[Path] | None:
    """The files that a path, a folder or a list of them names, in order; None for what is no path."""
    if isinstance(X, (str, Path)):
        return _files(Path(X))
    if isinstance(X, (list, tuple)) and X and all(isinstance(one, (str, Path)) for one in X):
        return [path for one in X for path in _files(Path(one))]
    return None


def file_names(X: Any) -> str | list[str] | None:
    """The files that were named, for the record of what was asked."""
    if isinstance(X, (str, Path)):
        return str(X)
    return None if paths_of(X) is None else [str(one) for one in X]


def _files(path: Path) -> list[Path]:
    """A file as it is; of a folder the files that can be read, by name."""
    with reading("file", path, "a readable file or folder", _hint):
        if path.suffix in OPENERS or not path.is_dir():
            return [path]
        found = sorted(one for one in path.iterdir() if one.suffix in OPENERS and one.name[0] != ".")
    kinds = sorted({one.suffix for one in found})
    if not found:
        raise InputError("file", f"must be a folder with files that end in one of {_endings()}", str(path))
    if len(kinds) > 1:
        raise InputError("file", f"must be a folder of one kind of files ({', '.join(kinds)})", str(path))
    return found


def open_file(path: Path, groups: str | None = None) -> tuple[Any, Any]:
    """What a file holds, an array, a list of sequences or a table, and the labels `groups` beside it.

    Arrays are memory-mapped or read piece by piece where that is possible. The groups of a table are a column
    of it.
    """
    if path.suffix not in OPENERS:
        raise InputError("file", f"must end in one of {_endings()}, or be a folder of such files", str(path))
    with reading("file", path, f"a readable {path.suffix} file of numbers", _hint), ExitStack() as opened:
        path.stat()  # it exists
        held = OPENERS[path.suffix](path)
        if isinstance(held, AbstractContextManager):
            held = opened.enter_context(held)
        if isinstance(held, Mapping):
            return _named(held, groups, path)
        if groups is not None and not hasattr(held, "columns"):
            raise InputError("groups", "must be an array of an .npz file, or a column of a table", groups)
        return held, None


def _hint(error: Exception) -> str:
    """What may help. NumPy takes what it does not know for a pickle, which nobody should load."""
    if isinstance(error, OSError) and error.strerror:
        return f" ({error.strerror})"
    if isinstance(error, _BadLine):
        return f" ({error})"
    ragged = isinstance(error, ValueError) and "Object arrays" in str(error)
    return "; sequences of different lengths go into a table, a .jsonl or a .mat file" * ragged


def _open_zarr(path: Path) -> Any:
    try:
        import zarr
    except ModuleNotFoundError:
        raise InputError("file", needs("zarr", "measure"), str(path)) from None
    found: Any = zarr.open(str(path), mode="r")
    if hasattr(found, "dtype"):
        return Chunked(found, path)
    return {name: Chunked(found[name], path) for name in found.array_keys()}


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


def _open_mat(path: Path) -> Mapping[str, Any]:
    """MATLAB's files up to version 7; a cell array holds ragged sequences."""
    held = load_mat(path)
    if held is None:
        rule = "must be a MATLAB file up to version 7 (save it with -v7)"
        raise InputError("file", rule, str(path))
    return held


class _BadLine(ValueError):
    """A line that cannot be read; the message names it."""


class Lines:
    """The sequences of a JSON-lines file, one array a line, read as they are asked for."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __iter__(self) -> Iterator[Array]:
        with reading("file", self.path, "a readable .jsonl file of numbers", _hint):
            for number, value in json_lines(self.path):
                if not isinstance(value, list):
                    raise _BadLine(f"line {number} is no array, as the first one is")
                yield json_array(number, value)


def json_lines(path: Path) -> Generator[tuple[int, Any], None, None]:
    """The number and the value of each line that is not empty."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                try:
                    yield number, json.loads(line)
                except (ValueError, RecursionError):
                    raise _BadLine(f"line {number} is no JSON") from None


def json_array(number: int, value: Any) -> Array:
    """The numbers of a line; null is a missing one. Text is not read as a number."""
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O" and not any(isinstance(one, (str, bool, list)) for one in array.flat):
            array = array.astype(np.float64)
    except (TypeError, ValueError):
        raise _BadLine(f"line {number} is no array of states with the same features") from None
    if array.dtype.kind not in "fiu":
        raise _BadLine(f"line {number} holds something else than numbers")
    return array


def _open_lines(path: Path) -> Any:
    """One sequence a line; objects are the rows of a table, or have a sequence in one of their fields."""
    lines = json_lines(path)
    _, first = next(lines, (0, None))
    lines.close()
    if isinstance(first, list):
        return Lines(path)
    if not isinstance(first, dict) or not first:
        raise _BadLine("it must have an array or an object in every line")
    names, rows, numbers = list(first), [], []
    for number, row in json_lines(path):
        if not isinstance(row, dict) or set(row) != set(names):
            raise _BadLine(f"line {number} has not the fields of the first one")
        rows.append(row)
        numbers.append(number)
    if not any(isinstance(value, list) for value in first.values()):
        return library("pandas").DataFrame(rows, columns=names)
    return {
        name: [json_array(k, row[name]) for k, row in zip(numbers, rows, strict=True)]
        if isinstance(first[name], list)
        else np.array([str(row[name]) for row in rows])
        for name in names
    }


def _named(arrays: Mapping[str, Any], groups: str | None, path: Path) -> tuple[Any, Any]:
    """The array to read, the one named X or the only one, text and single numbers aside, and the labels."""
    names = list(arrays)
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
    """Whether it is more than text or a single number."""
    return isinstance(held, list) or (held.size > 1 and held.dtype.kind not in "US")


OPENERS: dict[str, Callable[[Path], Any]] = {
    ".npy": partial(np.lib.format.open_memmap, mode="r"),
    ".npz": open_archive,
    ".zarr": _open_zarr,
    ".mat": _open_mat,
    ".csv": read_frame,
    ".parquet": read_frame,
    ".jsonl": _open_lines,
    ".ndjson": _open_lines,
}


def _endings() -> str:
    return ", ".join(OPENERS)
