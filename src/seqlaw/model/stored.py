"""Files that anyone may have written: read by a library, refused in one line where it fails.

What is made of a file is bounded by its own size or by the limits below, before anything is made.
"""

from __future__ import annotations

import contextlib
import os
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from seqlaw.model.checks import InputError, MissingLibrary, library, shown

EXPANDED = 2**30
"""Bytes that a compressed array may become: 1 GiB. Larger ones go into .npy or .zarr, read piece by piece."""
CELLS = 2**27
"""Cells of a table, 1 GiB of numbers, where the file is not itself that large."""
TEXT = 10**7
"""Bytes of a TOML file; of lengths, ten times as many."""


def first_line(error: Exception) -> str:
    """What a library says of a file, in brackets."""
    lines = str(error).splitlines()
    return f" ({shown(lines[0], str)})" if lines else ""


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A draft of a file, which takes its place at the end: it is replaced whole or left as it is."""
    draft = path.with_name(f".{path.name}.{os.getpid()}{path.suffix}")
    try:
        yield draft
        os.replace(draft, path)
    finally:
        with contextlib.suppress(OSError):  # gone where all went well, impossible where it could not be made
            draft.unlink()


@contextmanager
def reading(
    field: str, path: object, rule: str, reason: Callable[[Exception], str] = first_line
) -> Iterator[None]:
    """Whatever a library raises on a file, as an InputError; its warnings are no use to a user."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    except (InputError, MissingLibrary):
        raise
    except FileNotFoundError:
        raise InputError(field, "must exist", str(path)) from None
    except Exception as error:  # no library has a list of them: damaged files raise almost anything
        raise InputError(field, f"must be {rule}{reason(error)}", str(path)) from None


def read_text(path: Path, most: int = TEXT) -> str:
    """A text file of bounded size, in UTF-8, which Windows' editors mark."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"larger than {most / 1e6:g} MB")
    return data.decode("utf-8-sig")


@contextmanager
def open_archive(path: Path) -> Iterator[Any]:
    """An NPZ archive whose compressed arrays become no more than 1 GiB each."""
    with zipfile.ZipFile(path) as archive:
        largest = max((one.file_size for one in archive.infolist() if one.compress_type), default=0)
    if largest > EXPANDED:
        raise InputError(
            "file", "must hold compressed arrays of at most 1 GiB (save them as .npy)", str(path)
        )
    with path.open("rb") as file, np.load(file, allow_pickle=False) as held:
        yield held


def read_frame(path: Path, field: str = "file") -> Any:
    """The rows of a .csv or .parquet file as a DataFrame."""
    pd = library("pandas")
    with reading(field, path, "readable"):
        if not path.exists():
            raise FileNotFoundError
        if path.suffix == ".parquet":
            return _parquet(path, field)
        _require_cells(field, path, *_csv_shape(path), 2 * path.stat().st_size)
        # From 3.1 on every digit is read without asking, and asking is deprecated.
        old = tuple(map(int, pd.__version__.split(".")[:2])) < (3, 1)
        try:
            frame = pd.read_csv(path, **({"float_precision": "round_trip"} if old else {}))
        except pd.errors.EmptyDataError:
            raise InputError(field, "must hold rows", f"the empty {path}") from None
        names = [str(name) for name in frame.columns]
        if len(names) == 1 and any(mark in names[0] for mark in ";\t"):
            raise InputError(field, "must have commas between its columns", str(path))
        return frame


def _parquet(path: Path, field: str) -> Any:
    file = library("pyarrow.parquet").ParquetFile(path)
    held = file.metadata
    _require_cells(field, path, held.num_rows, held.num_columns, 0)
    return file.read().to_pandas()


def _csv_shape(path: Path) -> tuple[int, int]:
    """Lines, and columns of the first."""
    with path.open("rb") as file:
        columns = file.readline(EXPANDED).count(b",") + 1
        return 1 + sum(block.count(b"\n") for block in iter(lambda: file.read(2**20), b"")), columns


def _require_cells(field: str, path: Path, rows: int, columns: int, room: int) -> None:
    if rows * columns > max(CELLS, room):
        raise InputError(field, f"must hold at most {CELLS} numbers", f"{path}: {rows} x {columns}")
