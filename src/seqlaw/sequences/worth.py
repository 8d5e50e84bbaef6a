"""Whether the student knows anything, and anything of the order of time: cross-validated over groups.

Students of the longest length are trained on all groups but those of one fold and tested on these, so every
group is tested once. Beside each stand a student of the moments that a random order of each sequence would
have, and predicting nothing (the mean of the training states). If the user gave the test sequences, they are
the only fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from seqlaw.model.checks import Array
from seqlaw.model.flags import Flag, flag
from seqlaw.model.randomness import generator
from seqlaw.model.schedule import Schedule
from seqlaw.sequences.pilot import Pilot, mean_error, train
from seqlaw.sequences.reading import Index

EQUAL = 0.05
"""A gain below this share of the loss counts as none, if the interval says that it is below."""
_FOLDS = 5


@dataclass(frozen=True, kw_only=True)
class Gain:
    """By how much the student's loss is below another's, with the ± of a 95 % interval over groups."""

    loss: float
    other: float
    error: float

    @property
    def mean(self) -> float:
        return self.other - self.loss

    @property
    def sure(self) -> bool:
        return self.mean > self.error

    @property
    def most(self) -> float:
        """The largest gain that the interval allows, as a share of the other's loss."""
        return (self.mean + self.error) / self.other if self.other > 0 else 0.0


@dataclass(frozen=True, kw_only=True, eq=False)
class _Sums:
    """Of one fold: over transitions, and over states."""

    sequences: int
    G: Array
    C: Array
    inputs: Array
    outputs: Array
    states: Array
    squares: Array
    """Σ x xᵀ over all states."""
    pairs: Array
    """Σ s sᵀ, with s the sum of the states of one sequence."""


def gains(pilot: Pilot, eval_length: int, schedule: Schedule, seed: int, level: float) -> tuple[Gain, Gain]:
    """Over predicting nothing, and over the student that does not know the order of time."""
    groups, P = pilot.data.groups, pilot.longest
    rows = np.concatenate([pilot.rows, pilot.test])
    rows = rows[np.argsort(groups[rows], kind="stable")]
    if pilot.given:
        fold, tested = np.isin(np.arange(groups.size), pilot.rows).astype(np.int64), [0]
    else:
        order = generator(seed, "forecast", "folds").permutation(int(groups.max()) + 1)
        fold = (order % min(_FOLDS, order.size))[groups]
        tested = list(range(min(_FOLDS, order.size)))
    sums = _fold_sums(pilot, rows, fold)
    students = {
        f: _students([sums[k] for k in np.unique(fold[rows]).tolist() if k != f], P, schedule) for f in tested
    }
    found = np.zeros((3, int(groups.max()) + 1))
    rows = rows[np.isin(fold[rows], tested)]
    for part, x in pilot.chunks(rows, eval_length):
        for f in np.unique(fold[part]).tolist():
            mean, *both = students[f]
            mine = fold[part] == f
            v = x[mine] - mean
            for k, B in enumerate((*both, None)):
                miss = v[:, 1:] - (0.0 if B is None else v[:, :-1] @ B.T)
                np.add.at(found[k], groups[part[mine]], np.einsum("bpm,bpm->b", miss, miss) / eval_length / 2)
    count = np.bincount(groups[rows], minlength=found.shape[1]).astype(np.float64)
    found, count = found[:, count > 0], count[count > 0]
    t = float(stdtrit(count.size - 1, level))
    student, blind, nothing = found
    return tuple(
        Gain(
            loss=float(student.sum() / count.sum()),
            other=float(other.sum() / count.sum()),
            error=t * mean_error(other - student, count),
        )
        for other in (nothing, blind)
    )  # type: ignore[return-value]  # two of them


def _fold_sums(pilot: Pilot, rows: Index, fold: Index) -> dict[int, _Sums]:
    M, P, names = pilot.view.M, pilot.longest, np.unique(fold[rows]).tolist()
    square, vector = (lambda: np.zeros((M, M))), (lambda: np.zeros(M))
    kept = {
        f: _Sums(
            sequences=int(np.sum(fold[rows] == f)),
            G=square(),
            C=square(),
            inputs=vector(),
            outputs=vector(),
            states=vector(),
            squares=square(),
            pairs=square(),
        )
        for f in names
    }
    for part, x in pilot.chunks(rows, P):
        for f in np.unique(fold[part]).tolist():
            v, into = x[fold[part] == f], kept[f]
            u, y, last, s = v[:, :-1].reshape(-1, M), v[:, 1:].reshape(-1, M), v[:, -1], v.sum(axis=1)
            G = u.T @ u
            for total, value in (
                (into.G, G),
                (into.C, y.T @ u),
                (into.inputs, u.sum(axis=0)),
                (into.outputs, y.sum(axis=0)),
                (into.states, s.sum(axis=0)),
                (into.squares, G + last.T @ last),
                (into.pairs, s.T @ s),
            ):
                total += value
    return kept


def _students(parts: Sequence[_Sums], P: int, schedule: Schedule) -> tuple[Array, Array, Array]:
    """The mean of the states, the student about it, and the one that does not know the order of time."""
    n = sum(part.sequences for part in parts)
    names = ("G", "C", "inputs", "outputs", "states", "squares", "pairs")
    G, C, inputs, outputs, states, squares, pairs = (sum(getattr(p, name) for p in parts) for name in names)
    mean = states / (n * (P + 1))
    outer, cross = np.outer(mean, mean), np.outer(mean, inputs)
    G = G - cross - cross.T + n * P * outer
    C = C - np.outer(outputs, mean) - cross + n * P * outer
    squares, pairs = squares - n * (P + 1) * outer, pairs - n * (P + 1) ** 2 * outer
    # A random order of P + 1 states: each is an input P times in P + 1, each pair follows once in P + 1.
    blind = squares * P / (P + 1), (pairs - squares) / (P + 1)
    return mean, train(G / (n * P), C / (n * P), schedule), train(*(m / (n * P) for m in blind), schedule)


def worth_flags(nothing: Gain, order: Gain) -> list[Flag]:
    """Whether the student beats both, does not, or the data cannot tell."""
    for code, gain in (("nothing", nothing), ("order", order)):
        numbers = {"loss": gain.loss, "other": gain.other, "error": gain.error}
        if not gain.sure and gain.most <= EQUAL:
            name = {"nothing": "no-better-than-nothing", "order": "no-order"}[code]
            return [flag(name, **numbers, most=max(0.0, gain.most))]
        if not gain.sure:
            return [flag(f"{code}-unclear", **numbers)]
    return []
