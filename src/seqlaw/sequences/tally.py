"""Second moments of sequences in one pass, kept by group so that groups can be resampled.

A sequence x_0 … x_P has P transitions u → y. Sums over transitions come from sums over all states:
Σ u uᵀ = Σ x xᵀ - last, Σ y yᵀ = Σ x xᵀ - first, and Σ y uᵀ from one shifted product of the whole batch less
the pairs that straddle two sequences. Nothing is copied and no trajectory is kept.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from seqlaw.model.checks import Array, InputError
from seqlaw.sequences.source import Batch, group_count


@dataclass(frozen=True, kw_only=True, eq=False)
class Tally:
    """Centred sums by group: K × D × D arrays, and counts of length K."""

    G: Array
    """Σ u uᵀ over transitions."""
    C: Array
    """Σ y uᵀ."""
    Y: Array
    """Σ y yᵀ."""
    first: Array
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


class _Sums:
    """Running sums about a provisional mean, which keeps digits when the mean is far from zero."""

    def __init__(self, batch: Batch) -> None:
        D = batch.states.shape[1]
        K = group_count(D)
        self.shift = batch.states.mean(axis=0)
        self.all, self.C, self.first, self.last = (np.zeros((K, D, D)) for _ in range(4))
        self.total, self.first_total, self.last_total = (np.zeros((K, D)) for _ in range(3))
        self.per_step, self.pair, self.square = (np.zeros((K, D)) for _ in range(3))
        self.states, self.sequences = np.zeros(K), np.zeros(K)
        self.lengths: set[int] = set()

    def add(self, batch: Batch) -> None:
        g, T = batch.group, batch.lengths.astype(np.float64)[:, None]
        x = batch.states - self.shift
        ends = np.cumsum(batch.lengths)
        starts = ends - batch.lengths
        first, last = x[starts], x[ends - 1]
        self.all[g] += x.T @ x
        self.C[g] += x[1:].T @ x[:-1]
        self.C[g] -= first[1:].T @ last[:-1]
        self.first[g] += first.T @ first
        self.last[g] += last.T @ last
        sums = np.add.reduceat(x, starts, axis=0)
        self.total[g] += sums.sum(axis=0)
        self.first_total[g] += first.sum(axis=0)
        self.last_total[g] += last.sum(axis=0)
        self.per_step[g] += (sums / T).sum(axis=0)
        self.pair[g] += (sums**2 / T).sum(axis=0)
        np.multiply(x, x, out=x)
        self.square[g] += (np.add.reduceat(x, starts, axis=0) / T).sum(axis=0)
        self.states[g] += len(x)
        self.sequences[g] += len(starts)
        self.lengths |= set(np.unique(batch.lengths).tolist())


def tally(batches: Iterable[Batch], *, centre: bool = True) -> Tally:
    """All moments in one pass.

    Centring takes one mean away from every state, so that x - m = A (x' - m) + ξ; the covariance of the first
    state is about its own mean. The paper's trajectories have mean zero: `centre=False` trusts that.
    """
    sums: _Sums | None = None
    for batch in batches:
        sums = _Sums(batch) if sums is None else sums
        sums.add(batch)
    if sums is None:
        raise InputError("X", "must hold at least one sequence of two states", "none")
    return _centred(sums, centre)


def _centred(s: _Sums, centre: bool) -> Tally:
    filled = np.flatnonzero(s.sequences)  # fewer sequences than groups
    # A group that stays empty (its sequences had no transition) cannot be resampled; a slice copies nothing.
    used = slice(filled.size) if filled[-1] == filled.size - 1 else filled
    n = (s.states - s.sequences)[used]
    N, states = s.sequences[used], s.states[used]
    total, first_total, last_total = s.total[used], s.first_total[used], s.last_total[used]
    mean = total.sum(axis=0) / states.sum() if centre else -s.shift
    mean_first = first_total.sum(axis=0) / N.sum() if centre else -s.shift
    Y, C, first, last = s.all[used], s.C[used], s.first[used], s.last[used]
    inputs, targets = total - last_total, total - first_total
    G = Y - last
    Y -= first
    del last
    for k in range(len(n)):  # in place, one group at a time: these are the big arrays
        G[k] += n[k] * np.outer(mean, mean) - np.outer(mean, inputs[k]) - np.outer(inputs[k], mean)
        Y[k] += n[k] * np.outer(mean, mean) - np.outer(mean, targets[k]) - np.outer(targets[k], mean)
        C[k] += n[k] * np.outer(mean, mean) - np.outer(mean, inputs[k]) - np.outer(targets[k], mean)
        own = np.outer(mean_first, first_total[k])
        first[k] += N[k] * np.outer(mean_first, mean_first) - own - own.T
    # A random order of one sequence pairs p ≠ q: E Σ y u = ((Σ x)² - Σ x²)/T for each feature.
    pair = s.pair[used] - 2 * mean * total + states[:, None] * mean**2
    square = s.square[used] - 2 * mean * s.per_step[used] + N[:, None] * mean**2
    return Tally(
        G=G,
        C=C,
        Y=Y,
        first=first,
        transitions=n,
        sequences=N,
        contrast=np.diagonal(C, axis1=1, axis2=2) - (pair - square),
        mean=mean + s.shift,
        mean_first=mean_first + s.shift,
        shortest=min(s.lengths),
        longest=max(s.lengths),
        centred=centre,
    )
