"""Whether the student knows anything, and anything of the order of time: cross-validated over groups.

Students of the longest length are trained on all groups but those of one fold and tested on these, so every
group is tested once. Beside each stand a student of the moments that a random order of each sequence would
have, and predicting nothing (the mean of the training states). If the user gave the test sequences, they are
the only fold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from scipy.special import stdtrit

from seqlaw.model.checks import Array
from seqlaw.model.flags import Flag, flag
from seqlaw.model.randomness import generator
from seqlaw.model.schedule import Schedule
from seqlaw.sequences.moments import Sums
from seqlaw.sequences.pilot import Pilot, losses, mean_error, train

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


class _Fold(Sums):
    """The sums of a fold, including those that do not change if each sequence is shuffled."""

    def __init__(self, M: int) -> None:
        super().__init__(M)
        self.pairs = np.zeros((M, M))
        """Σ s sᵀ, with s the sum of the states of one sequence."""

    def add_equal(self, x: Array) -> None:
        """Sequences of one length: b × states × M."""
        s = self.add(x.reshape(-1, x.shape[2]), np.full(len(x), x.shape[1]))
        self.pairs += s.T @ s

    def students(self, P: int, schedule: Schedule) -> tuple[Array, Array, Array]:
        """The mean of the states, the student about it, and the one that ignores the order of time.

        The sums are lost.
        """
        mean, count = self.mean, self.transitions
        outer = self.states * np.outer(mean, mean)
        squares, pairs = self.squares - outer, self.pairs - (P + 1) * outer
        G, C, _ = self.about(mean)
        # A random order of P + 1 states: each is an input P times in P + 1, each pair follows once in P + 1.
        blind_G, blind_C = squares * P / (P + 1), (pairs - squares) / (P + 1)
        student = train(G / count, C / count, schedule)
        return mean, student, train(blind_G / count, blind_C / count, schedule)


def _without(f: int, folds: Mapping[int, _Fold], M: int) -> _Fold:
    rest = _Fold(M)
    for k, each in folds.items():
        if k != f:
            rest.merge(each)
    return rest


def gains(
    pilot: Pilot, P: int, eval_length: int, schedule: Schedule, seed: int, level: float
) -> tuple[Gain, Gain]:
    """Over predicting nothing, and over the student that ignores the order of time."""
    groups = pilot.data.groups
    rows = np.concatenate([pilot.rows, pilot.test])
    rows = rows[np.argsort(groups[rows], kind="stable")]
    if pilot.given:
        fold, tested = np.isin(np.arange(groups.size), pilot.rows).astype(np.int64), [0]
    else:
        order = generator(seed, "forecast", "folds").permutation(int(groups.max()) + 1)
        fold = (order % min(_FOLDS, order.size))[groups]
        tested = list(range(min(_FOLDS, order.size)))
    M = pilot.view.M
    folds = {f: _Fold(M) for f in np.unique(fold[rows]).tolist()}
    for part, x in pilot.chunks(rows, P):
        for f in np.unique(fold[part]).tolist():
            folds[f].add_equal(x[fold[part] == f])
    students = {f: _without(f, folds, M).students(P, schedule) for f in tested}
    found = np.zeros((3, int(groups.max()) + 1))
    rows = rows[np.isin(fold[rows], tested)]
    for part, x in pilot.chunks(rows, eval_length):
        for f in np.unique(fold[part]).tolist():
            mean, *both = students[f]
            mine = fold[part] == f
            v = x[mine] - mean
            for k, B in enumerate((*both, None)):
                np.add.at(found[k], groups[part[mine]], losses(v, B))
    count = np.bincount(groups[rows], minlength=found.shape[1]).astype(np.float64)
    found, count = found[:, count > 0], count[count > 0]
    t = float(stdtrit(count.size - 1, level))
    student, blind, nothing = found

    def over(other: Array) -> Gain:
        mine, its = (float(losses.sum() / count.sum()) for losses in (student, other))
        return Gain(mine, its, t * mean_error(other - student, count))

    return over(nothing), over(blind)


def worth_flags(nothing: Gain, order: Gain) -> list[Flag]:
    """The flags that say whether the student beats both, does not, or the data cannot decide."""
    for code, gain in (("nothing", nothing), ("order", order)):
        numbers = {"loss": gain.loss, "other": gain.other, "error": gain.error}
        if not gain.sure and gain.most <= EQUAL:
            name = {"nothing": "no-better-than-nothing", "order": "no-order"}[code]
            return [flag(name, **numbers, most=max(0.0, gain.most))]
        if not gain.sure:
            return [flag(f"{code}-unclear", **numbers)]
    return []
