"""‖Ĝ‖, the largest eigenvalue of the empirical covariance: mean, variance, and the steps that it allows.

‖Ĝ‖ is an isolated eigenvalue. Its mean is μ₁ + (1/NP) Σ_{k>1} (tr T_1T_k/P)/(μ₁ - μ_k), with gaps of at least
0.2 μ₁, and its relative variance is (2/NP) (tr T_1T_1/P)/μ₁².
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
"""The least gap in units of μ₁: for smaller ones the second-order perturbation of the mean does not hold."""
_NEGLIGIBLE = 1e-3
"""If the relative variance of ‖Ĝ‖, or the share of clipped data sets, is below this, ‖Ĝ‖ is replaced by its
mean; the risk then errs by about as much."""
_LARGEST = 0.85
"""The largest γ times the edge of G's spectrum, for a data set of small ‖Ĝ‖: the filter is evaluated at G,
and contours need this bound."""


class EmpiricalNorm(NamedTuple):
    """The distribution of ‖Ĝ‖ at one length: E‖Ĝ‖ = ‖G‖ (1 + mean/NP), Var ‖Ĝ‖ = (E‖Ĝ‖)² 2 width/NP."""

    mean: float
    width: float
    """Also how far the law's spectrum extends beyond that of G, by a factor (1 + √(width/NP))²."""

    def relative_variance(self, tokens: float) -> float:
        """The relative variance of ‖Ĝ‖."""
        return 2 * self.width / tokens

    def norm(self, norm: float, tokens: float) -> float:
        """The mean of ‖Ĝ‖."""
        return norm * (1 + self.mean / tokens)

    def edge(self, edge: float, tokens: float) -> float:
        """The upper edge of the law's spectrum of Ĝ from that of G, enlarged by a tenth for safety."""
        return 1.1 * self.norm(edge, tokens) * (1 + math.sqrt(self.width / tokens)) ** 2

    def steps(
        self, schedule: Schedule, norm: float, tokens: float, edge: float
    ) -> list[tuple[float, Schedule]]:
        """Weighted schedules that stand for the distribution of γ̄ = min(γ, 1/(2‖Ĝ‖)) over data sets.

        ‖G‖ = norm, and the spectrum on which the filter is evaluated ends at `edge`. ‖Ĝ‖ is assumed to be
        log-normal. Data sets that are not clipped have γ; the others are represented by two steps that match
        the first three moments of log ‖Ĝ‖ there. If ‖Ĝ‖ hardly varies there is one schedule, that of its
        mean.
        """
        mean, variance = self.norm(norm, tokens), self.relative_variance(tokens)
        if variance < _NEGLIGIBLE:
            return [(1.0, schedule.safeguarded(mean))]
        deviation = math.sqrt(math.log1p(variance))
        # Data sets of this norm and below are not clipped; with strong weight decay all are.
        free = max(schedule.size_at(0.5 / schedule.gamma), 1e-300)
        start = (math.log(free / mean) + deviation**2 / 2) / deviation
        clipped, least = float(ndtr(-start)), edge / (2 * _LARGEST)
        if clipped < _NEGLIGIBLE:
            return [(1.0, schedule.safeguarded(mean))]
        if clipped > 1 - _NEGLIGIBLE:
            clipped = 1.0
        steps = [] if clipped == 1 else [(1 - clipped, schedule.safeguarded(least))]
        for weight, point in _beyond(start):
            empirical = mean * math.exp(deviation * point - deviation**2 / 2)
            steps.append((clipped * weight, schedule.safeguarded(max(empirical, least))))
        return steps


def averaged_rows(parts: Sequence[tuple[float, dict[str, float]]]) -> dict[str, float]:
    """The weighted mean of rows with the same columns; a single row is returned unchanged."""
    if len(parts) == 1:
        return parts[0][1]
    return {name: sum(weight * row[name] for weight, row in parts) for name in parts[0][1]}


def _beyond(start: float) -> list[tuple[float, float]]:
    """Two weighted points with the first three moments of a standard normal variable above `start`."""
    start = max(start, -6.0)  # below, the whole distribution
    first = math.exp(-(start**2) / 2) / math.sqrt(2 * math.pi) / float(ndtr(-start))
    second, third = 1 + start * first, (start**2 + 2) * first
    deviation = math.sqrt(second - first**2)
    skew = (third - 3 * first * second + 2 * first**3) / deviation**3 / 2
    root = math.sqrt(1 + skew**2)
    return [((1 + sign * skew / root) / 2, first + deviation * (skew - sign * root)) for sign in (1, -1)]


def empirical_norms(rule: Rule, lengths: Iterable[Length]) -> dict[Length, EmpiricalNorm]:
    """The distribution of ‖Ĝ‖ at each length."""
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
            found[P] = EmpiricalNorm(float(others @ (K[0] / gap)) / h[top], float(K[0, top]) / h[top] ** 2)
    return found
