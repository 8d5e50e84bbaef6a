"""Filters that are no schedules on the functional of the resolvent: closed forms, the real axis, sketches."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

from seqlaw import PRESETS, Constant
from seqlaw.methods import accuracy
from seqlaw.methods.contours import contour, loop
from seqlaw.methods.expected import noise, population, score_diagonal
from seqlaw.methods.functional import solve, terms
from seqlaw.methods.resolvent import real_kappa, spectral_edge
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model import gaussian_sketch, sketched_problem
from seqlaw.model.filters import Filter
from seqlaw.model.preconditioned import preconditioned

M, D_MODES, P, TESTED = 48, 160, 8, 100


@dataclass(frozen=True)
class Ridge(Filter):
    """φ(s) = 1/(s + λ): a pole on the negative axis."""

    gamma: float
    penalty: float

    @property
    def total(self):
        return 1 / self.penalty

    def response(self, s):
        return 1 / (np.asarray(s) + self.penalty)


def spectrum():
    rule = Rule(modes=PRESETS["regime2"].modes(D_MODES), weights=np.ones(D_MODES))
    own = population(rule, [P], np.array([float(M)]))
    return rule, own, float(spectral_edge(own.h, own.weights, own.M)[0][0])


def found(rule, own, one, edge, *, tested=None):
    """The terms of a filter on a loop."""
    path = loop([one], np.array([edge]), 1e-4 * own.lower_edge, accuracy.fine.ray)
    scored = score_diagonal(own, rule, [P], noise(rule))
    solved = solve(own, path, None if tested is None else [tested], (rule, rule), scored)
    return {name: x[0, 0] for name, x in terms(solved, path.residuals([one])).items()}, solved


def test_ridge_against_its_closed_form():
    """λ²/μ(μ+λ)² and μ/(μ+λ)² are the resolvent at 0 and -λ and its derivative, where κ is real: no path.

    The loop's step of 0.25 leaves 3e-9 of each integral; the derivative is by differences, to 1e-8.
    """
    rule, own, edge = spectrum()
    a, h, test = own.a, own.h[0], rule.modes.averaged(TESTED)
    penalties = edge * np.array([1e-3, 1e-2, 0.3])
    filters = [Ridge(gamma=1 / edge, penalty=float(x)) for x in penalties]
    score = score_diagonal(own, rule, [P], noise(rule)).score[0]

    def at(z):
        """F and Σ (t/P) D at z < 0."""
        kappa = real_kappa(own.h, own.weights, own.M, np.array([z]))
        return np.array([own.source(kappa)[0], np.sum(score / (h + kappa))])

    energy = own.source(own.kappa)[0]
    for x, one in zip(penalties, filters, strict=True):
        near, _ = found(rule, own, one, edge)
        far, moved = found(rule, own, one, edge, tested=TESTED)
        values, step = at(-x), 1e-4 * x
        slopes = (8 * (at(-x + step) - at(-x - step)) - at(-x + 2 * step) + at(-x - 2 * step)) / (12 * step)
        assert near["bias"] == pytest.approx((energy - values[0] - x * slopes[0]) / 2, rel=1e-7)
        assert near["variance"] == pytest.approx((values[1] - x * slopes[1]) / 2, rel=1e-7)
        # At another length the student is C (G + λ)^-1: one pair of equal nodes.
        kappa = float(real_kappa(own.h, own.weights, own.M, np.array([-x]))[0])
        D, b = 1 / (h + kappa), a * h
        e = np.sum(b * D) / M
        u, v = (b + e * kappa) * D, (b - e * h) * D
        c = kappa**2 / M * np.sum(test * D**2) / (1 - np.sum((h * D) ** 2) / M)
        line = np.sum(a * test * b * D) + kappa * e * np.sum(a * test * D)
        loss = (np.sum(test * u**2) + c * np.sum(v**2) - 2 * line + np.sum(a**2 * test)) / 2
        assert far["bias"] == pytest.approx(loss - moved.approx[0], rel=1e-6)
        assert far["variance"] == pytest.approx(np.sum(score * D**2 * (test + c)) / 2, rel=1e-6)


def axis_kappa(h, weights, M, x):
    """κ(x + i0): Newton on κ(1 - (1/M) Σ h/(h+κ)) = -z down a ladder of imaginary parts, Im κ < 0."""
    kappa = -x * (1 + 4j) + h @ weights / M
    for k in range(27):
        z = x * (1 + 4j * 4.0**-k)
        for _ in range(60):
            share = h / (h + kappa[:, None])
            value = kappa * (1 - share @ weights / M) + z
            kappa = kappa - value / (1 - share**2 @ weights / M)
            kappa = np.where(kappa.imag > 0, kappa.conj(), kappa)
            if np.max(np.abs(value / z)) < 1e-12:
                break
    return kappa


@pytest.mark.parametrize("q", [0.5, 0.75])
def test_fractional_powers_against_the_real_axis_and_sketches(q):
    """A cut on the negative axis. The density of F and of Σ hD on the real axis, by brute force: 1e-3.

    Sketches: the mean of 60 within 3/M or 4 standard errors, at the own and at another test length.
    """
    rule, own, edge = spectrum()
    one = preconditioned(Constant(gamma=0.5 / edge**q, L=60), 1 - q, 0.0)
    near, _ = found(rule, own, one, edge)
    far, moved = found(rule, own, one, edge, tested=TESTED)
    x = np.geomspace(1e-3 * own.kappa[0], 1.05 * edge, 8000)
    kappa = axis_kappa(own.h[0], own.weights, float(M), x)
    D, b = 1 / (own.h[0] + kappa[:, None]), own.a * own.h[0]
    F, dimension = (b**2 * D).sum(axis=1) + kappa / M * (b * D).sum(axis=1) ** 2, (own.h[0] * D).sum(axis=1)
    psi = one.residual(x)
    fold = np.log(x[1] / x[0]) / np.pi
    bias = np.sum(psi**2 * F.imag) * fold / 2
    assert near["bias"] == pytest.approx(bias, rel=1e-3)
    learned = np.sum((1 - psi) ** 2 * dimension.imag) * fold
    assert near["effective_dimension"] == pytest.approx(learned, rel=1e-3)
    seen = []
    for sketch in range(60):
        S = gaussian_sketch(M, D_MODES, index=sketch)
        problem, test = (sketched_problem(rule.modes, S, length) for length in (P, TESTED))
        mu, U = problem.eigenvalues, problem.eigenvectors
        psi = one.residual(mu)
        off = problem.B_star @ (U * (1 - psi)) @ U.T - test.B_star
        before = problem.B_star @ U * psi
        seen.append([np.sum(before**2 * mu), np.trace(off @ test.G @ off.T), 2 * np.sum((1 - psi) ** 2)])
    mean, error = np.mean(seen, axis=0) / 2, np.std(seen, axis=0) / 2 / math.sqrt(60)
    told = [near["bias"], far["bias"], near["effective_dimension"]]
    assert np.all(np.abs(mean - told) <= np.maximum(3 / M * np.array(told), 4 * error))
    assert moved.approx[0] > 0


@pytest.mark.parametrize(("gamma", "L"), [(1e-6, 100), (1e-3, 150), (0.01, 145), (0.1, 190)])
@pytest.mark.parametrize("power", [1, 2])
def test_a_wide_ellipse_has_enough_nodes(gamma, L, power):
    """Short training, down to Σγ‖G‖ = 1e-4: a sum over eigenvalues to 1e-13 of F(0)."""
    schedule, j = Constant(gamma=gamma, L=L), np.arange(1, 300.0)
    mu, c = 0.95 * j**-1.6, j**-2.3
    path = contour([schedule], np.ones(1))
    F = (c / (mu - np.append(0, path.z[0])[:, None])).sum(axis=1)
    got = path.weights(path.residuals([schedule]) ** power, vanishes=False).of(F[None])[0, 0]
    assert abs(got - (c / mu * schedule.residual(mu) ** power).sum()) <= 1e-13 * F[0].real
