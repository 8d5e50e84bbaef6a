"""Public functions refuse what does not fit their annotations, before they do anything."""

from __future__ import annotations

import functools
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np

from seqlaw.model.checks import InputError, is_list

Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")


def checked(function: Callable[Arguments, Answer]) -> Callable[Arguments, Answer]:
    """A public function that refuses what does not fit its annotations, before it does anything.

    Numbers, text, truth values, paths, lists and functions are looked at here. A record (a teacher, a
    setting) is left to the function, which knows what it can make one of.
    """
    signature = inspect.signature(function)

    @functools.cache
    def hints() -> Mapping[str, Any]:
        return get_type_hints(function)

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        given = signature.bind(*args, **kwargs)
        for name, value in given.arguments.items():
            if name in hints() and (rule := _unmet(hints()[name], value)):
                raise InputError(name, f"must be {rule}", value)
            if hints().get(name) in (int, int | None) and value is not None:
                given.arguments[name] = int(value)  # 1e9, NumPy's numbers
            elif _lists(hints().get(name)) and hasattr(value, "tolist"):
                given.arguments[name] = value.tolist()  # an array, a column
        return function(*given.args, **given.kwargs)

    return call


def _lists(hint: Any) -> bool:
    """Whether an annotation asks for a list."""
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return any(get_origin(one) is Sequence for one in options)


def _unmet(hint: Any, value: Any) -> str:
    """What a value had to be; nothing where it is that, or where the function knows better."""
    options = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    if value is None and NoneType in options:
        return ""
    kinds = [_kind(one) for one in options if one is not NoneType]
    if any(kind is None or kind.fits(value) for kind in kinds) or (
        len(kinds) > 1 and any(kind is not None and kind.record for kind in kinds)
    ):
        return ""
    return " or ".join(dict.fromkeys(kind.words for kind in kinds if kind))


@dataclass(frozen=True)
class _Kind:
    """What an annotation asks for: in words, of one and of several, and whether a value is that."""

    words: str
    several: str
    fits: Callable[[Any], bool]
    record: bool = False


def _kind(hint: Any) -> _Kind | None:
    """None for what is not looked at here, as arrays."""
    if hint in _PLAIN:
        return _PLAIN[hint]
    origin, parts = get_origin(hint), [part for part in get_args(hint) if part is not ...]
    if origin is Callable:
        return _Kind("a function", "functions", callable)
    if origin is tuple and len(parts) > 1:
        return _Kind(f"{len(parts)} {_several(parts[0])}", "", lambda value: _fits_each(value, *parts))
    if origin in (Sequence, Iterable, tuple, list):
        return _Kind(f"a list of {_several(parts[0])}", "", lambda value: _fits_each(value, parts[0]))
    if isinstance(hint, type) and hint.__module__.startswith("seqlaw."):
        name = hint.__name__
        words = name if name.endswith("s") else f"a {name}"
        return _Kind(words, f"{name.lower()}s", lambda value: isinstance(value, hint), record=True)
    return None


def _several(hint: Any) -> str:
    kind = _kind(hint)
    return kind.several if kind else "values"


def _fits_each(value: Any, *parts: Any) -> bool:
    """Whether a value is a list whose items fit annotations: all of them one, or each its own."""
    if not is_list(value):
        return False
    wanted = parts * len(value) if len(parts) == 1 else parts
    return len(value) == len(wanted) and not any(map(_unmet, wanted, value))


def _is_number(value: Any) -> bool:
    kind = (bool, np.bool_, type)
    if isinstance(value, kind) or getattr(value, "ndim", 0) > 0 or not hasattr(value, "__float__"):
        return False
    try:
        return float(value) > -math.inf  # and no NaN
    except (TypeError, ValueError, OverflowError):
        return False


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike)) and "\0" not in str(value)


_PLAIN = {
    bool: _Kind("True or False", "truth values", lambda value: isinstance(value, (bool, np.bool_))),
    int: _Kind("a whole number", "whole numbers", lambda value: _is_number(value) and float(value) % 1 == 0),
    float: _Kind("a number", "numbers", _is_number),
    str: _Kind("text", "names", lambda value: isinstance(value, str) and "\0" not in value),
    Path: _Kind("a path", "paths", _is_path),
}
