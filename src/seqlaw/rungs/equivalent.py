"""The equivalent rung: the expectation over the sketch too, with no random number drawn.

With κ = κ(z), D = 1/(h + κ) and sums over the modes (docs/equivalent.md derives each line):
    F(z) = tr C(G-z)^-1 C ≈ Σ a²h²D + (κ/M)(Σ ahD)²
    Approx = (κ_0/2) [Σ a²w - (Σ aw)²/M],  w = h/(h + κ_0),  κ_0 = κ(0)
    Bias   = ½ [F(0) - (1/2πi)∮ (ψ²/z) F dz]
    Var    = (2NP²)^-1 Σ_l t_l W_ll,  W = Sᵀ g(G) G' g(G) S,  t_l the diagonal of the score (MATH §4).
Relative error of order 1/M while Σγ·κ_0 ≤ 1. Batched over settings of one teacher.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import Array, InputError
from seqlaw.model.flags import flag
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.threads import one_thread
from seqlaw.rungs.resolvent import Contours, contours, is_long, real_kappa, spectral_edge
from seqlaw.rungs.rung import BLOCK, Cost, Draws, Progress, Rung
from seqlaw.rungs.score import lag_sums_at
from seqlaw.rungs.spectral_sum import Rule, sum_rule
from seqlaw.rungs.terms import Risk, frozen_filter_flags

_LEAST_TRAINING = 1e-4
"""Σγ‖G‖ below which (1-ψ)², of order its square, drowns in the contour's 1e-13."""
FLOOR = 1e-12
"""A bias below this share of F(0) is not resolved and is reported as 0."""
_CHECKABLE = 2**13
"""Modes that the exact rung takes within a minute or so."""
_CHUNK = 2**18  # points × nodes at a time
_TILE = 2**18  # entries of K and J at a time


def equivalent_risk(setting: Setting) -> Risk:
    """The expected risk at one setting, by the deterministic equivalent."""
    return equivalent_risks([setting])[0]


@one_thread()
def equivalent_risks(settings: Sequence[Setting], *, quick: bool = False) -> list[Risk]:
    """The expected risk of each setting; settings of one teacher and d are computed together.

    `quick` takes coarser sums, good to 2e-4 of the reducible risk, for searches over many settings.
    """
    answers: list[Risk | None] = [None] * len(settings)
    groups: dict[Any, list[int]] = {}
    for index, setting in enumerate(settings):
        groups.setdefault((setting.teacher, setting.d), []).append(index)
    for indices in groups.values():
        levels = ("coarse", "rough") if quick else ("fine", "coarse")
        fine, coarse = (sum_rule(settings[indices[0]], level) for level in levels)
        step = max(1, _CHUNK // fine.weights.size)
        for start in range(0, len(indices), step):
            chunk = indices[start : start + step]
            for index, risk in zip(chunk, _evaluate([settings[k] for k in chunk], fine, coarse), strict=True):
                answers[index] = risk
    return [risk for risk in answers if risk is not None]


class Equivalent(Rung):
    """The expectation over the sketch too: no random number, O(1) in d, N, P and L."""

    name: ClassVar[str] = "equivalent"
    infinite: ClassVar[bool] = True

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        return equivalent_risks(settings)

    def quick(self, settings: Sequence[Setting]) -> list[Risk]:
        return equivalent_risks(settings, quick=True)

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        first, more = (0.04, 0.02) if settings[0].d == math.inf else (0.01, 0.001)
        return Cost(seconds=first + more * (len(settings) - 1), memory=BLOCK)


@dataclass(frozen=True, kw_only=True, eq=False)
class Population:
    """What one (spectrum, M) has before any training; arrays (B,) or (B, nodes)."""

    a: Array
    weights: Array
    h: Array
    M: Array
    kappa: Array
    """κ(0)."""

    def source(self, kappa: NDArray[Any]) -> NDArray[Any]:
        """F = tr C(G-z)^-1 C at given κ (B,)."""
        D = 1 / (self.h + kappa[:, None])
        b = self.a * self.h
        return np.asarray((b**2 * D) @ self.weights + kappa / self.M * ((b * D) @ self.weights) ** 2)

    @property
    def approx(self) -> Array:
        w = self.h / (self.h + self.kappa[:, None])
        mean = (self.a * w) @ self.weights
        return np.asarray(self.kappa / 2 * ((self.a**2 * w) @ self.weights - mean**2 / self.M))

    @property
    def predictor_means(self) -> tuple[Array, Array]:
        """tr B*/M and tr B*ᵀB*/M = F'(0)/M, with dκ/dz = -1/(1 - (1/M) Σ h²D²)."""
        D = 1 / (self.h + self.kappa[:, None])
        b = self.a * self.h
        one, two = (b * D) @ self.weights, (b * D**2) @ self.weights
        slope = (b**2 * D**2) @ self.weights - one**2 / self.M + 2 * self.kappa / self.M * one * two
        rest = 1 - (self.h * D) ** 2 @ self.weights / self.M
        # At M = d the second mean diverges, but nothing is missed (c = 0 below) and its value is not used.
        square = np.divide(slope, rest * self.M, out=np.zeros_like(rest), where=rest > 1e-12)
        return one / self.M, square


def population(rule: Rule, P: Sequence[int], M: Array) -> Population:
    """The population problem of each (P, M) on a rule's spectrum."""
    h = rule.modes.averaged(np.array(P, dtype=np.float64))
    if np.any(h.max(axis=1) <= 0):
        raise InputError("P", "must be long enough for the states to vary at all", min(P))
    live = (h > 0) @ rule.weights
    still = np.any(h == 0, axis=1)  # at P = 1, say, the modes that start at zero
    wide = (M > live * (1 + 1e-12)) | (still & (M >= live * (1 - 1e-12)))
    if np.any(wide):
        needed = "below" if np.any(still & wide) else "at most"
        raise InputError(
            "M", f"must be {needed} {live[wide].min():.0f}, the modes that vary", int(M[wide].max())
        )
    kappa = real_kappa(h, rule.weights, M, np.zeros(len(P)))
    return Population(a=rule.modes.a, weights=rule.weights, h=h, M=M, kappa=kappa)


def _evaluate(settings: Sequence[Setting], fine: Rule, coarse: Rule) -> list[Risk]:
    M = np.array([float(setting.M) for setting in settings])
    own = population(fine, [setting.P for setting in settings], M)
    edge, norm = spectral_edge(own.h, own.weights, M)
    schedules = [s.schedule.safeguarded(n) for s, n in zip(settings, norm.tolist(), strict=True)]
    answers: list[Risk | None] = [None] * len(settings)
    # Long and short schedules take contours of different kinds, hence of different numbers of nodes.
    for long in (True, False):
        part = [k for k, schedule in enumerate(schedules) if is_long(schedule) == long]
        if part:
            columns = _columns(
                [settings[k] for k in part],
                [schedules[k] for k in part],
                _pick(own, part),
                edge[part],
                coarse,
                fine,
            )
            for place, k in enumerate(part):
                row = {name: float(column[place]) for name, column in columns.items()}
                answers[k] = _risk(settings[k], schedules[k], row)
    return [risk for risk in answers if risk is not None]


def _pick(own: Population, part: list[int]) -> Population:
    return Population(a=own.a, weights=own.weights, h=own.h[part], M=own.M[part], kappa=own.kappa[part])


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
    count = np.array([2.0 * setting.N * setting.P for setting in settings])
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
    """2NP times the variance, Σ_l (t_l/P) W_ll, and the effective share of a token (`score.Score`).

    t_l/P = Σ_j (DᵀD)_jj K_jl/P + tr(Σ_ξ) h_l + 2 Σ_j (DᵀS)_jj J_lj/P, with the leave-one-out values
    (DᵀD)_jj = c_j² (a_j² - 2a_j tr B*/M + tr B*ᵀB*/M), (DᵀS)_jj = c_j (a_j - tr B*/M), c = κ_0/(h + κ_0).
    The two elementwise products of MATH §4 are of relative order 1/M and cancel each other to a tenth
    of that (docs/equivalent.md); they are left out.
    """
    a, weights = coarse.modes.a, coarse.weights
    lengths = np.array([float(setting.P) for setting in settings])
    h = coarse.modes.averaged(lengths)
    mean, square = (x[:, None] for x in own.predictor_means)
    c = own.kappa[:, None] / (h + own.kappa[:, None])
    diagonal_DD, diagonal_DS = c**2 * (a**2 - 2 * a * mean + square), c * (a - mean)
    # In units of 1/κ_0, since the weights of an infinite sum fill the range of floating point.
    unit = np.where(own.kappa > 0, own.kappa, 1.0)
    inverse = weights * (unit[:, None] / (h + own.kappa[:, None]))
    score, spread = noise * h, np.zeros(len(settings))
    distinct = list(dict.fromkeys(setting.P for setting in settings))
    step = max(16, _TILE // weights.size)  # rows of K and J at a time
    for first in range(0, weights.size, step):
        rows = slice(first, first + step)
        for P, (K, J) in zip(distinct, lag_sums_at(coarse.modes, distinct, rows), strict=True):
            at = lengths == P
            score[at] += (weights * diagonal_DD[at])[:, rows] @ K
            score[at, rows] += 2 * (weights * diagonal_DS[at]) @ J.T
            spread[at] += np.sum((inverse[at, rows] @ K) * inverse[at], axis=1)
    W = np.zeros_like(h)
    for path, factor in ((one, 2 * one.residual / one.z), (two, -(two.residual**2) / two.z)):
        for k in range(path.z.shape[1]):
            node = (path.weights[:, k] * factor[:, k])[:, None] / (h + path.kappa[:, k][:, None])
            W += node.imag
    for k in np.flatnonzero(moved).tolist():
        W[k] = _moved_diagonal(own, coarse, settings[k].test_length, h[k], one, k)
    return np.asarray((score * W) @ weights), (own.M * unit) ** 2 / spread


def _moved_diagonal(own: Population, coarse: Rule, P_test: int, h: Array, path: Contours, k: int) -> Array:
    """[Sᵀ g(G) G' g(G) S]_ll = Σ_{12} D₁D₂ (h'_l + c₁₂), on the coarse nodes."""
    h_test = coarse.modes.averaged(P_test)
    omega, kappa = _half_weights(path, k), path.kappa[k]
    D = 1 / (h + kappa[:, None])
    left = omega[:, None] * D
    diagonal = h_test * (2 * left.sum(axis=0).real) ** 2
    for partner in (np.asarray, np.conj):
        c = _two_point(h, h_test, coarse.weights, own.M[k], kappa, D, partner)
        diagonal = diagonal + 2 * np.sum(left * (c @ partner(left)), axis=0).real
    return np.asarray(diagonal)


def _exact_check(setting: Setting) -> dict[str, Any]:
    """The d at which single sketches can be looked at on the exact rung: its own, 8M, or none."""
    same = setting.d is not None and setting.d <= _CHECKABLE
    d = setting.d if same else 8 * setting.M if 8 * setting.M <= _CHECKABLE else None
    return {"check_d": d, "same_d": same}


def _risk(setting: Setting, schedule: Schedule, row: dict[str, float]) -> Risk:
    flags = [*setting_flags(setting), flag("cross")]
    if schedule is not setting.schedule:
        flags.append(flag("safeguard", gamma=schedule.gamma))
    trained = schedule.total * row["edge"]
    if trained < _LEAST_TRAINING:
        flags.append(flag("untrained", trained=trained))
        row["variance"] = max(row["variance"], 0.0)
    saturation = schedule.total * row["kappa"]
    if saturation > 1:
        flags.append(flag("saturated", saturation=saturation, **_exact_check(setting)))
    if row["bias"] < FLOOR * row["source_energy"]:
        flags.append(flag("bias", floor=FLOOR))
        row["bias"] = 0.0
    learned = max(row["learned_dimensions"], math.ulp(0.0))
    tokens = row["effective_share"] * setting.N * setting.P / learned
    few = frozen_filter_flags(tokens)
    flags += few
    error = f"relative error about 1/M = {1 / setting.M:.2g}"
    # Measured: while less than a dimension is learned, the scatter of one column's norm shows.
    wider = f"relative error up to 3/M = {3 / setting.M:.2g}"
    saturated = f"relative error above 1/M = {1 / setting.M:.2g} (saturated)"
    low = "may be much too low (frozen-filter)"
    names = ("finite_filter_variance", "effective_dimension", "learned_dimensions", "source_energy", "kappa")
    return Risk(
        rung="equivalent",
        regime=setting.regime,
        irreducible=row["irreducible"],
        approx=row["approx"],
        bias=row["bias"],
        variance=row["variance"],
        cross=0.0,
        steps=setting.schedule.L,
        horizon=setting.schedule.horizon,
        eval_length=setting.test_length,
        accuracy={
            "approx": error,
            "bias": low if few else saturated if saturation > 1 else error,
            "variance": low if few else wider if row["learned_dimensions"] <= 1 else error,
        },
        diagnostics={
            **{name: row[name] for name in names},
            "saturation": saturation,
            "gamma": schedule.gamma,
            "clipped": float(schedule is not setting.schedule),
            "tokens_per_dimension": tokens,
        },
        flags=tuple(flags),
    )
