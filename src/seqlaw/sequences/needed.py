"""How many more? Where another length would win, and how many sequences reach a loss."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from seqlaw.sequences.law import LEAST_TOKENS, Accuracy, Bars, Law


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
    """As far as the limit is known; `high` None: perhaps none does; `low` 1 where the law is not trusted."""
    at_most: bool
    """Whether fewer may do."""
    trusted: int
    """The least number of sequences that the law is trusted with."""


def crossings(laws: Sequence[Law], top: int | None, tokens: int, apart: Bars) -> tuple[Crossing, ...]:
    """L = L_∞/(1 - vP/T) at T tokens, v the law's noise: a length of lower L_∞ wins from some T on."""
    known = {law.P: law for law in laws if law.forecast}
    found = []
    for P, law in known.items():
        if top not in known or (P, top) not in apart:
            continue
        now, bar = known[top], apart[P, top]
        gap, cost = now.limit - law.limit, now.limit * law.noise * P - law.limit * now.noise * top
        if gap > bar and cost / gap > tokens:
            T, low, high = (cost / each for each in (gap, gap + bar, gap - bar))
            found.append(Crossing(P=P, over=top, N=T / P, tokens=T, low=low, high=high))
    return tuple(found)


def needed(laws: Sequence[Law], target: float, accuracy: Accuracy | None) -> tuple[Needed, ...]:
    """L_∞/(1 - v/N) = target, with L_∞ off by as much as forecasts are."""
    found = []
    for law in laws:
        if not law.forecast or accuracy is None:
            continue
        floor = _upwards(LEAST_TOKENS * law.learned / law.P)
        N, low, high = (
            _sequences(law.noise, 1 - law.limit / ratio / target)
            for ratio in (1.0, accuracy.high, accuracy.low)
        )
        at_most = N is not None and N < floor
        few = low is not None and low < floor
        ends = [None if x is None else max(x, floor) for x in (N, high)]
        found.append(
            Needed(
                P=law.P,
                N=ends[0],
                low=1 if few else low,
                high=ends[1],
                at_most=at_most,
                trusted=floor,
            )
        )
    return tuple(found)


def _sequences(noise: float, room: float) -> int | None:
    return _upwards(noise / room) if room > 1e-9 else None


def _upwards(count: float) -> int:
    unit: int = 10 ** max(0, len(str(math.ceil(count))) - 3)
    return math.ceil(count / unit) * unit
