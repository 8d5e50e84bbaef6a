"""A teacher that is not known exactly: intervals on some of its six numbers, and draws from them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from seqlaw.model.checks import Array, InputError, positive, real, whole
from seqlaw.model.randomness import generator
from seqlaw.model.signature import checked
from seqlaw.model.teacher import NUMBERS, Teacher, as_power_law

SCALES = ("c_xi", "c_0")
"""Positive scales, of which an interval is taken in the logarithm."""


@dataclass(frozen=True, kw_only=True)
class Uncertain:
    """A teacher in the middle, and low and high of any of its numbers.

    An interval means: every number between its ends is as likely as another (of c_ξ and c_0, every
    logarithm), whatever the other numbers are. Each end makes a stable teacher, and the middle lies between.

    >>> import seqlaw
    >>> seqlaw.Uncertain(teacher="regime2", intervals={"alpha": (1.7, 1.9)}).teacher.alpha
    1.8
    """

    teacher: Teacher
    """A preset's name is one."""
    intervals: Mapping[str, tuple[float, float]] = field(hash=False)

    def __post_init__(self) -> None:
        teacher = as_power_law("Uncertain.teacher", self.teacher)
        pairs = _pairs(self.intervals)
        for name, (low, high) in pairs.items():
            for end in (low, high):
                try:
                    replace(teacher, **{name: end})
                except InputError as error:
                    raise InputError(f"Uncertain.{name}", f"{error.rule} at both ends", end) from None
            value = getattr(teacher, name)
            if not low <= value <= high:
                span = f"{low:g}:{high:g}"
                raise InputError(f"Uncertain.{name}", f"must lie about the teacher's {value:g}", span)
        object.__setattr__(self, "teacher", teacher)
        object.__setattr__(self, "intervals", MappingProxyType(pairs))

    @checked
    def draws(self, n: int, *, seed: int = 0) -> list[Teacher]:
        """n teachers, stratified: each of n equal parts of an interval has one (a Latin hypercube).

        Every number has a stream of its own, so that an interval more leaves the draws of the others alone.
        """
        count = whole("draws", n, most=10**6)
        columns = {name: self._column(name, count, seed) for name in self.intervals}
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        return [replace(self.teacher, **dict(zip(columns, row, strict=True))) for row in rows]

    def _column(self, name: str, n: int, seed: int) -> Array:
        rng = generator(seed, "uncertain", name, n)
        share = (rng.permutation(n) + rng.random(n)) / n
        low, high = self.intervals[name]
        if name not in SCALES:
            return np.asarray(low + (high - low) * share)
        return np.asarray(np.exp(math.log(low) + math.log(high / low) * share))

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self.teacher, dict(self.intervals))  # a mapping that nobody changes has no pickle


def _again(teacher: Teacher, intervals: dict[str, tuple[float, float]]) -> Uncertain:
    return Uncertain(teacher=teacher, intervals=intervals)


def middles(intervals: Mapping[str, tuple[float, float]]) -> dict[str, float]:
    """The number that stands for each interval: the median of what is drawn from it."""
    found = {}
    for name, (low, high) in _pairs(intervals).items():
        value = (low + high) / 2
        if name in SCALES:
            value = math.sqrt(positive(f"Uncertain.{name}", low)) * math.sqrt(high)
        typed = float(f"{value:.12g}")  # 1.8 between 1.7 and 1.9, not 1.7999999999999998
        found[name] = typed if low <= typed <= high else value
    return found


def _pairs(intervals: object) -> dict[str, tuple[float, float]]:
    """Each interval as two finite numbers, low and high, in the order of a teacher's six."""
    if not isinstance(intervals, Mapping) or not intervals:
        raise InputError("Uncertain.intervals", "must have low and high of at least one number", intervals)
    for name, pair in intervals.items():
        where = f"Uncertain.{name}"
        if name not in NUMBERS:
            raise InputError("Uncertain.intervals", f"must be of {', '.join(NUMBERS)}", name)
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise InputError(where, "must be two numbers, low and high", pair)
        low, high = (real(where, end) for end in pair)
        if not low < high:
            raise InputError(where, "must have its low end below its high end", f"{low:g}:{high:g}")
    return {n: (float(intervals[n][0]), float(intervals[n][1])) for n in NUMBERS if n in intervals}
