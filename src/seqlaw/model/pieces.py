"""A schedule as runs of equal steps, for laws that are closed on such a run (docs/one-pass-theory.md, §4).

Constant, block and explicit schedules are such runs. A smooth one is cut at the levels γ·ratio^-k, and each
piece replaced by n equal steps with the same Σγ and Σγ²: n = (Σγ)²/Σγ², γ = Σγ²/Σγ, n not whole. The error
is of second order in log ratio, and the levels of √ratio contain those of ratio, so one Richardson step
over the two takes it off. Cutting in log γ matters: cosine ends like (L - t)².
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
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
        sizes_at = runs[1][np.searchsorted(last, cuts)]
        parts = [(n, float(size)) for n, size in zip(np.diff(cuts, prepend=0.0), sizes_at, strict=True)]
    else:
        cuts, parts, places = np.unique([*schedule.corners(), *ends]), [], []
        for first, last_step in zip([1, *(cuts[:-1] + 1).tolist()], cuts.tolist(), strict=True):
            new = _phase(schedule, first, last_step, math.log(ratio), norm)
            parts += new
            places += [last_step] * len(new)
        cuts = np.array(places)
    counts, sizes = (np.array(column, dtype=np.float64) for column in zip(*parts, strict=True))
    of = np.searchsorted(ends, cuts)
    return [Pieces(counts[of == k], sizes[of == k]) for k in range(len(steps))]


def _phase(schedule: Schedule, first: int, last: int, fold: float, norm: float) -> list[tuple[float, float]]:
    """Steps first … last, where γ_t does not turn, cut where log(γ_peak/γ_t) passes a multiple of fold."""

    def level(t: int) -> int:
        size = float(schedule.at(t))
        return math.floor(math.log(schedule.gamma / size) / fold + 1e-9) if size > 0 else 10**9

    if level(first) > level(last):  # rising: the small end, which may be left whole, comes first
        return [_run(schedule, a, b) for a, b in reversed(_cuts(schedule, last, first, fold, norm, level))]
    return [_run(schedule, a, b) for a, b in _cuts(schedule, first, last, fold, norm, level)]


def _cuts(
    schedule: Schedule, large: int, small: int, fold: float, norm: float, level: Callable[[int], int]
) -> list[tuple[int, int]]:
    """(first, last) of each piece from the end with the large steps to the one with the small."""
    way, cuts, here = (1 if small >= large else -1), [], large
    while True:
        left = abs(small - here) + 1
        if left * float(schedule.at(here)) * norm < _REST:
            end = small
        else:  # the last step on this level, by bisection: γ_t does not turn
            now, near, far = level(here), 0, left
            while far - near > 1:
                middle = (near + far) // 2
                near, far = (middle, far) if level(here + way * middle) == now else (near, middle)
            end = here + way * near
        cuts.append((min(here, end), max(here, end)))
        if end == small:
            return cuts
        here = end + way


def _run(schedule: Schedule, first: int, last: int) -> tuple[float, float]:
    """(n, γ) with the Σγ and Σγ² of steps first … last."""
    one, two = (_sum(schedule, first, last, power) for power in (1, 2))
    return (one * one / two, two / one) if two > 0 else (float(last - first + 1), 0.0)


_X, _W = np.polynomial.legendre.leggauss(12)


def _sum(schedule: Schedule, first: int, last: int, power: int) -> float:
    """Σ_t γ_t^power: as it is, or by Euler–Maclaurin, ∫ + (f_1 + f_n)/2 + [f']/12, inside the phase."""
    if last - first < _DIRECT:
        return float(np.sum(schedule.at(np.arange(first, last + 1)) ** power))
    middle, half = (first + last) / 2, (last - first) / 2
    inside = half * float(_W @ schedule.at(middle + half * _X) ** power)
    near = np.arange(3)
    start, end = (schedule.at(t) ** power for t in (first + near, last - near))
    slopes = np.array([-1.5, 2.0, -0.5]) @ (start + end)  # f'(first) - f'(last), one-sided
    return inside + float(start[0] + end[0]) / 2 - float(slopes) / 12
