"""Second moments of whole sequences: one accumulator, and the tally of a measurement by group.

A sequence x_0 … x_P has P transitions u → y. Sums over transitions come from sums over all states:
Σ u uᵀ = Σ x xᵀ - last, Σ y yᵀ = Σ x xᵀ - first, and Σ y uᵀ from one shifted product of the whole batch less
the pairs that straddle two sequences. Nothing is copied and no trajectory is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqlaw.model.checks import Array, InputError
from seqlaw.sequences.reading import BATCH, FINITE, NONE, usable, whole_sequences
from seqlaw.sequences.tables import Recordings

GROUPS = 32
"""Groups of sequences for the bootstrap."""
_MEMORY = 2**29  # bytes for the second moments of all groups
_MATRICES = 4  # of D × D that a group keeps
_LEAST_GROUPS = 8


class Sums:
    """Sums over the states of whole sequences and over their ends. Sums of disjoint data add."""

    def __init__(self, D: int) -> None:
        self.squares, self.C, self.first, self.last = (np.zeros((D, D)) for _ in range(4))
        """Σ x xᵀ over all states, Σ y uᵀ over transitions, Σ x_0 x_0ᵀ, Σ x_P x_Pᵀ."""
        self.total, self.first_total, self.last_total = (np.zeros(D) for _ in range(3))
        self.states = self.sequences = 0

    @property
    def transitions(self) -> int:
        return self.states - self.sequences

    @property
    def mean(self) -> Array:
        """Of all states."""
        return np.asarray(self.total / self.states)

    def add(self, x: Array, lengths: NDArray[np.int64]) -> Array:
        """Sequences one after another, Σ lengths × D; returns the sum of the states of each."""
        ends = np.cumsum(lengths)
        sums = np.add.reduceat(x, ends - lengths, axis=0)
        first, last = x[ends - lengths], x[ends - 1]
        self.squares += x.T @ x
        self.C += x[1:].T @ x[:-1]
        self.C -= first[1:].T @ last[:-1]
        self.first += first.T @ first
        self.last += last.T @ last
        self.total += sums.sum(axis=0)
        self.first_total += first.sum(axis=0)
        self.last_total += last.sum(axis=0)
        self.states += len(x)
        self.sequences += len(lengths)
        return sums

    def merge(self, other: Sums) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def about(self, mean: Array) -> tuple[Array, Array, Array]:
        """Σ u uᵀ, Σ y uᵀ, Σ y yᵀ of x - mean over transitions, in the memory of the sums, which are lost."""
        inputs, targets = self.total - self.last_total, self.total - self.first_total
        square, cross, other = (np.outer(mean, x) for x in (self.transitions * mean, inputs, targets))
        G, C, Y = np.subtract(self.squares, self.last, out=self.last), self.C, self.squares
        Y -= self.first
        G += square - cross - cross.T
        C += square - cross - other.T
        Y += square - other - other.T
        return G, C, Y


@dataclass(frozen=True, kw_only=True, eq=False)
class Tally:
    """Centred sums by group: K matrices D × D of each kind, and counts of length K."""

    G: Sequence[Array]
    """Σ u uᵀ over transitions."""
    C: Sequence[Array]
    """Σ y uᵀ."""
    Y: Sequence[Array]
    """Σ y yᵀ."""
    first: Sequence[Array]
    """Σ x_0 x_0ᵀ about the mean of the first states."""
    transitions: Array
    sequences: Array
    contrast: Array
    """K × D: Σ y u less its expectation under a random order of each sequence, feature by feature."""
    mean: Array
    mean_first: Array
    shortest: int
    longest: int
    centred: bool

    @property
    def D(self) -> int:
        return int(self.mean.size)

    @property
    def n(self) -> int:
        """Transitions in all."""
        return int(self.transitions.sum())

    @property
    def N(self) -> int:
        """Sequences in all."""
        return int(self.sequences.sum())


@dataclass(frozen=True, kw_only=True, eq=False)
class Batch:
    """Whole sequences of one group, one after another."""

    group: int
    states: Array
    """Σ lengths × D."""
    lengths: NDArray[np.int64]


def group_count(D: int) -> int:
    """How many groups of D × D moments fit in half a gigabyte, from 8 to 32."""
    return int(max(_LEAST_GROUPS, min(GROUPS, _MEMORY // (_MATRICES * 8 * D * D))))


def batches(held: Recordings) -> Iterator[Batch]:
    """The recordings as sequences, a few megabytes at a time; NaN and infinity are refused."""
    for numbers, batch in _streamed(held.states) if held.streamed else _indexed(held.states):
        if not usable(batch.states).all():
            row = int(np.flatnonzero(~usable(batch.states).all(axis=1))[0])
            index = numbers[int(np.searchsorted(np.cumsum(batch.lengths), row, side="right"))]
            raise InputError("X", FINITE, f"NaN, infinity or more in sequence {index}")
        yield batch


def _indexed(states: object) -> Iterator[tuple[Sequence[int], Batch]]:
    """Groups are runs of neighbouring sequences, so what drifts along a file counts as noise."""
    found = whole_sequences(states)
    groups = min(group_count(found.D), found.N)
    edges = [found.N * g // groups for g in range(groups + 1)]
    before = np.concatenate([[0], np.cumsum(found.lengths)]) * found.D
    for group in range(groups):
        start = edges[group]
        while start < edges[group + 1]:
            enough = int(np.searchsorted(before, before[start] + BATCH, side="right")) - 1
            rows = np.arange(start, max(start + 1, min(enough, edges[group + 1])))
            lengths, start = found.lengths[rows], int(rows[-1]) + 1
            if np.all(lengths == lengths[0]):
                x = found.read(rows, int(lengths[0])).reshape(-1, found.D)
            else:
                x = np.concatenate([found.read(rows[k : k + 1], int(n))[0] for k, n in enumerate(lengths)])
            yield found.owner[rows].tolist(), Batch(group=group, states=x, lengths=lengths)


def _streamed(sequences: Iterator[Array]) -> Iterator[tuple[Sequence[int], Batch]]:
    """Sequence number i goes to group i mod K: their number is not known in advance."""
    waiting: dict[int, list[tuple[int, Array]]] = {}

    def joined(group: int) -> tuple[Sequence[int], Batch]:
        numbers, parts = zip(*waiting.pop(group), strict=True)
        lengths = np.array([len(x) for x in parts])
        return numbers, Batch(group=group, states=np.concatenate(parts), lengths=lengths)

    for index, item in enumerate(sequences):
        if len(item) < 2:
            continue  # no transition in it
        group = index % group_count(item.shape[1])
        waiting.setdefault(group, []).append((index, np.asarray(item, dtype=np.float64)))
        if sum(x.size for _, x in waiting[group]) > BATCH // 16:
            yield joined(group)
    for group in sorted(waiting):
        yield joined(group)


class _Contrast:
    """By feature, what the expectation of Σ y u under a random order of each sequence is made of.

    A random order of a sequence of T states pairs p ≠ q: E Σ y u = ((Σ x)² - Σ x²)/T.
    """

    def __init__(self, D: int) -> None:
        self.per_step, self.pair, self.square = (np.zeros(D) for _ in range(3))

    def add(self, x: Array, sums: Array, lengths: NDArray[np.int64]) -> None:
        """With the sums of each sequence; the states are squared in place."""
        T, starts = lengths.astype(np.float64)[:, None], np.cumsum(lengths) - lengths
        self.per_step += (sums / T).sum(axis=0)
        self.pair += (sums**2 / T).sum(axis=0)
        np.multiply(x, x, out=x)
        self.square += (np.add.reduceat(x, starts, axis=0) / T).sum(axis=0)

    def expected(self, mean: Array, sums: Sums) -> Array:
        """That of x - mean."""
        pair = self.pair - 2 * mean * sums.total + sums.states * mean**2
        square = self.square - 2 * mean * self.per_step + sums.sequences * mean**2
        return np.asarray(pair - square)


def _take_in(sums: Sums, contrast: _Contrast, x: Array, lengths: NDArray[np.int64]) -> None:
    """In a function of its own: the states are gone before the next ones are read."""
    contrast.add(x, sums.add(x, lengths), lengths)


def tally(found: Iterator[Batch], *, centre: bool = True) -> Tally:
    """All moments in one pass.

    Centring takes one mean away from every state, so that x - m = A (x' - m) + ξ; the covariance of the first
    state is about its own mean. The paper's trajectories have mean zero: `centre=False` trusts that.
    Sums are about a provisional mean, which keeps digits when the mean is far from zero.
    """
    groups: dict[int, tuple[Sums, _Contrast]] = {}
    shift, shortest, longest = np.zeros(0), np.iinfo(np.int64).max, 0
    for batch in found:
        shift = shift if groups else batch.states.mean(axis=0)
        if batch.group not in groups:
            groups[batch.group] = Sums(shift.size), _Contrast(shift.size)
        _take_in(*groups[batch.group], batch.states - shift, batch.lengths)
        shortest, longest = min(shortest, batch.lengths.min()), max(longest, batch.lengths.max())
    if not groups:
        raise InputError("X", NONE, "none")
    parts, contrasts = zip(*(groups[g] for g in sorted(groups)), strict=True)
    N = np.array([s.sequences for s in parts], dtype=np.float64)
    n = np.array([s.transitions for s in parts], dtype=np.float64)
    mean, mean_first = -shift, -shift
    if centre:
        mean = np.sum([s.total for s in parts], axis=0) / (n + N).sum()
        mean_first = np.sum([s.first_total for s in parts], axis=0) / N.sum()
    centred = [s.about(mean) for s in parts]
    expected = [c.expected(mean, s) for c, s in zip(contrasts, parts, strict=True)]
    for s in parts:
        own = np.outer(mean_first, s.first_total)
        s.first += s.sequences * np.outer(mean_first, mean_first) - own - own.T
    return Tally(
        G=[G for G, _, _ in centred],
        C=[C for _, C, _ in centred],
        Y=[Y for _, _, Y in centred],
        first=[s.first for s in parts],
        transitions=n,
        sequences=N,
        contrast=np.stack([np.diagonal(C) for _, C, _ in centred]) - np.stack(expected),
        mean=mean + shift,
        mean_first=mean_first + shift,
        shortest=int(shortest),
        longest=int(longest),
        centred=centre,
    )
