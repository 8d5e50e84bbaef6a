"""The law at any amount of data, for one sketch: as `over_sketches`, with M × M matrices in place of sums.

With F_m = S diag(f_m) Sᵀ the system of `two_point` has fᵀK₁₂f = tr(F_m Q₁ F_n Q₂), Q = (Σ t_m F_m - z)^-1:
nothing is d × d. Nodes start from the solution over sketches, which is O(1/M) away.

Training in stages, each on data of its own, takes B to Bψ(Ĝ) + Ĉg(Ĝ). A quadratic function of the student
after a stage is, on average over its data, one of the student before it (`Averages`); from the test back to
a student at zero this is the risk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from seqlaw.methods.finite_sample.positions import Complex, Positions, halves
from seqlaw.methods.finite_sample.two_point import (
    CLOSE,
    Terms,
    TwoPoint,
    mirrored,
    outer,
    over_pairs,
    products,
)
from seqlaw.model.checks import Array
from seqlaw.model.sketch import Problem


@dataclass(frozen=True, kw_only=True, eq=False)
class SketchPoint:
    """The solution at the nodes of a contour: Γ on the cells, Q, and C = S diag(b) Sᵀ."""

    gamma: Complex
    Q: Complex
    C: Complex


def lifted(S: Array, place: Positions) -> Array:
    """F_m for all m, r × M × M."""
    return np.stack([(S * column) @ S.T for column in place.f.T])


def sketch_nodes(
    F: Array, place: Positions, cells: Array, z: Complex, tokens: float, t: Complex
) -> SketchPoint:
    """The fixed point given a sketch by Newton from t (nodes × r); N = ∞ takes no step."""
    eye = np.eye(F.shape[1])
    done = bool(np.isinf(tokens))
    for _ in range(40):
        Q = np.linalg.inv(np.tensordot(t, F, axes=1) - z[:, None, None] * eye)
        q = Q.swapaxes(-1, -2).reshape(len(z), -1) @ F.reshape(len(F), -1).T / tokens
        gamma = place.inverse(place.identity + q @ place.here)
        if done:
            break
        FQ = F @ halves(Q)[:, :, None]
        flat = FQ.reshape(2, len(z), len(F), -1)
        turned = np.swapaxes(FQ.swapaxes(-1, -2).reshape(flat.shape), -1, -2)
        across = flat[0] @ turned[1]  # tr(F_m Re Q F_n Im Q); the other way round its transpose
        K = flat[0] @ turned[0] - flat[1] @ turned[1] + 1j * (across + across.swapaxes(-1, -2))
        A = products(place, cells, gamma) / tokens
        new = (gamma * cells) @ place.here.T
        step = np.linalg.solve(np.eye(len(F)) - A @ K, (new - t)[..., None])[..., 0]
        t = t + step
        done = bool(np.max(np.abs(step)) <= CLOSE * np.max(np.abs(t)))  # Γ and Q then follow from t
    ahead = (gamma * cells) @ place.ahead.T
    return SketchPoint(gamma=gamma, Q=Q, C=np.tensordot(ahead, F, axes=1))


class Averages(NamedTuple):
    """Averages over the data of one stage, for a metric W of the student after it."""

    kept: Array
    """E ψ(Ĝ)."""
    learned: Array
    """E Ĉg(Ĝ)."""
    metric: Array
    """E ψWψ."""
    mixed: Array
    """E ĈgWψ."""
    square: float
    """E tr ĈgWgĈᵀ."""


@dataclass(frozen=True, kw_only=True, eq=False)
class StageLaw:
    """One stage solved at the nodes of its contour."""

    problem: Problem
    F: Array
    place: Positions
    cells: Array
    nodes: SketchPoint
    filters: tuple[Complex, Complex]
    """The weights of the contour times ψ/z, for the response g, and times ψ."""
    tokens: float

    def averages(self, W: Array) -> Averages:
        """E R₁WR₂ = Q₁(W + ρF)Q₂ and E R₁WR₂Ĉᵀ = Q₁[(W + ρF)Z₂ᵀ - b^ΛF], Z = CQ.

        docs/finite-sample.md, (6)–(12).
        """
        response, residual = self.filters[0], -self.filters[1]  # ψ(G) = -(1/2πi)∮ ψ (G-z)^-1 dz
        Q, C, F = self.nodes.Q, self.nodes.C, self.F
        n, M = len(Q), F.shape[1]
        Z = C @ Q
        kept, learned = _once(residual, Q), _once(response, Z)
        plain = Averages(kept, learned, kept @ W @ kept, learned @ W @ kept, _trace(learned @ W, learned))
        if np.isinf(self.tokens):
            return plain
        FQ, WQ = F @ halves(Q)[:, :, None], W @ halves(Q)
        flat = FQ.reshape(2, n, len(F), -1)
        K = outer(flat, FQ.swapaxes(-1, -2).reshape(flat.shape))
        source = outer(flat, WQ.swapaxes(-1, -2).reshape(2, n, 1, -1))[..., 0]
        two = TwoPoint(self.place, self.cells, self.nodes.gamma, K, source, self.tokens)
        rho = np.swapaxes(two.rho, 1, 2)  # nodes × r × (nodes and conjugates)
        # Σ_m Q_i F_m (…), summed over the partners j of each node i first; Q_i F_m = (F_m Q_i)ᵀ.
        after = (rho * residual[:, None, None] * mirrored(residual)) @ mirrored(Q).reshape(2 * n, -1)
        rows = FQ.reshape(2, -1, M)
        after = after.reshape(-1, M)
        metric = plain.metric + 2 * (rows[0].T @ after.real - rows[1].T @ after.imag)
        weight = mirrored(response)
        after = (rho * weight) @ mirrored(np.swapaxes(Z, 1, 2)).reshape(2 * n, -1)
        after = after.reshape(n, len(F), M, M)
        after[..., np.arange(M), np.arange(M)] -= (np.swapaxes(two.behind, 1, 2) @ weight)[..., None]
        left = (FQ[0] + 1j * FQ[1]).reshape(n, -1, M)
        seen = np.swapaxes(left, 1, 2) @ after.reshape(n, -1, M)
        lines = mirrored(np.einsum("iab,mab->im", Z, F))
        ends = two.both @ np.trace(F, axis1=1, axis2=2) - np.sum(lines * two.ahead, axis=-1)
        square = plain.square + 2 * float(np.real(response @ np.einsum("iab,iba->i", C, seen)))
        return Averages(
            kept,
            learned,
            metric,
            plain.mixed + _once(residual, seen).T,
            square + float(over_pairs(response, response, ends)),
        )


def expected_terms(stages: Sequence[StageLaw], test: Problem) -> Terms:
    """Half the mean of ‖B - B*'‖² in G', and of its parts, of a student at zero that goes through the stages.

    B = D + E with D ← B* + (D - B*)ψ(Ĝ) and E ← Eψ(Ĝ) + (Ĉ - B*Ĝ)g(Ĝ), whose squares are bias and variance.
    Each is carried back as tr BWBᵀ - 2 tr BVᵀ + c; the same W serves all three.
    """
    W, start = test.G, _trace(test.C, test.B_star)
    V = {"loss": test.C, "bias": test.C, "variance": np.zeros_like(test.C)}
    c = {"loss": start, "bias": start, "variance": 0.0}
    for stage in reversed(stages):
        mean, best = stage.averages(W), stage.problem.B_star
        passed = W @ mean.kept
        added = {  # X, what the stage adds to each part: E X, E XWψ and E tr XWXᵀ
            "loss": (mean.learned, mean.mixed, mean.square),
            "bias": (
                best - best @ mean.kept,
                best @ (passed - mean.metric),
                _trace(best @ (W - passed - passed.T + mean.metric), best),
            ),
        }
        (all_in, all_mixed, all_square), (own, own_mixed, own_square) = added["loss"], added["bias"]
        both = _trace(all_in @ W - all_mixed, best)
        added["variance"] = all_in - own, all_mixed - own_mixed, all_square - 2 * both + own_square
        for name, (moved, mixed, square) in added.items():
            c[name] += square - 2 * _trace(moved, V[name])
            V[name] = V[name] @ mean.kept - mixed
        W = mean.metric
    return Terms(loss=c["loss"] / 2, bias=c["bias"] / 2, cross=(c["loss"] - c["bias"] - c["variance"]) / 2)


def _once(weights: Complex, values: Complex) -> Array:
    """∮ of matrices given at the nodes."""
    return 2 * np.real(np.tensordot(weights, values, axes=1))


def _trace(X: Array, Y: Array) -> float:
    """tr XYᵀ."""
    return float(np.sum(X * Y))
