"""Input rules: the one place where a value is refused, and the one error that says so."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlaw.model.arrays import is_host, namespace

Array = NDArray[np.floating[Any]]
_SHOWN = 200  # characters of a refused value


class SeqlawError(Exception):
    """Base of what seqlaw raises for the user to act on; the message is one line."""


class InputError(SeqlawError, ValueError):
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


class MissingLibrary(SeqlawError, ImportError):
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


def is_list(value: Any) -> bool:
    """Whether a value is a finite run of others: a list, a tuple, a range, an array, a column."""
    unlike = (str, bytes, Mapping, set, type)
    return hasattr(value, "__len__") and getattr(value, "ndim", 1) != 0 and not isinstance(value, unlike)


def items(field: str, value: Any) -> Iterable[Any]:
    """The values of a list, a tuple, a range or an array."""
    if not is_list(value):
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
    except (TypeError, ValueError, OverflowError):
        raise InputError(field, "must be a real matrix", type(value).__name__) from None
    if tuple(array.shape) != shape:
        raise InputError(field, f"must have shape {shape}", tuple(array.shape))
    finite = namespace(array).isfinite(array)
    if not finite.all():
        raise InputError(field, "must be finite", float(array[~finite][0]))
    return array  # type: ignore[no-any-return]  # NumPy's or torch's
