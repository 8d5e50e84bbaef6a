"""What a forecast needs of a pilot: moments at every length, students of its subsets, their held-out loss.

Moments of the first P transitions are prefix sums, kept by block of whole groups of sequences: a subset is
some blocks and a part of another. A student is a filter of its moments (`model.descent.Spectrum`), never a
loop over steps. If all states together are fewer than the features, the features are replaced by
coordinates in the span of the states: no loss changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from scipy.special import stdtrit

from seqlaw.methods.trajectories import Sums
from seqlaw.model.checks import Array, InputError
from seqlaw.model.descent import Moments, Spectrum, operator_norm
from seqlaw.model.randomness import generator
from seqlaw.model.schedule import WSD, Schedule
from seqlaw.model.sketch import gaussian_sketch
from seqlaw.sequences.reading import Sequences
from seqlaw.sequences.tables import Index

Progress = Callable[[int, int], None]
_MEMORY = 3 * 2**28  # bytes for the moments of all blocks
_UNLIKE = 1e-3  # probability that first states like the others are called different
_MOST_BLOCKS, _LEAST_BLOCKS = 64, 8
_FOLDS = 5  # for the choice of a step
_RANK = 1e-12  # of the largest singular value: directions with less do not vary


@dataclass(frozen=True, kw_only=True, eq=False)
class View:
    """What the student sees of a state: u = S ((x - mean)/scale)."""

    mean: Array
    scale: Array
    S: Array | None
    """M × D; None where it sees every feature."""

    def __call__(self, x: Array) -> Array:
        u = (x - self.mean) / self.scale
        return u if self.S is None else np.asarray(u @ self.S.T)

    @property
    def M(self) -> int:
        return int(self.mean.size if self.S is None else self.S.shape[0])


@dataclass(frozen=True, kw_only=True, eq=False)
class Pilot:
    """Sequences to learn from and sequences to be tested on, as the student sees them."""

    data: Sequences
    rows: Index
    test: Index
    given: bool
    """Whether the user gave the test sequences."""
    view: View
    M: int
    """Features that the student takes; the view may have fewer coordinates."""
    tick: Callable[[float], None]
    """Called with the work done, in sequences read."""

    @property
    def n(self) -> int:
        return int(self.rows.size)

    @property
    def groups(self) -> int:
        """Among the sequences to learn from."""
        return int(np.unique(self.data.groups[self.rows]).size)

    def chunks(self, rows: Index, length: int) -> Iterator[tuple[Index, Array]]:
        """Rows and what the student sees of their first states: b × (length + 1) × M."""
        for part, x in self.data.chunks(rows, length + 1):
            self.tick(part.size)
            yield part, self.view(x)


def look(
    data: Sequences,
    rows: Index,
    test: Index,
    longest: int,
    *,
    standardise: bool,
    student: str,
    M: int,
    seed: int,
) -> tuple[View, int]:
    """Centred with the pilot's mean, and as many features as the student takes; how many are constant."""
    pca = student == "pca"
    few = (rows.size + test.size) * (longest + 1) < (data.D if pca else M)  # states than features
    total, square, count = np.zeros(data.D), np.zeros(data.D), 0
    shift: Array | None = None
    outer = np.zeros((data.D, data.D)) if pca and not few else None
    for _, x in data.chunks(rows, longest + 1):
        x = x.reshape(-1, data.D)
        shift = x.mean(axis=0) if shift is None else shift
        x = x - shift
        total += x.sum(axis=0)
        square += np.einsum("ij,ij->j", x, x)
        count += len(x)
        if outer is not None:
            outer += x.T @ x
    assert shift is not None
    mean = total / count
    spread = np.sqrt(np.maximum(square / count - mean**2, 0.0))
    constant = spread <= 1e-12 * np.maximum(np.abs(mean + shift), spread.max())
    if constant.all():
        raise InputError("X", "must vary: every feature is constant", f"variance {spread.max() ** 2:.3g}")
    scale = np.where(constant, 1.0, spread) if standardise else np.ones(data.D)
    S = None
    if student == "sketch":
        S = gaussian_sketch(M, data.D, seed=seed)
    elif outer is not None:
        covariance = (outer / count - np.outer(mean, mean)) / np.outer(scale, scale)
        S = Spectrum.of(covariance).U[:, ::-1][:, :M].T
    view = View(mean=mean + shift, scale=scale, S=S)
    if few:
        span = _span(data, view, rows if pca else np.concatenate([rows, test]), longest)
        view = View(mean=view.mean, scale=scale, S=span[:M] if S is None else span @ S)
    return view, int(constant.sum())


def _span(data: Sequences, view: View, rows: Index, longest: int) -> Array:
    """An orthonormal basis of these states as the student sees them: their principal directions, by row."""
    states = np.concatenate([view(x).reshape(-1, view.M) for _, x in data.chunks(rows, longest + 1)])
    _, sizes, directions = np.linalg.svd(states, full_matrices=False)
    return np.asarray(directions[sizes > _RANK * sizes[0]])


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """Sums over the transitions of each block of sequences, up to each length."""

    lengths: tuple[int, ...]
    rows: tuple[Index, ...]
    """Of each block: whole groups."""
    sums: tuple[tuple[Sums, ...], ...]
    """By block and length."""
    start: Start

    def moments(self, P: int, chosen: Iterable[int] | None = None) -> Moments:
        """Those of these blocks, or of all, at one of the lengths."""
        k, count, total = self.lengths.index(P), 0, Sums.zero(len(self.sums[0][0].G))
        for b in range(len(self.rows)) if chosen is None else chosen:
            total.merge(self.sums[b][k])
            count += self.rows[b].size * P
        return _mean(total, count)


@dataclass(frozen=True, kw_only=True)
class Start:
    """How the first states differ from the later ones."""

    ratio: float
    """Variance of the first states over that of the later inputs, features added up."""
    shift: float
    """Mean of the first states less that of the later inputs: the largest, in standard deviations."""
    differ: tuple[bool, bool]
    """Whether the means do along some feature, and the mean squares, beyond the chance of all features."""


def _mean(sums: Sums, count: int) -> Moments:
    return Moments(G=sums.G / count, C=sums.C / count, energy=sums.energy / count)


def _add(sums: Sums, x: Array, start: int, stop: int) -> None:
    """Add the transitions number start … stop - 1 of these sequences to the sums."""
    M = x.shape[2]
    sums.add(x[:, start:stop].reshape(-1, M), x[:, start + 1 : stop + 1].reshape(-1, M))


def block_count(M: int, lengths: int, groups: int) -> int:
    """As many as fit in memory, from 8 to 64; no more than there are groups."""
    fit = _MEMORY // (16 * lengths * M * M)
    return int(min(groups, max(_LEAST_BLOCKS, min(_MOST_BLOCKS, fit // 8 * 8))))


def block_sums(pilot: Pilot, lengths: tuple[int, ...], seed: int) -> Blocks:
    """One pass over the pilot."""
    M = pilot.view.M
    names = np.unique(pilot.data.groups[pilot.rows])
    K = block_count(M, len(lengths), names.size)
    block_of = np.zeros(int(pilot.data.groups.max()) + 1, dtype=np.int64)
    block_of[generator(seed, "forecast", "blocks").permutation(names)] = np.arange(names.size) % K
    label = block_of[pilot.data.groups]
    sums = tuple(tuple(Sums.zero(M) for _ in lengths) for _ in range(K))
    # By group: first state less the mean input, its square less the mean square; and the mean square itself.
    shift = np.zeros((3, block_of.size, M))
    for part, x in pilot.chunks(pilot.rows, lengths[-1]):
        for b in np.unique(label[part]):
            mine = x[label[part] == b]
            for one, start, stop in zip(sums[b], (0, *lengths), lengths, strict=False):
                _add(one, mine, start, stop)
        power = np.mean(x[:, :-1] ** 2, axis=1)
        for kind, values in enumerate((x[:, 0] - x[:, :-1].mean(axis=1), x[:, 0] ** 2 - power, power)):
            np.add.at(shift[kind], pilot.data.groups[part], values)
    for block in sums:
        for shorter, longer in pairwise(block):
            longer.merge(shorter)
    rows = tuple(pilot.rows[label[pilot.rows] == b] for b in range(K))
    differs = _start(shift[:, names], pilot.n, lengths[-1])
    return Blocks(lengths=lengths, rows=rows, sums=sums, start=differs)


def _start(shift: Array, n: int, P: int) -> Start:
    """From sums by group, 3 × groups × M; a difference d from all P inputs is dP/(P - 1) from the others."""
    differs, total = shift[:2], shift[2].sum(axis=0)
    K, M = shift.shape[1:]
    error = differs.std(axis=1, ddof=1) * np.sqrt(K)
    z = np.abs(differs.sum(axis=1)) / np.where(error > 0, error, np.inf)
    bound = float(stdtrit(K - 1, 1 - _UNLIKE / (4 * M)))
    # q of all P inputs, the first among them, is q(P - 1)/(P - q) of the others.
    q = 1 + float(differs[1].sum()) / float(total.sum())
    ratio = q * (P - 1) / (P - q) if P > q else math.inf
    means = np.abs(differs[0].sum(axis=0)) / np.sqrt(np.where(total > 0, total, np.inf) * n)
    largest = float(means.max()) * P / max(P - 1, 1)
    return Start(ratio=ratio, shift=largest, differ=(bool(z[0].max() > bound), bool(z[1].max() > bound)))


def subset(pilot: Pilot, blocks: Blocks, P: int, N: int, order: Index, rng: Any) -> Moments:
    """The moments of N sequences of length P: blocks in this order, the last one in part."""
    k, taken, whole, total = blocks.lengths.index(P), 0, 0, Sums.zero(pilot.view.M)
    for b in order.tolist():
        if taken + blocks.rows[b].size > N:
            break
        total.merge(blocks.sums[b][k])
        whole, taken = whole + 1, taken + blocks.rows[b].size
    if taken < N:
        rows = blocks.rows[order[whole]]
        _, group = np.unique(pilot.data.groups[rows], return_inverse=True)
        place = rng.permutation(int(group.max()) + 1)[group]  # whole groups, but for the last
        chosen = np.sort(rows[np.lexsort((rng.random(rows.size), place))][: N - taken])
        for _, x in pilot.chunks(chosen, P):
            _add(total, x, 0, P)
    return _mean(total, N * P)


def _response(s: Spectrum, schedule: Schedule) -> Array:
    """g(μ) of safeguarded gradient descent, which learns nothing where nothing varies."""
    return s.safeguard(schedule).response(s.mu) if s.mu[-1] > 0 else np.zeros_like(s.mu)


def train(G: Array, C: Array, schedule: Schedule) -> Array:
    """B_L of safeguarded gradient descent."""
    s = Spectrum.of(G)
    return ((C @ s.U) * _response(s, schedule)) @ s.U.T


def best_schedule(
    pilot: Pilot, blocks: Blocks, P: int, N: int, eval_length: int, steps: int, seed: int
) -> tuple[Schedule, float]:
    """The step of students of N sequences of length P: the largest that the safeguard allows for the pilot,
    unless a smaller one is better by more than two standard errors of a cross-validation over the blocks.

    Students have N sequences or all of the other folds, s. Steps fall by factors of √2 or less, down to one
    with which `steps` steps hardly learn a direction.
    A small step may stop early what more than s sequences would learn well. So the second result is what a
    larger step may save at N: the losses of s and s/2 carried on in 1/N, and the standard error.
    """
    norm = operator_norm(blocks.moments(P).G)
    largest = 1 / (2 * norm) if norm > 0 else 1.0  # of states that do not vary nothing is learned
    factors = np.geomspace(1, 1 / steps, 1 + math.ceil(2 * math.log2(steps)))
    tried = [WSD(gamma=largest * factor, L=steps) for factor in factors.tolist()]
    fold = np.arange(len(blocks.rows)) % _FOLDS
    found, ahead = [], []
    for f in np.unique(fold).tolist():
        rest = np.roll(np.flatnonzero(fold != f), -f * fold.size // _FOLDS)  # small N: others in every fold
        most = sum(blocks.rows[b].size for b in rest)
        rng = generator(seed, "forecast", "step", P, f)
        held = blocks.moments(eval_length, np.flatnonzero(fold == f))

        def loss(size: int, order: Index, rng: Any = rng, held: Moments = held) -> Array:
            return _losses_by_step(subset(pilot, blocks, P, size, order, rng), held, tried)

        found.append(loss(min(N, most), rest))
        if N > most > 1:
            half = most // 2
            more = (loss(half, rest) + loss(half, rest[::-1])) / 2 - found[-1]
            ahead.append(found[-1] - more * (1 / most - 1 / N) / (1 / half - 1 / most))
    above, error = _above(np.array(found), np.mean(found, axis=0).argmin())
    chosen = int(np.argmax(above <= 2 * error))
    room, doubt = _above(np.array(ahead or found), chosen)
    return tried[chosen], float(max(0.0, *(doubt - room)[: chosen + 1])) if ahead else 0.0


def _above(losses: Array, one: Any) -> tuple[Array, Array]:
    """By how much losses (folds × steps) are above those of one step, and the standard error of that."""
    above = losses - losses[:, [one]]
    return above.mean(axis=0), above.std(axis=0, ddof=1) / math.sqrt(len(losses))


def _losses_by_step(train: Moments, test: Moments, tried: Sequence[Schedule]) -> Array:
    """The loss on the test's moments of a student of each schedule.

    With Ĝ = U diag(μ) Uᵀ and A = ĈU it is E/2 - Σ_j g_j (AᵀC'U)_jj + ½ Σ_jk g_j (AᵀA)_jk (UᵀG'U)_kj g_k for
    g = g(μ): one eigensystem serves all schedules.
    """
    s = Spectrum.of(train.G)
    A = train.C @ s.U
    linear = np.sum(A * (test.C @ s.U), axis=0)
    square = (A.T @ A) * (s.U.T @ test.G @ s.U)
    responses = [_response(s, each) for each in tried]
    return np.array([test.energy / 2 - linear @ g + g @ square @ g / 2 for g in responses])


@dataclass(frozen=True, kw_only=True, eq=False)
class Student:
    """That of the whole pilot at one length."""

    P: int
    B: Array
    learned: float
    """Σ (1 - ψ(μ)): the learned dimensions."""
    schedule: Schedule
    """As it was asked for."""
    largest: bool
    """Whether its step is the largest that the safeguard allows."""

    @classmethod
    def of(cls, moments: Moments, P: int, schedule: Schedule) -> Student:
        s = Spectrum.of(moments.G)
        response = _response(s, schedule)
        return cls(
            P=P,
            B=((moments.C @ s.U) * response) @ s.U.T,
            learned=float(np.sum(s.mu * response)),
            schedule=schedule,
            largest=2 * schedule.gamma * float(s.mu[-1]) > 1 - 1e-9,
        )


def held_out_moments(pilot: Pilot, length: int) -> Moments:
    """Those of the test sequences."""
    total = Sums.zero(pilot.view.M)
    for _, x in pilot.chunks(pilot.test, length):
        _add(total, x, 0, length)
    return _mean(total, pilot.test.size * length)


def losses(x: Array, B: Array | None) -> Array:
    """½ ‖y - B u‖² of each sequence, the mean over its transitions; without B that of predicting nothing."""
    miss = x[:, 1:] - (0.0 if B is None else x[:, :-1] @ B.T)
    return np.asarray(np.einsum("bpm,bpm->b", miss, miss) / (2 * miss.shape[1]))


def losses_by_group(pilot: Pilot, length: int, students: Sequence[Array]) -> tuple[Array, Array]:
    """Each student's loss summed over the test sequences of each group (students × groups), their number."""
    group = pilot.data.groups
    count = np.bincount(group[pilot.test]).astype(np.float64)
    sums = np.zeros((len(students), count.size))
    for part, x in pilot.chunks(pilot.test, length):
        for k, B in enumerate(students):
            np.add.at(sums[k], group[part], losses(x, B))
    tested = np.flatnonzero(count)
    return sums[:, tested], count[tested]


def mean_error(sums: Array, count: Array) -> float:
    """Standard error over groups of a mean over sequences."""
    K = count.size
    rest = sums - count * (sums.sum() / count.sum())
    return float(np.sqrt(K / (K - 1) * np.sum(rest**2)) / count.sum())
