"""Power laws of sorted eigenvalues: what finite samples add is taken off, the rest is fitted in a window.

A covariance from n samples has eigenvalues μ_j ≈ λ_j (1 + n^-1 Σ_{k≠j} λ_k/(λ_j - λ_k)) (Lawley); a symmetric
matrix with independent noise of variance v_jk has a_j + Σ_{k≠j} v_jk/(a_j - a_k). Both are undone to first
order, and the spectrum is cut where the correction passes `TRUST`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from seqlaw.model.checks import Array

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


Window = tuple[int, int]
"""First and last index j, from 1, both included."""


def windows(top: int) -> list[Window]:
    """The window of the fit, then those that show how much the choice matters.

    The first index is left out by default (in real data it is often a law of its own).
    """
    candidates = [(2, top), (1, top), (3, top), (4, top), (2, (3 * top) // 4), (1, top // 2), (2, top // 2)]
    fitting = [w for w in candidates if w[1] - w[0] + 1 >= LEAST_POINTS]
    if not fitting and top >= LEAST_POINTS:
        fitting = [(1, top)]
    return list(dict.fromkeys(fitting))


@dataclass(frozen=True, kw_only=True, eq=False)
class Line:
    """log y = intercept - exponent · log j over a window, for each row of a table of spectra."""

    exponent: Array
    intercept: Array
    scatter: Array
    """Residual variance of log y, with two degrees of freedom taken off."""
    r2: Array
    leverage: float
    """Σ (log j - mean)²: a scatter s² moves the exponent by s²/leverage."""


def fit_line(logs: Array, window: Window) -> Line:
    """Least squares in log–log; `logs` is (…, ≥ last) with index j = 1 first."""
    first, last = window
    x = np.log(np.arange(first, last + 1))
    y = np.asarray(logs)[..., first - 1 : last]
    centre = x - x.mean()
    leverage = float(centre @ centre)
    slope = y @ centre / leverage
    level = y.mean(axis=-1)
    rest = y - level[..., None] - slope[..., None] * centre
    square = (rest**2).sum(axis=-1)
    spread = ((y - level[..., None]) ** 2).sum(axis=-1)
    return Line(
        exponent=-slope,
        intercept=level - slope * x.mean(),
        scatter=square / max(1, x.size - 2),
        r2=1 - square / np.maximum(spread, np.finfo(float).tiny),
        leverage=leverage,
    )
