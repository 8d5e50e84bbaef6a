"""How far the largest eigenvalue of the empirical covariance lies above the population's, on average.

‖Ĝ‖ is a spike: its mean is μ₁ + (1/NP) Σ_{k>1} (tr T_1T_k/P)/(μ₁ - μ_k), gaps counted as at least 0.2 μ₁.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from seqlaw.model.lengths import Length, averages
from seqlaw.rungs.score import lag_sums_at
from seqlaw.rungs.spectral_sum import Rule

_LEAST_GAP = 0.2


class Rise(NamedTuple):
    """‖Ĝ‖/‖G‖ - 1 is `mean`/NP on average; the law's spectrum ends (1 + √(`width`/NP))² further."""

    mean: float
    width: float

    def norm(self, norm: float, tokens: float) -> float:
        """The mean of ‖Ĝ‖."""
        return norm * (1 + self.mean / tokens)

    def edge(self, edge: float, tokens: float) -> float:
        """Where the law's spectrum of Ĝ ends, from where that of G does; with a tenth to spare."""
        return 1.1 * self.norm(edge, tokens) * (1 + math.sqrt(self.width / tokens)) ** 2


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
