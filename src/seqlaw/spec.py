"""Specs from the outside: TOML, JSON and NPZ become the same dataclasses that Python users build."""

from __future__ import annotations

import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from seqlaw.model.checks import InputError
from seqlaw.model.teacher import PRESETS, Modes, Teacher

T = TypeVar("T")


def read(kind: type[T], data: Any, *, where: str) -> T:
    """`data` as a `kind`; what pydantic finds wrong becomes an InputError that names the field."""
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        first = error.errors()[0]
        cause = first.get("ctx", {}).get("error")
        if isinstance(cause, InputError):
            raise cause from None
        field = ".".join([where, *(str(part) for part in first["loc"])])
        raise InputError(field, first["msg"][0].lower() + first["msg"][1:], first["input"]) from None


def load_toml(path: str | Path, *, field: str = "file") -> dict[str, Any]:
    """The tables of a TOML file; `field` is what an error names."""
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except FileNotFoundError:
        raise InputError(field, "must exist", str(path)) from None
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise InputError(field, f"must be readable TOML ({error})", str(path)) from None


def load_teacher(source: str | Path) -> Teacher | Modes:
    """A preset's name, a TOML file of six numbers, or a TOML or NPZ file of a, sigma_xi and sigma_0."""
    if str(source) in PRESETS:
        return PRESETS[str(source)]
    path = Path(source)
    if path.suffix == ".npz":
        return _modes(_load_npz(path), path)
    if path.suffix != ".toml":
        allowed = ", ".join([*PRESETS, "FILE.toml", "FILE.npz"])
        raise InputError("teacher", f"must be one of {allowed}", str(source))
    data = load_toml(path, field="teacher")
    return _modes(data, path) if "a" in data else read(Teacher, data, where=path.name)


def _load_npz(path: Path) -> dict[str, Any]:
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except FileNotFoundError:
        raise InputError("teacher", "must exist", str(path)) from None
    except (OSError, ValueError, EOFError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise InputError("teacher", f"must be a readable NPZ archive ({error})", str(path)) from None


def _modes(data: Mapping[str, Any], path: Path) -> Modes:
    wanted = {"a", "sigma_xi", "sigma_0"}
    if set(data) != wanted:
        raise InputError(path.name, f"must hold exactly {', '.join(sorted(wanted))}", sorted(data))
    return Modes(**data)
