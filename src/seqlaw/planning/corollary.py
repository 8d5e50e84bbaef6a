"""The paper's compute-optimal allocation (Corollary 1), verbatim, as powers of K = γC at T = K^τ."""

from __future__ import annotations

from dataclasses import dataclass

from seqlaw.model.checks import InputError
from seqlaw.model.teacher import Teacher, as_power_law

SIZES = ("M", "N", "P", "R")


@dataclass(frozen=True, kw_only=True)
class Exponents:
    """log_K of each size and of the risk."""

    M: float
    N: float
    P: float
    R: float
    risk: float


@dataclass(frozen=True, kw_only=True)
class Corollary:
    """The printed allocation; in Regime I the split of the tokens is free and P is given as 1."""

    regime: str
    phase: str
    """"token-limited" or "token-rich"."""
    tau_crit: float
    exponents: Exponents


def corollary(teacher: Teacher | str, tau: float) -> Corollary:
    """The corollary's exponents at T = K^τ, with its own choice of phase; a preset's name is a teacher."""
    teacher = as_power_law("teacher", teacher)
    regime, alpha, theta = teacher.regime, teacher.alpha, teacher.theta
    if regime == "outside":
        raise InputError("theta", "must be at least alpha - 2r for the corollary", theta)
    if regime == "I":
        bottom = 2 * alpha + 3
        critical = (alpha + 1) / bottom
        limited = tau < critical
        M = 1 - 2 * tau if limited else 1 / bottom
        R = 3 * tau - 1 if limited else alpha / bottom
        N, P = (tau if limited else critical), 0.0
    else:
        bottom = 3 * alpha - theta + 3
        critical = (2 * alpha - theta + 1) / bottom
        limited = tau < critical
        if limited:
            M = (2 - 3 * tau) / (theta + 3)
            R = (theta - 1 + (3 - theta) * tau) / (theta + 3)
            P = ((2 * theta + 3) * tau - theta - 1) / (theta + 3)
            N = (theta + 1 - theta * tau) / (theta + 3)
        else:
            M, R, P, N = 1 / bottom, alpha / bottom, (alpha - theta) / bottom, (alpha + 1) / bottom
    return Corollary(
        regime=regime,
        phase="token-limited" if limited else "token-rich",
        tau_crit=critical,
        exponents=Exponents(M=M, N=N, P=P, R=R, risk=risk_exponent(teacher, M, N, P, R)),
    )


def risk_exponent(teacher: Teacher, M: float, N: float, P: float, R: float) -> float:
    """The largest of the theorem's three terms at sizes K^M, K^N, K^P, K^R."""
    return max(sum(c * x for c, x in zip(row, (M, N, P, R), strict=True)) for _, row in risk_terms(teacher))


def risk_terms(teacher: Teacher) -> list[tuple[str, tuple[float, float, float, float]]]:
    """Each term of the risk as a linear function of (log M, log N, log P, log R).

    Approx: M^{1-β_α}, and P^-1 M^{1-β_θ}; Bias: κ^{1-2r}/R; Variance: κ/(NP); κ = max(R^{1/α}, (R/P)^{1/θ}),
    the second of each only where θ < α. Unsaturated R makes min{M, κ} = κ.
    """
    alpha, theta, rest = teacher.alpha, teacher.theta, 1 - 2 * teacher.r
    if min(alpha, theta) <= 1 or rest <= 0:
        raise InputError(
            "alpha", "and theta must be above 1, and 2r below 1, for rates", (alpha, theta, teacher.r)
        )
    terms = [
        ("approx", (1 - teacher.beta_alpha, 0.0, 0.0, 0.0)),
        ("bias", (0.0, 0.0, 0.0, rest / alpha - 1)),
        ("variance", (0.0, -1.0, -1.0, 1 / alpha)),
    ]
    if theta < alpha:
        terms += [
            ("approx", (1 - teacher.beta_theta, 0.0, -1.0, 0.0)),
            ("bias", (0.0, 0.0, -rest / theta, rest / theta - 1)),
            ("variance", (0.0, -1.0, -1.0 - 1 / theta, 1 / theta)),
        ]
    return terms
