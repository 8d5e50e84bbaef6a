"""Bias and variance over sketches for any filter, as sums of the resolvent over the nodes of a path.

Training with a filter of response φ and residual ψ = 1 - sφ(s) leaves the population student C φ(G). With
R(z) = (G - z)^-1, κ = κ(z), D = 1/(h + κ) and sums over the modes (docs/equivalent.md, (5) to (11)), all
that is wanted is a sum over the nodes of a path (`paths`), or over pairs of them, with weights of the filter:
    ∫ r(μ)/μ dν = ω_0 f(0) + Im Σ_k ω_k r(z_k) f(z_k)      for f = Σ x_l D_l, or F = Σ b²D + (κ/M)(Σ bD)²,
    ‖C r(G) G^-1 S‖² = Σ_12 α_1 α_2 Y_12,                  Y_12 = Σ h'u_1u_2 + c_12 Σ v_1v_2,
with b = ah, e = (1/M) Σ bD, u = (b + eκ)D, v = (b - eh)D, the norm ‖·‖ that of the test covariance H', and
c_12 = (κ_1κ_2/M) Σ h'D_1D_2/(1 - (1/M) Σ h²D_1D_2). Tested at the training length,
    2 bias = ∫ ψ²/μ dν of F,      2NP variance = ∫ (1-ψ)²/μ dν of Σ (t_l/P) D_l,      t the score's diagonal;
at another length both are sums over pairs. κ is solved for once: after that a filter is its values at the
nodes and a product of matrices. Batched over points (spectrum, M) and filters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from seqlaw.methods.contours import Path, Weights
from seqlaw.methods.expected import Population, Scored, population
from seqlaw.methods.resolvent import Complex, path_kappa
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model.checks import Array
from seqlaw.model.lengths import Test, averages

_CHUNK, _CHUNK_OF_PAIRS = 2**19, 2**13  # points × nodes × modes at a time


# --- pairs of nodes ------------------------------------------------------------------------------------


def pairs(left: Complex, weights: Any, right: Complex) -> Complex:
    """Σ_l left_il w_l right_jl for all pairs of nodes, (…, K, n) → (…, K, 2K): partners, then conjugates.

    One real product of matrices has all four parts.
    """
    columns = np.concatenate([right.real, right.imag], axis=-2)
    rows = columns if left is right else np.concatenate([left.real, left.imag], axis=-2)
    full = (rows * weights) @ np.swapaxes(columns, -1, -2)
    n, K = left.shape[-2], right.shape[-2]
    rr, ri, ir, ii = full[..., :n, :K], full[..., :n, K:], full[..., n:, :K], full[..., n:, K:]
    found = np.empty((*full.shape[:-2], n, 2 * K), dtype=np.complex128)
    found.real[..., :K], found.imag[..., :K] = rr - ii, ri + ir
    found.real[..., K:], found.imag[..., K:] = rr + ii, ir - ri
    return found


def mirrored(x: Complex) -> Complex:
    """Nodes on the upper half, then on the lower: the last axis."""
    return np.concatenate([x, np.conj(x)], axis=-1)


def pair_scale(kappa: Complex, D: Complex, tau: Complex, weights: Array, M: Any) -> Complex:
    """κ₁κ₂/(1 - (1/M) Σ τ₁τ₂D₁D₂), the factor of (1/M) Σ x D₁D₂ in c₁₂[x].

    docs/equivalent.md, (9) for τ = h; docs/finite-sample.md, (7) for finite data.
    """
    seen = tau * D
    rest = 1 - pairs(seen, weights, seen) / M
    product = kappa[..., :, None] * mirrored(kappa)[..., None, :]
    return np.asarray(np.divide(product, rest, out=np.zeros_like(rest), where=product != 0))  # M = d: 0/0


class Students(NamedTuple):
    """C R(z) at the nodes, as seen by a column of the sketch: e (…, K, 1), u and v (…, K, n)."""

    e: Complex
    u: Complex
    v: Complex


def students(kappa: Complex, D: Complex, tau: Complex, b: Complex, weights: Array, M: Any) -> Students:
    """e = (1/M) Σ bD, u = (b + eκ)D, v = (b - eτ)D."""
    bD = b * D
    e = (bD @ weights)[..., None] / M
    return Students(e, bD + e * kappa[..., None] * D, bD - e * tau * D)


def linear(kappa: Complex, D: Complex, b: Complex, e: Complex, x: Array) -> Complex:
    """tr C R S diag(x) A… = Σ b x D + κ e Σ x D for columns x (…, n, r), weights included: (…, K, r)."""
    return np.asarray((b * D) @ x + kappa[..., None] * e * (D @ x))


# --- terms ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True, eq=False)
class Solved:
    """Points (spectrum, M) solved at the nodes of a path: everything that no filter changes."""

    path: Path
    own: Population
    kappa: Complex
    """κ at z = 0 and at the solved nodes (B, 1 + K)."""
    test: Population
    """At the test length; `own` where that is the training length."""
    approx: Array
    scored: Scored
    rule: Rule
    """Of the double sums in `scored`."""
    tested: Array | None
    """h of the test length on that rule."""

    def tested_at(self, lengths: Sequence[Test], rule: Rule) -> Solved:
        """The same points at other test lengths; `rule` is that of the single sums."""
        test = population(rule, lengths, self.own.M)
        return replace(self, test=test, approx=test.approx, tested=averages(self.rule.modes, lengths))


def solve(
    own: Population,
    path: Path,
    tested: Sequence[Test] | None,
    rules: tuple[Rule, Rule],
    scored: Scored,
    *,
    unit: Array | float = 1.0,
    close: float = 1e-9,
) -> Solved:
    """κ of each point at the nodes, in units of 1/unit; rules of single sums (as in `own`) and of double."""
    fine, double = rules
    z = np.broadcast_to(path.z[:, : path.solved], (own.M.size, path.solved)) / np.reshape(unit, (-1, 1))
    nodes = path_kappa(own.h, own.weights, own.M, z, close=close)
    solved = Solved(
        path=path,
        own=own,
        kappa=np.concatenate([own.kappa[:, None], nodes], axis=1),
        test=own,
        approx=own.approx,
        scored=scored,
        rule=double,
        tested=None,
    )
    return solved if tested is None else solved.tested_at(tested, fine)


def terms(solved: Solved, psi: Complex, *, diagnostics: bool = True) -> dict[str, Array]:
    """Bias, variance of one token, and dimensions at each point and filter (B, S), from ψ (B or 1, S, K)."""
    path, own = solved.path, solved.own
    constant = 0.0 if path.encloses else 1.0
    once, twice = (path.weights(psi**j, vanishes=False) for j in (1, 2))
    learned = path.weights(constant - psi, vanishes=True)
    squared = path.weights(constant + psi * (psi - 2), vanishes=True)
    chunk = _CHUNK if solved.tested is None else _CHUNK_OF_PAIRS
    step = max(1, chunk // (solved.kappa.shape[1] * own.h.shape[1]))
    rows = []
    for first in range(0, own.M.size, step):
        part = slice(first, first + step)
        D = 1 / (own.h[part, None] + solved.kappa[part, :, None])
        one, two, response, square = (w.of_points(part) for w in (once, twice, learned, squared))
        if solved.tested is None:
            found = _own_terms(solved, part, D, two, square)
        else:
            found = _moved_terms(solved, part, D, one, response)
        if diagnostics:
            seen = np.stack([own.h[part] * own.weights, solved.test.h[part] * own.weights], axis=2)
            trained, tested = np.moveaxis(D @ seen, 2, 0)
            found["learned_dimensions"] = response.of(trained)
            found["effective_dimension"] = square.of(trained)
            found["tested_dimension"] = square.of(tested)
        rows.append(found)
    return {name: np.concatenate([row[name] for row in rows]) for name in rows[0]}


def _double(solved: Solved, part: slice, D: Complex) -> tuple[Array, Array, Complex]:
    """h, the score with the weights of its sum, and D on the rule of the double sums."""
    h, score = solved.scored.h[part], solved.scored.score[part] * solved.rule.weights
    same = solved.rule.weights is solved.own.weights
    return h, score, D if same else 1 / (h[:, None] + solved.kappa[part, :, None])


def _own_terms(solved: Solved, part: slice, D: Complex, twice: Weights, squared: Weights) -> dict[str, Array]:
    """Bias and variance tested at the training length, from F: docs/equivalent.md, (7) and (11)."""
    own, kappa = solved.own, solved.kappa[part]
    b = own.a * own.h[part]
    mean, square = np.moveaxis(D @ np.stack([b * own.weights, b**2 * own.weights], axis=2), 2, 0)
    source = square + kappa / own.M[part, None] * mean**2
    _, score, D = _double(solved, part, D)
    return {"bias": twice.of(source) / 2, "variance": squared.of((D @ score[..., None])[..., 0]) / 2}


def _moved_terms(
    solved: Solved, part: slice, D: Complex, once: Weights, learned: Weights
) -> dict[str, Array]:
    """Bias and variance at another test length: pairs of nodes, z = 0 among them (docs/equivalent.md, (8)).

    The population student is C (R_0 - E), E = ∫ ψ/μ of R, so in the metric H'
    2 bias' = ‖C R_0 S - SA‖² - 2 approx' + ‖C E S‖² - 2⟨C R_0 S - SA, C E S⟩.
    """
    own, kappa, w = solved.own, solved.kappa[part], solved.own.weights
    h, test, M = own.h[part, None], solved.test.h[part], own.M[part, None, None]
    b, seen = own.a * h, (w * test)[..., None]

    def correction(D: Complex, h: Array, test: Array, weights: Array) -> Complex:
        """c₁₂ (docs/equivalent.md, (9))."""
        return pair_scale(kappa, D, h, weights, M) / M * pairs(D, (weights * test)[:, None], D)

    c = correction(D, h, test, w)
    e, u, v = students(kappa, D, h, b, w, M)
    scatter = c * pairs(v, w, v)
    # ⟨R_0, R_k⟩ - ⟨SA, R_k⟩ for every node, then summed with E's weights.
    line = linear(kappa, D, b, e, own.a[:, None] * seen)[..., 0]
    cross = ((u[:, :1] * u) @ seen)[..., 0] + scatter[:, 0, : kappa.shape[1]] - line
    start = (cross[:, 0] - line[:, 0]).real / 2 + (own.a**2 * test) @ w / 2 - solved.approx[part]
    mean, spread = _quadratic(once.halves, u, scatter)
    quadratic = (mean**2 @ seen)[..., 0] + spread
    bias = start[:, None] + quadratic / 2 - 2 * (once.halves @ cross[..., None]).real[..., 0]
    # [Sᵀ φ(G) G' φ(G) S]_ll = Σ_12 D_1 D_2 (h'_l + c_12), on the rule of the double sums.
    assert solved.tested is not None
    h_double, score, D_double = _double(solved, part, D)
    test = solved.tested[part]
    if D_double is not D:
        D, c = D_double, correction(D_double, h_double[:, None], test, solved.rule.weights)
    scatter = c * pairs(D, score[:, None], D)
    mean, spread = _quadratic(learned.halves, D, scatter)
    return {"bias": bias, "variance": ((mean**2 @ (score * test)[..., None])[..., 0] + spread) / 2}


def _quadratic(alpha: Complex, rows: Complex, scatter: Complex) -> tuple[Array, Array]:
    """Σ α rows + conj (B, S, n), and the quadratic form of α in the pairs (B, S)."""
    spread = 2 * np.sum((alpha @ scatter) * mirrored(alpha), axis=2).real
    return 2 * (alpha @ rows).real, spread
