"""How many more? Where another length would win, and how many sequences reach a loss."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from seqlaw.sequences.law import Bars, Law

_HALVINGS = 60  # of an interval of 1/N, by which a loss is found in it to rounding


@dataclass(frozen=True, kw_only=True)
class Crossing:
    """From this many tokens on, sequences of length P win over those of length `over`."""

    P: int
    over: int
    N: float
    """Sequences of length P."""
    tokens: float
    low: float
    high: float
    """Tokens, as far as the difference of the two limits is known."""


@dataclass(frozen=True, kw_only=True)
class Needed:
    """Sequences of length P that reach the target, to three digits upwards: so many do.

    None where no number of them does.
    """

    P: int
    N: int | None
    low: int | None
    high: int | None
    """Where the ends of the 90 % interval reach it; None: never."""
    at_most: bool
    """Whether fewer may do."""
    trusted: int
    """The least number of sequences that was measured: an eighth of the pilot."""


def crossings(laws: Sequence[Law], top: int | None, tokens: int, apart: Bars) -> tuple[Crossing, ...]:
    """L = L_∞ + VP/T at T tokens: a length of lower L_∞ wins from some T on."""
    known = {law.P: law for law in laws if law.forecast}
    found = []
    for P, law in known.items():
        if top not in known or (P, top) not in apart:
            continue
        now, bar = known[top], apart[P, top]
        gap, cost = now.limit - law.limit, law.variance * P - now.variance * top
        if gap > bar and cost / gap > tokens:
            T, low, high = (cost / each for each in (gap, gap + bar, gap - bar))
            found.append(Crossing(P=P, over=top, N=T / P, tokens=T, low=low, high=high))
    return tuple(found)


def needed(laws: Sequence[Law], target: float) -> tuple[Needed, ...]:
    """The N at which the loss, and the ends of its interval, come down to the target."""
    found = []
    for law in laws:
        if not law.forecast:
            continue
        least = max(1, law.n // 8)
        N, low, high = (
            _sequences(loss, target, least)
            for loss in (law.at, lambda N, law=law: law.interval(N)[0], lambda N, law=law: law.interval(N)[1])
        )
        found.append(Needed(P=law.P, N=N, low=low, high=high, at_most=law.at(least) <= target, trusted=least))
    return tuple(found)


def _sequences(loss: Callable[[float], float], target: float, least: int) -> int | None:
    """The smallest N from `least` on with this loss, upwards to three digits; None where no N has it."""
    if loss(least) <= target:
        return least
    if loss(math.inf) >= target:
        return None
    above, below = 1 / least, 0.0  # 1/N
    for _ in range(_HALVINGS):
        middle = (above + below) / 2
        above, below = (middle, below) if loss(1 / middle) > target else (above, middle)
    return _upwards(1 / below) if below else None


def _upwards(count: float) -> int:
    unit: int = 10 ** max(0, len(str(math.ceil(count))) - 3)
    return math.ceil(count / unit) * unit
