"""The law at any amount of data, over sketches: the fixed point at the nodes of a contour, and its terms.

At one z, with T_j the covariance of mode j between positions and D = 1/(τ+κ) (docs/finite-sample.md):
    Γ = (I + (1/NP) Σ_j D_j T_j)^-1,  τ_j = tr(Γ T_j)/P,  κ(1 - (1/M) Σ τD) = -z,
    b_j = Σ_pq Γ[p,q] T_j[p+1,q]/P.
N → ∞: Γ = I, τ = h, the frozen filter. At two, K₁₂x = D₁D₂(x + c₁₂[x]) in the `ladder`.
All is complex symmetric: transposes, never conjugates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from seqlaw.methods.expected import Population
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
from seqlaw.methods.resolvent import contour_kappa
from seqlaw.model.checks import Array

_STRIDE = 4.0
"""Factor between the amounts of data on the way from the frozen filter to N, …"""
_NEAR = 8.0
"""… which is left at so many tokens a dimension."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Nodes:
    """The solution at the nodes of contours: (settings × nodes × …), or without settings (1)–(5)."""

    kappa: Complex
    t: Complex
    """tr(Γ B_m)/P: τ = f t."""
    tau: Complex
    D: Complex
    gamma: Complex
    b: Complex

    def of(self, setting: int) -> Nodes:
        """The nodes of one setting."""
        return Nodes(**{name: x[setting] for name, x in vars(self).items()})

    def mirrored(self) -> Nodes:
        """With the other half of the contour behind."""
        return Nodes(**{name: mirrored(x) for name, x in vars(self).items()})


def frozen_nodes(own: Population, place: Positions, cells: Array, z: Complex) -> Nodes:
    """N = ∞: Γ = I; `cells` are their weights, settings × cells, and z is settings × nodes."""

    def spread(x: Array) -> Complex:
        return np.broadcast_to(x[:, None], (*z.shape, x.shape[-1])).astype(np.complex128)

    seen = cells * place.identity
    tau = (seen @ place.here.T) @ place.f.T
    kappa = contour_kappa(tau, own.weights, own.M, z)
    return Nodes(
        kappa=kappa,
        t=spread(seen @ place.here.T),
        tau=spread(tau),
        D=1 / (tau[:, None] + kappa[..., None]),
        gamma=spread(np.broadcast_to(place.identity, cells.shape)),
        b=spread((seen @ place.ahead.T) @ place.f.T),
    )


def nodes_at(
    own: Population, place: Positions, cells: Array, z: Complex, tokens: Array, dense: Array, start: Nodes
) -> Nodes:
    """The fixed point at so many tokens, `dense` of them a dimension, followed from the frozen filter."""
    stages = max(1, math.ceil(math.log(max(_NEAR / dense.min(), 1.0)) / math.log(_STRIDE)))
    first = np.maximum(tokens, tokens * _NEAR / dense)
    t, kappa = start.t, start.kappa
    for stage in range(1, stages + 1):
        here, last = first * (tokens / first) ** (stage / stages), stage == stages
        for _ in range(40 if last else 4):
            kappa, D, gamma = _given(own, place, z, here, t, kappa)
            A = products(place, cells[:, None, None], gamma) / here[:, None, None, None]
            slope = A @ _ladder_matrix(own, place, t, D, kappa)
            new = (gamma * cells[:, None]) @ place.here.T
            step = np.linalg.solve(np.eye(t.shape[-1]) - slope, (new - t)[..., None])[..., 0]
            t = t + step
            if np.max(np.abs(step)) <= (CLOSE if last else 0.05) * np.max(np.abs(t)):
                break
    kappa, D, gamma = _given(own, place, z, tokens, t, kappa)
    b = ((gamma * cells[:, None]) @ place.ahead.T) @ place.f.T
    return Nodes(kappa=kappa, t=t, tau=t @ place.f.T, D=D, gamma=gamma, b=b)


def _given(
    own: Population, place: Positions, z: Complex, tokens: Array, t: Complex, kappa: Complex
) -> tuple[Complex, Complex, Complex]:
    """κ, D and Γ at a t."""
    tau, M = t @ place.f.T, own.M[:, None]
    for _ in range(50):
        share = tau / (tau + kappa[..., None])
        value = kappa * (1 - share @ own.weights / M) + z
        step = value / (1 - share**2 @ own.weights / M)
        kappa = kappa - step
        if np.max(np.abs(step / kappa)) <= CLOSE:
            break
    D = 1 / (tau + kappa[..., None])
    q = D @ _weighted(own, place) / tokens[:, None, None]
    return kappa, D, place.inverse(place.identity + q @ place.here)


def _ladder_matrix(own: Population, place: Positions, t: Complex, D: Complex, kappa: Complex) -> Complex:
    """fᵀ K f at z₁ = z₂ (7)."""
    weighted, share = _weighted(own, place), (t @ place.f.T) * D
    s = D**2 @ weighted
    scale = (kappa**2 / (own.M[:, None] - share**2 @ own.weights))[..., None]
    plain = np.swapaxes(weighted * (D**2)[..., None], -1, -2) @ place.f
    return np.asarray(plain + (scale * s)[..., None] * s[..., None, :])


def _weighted(own: Population, place: Positions) -> Array:
    """f with the weights of the sum: those of an infinite one alone fill the range of floating point."""
    return own.weights[:, None] * place.f


# --- one setting: all pairs of nodes -------------------------------------------------------------------


def terms(
    own: Population,
    place: Positions,
    cells: Array,
    nodes: Nodes,
    filters: tuple[Complex, Complex],
    test: Array,
    tokens: float,
    *,
    split: bool,
) -> Terms:
    """(8)–(13) for one setting; `filters` are the weights of the contour times ψ/z and times ψ.

    `own` has that setting alone, `test` is h'. Without `split` bias and cross are left at 0.
    """
    response, residual = filters
    pair = _Pairs(own, place, cells, nodes, test, tokens)
    linear = _linear(pair, nodes, (own.a * test)[None])[:, 0]
    loss = over_pairs(response, response, pair.moment()) / 2 - 2 * float(np.sum(response * linear).real)
    if not split:
        return Terms(loss=loss, bias=0.0, cross=0.0)
    student = _Student(own, pair)
    square = over_pairs(residual, residual, student.squared())
    once = 2 * float(np.sum(residual * student.once(test)).real)
    return Terms(
        loss=loss,
        bias=square / 2,
        cross=over_pairs(residual, response, student.mixed()) - once - square,
    )


class _Pairs:
    """Forms between all pairs of nodes, with x = h' + ρ, ρ = f α from the ladder.

    Σ_k w_k x_k V_ik W_jk is a product of matrices for each column of [h' | f], contracted with (1, α).
    """

    def __init__(
        self, own: Population, place: Positions, cells: Array, nodes: Nodes, test: Array, tokens: float
    ) -> None:
        self.one, self.two = one, two = nodes, nodes.mirrored()
        self.weights, self.M = own.weights, float(own.M[0])
        self.place = place
        self.norm = 1 - self.plain(one.tau * one.D, two.tau * two.D) / self.M
        self.columns = test[None] * own.weights
        self.alpha: Complex = np.ones(1)
        self.ladder: Ladder | None = None
        scale = one.kappa[:, None] * two.kappa / self.M / self.norm
        if not math.isinf(tokens):
            f = place.f.T
            self.columns = np.concatenate([test[None], f]) * own.weights
            seen = self._seen(one.D, two.D)
            s, wide = seen[..., 1:], scale[..., None]
            K = outer(halves(one.D[:, None] * self.columns[1:]), halves(one.D[:, None] * f))
            K = K + (wide * s)[..., None] * s[..., None, :]
            source = self._seen(one.D * test, two.D)[..., 1:] + wide * seen[..., :1] * s
            self.ladder = Ladder(place, cells, one.gamma, K, source, tokens)
            rho = self.ladder.rho
            self.alpha = np.concatenate([np.ones((*rho.shape[:-1], 1)), rho], axis=-1)
        self.c = scale * self.form(one.D, two.D)

    def plain(self, left: Complex, right: Complex) -> Complex:
        """Σ_k w left_ik right_jk."""
        return np.asarray((left * self.weights) @ right.T)

    def form(self, left: Complex, right: Complex) -> Complex:
        """Σ_k w x left_ik right_jk."""
        return np.asarray(np.sum(self._seen(left, right) * self.alpha, axis=-1))

    def _seen(self, left: Complex, right: Complex) -> Complex:
        return np.asarray(np.swapaxes((left[:, None] * self.columns) @ right.T, -1, -2))

    def moment(self) -> Complex:
        """Y = E tr V₁G'V₂ᵀ = quad(h'+ρ) - lin₁(b^Λ) - lin₂(b̄^Λ) + sq(y^Λ) (8), (10)."""
        one, two = self.one, self.two
        e1, e2 = (_e(self, node)[:, None] for node in (one, two))
        u1, u2 = ((n.b + e * n.kappa[:, None]) * n.D for n, e in ((one, e1), (two, e2)))
        v1, v2 = ((n.b - e * n.tau) * n.D for n, e in ((one, e1), (two, e2)))
        Y = self.form(u1, u2) + self.c * self.plain(v1, v2)
        if self.ladder is None:
            return np.asarray(Y)
        lines = _linear(self, one, self.place.f.T)
        Y = Y - np.sum(lines[:, None] * self.ladder.behind, axis=-1)
        Y = Y - np.sum(mirrored(lines) * self.ladder.ahead, axis=-1)
        return np.asarray(Y + self.ladder.both @ (self.weights @ self.place.f))


def _e(pair: _Pairs, node: Nodes) -> Complex:
    """e = (1/M) Σ b D."""
    return np.asarray((node.b * node.D) @ pair.weights / pair.M)


def _linear(pair: _Pairs, node: Nodes, x: Array) -> Complex:
    """lin(x) = Σ b x D + κ e Σ x D for rows x: nodes × rows (10)."""
    weighted = (x * pair.weights).T
    return np.asarray(
        (node.b * node.D) @ weighted + (node.kappa * _e(pair, node))[:, None] * (node.D @ weighted)
    )


class _Student:
    """The forms with B* = C G^-1 in them: three resolvents, closed by leaving one column out (13)."""

    def __init__(self, own: Population, pair: _Pairs) -> None:
        D = 1 / (own.h[0] + own.kappa[0])
        self.a, self.pair = own.a, pair
        self.beta, self.beta2 = (float(x[0]) for x in own.predictor_means)
        self.c, self.hD = own.kappa[0] * D, own.h[0] * D  # hcω = hD/(κn)
        self.at1, self.at2 = self._at(pair.one), self._at(pair.two)

    def _at(self, node: Nodes) -> dict[str, Complex]:
        a, w, M, c, beta = self.a, self.pair.weights, self.pair.M, self.c, self.beta
        seen = node.tau * self.hD * node.D
        n, mixed = 1 - seen @ w / M, (a * seen) @ w / M
        o, e = 1 / (node.kappa * n), _e(self.pair, node)
        bq = (beta - mixed) * o
        f = ((node.b * node.D * (c * beta + (1 - c) * a)) @ w / M - e * mixed) / n
        inner = c * (a * beta - self.beta2) + (1 - c) * a * (a - beta)
        g = np.outer(bq, (1 - c) * a) + np.outer(o, self.hD * inner)
        gq = (self.beta2 - node.kappa * ((node.tau * node.D * g) @ w) / M) * o
        return {"e": e, "o": o, "bq": bq, "f": f, "gq": gq, "g": g}

    def once(self, test: Array) -> Complex:
        """oneB(h')."""
        node, at = self.pair.one, self.at1
        return np.asarray(
            node.kappa * ((node.D * (np.outer(at["gq"], self.c) + at["g"])) @ (test * self.pair.weights))
        )

    def squared(self) -> Complex:
        """quadB(h' + ρ)."""
        pair, one, two, a, hD = self.pair, self.pair.one, self.pair.two, self.a, self.hD
        V = a**2 - 2 * a * self.beta + self.beta2
        s = {name: x[:, None] for name, x in self.at1.items() if name != "g"}
        t = self.at2
        share = {  # of each row of node 1 in `pair`
            "hD": -s["o"] * t["gq"] - t["o"] * s["gq"],
            "hDa": s["o"] * t["bq"] + t["o"] * s["bq"],
            "hDhDV": s["o"] * t["o"],
        }
        rows = {"hD": one.D * hD, "hDa": one.D * (hD * a), "hDhDV": one.D * (hD**2 * V)}
        k1, kk = one.kappa[:, None], one.kappa[:, None] * two.kappa
        near = sum(share[name] * pair.plain(one.tau * rows[name], two.D) for name in rows)
        xi = (t["gq"] - kk * near / pair.M) / (k1 * pair.norm)
        far = sum(share[name] * pair.form(rows[name], two.D) for name in rows)
        return np.asarray(kk * (xi * pair.form(one.D, two.D) + far))

    def mixed(self) -> Complex:
        """quadBC(h' + ρ) - linB₁(b^Λ)."""
        pair, one, two, a, hD = self.pair, self.pair.one, self.pair.two, self.a, self.hD
        s = {name: x[:, None] for name, x in self.at1.items() if name != "g"}
        t, k1, k2, seen = self.at2, one.kappa[:, None], two.kappa, two.D * two.b
        step = one.D * (hD * (a - self.beta))
        rest = (  # share, row of node 1, row of node 2
            (k2 * s["o"] * t["e"], one.D * (hD * a), two.D),
            (-k2 * s["o"] * t["f"], one.D * hD, two.D),
            (s["bq"], one.D, seen),
            (s["o"], step, seen),
        )
        near = sum(share * pair.plain(one.tau * row, other) for share, row, other in rest)
        zeta = (t["f"] - k1 * near / pair.M) / (k1 * pair.norm)
        far = sum(share * pair.form(row, other) for share, row, other in rest)
        found = k1 * (k2 * zeta * pair.form(one.D, two.D) + far)
        if pair.ladder is None:
            return np.asarray(found)
        line = k1 * (s["bq"] * one.D + s["o"] * step) @ pair.columns[1:].T
        return np.asarray(found - np.sum(line[:, None] * pair.ladder.behind, axis=-1))
