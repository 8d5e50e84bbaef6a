"""The filter frozen at G, over sketches: approximation, bias and variance to leading order in the data.

With κ = κ(z), D = 1/(h + κ) and sums over the modes (docs/equivalent.md derives each line):
    F(z) = tr C(G-z)^-1 C ≈ Σ a²h²D + (κ/M)(Σ ahD)²
    Approx = (κ_0/2) [Σ a²w - (Σ aw)²/M],  w = h/(h + κ_0),  κ_0 = κ(0)
    Bias   = ½ [F(0) - (1/2πi)∮ (ψ²/z) F dz]
    Var    = (2NP²)^-1 Σ_l t_l W_ll,  W = Sᵀ g(G) G' g(G) S,  t_l the diagonal of the score (MATH §4).
Batched over settings of one teacher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.methods import rays
from seqlaw.methods.expected import Population, pick, population, score_diagonal
from seqlaw.methods.finite_sample.norm import Rise, rises
from seqlaw.methods.resolvent import Contours, contours, is_long, spectral_edge
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model.checks import Array
from seqlaw.model.lengths import Length, averaged
from seqlaw.model.momentum import Momentum
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import Setting

FLOOR, RAY_FLOOR = 1e-12, 1e-10
"""A bias below this share of F(0) is not resolved and is reported as 0; on a contour, on a ray."""
MOVED_FLOOR = 1e-7
"""With momentum at another test length, which takes ψ where the own length takes ψ²: 3e-8 at L(1-β) = 100."""
_MANY = 8
"""Schedules of one spectrum from which a ray, five times the nodes of a contour, is cheaper."""
_CHUNK = 2**18  # points × nodes at a time
_Safe = Callable[[Setting, float], Schedule]


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """One setting's answer: the schedule after its safeguard, terms, diagnostics, the floor of the bias."""

    schedule: Schedule
    row: dict[str, float]
    clipped: float
    """The share of the data sets that the safeguard acts on, so far as it is known."""
    floor: float = FLOOR


def frozen_rows(
    settings: Sequence[Setting], fine: Rule, coarse: Rule, *, endless: bool = False, as_given: bool = False
) -> list[Frozen]:
    """The answers of settings of one teacher and d; double sums and shared spectra on the coarse rule.

    The safeguard is what N sequences need on average, or what an `endless` number does; or the schedules
    are taken `as_given`.
    """
    answers: dict[int, Frozen] = {}
    rise = {} if endless or as_given else rises(coarse, [setting.P for setting in settings])

    def safe(setting: Setting, norm: float) -> Schedule:
        if as_given:
            return setting.schedule
        seen = rise.get(setting.P, Rise(0.0, 0.0)).norm(norm, setting.tokens)
        return setting.schedule.safeguarded(seen)

    rest = _along_rays(settings, coarse, answers, safe)
    step = max(1, _CHUNK // fine.weights.size)
    for start in range(0, len(rest), step):
        chunk = rest[start : start + step]
        found = _evaluate([settings[k] for k in chunk], fine, coarse, safe)
        answers |= dict(zip(chunk, found, strict=True))
    return [answers[k] for k in range(len(settings))]


def _evaluate(settings: Sequence[Setting], fine: Rule, coarse: Rule, safe: _Safe) -> list[Frozen]:
    M = np.array([float(setting.M) for setting in settings])
    own = population(fine, [setting.P for setting in settings], M)
    edge, norm = spectral_edge(own.h, own.weights, M)
    schedules = [safe(setting, n) for setting, n in zip(settings, norm.tolist(), strict=True)]
    answers: dict[int, Frozen] = {}
    # Long and short schedules take contours of different kinds, hence of different numbers of nodes.
    for long in (True, False):
        part = [k for k, schedule in enumerate(schedules) if is_long(schedule) == long]
        if part:
            columns = _columns(
                [settings[k] for k in part],
                [schedules[k] for k in part],
                pick(own, part),
                edge[part],
                coarse,
                fine,
            ) | {"norm": norm[part]}
            for place, k in enumerate(part):
                row = {name: float(column[place]) for name, column in columns.items()}
                moved = isinstance(schedules[k], Momentum) and settings[k].test_length != settings[k].P
                clipped = float(schedules[k] is not settings[k].schedule)
                floor = MOVED_FLOOR if moved else FLOOR
                answers[k] = Frozen(schedule=schedules[k], row=row, clipped=clipped, floor=floor)
    return [answers[k] for k in range(len(settings))]


def _along_rays(
    settings: Sequence[Setting], rule: Rule, answers: dict[int, Frozen], safe: _Safe
) -> list[int]:
    """Answer what shares a spectrum with many others by one solve (`rays`); the rest is returned."""
    shared: dict[Any, list[int]] = {}
    rest = []
    for k, one in enumerate(settings):
        if isinstance(one.schedule, Momentum):  # whose ψ grows again along a ray
            rest.append(k)
            continue
        shared.setdefault((one.M, one.P, one.eval_length), []).append(k)
    for (M, P, eval_length), group in shared.items():
        if len({settings[k].schedule for k in group}) < _MANY:
            rest += group
            continue
        own = population(rule, [P], np.array([float(M)]))
        edge, norm = spectral_edge(own.h, own.weights, own.M)
        schedules = {k: safe(settings[k], float(norm[0])) for k in group}
        peak = max(schedule.gamma for schedule in schedules.values())
        if own.kappa[0] == 0:  # as wide as the teacher: f(z) is no power series at 0
            rest += group
            continue
        tested = None if eval_length in (None, P) else eval_length
        scored = score_diagonal(own, rule, [P], rays.noise(rule))
        for long in (True, False):
            part = [k for k in group if rays.reaches(schedules[k], peak) == long]
            if not part:
                continue
            total = max(schedules[k].total for k in part) / peak
            deepest = 1e-4 * float(rays.depth(own)[0]) * peak
            path = rays.ray(deepest, total) if long else rays.ellipse(float(edge[0]) * peak, total)
            spectra = rays.solve(own, np.array([peak]), path, [P], tested, rule, scored)
            found = rays.terms(spectra, path.residuals([schedules[k] for k in part], peak))
            columns = {name: values[0].tolist() for name, values in found.items()}
            noise = spectra.noise + 2 * float(own.approx[0])
            still = {
                "irreducible": spectra.noise / 2,
                "approx": float(spectra.approx[0]),
                "source_energy": float(own.source(own.kappa)[0]),
                "kappa": float(own.kappa[0]),
                "effective_share": float(spectra.share[0]),
                "edge": float(edge[0]),
                "norm": float(norm[0]),
            }
            for place, k in enumerate(part):
                row = still | {name: values[place] for name, values in columns.items()}
                tokens = settings[k].tokens
                row["variance"] /= tokens
                row["finite_filter_variance"] = noise / (2 * tokens) * row["tested_dimension"]
                clipped = float(schedules[k] is not settings[k].schedule)
                answers[k] = Frozen(schedule=schedules[k], row=row, clipped=clipped, floor=RAY_FLOOR)
    return rest


def _columns(
    settings: Sequence[Setting],
    schedules: Sequence[Schedule],
    own: Population,
    edge: Array,
    coarse: Rule,
    fine: Rule,
) -> dict[str, Array]:
    """The terms and diagnostics of a batch."""
    one, two = (contours(own.h, own.weights, own.M, schedules, edge, factors=f) for f in (1, 2))
    moved = np.array([setting.test_length != setting.P for setting in settings])
    approx = own.approx
    energy = own.source(own.kappa)
    bias = energy / 2 - _integrate(two, two.residual**2 / two.z, own.source) / 2
    test = own
    if np.any(moved):
        test = population(fine, [setting.test_length for setting in settings], own.M)
        approx = test.approx
        for k in np.flatnonzero(moved).tolist():
            bias[k] = _moved_loss(own, test.h[k], one, k) - approx[k]

    def traces(h: Array) -> tuple[Array, Array]:  # tr φ(G) S diag(h) Sᵀ with φ = (1-ψ)/μ, and with (1-ψ)²/μ
        def trace(kappa: NDArray[Any]) -> NDArray[Any]:
            return np.asarray((h / (own.h + kappa[:, None])) @ own.weights)

        once = _integrate(one, one.residual / one.z, trace)
        return once, 2 * once - _integrate(two, two.residual**2 / two.z, trace)

    learned, effective = traces(own.h)
    tested = traces(test.h)[1] if np.any(moved) else effective
    noise = float(fine.modes.sigma_xi @ own.weights)
    count = np.array([2.0 * setting.tokens for setting in settings])
    finite = (noise + 2 * own.approx) / count * tested
    variance, share = _lagged_variance(settings, own, one, two, coarse, noise, moved)
    return {
        "irreducible": np.full(len(settings), noise / 2),
        "approx": approx,
        "bias": bias,
        "variance": variance / count,
        "finite_filter_variance": finite,
        "effective_dimension": effective,
        "learned_dimensions": learned,
        "source_energy": energy,
        "kappa": own.kappa,
        "effective_share": share,
        "edge": edge,
    }


def _integrate(path: Contours, factor: NDArray[Any], function: Any) -> Array:
    """(1/2πi)∮ factor·function(κ(z)) dz for every point, one contour node at a time."""
    total = np.zeros(path.z.shape[0])
    for k in range(path.z.shape[1]):
        total += (path.weights[:, k] * factor[:, k] * function(path.kappa[:, k])).imag
    return total


def _half_weights(path: Contours, k: int) -> NDArray[Any]:
    """ω with (1/2πi)∮ (ψ/z) f dz = Σ ω f + conj: the filter g(G) = (1/2πi)∮ (ψ/z)(G-z)^-1 dz."""
    return np.asarray(path.weights[k] * path.residual[k] / path.z[k] / 2j)


def _moved_loss(own: Population, h_test: Array, path: Contours, k: int) -> float:
    """½ E‖(B̄ S - S A) H'^{1/2}‖² of the population student B̄ = C g(G), by the two-point formula (MATH §12).

    tr C(G-z₁)^-1 G'(G-z₂)^-1 C ≈ Σ h'u₁u₂ + c₁₂ Σ v₁v₂, for G' = S H' Sᵀ.
    """
    a, weights, h, M = own.a, own.weights, own.h[k], own.M[k]
    b, b_test = a * h, a * h_test
    omega, kappa = _half_weights(path, k), path.kappa[k][:, None]
    D = 1 / (h + kappa)
    e = ((b * D) @ weights / M)[:, None]
    u, v = (b + e * kappa) * D, (b - e * h) * D
    quadratic = 0.0
    for partner in (np.asarray, np.conj):  # the partner node on the same and on the other half
        c = _two_point(h, h_test, weights, M, kappa[:, 0], D, partner)
        Y = (u * (weights * h_test)) @ partner(u).T + c * ((v * weights) @ partner(v).T)
        quadratic += 2 * float(np.real(omega @ Y @ partner(omega)))
    linear = (b * b_test * D) @ weights + kappa[:, 0] / M * ((b * D) @ weights) * ((b_test * D) @ weights)
    return (quadratic - 4 * float(np.real(omega @ linear)) + float((a * b_test) @ weights)) / 2


def _two_point(
    h: Array, h_test: Array, weights: Array, M: float, kappa: NDArray[Any], D: NDArray[Any], partner: Any
) -> NDArray[Any]:
    """c₁₂ = (κ₁κ₂/M) Σ h'D₁D₂ / (1 - (1/M) Σ h²D₁D₂) for all pairs of nodes."""
    crossed = (D * (weights * h_test)) @ partner(D).T
    return np.asarray(
        np.outer(kappa, partner(kappa)) / M * crossed / (1 - (D * (weights * h**2)) @ partner(D).T / M)
    )


def _lagged_variance(
    settings: Sequence[Setting],
    own: Population,
    one: Contours,
    two: Contours,
    coarse: Rule,
    noise: float,
    moved: NDArray[Any],
) -> tuple[Array, Array]:
    """2NP times the variance, Σ_l (t_l/P) W_ll, and the effective share of a token (`score.Score`)."""
    h, score, share = score_diagonal(own, coarse, [setting.P for setting in settings], noise)
    W = np.zeros_like(h)
    for path, factor in ((one, 2 * one.residual / one.z), (two, -(two.residual**2) / two.z)):
        for k in range(path.z.shape[1]):
            node = (path.weights[:, k] * factor[:, k])[:, None] / (h + path.kappa[:, k][:, None])
            W += node.imag
    for k in np.flatnonzero(moved).tolist():
        W[k] = _moved_diagonal(own, coarse, settings[k].test_length, h[k], one, k)
    return np.asarray((score * W) @ coarse.weights), share


def _moved_diagonal(own: Population, coarse: Rule, P_test: Length, h: Array, path: Contours, k: int) -> Array:
    """[Sᵀ g(G) G' g(G) S]_ll = Σ_{12} D₁D₂ (h'_l + c₁₂), on the coarse nodes."""
    h_test = averaged(coarse.modes, P_test)
    omega, kappa = _half_weights(path, k), path.kappa[k]
    D = 1 / (h + kappa[:, None])
    left = omega[:, None] * D
    diagonal = h_test * (2 * left.sum(axis=0).real) ** 2
    for partner in (np.asarray, np.conj):
        c = _two_point(h, h_test, coarse.weights, own.M[k], kappa, D, partner)
        diagonal = diagonal + 2 * np.sum(left * (c @ partner(left)), axis=0).real
    return np.asarray(diagonal)
