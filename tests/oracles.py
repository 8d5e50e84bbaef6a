"""Naive versions written from the paper: loops over positions and steps, dense matrices, high precision."""

from __future__ import annotations

import mpmath
import numpy as np


def position_covariances(modes, P):
    """Σ_0 … Σ_P by the recursion σ_{p+1} = a² σ_p + σ_ξ."""
    sigma = modes.sigma_0.copy()
    out = [sigma]
    for _ in range(P):
        sigma = modes.a**2 * sigma + modes.sigma_xi
        out.append(sigma)
    return np.array(out)


def averaged_exact(a, sigma_xi, sigma_0, P):
    """h_P of one mode in 60 digits, as (initialization part, innovation part)."""
    with mpmath.workdps(60):
        a, sigma_xi, sigma_0, P = (mpmath.mpf(x) for x in (a, sigma_xi, sigma_0, P))
        m = (1 - a ** (2 * P)) / (P * (1 - a**2))
        return sigma_0 * m, sigma_xi / (1 - a**2) * (1 - m)


def dense_moments(A, Sigma_0, Sigma_xi, S, P):
    """G and C by summing positions of a teacher given as full matrices."""
    Sigma, G, C = Sigma_0.copy(), 0.0, 0.0
    for _ in range(P):
        G = G + S @ Sigma @ S.T / P
        C = C + S @ A @ Sigma @ S.T / P
        Sigma = A @ Sigma @ A.T + Sigma_xi
    return G, C


def filters(steps, s):
    """ψ(s) and g(s) by the defining product and sum, in extended precision."""
    kind = np.clongdouble if np.iscomplexobj(s) else np.longdouble
    s = np.asarray(s, dtype=kind)
    psi, g = np.ones_like(s), np.zeros_like(s)
    for step in np.asarray(steps, dtype=np.longdouble)[::-1]:  # q > t first: psi is Π_{q>t}
        g = g + step * psi
        psi = psi * (1 - step * s)
    return psi, g


def wsd_log_residual(gamma, L, L_w, L_s, s):
    """log ψ of WSD in 50 digits: log-gamma for the warm-up, a geometric series for the decay.

    Π_{t≤T} (1 - x t/T) = (x/T)^T Γ(T/x)/Γ(T/x - T); Σ_k log(1 - x q^k) = -Σ_n (x^n/n) q^n (1-q^{nK})/(1-q^n).
    """
    with mpmath.workdps(50):
        x = mpmath.mpmathify(s) * mpmath.mpf(gamma)
        T, K = mpmath.mpf(L_w), mpmath.mpf(L - L_s)
        with mpmath.workdps(50 + 2 * int(mpmath.log10(L)) + int(max(0, -mpmath.log10(abs(x)))) * 2):
            z = T / x
            warm = T * mpmath.log(x / T) + mpmath.loggamma(z) - mpmath.loggamma(z - T)
            # loggamma and log may sit on different sheets: take the one nearest to the integral.
            integral = -T * ((1 - x) * mpmath.log1p(-x) + x) / x + mpmath.log1p(-x) / 2
            warm = mpmath.mpc(warm.real, _near(warm.imag, integral.imag))
        stable = (L_s - L_w) * mpmath.log1p(-x)
        q = mpmath.exp(-mpmath.log(L) / K)
        decay = -mpmath.nsum(
            lambda n: x**n / n * q**n * (1 - q ** (n * K)) / (1 - q**n), [1, mpmath.inf], method="d"
        )
        return complex(warm + stable + decay)


def _near(value, target):
    turns = mpmath.nint((target - value) / (2 * mpmath.pi))
    return value + 2 * mpmath.pi * turns
