"""The two-point functions of the law: ρ and the sums over Λ at pairs of nodes, with or without a sketch.

    Λ = (1/NP) Γ₁ (Σ_j g_j T_j) Γ₂,   g = K₁₂(h'+ρ),   ρ_j = tr(T_j Λ)/P      docs/finite-sample.md, (6)
In the few matrices B_m this is θ = fᵀg with (I - fᵀK₁₂f A₁₂) θ = fᵀK₁₂h', A₁₂ = tr(B_m Γ₁ B_n Γ₂)/(P·NP), and
ρ = f A₁₂ θ. Arrays are … × nodes × (nodes and their conjugates) × …, the first … of settings if any.
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
    """Loss, bias and cross as integrals over contours, without the parts that do not depend on the data."""

    loss: float
    bias: float
    cross: float

    def minus(self, other: Terms) -> Terms:
        return Terms(loss=self.loss - other.loss, bias=self.bias - other.bias, cross=self.cross - other.cross)

    def over(self, factor: float) -> Terms:
        return Terms(loss=self.loss / factor, bias=self.bias / factor, cross=self.cross / factor)


def mirrored(x: Complex, axis: int = 0) -> Complex:
    """Values at the nodes, then their conjugates, which are those on the lower half of the contour."""
    return np.concatenate([x, np.conj(x)], axis=axis)


def over_pairs(first: Complex, second: Complex, form: Complex) -> Array:
    """∮∮ of a form nodes × (nodes and conjugates)."""
    seen = (form @ mirrored(second, -1)[..., None])[..., 0]
    return np.asarray(2 * np.sum(first * seen, axis=-1).real)


def products(place: Positions, cells: Array, gamma: Complex) -> Complex:
    """tr(B_m Γ B_n Γ)/P at every node: `fᵀK₁₁f` times it is the slope of the fixed point."""
    left = place.times(gamma)
    return np.asarray((left * cells) @ np.swapaxes(place.turned(left), -1, -2))


def halves(x: Complex, axis: int = 0) -> Array:
    """Real and imaginary parts, stacked before the nodes: products with them are real ones."""
    return np.stack([x.real, x.imag], axis=axis)


def outer(left: Array, right: Array) -> Complex:
    """Σ over the last axis of left_i,m right_j,n, both as `halves`: i × (j, then their conjugates) × m × n.

    One real product of matrices has all four parts, for a partner and its conjugate alike.
    """
    (i, m), (j, n), settings = left.shape[-3:-1], right.shape[-3:-1], left.shape[:-4]
    rows, columns = (x.reshape(*settings, -1, x.shape[-1]) for x in (left, right))
    parts = (rows @ np.swapaxes(columns, -1, -2)).reshape(*settings, 2, i, m, 2, j, n)
    (rr, ir), (ri, ii) = (
        [parts[..., own, :, :, other, :, :].swapaxes(-3, -2) for own in (0, 1)] for other in (0, 1)
    )
    found = np.empty((*settings, i, 2 * j, m, n), dtype=np.complex128)
    found.real[..., :j, :, :], found.imag[..., :j, :, :] = rr - ii, ri + ir
    found.real[..., j:, :, :], found.imag[..., j:, :, :] = rr + ii, ir - ri
    return found


class TwoPoint:
    """ρ and the three sums over Λ, as coefficients of f: b^Λ, b̄^Λ, y^Λ = f·(behind, ahead, both)."""

    def __init__(
        self,
        place: Positions,
        cells: Array,
        gamma: Complex,
        K: Complex,
        source: Complex,
        tokens: Array | float,
    ) -> None:
        each = np.asarray(tokens)[..., None]
        left = place.times(gamma)
        A = outer(halves(left * cells[..., None, None, :], -4), halves(place.turned(left), -4))
        A = A / each[..., None, None, None]
        theta = np.linalg.solve(np.eye(A.shape[-1]) - K @ A, source[..., None])
        there = mirrored(gamma, -2)[..., None, :, :]
        inner = place.between(gamma[..., :, None, :], theta[..., 0] @ place.here, there)
        between = inner * (cells / each)[..., None, None, :]  # Λ, counted as in tr(·)/P
        self.rho = (A @ theta)[..., 0]
        self.behind, self.ahead = between @ place.behind.T, between @ place.ahead.T
        self.both = between @ place.both.T
