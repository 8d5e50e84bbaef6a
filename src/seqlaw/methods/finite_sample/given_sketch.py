"""The law at any amount of data, for one sketch: `over_sketches` with matrices M × M instead of sums.

With F_m = S diag(f_m) Sᵀ the ladder is fᵀK₁₂f = tr(F_m Q₁ F_n Q₂), Q = (Σ t_m F_m - z)^-1: nothing is d × d.
Nodes start from the solution over sketches, which is O(1/M) away.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqlaw.methods.finite_sample.ladder import (
    CLOSE,
    Ladder,
    Terms,
    halves,
    mirrored,
    outer,
    over_pairs,
    products,
)
from seqlaw.methods.finite_sample.positions import Complex, Positions
from seqlaw.model.checks import Array
from seqlaw.model.sketch import Problem


@dataclass(frozen=True, kw_only=True, eq=False)
class SketchNodes:
    """The solution at the nodes of a contour: Γ on the cells, Q, and C = S diag(b) Sᵀ."""

    gamma: Complex
    Q: Complex
    C: Complex


def lifted(S: Array, place: Positions) -> Array:
    """F_m for all m, r × M × M."""
    return np.stack([(S * column) @ S.T for column in place.f.T])


def sketch_nodes(
    F: Array, place: Positions, cells: Array, z: Complex, tokens: float, t: Complex
) -> SketchNodes:
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
    return SketchNodes(gamma=gamma, Q=Q, C=np.tensordot(ahead, F, axes=1))


def sketch_terms(
    problem: Problem,
    test: Problem,
    F: Array,
    place: Positions,
    cells: Array,
    nodes: SketchNodes,
    filters: tuple[Complex, Complex],
    tokens: float,
) -> Terms:
    """(8)–(12) for one sketch, at any test length; each without what does not depend on the data.

    B_L - B*' = [W - B*ψ(Ĝ)] + Q̂ g(Ĝ), W = B* - B*' (`sampled_terms`).
    """
    response, residual = filters
    n, M = len(nodes.Q), F.shape[1]
    Z, best = nodes.C @ nodes.Q, problem.B_star @ nodes.Q
    G = test.G
    W = problem.B_star - test.B_star
    # Σ_m α_m tr(X_i F_m Y_jᵀ) for x = h' + ρ: columns G' and, with data, F.
    columns = G[None] if np.isinf(tokens) else np.concatenate([G[None], F])

    def seen(left: Complex, right: Complex) -> Complex:
        rows = halves(left)[:, :, None] @ columns
        return outer(rows.reshape(2, n, len(columns), -1), halves(right).reshape(2, n, 1, -1))[..., 0]

    def trace(left: Complex, right: Array) -> Complex:
        """tr(left_i right), for one right or several."""
        return np.asarray(left.reshape(n, -1) @ np.swapaxes(right, -1, -2).reshape(-1, M * M).T)

    ladder = None
    alpha: Complex = np.ones(1)
    if not np.isinf(tokens):
        FQ, GQ = F @ halves(nodes.Q)[:, :, None], G @ halves(nodes.Q)
        flat = FQ.reshape(2, n, len(F), -1)
        K = outer(flat, FQ.swapaxes(-1, -2).reshape(flat.shape))
        source = outer(flat, GQ.swapaxes(-1, -2).reshape(2, n, 1, -1))[..., 0]
        ladder = Ladder(place, cells, nodes.gamma, K, source, tokens)
        alpha = np.concatenate([np.ones((n, 2 * n, 1)), ladder.rho], axis=-1)
    moment = np.sum(seen(Z, Z) * alpha, axis=-1)
    squared = np.sum(seen(best, best) * alpha, axis=-1)
    mixed = np.sum(seen(best, Z) * alpha, axis=-1)
    if ladder is not None:
        lines = trace(Z, F)
        moment = moment - np.sum(lines[:, None] * ladder.behind, axis=-1)
        moment = moment - np.sum(mirrored(lines) * ladder.ahead, axis=-1)
        moment = moment + ladder.both @ np.trace(F, axis1=1, axis2=2)
        mixed = mixed - np.sum(trace(best, F)[:, None] * ladder.behind, axis=-1)
    once = _once(residual, trace(best, G @ problem.B_star.T))
    moved = _once(residual, trace(best, G @ W.T))
    shifted = _once(response, trace(Z, G @ W.T))
    linear = _once(response, trace(Z, test.C))
    square = over_pairs(residual, residual, squared)
    return Terms(
        loss=over_pairs(response, response, moment) / 2 - linear,
        bias=square / 2 + moved,
        cross=over_pairs(residual, response, mixed) - once - square + shifted - moved,
    )


def _once(weights: Complex, values: Complex) -> float:
    """∮ of a function given at the nodes."""
    return 2 * float(np.real(weights @ values[:, 0]))
