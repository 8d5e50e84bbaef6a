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
    """tr(B_m Γ B_n Γ)/P at every node (…, nodes, r, r): `fᵀK₁₁f` times it is the slope of the fixed point.

    `cells` has weights, (…, cells).
    """
    left, right = place.times(gamma * cells[..., None, :]), place.after(gamma)
    (re, im), turned = np.moveaxis(left, -4, 0), np.swapaxes(right, -1, -2)
    with_re, with_im = np.moveaxis(turned, -4, 0)
    return np.asarray(re @ with_re - im @ with_im + 1j * (re @ with_im + im @ with_re))


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
        right = place.after(gamma)
        A = outer(place.times(gamma * cells[..., None, :]), right) / each[..., None, None, None]
        theta = np.linalg.solve(np.eye(A.shape[-1]) - K @ A, source[..., None])[..., 0]
        self.rho = (A @ theta[..., None])[..., 0]
        there, ends = mirrored(gamma, -2), (place.behind, place.ahead, place.both)
        seen = np.concatenate([end * (cells / each)[..., None, :] for end in ends], axis=-2)
        seen = np.swapaxes(seen, -1, -2)  # Λ is counted as in tr(·)/P
        n, r = gamma.shape[-2], A.shape[-1]
        self.behind, self.ahead, self.both = (np.empty_like(theta) for _ in ends)
        for i in range(n):
            # Λ_ji is the transpose of Λ_ij: half of the pairs are enough.
            partners = np.concatenate([np.arange(i, n), np.arange(n + i, 2 * n)])
            (re, im), theta_i = np.moveaxis(right[..., i, :, :], -3, 0), theta[..., i, partners, :]
            mixed = theta_i.real @ re - theta_i.imag @ im + 1j * (theta_i.real @ im + theta_i.imag @ re)
            inner = place.product(mixed, there[..., partners, :])
            found = inner.real @ seen + 1j * (inner.imag @ seen)
            behind, ahead, both = found[..., :r], found[..., r : 2 * r], found[..., 2 * r :]
            for own, one, turned in (
                (self.behind, behind, ahead),
                (self.ahead, ahead, behind),
                (self.both, both, both),
            ):
                own[..., i, partners, :] = one
                own[..., i + 1 : n, i, :] = turned[..., 1 : n - i, :]
                own[..., i + 1 : n, n + i, :] = np.conj(turned[..., n - i + 1 :, :])
