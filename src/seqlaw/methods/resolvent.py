"""The resolvent of a sketched covariance without the sketch: κ(z), and where the spectrum ends.

For G = S H Sᵀ with a Gaussian sketch, κ(z) solves  κ (1 - (1/M) Σ_j h_j/(h_j + κ)) = -z, and
Sᵀ (G - z)^-1 S ≈ (H + κ)^-1, tr (G - z)^-1 ≈ M/κ: docs/equivalent.md, (2) and (1).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.model.checks import Array

Complex = NDArray[Any]


def newton(
    h: NDArray[Any],
    weights: Array,
    M: Any,
    z: NDArray[Any],
    start: NDArray[Any],
    *,
    close: float = 1e-9,
    most: int = 60,
    onto: Callable[[Complex, Complex], Complex] | None = None,
) -> tuple[Complex, Complex, NDArray[Any]]:
    """κ(z) from a guess, the slope -dz/dκ = 1 - (1/M) Σ h²/(h+κ)², and where the last step was below `close`.

    h (…, n), all else (…). The convergence is quadratic, so the error left is the square of `close`. `onto`
    takes each new κ and the old one, to stay on a branch.
    """
    kappa = start
    for _ in range(most):
        share = h / (h + kappa[..., None])
        slope = 1 - share**2 @ weights / M
        new = kappa - (kappa * (1 - share @ weights / M) + z) / slope
        new = new if onto is None else onto(new, kappa)
        settled = np.abs(new - kappa) <= close * np.abs(new)
        kappa = new
        if np.all(settled):
            break
    return kappa, slope, settled


def real_kappa(h: Array, weights: Array, M: Array, z: Array) -> Array:
    """κ(z) for real z ≤ 0: h (B, n), M and z (B,) → (B,).

    -z as a function of κ is concave, so Newton from the right of the root falls on it monotonically. A
    student as wide as the teacher (M = d) has κ(0) = 0.
    """
    kappa = np.zeros(M.shape)
    part = np.flatnonzero((z < 0) | (M < weights.sum() * (1 - 1e-12)))
    if part.size:
        h, M, z = h[part], M[part], z[part]
        start = -z + (h @ weights) / M
        kappa[part] = newton(
            h, weights, M, z, start, most=200, onto=lambda new, old: np.maximum(new, old * 1e-3)
        )[0]
    return kappa


def path_kappa(h: Array, weights: Array, M: Array, z: Complex, *, close: float = 1e-9) -> Complex:
    """κ along paths z (B, K) of which one end lies near the negative real axis, near 0, or far out.

    Newton for the first point starts from the real solution at -|z|, each further point from its neighbour by
    dκ/dz = -1/slope: the branch with Sᵀ(G-z)^-1S positive is kept by continuity.
    """
    if np.abs(np.angle(z[0, 0])) < np.abs(np.angle(z[0, -1])) - 1e-6:  # a loop, which ends near 0
        return path_kappa(h, weights, M, z[:, ::-1], close=close)[:, ::-1]
    kappa = np.empty_like(z)
    last = -np.abs(z[:, 0])
    current = real_kappa(h, weights, M, last).astype(np.complex128)
    slope = 1 - (h / (h + current[:, None])) ** 2 @ weights / M
    for k in range(z.shape[1]):
        start = current - (z[:, k] - last) / slope
        current, slope, _ = newton(h, weights, M, z[:, k], start, close=close)
        last = z[:, k]
        kappa[:, k] = current
    return kappa


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
