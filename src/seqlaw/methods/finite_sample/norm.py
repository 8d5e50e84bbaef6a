"""The largest eigenvalue of the empirical covariance: its mean, its chance, and the steps that it allows.

‖Ĝ‖ is a spike: its mean is μ₁ + (1/NP) Σ_{k>1} (tr T_1T_k/P)/(μ₁ - μ_k), gaps counted as at least 0.2 μ₁, its
relative variance (2/NP) (tr T_1T_1/P)/μ₁².
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.special import ndtr

from seqlaw.methods.score import lag_sums_at
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model.lengths import Length, averages
from seqlaw.model.schedule import Schedule

_LEAST_GAP = 0.2
"""Of μ₁: for smaller gaps perturbation to second order, which the mean is, does not hold."""
_LEAST_CHANCE = 1e-3
"""Where the relative variance of ‖Ĝ‖, or the share of the data sets that are clipped, is below this, the
randomness of ‖Ĝ‖ is left out: the step is that of the mean norm, and the risk errs by about so much."""
_LARGEST = 0.85
"""γ times the edge of G's spectrum, for a data set of small norm: the filter is taken at G, and no contour
takes more."""


class Rise(NamedTuple):
    """‖Ĝ‖/‖G‖ - 1 is `mean`/NP on average; the law's spectrum ends (1 + √(`width`/NP))² further."""

    mean: float
    width: float

    def chance(self, tokens: float) -> float:
        """The relative variance of ‖Ĝ‖."""
        return 2 * self.width / tokens

    def norm(self, norm: float, tokens: float) -> float:
        """The mean of ‖Ĝ‖."""
        return norm * (1 + self.mean / tokens)

    def edge(self, edge: float, tokens: float) -> float:
        """Where the law's spectrum of Ĝ ends, from where that of G does; with a tenth to spare."""
        return 1.1 * self.norm(edge, tokens) * (1 + math.sqrt(self.width / tokens)) ** 2

    def steps(
        self, schedule: Schedule, norm: float, tokens: float, edge: float
    ) -> list[tuple[float, Schedule]]:
        """Schedules with weights that stand for γ̄ = min(γ, 1/(2‖Ĝ‖)) over data sets.

        ‖G‖ = norm, and the spectrum that the filter is taken on ends at `edge`.
        ‖Ĝ‖ is taken log-normal: γ for the data sets that are not clipped, and for the others the two steps
        that have the first three moments of log ‖Ĝ‖ beyond the clipping. One, the mean norm's, where chance
        does not show.
        """
        mean, chance = self.norm(norm, tokens), self.chance(tokens)
        if chance < _LEAST_CHANCE:
            return [(1.0, schedule.safeguarded(mean))]
        deviation = math.sqrt(math.log1p(chance))
        start = (math.log(0.5 / schedule.gamma / mean) + deviation**2 / 2) / deviation
        clipped, least = float(ndtr(-start)), edge / (2 * _LARGEST)
        if clipped < _LEAST_CHANCE:
            return [(1.0, schedule.safeguarded(mean))]
        if clipped > 1 - _LEAST_CHANCE:
            clipped = 1.0
        found = [] if clipped == 1 else [(1 - clipped, schedule.safeguarded(least))]
        for weight, at in _beyond(start):
            seen = mean * math.exp(deviation * at - deviation**2 / 2)
            found.append((clipped * weight, schedule.safeguarded(max(seen, least))))
        return found


def averaged_rows(parts: Sequence[tuple[float, dict[str, float]]]) -> dict[str, float]:
    """The mean of rows of the same columns, with weights; one is left as it is."""
    if len(parts) == 1:
        return parts[0][1]
    return {name: sum(weight * row[name] for weight, row in parts) for name in parts[0][1]}


def _beyond(start: float) -> list[tuple[float, float]]:
    """Two points with weights that have the first three moments of a standard normal number above `start`."""
    start = max(start, -6.0)  # all of it
    first = math.exp(-(start**2) / 2) / math.sqrt(2 * math.pi) / float(ndtr(-start))
    second, third = 1 + start * first, (start**2 + 2) * first
    deviation = math.sqrt(second - first**2)
    skew = (third - 3 * first * second + 2 * first**3) / deviation**3 / 2
    root = math.sqrt(1 + skew**2)
    return [((1 + sign * skew / root) / 2, first + deviation * (skew - sign * root)) for sign in (1, -1)]


def rises(rule: Rule, lengths: Iterable[Length]) -> dict[Length, Rise]:
    """The rise at each length."""
    lengths = list(dict.fromkeys(lengths))
    found = {}
    h_at = averages(rule.modes, lengths)
    tops = {int(np.argmax(h)) for h in h_at}
    for top in tops:
        rows = slice(top, top + 1)
        for P, h, (K, _) in zip(lengths, h_at, lag_sums_at(rule.modes, lengths, rows), strict=True):
            if int(np.argmax(h)) != top:
                continue
            others = np.where(np.arange(h.size) == top, 0.0, rule.weights)
            gap = np.maximum(h[top] - h, _LEAST_GAP * h[top])
            found[P] = Rise(float(others @ (K[0] / gap)) / h[top], float(K[0, top]) / h[top] ** 2)
    return found
