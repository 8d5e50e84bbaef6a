"""One spectrum for every horizon: the equivalent's terms at many schedules for one solve of κ.

On the ray z = x e^{iφ} a contour integral round the spectrum becomes a sum over log x whose nodes do not
depend on the schedule. For f(z) = ∫ dν(μ)/(μ - z) and a filter ψ,
    ∫ ψ^j/μ dν = Im Σ_k ω_k ψ_k^j (f_k - f(0)),     ∫ (1-ψ)²/μ dν = Im Σ_k ω_k (1-ψ_k)² f_k,
so κ(z_k) and f_k are solved once for (h_P, M); every L, γ and schedule after that is ψ at the nodes and a
dot product. (f(0) could stay, ψ^j being real on the axis; without it the error is relative to the answer.)
Short schedules, whose ψ has not vanished where its power series ends, take the nodes of an ellipse in the
same formulas. Nodes are in units of 1/γ, so points whose γ is clipped differently share one ψ.

Trapezoid rule: the error is exp(-π²/2h) for a step h in log x, 3e-9 (FINE), 5e-5 (QUICK).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.methods.expected import Population, pick, population, score_diagonal
from seqlaw.methods.resolvent import contour_kappa, spectral_edge
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model.checks import Array
from seqlaw.model.filters import Schedule
from seqlaw.model.lengths import Length, mean_length

FINE, QUICK = 0.25, 0.5
_CLOSE = 2e-3  # Newton's last step beside QUICK: it leaves the square of that
_ANGLE = math.pi / 4  # half-way between the spectrum and the left half-plane, where ψ grows
_TOP = 0.9  # γ|z| up to which ψ is asked for
_OUTSIDE = {
    FINE: 6.0,
    QUICK: 4.0,
}  # e-folds beyond that, where f falls as 1/z and the sum closes geometrically
_VANISHED = 27.0  # -log |ψ| from which it counts as nothing
_CHUNK = 2**21  # points × nodes × modes at a time
_TOGETHER = 64  # points on one path


@dataclass(frozen=True, kw_only=True, eq=False)
class Path:
    """Nodes x = γz with weights ω (K,), from the outside in; `beyond` more, too deep to be solved for.

    Below the spectrum f - f(0) is proportional to z, which gives f at the further nodes of a ray.
    """

    x: NDArray[Any]
    omega: NDArray[Any]
    step: float
    """In log x, of a ray; FINE for an ellipse."""
    beyond: int = 0
    closed: bool = False

    @property
    def solved(self) -> int:
        return self.x.size - self.beyond

    def residuals(self, schedules: Sequence[Schedule], peak: float | None = None) -> NDArray[Any]:
        """ψ of each schedule at the nodes (S, K), in units of 1/peak, its own γ unless given."""
        psi = np.zeros((len(schedules), self.x.size), dtype=np.complex128)
        for row, schedule in zip(psi, schedules, strict=True):
            unit = peak or schedule.gamma
            felt = np.full(self.x.shape, True) if self.closed else _felt(self.x, schedule.total / unit)
            row[felt] = schedule.residual(self.x[felt] / unit)
        return psi


def _felt(x: NDArray[Any], steps: float) -> NDArray[Any]:
    """Where ψ is not nothing: log |1 - wx| ≤ -w|x|cos φ + w²|x|²/2, to be summed over the steps w = γ_t/γ."""
    size = np.abs(x)
    return np.asarray((size <= _TOP) & (steps * size * (math.cos(_ANGLE) - size / 2) <= _VANISHED))


def ray(deepest: float, total: float, *, step: float = FINE) -> Path:
    """The ray, solved down to |x| = deepest, for schedules of up to `total` = Σγ/γ effective steps."""
    outside = round(_OUTSIDE[step] / step)
    solved = outside + max(4, math.ceil(math.log(_TOP / deepest) / step)) + 1
    last = min(deepest, 1 / total) * math.exp(-9)
    count = max(solved + 1, outside + math.ceil(math.log(_TOP / last) / step) + 1)
    size = math.log(_TOP) + step * (outside - np.arange(count))
    omega = np.full(count, step / math.pi, dtype=np.complex128)
    omega[[0, -1]] /= -math.expm1(-step)  # f ~ 1/z outside, f - f(0) ~ z inside
    return Path(x=np.exp(size) * np.exp(1j * _ANGLE), omega=omega, step=step, beyond=count - solved)


def ellipse(edge: float, total: float) -> Path:
    """An ellipse round 0 and the spectrum (x ≤ edge), for schedules of up to `total` effective steps.

    On its left tip, at -δ, ψ² grows to exp(2 total δ), kept near e³; the right tip stays within _TOP.
    """
    reach = 2 * max(_TOP, (1 + edge) / 2) / edge - 1
    eta = math.acosh(min(1 + 3 / (total * edge), reach))
    n = math.ceil(17.5 / eta) + 4
    v = np.pi * (1 - (np.arange(n) + 0.5) / n)  # from the left tip along the upper half
    x = edge / 2 * (1 + math.cosh(eta) * np.cos(v) + 1j * math.sinh(eta) * np.sin(v))
    dx = edge / 2 * (-math.cosh(eta) * np.sin(v) + 1j * math.sinh(eta) * np.cos(v)) / n
    return Path(x=x, omega=-dx / x, step=FINE, closed=True)


def reaches(schedule: Schedule, peak: float) -> bool:
    """Whether a ray in units of 1/peak is fit for this schedule: ψ is nothing at its upper end."""
    return not _felt(np.array([_TOP]), schedule.total / peak)[0]


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectra:
    """Points (spectrum, M) solved at the nodes of a path: everything that no schedule changes."""

    path: Path
    own: Population
    kappa: NDArray[Any]
    """κ at z = 0 and at the solved nodes (B, 1 + K)."""
    tested: Array | None
    """h of the test length (B, n), where it is not the training length."""
    approx: Array
    score: Array
    """t_l/P times the weights of the sums (B, n)."""
    share: Array
    noise: float


def norms(rule: Rule, own: Population, gamma: float) -> tuple[Array, Array]:
    """The edge of each spectrum and γ̄ = min(γ, 1/(2‖G‖)); an upper bound of the edge where γ is safe."""
    top = own.h.max(axis=1)
    edge = 2 * top * (1 + (own.h / (2 * top[:, None] - own.h)) @ rule.weights / own.M)
    peak = np.full(edge.shape, gamma)
    near = np.flatnonzero(2 * gamma * edge > 1)
    if near.size:
        edge[near], norm = spectral_edge(own.h[near], own.weights, own.M[near])
        peak[near] = np.minimum(gamma, 1 / (2 * norm))
    return edge, peak


def solve(
    own: Population,
    peak: Array,
    path: Path,
    P: Sequence[Length],
    eval_length: int | None,
    rule: Rule,
    scored: tuple[Array, Array, Array],
    *,
    close: float = 1e-9,
) -> Spectra:
    """κ at the nodes of each point, whose γ̄ is `peak` and whose score is `scored` (`score_diagonal`)."""
    z = path.x[: path.solved] / peak[:, None]
    nodes = contour_kappa(own.h, own.weights, own.M, z, close=close)
    test = own if eval_length is None else population(rule, [eval_length] * len(P), own.M)
    return Spectra(
        path=path,
        own=own,
        kappa=np.concatenate([own.kappa[:, None], nodes], axis=1),
        tested=None if eval_length is None else test.h,
        approx=test.approx,
        score=scored[1] * rule.weights,
        share=scored[2],
        noise=noise(rule),
    )


def noise(rule: Rule) -> float:
    """tr Σ_ξ."""
    return float(rule.modes.sigma_xi @ rule.weights)


def depth(own: Population) -> Array:
    """The |z| below which f - f(0) ~ z at each point: about its spectrum's lower edge.

    Near there z ≈ -(κ - κ_0)(1 - (1/M) Σ h²D²). As wide as the teacher (κ_0 = 0) f - f(0) ~ √z instead, and
    a node far below the least h leaves little.
    """
    D = 1 / (own.h + own.kappa[:, None])
    slope = 1 - (own.h * D) ** 2 @ own.weights / own.M
    least = np.where(own.h > 0, own.h, np.inf).min(axis=1)
    return np.asarray(np.maximum(own.kappa * slope, 1e-7 * least))


@dataclass(frozen=True, kw_only=True, eq=False)
class _Weights:
    """A filter as weights: its value on any f is `zero` f(0) + Im Σ nodes_k f_k; (S,) and (S, K)."""

    zero: Array
    nodes: NDArray[Any]

    def of(self, f: NDArray[Any]) -> Array:
        """At f (B, 1 + K) → (B, S)."""
        return np.asarray(f[:, :1].real * self.zero + (f[:, 1:] @ self.nodes.T).imag)


def _weights(path: Path, values: NDArray[Any], *, vanishes: bool) -> _Weights:
    """The weights of a filter with these values at the nodes (S, K); `vanishes`: at 0, as (1-ψ)² does."""
    all_nodes = path.omega * values
    nodes, deep = all_nodes[:, : path.solved].copy(), all_nodes[:, path.solved :]
    fall = np.abs(path.x[path.solved :] / path.x[path.solved - 1])
    nodes[:, -1] += deep @ fall
    zero = (deep @ (1 - fall)).imag if vanishes else -nodes.sum(axis=1).imag
    return _Weights(zero=zero, nodes=nodes)


def terms(spectra: Spectra, psi: NDArray[Any], *, diagnostics: bool = True) -> dict[str, Array]:
    """The terms at each point and schedule (B, S), the variance that of one token, from ψ (S, K)."""
    own, path = spectra.own, spectra.path
    once, twice = (_weights(path, psi**j, vanishes=False) for j in (1, 2))
    learned = _weights(path, 1 - psi, vanishes=True)
    squared = _weights(path, (1 - psi) ** 2, vanishes=True)
    rows: list[dict[str, Array]] = []
    step = max(
        1, (_CHUNK if spectra.tested is None else 2**13) // (spectra.kappa.shape[1] * max(own.h.shape[1], 1))
    )
    for first in range(0, own.M.size, step):
        part = slice(first, first + step)
        kappa, h, M = spectra.kappa[part], own.h[part], own.M[part]
        found: dict[str, Array] = {}
        if diagnostics or spectra.tested is None:
            D = 1 / (h[:, None, :] + kappa[:, :, None])
        if spectra.tested is None:
            b = own.a * h
            sums = D @ np.stack([b * own.weights, b**2 * own.weights], axis=2)
            source = sums[:, :, 1] + kappa / M[:, None] * sums[:, :, 0] ** 2
            found["bias"] = twice.of(source) / 2
            found["variance"] = squared.of((D @ spectra.score[part, :, None])[..., 0]) / 2
        else:
            found |= _moved(spectra, part, once, learned)
        if diagnostics:
            test = h if spectra.tested is None else spectra.tested[part]
            traces = D @ np.stack([h * own.weights, test * own.weights], axis=2)
            found["learned_dimensions"] = learned.of(traces[:, :, 0])
            found["effective_dimension"] = squared.of(traces[:, :, 0])
            found["tested_dimension"] = squared.of(traces[:, :, 1])
        rows.append(found)
    return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}


def _moved(spectra: Spectra, part: slice, once: _Weights, learned: _Weights) -> dict[str, Array]:
    """Bias and variance at another test length, by the two-point formula (MATH §12, `equivalent`).

    With R_k = C (G - z_k)^-1 the population student is R_0 - E, E = Σ_k Im ω_k ψ_k (R_k - R_0), so
    2 bias' = ‖R_0 S - SA‖² - 2 approx' + ‖E S‖² - 2⟨R_0 S - SA, E S⟩ in the metric H'.
    """
    assert spectra.tested is not None
    own, kappa, w = spectra.own, spectra.kappa[part], spectra.own.weights
    h, test, M = own.h[part], spectra.tested[part], own.M[part, None]
    b, b_test = own.a * h, own.a * test
    D = 1 / (h[:, None] + kappa[..., None])
    e = (D @ (b * w)[..., None])[..., 0] / M
    u = (b[:, None] + (e * kappa)[..., None]) * D
    v = (b[:, None] - e[..., None] * h[:, None]) * D
    c = _correction(kappa, M[..., None], _pairs(D, w * test), _pairs(D, w * h**2))
    cV = [one * pair for one, pair in zip(c, _pairs(v, np.broadcast_to(w, h.shape)), strict=True)]
    # ⟨R_0, R_k⟩ - ⟨SA, R_k⟩ for every node, then summed with E's weights.
    linear = (D @ (b * b_test * w)[..., None])[..., 0] + kappa * e * (D @ (b_test * w)[..., None])[..., 0]
    cross = ((u[:, :1] * u) @ (w * test)[..., None])[..., 0] + cV[0][:, 0] - linear
    start = ((cross[:, 0] - linear[:, 0]).real + (own.a * b_test) @ w) / 2 - spectra.approx[part]
    alpha = _halves(once)
    mean = 2 * (alpha @ u).real  # E S, but for its scatter
    quadratic = (mean**2 @ (w * test)[..., None])[..., 0] + _form(alpha, cV)
    bias = start[:, None] + quadratic / 2 - 2 * (cross @ alpha.T).real
    # [Sᵀ g(G) G' g(G) S]_ll = Σ_12 D_1 D_2 (h'_l + c_12).
    score = spectra.score[part]
    cD = [one * pair for one, pair in zip(c, _pairs(D, score), strict=True)]
    alpha = _halves(learned)
    diagonal = ((2 * (alpha @ D).real) ** 2 @ (score * test)[..., None])[..., 0]
    return {"bias": bias, "variance": (diagonal + _form(alpha, cD)) / 2}


def _halves(filter_: _Weights) -> NDArray[Any]:
    """α (S, 1 + K) with the filter's operator = Σ α R + conj."""
    return np.concatenate([filter_.zero[:, None] / 2, filter_.nodes / 2j], axis=1)


Pairs = tuple[NDArray[Any], NDArray[Any]]
"""A function of two nodes (B, 1 + K, 1 + K), the partner on the same and on the other half."""


def _pairs(f: NDArray[Any], weights: Array) -> Pairs:
    """Σ_l w_l f_1l f_2l and Σ_l w_l f_1l conj(f_2l) for all pairs of nodes, from one real product."""
    real = np.concatenate([f.real, f.imag], axis=1)
    n = f.shape[1]
    full = (real * weights[:, None]) @ real.transpose(0, 2, 1)
    rr, ri, ii = full[:, :n, :n], full[:, :n, n:], full[:, n:, n:]
    ir = ri.transpose(0, 2, 1)
    return rr - ii + 1j * (ri + ir), rr + ii + 1j * (ir - ri)


def _correction(kappa: NDArray[Any], M: Array, tested: Pairs, own: Pairs) -> Pairs:
    """c₁₂ = (κ₁κ₂/M) Σ h'D₁D₂ / (1 - (1/M) Σ h²D₁D₂)."""
    found = []
    for pair, same, partner in zip(tested, own, (kappa, kappa.conj()), strict=True):
        rest = 1 - same / M
        rest[kappa[:, 0] == 0, 0, 0] = 1.0  # M = d: nothing is missed, 0/0
        found.append(kappa[:, :, None] * partner[:, None] / M * pair / rest)
    return found[0], found[1]


def _form(alpha: NDArray[Any], pairs: Sequence[NDArray[Any]]) -> Array:
    """The quadratic form of Σ α R + conj for each row of α: (B, S)."""
    same, other = pairs
    return np.asarray(2 * np.sum((alpha @ same) * alpha + (alpha @ other) * alpha.conj(), axis=2).real)


def surface(
    rule: Rule, M: Array, P: Sequence[Length], schedules: Sequence[Schedule], eval_length: int | None
) -> tuple[Array, Array]:
    """approx + bias, and the variance of one trajectory, at points (M, P) × schedules of one γ."""
    gamma = schedules[0].gamma
    own = population(rule, P, np.minimum(M, rule.weights.sum()))  # which counts d to five digits or so
    edge, peak = norms(rule, own, gamma)
    fixed, variance = np.empty((2, M.size, len(schedules)))
    long = [k for k, schedule in enumerate(schedules) if reaches(schedule, gamma)]
    short = [k for k in range(len(schedules)) if k not in set(long)]
    scored = score_diagonal(own, rule, P, noise(rule))
    deepest = 1e-2 * depth(own) * peak
    order = np.argsort(deepest)  # points of like depth share a path, a part of the deepest
    for columns in (long, short):
        if not columns:
            continue
        chosen = [schedules[k] for k in columns]
        total = max(schedule.total for schedule in chosen) / gamma
        step = _TOGETHER if columns is long else order.size
        psi: NDArray[Any] | None = None
        for first in range(0, order.size, step):
            at = order[first : first + step]
            if columns is long:
                path = ray(float(deepest[at].min()), total, step=QUICK)
            else:
                path = ellipse(float((edge * peak).max()), total)
            psi = path.residuals(chosen) if psi is None else psi
            lengths = [P[k] for k in at]
            known = (scored[0][at], scored[1][at], scored[2][at])
            spectra = solve(pick(own, at), peak[at], path, lengths, eval_length, rule, known, close=_CLOSE)
            found = terms(spectra, psi[:, : path.x.size], diagnostics=False)
            index = np.ix_(at, np.array(columns))
            fixed[index] = spectra.approx[:, None] + np.maximum(found["bias"], 0.0)
            variance[index] = found["variance"] / np.array([mean_length(one) for one in lengths])[:, None]
    return fixed, variance
