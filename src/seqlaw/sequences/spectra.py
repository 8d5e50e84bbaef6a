"""The three spectra of a tally, how they move with each group, and how well the matrices commute.

Each matrix is diagonalised by itself (projecting one on the eigenvectors of another flattens its law):
    innovation   Ω = (n/(n-k)) (Σ y yᵀ/n - B Cᵀ), the residual covariance of the one-step predictor B = C G^-1
    transition   (T + Tᵀ)/2, T = G^{-1/2} C G^{-1/2}
    initial      the covariance of the first states
G is inverted on its k leading principal directions: those that vary, and at most n/4 of them.

What finite samples add to eigenvalues is taken off. A covariance from n samples has eigenvalues
μ_j ≈ λ_j (1 + n^-1 Σ_{k≠j} λ_k/(λ_j - λ_k)) (Lawley); a symmetric matrix with independent noise of variance
v_jk has a_j + Σ_{k≠j} v_jk/(a_j - a_k). Both are undone to first order, and a spectrum is cut where the
correction passes `TRUST`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from seqlaw.model.checks import Array, InputError
from seqlaw.sequences.moments import Tally

LEAST_DIRECTIONS = 2
TRUST = 0.2
"""A relative correction above this is no longer first order: the spectrum is cut there."""
_STEPS = 4  # of the flow
LEAST_POINTS = 6
"""Eigenvalues that a fit needs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Corrected:
    """A spectrum in falling order, corrected, with how many leading values can be used."""

    raw: Array
    values: Array
    trusted: int


def correct_covariance(mu: Array, samples: float) -> Corrected:
    """Undo the spread of the eigenvalues of a covariance from `samples` samples."""
    mu = np.maximum(mu, 0.0)
    if samples <= 0 or mu[0] <= 0:
        return Corrected(raw=mu, values=mu, trusted=0)
    factor = 1 + _pushed(mu) / samples
    good = (np.abs(factor - 1) <= TRUST) & (mu > 1e-13 * mu[0])
    values = mu / np.where(np.abs(factor - 1) <= 0.5, factor, 1.0)
    return Corrected(raw=mu, values=values, trusted=_leading(good))


def correct_transition(a: Array, noise: Array, samples: int) -> Corrected:
    """Undo the spread of the eigenvalues of the symmetrised whitened lag-one covariance.

    `noise` is the whitened residual variance of each direction: entries scatter by (noise_j + noise_k)/(4n).
    """
    variance = (noise[:, None] + noise) / (4.0 * samples * _STEPS)
    values = a
    for _ in range(_STEPS):  # noise moves sorted eigenvalues by Dyson's flow; run it backwards
        gap, width = _gaps(values)
        values = values - (variance * gap / (gap**2 + width**2)).sum(axis=1)
        values = -np.sort(-values)
    good = (values > 0) & (np.abs(values - a) <= TRUST * np.abs(values))
    return Corrected(raw=a, values=values, trusted=_leading(good))


def _pushed(mu: Array) -> Array:
    """Relative shift of each eigenvalue of a covariance by all others, times the samples."""
    gap, width = _gaps(mu)
    return np.asarray((mu * gap / (gap**2 + width**2)).sum(axis=1))


def samples_of_covariance(spectrum: Corrected) -> float:
    """Samples with which a fit could trust enough eigenvalues, if the spectrum stayed as it is.

    Where so many are not there yet, each of those above the last one pushes it down by about 1/samples.
    """
    mu = spectrum.raw
    if np.count_nonzero(mu > 1e-13 * mu[0]) < LEAST_POINTS:
        return (LEAST_POINTS - 1) / TRUST
    return float(np.abs(_pushed(mu)[:LEAST_POINTS]).max()) / TRUST


def samples_of_transition(spectrum: Corrected, samples: int) -> float | None:
    """The same of the transition, measured with `samples`; None where too few of it are positive to tell."""
    raw, values = spectrum.raw[:LEAST_POINTS], spectrum.values[:LEAST_POINTS]
    if raw.size < LEAST_POINTS or raw[-1] <= 0:
        return None
    # |shift| / more ≤ TRUST (raw - shift / more), with `more` times the samples
    return samples * float(np.max(np.abs(raw - values) / raw)) * (1 + TRUST) / TRUST


def _gaps(values: Array) -> tuple[Array, Array]:
    """Differences, and the width over which 1/gap is smoothed: three spacings, so that noise cancels."""
    size = values.size
    width = values - values[np.minimum(np.arange(size) + 3, size - 1)]
    floor = 1e-12 * max(float(np.abs(values).max()), np.finfo(float).tiny)
    return values[:, None] - values, np.maximum(width, floor)[:, None]


def _leading(good: NDArray[np.bool_]) -> int:
    return int(good.size if good.all() else np.argmin(good))


@dataclass(frozen=True, kw_only=True, eq=False)
class Moving:
    """How eigenvalues move with group weights: λ_j = centre_j + scale Σ_g w_g part_gj / Σ_g w_g count_g."""

    parts: Array
    counts: Array
    scale: float
    centre: Array

    def resampled(self, weights: Array) -> Array:
        """The eigenvalues for each row of group weights: (…, J)."""
        return np.asarray(
            self.centre + self.scale * (weights @ self.parts) / (weights @ self.counts)[..., None]
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Alignment:
    """How far the commuting assumption holds. Shares of squared entries, sampling noise taken off."""

    asymmetry: float
    """Of T: its antisymmetric part."""
    rotation_z: float
    """That part over its sampling noise, in standard errors: a random order of time would leave none."""
    off_diagonal: float
    """Of the symmetrised T, between different principal directions of G."""
    excess: float
    """The same on the leading block, over its sampling noise, less 1: 0 when G and T commute."""
    excess_error: float
    noise: float
    """The mean squared entry that sampling alone would leave there."""
    block: int
    initial: float
    """Mean squared correlation of the first states between principal directions, noise taken off; NaN where
    the first states do not vary."""
    order: float
    """Rank correlation of the variances of G with the transitions along its principal directions (1: the
    directions that vary most are the slowest, as the theory has it)."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectra:
    """Eigenvalues in falling order, corrected for finite samples."""

    covariance: Array
    innovation: Corrected
    transition: Corrected
    initial: Corrected
    moving: dict[str, Moving]
    """For "innovation", "transition" and "initial"."""
    alignment: Alignment
    noise_edge: float
    """The largest eigenvalue that noise alone gives the transition, √(2k/n)."""
    order_z: float
    """Lag-one autocovariance over that of shuffled sequences, in standard errors over groups."""
    explained: float
    """Share of the variance of y that the one-step predictor explains, degrees of freedom taken off."""
    shift: float
    """Squared distance of the first states' mean from the overall mean, over tr Σ_0; infinite where the first
    states do not vary."""
    rank: int

    @property
    def largest_transition(self) -> float:
        """Corrected where the correction can be trusted: a few sequences push 0.56 to 1.19."""
        spectrum = self.transition
        return float((spectrum.values if spectrum.trusted else spectrum.raw)[0])

    def named(self, name: str) -> Corrected:
        return {"innovation": self.innovation, "transition": self.transition, "initial": self.initial}[name]


def spectra(tally: Tally) -> Spectra:
    """Diagonalise; cost a few D³ and, for each group, D² times the number of leading values followed."""
    n, N = tally.n, tally.N
    G, C, Y = (_total(x) / n for x in (tally.G, tally.C, tally.Y))
    g, U = _falling(G)
    if not g[0] > 1e-26 * max(1.0, float(np.abs(tally.mean).max()) ** 2):
        raise InputError("X", "must vary: every feature is constant", f"variance {max(g[0], 0.0):.3g}")
    rank = min(int(np.count_nonzero(g > 1e-12 * g[0])), max(LEAST_DIRECTIONS, n // 4))
    W = U[:, :rank] / np.sqrt(g[:rank])
    T = W.T @ C @ W
    values, V = _falling((T + T.T) / 2)
    half = W.T @ C.T  # B Cᵀ = C W Wᵀ Cᵀ
    freedom = max(1, n - rank)
    residual = (Y - half.T @ half) * (n / freedom)
    omega, O = _falling(residual)
    noise = np.maximum(np.sum(W * (residual @ W), axis=0), 0.0)
    first = _total(tally.first) / max(1, N - 1)
    if np.trace(first) < 1e-12 * np.trace(G):
        first = np.zeros_like(first)  # one sequence, or all start from one state: the rest is rounding
    sigma, F = _falling(first)
    follow = min(tally.D, 256)
    moving = {
        "innovation": _innovation_parts(tally, O[:, :follow], W, half, omega[:follow], n / freedom),
        "transition": _transition_parts(tally, W @ V[:, :follow], values[:follow]),
        "initial": _initial_parts(tally, F[:, :follow], sigma[:follow]),
    }
    return Spectra(
        covariance=np.maximum(g, 0.0),
        innovation=correct_covariance(omega, freedom),
        transition=correct_transition(values, np.einsum("jk,j,jk->k", V, noise, V), n),
        initial=correct_covariance(sigma, N - 1),
        moving=moving,
        alignment=_alignment(T, noise, U[:, :rank].T @ first @ U[:, :rank], n, N),
        noise_edge=float(np.sqrt(2 * rank / n)),
        order_z=_order_z(tally, np.diagonal(G)),
        explained=float(1 - np.trace(residual) / max(np.trace(Y), np.finfo(float).tiny)),
        shift=_shift(tally, float(np.trace(first))),
        rank=rank,
    )


def _shift(tally: Tally, variance: float) -> float:
    distance = float(np.sum((tally.mean_first - tally.mean) ** 2))
    return distance / variance if variance > 0 else math.inf


def _total(matrices: Sequence[Array]) -> Array:
    """Of all groups, without a copy of them."""
    return np.asarray(sum(matrices[1:], start=matrices[0]))


def _falling(matrix: Array) -> tuple[Array, Array]:
    values, vectors = eigh(matrix, driver="evd", check_finite=False)
    return values[::-1], vectors[:, ::-1]


def _quadratic(left: Array, matrices: Sequence[Array], right: Array) -> Array:
    """vᵀ M_g w for every group and pair of columns: K × J."""
    return np.stack([np.sum(left * (matrix @ right), axis=0) for matrix in matrices])


def _innovation_parts(tally: Tally, O: Array, W: Array, half: Array, omega: Array, scale: float) -> Moving:
    """|vᵀ(y - B u)|² summed over each group; B is at its optimum, so its own movement is of second order."""
    BO = W @ (half @ O)
    parts = _quadratic(O, tally.Y, O) - 2 * _quadratic(O, tally.C, BO) + _quadratic(BO, tally.G, BO)
    return Moving(parts=parts, counts=tally.transitions, scale=scale, centre=np.zeros_like(omega))


def _transition_parts(tally: Tally, columns: Array, values: Array) -> Moving:
    """δa_j = vᵀ (δC - a_j δG) v in the whitened basis."""
    parts = _quadratic(columns, tally.C, columns) - values * _quadratic(columns, tally.G, columns)
    return Moving(parts=parts, counts=tally.transitions, scale=1.0, centre=values)


def _initial_parts(tally: Tally, F: Array, sigma: Array) -> Moving:
    N = tally.N
    parts = _quadratic(F, tally.first, F)
    return Moving(parts=parts, counts=tally.sequences, scale=N / max(1, N - 1), centre=np.zeros_like(sigma))


def _alignment(T: Array, noise: Array, first: Array, n: int, N: int) -> Alignment:
    k = len(T)
    even, odd = (T + T.T) / 2, (T - T.T) / 2
    expected = (noise[:, None] + noise) / (4.0 * n)
    np.fill_diagonal(expected, 0.0)
    off = even - np.diag(np.diagonal(even))
    block = max(min(k, 8), k // 4)
    head = np.s_[:block, :block]
    energy = max(float(np.sum(even**2)), np.finfo(float).tiny)
    spread = np.diagonal(first)
    scale = np.sqrt(np.maximum(spread, max(1e-13 * spread.max(), np.finfo(float).tiny)))  # less is rounding
    correlations = (first / np.outer(scale, scale))[head] - np.eye(block)
    pairs = max(1, block * (block - 1))
    ranks = np.argsort(np.argsort(-np.diagonal(even)))
    return Alignment(
        asymmetry=max(0.0, float(np.sum(odd**2) - expected.sum())) / energy,
        rotation_z=_above(float(np.sum(odd**2)), float(expected.sum()), k * (k - 1)),
        off_diagonal=max(0.0, float(np.sum(off**2) - expected.sum())) / energy,
        excess=float(np.sum(off[head] ** 2) / max(expected[head].sum(), np.finfo(float).tiny) - 1),
        excess_error=float(2 / np.sqrt(pairs)),
        noise=max(float(expected[head].sum() / pairs), np.finfo(float).tiny),
        block=block,
        initial=max(0.0, float(np.sum(correlations**2) / pairs - 1 / N)) if spread.max() > 0 else math.nan,
        order=float(np.corrcoef(ranks, np.arange(k))[0, 1]) if k > 1 else 1.0,
    )


def _above(square: float, expected: float, entries: int) -> float:
    """How far a sum of squares of (anti)symmetric entries lies above its expectation, in standard errors."""
    return (square / expected - 1) * np.sqrt(entries) / 2 if expected > 0 else 0.0


def _order_z(tally: Tally, variance: Array) -> float:
    """Σ_j (lag-one minus shuffled autocovariance)/variance over its standard error across groups."""
    usable = variance > 1e-12 * variance.max()
    parts = (tally.contrast[:, usable] / variance[usable]).sum(axis=1)
    K = len(parts)
    if K < 2:
        return math.nan
    rest = parts - tally.transitions * (parts.sum() / tally.n)
    error = np.sqrt(K / (K - 1) * np.sum(rest**2))
    return float(parts.sum() / error) if error > 0 else 0.0
