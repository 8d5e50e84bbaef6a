"""The same nodes without a sketch: ratios of densities on the real axis (docs/one-pass.md, §6).

With κ = κ(x + i0), Im κ < 0, D = 1/(h + κ) and the density of eigenvalues Im(M/κ)/π, the mean over the
directions of eigenvalue x of s_l² is Im D_l/Im(M/κ), and likewise for all that (10) needs.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.methods.accuracy import Crowd, fine
from seqlaw.methods.expected import noise, population, score_diagonal
from seqlaw.methods.one_pass.directions import Directions
from seqlaw.methods.resolvent import newton, spectral_edge
from seqlaw.methods.score import lag_sums
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model.checks import Array
from seqlaw.model.lengths import Length, mean_length

_HEIGHTS = 27
"""Imaginary parts 4x·4^-k on the way down to the axis: the last is 1e-15 x."""
_GRID = 60  # points that bracket the nodes
_SETTLED = 1e-9  # of a node's place, of its distance from the next


def axis_kappa(h: Array, weights: Array, M: float, x: Array) -> NDArray[Any]:
    """κ(x + i0) for x inside the spectrum, by Newton down a ladder of imaginary parts: (X,) → (X,)."""
    kappa = -x * (1 + 4j) + (h @ weights) / M
    for k in range(_HEIGHTS):
        kappa, _ = _from_above(h, weights, M, x * (1 + 4j * 4.0**-k), kappa)
    return kappa


def _from_above(
    h: Array, weights: Array, M: float, z: NDArray[Any], kappa: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """κ(z) from a guess, on the branch with Im κ < 0; and whether it settled."""

    def below(new: NDArray[Any], _: NDArray[Any]) -> NDArray[Any]:
        return np.where(new.imag > 0, new.conj(), new)

    found, _, settled = newton(h, weights, M, z, kappa, close=1e-11, onto=below)
    return found, settled


def _moved(h: Array, weights: Array, M: float, x: Array, kappa: NDArray[Any], new: Array) -> NDArray[Any]:
    """κ(new + i0) from κ(x + i0): along the axis where that works, dκ/dz = -1/φ', else down the ladder."""
    slope = 1 - (h / (h + kappa[:, None])) ** 2 @ weights / M
    found, settled = _from_above(
        h, weights, M, new * (1 + 4j * 4.0 ** (1 - _HEIGHTS)), kappa - (new - x) / slope
    )
    lost = ~settled | (found.imag > -1e-9 * np.abs(found))
    if np.any(lost):
        found[lost] = axis_kappa(h, weights, M, new[lost])
    return found


def above(h: Array, weights: Array, M: float, kappa: NDArray[Any]) -> Array:
    """#(μ > x) = (1/π) Im[Σ log(1 + h/κ) - Σ h/(h + κ) + M log(-κ)] at κ = κ(x + i0).

    From log det(G - z), which is stationary in κ; with -κ the large part of the phase, Mπ, is never there.
    """
    part = np.log(1 + h / kappa[:, None]) - h / (h + kappa[:, None])
    return np.asarray((part @ weights + M * np.log(-kappa)).imag / np.pi)


def _numbers(M: float, crowd: Crowd) -> tuple[Array, Array]:
    """Counts #(μ > x) at which nodes sit, and their multiplicities: all of the first, then Gauss in log i."""
    first = np.arange(min(crowd.alone, M)) + 0.5
    if M <= crowd.alone:
        return first, np.ones(first.size)
    low, high = np.log(crowd.alone + 0.5), np.log(M + 0.5)
    points, w = np.polynomial.legendre.leggauss(max(4, round(crowd.a_fold * (high - low)) + 2))
    i = np.exp((high + low) / 2 + (high - low) / 2 * points)
    return np.concatenate([first, i - 0.5]), np.concatenate([np.ones(first.size), (high - low) / 2 * w * i])


def placed(
    h: Array, weights: Array, M: float, kappa_0: float, crowd: Crowd
) -> tuple[Array, NDArray[Any], Array]:
    """Eigenvalues x of the nodes, κ(x + i0) and the multiplicities: Newton on the counting function."""
    counts, w = _numbers(M, crowd)
    low = 1e-4 * kappa_0 if kappa_0 > 0 else 1e-8 * float(h[h > 0].min())
    grid = np.geomspace(low, 4 * (h.max() + 3 * (h @ weights) / M), _GRID)
    seen = np.maximum.accumulate(above(h, weights, M, axis_kappa(h, weights, M, grid))[::-1])[::-1]
    at = np.clip(np.searchsorted(-seen, -counts), 1, _GRID - 1)
    left, right = grid[at - 1], grid[at]  # seen[left] >= count > seen[right]
    x = np.sqrt(left * right)
    kappa = axis_kappa(h, weights, M, x)
    for _ in range(60):
        missing = above(h, weights, M, kappa) - counts
        left, right = np.where(missing >= 0, x, left), np.where(missing <= 0, x, right)
        density = (M / kappa).imag / np.pi
        new = x * np.exp(np.clip(missing / (density * x), -2, 2))
        new = np.where((new > left) & (new < right), new, np.sqrt(left * right))
        if np.all(np.abs(missing) <= _SETTLED * np.maximum(counts, 1)):
            break
        x, kappa = new, _moved(h, weights, M, x, kappa, new)
    return x, kappa, w


def expected_directions(rule: Rule, P: Length, M: int, crowd: Crowd = fine.crowd) -> tuple[Directions, Array]:
    """The nodes of width M on a spectrum (18), and ς: the mean of s_l² at each, nodes × modes of the rule."""
    own = population(rule, [P], np.array([float(M)]))
    h, a, weights, kappa_0 = own.h[0], own.a, own.weights, float(own.kappa[0])
    x, kappa, w = placed(h, weights, float(M), kappa_0, crowd)
    density = (M / kappa).imag[:, None]
    D, D_0 = 1 / (h + kappa[:, None]), 1 / (h + kappa_0)
    b = a * h
    e, e_0 = ((b * D) @ weights / M)[:, None], float((b * D_0) @ weights / M)
    u, u_0 = (b + e * kappa[:, None]) * D, (b + e_0 * kappa_0) * D_0
    F = (b**2 * D) @ weights + kappa * M * e[:, 0] ** 2
    tau = ((F - own.source(own.kappa)[0]) / x)[:, None]
    Y = u_0 * u + D_0 * D * kappa_0 * kappa[:, None] * (tau / M - e_0 * e)
    sigma = D.imag / density  # ς_l, the mean of s_il²
    zeta, eta = u.imag / (density * x[:, None]), (a * u.imag - Y.imag) / (density * x[:, None])
    K, J = (sums / mean_length(P) for sums in lag_sums(rule.modes, P))
    score = score_diagonal(own, rule, [P], noise(rule)).score[0] / mean_length(P)
    seen = sigma * weights
    R = seen @ K @ seen.T
    ell = 2 * seen @ (K @ (eta * weights).T + J @ (zeta * weights).T)
    ell[np.diag_indices_from(ell)] *= 1 + 1 / w  # the elementwise part is the trace part of one direction
    nodes = Directions(
        mu=x,
        w=w,
        R=R,
        Q=np.diag(np.diag(R)),
        A=seen @ score,
        beta=F.imag / (density[:, 0] * x**2),
        ell=ell,
        # As for the full batch: a narrow student's largest eigenvalue scatters up to the edge.
        norm=max(float(x.max()), float(spectral_edge(own.h, weights, own.M)[1][0])),
    )
    return nodes, sigma
