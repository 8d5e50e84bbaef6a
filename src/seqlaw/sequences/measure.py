"""`measure`: from sequences to exponents with intervals, a regime with its probability, checks and flags."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from seqlaw.sequences.exponents import LAWS, Fit, fit
from seqlaw.sequences.findings import findings
from seqlaw.sequences.source import batches, open_source
from seqlaw.sequences.spectra import Spectra, spectra
from seqlaw.sequences.tally import Tally, tally
from seqlaw.sequences.verdict import Check, Finding, checks, has_dynamics, is_reliable
from seqlaw.model.checks import Array, whole
from seqlaw.model.teacher import Modes, Teacher

LEVEL = 0.9
"""Of every interval."""
_LARGEST_TRANSITION = 0.999


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A number and its 90 % interval; None where the data do not give it."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, kw_only=True)
class Regime:
    """ "I", "II", "outside" or "unknown", and the share of the bootstrap draws that fall there.

    Name and probabilities compare exponents. Only where `applies` is True do they speak of the theorem.
    """

    name: str
    probability: float | None
    probabilities: Mapping[str, float] = field(default_factory=dict)
    """Of "I", "II" and "outside"; empty where nothing could be drawn."""
    applies: bool = False
    """Whether there is a regime to name and no assumption of the theorem fails."""
    fails: tuple[str, ...] = ()
    """The assumptions that fail, such as "alpha <= 1"."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement:
    """What the sequences say; `reliable` is False when a flag forbids to take the numbers at face value."""

    N: int
    P: tuple[int, int]
    """Shortest and longest sequence, in states."""
    D: int
    alpha: Estimate
    theta: Estimate
    r: Estimate
    rho: Estimate
    c_xi: Estimate
    c_0: Estimate
    regime: Regime
    window: Mapping[str, tuple[int, int]]
    """First and last eigenvalue of each fit, by exponent."""
    r2: Mapping[str, float]
    band: Mapping[str, tuple[float, float]]
    """Least and largest exponent over the windows tried, each with the projection's bias taken off as `value`
    has it, so that `value` lies between them."""
    fitted: Mapping[str, tuple[float, float]]
    """Exponent and scale of the line through the measured eigenvalues, by exponent: as they are before a
    projection's bias is taken off."""
    seen: str
    """Whether the features look like a random projection of the state: "direct", "projected", "unknown" or,
    where covariance and transition share too few directions for both, "neither"."""
    checks: tuple[Check, ...]
    findings: tuple[Finding, ...]
    """The flags as records: what each does to the theorem and to a prediction, and what would help."""
    flags: tuple[str, ...]
    reliable: bool
    spectra: Spectra
    mean: Array
    """The mean state, which was taken away (zero without centring)."""

    @property
    def teacher(self) -> Teacher | None:
        """The fitted power law; None unless all six numbers were measured and define a stable teacher."""
        numbers = {name: getattr(self, name).value for pair in LAWS.values() for name in pair}
        if any(value is None for value in numbers.values()) or not 0 < numbers["rho"] < 1:
            return None
        return Teacher(**{name: max(value, 0.0) for name, value in numbers.items()})

    @property
    def modes(self) -> Modes:
        """The measured spectra as Modes, so that every rung and every plan runs on them.

        Assumption: mode j has the j-th largest of each of the three spectra, as in the paper, where all fall
        together; the check `order` says how far the data agree. Values are corrected for finite samples, and
        continued by the fitted law (or left out of the dynamics) beyond the last eigenvalue to be trusted.
        """
        k = self.spectra.rank
        a = (
            np.zeros(k)
            if self.r.value is None
            else np.clip(self._continued("transition", k), -_LARGEST_TRANSITION, _LARGEST_TRANSITION)
        )
        return Modes(a=a, sigma_xi=self._continued("innovation", k), sigma_0=self._continued("initial", k))

    def _continued(self, name: str, k: int) -> Array:
        spectrum = self.spectra.named(name)
        values = np.zeros(k)
        given = min(k, spectrum.values.size)
        values[:given] = np.maximum(spectrum.values[:given], 0.0)
        exponent, last = getattr(self, LAWS[name][0]).value, min(spectrum.trusted, k)
        if exponent is not None and 0 < last < k:
            j = np.arange(last + 1, k + 1)
            values[last:] = values[last - 1] * (j / last) ** -max(exponent, 0.0)
        return values


def measure(X: Any, *, centre: bool = True, seed: int = 0) -> Measurement:
    """The exponents of sequences: an array N × P × D, a .npy, .npz or .zarr file, or an iterable of P_i × D.

    One pass, a few megabytes at a time; memory is a few D × D matrices for each of at most 32 groups of
    sequences, which the bootstrap resamples.
    """
    seed = whole("seed", seed, least=0)
    with threadpool_limits(limits=1, user_api="blas"):
        return measured(tally(batches(open_source(X)), centre=centre), seed=seed)


def measured(moments: Tally, *, seed: int = 0) -> Measurement:
    """The measurement of moments that are already summed."""
    found = spectra(moments)
    dynamics = has_dynamics(moments, found)
    length = max(1, round(moments.n / moments.N))
    fitted = fit(found, D=found.rank, P=length, seed=seed, dynamics=dynamics)
    numbers = _estimates(fitted)
    regime = _regime(fitted, dynamics)
    warnings = findings(moments, found, fitted, numbers, regime, dynamics)
    fails = tuple(dict.fromkeys(finding.fails for finding in warnings if finding.fails))
    regime = replace(regime, fails=fails, applies=regime.name in ("I", "II") and not fails)
    laws = {LAWS[name][0]: law for name, law in fitted.laws.items()}
    return Measurement(
        N=moments.N,
        P=(moments.shortest, moments.longest),
        D=moments.D,
        **numbers,
        regime=regime,
        window={name: law.window for name, law in laws.items()},
        r2={name: law.r2 for name, law in laws.items()},
        band={name: law.band for name, law in laws.items()},
        fitted={name: law.fitted for name, law in laws.items()},
        seen=fitted.seen,
        checks=checks(moments, found, fitted),
        findings=warnings,
        flags=tuple(finding.flag for finding in warnings),
        reliable=is_reliable(warnings),
        spectra=found,
        mean=moments.mean,
    )


def _estimates(fitted: Fit) -> dict[str, Any]:
    out: dict[str, Estimate] = {}
    for name, (exponent, scale) in LAWS.items():
        law = fitted.laws.get(name)
        if law is None:
            out[exponent] = out[scale] = Estimate(value=None, low=None, high=None)
        else:
            out[exponent] = _estimate(law.exponent, law.exponents)
            out[scale] = _estimate(law.scale, law.scales)
    return out


def _estimate(value: float, draws: Array) -> Estimate:
    if draws.size == 0:
        return Estimate(value=value, low=None, high=None)
    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2]).tolist()
    return Estimate(value=value, low=min(low, value), high=max(high, value))


def _regime(fitted: Fit, dynamics: bool) -> Regime:
    """The regime of most draws of (α, θ, r)."""
    if not dynamics or set(fitted.laws) != set(LAWS):
        return Regime(name="unknown", probability=None)
    alpha, theta, r = (fitted.laws[name] for name in ("innovation", "initial", "transition"))
    if alpha.exponents.size == 0:
        return Regime(name="unknown", probability=None)
    first = theta.exponents >= alpha.exponents
    outside = theta.exponents < alpha.exponents - 2 * np.maximum(r.exponents, 0.0)
    inside = float(first.mean()), float(outside.mean())
    shares = {"I": inside[0], "II": 1 - math.fsum(inside), "outside": inside[1]}
    name = max(shares, key=lambda key: shares[key])
    return Regime(name=name, probability=shares[name], probabilities=shares)
