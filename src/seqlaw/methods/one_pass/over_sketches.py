"""`Directions` averaged over sketches, as ratios of densities on the real axis (docs/one-pass-theory.md, §6).

With κ = κ(x + i0), Im κ < 0, D = 1/(h + κ) and the density of eigenvalues Im(M/κ)/π, the mean over the
directions of eigenvalue x of s_l² is Im D_l/Im(M/κ), and likewise for all that (10) needs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.methods.accuracy import Crowd, fine
from seqlaw.methods.expected import Population, noise, pick, population, score_diagonal
from seqlaw.methods.one_pass.noise import Directions
from seqlaw.methods.resolvent import spectral_edge
from seqlaw.methods.score import lag_sums
from seqlaw.methods.spectral_sum import Rule, gauss_legendre
from seqlaw.model.checks import Array
from seqlaw.model.lengths import Length, mean_length

_HALF_CIRCLE = np.linspace(0, np.pi, 400)
_SHARE_ABOVE = 1 - (_HALF_CIRCLE - np.sin(_HALF_CIRCLE) * np.cos(_HALF_CIRCLE)) / np.pi
"""The share of a semicircle's mass beyond each angle."""
_SETTLED = 1e-9  # Newton's last relative step
_ROUNDS, _TURNS = 40, 6
_FAR, _UP = 0.3, 0.7
"""How far of |κ|, and of its distance from the real axis, a step of Newton may go."""


def _alone(h: Array, weights: Array, M: float, counts: Array) -> NDArray[Any]:
    """A guess of κ where #(μ > x) is each of the counts: each mode by itself makes a semicircle.

    Near its pole, κ + h_j = ρ e^{-iχ} with ρ² = h_j² w_j/(M - Σ_{l≠j} w_l h_l²/(h_l - h_j)²).
    """
    order = np.argsort(-h)
    h, weights = h[order], weights[order]
    ends = np.cumsum(weights)
    j = np.minimum(np.searchsorted(ends, counts), h.size - 1)
    angle = np.interp(-(counts - ends[j] + weights[j]) / weights[j], -_SHARE_ABOVE, _HALF_CIRCLE)
    apart = h - h[j, None]
    others = np.divide(h, apart, out=np.zeros_like(apart), where=apart != 0) ** 2 @ weights
    radius = h[j] * np.sqrt(weights[j] / M / np.clip(1 - others / M, 0.05, 1))
    return np.asarray(-h[j] + radius * np.exp(-1j * np.clip(angle, 0.05, np.pi - 0.05)))


def _settled(
    h: Array, weights: Array, M: float, counts: Array, kappa: NDArray[Any]
) -> tuple[Array, NDArray[Any], NDArray[Any]]:
    """x, κ(x + i0) and whether it settled: Newton on Im z(κ) = 0 and #(μ > x) = count, for κ itself.

    #(μ > x) = (1/π) Im[Σ log(1 + h/κ) - Σ h/(h + κ) + M log(-κ)], from log det(G - z), which is stationary in
    κ; its derivative is (M/κ) s, that of z is -s, with s = 1 - (1/M) Σ h²/(h + κ)².
    """
    x, kappa, todo = np.zeros(counts.size), kappa.copy(), np.arange(counts.size)
    for _ in range(_ROUNDS):
        here = kappa[todo]
        share = h / (h + here[:, None])
        seen = share @ weights
        z, density = -here * (1 - seen / M), M / here
        phase = np.log(1 + h / here[:, None]) @ weights - seen + M * np.log(-here)
        along = (np.pi * counts[todo] - phase.imag - z.imag * density.real) / density.imag
        step = (along + 1j * z.imag) / (1 - share**2 @ weights / M)
        size = np.abs(step) / np.abs(here)
        part = np.minimum(1.0, _FAR / np.maximum(size, _FAR))
        highest = -_UP * here.imag  # κ stays below the real axis
        part = np.minimum(part, highest / np.maximum(step.imag, highest))
        kappa[todo], x[todo] = here + part * step, z.real - along
        todo = todo[(size > _SETTLED) | (part < 1)]
        if not todo.size:
            break
    return x, kappa, ~np.isin(np.arange(counts.size), todo)


def _numbers(M: float, crowd: Crowd) -> tuple[Array, Array]:
    """Counts #(μ > x) at which nodes sit, and their multiplicities: all of the first, then Gauss in log i."""
    first = np.arange(min(crowd.alone, M)) + 0.5
    if M <= crowd.alone:
        return first, np.ones(first.size)
    low, high = np.log(crowd.alone + 0.5), np.log(M + 0.5)
    points, w = gauss_legendre(max(4, round(crowd.a_fold * (high - low)) + 2))
    i = np.exp((high + low) / 2 + (high - low) / 2 * points)
    return np.concatenate([first, i - 0.5]), np.concatenate([np.ones(first.size), (high - low) / 2 * w * i])


def placed(h: Array, weights: Array, M: float, crowd: Crowd) -> tuple[Array, NDArray[Any], Array]:
    """Eigenvalues x of the nodes, κ(x + i0) and the multiplicities.

    Of 86 000 nodes of random teachers, 198 did not converge when Newton started from their own mode's
    semicircle. All of these converged from κ interpolated between their neighbours.
    """
    counts, w = _numbers(M, crowd)
    x, kappa, sure = _settled(h, weights, M, counts, _alone(h, weights, M, counts))
    for turn in range(_TURNS):
        if sure.all():
            break
        lost, known = np.log(counts[~sure]), np.log(kappa[sure])
        size, angle = (np.interp(lost, np.log(counts[sure]), part) for part in (known.real, known.imag))
        guess = np.exp(size + 1j * angle * (1 - 0.1 * turn))
        x[~sure], kappa[~sure], sure[~sure] = _settled(h, weights, M, counts[~sure], guess)
    return x, kappa, w


def expected_directions(rule: Rule, P: Length, M: int, crowd: Crowd = fine.crowd) -> tuple[Directions, Array]:
    """The nodes of width M on a spectrum (18), and ς: the mean of s_l² at each, nodes × modes of the rule."""
    return directions_at(rule, P, [M], crowd)[0]


def directions_at(
    rule: Rule, P: Length, widths: Sequence[float], crowd: Crowd = fine.crowd
) -> list[tuple[Directions, Array]]:
    """The same for several widths, which share the sums over lags."""
    own = population(rule, [P] * len(widths), np.array(widths, dtype=float))
    K, J = (sums / mean_length(P) for sums in lag_sums(rule.modes, P))
    scores = score_diagonal(own, rule, [P] * len(widths), noise(rule)).score / mean_length(P)
    edges = spectral_edge(own.h, own.weights, own.M)[1]
    return [
        _directions(pick(own, slice(k, k + 1)), crowd, K, J, scores[k], float(edges[k]))
        for k in range(len(widths))
    ]


def _directions(
    own: Population, crowd: Crowd, K: Array, J: Array, score: Array, edge: float
) -> tuple[Directions, Array]:
    h, a, weights = own.h[0], own.a, own.weights
    M, kappa_0 = float(own.M[0]), float(own.kappa[0])
    x, kappa, w = placed(h, weights, M, crowd)
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
        norm=max(float(x.max()), edge),
    )
    return nodes, sigma
