"""The resolvent of a sketched covariance without the sketch: κ(z), and contours round the spectrum.

For G = S H Sᵀ with a Gaussian sketch, κ(z) solves  κ (1 - (1/M) Σ_j h_j/(h_j + κ)) = -z, and
Sᵀ (G - z)^-1 S ≈ (H + κ)^-1, tr (G - z)^-1 ≈ M/κ (docs/equivalent.md derives both). A function of G is
a contour integral of its resolvent. All arrays are batched: points × modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.model.checks import Array
from seqlaw.model.schedule import Schedule

HYPERBOLA_STEPS = 200
"""Σγ/γ below which ψ is not near enough to an exponential for the hyperbola (at 100: 6e-12 of F(0))."""
MOST_STEPS = 1e5
"""Σγ/γ that an ellipse takes, with some 2000 nodes; only momentum asks for more of one (`reaches`)."""
_HALF = 16  # nodes on half a hyperbola: 1e-13 of F(0)


def real_kappa(h: Array, weights: Array, M: Array, z: Array) -> Array:
    """κ(z) for real z ≤ 0: h (B, n), M and z (B,) → (B,).

    φ(κ) = κ - (κ/M) Σ h/(h+κ) + z is convex with φ' = 1 - (1/M) Σ h²/(h+κ)²; Newton from the right of
    the root falls on it monotonically. A student as wide as the teacher (M = d) has κ(0) = 0.
    """
    full = (z == 0) & (M >= weights.sum() * (1 - 1e-12))
    kappa = -z + (h @ weights) / M
    for _ in range(200):
        share = h / (h + kappa[:, None])
        value = kappa * (1 - share @ weights / M) + z
        slope = np.where(full, 1.0, 1 - share**2 @ weights / M)
        new = np.maximum(kappa - value / slope, kappa * 1e-3)
        done = full | (np.abs(new - kappa) <= 1e-9 * kappa)  # quadratic: the next error is 1e-18
        kappa = new
        if np.all(done):
            break
    return np.where(full, 0.0, kappa)


def contour_kappa(
    h: Array, weights: Array, M: Array, z: NDArray[Any], *, close: float = 1e-9
) -> NDArray[Any]:
    """κ along contours z (B, K) whose first point lies near the negative real axis, or far out.

    Newton for the first point starts from the real solution at -|z|, each further point from its
    neighbour: the branch with Sᵀ(G-z)^-1S positive is kept by continuity.
    """
    kappa = np.empty_like(z)
    current = real_kappa(h, weights, M, -np.abs(z[:, 0])).astype(np.complex128)
    last = -np.abs(z[:, 0]).astype(np.complex128)
    slope = _slope(h, weights, M, current)
    for k in range(z.shape[1]):
        current = current - (z[:, k] - last) / slope  # Euler: dκ/dz = -1/φ'(κ)
        for _ in range(50):
            share = h / (h + current[:, None])
            value = current * (1 - share @ weights / M) + z[:, k]
            slope = 1 - share**2 @ weights / M
            step = value / slope
            current = current - step
            if np.all(np.abs(step) <= close * np.abs(current)):  # quadratic: the error is its square
                break
        last = z[:, k]
        kappa[:, k] = current
    return kappa


def _slope(h: Array, weights: Array, M: Array, kappa: NDArray[Any]) -> NDArray[Any]:
    return np.asarray(1 - (h / (h + kappa[:, None])) ** 2 @ weights / M)


def spectral_edge(h: Array, weights: Array, M: Array) -> tuple[Array, Array]:
    """The right edge of G's limiting spectrum and an estimate of ‖G‖, each (B,).

    The edge is the minimum over x > h_1 of z(-x) = x (1 + (1/M) Σ h/(x - h)). The largest eigenvalue
    itself, where h_1 stands apart, sits at h_1 (1 + (1/M) Σ_{j>1} h_j/(h_1 - h_j)), inside the edge; for
    very narrow students (M < 12) the estimate stays at 0.6 of the edge.
    """
    top = h.max(axis=1)
    x = top[:, None] * (1 + np.geomspace(1e-5, 1e3, 161))  # (B, X)
    edge = np.full(top.shape, np.inf)
    for k in range(x.shape[1]):
        edge = np.minimum(edge, x[:, k] * (1 + (h / (x[:, k : k + 1] - h)) @ weights / M))
    rest = np.where(h >= top[:, None], np.inf, top[:, None] - h)
    alone = top * (1 + (h / rest) @ weights / M)
    return edge, np.clip(alone, 0.6 * edge, edge)


@dataclass(frozen=True, kw_only=True, eq=False)
class Contours:
    """One contour a point: (1/2πi)∮ f(z) dz = Im Σ_k weights_k f(z_k) where f(z̄) = conj f(z).

    The nodes (B, K) are on the upper or the lower half; the other half is implied.
    """

    z: NDArray[Any]
    weights: NDArray[Any]
    residual: NDArray[Any]
    """ψ(z) of the point's schedule."""
    kappa: NDArray[Any]


def contours(
    h: Array, weights: Array, M: Array, schedules: Sequence[Schedule], edge: Array, *, factors: int
) -> Contours:
    """Contours round 0 and the spectrum [0, edge], fit for integrating ψ^factors, with κ on them.

    All schedules must be on the same side of HYPERBOLA_STEPS (`is_long`).
    """
    z, dz, residual = contour(schedules, edge, factors=factors)
    return Contours(z=z, weights=dz, residual=residual, kappa=contour_kappa(h, weights, M, z))


def contour(
    schedules: Sequence[Schedule],
    edge: Array,
    *,
    factors: int,
    half: int = _HALF,
    decay: float = 17.5,
    steps: float | None = None,
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Nodes, weights and ψ of a contour for each schedule, all on the same side of `steps`.

    `half` nodes on half a hyperbola, or an ellipse that errs by e^-decay of what is integrated.
    """
    total = np.array([schedule.total for schedule in schedules])
    t = factors * total
    if is_long(schedules[0], steps):
        # z = -μ(1 + sin(iu - φ)), tuned to exp(-t z) (Weideman and Trefethen).
        mu, phi, step = (4.4921 * half / t)[:, None], 1.1721, 1.0818 / half
        u = (np.arange(half) + 0.5) * step
        z = -mu * (1 + np.sin(1j * u - phi))
        dz = -1j * mu * np.cos(1j * u - phi) * (step / np.pi)
    else:
        # An ellipse with foci 0 and the edge. On its left tip, at -δ, ψ^factors grows to about exp(tδ):
        # keep that near e³, and |γz| on its right tip where the schedule's power series is short.
        largest = np.array([schedule.gamma for schedule in schedules]) * edge
        reach = 2 * np.maximum(0.6, (1 + largest) / 2) / largest - 1
        eta = np.arccosh(np.minimum(1 + 6 / (t * edge), reach))[:, None]
        n = int(np.ceil(decay / eta.min())) + 4
        v = np.pi * (1 - (np.arange(n) + 0.5) / n)  # from the left tip along the upper half
        middle = edge[:, None] / 2
        z = middle * (1 + np.cosh(eta) * np.cos(v) + 1j * np.sinh(eta) * np.sin(v))
        # v falls from the left tip and dz/dv rises counter-clockwise, so the half's weight is +1/n.
        dz = middle * (-np.cosh(eta) * np.sin(v) + 1j * np.sinh(eta) * np.cos(v)) / n
    residual = np.array([schedule.residual(row) for schedule, row in zip(schedules, z, strict=True)])
    return z, dz, residual


def is_long(schedule: Schedule, steps: float | None = None) -> bool:
    """Whether ψ is near enough to an exponential off the real axis for the hyperbola."""
    return schedule.is_smooth(HYPERBOLA_STEPS if steps is None else steps)


def reaches(schedule: Schedule) -> bool:
    """Whether a contour of not too many nodes is fit for the schedule."""
    return is_long(schedule) or schedule.total <= MOST_STEPS * schedule.gamma
