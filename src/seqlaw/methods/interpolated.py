"""Corrections along a curve: a few of its points are solved, the others interpolated to a stated error.

The finite-sample correction is smooth in the logarithm of each size. What is interpolated is s/f, the excess
risk over that of the frozen filter, in the logarithm, and the shares of variance and cross in s. Intervals
are halved until the next midpoint is foretold to `CLOSE`; a kink (the safeguard begins) is closed in on.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import fields
from itertools import pairwise
from typing import Any, cast

import numpy as np
from scipy.interpolate import CubicSpline

from seqlaw.model.checks import Array
from seqlaw.model.filters import Schedule
from seqlaw.model.setting import Setting

CLOSE = 3e-4
"""Of the excess risk: how well the midpoints must be foretold. The stated error is 0.5 % at least, and the
midpoints are then nodes too, so what is left is about a tenth of this."""
FEWEST = 32
"""Points from which a curve is interpolated."""
_FIRST = 9
"""The points that are solved first."""

Solve = Callable[[Sequence[int]], Sequence[Array | None]]
"""The values of some points, None where they cannot be interpolated."""


def curves_among(
    settings: Sequence[Setting], labels: Sequence[Hashable]
) -> list[tuple[list[int], list[float]]]:
    """The points that differ in one size only (M, N, P or the steps) and share a label, and their log sizes.

    Settings of one teacher and d. Each is in one curve at most.
    """
    found, taken = [], set[int]()
    for axis in ("N", "R", "M", "P"):
        groups: dict[Hashable, dict[int, float]] = {}
        for k, (one, label) in enumerate(zip(settings, labels, strict=True)):
            if k not in taken and isinstance(one.P, int):
                rest = _all_but(axis, one)
                if rest is not None:
                    groups.setdefault((rest, label), {})[k] = _size(axis, one)
        for group in groups.values():
            if len(set(group.values())) >= FEWEST:
                order = sorted(group, key=group.__getitem__)
                found.append((order, [math.log(group[k]) for k in order]))
                taken |= group.keys()
    return found


def _size(axis: str, setting: Setting) -> float:
    return float(setting.schedule.L) if axis == "R" else float(getattr(setting, axis))


def _all_but(axis: str, setting: Setting) -> Hashable | None:
    """What else a setting is; None where its schedule has no length to vary."""
    sizes: dict[str, Any] = {"N": setting.N, "M": setting.M, "P": setting.P, "R": setting.schedule}
    tested: Any = setting.test_length
    if axis == "P":
        tested = tested == setting.P or tested
    if axis == "R":
        sizes["R"] = _shape(setting.schedule)
        return None if sizes["R"] is None else (tested, *sizes.values())
    return (tested, *(size for name, size in sizes.items() if name != axis))


def _shape(schedule: Schedule) -> Hashable | None:
    """A schedule but for its step and its length."""
    plain = schedule.plain
    names = {one.name for one in fields(cast(Any, plain))}
    if schedule.memory or not {"gamma", "L"} <= names:
        return None
    own = ((name, getattr(plain, name)) for name in sorted(names - {"gamma", "L"}))
    return type(plain), *own, *schedule.additions.items()


class _Line:
    """One curve: which of its points are solved, and where the next ones are wanted."""

    def __init__(self, order: list[int], x: list[float]) -> None:
        self.x, first = np.unique(x, return_index=True)
        self.at: list[int] = np.array(order)[first].tolist()
        self.nodes = np.unique(np.linspace(0, len(self.at) - 1, _FIRST).round().astype(int)).tolist()
        self.middles = [(low + high) // 2 for low, high in pairwise(self.nodes) if high - low > 1]
        self.spline: CubicSpline | None = None
        self.error = 0.0

    def refine(self, values: dict[int, Array | None]) -> None:
        """Take the midpoints as nodes; those that were not foretold have their halves halved."""
        known = [values[self.at[k]] for k in self.middles]
        far = set(self.middles)
        if self.spline is not None and all(one is not None for one in known):
            off = np.abs(self.spline(self.x[self.middles]) - np.array(known)).max(axis=1).tolist()
            far = {k for k, each in zip(self.middles, off, strict=True) if not each <= CLOSE}
            self.error = max([self.error, *(each for each in off if each <= CLOSE)])
        self.nodes = sorted({*self.nodes, *self.middles})
        self.middles = [
            (low + high) // 2
            for low, high in pairwise(self.nodes)
            if (low in far or high in far) and high - low > 1
        ]
        self.fit(values)

    def fit(self, values: dict[int, Array | None]) -> None:
        """A spline through the nodes; none, and nothing more is wanted, where one of them has no values."""
        known = [one for one in (values[self.at[k]] for k in self.nodes) if one is not None]
        whole = len(known) == len(self.nodes)
        self.spline = CubicSpline(self.x[self.nodes], np.array(known)) if whole else None
        if not whole:
            self.middles = []


def interpolated(
    count: int, curves: Sequence[tuple[list[int], list[float]]], solve: Solve
) -> list[tuple[Array | None, float]]:
    """The values of `count` points, and the most by which a midpoint of their curve was not foretold.

    Points on no curve are solved, and that is 0. So is a whole curve of which a point has no values.
    """
    values: dict[int, Array | None] = {}

    def look(wanted: Iterable[int]) -> None:
        new = sorted(set(wanted) - values.keys())
        values.update(zip(new, solve(new), strict=True) if new else ())

    lines = [_Line(order, x) for order, x in curves]
    apart = set(range(count)).difference(*(order for order, _ in curves))
    look(apart | {one.at[k] for one in lines for k in (*one.nodes, *one.middles)})
    for one in lines:
        one.fit(values)
    moving = lines
    while moving := [one for one in moving if one.middles]:
        look(one.at[k] for one in moving for k in one.middles)
        for one in moving:
            one.refine(values)
    answers: dict[int, tuple[Array | None, float]] = {}
    for line, (order, x) in zip(lines, curves, strict=True):
        if line.spline is None:
            look(order)
        else:
            answers |= {k: (one, line.error) for k, one in zip(order, line.spline(x), strict=True)}
    answers = {k: (one, 0.0) for k, one in values.items()} | answers
    return [answers[k] for k in range(count)]
