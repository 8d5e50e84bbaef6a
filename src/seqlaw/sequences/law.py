"""The law of the loss at one length, how it does where it can be checked, and which length wins.

L(N) = L_∞/(1 - V/(N L_∞)), with L_∞ from the loss at N = n; see `sequences.forecast`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from seqlaw.model.checks import Array
from seqlaw.sequences.pilot import mean_error

LEAST_TOKENS = 20.0
"""Tokens per learned dimension below which the filter counts as frozen too early: nothing is forecast."""
Losses = Mapping[tuple[int, int], Array]
"""Of students of random subsets, by P and N."""
Bars = Mapping[tuple[int, int], float]
"""By how much the losses at two lengths must differ to be told apart."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """One split of the tokens."""

    P: int
    N: int
    loss: float
    se: float
    """Over subsets (measured), or of the pilot's own student (forecast). Test sequences: `test_se`."""
    kind: str
    """"measured" or "forecast"."""
    tokens: float
    """Per learned dimension."""


@dataclass(frozen=True, kw_only=True)
class Law:
    """The loss at one length against N; `forecast` is False where the pilot has too few tokens for it."""

    P: int
    n: int
    loss: float
    """Of the pilot's student."""
    variance: float
    """V_P: that of one sequence."""
    learned: float
    """Dimensions."""
    forecast: bool

    @property
    def limit(self) -> float:
        """L_∞, what no number of sequences of this length can beat at this schedule."""
        root = max(0.0, 1 - 4 * self.variance / (self.n * self.loss))
        return self.loss * (1 + math.sqrt(root)) / 2

    @property
    def noise(self) -> float:
        """V/L_∞: the sequences whose noise is as large as the limit."""
        return self.variance / self.limit

    def at(self, N: float) -> float:
        return self.limit / (1 - self.noise / N) if N > self.noise else math.inf

    def tokens(self, N: float) -> float:
        """Per learned dimension."""
        return N * self.P / self.learned


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Where both can be had: the loss of students of N sequences, and its forecast."""

    P: int
    N: int
    measured: float
    se: float
    forecast: float | None
    """None where there are too few tokens for one."""
    tokens: float

    @property
    def ratio(self) -> float:
        """Forecast over measured."""
        return math.nan if self.forecast is None else self.forecast / self.measured


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Forecast over truth: 90 % interval, the test sequences' chance included; relative."""

    ratio: float
    """Mean over the lengths at half the pilot."""
    low: float
    high: float
    difference: float
    """By which a length must lie above the best to be told from it: the largest of all lengths."""


@dataclass(frozen=True, kw_only=True)
class Best:
    """The length that wins by more than can be doubted, if there is one."""

    P: int | None
    kind: str | None
    tied: tuple[int, ...]
    """Lengths that cannot be told from the best."""


def default_tokens(laws: Sequence[Law]) -> int:
    """Those of the pilot, if two lengths can be forecast there; else what half of it has at the shortest."""
    if sum(law.forecast for law in laws) > 1 or (len(laws) == 1 and laws[0].forecast):
        return laws[0].n * laws[-1].P
    return max(1, laws[0].n // 2) * laws[0].P


def rows_at(
    laws: Sequence[Law], splits: Mapping[int, int], losses: Losses
) -> tuple[list[Row], dict[int, Array]]:
    """Measured up to half the pilot, forecast beyond; and how each loss scatters with the data."""
    rows, chance = [], {}
    for law in laws:
        N, n = splits.get(law.P, 0), law.n
        measured = N <= n // 2
        if N == 0 or not (measured or law.forecast):
            continue
        seen = losses[law.P, N if measured else n // 2]
        # Means over subsets share the pilot: their variance is at most N/n of one subset's (Hoeffding), which
        # the scatter within the pilot shows 1 - N/n of. That at n/2 is just the scatter of the pilot's own.
        factor = math.sqrt(N / (n - N) + 1 / seen.size) if measured else 1.0
        chance[law.P] = (seen - seen.mean()) * factor
        rows.append(
            Row(
                P=law.P,
                N=N,
                loss=float(seen.mean()) if measured else law.at(N),
                se=float(chance[law.P].std(ddof=1)),
                kind="measured" if measured else "forecast",
                tokens=law.tokens(N),
            )
        )
    return rows, chance


def overlap(laws: Sequence[Law], shares: Sequence[int], losses: Losses) -> tuple[Overlap, ...]:
    """Those with tokens enough count; where a length has none of them, that at half the pilot."""
    found = []
    for law in laws:
        enough = [N for N in shares if law.tokens(N) >= LEAST_TOKENS] or shares[-1:]
        for N in shares:
            seen, counts = losses[law.P, N], law.forecast and N in enough
            found.append(
                Overlap(
                    P=law.P,
                    N=N,
                    measured=float(seen.mean()),
                    se=float(seen.std(ddof=1) / np.sqrt(seen.size)),
                    forecast=law.at(N) if counts else None,
                    tokens=law.tokens(N),
                )
            )
    return tuple(found)


def bars(
    rows: Sequence[Row],
    checked: Sequence[Overlap],
    chance: Mapping[int, Array],
    tested: Mapping[int, Array],
    count: Array,
    sure: float,
) -> Bars:
    """What chance leaves of a difference (over test groups, and over subsets), and what the forecast misses.

    `chance` has a row's deviations over subsets, `tested` the pilot's students' losses over test groups.
    """
    found = {}
    for a in rows:
        for b in rows:
            test = mean_error(tested[a.P] - tested[b.P], count)
            drawn = float((chance[a.P] - chance[b.P]).std(ddof=1))
            found[a.P, b.P] = sure * math.hypot(test, drawn) + max(_missed(checked, row) for row in (a, b))
    return found


def _missed(checked: Sequence[Overlap], row: Row) -> float:
    """By how much the forecast at half the pilot is off: more than beyond it. Nothing for a measured row."""
    if row.kind == "measured":
        return 0.0
    last = [one for one in checked if one.P == row.P][-1]
    return abs(last.ratio - 1) * row.loss


def accuracy(
    laws: Sequence[Law],
    checked: Sequence[Overlap],
    losses: Losses,
    *,
    test_se: float,
    likely: float,
    difference: float,
) -> Accuracy | None:
    """The overlap's ratios, 1 among them since the law gets better with N, and chance on both sides."""
    if not any(law.forecast for law in laws):
        return None
    n = laws[0].n
    ratios = [one.ratio for one in checked if one.forecast is not None]
    half = [one.ratio for one in checked if one.forecast is not None and one.N == n // 2]
    chance = max(
        np.hypot(losses[law.P, n // 2].std(ddof=1), test_se) / law.loss for law in laws if law.forecast
    )
    return Accuracy(
        ratio=float(np.mean(half)),
        low=max(float(min(1.0, *ratios) - likely * chance), 0.0),  # no loss is below 0
        high=float(max(1.0, *ratios) + likely * chance),
        difference=difference,
    )


def best(rows: Sequence[Row], apart: Bars) -> Best:
    """Named only where every other length is worse by more than its bar."""
    top = min(rows, key=lambda row: row.loss)
    tied = tuple(row.P for row in rows if row is top or row.loss - top.loss <= apart[top.P, row.P])
    alone = len(tied) == 1 < len(rows)
    return Best(P=top.P if alone else None, kind=top.kind if alone else None, tied=tied)
