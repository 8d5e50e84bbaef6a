"""A schedule as runs of equal steps, for laws that are closed on such a run (docs/one-pass-theory.md, §4).

Constant, block and explicit schedules are such runs. A smooth one is cut at the levels γ·ratio^-k, and each
piece replaced by n equal steps with the same Σγ and Σγ²: n = (Σγ)²/Σγ², γ = Σγ²/Σγ, n not whole. The error
is of second order in log ratio, and the levels of √ratio contain those of ratio, so one Richardson step
over the two takes it off. Cutting in log γ matters: cosine ends like (L - t)².
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log1p

from seqlaw.model.checks import Array, InputError
from seqlaw.model.filters import Schedule

_REST = 1e-3
"""Where Σγ·‖G‖ of the remaining steps is below this, they are one piece."""
_DIRECT = 64  # steps up to which a piece is summed as it is


class Pieces(NamedTuple):
    """n_k steps of size γ_k, one after another; whole where the schedule consists of such runs."""

    counts: Array
    sizes: Array


@dataclass(frozen=True, eq=False)
class Part(Schedule):
    """A part of a schedule, as its runs of equal steps; a filter like any other."""

    pieces: Pieces
    name: ClassVar[str] = "part"

    @property
    def gamma(self) -> float:  # type: ignore[override]  # read off the runs, not a field
        return float(self.pieces.sizes.max())

    @property
    def L(self) -> int:  # type: ignore[override]  # as gamma
        return math.ceil(float(self.pieces.counts.sum()))

    def at(self, t: ArrayLike) -> Array:
        ends = np.cumsum(self.pieces.counts)[:-1]  # what lies beyond is of the last
        return np.asarray(self.pieces.sizes[np.searchsorted(ends, t)])

    def runs(self) -> tuple[Array, Array]:
        return self.pieces

    def log_residual(self, s: ArrayLike) -> NDArray[Any]:
        """Without checks: a search asks for thousands of parts, of a schedule that is safe."""
        logs = log1p(-np.multiply.outer(self.pieces.sizes, s))
        return np.asarray(np.tensordot(self.pieces.counts, logs, axes=1))

    def both(self, s: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        # Fewer tokens than dimensions leave some eigenvalues at 0.
        live = np.where(np.abs(s) < 1e-280, 1e-280, s)
        log = self.log_residual(live)
        return np.exp(log), -np.expm1(log) / live

    def scaled(self, gamma: float) -> Self:
        return replace(self, pieces=Pieces(self.pieces.counts, self.pieces.sizes * (gamma / self.gamma)))

    def with_steps(self, L: int) -> Self:
        raise InputError("schedule", f"must be a whole one where {L} steps follow", self.L)


def is_cut(schedule: Schedule) -> bool:
    """Whether its pieces are an approximation, whose error falls with the ratio."""
    return schedule.runs() is None


def pieces(schedule: Schedule, ratio: float, norm: float) -> Pieces:
    """The runs of a schedule, or its pieces between levels of γ that lie `ratio` apart, for ‖G‖ = norm."""
    return stretches(schedule, [schedule.L], ratio, norm)[0]


def stretches(schedule: Schedule, steps: Sequence[int], ratio: float, norm: float) -> list[Pieces]:
    """`pieces` of each of the schedule's parts, which have so many steps."""
    ends = np.cumsum(steps)
    if (runs := schedule.runs()) is not None:
        last = np.cumsum(runs[0])
        last[-1] = ends[-1]  # beyond 2^53 the sum rounds
        cuts = np.unique(np.concatenate([last, ends]))
        counts, sizes = np.diff(cuts, prepend=0.0), runs[1][np.searchsorted(last, cuts)]
    else:
        turns = np.unique([*schedule.corners(), *ends])
        parts = [
            _phase(schedule, first, last_step, math.log(ratio), norm)
            for first, last_step in zip([1, *(turns[:-1] + 1).tolist()], turns.tolist(), strict=True)
        ]
        counts, sizes = np.concatenate(parts, axis=1)
        cuts = np.repeat(turns, [part.counts.size for part in parts])
    of = np.searchsorted(ends, cuts)
    return [Pieces(counts[of == k], sizes[of == k]) for k in range(len(steps))]


def _phase(schedule: Schedule, first: int, last: int, fold: float, norm: float) -> Pieces:
    """Steps first … last, where γ_t does not turn, cut where log(γ_peak/γ_t) passes a multiple of fold.

    They are counted from the end with the large steps; the small end may be left whole.
    """
    rising = bool(schedule.at(first) < schedule.at(last))
    count, large, way = last - first + 1, last if rising else first, -1 if rising else 1

    def level(places: Any) -> Array:
        sizes = np.maximum(schedule.at(large + way * places), np.finfo(float).tiny)
        return np.asarray(np.floor((math.log(schedule.gamma) - np.log(sizes)) / fold + 1e-9))

    levels = np.arange(float(level(0)), float(level(count - 1)))
    near, far = np.zeros(levels.size, dtype=int), np.full(levels.size, count)
    while np.any(far - near > 1):  # the last step on each level, by bisection
        middle = (near + far) // 2
        inside = level(middle) <= levels
        near, far = np.where(inside, middle, near), np.where(inside, far, middle)
    ends = np.unique(np.append(near, count - 1))
    starts = np.append(0, ends[:-1] + 1)
    rest = np.flatnonzero((count - starts) * schedule.at(large + way * starts) * norm < _REST)
    if rest.size:
        starts, ends = starts[: rest[0] + 1], np.append(ends[: rest[0]], count - 1)
    lows, highs = (large + way * x for x in ((ends, starts) if rising else (starts, ends)))
    one, two = _sums(schedule, lows, highs)
    live = two > 0
    safe = np.where(live, two, 1.0)
    counts = np.where(live, one * one / safe, ends - starts + 1.0)
    return Pieces(*(x[::way] for x in (counts, np.where(live, two / np.where(live, one, 1.0), 0.0))))


_X, _W = np.polynomial.legendre.leggauss(12)


def _sums(schedule: Schedule, first: Array, last: Array) -> tuple[Array, Array]:
    """Σ_t γ_t and Σ_t γ_t² of the steps first … last of each piece, inside a phase.

    As it is, or by Euler–Maclaurin, ∫ + (f_1 + f_n)/2 + [f']/12.
    """
    short, found = last - first < _DIRECT, np.empty((2, first.size))
    low, high = first[short, None], last[short, None]
    places = low + np.arange(_DIRECT)
    near = np.where(places <= high, schedule.at(np.minimum(places, high)), 0.0)
    low, high = first[~short, None], last[~short, None]
    inside = schedule.at((low + high) / 2 + (high - low) / 2 * _X)
    start, end = (schedule.at(x) for x in (low + np.arange(3), high - np.arange(3)))
    for sums, power in zip(found, (1, 2), strict=True):
        sums[short] = np.sum(near**power, axis=1)
        slopes = (start**power + end**power) @ np.array([-1.5, 2.0, -0.5])  # f'(first) - f'(last), one-sided
        sums[~short] = (high - low)[:, 0] / 2 * (inside**power @ _W)
        sums[~short] += (start[:, 0] ** power + end[:, 0] ** power) / 2 - slopes / 12
    return found[0], found[1]
