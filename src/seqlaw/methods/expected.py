"""Approximation, tr B* and the score's diagonal averaged over sketches, before any training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from seqlaw.methods.resolvent import real_kappa
from seqlaw.methods.score import lag_sums_at
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model.checks import Array, InputError
from seqlaw.model.lengths import Length, Test, averages, words

_MISCOUNT = 1e-6
"""Coarse sums count the modes to 2e-8 (d = 256); a student as wide as its teacher is not refused for that."""
_TILE = 2**18  # entries of K and J at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """The population problem of one (spectrum, M) before training; arrays (B,) or (B, nodes)."""

    a: Array
    weights: Array
    h: Array
    M: Array
    kappa: Array
    """κ(0)."""

    def source(self, kappa: NDArray[Any]) -> NDArray[Any]:
        """F = tr C(G-z)^-1 C at given κ (B,): docs/equivalent.md, (5)."""
        D = 1 / (self.h + kappa[:, None])
        b = self.a * self.h
        return np.asarray((b**2 * D) @ self.weights + kappa / self.M * ((b * D) @ self.weights) ** 2)

    @property
    def approx(self) -> Array:
        """docs/equivalent.md, (6)."""
        w = self.h / (self.h + self.kappa[:, None])
        mean = (self.a * w) @ self.weights
        return np.asarray(self.kappa / 2 * ((self.a**2 * w) @ self.weights - mean**2 / self.M))

    @property
    def lower_edge(self) -> Array:
        """About where each spectrum begins: below that |z| the resolvent's traces are f(0) + O(z).

        Near there z ≈ -(κ - κ_0)(1 - (1/M) Σ h²D²). As wide as the teacher (κ_0 = 0) f - f(0) ~ √z instead,
        and a node far below the least h leaves little.
        """
        D = 1 / (self.h + self.kappa[:, None])
        slope = 1 - (self.h * D) ** 2 @ self.weights / self.M
        least = np.where(self.h > 0, self.h, np.inf).min(axis=1)
        return np.asarray(np.maximum(self.kappa * slope, 1e-7 * least))

    @property
    def predictor_means(self) -> tuple[Array, Array]:
        """tr B*/M and tr B*ᵀB*/M = F'(0)/M, with dκ/dz = -1/(1 - (1/M) Σ h²D²)."""
        D = 1 / (self.h + self.kappa[:, None])
        b = self.a * self.h
        one, two = (b * D) @ self.weights, (b * D**2) @ self.weights
        slope = (b**2 * D**2) @ self.weights - one**2 / self.M + 2 * self.kappa / self.M * one * two
        rest = 1 - (self.h * D) ** 2 @ self.weights / self.M
        # At M = d the second mean diverges, but nothing is missed (c = 0 below) and its value is not used.
        square = np.divide(slope, rest * self.M, out=np.zeros_like(rest), where=rest > 1e-12)
        return one / self.M, square


def pick(own: Population, part: Any) -> Population:
    """Some of the points."""
    return Population(a=own.a, weights=own.weights, h=own.h[part], M=own.M[part], kappa=own.kappa[part])


def population(rule: Rule, P: Sequence[Test], M: Array) -> Population:
    """The population problem of each (P, M) on a rule's spectrum."""
    h = averages(rule.modes, P)
    if np.any(h.max(axis=1) <= 0):
        raise InputError(
            "P", "must be long enough for the states to vary at all", words(P[int(h.max(axis=1).argmin())])
        )
    live = (h > 0) @ rule.weights
    still = np.any(h == 0, axis=1)  # at P = 1, say, the modes that start at zero
    wide = (M > live * (1 + _MISCOUNT)) | (still & (M >= live * (1 - _MISCOUNT)))
    if np.any(wide):
        needed = "below" if np.any(still & wide) else "at most"
        raise InputError(
            "M", f"must be {needed} {live[wide].min():.0f}, the modes that vary", int(M[wide].max())
        )
    M = np.minimum(M, live)
    kappa = real_kappa(h, rule.weights, M, np.zeros(len(P)))
    return Population(a=rule.modes.a, weights=rule.weights, h=h, M=M, kappa=kappa)


class Scored(NamedTuple):
    """h_P and t_l/P, the diagonal of the score, on the rule of double sums; a token's effective share."""

    h: Array
    score: Array
    share: Array

    def of(self, part: Any) -> Scored:
        return Scored(*(x[part] for x in self))


def noise(rule: Rule) -> float:
    """tr Σ_ξ."""
    return float(rule.modes.sigma_xi @ rule.weights)


def score_diagonal(own: Population, double: Rule, P: Sequence[Length], noise: float) -> Scored:
    """The score at each point, for sums by a rule of its own.

    t_l/P = Σ_j (DᵀD)_jj K_jl/P + tr(Σ_ξ) h_l + 2 Σ_j (DᵀS)_jj J_lj/P, with the leave-one-out values
    (DᵀD)_jj = c_j² (a_j² - 2a_j tr B*/M + tr B*ᵀB*/M), (DᵀS)_jj = c_j (a_j - tr B*/M), c = κ_0/(h + κ_0).
    docs/equivalent.md, (10) and (11). Its two elementwise products, which nearly cancel each other, are left
    out.
    """
    a, weights = double.modes.a, double.weights
    h = averages(double.modes, P)
    mean, square = (x[:, None] for x in own.predictor_means)
    c = own.kappa[:, None] / (h + own.kappa[:, None])
    diagonal_DD, diagonal_DS = c**2 * (a**2 - 2 * a * mean + square), c * (a - mean)
    # In units of 1/κ_0, since the weights of an infinite sum fill the range of floating point.
    unit = np.where(own.kappa > 0, own.kappa, 1.0)
    inverse = weights * (unit[:, None] / (h + own.kappa[:, None]))
    score, spread = noise * h, np.zeros(len(P))
    distinct = list(dict.fromkeys(P))
    which = np.array([distinct.index(length) for length in P])
    step = max(16, _TILE // weights.size)  # rows of K and J at a time
    for first in range(0, weights.size, step):
        rows = slice(first, first + step)
        for place, (K, J) in enumerate(lag_sums_at(double.modes, distinct, rows)):
            at = which == place
            score[at] += (weights * diagonal_DD[at])[:, rows] @ K
            score[at, rows] += 2 * (weights * diagonal_DS[at]) @ J.T
            spread[at] += np.sum((inverse[at, rows] @ K) * inverse[at], axis=1)
    return Scored(h, score, (own.M * unit) ** 2 / spread)
