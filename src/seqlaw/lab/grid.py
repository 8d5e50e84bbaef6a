"""Grids of tasks: axes (lists or ranges) → list of dicts, each with a canonical text and a key."""

from __future__ import annotations

import hashlib
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from seqlaw.model.checks import InputError

Task = dict[str, Any]

MOST = 200_000
"""Points of a grid: half a gigabyte, and seconds to list. More are several sweeps into one folder."""
_FAR = 1e100  # the ends of a range: differences and powers of them stay inside floating point
_SPACINGS = ("log", "lin")

canonical = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode
"""JSON with sorted keys and no spaces: equal values, equal text, and floats to the last bit."""
compact = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
"""JSON without spaces, in the order of the value itself, for people who read the stored text."""


def key(task: Task, seed: int) -> str:
    """The name of a task under a seed: the first 128 bits of the SHA-256 of its canonical JSON."""
    return hashlib.sha256(canonical([task, seed]).encode()).hexdigest()[:32]


def axis(name: str, value: Any, *, whole: bool = False) -> list[Any]:
    """The values of one axis.

    A single value, a list, or a range `{log = [a, b], n = k}` or `{lin = [a, b], n = k}`, ends included.
    With `whole`, the values of a range are rounded, so that some may coincide.
    """
    if isinstance(value, Mapping):
        return _range(name, value, whole=whole)
    if isinstance(value, str) or not isinstance(value, Sequence):
        return [value]
    if not value:
        raise InputError(name, "must not be empty", value)
    _distinct(name, value)
    return list(value)


def _range(name: str, table: Mapping[str, Any], *, whole: bool) -> list[Any]:
    spacings = [spacing for spacing in _SPACINGS if spacing in table]
    unknown = sorted(set(table) - {*_SPACINGS, "n"})
    if unknown:
        field = unknown[0]
        raise InputError(f"{name}.{field}", "is not a field of a range (log or lin, and n)", table[field])
    if len(spacings) != 1 or "n" not in table:
        raise InputError(name, "must be a range {log = [a, b], n = k}", dict(table))
    spacing, n = spacings[0], table["n"]
    if not isinstance(n, int) or isinstance(n, bool) or n < 1:
        raise InputError(f"{name}.n", "must be a whole number from 1", n)
    require_few(f"{name}.n", n)
    ends = table[spacing]
    if not isinstance(ends, Sequence) or len(ends) != 2 or not all(_finite(end) for end in ends):
        raise InputError(f"{name}.{spacing}", f"must be two finite numbers [a, b] within ±{_FAR:g}", ends)
    low, high = (float(end) for end in ends)
    if spacing == "log" and min(low, high) <= 0:
        raise InputError(f"{name}.log", "must have positive ends", ends)
    if (n == 1) != (low == high):
        raise InputError(f"{name}.n", f"must be 1 exactly where both ends of {ends!r} are equal", n)
    values = [_between(low, high, k / max(n - 1, 1), spacing) for k in range(n)]
    return [round(value) for value in values] if whole else values


def _between(low: float, high: float, share: float, spacing: str) -> float:
    """The point at a share of the way; the ends themselves are exact."""
    if share in (0, 1):
        return low if share == 0 else high
    if spacing != "log":
        return low + (high - low) * share
    return math.exp(math.log(low) + (math.log(high) - math.log(low)) * share)


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) <= _FAR


def _distinct(name: str, values: Iterable[Any]) -> None:
    seen: set[str] = set()
    for value in values:
        text = canonical(value)
        if text in seen:
            raise InputError(name, "must have distinct values", list(values))
        seen.add(text)


def require_few(field: str, n: int) -> None:
    """Refuse a grid of more points than a machine can hold, before it is made."""
    if n > MOST:
        raise InputError(field, f"must make at most {MOST:,} points", n)


def combine(axes: Mapping[str, Sequence[Any]], how: str = "product") -> list[Task]:
    """All combinations of the axes, the last one fastest (`product`), or their values side by side (`zip`).

    In a zip, an axis with one value keeps it at every point.
    """
    if how == "product":
        require_few("combine", math.prod(map(len, axes.values())))
        return [dict(zip(axes, point, strict=True)) for point in itertools.product(*axes.values())]
    if how != "zip":
        raise InputError("combine", "must be product or zip", how)
    lengths = {name: len(values) for name, values in axes.items() if len(values) > 1}
    if len(set(lengths.values())) > 1:
        raise InputError("combine", "zip needs axes of equal length (or of one value)", lengths)
    n = max(lengths.values(), default=1)
    columns = [list(values) * n if len(values) == 1 else values for values in axes.values()]
    return [dict(zip(axes, point, strict=True)) for point in zip(*columns, strict=True)]
