"""What the law needs between two points of a contour, given a sketch or over sketches alike.

    Λ = (1/NP) Γ₁ (Σ_j g_j T_j) Γ₂,   g = K₁₂(h'+ρ),   ρ_j = tr(T_j Λ)/P                                   (6)
In the few matrices B_m this is θ = fᵀg with (I - fᵀK₁₂f A₁₂) θ = fᵀK₁₂h', A₁₂ = tr(B_m Γ₁ B_n Γ₂)/(P·NP), and
ρ = f A₁₂ θ. Arrays are nodes × (nodes and their conjugates) × ….
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqlaw.methods.finite_sample.positions import Complex, Positions
from seqlaw.model.checks import Array

CLOSE = 1e-9
"""A Newton step of this relative size is the last: the next error is its square."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """Loss, bias and cross as sums over contours, without what does not depend on the data."""

    loss: float
    bias: float
    cross: float

    def minus(self, other: Terms) -> Terms:
        return Terms(loss=self.loss - other.loss, bias=self.bias - other.bias, cross=self.cross - other.cross)

    def over(self, factor: float) -> Terms:
        return Terms(loss=self.loss / factor, bias=self.bias / factor, cross=self.cross / factor)


def mirrored(x: Complex) -> Complex:
    """Nodes on the stored half of the contour, then on the other."""
    return np.concatenate([x, np.conj(x)])


def over_pairs(first: Complex, second: Complex, form: Complex) -> float:
    """∮∮ of a form nodes × (nodes and conjugates)."""
    return 2 * float(np.real(first @ form @ mirrored(second)))


def products(place: Positions, cells: Array, gamma: Complex) -> Complex:
    """tr(B_m Γ B_n Γ)/P at every node: `fᵀK₁₁f` times it is the slope of the fixed point."""
    left = place.times(gamma)
    return np.asarray((left * cells) @ np.swapaxes(place.turned(left), -1, -2))


def halves(x: Complex) -> Array:
    """Real and imaginary parts, stacked: products with them are real ones."""
    return np.stack([x.real, x.imag])


def outer(left: Array, right: Array) -> Complex:
    """Σ over the last axis of left_i,m right_j,n, both as `halves`: i × (j, then their conjugates) × m × n.

    One real product of matrices has all four parts, for a partner and its conjugate alike.
    """
    (i, m), (j, n) = left.shape[1:3], right.shape[1:3]
    parts = left.reshape(2 * i * m, -1) @ right.reshape(2 * j * n, -1).T
    (rr, ri), (ir, ii) = parts.reshape(2, i, m, 2, j, n).transpose(0, 3, 1, 4, 2, 5)
    found = np.empty((i, 2 * j, m, n), dtype=np.complex128)
    found.real[:, :j], found.imag[:, :j] = rr - ii, ri + ir
    found.real[:, j:], found.imag[:, j:] = rr + ii, ir - ri
    return found


class TwoPoint:
    """ρ and the three sums over Λ, as coefficients of f: b^Λ, b̄^Λ, y^Λ = f·(behind, ahead, both)."""

    def __init__(
        self, place: Positions, cells: Array, gamma: Complex, K: Complex, source: Complex, tokens: float
    ) -> None:
        left = place.times(gamma)
        A = outer(halves(left * cells), halves(place.turned(left))) / tokens
        theta = np.linalg.solve(np.eye(A.shape[-1]) - K @ A, source[..., None])
        inner = place.between(gamma[:, None], theta[..., 0] @ place.here, mirrored(gamma))
        between = inner * (cells / tokens)  # Λ, counted as in tr(·)/P
        self.rho = (A @ theta)[..., 0]
        self.behind, self.ahead = between @ place.behind.T, between @ place.ahead.T
        self.both = between @ place.both.T
