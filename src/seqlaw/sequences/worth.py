"""Whether the student knows anything, and anything of the order of time: cross-validated over groups.

Students of the longest length are trained on all groups but those of one fold and tested on these, so every
group is tested once. Beside each stand a student of the moments that a random order of each sequence would
have, and predicting nothing (the mean of the training states). If the user gave the test sequences, they are
the only fold.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import reduce
from operator import add

import numpy as np
from scipy.special import stdtrit

from seqlaw.model.checks import Array
from seqlaw.model.flags import Flag, flag
from seqlaw.model.randomness import generator
from seqlaw.model.schedule import Schedule
from seqlaw.sequences.pilot import Pilot, mean_error, train

EQUAL = 0.05
"""A gain below this share of the loss counts as none, if the interval says that it is below."""
_FOLDS = 5


@dataclass(frozen=True)
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


@dataclass(eq=False)
class _Sums:
    """Over the sequences of a fold: over transitions u → y, and over states."""

    n: int
    G: Array
    C: Array
    inputs: Array
    outputs: Array
    states: Array
    squares: Array
    """Σ x xᵀ over all states."""
    pairs: Array
    """Σ s sᵀ, with s the sum of the states of one sequence."""

    @classmethod
    def of(cls, v: Array) -> _Sums:
        M = v.shape[2]
        u, y, last, s = v[:, :-1].reshape(-1, M), v[:, 1:].reshape(-1, M), v[:, -1], v.sum(axis=1)
        G, squares = u.T @ u, last.T @ last
        squares += G
        return cls(len(v), G, y.T @ u, u.sum(axis=0), y.sum(axis=0), s.sum(axis=0), squares, s.T @ s)

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(self)))

    def students(self, P: int, schedule: Schedule) -> tuple[Array, Array, Array]:
        """The mean of the states, the student about it, and the one that does not know the order of time."""
        n, mean = self.n, self.states / (self.n * (P + 1))
        outer, cross = np.outer(mean, mean), np.outer(mean, self.inputs)
        G = self.G - cross - cross.T + n * P * outer
        C = self.C - np.outer(self.outputs, mean) - cross + n * P * outer
        squares, pairs = self.squares - n * (P + 1) * outer, self.pairs - n * (P + 1) ** 2 * outer
        # A random order of P + 1 states: each is an input P times in P + 1, each pair follows once in P + 1.
        blind_G, blind_C = squares * P / (P + 1), (pairs - squares) / (P + 1)
        count = n * P
        student = train(G / count, C / count, schedule)
        return mean, student, train(blind_G / count, blind_C / count, schedule)


def gains(
    pilot: Pilot, P: int, eval_length: int, schedule: Schedule, seed: int, level: float
) -> tuple[Gain, Gain]:
    """Over predicting nothing, and over the student that does not know the order of time."""
    groups = pilot.data.groups
    rows = np.concatenate([pilot.rows, pilot.test])
    rows = rows[np.argsort(groups[rows], kind="stable")]
    if pilot.given:
        fold, tested = np.isin(np.arange(groups.size), pilot.rows).astype(np.int64), [0]
    else:
        order = generator(seed, "forecast", "folds").permutation(int(groups.max()) + 1)
        fold = (order % min(_FOLDS, order.size))[groups]
        tested = list(range(min(_FOLDS, order.size)))
    sums: dict[int, _Sums] = {}
    for part, x in pilot.chunks(rows, P):
        for f in np.unique(fold[part]).tolist():
            more = _Sums.of(x[fold[part] == f])
            sums[f] = sums[f] + more if f in sums else more
    students = {
        f: reduce(add, (each for k, each in sums.items() if k != f)).students(P, schedule) for f in tested
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

    def over(other: Array) -> Gain:
        mine, its = (float(losses.sum() / count.sum()) for losses in (student, other))
        return Gain(mine, its, t * mean_error(other - student, count))

    return over(nothing), over(blind)


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
