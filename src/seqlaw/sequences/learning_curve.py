"""The loss at one length against the number of sequences, its interval, and which length wins.

L(N) = L_n + V (1/N - 1/n), where L_n is the loss of the pilot's student and V is measured:
    V = (L_h - L_n)/(1/h - 1/n),   h = n/2,
with L_h the mean loss of students of random halves on the same test sequences. Halves come in complementary
pairs, so that what is linear in the data cancels in their mean. The interval has four parts: the test
sequences, the pilot (see `Chance`), the scatter of V over the pairs, and the curvature. If L(N) had a term
in 1/N², V from quarters would differ from V from halves, and the forecast would move by
(1 - n/2N)(1/n - 1/N)(V_quarter - V): that is added to the interval on its side.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from seqlaw.model.checks import Array
from seqlaw.model.schedule import Schedule
from seqlaw.sequences.pilot import mean_error

LEAST_TOKENS = 20.0
"""Tokens per learned dimension that the pilot must have for a forecast beyond it."""
STEEPEST = 1.5
"""Loss of halves over that of the pilot, above which nothing is forecast: V/n would be most of the loss."""
LEVEL = 0.9
"""Of the intervals."""
_HALVINGS = 60  # of an interval of 1/N, by which a loss is found in it to rounding
Bars = Mapping[tuple[int, int], float]
"""By how much the losses at two lengths must differ to be distinguished."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chance:
    """The errors of a loss, kept by group and pair so that the difference of two losses has its own error.

    Let l be the variance of the loss over pilots that is linear in the data and q the quadratic one (which
    is all there is at the best student). Half the difference of complementary halves has variance l + 2q and
    their mean less L_n has q: the difference of these two is the variance of L_n.
    """

    test: Array
    """Losses summed over the test sequences of each group."""
    count: Array
    """Test sequences of each group."""
    halves: Array
    """Half the difference of two complementary subsets, by pair."""
    spread: Array
    """Mean of two complementary subsets, by pair, about its mean."""
    carried: Array
    """The part of `spread` that enters the loss."""
    bend: float
    """By how much the curvature may move the loss."""
    blocks: int
    room: float = 0.0
    """By how much a better step may lower the loss."""

    def __sub__(self, other: Chance) -> Chance:
        names = ("test", "halves", "spread", "carried", "bend")
        parts = {name: getattr(self, name) - getattr(other, name) for name in names}
        return Chance(count=self.count, blocks=self.blocks, **parts)

    @property
    def drawn(self) -> float:
        """Standard error over pilots."""
        whole, pairs = float(np.mean(self.halves**2)), self.halves.size
        return math.sqrt(max(whole - float(self.spread @ self.spread) / max(pairs - 1, 1), whole / 2))

    @property
    def measured(self) -> float:
        """Standard error over the subsets that were drawn."""
        pairs = self.carried.size
        return math.sqrt(float(self.carried @ self.carried) / max(pairs - 1, 1) / pairs)

    @property
    def tested(self) -> float:
        """Standard error over test groups."""
        return mean_error(self.test, self.count)

    def width(self, level: float) -> float:
        """The one-sided bound of the error at `level`, by Student's t of each part."""
        pairs = min(self.halves.size, self.blocks - 1)
        parts = ((self.tested, self.count.size - 1), (self.drawn, pairs), (self.measured, pairs))
        return math.hypot(*(error * float(stdtrit(max(freedom, 1), level)) for error, freedom in parts))

    def interval(self, loss: float) -> tuple[float, float]:
        """Of 90 %, in the logarithm: a loss is positive, and its mean over few groups is skewed upwards."""
        width = self.width((1 + LEVEL) / 2)
        down, up = width + max(0.0, -self.bend), width + max(0.0, self.bend)
        return loss * math.exp(-down / loss), loss * math.exp(min(up / loss, 50.0))


def bars(chances: Mapping[int, Chance], level: float) -> Bars:
    """By how much b must be above a: what chance, curvature and a better step of b may explain."""
    bends = {P: abs(one.bend) for P, one in chances.items()}
    return {
        (a, b): (chances[a] - chances[b]).width(level) + bends[a] + bends[b] + chances[b].room
        for a in chances
        for b in chances
    }


@dataclass(frozen=True, kw_only=True)
class Row:
    """One split of the tokens."""

    P: int
    N: int
    loss: float
    se: float
    """Over pilots and subsets, without the test sequences: that part is common to all rows (`test_se`)."""
    low: float
    high: float
    """90 % interval of the mean loss of such students on any test sequences."""
    kind: str
    """"measured" or "forecast"."""
    tokens: float
    """Per learned dimension."""


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """The forecast where it can be checked: the loss of students of N sequences, and its forecast."""

    P: int
    N: int
    measured: float
    se: float
    forecast: float | None
    """None where nothing is forecast, and at half the pilot, which sets V."""
    tokens: float

    @property
    def ratio(self) -> float:
        """Forecast over measured."""
        return math.nan if self.forecast is None else self.forecast / self.measured


@dataclass(frozen=True, kw_only=True, eq=False)
class LearningCurve:
    """The loss at one length against N; `forecast` is False where the pilot is too small for it."""

    P: int
    n: int
    loss: float
    """Of the pilot's student."""
    subsets: Mapping[int, Array]
    """Losses of students of N random sequences by N, two complementary ones after each other."""
    learned: float
    """Dimensions."""
    schedule: Schedule
    """That of every student of this length; the safeguard lowers its step where a subset needs it."""
    largest: bool
    """Whether its step is the largest that the safeguard allows for the pilot."""
    room: float
    """By how much a larger one may lower the loss at the tokens asked for (`pilot.best_schedule`)."""
    test: Array
    """Losses of the pilot's student summed over each test group."""
    halves: Array
    """The same of students of halves, their mean."""
    count: Array
    """Test sequences of each group."""
    blocks: int
    """Of the pilot, from which subsets were drawn."""

    @property
    def forecast(self) -> bool:
        return self.tokens(self.n) >= LEAST_TOKENS and not self.steep

    @property
    def steepness(self) -> float:
        """Loss of halves over that of the pilot."""
        return self.seen(self.n // 2) / self.loss

    @property
    def steep(self) -> bool:
        return self.steepness > STEEPEST

    @property
    def variance(self) -> float:
        """V; not below 0, since more data do not hurt on average."""
        return max(0.0, self._slope(self.n // 2))

    @property
    def limit(self) -> float:
        """The loss with infinitely many sequences of this length at this schedule."""
        return self.at(math.inf)

    def tokens(self, N: float) -> float:
        """Per learned dimension."""
        return N * self.P / self.learned

    def seen(self, N: int) -> float:
        """Mean loss of students of N sequences."""
        return float(self.subsets[N].mean())

    def line(self, N: float) -> float:
        """L_n + V (1/N - 1/n)."""
        return self.loss + self.variance * (1 / N - 1 / self.n)

    def at(self, N: float) -> float:
        """The line beyond half the pilot; below, what was measured, interpolated in 1/N."""
        if N >= self.n // 2:
            return self.line(N)
        known = [each for each in (self.n // 2, self.n // 4, self.n // 8) if each]
        return float(np.interp(1 / N, [1 / each for each in known], [self.seen(each) for each in known]))

    def _slope(self, N: int) -> float:
        return (self.seen(N) - self.loss) / (1 / N - 1 / self.n)

    def chance_at(self, N: float) -> Chance:
        """Of the forecast at N; below half the pilot as there."""
        n, half = self.n, self.n // 2
        N = max(N, half)
        share = (1 / n - 1 / N) / (1 / half - 1 / n)  # of L_n - L_half that is added: from -1 to about 1
        bend = 0.0
        if n // 4 in self.subsets:
            curved = self._slope(n // 4) - self._slope(half)
            bend = (1 - n / (2 * N)) * (1 / n - 1 / N) * curved
        apart, mean = _pairs(self.subsets[half])
        spread = mean - mean.mean()
        return Chance(
            test=self.test + share * (self.test - self.halves),
            count=self.count,
            halves=apart,
            spread=spread,
            carried=-share * spread,
            bend=bend,
            blocks=self.blocks,
            room=self.room,
        )

    def interval(self, N: float) -> tuple[float, float]:
        """Of the forecast."""
        return self.chance_at(N).interval(self.at(N))

    def row(self, N: int) -> tuple[Row, Chance]:
        """Measured up to half the pilot, forecast beyond; and by what the loss may be off."""
        measured = N <= self.n // 2
        loss, chance = (self.seen(N), self._measured(N)) if measured else (self.line(N), self.chance_at(N))
        low, high = chance.interval(loss)
        row = Row(
            P=self.P,
            N=N,
            loss=loss,
            se=math.hypot(chance.drawn, chance.measured),
            low=low,
            high=high,
            kind="measured" if measured else "forecast",
            tokens=self.tokens(N),
        )
        return row, chance

    def _measured(self, N: int) -> Chance:
        apart, mean = _pairs(self.subsets[N])
        return Chance(
            test=self.halves,
            count=self.count,
            # Subsets of N of a pilot of n: the mean over all of them varies as n/N less, at most.
            halves=apart * math.sqrt(2 * N / self.n),
            spread=np.zeros_like(mean),
            carried=mean - mean.mean(),
            bend=0.0,
            blocks=self.blocks,
        )

    def overlap(self, N: int) -> Overlap:
        """The forecast beside what was measured."""
        losses = self.subsets[N]
        return Overlap(
            P=self.P,
            N=N,
            measured=self.seen(N),
            se=float(losses.std(ddof=1) / np.sqrt(losses.size)),
            forecast=self.line(N) if self.forecast and N < self.n // 2 else None,
            tokens=self.tokens(N),
        )


def _pairs(losses: Array) -> tuple[Array, Array]:
    """Half the difference of two complementary subsets, and their mean, by pair."""
    first, second = losses.reshape(-1, 2).T
    return (first - second) / 2, (first + second) / 2


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Forecast over truth: the widest 90 % interval of the forecast rows; relative."""

    ratio: float
    """Forecast over measured at a quarter of the pilot, mean over the lengths."""
    low: float
    high: float
    difference: float
    """By which a length must lie above the best to be distinguished from it: the largest of all lengths."""


def accuracy(
    curves: Sequence[LearningCurve], rows: Sequence[Row], checked: Sequence[Overlap], difference: float
) -> Accuracy | None:
    """Of the forecast rows; without any, of the pilot's own size."""
    known = [curve for curve in curves if curve.forecast]
    if not known:
        return None
    ends = [(row.loss / row.high, row.loss / row.low) for row in rows if row.kind == "forecast"]
    if not ends:
        ends = [(one.loss / high, one.loss / low) for one in known for low, high in (one.interval(one.n),)]
    ratios = [one.ratio for one in checked if one.forecast is not None and one.N == known[0].n // 4]
    return Accuracy(
        ratio=float(np.mean(ratios)) if ratios else 1.0,
        low=min(low for low, _ in ends),
        high=max(high for _, high in ends),
        difference=difference,
    )


@dataclass(frozen=True, kw_only=True)
class Best:
    """The length that wins by more than can be doubted, if there is one."""

    P: int | None
    kind: str | None
    tied: tuple[int, ...]
    """Lengths that cannot be distinguished from the best."""


def best(rows: Sequence[Row], apart: Bars) -> Best:
    """Named only where every other length is worse by more than its bar."""
    top = min(rows, key=lambda row: row.loss)
    tied = tuple(row.P for row in rows if row is top or row.loss - top.loss <= apart[top.P, row.P])
    alone = len(tied) == 1 < len(rows)
    return Best(P=top.P if alone else None, kind=top.kind if alone else None, tied=tied)


# --- how many more? ------------------------------------------------------------------------------------


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


def crossings(
    curves: Sequence[LearningCurve], top: int | None, tokens: int, apart: Bars
) -> tuple[Crossing, ...]:
    """L = L_∞ + VP/T at T tokens: a length of lower L_∞ wins from some T on."""
    known = {curve.P: curve for curve in curves if curve.forecast}
    found = []
    for P, curve in known.items():
        if top not in known or (P, top) not in apart:
            continue
        now, bar = known[top], apart[P, top]
        gap, cost = now.limit - curve.limit, curve.variance * P - now.variance * top
        if gap > bar and cost / gap > tokens:
            T, low, high = (cost / each for each in (gap, gap + bar, gap - bar))
            found.append(Crossing(P=P, over=top, N=T / P, tokens=T, low=low, high=high))
    return tuple(found)


def needed(curve: LearningCurve, target: float) -> Needed:
    """The N at which the loss, and the ends of its interval, come down to the target."""
    least = max(1, curve.n // 8)
    N, low, high = (
        _sequences(loss, target, least)
        for loss in (curve.at, lambda N: curve.interval(N)[0], lambda N: curve.interval(N)[1])
    )
    at_most = curve.at(least) <= target
    return Needed(P=curve.P, N=N, low=low, high=high, at_most=at_most, trusted=least)


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
