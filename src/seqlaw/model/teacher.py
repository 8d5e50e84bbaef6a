"""The teacher: a stable latent linear RNN, and the covariance that its trajectories average to.

Paper, section 2 and "Primitive latent model". A trajectory is x_{p+1} = A x_p + ξ_{p+1} with
x_0 ~ N(0, Σ_0), ξ ~ N(0, Σ_ξ); in the common eigenbasis everything is three arrays of d numbers:
the transition a, the innovation variances σ_ξ and the initial variances σ_0.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from seqlaw.model.checks import Array, InputError, positive, real, vector, whole

LONGEST = 10**18  # the longest trajectory for which the averages below are claimed
_SERIES_TERMS = 18  # of the series in ε = 1 - a² below Pε = ½: the first dropped term is under 1e-20


@dataclass(frozen=True, kw_only=True)
class Teacher:
    """Six numbers: a_j = ρ j^-r, σ_ξ,j = c_ξ j^-α, σ_0,j = c_0 j^-θ (Assumptions 1 and 2).

    Values outside the theorem's assumptions (α ≤ 1, r ≥ ½, …) are accepted and flagged by
    `seqlaw.model.assumptions`; values that define no stable teacher are refused here.

    >>> import seqlaw
    >>> seqlaw.Teacher(alpha=1.8, theta=1.25, r=0.35, rho=0.55, c_xi=0.03, c_0=0.3).regime
    'II'
    """

    alpha: float
    theta: float
    r: float
    rho: float
    c_xi: float
    c_0: float

    # Read by pydantic at the edges: an unknown key in a teacher file is an error, not a surprise.
    __pydantic_config__: ClassVar[dict[str, str]] = {"extra": "forbid"}

    def __post_init__(self) -> None:
        for name in ("alpha", "theta", "r", "rho"):
            object.__setattr__(self, name, real(f"Teacher.{name}", getattr(self, name)))
        for name in ("c_xi", "c_0"):
            object.__setattr__(self, name, positive(f"Teacher.{name}", getattr(self, name)))
        for name in ("alpha", "theta", "r"):
            if getattr(self, name) < 0:
                raise InputError(f"Teacher.{name}", "must not be negative", getattr(self, name))
            if getattr(self, name) > 20:
                raise InputError(f"Teacher.{name}", "must be at most 20", getattr(self, name))
        if not 0 < self.rho < 1:
            raise InputError("Teacher.rho", "must lie in (0, 1)", self.rho)

    @property
    def regime(self) -> str:
        """ "I" for θ ≥ α, "II" for α - 2r ≤ θ < α, "outside" below (no theorem there)."""
        if self.theta >= self.alpha:
            return "I"
        # α - 2r is rarely exact in binary: 1.8 - 2·0.35 must count as 1.1.
        return "II" if self.theta >= self.alpha - 2 * self.r - 1e-12 else "outside"

    @property
    def beta_alpha(self) -> float:
        """β_α = α + 2r."""
        return self.alpha + 2 * self.r

    @property
    def beta_theta(self) -> float:
        """β_θ = θ + 2r."""
        return self.theta + 2 * self.r

    @property
    def C_rho(self) -> float:
        """The stability constant C_ρ = (1 + ρ)/(1 - ρ)."""
        return (1 + self.rho) / (1 - self.rho)

    def at(self, j: ArrayLike) -> Modes:
        """The modes at the given indices, which may be real (quadrature nodes of a sum over j)."""
        j = np.asarray(j, dtype=np.float64)
        return Modes(
            a=self.rho * j**-self.r,
            sigma_xi=self.c_xi * j**-self.alpha,
            sigma_0=self.c_0 * j**-self.theta,
        )

    def modes(self, d: int) -> Modes:
        """The first d modes, as arrays: d up to 10^8."""
        return self.at(np.arange(1, whole("d", d, most=10**8) + 1, dtype=np.float64))


NUMBERS = tuple(f.name for f in fields(Teacher))
MODES = 1024
"""d of a power law that nobody chose: enough for the default width, and within reach of every method."""
PRESETS: dict[str, Teacher] = {
    "regime1": Teacher(alpha=1.5, theta=2.5, r=0.2, rho=0.55, c_xi=0.05, c_0=0.01),
    "regime2": Teacher(alpha=1.8, theta=1.25, r=0.35, rho=0.55, c_xi=0.03, c_0=0.30),
}
"""The two configurations of the paper's experiments."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Modes:
    """The teacher as three arrays, a power law or anything that was measured.

    |a_j| < 1 (stability), σ_ξ,j ≥ 0, σ_0,j ≥ 0. The paper takes 0 < a_j and 0 < σ_ξ,j; zeros and
    negative transitions are computed too, and flagged.

    >>> import seqlaw
    >>> seqlaw.Modes(a=[0.5, 0.4], sigma_xi=[1, 0.5], sigma_0=[1, 1]).d
    2
    """

    a: Array
    sigma_xi: Array
    sigma_0: Array
    name: str = ""
    """Where they come from, for people."""

    def __post_init__(self) -> None:
        for name in ("a", "sigma_xi", "sigma_0"):
            object.__setattr__(self, name, vector(f"Modes.{name}", getattr(self, name)))
        for name in ("sigma_xi", "sigma_0"):
            if getattr(self, name).shape != self.a.shape:
                raise InputError(
                    f"Modes.{name}", f"must have shape {self.a.shape} like Modes.a", getattr(self, name).shape
                )
        if np.any(np.abs(self.a) >= 1):
            worst = float(self.a[np.argmax(np.abs(self.a))])
            raise InputError("Modes.a", "must lie in (-1, 1): an unstable mode has no finite average", worst)
        for name in ("sigma_xi", "sigma_0"):
            if np.any(getattr(self, name) < 0):
                raise InputError(f"Modes.{name}", "must not be negative", float(getattr(self, name).min()))

    @property
    def d(self) -> int:
        """The number of latent dimensions."""
        return self.a.size

    @property
    def gap(self) -> Array:
        """1 - a², as a product so that no digit is lost near |a| = 1."""
        return (1 - self.a) * (1 + self.a)

    @property
    def stationary(self) -> Array:
        """s = σ_ξ/(1 - a²), the variance that every position tends to."""
        return self.sigma_xi / self.gap

    def covariance(self, p: ArrayLike) -> Array:
        """Σ_p = σ_0 a^{2p} + σ_ξ (1 - a^{2p})/(1 - a²): shape (*p.shape, d), position p = 0, 1, …

        Both terms are positive, so nothing cancels as a → 1.
        """
        p = np.asarray(p, dtype=np.float64)[..., None]
        rate = _twice_log(self.a)
        with np.errstate(invalid="ignore"):
            exponent = np.where(p == 0, 0.0, p * rate)
        return self.sigma_0 * np.exp(exponent) - self.stationary * np.expm1(exponent)

    def averaged(self, P: ArrayLike) -> Array:
        """h_P = (1/P) Σ_{p<P} Σ_p, the averaged design covariance: shape (*P.shape, d)."""
        initial, innovation = self.averaged_parts(P)
        return initial + innovation

    def averaged_parts(self, P: ArrayLike) -> tuple[Array, Array]:
        """The initialization part σ_0 m and the innovation part s (1 - m) of h_P.

        m = (1 - a^{2P})/(P (1 - a²)). With ε = 1 - a² and Pε < ½ the factor 1 - m cancels; there
        s (1 - m) = σ_ξ Σ_k (-ε)^k binom(P, k+2)/P = σ_ξ [(P-1)/2 - (P-1)(P-2) ε/6 + …].
        """
        P = _lengths(P)[..., None]
        gap = self.gap
        share = -np.expm1(P * _twice_log(self.a)) / (P * gap)
        term = (P - 1) / 2 * np.ones_like(gap)
        series = np.zeros_like(term)
        small = np.where(P * gap < 0.5, gap, 0.0)
        for k in range(_SERIES_TERMS):
            series = series + term
            term = -term * small * (P - k - 2) / (k + 3)
        innovation = np.where(P * gap < 0.5, self.sigma_xi * series, self.stationary * (1 - share))
        return self.sigma_0 * share, np.where(P == 1, 0.0, innovation)


def as_teacher(field: str, value: object) -> Teacher | Modes:
    """A teacher as it is, or the preset of that name (files: `seqlaw.files.load_teacher`); else an error."""
    if isinstance(value, (Teacher, Modes)):
        return value
    if isinstance(value, str) and value in PRESETS:
        return PRESETS[value]
    raise InputError(field, f"must be one of {', '.join(PRESETS)}, a Teacher or Modes", value)


def as_power_law(field: str, value: object) -> Teacher:
    """`as_teacher` where exponents are needed, which arrays do not have."""
    teacher = as_teacher(field, value)
    if isinstance(teacher, Modes):
        raise InputError(field, "must be a power law: the theorem has no rates for arrays", "arrays")
    return teacher


def _twice_log(a: Array) -> Array:
    """ln a², with -inf at a = 0."""
    with np.errstate(divide="ignore"):
        return 2 * np.log(np.abs(a))


def _lengths(P: ArrayLike) -> Array:
    """Trajectory lengths as floats, each a whole number from 1 to 10^18."""
    try:
        lengths = np.asarray(P)
    except (TypeError, ValueError):
        raise InputError("P", "must be lengths", P) from None
    for value in lengths.ravel().tolist():
        whole("P", value, most=LONGEST)
    return lengths.astype(np.float64)
