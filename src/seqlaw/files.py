"""The edges: TOML, JSON and NPZ become the dataclasses that Python users build, and these become JSON."""

from __future__ import annotations

import dataclasses
import math
import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from seqlaw.model.checks import InputError, library
from seqlaw.model.filters import speaking_of
from seqlaw.model.flags import Flag, flag
from seqlaw.model.lengths import Lengths, documents, histogram, parse
from seqlaw.model.momentum import Momentum
from seqlaw.model.schedule import Constant, Schedule, build_schedule, kind_name, schedule_kind
from seqlaw.model.signature import checked
from seqlaw.model.stored import TEXT, open_archive, read_frame, read_text, reading
from seqlaw.model.teacher import PRESETS, Modes, Teacher
from seqlaw.model.uncertain import Uncertain, middles

T = TypeVar("T")


def read(kind: type[T], data: Any, *, where: str) -> T:
    """`data` as a `kind`; what pydantic finds wrong becomes an InputError that names the field."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        raise explain(error.errors()[0], where=where) from None


def explain(problem: Mapping[str, Any], *, where: str = "") -> InputError:
    """One of pydantic's problems as an InputError: the record's own where it raised one."""
    cause = problem.get("ctx", {}).get("error")
    if isinstance(cause, InputError):
        return cause
    field = ".".join([*filter(None, [where]), *(str(part) for part in problem["loc"])])
    if problem["type"] == "missing":  # pydantic's input is then the whole table
        return InputError(field, "must be given", None)
    return InputError(field, problem["msg"][0].lower() + problem["msg"][1:], problem["input"])


_ONLY = {
    "warmup": "goes with the wsd schedule only",
    "decay": "goes with the wsd schedule only",
    "beta": "goes with the constant schedule only",
    "nesterov": "goes with momentum only (beta; --momentum 0.9 on the command line)",
}


def make_schedule(
    kind: str,
    *,
    gamma: float,
    L: float | None = None,
    R: float | None = None,
    where: str = "schedule",
    shape: Mapping[str, float | None] | None = None,
) -> Schedule:
    """The schedule of a name or an import path, its steps L or its horizon R, and its further fields.

    Fields that are None keep their defaults; errors name `where`.
    """
    given = {name: value for name, value in (shape or {}).items() if value is not None}
    if kind == Constant.name and "beta" in given:
        kind = Momentum.name
    make: Any = schedule_kind(kind, field=f"{where}.kind")
    if (L is None) == (R is None):
        raise InputError(f"{where}.L", "or R must be given, and not both", {"L": L, "R": R})
    known = [f.name for f in dataclasses.fields(make)]
    for name, value in given.items():
        if name not in known:
            raise InputError(f"{where}.{name}", _ONLY.get(name, f"is no field of {kind}"), value)
    if R is None:
        return build_schedule(make, f"{where}.kind", gamma=gamma, L=L, **given)
    with speaking_of(R):
        # Steps that are enough, then as few as the further fields allow.
        enough = make.steps_reaching(R, gamma)
        return build_schedule(make, f"{where}.kind", gamma=gamma, L=enough, **given).with_horizon(R)


def load_toml(path: str | Path, *, field: str = "file") -> dict[str, Any]:
    """The tables of a TOML file; `field` is what an error names."""
    with reading(field, path, "readable TOML"):
        return tomllib.loads(read_text(Path(path)))


@checked
def load_teacher(source: str | Path) -> Teacher | Modes:
    """A preset's name, a TOML file of six numbers, or a TOML or NPZ file of a, sigma_xi and sigma_0.

    Of a file with `[intervals]` the teacher in the middle; `load_uncertain` keeps them.

    Parameters
    ----------
    source
        `regime1`, `regime2`, or the path of a `.toml` or `.npz` file.

    Returns
    -------
    Teacher or Modes
        A power law, or the modes of arrays.

    Examples
    --------
    >>> import seqlaw
    >>> seqlaw.load_teacher("regime2").alpha
    1.8
    """
    found = load_uncertain(source)
    return found.teacher if isinstance(found, Uncertain) else found


@checked
def load_uncertain(source: str | Path) -> Teacher | Modes | Uncertain:
    """What `load_teacher` reads, with the `[intervals]` of its six numbers where a TOML file has them.

    `alpha = [1.7, 1.9]` there, and outside it the number in the middle, if that is to be another.
    """
    if str(source) in PRESETS:
        return PRESETS[str(source)]
    path = Path(source)
    if path.suffix == ".npz":
        return _modes(_load_npz(path), path)
    if path.suffix != ".toml":
        allowed = ", ".join([*PRESETS, "FILE.toml", "FILE.npz"])
        raise InputError("teacher", f"must be one of {allowed}", str(source))
    data = load_toml(path, field="teacher")
    if "a" in data:
        return _modes(data, path)
    return _law(data, path.name) if "intervals" in data else read(Teacher, data, where=path.name)


def _law(data: Mapping[str, Any], where: str) -> Uncertain:
    """Six numbers, and the intervals of some; where only an interval is given, its middle."""
    numbers, intervals = dict(data), data["intervals"]
    del numbers["intervals"]
    try:
        teacher = read(Teacher, middles(intervals) | numbers, where=where)
        return Uncertain(teacher=teacher, intervals=intervals)
    except InputError as error:
        owner, _, name = error.field.partition(".")
        if owner != "Uncertain":
            raise
        field = name if name == "intervals" else f"intervals.{name}"
        raise InputError(f"{where}.{field}", error.rule, error.value) from None


def _load_npz(path: Path) -> dict[str, Any]:
    with reading("teacher", path, "a readable NPZ archive"), open_archive(path) as file:
        return {name: file[name] for name in file.files}


def _modes(data: Mapping[str, Any], path: Path) -> Modes:
    wanted = {"a", "sigma_xi", "sigma_0"}
    if set(data) != wanted:
        raise InputError(path.name, f"must hold exactly {', '.join(sorted(wanted))}", sorted(data))
    return Modes(**data, name=path.name)


def load_lengths(text: str, window: int | None = None) -> Lengths:
    """Lengths and their shares of the tokens, `16:0.7,1024:0.3`, or of a file of documents.

    The file has one length a line, or `length,count`; a header says which. `window` cuts what is longer.
    """
    path = Path(text)
    if ":" in text and not os.path.isfile(text):
        if window is not None:
            raise InputError("window", "goes with a file of lengths", window)
        return parse(text)
    try:
        lines = read_text(path, 10 * TEXT).splitlines()
    except FileNotFoundError:
        raise InputError("lengths", "must be 16:0.7,1024:0.3 or a file that exists", text) from None
    except (OSError, ValueError):
        rule = "must be a text file, a length a line or `length,count`, of 100 MB at most"
        raise InputError("lengths", rule, text) from None
    rows = [(k, _cells(line)) for k, line in enumerate(lines, 1) if line.strip()]
    names = _header(rows[0][1], path.name) if rows and not any(map(_is_number, rows[0][1])) else None
    counts: dict[int, int] = {}
    for k, row in rows[names is not None :]:
        try:
            for P, n in histogram([_length_first(row, names)]).items():
                counts[P] = counts.get(P, 0) + n
        except InputError as error:
            raise InputError("lengths", f"{error.rule} ({path.name}, line {k})", error.value) from None
    if not counts:
        raise InputError("lengths", "must be a file with lengths in it", text)
    return documents(counts, window)


def _cells(line: str) -> list[str]:
    return [cell.strip().strip("\"'") for cell in line.replace(";", ",").split(",")]


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _header(cells: list[str], file: str) -> list[str]:
    """The columns: any one, or length and count in either order; which of two others counts is a guess."""
    names = [cell.lower() for cell in cells]
    if len(names) > 1 and sorted(names) != ["count", "length"]:
        rule = f"must have the columns length and count, or only one ({file})"
        raise InputError("lengths", rule, ", ".join(cell or "one without a name" for cell in cells))
    return names


def _length_first(row: list[str], names: list[str] | None) -> list[float]:
    if not all(map(_is_number, row)) or (names and len(row) != len(names)):
        rule = "must have a length, or a length and a count, in every line"
        raise InputError("lengths", rule, ",".join(row))
    numbers = [float(cell) for cell in row]
    return numbers[::-1] if names and names[0] == "count" and len(names) > 1 else numbers


def read_table(source: Any, *, field: str = "file") -> Any:
    """Rows as a DataFrame: a .csv or .parquet file, or a DataFrame as it is."""
    pd = library("pandas")
    if isinstance(source, pd.DataFrame):
        return source
    if not isinstance(source, (str, Path)):
        raise InputError(field, "must be a DataFrame, or a .parquet or .csv file", type(source).__name__)
    path = Path(source)
    if path.suffix not in (".parquet", ".csv"):
        raise InputError(field, "must be a .parquet or .csv file or a sweep's folder", str(source))
    return read_frame(path, field)


def plain(value: Any, name: str, lost: list[Flag]) -> Any:
    """Dataclasses, arrays and NumPy numbers as JSON types.

    JSON has no infinity: it becomes null, and `lost` gains a flag that says where.
    """
    if isinstance(value, Lengths):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind: dict[str, Any] = {}
        if isinstance(value, Schedule):
            kind, value = {"kind": kind_name(value), **value.additions}, value.plain
        value = kind | {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(k): plain(v, f"{name}.{k}".lstrip("."), lost) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v, f"{name}[{k}]", lost) for k, v in enumerate(value)]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        lost.append(flag("undefined" if math.isnan(value) else "infinite", field=name))
        return None
    return value


def output_path(path: str | Path, field: str, *endings: str) -> Path:
    """A path that a file with one of these endings can be written to."""
    path = Path(path)
    if path.suffix.lower() not in endings:
        known = f"one of {', '.join(endings)}" if len(endings) > 2 else " or ".join(endings)
        raise InputError(field, f"must end in {known}", str(path))
    if not path.parent.is_dir():
        raise InputError(field, "must lie in an existing folder", str(path))
    return path
