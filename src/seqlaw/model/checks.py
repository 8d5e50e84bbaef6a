"""Input rules: the one place where a value is refused, and the one error that says so."""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, ParamSpec, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlaw.model.arrays import is_host, namespace

Array = NDArray[np.floating[Any]]
Arguments = ParamSpec("Arguments")
Answer = TypeVar("Answer")
_SHOWN = 200  # characters of a refused value


class InputError(ValueError):
    """A value breaks a rule. The message names the field, the rule and the value."""

    def __init__(self, field: str, rule: str, value: object) -> None:
        super().__init__(f"{field} {rule}, got {shown(value)}")
        self.field, self.rule, self.value = field, rule, value

    def __reduce__(self) -> tuple[Any, ...]:
        return (InputError, (self.field, self.rule, self.value))


def shown(value: object, words: Callable[[Any], str] = repr) -> str:
    """A value in one line of a readable length, whatever it is."""
    try:
        text = " ".join(words(value).split(" " if isinstance(value, str) else None))
    except Exception:  # a whole number of 5000 digits, an object of the user's
        text = f"a value of type {type(value).__name__}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}… ({len(text)} characters)"


class MissingLibrary(ImportError):
    """An extra is not installed; the message is `needs`."""


def needs(library: str, extra: str) -> str:
    """What to do about a library that is not installed, in one line for every kind of installation."""
    return f"needs {library}: pip install 'seqlaw[{extra}]' (from a checkout: pip install '.[{extra}]')"


def library(name: str, extra: str = "lab") -> Any:
    """A library that seqlaw can do without, imported only where it is needed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise MissingLibrary(f"this {needs(name, extra)}") from None


def real(field: str, value: Any) -> float:
    """A finite real number."""
    if isinstance(value, (bool, np.bool_)):
        raise InputError(field, "must be a number", value)
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        raise InputError(field, "must be a number", value) from None
    if not math.isfinite(number):
        raise InputError(field, "must be finite", value)
    return number


def positive(field: str, value: Any) -> float:
    """A number above zero, within 10^±100: products of a few stay inside floating point."""
    number = real(field, value)
    if number <= 0:
        raise InputError(field, "must be positive", value)
    if not 1e-100 <= number <= 1e100:
        raise InputError(field, "must lie between 1e-100 and 1e100", value)
    return number


def whole(field: str, value: Any, *, least: int = 1, most: int | None = None) -> int:
    """An integer in [least, most]; floats that are whole (1e9) are accepted."""
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        number = int(value)
    else:
        size = real(field, value)
        number = int(size)
        if number != size:
            raise InputError(field, "must be a whole number", value)
    if number < least:
        raise InputError(field, f"must be at least {least}", value)
    if most is not None and number > most:
        raise InputError(field, f"must be at most {most}", value)
    return number


def items(field: str, value: Any) -> Iterable[Any]:
    """The values of a list, a tuple, a range or an array."""
    if not _is_list(value):
        raise InputError(field, "must be a list", value)
    found: Iterable[Any] = value
    return found


def whole_or_infinite(field: str, value: Any, *, most: int | None = None) -> float:
    """`whole`, or infinity."""
    endless = isinstance(value, float) and value == math.inf
    return math.inf if endless else whole(field, value, most=most)


def vector(field: str, value: ArrayLike) -> Array:
    """A read-only copy of a non-empty one-dimensional array of finite reals."""
    try:
        if np.iscomplexobj(value):
            raise InputError(field, "must be real", "complex numbers")
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(field, "must be an array of real numbers", type(value).__name__) from None
    if array.ndim != 1 or array.size == 0:
        raise InputError(field, "must be a non-empty one-dimensional array", f"shape {array.shape}")
    if not np.all(np.isfinite(array)):
        raise InputError(field, "must be finite", float(array[~np.isfinite(array)][0]))
    array.flags.writeable = False
    return array


def matrix(field: str, value: ArrayLike, shape: tuple[int, int]) -> Array:
    """A finite real matrix of the given shape."""
    try:
        array: Any = np.asarray(value, dtype=np.float64) if is_host(value) else value
    except (TypeError, ValueError):
        raise InputError(field, "must be a real matrix", type(value).__name__) from None
    if tuple(array.shape) != shape:
        raise InputError(field, f"must have shape {shape}", tuple(array.shape))
    finite = namespace(array).isfinite(array)
    if not finite.all():
        raise InputError(field, "must be finite", float(array[~finite][0]))
    return array  # type: ignore[no-any-return]  # NumPy's or torch's


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
        return _Kind(f"{len(parts)} {_several(parts[0])}", "", lambda value: _is_list(value, *parts))
    if origin in (Sequence, Iterable, tuple, list):
        return _Kind(f"a list of {_several(parts[0])}", "", lambda value: _is_list(value, parts[0]))
    if isinstance(hint, type) and hint.__module__.startswith("seqlaw."):
        name = hint.__name__
        words = name if name.endswith("s") else f"a {name}"
        return _Kind(words, f"{name.lower()}s", lambda value: isinstance(value, hint), record=True)
    return None


def _several(hint: Any) -> str:
    kind = _kind(hint)
    return kind.several if kind else "values"


def _is_list(value: Any, *parts: Any) -> bool:
    """Whether a value is a finite run of others: a list, a tuple, a range, an array, a column.

    Where annotations are given, those others fit them: all of them one, or each its own.
    """
    unlike = (str, bytes, Mapping, set, type)
    if not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0 or isinstance(value, unlike):
        return False
    wanted = parts * len(value) if len(parts) == 1 else parts
    return not parts or (len(value) == len(wanted) and not any(map(_unmet, wanted, value)))


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
