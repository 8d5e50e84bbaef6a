"""Naive versions written from the paper: loops over positions and steps, dense matrices, high precision.

The finite-sample law is written from docs/finite-sample.md, with its numbers of equations.
"""

from __future__ import annotations

import dataclasses

import mpmath
import numpy as np

from seqlaw import PRESETS, WSD, BlockDecay, Constant, Cosine, Setting


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


class FiniteSample:
    """docs/finite-sample.md, (1)–(12), as they stand: every T_j in full, one node and one pair at a time.

    Given a sketch S, or over sketches of width M where S is None (there without the split). Nodes lie on a
    circle and the fixed point is found by plain iteration: neither the contours, the compression of modes,
    Newton's method nor the way from the frozen filter of the package enter.
    """

    def __init__(self, modes, M, N, P, S=None, *, test=None):
        self.N, self.P, self.M, self.S, self.a = N, P, M, S, modes.a
        full = np.stack([_path_covariance(modes, j, P) for j in range(modes.d)])
        self.here, self.ahead = full[:, :P, :P], full[:, 1:, :P]
        self.behind, self.both = full[:, :P, 1:], full[:, 1:, 1:]
        self.h = self.trace(np.eye(P), self.here)
        self.h_test = self.h if test is None else position_covariances(modes, test - 1).mean(axis=0)

    def trace(self, X, T):
        """Σ_pq X[p,q] T_j[p,q]/P for every mode."""
        return np.einsum("pq,jpq->j", X, T) / self.P

    def node(self, z):
        """(1)–(5) at one z."""
        w, kappa = np.zeros(self.a.size, complex), -z
        for _ in range(100_000):
            gamma = np.linalg.inv(np.eye(self.P) + np.tensordot(w, self.here, 1) / (self.N * self.P))
            tau = self.trace(gamma, self.here)
            if self.S is None:
                kappa = -z + kappa * np.sum(tau / (tau + kappa)) / self.M
                new, Q = 1 / (tau + kappa), np.empty(0)
            else:
                Q = np.linalg.inv((self.S * tau) @ self.S.T - z * np.eye(self.M))
                new = np.diag(self.S.T @ Q @ self.S)
            change, w = np.abs(new - w).max(), (w + new) / 2
            if change <= 1e-14 * np.abs(new).max():
                b = self.trace(gamma, self.ahead)
                return {"z": z, "gamma": gamma, "tau": tau, "D": new, "kappa": kappa, "Q": Q, "b": b}
        raise AssertionError(f"no fixed point at {z}")

    def loss(self, psi, edge, below, count):
        """(9) and, given a sketch, bias and cross, on a circle from -`below` to edge + `below`."""
        radius = edge / 2 + below
        turn = radius * np.exp(2j * np.pi * (np.arange(count) + 0.5) / count)
        weights = turn / count * psi(edge / 2 + turn)  # (1/2πi) ψ dz
        upper = [self.node(edge / 2 + one) for one in turn[: count // 2]]
        nodes = upper + [{name: np.conj(x) for name, x in one.items()} for one in reversed(upper)]
        pairs = self.sketched if self.S is not None else self.averaged
        quadratic, linear, squared, mixed = (0.0,) * 4
        for one, weight in zip(upper, 2 * weights[: count // 2], strict=True):  # with its conjugate
            linear += weight / one["z"] * self.line(one, self.a * self.h_test)
            for two, other in zip(nodes, weights, strict=True):
                Y, B, BC = pairs(one, two)
                quadratic += weight / one["z"] * other / two["z"] * Y
                squared, mixed = squared + weight * other * B, mixed + weight * other / two["z"] * BC
        size = np.sum(self.S**2, axis=0) if self.S is not None else 1.0
        loss = (quadratic - 2 * linear + np.sum(size * self.a**2 * self.h_test)) / 2
        if self.S is None:
            return {"loss": loss.real}
        # The parts of B_L - B*' are left = W + ∮ψ B*R, W = B* - B*', and noise = ∮(ψ/z)V - B* - ∮ψ B*R.
        S, best, G = self.S, self.best(self.h), (self.S * self.h_test) @ self.S.T
        W = best - self.best(self.h_test)
        filtered = sum((w * best @ n["Q"]).real for n, w in zip(upper, 2 * weights, strict=False))
        trained = sum(
            (w / n["z"] * (S * n["b"]) @ S.T @ n["Q"]).real for n, w in zip(upper, 2 * weights, strict=False)
        )
        square = np.real(squared)
        bias = (np.sum(W @ G * W) + square) / 2 + np.sum(filtered @ G * W)
        cross = (
            np.sum(W @ G * (trained - best - filtered)) + mixed.real - np.sum(filtered @ G * best) - square
        )
        return {"loss": loss.real, "bias": bias, "cross": cross}

    def ladder(self, one, two, K):
        """h' + ρ, and the three sums over Λ (6)."""
        turned = np.einsum("pq,jqr,rs->jps", one["gamma"], self.here, two["gamma"]) / (self.N * self.P)
        A = np.einsum("jpq,kqp->jk", self.here, turned) / self.P
        g = np.linalg.solve(np.eye(len(K)) - K @ A, K @ self.h_test)
        between = np.tensordot(g, turned, 1)
        sums = (self.trace(between, T) for T in (self.behind, self.ahead, self.both))
        return self.h_test + A @ g, *sums

    def averaged(self, one, two):
        """(7), (8) and (10) over sketches."""
        DD, kk = one["D"] * two["D"], one["kappa"] * two["kappa"]
        c = kk / self.M * DD / (1 - np.sum(one["tau"] * two["tau"] * DD) / self.M)  # c₁₂[x] = c·x
        x, behind, ahead, both = self.ladder(one, two, DD[:, None] * (np.eye(DD.size) + c))
        e1, e2 = (np.sum(n["b"] * n["D"]) / self.M for n in (one, two))
        u1, u2 = ((n["b"] + e * n["kappa"]) * n["D"] for n, e in ((one, e1), (two, e2)))
        v1, v2 = ((n["b"] - e * n["tau"]) * n["D"] for n, e in ((one, e1), (two, e2)))
        Y = np.sum(x * u1 * u2) + c @ x * np.sum(v1 * v2)
        return Y - self.line(one, behind) - self.line(two, ahead) + np.sum(both), 0.0, 0.0

    def sketched(self, one, two):
        """(8), (10), (11) and (12) given a sketch: Y, quadB and quadBC - linB."""
        S, best = self.S, self.best(self.h)
        x, behind, ahead, both = self.ladder(one, two, (S.T @ one["Q"] @ S) * (S.T @ two["Q"] @ S))
        Z1, Z2 = ((S * n["b"]) @ S.T @ n["Q"] @ S for n in (one, two))
        B1, B2 = (best @ n["Q"] @ S for n in (one, two))
        Y = np.sum(x * Z1 * Z2) - self.line(one, behind) - self.line(two, ahead) + np.sum(both * S**2)
        return Y, np.sum(x * B1 * B2), np.sum(x * B1 * Z2) - np.sum(behind * S * B1)

    def line(self, node, x):
        """lin(x) (10)."""
        if self.S is not None:
            return np.sum(x * self.S * ((self.S * node["b"]) @ self.S.T @ node["Q"] @ self.S))
        e = np.sum(node["b"] * node["D"]) / self.M
        return np.sum((node["b"] + node["kappa"] * e) * x * node["D"])

    def best(self, h):
        """B* = C G^-1."""
        return (self.S * self.a * h) @ self.S.T @ np.linalg.inv((self.S * h) @ self.S.T)


def _path_covariance(modes, j, P):
    """Cov(x_p, x_q) of one mode, p, q ≤ P, by unrolling x_p = a^p x_0 + Σ_{i≤p} a^(p-i) ξ_i."""
    a, size = modes.a[j], [modes.sigma_0[j], *[modes.sigma_xi[j]] * P]
    unrolled = np.array([[a ** (p - i) if i <= p else 0.0 for i in range(P + 1)] for p in range(P + 1)])
    return (unrolled * size) @ unrolled.T


def random_settings(seed, count):
    """Settings on which the law at any amount of data was compared with sampled data sets."""
    draw, found = np.random.default_rng(seed), []
    for _ in range(count):
        base = PRESETS[("regime1", "regime2", "regime2")[draw.integers(3)]]
        c_0 = base.c_0 if draw.random() < 2 / 3 else 3.0
        rho = base.rho if draw.random() < 0.5 else float(draw.uniform(0.1, 0.9))
        M, P = int(draw.choice([16, 48, 96])), int(draw.choice([1, 2, 4, 8, 16, 32, 64]))
        ratio = float(np.exp(draw.uniform(np.log(0.5), np.log(128))))
        L = int(np.exp(draw.uniform(np.log(300), np.log(1e8))))
        schedule = (BlockDecay, WSD, Cosine, Constant)[draw.integers(4)](gamma=0.1, L=L)
        teacher = dataclasses.replace(base, c_0=c_0, rho=rho)
        N = max(1, round(ratio * M / P))
        found.append(Setting(teacher=teacher, M=M, N=N, P=P, d=4 * M, schedule=schedule))
    return found
