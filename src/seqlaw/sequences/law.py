"""The law of the loss at one length, its interval, and which length wins.

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from seqlaw.model.checks import Array
from seqlaw.sequences.pilot import mean_error

LEAST_TOKENS = 20.0
"""Tokens per learned dimension that the pilot must have for a forecast beyond it."""
STEEPEST = 1.5
"""Loss of halves over that of the pilot, above which nothing is forecast: V/n would be most of the loss."""
LEVEL = 0.9
"""Of the intervals."""
Losses = Mapping[tuple[int, int], Array]
"""Of students of random subsets by P and N, two complementary ones after each other."""
Bars = Mapping[tuple[int, int], float]
"""By how much the losses at two lengths must differ to be distinguished."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Chance:
    """By what a loss may be off, so that the difference of two losses can be judged in pairs.

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
    """What the loss takes of that."""
    bend: float
    """By how much the curvature may move the loss."""
    blocks: int

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
        """The bound that chance passes upwards with probability 1 - level, by Student's t of each part."""
        pairs = min(self.halves.size, self.blocks - 1)
        parts = ((self.tested, self.count.size - 1), (self.drawn, pairs), (self.measured, pairs))
        return math.hypot(*(error * float(stdtrit(max(freedom, 1), level)) for error, freedom in parts))


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


@dataclass(frozen=True, kw_only=True, eq=False)
class Law:
    """The loss at one length against N; `forecast` is False where the pilot is too small for it."""

    P: int
    n: int
    loss: float
    """Of the pilot's student."""
    seen: Mapping[int, float]
    """Mean loss of students of n//2, n//4 and n//8 sequences."""
    learned: float
    """Dimensions."""
    chance: Chance
    """Of the pilot's student; `spread` is of halves."""
    gained: Array
    """Loss of the pilot's student less that of halves, summed over each test group."""

    @property
    def forecast(self) -> bool:
        return self.tokens(self.n) >= LEAST_TOKENS and not self.steep

    @property
    def steep(self) -> bool:
        return self.seen[self.n // 2] > STEEPEST * self.loss

    @property
    def variance(self) -> float:
        """V; not below 0, since more data do not hurt on average."""
        return max(0.0, self._slope(self.n // 2))

    @property
    def limit(self) -> float:
        """What no number of sequences of this length can beat at this schedule."""
        return self.at(math.inf)

    def line(self, N: float) -> float:
        """L_n + V (1/N - 1/n)."""
        return self.loss + self.variance * (1 / N - 1 / self.n)

    def at(self, N: float) -> float:
        """The line beyond half the pilot; below, what was measured, interpolated in 1/N."""
        if N >= self.n // 2:
            return self.line(N)
        return float(np.interp(1 / N, [1 / each for each in self.seen], list(self.seen.values())))

    def _slope(self, N: int) -> float:
        return (self.seen[N] - self.loss) / (1 / N - 1 / self.n)

    def chance_at(self, N: float) -> Chance:
        """Of the loss at N; below half the pilot as there."""
        n, half = self.n, self.n // 2
        N = max(N, half)
        share = (1 / n - 1 / N) / (1 / half - 1 / n)  # of L_n - L_half that is added: from -1 to about 1
        bend = 0.0
        if n // 4 in self.seen:
            curved = self._slope(n // 4) - self._slope(half)
            bend = (1 - n / (2 * N)) * (1 / n - 1 / N) * curved
        c = self.chance
        return Chance(
            test=c.test + share * self.gained,
            count=c.count,
            halves=c.halves,
            spread=c.spread,
            carried=-share * c.spread,
            bend=bend,
            blocks=c.blocks,
        )

    def interval(self, N: float) -> tuple[float, float]:
        return interval(self.at(N), self.chance_at(N))

    def tokens(self, N: float) -> float:
        """Per learned dimension."""
        return N * self.P / self.learned


def interval(loss: float, chance: Chance) -> tuple[float, float]:
    """Of 90 %, in the logarithm: a loss is positive, and its mean over few groups is skewed upwards."""
    width = chance.width((1 + LEVEL) / 2)
    down, up = width + max(0.0, -chance.bend), width + max(0.0, chance.bend)
    return loss * math.exp(-down / loss), loss * math.exp(min(up / loss, 50.0))


def _pairs(losses: Array) -> tuple[Array, Array]:
    """Half the difference of two complementary subsets, and their mean, by pair."""
    first, second = losses.reshape(-1, 2).T
    return (first - second) / 2, (first + second) / 2


def make_law(
    *,
    P: int,
    n: int,
    loss: float,
    learned: float,
    losses: Losses,
    test: Array,
    count: Array,
    halves: Array,
    blocks: int,
) -> Law:
    """`test` has the losses of the pilot's student summed by test group, `halves` means over some halves."""
    apart, mean = _pairs(losses[P, n // 2])
    spread = mean - mean.mean()
    return Law(
        P=P,
        n=n,
        loss=loss,
        seen={N: float(losses[P, N].mean()) for N in (n // 2, n // 4, n // 8) if N},
        learned=learned,
        chance=Chance(
            test=test,
            count=count,
            halves=apart,
            spread=spread,
            carried=np.zeros_like(spread),
            bend=0.0,
            blocks=blocks,
        ),
        gained=test - halves,
    )


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """The law where it can be checked: the loss of students of N sequences, and its forecast."""

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


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Forecast over truth: the widest 90 % interval of the forecast rows; relative."""

    ratio: float
    """Forecast over measured at a quarter of the pilot, mean over the lengths."""
    low: float
    high: float
    difference: float
    """By which a length must lie above the best to be distinguished from it: the largest of all lengths."""


@dataclass(frozen=True, kw_only=True)
class Best:
    """The length that wins by more than can be doubted, if there is one."""

    P: int | None
    kind: str | None
    tied: tuple[int, ...]
    """Lengths that cannot be distinguished from the best."""


def rows_at(
    laws: Sequence[Law], splits: Mapping[int, int], losses: Losses
) -> tuple[list[Row], dict[int, Chance]]:
    """Measured up to half the pilot, forecast beyond; and by what each loss may be off."""
    rows, chances = [], {}
    for law in laws:
        N, n = splits.get(law.P, 0), law.n
        measured = N <= n // 2
        if N == 0 or not (measured or law.forecast):
            continue
        if measured:
            apart, mean = _pairs(losses[law.P, N])
            loss = float(mean.mean())
            chance = Chance(
                test=law.chance.test - law.gained,
                count=law.chance.count,
                # Subsets of N of a pilot of n: the mean over all of them varies as n/N less, at most.
                halves=apart * math.sqrt(2 * N / n),
                spread=np.zeros_like(mean),
                carried=mean - loss,
                bend=0.0,
                blocks=law.chance.blocks,
            )
        else:
            loss, chance = law.at(N), law.chance_at(N)
        low, high = interval(loss, chance)
        chances[law.P] = chance
        rows.append(
            Row(
                P=law.P,
                N=N,
                loss=loss,
                se=math.hypot(chance.drawn, chance.measured),
                low=low,
                high=high,
                kind="measured" if measured else "forecast",
                tokens=law.tokens(N),
            )
        )
    return rows, chances


def overlap(laws: Sequence[Law], shares: Sequence[int], losses: Losses) -> tuple[Overlap, ...]:
    found = []
    for law in laws:
        for N in shares:
            seen = losses[law.P, N]
            found.append(
                Overlap(
                    P=law.P,
                    N=N,
                    measured=float(seen.mean()),
                    se=float(seen.std(ddof=1) / np.sqrt(seen.size)),
                    forecast=law.line(N) if law.forecast and N < law.n // 2 else None,
                    tokens=law.tokens(N),
                )
            )
    return tuple(found)


def bars(chances: Mapping[int, Chance], level: float) -> Bars:
    """What chance leaves of a difference between lengths, and the curvature of both."""
    return {
        (a, b): (chances[a] - chances[b]).width(level) + abs(chances[a].bend) + abs(chances[b].bend)
        for a in chances
        for b in chances
    }


def accuracy(
    laws: Sequence[Law], rows: Sequence[Row], checked: Sequence[Overlap], difference: float
) -> Accuracy | None:
    """Of the forecast rows; without any, of the pilot's own size."""
    known = [law for law in laws if law.forecast]
    if not known:
        return None
    ends = [(row.loss / row.high, row.loss / row.low) for row in rows if row.kind == "forecast"]
    if not ends:
        ends = [(law.loss / high, law.loss / low) for law in known for low, high in (law.interval(law.n),)]
    ratios = [one.ratio for one in checked if one.forecast is not None and one.N == known[0].n // 4]
    return Accuracy(
        ratio=float(np.mean(ratios)) if ratios else 1.0,
        low=min(low for low, _ in ends),
        high=max(high for _, high in ends),
        difference=difference,
    )


def best(rows: Sequence[Row], apart: Bars) -> Best:
    """Named only where every other length is worse by more than its bar."""
    top = min(rows, key=lambda row: row.loss)
    tied = tuple(row.P for row in rows if row is top or row.loss - top.loss <= apart[top.P, row.P])
    alone = len(tied) == 1 < len(rows)
    return Best(P=top.P if alone else None, kind=top.kind if alone else None, tied=tied)
