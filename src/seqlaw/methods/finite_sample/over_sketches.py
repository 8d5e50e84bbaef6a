"""The law at any amount of data, over sketches: the fixed point at the nodes of a contour, and its terms.

At one z, with T_j the covariance of mode j between positions and D = 1/(τ+κ) (docs/finite-sample.md):
    Γ = (I + (1/NP) Σ_j D_j T_j)^-1,  τ_j = tr(Γ T_j)/P,  κ(1 - (1/M) Σ τD) = -z,
    b_j = Σ_pq Γ[p,q] T_j[p+1,q]/P.
N → ∞: Γ = I, τ = h, the frozen filter. At two, K₁₂x = D₁D₂(x + c₁₂[x]) in `two_point`.
All is complex symmetric: transposes, never conjugates.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from seqlaw.methods.expected import Population
from seqlaw.methods.finite_sample.positions import Complex, Positions
from seqlaw.methods.finite_sample.two_point import CLOSE, Terms, TwoPoint, halves, outer, over_pairs, products
from seqlaw.methods.functional import linear, mirrored, pair_scale, pairs, students
from seqlaw.methods.resolvent import newton, path_kappa
from seqlaw.model.checks import Array

_STRIDE = 4.0
"""Factor between the amounts of data on the way from the frozen filter to N, …"""
_NEAR = 8.0
"""… which is left at so many tokens a dimension."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FixedPoint:
    """The solution at the nodes of contours: (settings × nodes × …), or without settings (1)–(5)."""

    kappa: Complex
    t: Complex
    """tr(Γ B_m)/P: τ = f t."""
    tau: Complex
    D: Complex
    gamma: Complex
    b: Complex

    def of(self, setting: int) -> FixedPoint:
        """The nodes of one setting."""
        return FixedPoint(**{name: x[setting] for name, x in vars(self).items()})


def frozen_nodes(own: Population, place: Positions, cells: Array, z: Complex) -> FixedPoint:
    """N = ∞: Γ = I; `cells` are their weights, settings × cells, and z is settings × nodes."""

    def spread(x: Array) -> Complex:
        return np.broadcast_to(x[:, None], (*z.shape, x.shape[-1])).astype(np.complex128)

    seen = cells * place.identity
    tau = (seen @ place.here.T) @ place.f.T
    kappa = path_kappa(tau, own.weights, own.M, z)
    return FixedPoint(
        kappa=kappa,
        t=spread(seen @ place.here.T),
        tau=spread(tau),
        D=1 / (tau[:, None] + kappa[..., None]),
        gamma=spread(np.broadcast_to(place.identity, cells.shape)),
        b=spread((seen @ place.ahead.T) @ place.f.T),
    )


def nodes_at(
    own: Population,
    place: Positions,
    cells: Array,
    z: Complex,
    tokens: Array,
    dense: Array,
    start: FixedPoint,
) -> FixedPoint:
    """The fixed point at so many tokens, `dense` of them a dimension, followed from the frozen filter."""
    stages = max(1, math.ceil(math.log(max(_NEAR / dense.min(), 1.0)) / math.log(_STRIDE)))
    first = np.maximum(tokens, tokens * _NEAR / dense)
    t, kappa = start.t, start.kappa
    for stage in range(1, stages + 1):
        here, last = first * (tokens / first) ** (stage / stages), stage == stages
        for _ in range(40 if last else 4):
            kappa, D, gamma = _given(own, place, z, here, t, kappa)
            A = products(place, cells[:, None, None], gamma) / here[:, None, None, None]
            slope = A @ _two_point_matrix(own, place, t, D, kappa)
            new = (gamma * cells[:, None]) @ place.here.T
            step = np.linalg.solve(np.eye(t.shape[-1]) - slope, (new - t)[..., None])[..., 0]
            t = t + step
            if np.max(np.abs(step)) <= (CLOSE if last else 0.05) * np.max(np.abs(t)):
                break
    kappa, D, gamma = _given(own, place, z, tokens, t, kappa)
    b = ((gamma * cells[:, None]) @ place.ahead.T) @ place.f.T
    return FixedPoint(kappa=kappa, t=t, tau=t @ place.f.T, D=D, gamma=gamma, b=b)


def _given(
    own: Population, place: Positions, z: Complex, tokens: Array, t: Complex, kappa: Complex
) -> tuple[Complex, Complex, Complex]:
    """κ, D and Γ at a t."""
    tau = t @ place.f.T
    kappa = newton(tau, own.weights, own.M[:, None], z, kappa, close=CLOSE)[0]
    D = 1 / (tau + kappa[..., None])
    q = D @ _weighted(own, place) / tokens[:, None, None]
    return kappa, D, place.inverse(place.identity + q @ place.here)


def _two_point_matrix(own: Population, place: Positions, t: Complex, D: Complex, kappa: Complex) -> Complex:
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
    nodes: FixedPoint,
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
    once = linear(nodes.kappa, nodes.D, nodes.b, pair.student.e, (own.a * test * own.weights)[:, None])[:, 0]
    loss = over_pairs(response, response, pair.moment()) / 2 - 2 * float(np.sum(response * once).real)
    if not split:
        return Terms(loss=loss, bias=0.0, cross=0.0)
    best = _Best(own, pair)
    square = over_pairs(residual, residual, best.squared())
    single = 2 * float(np.sum(residual * best.once(test)).real)
    return Terms(
        loss=loss,
        bias=square / 2,
        cross=over_pairs(residual, response, best.mixed()) - single - square,
    )


class _Pairs:
    """Forms between all pairs of nodes, with x = h' + ρ, ρ = f α from `two_point`.

    Σ_k w_k x_k V_ik W_jk is a product of matrices for each column of [h' | f], contracted with (1, α).
    """

    def __init__(
        self, own: Population, place: Positions, cells: Array, nodes: FixedPoint, test: Array, tokens: float
    ) -> None:
        self.nodes, self.place, self.weights, self.M = nodes, place, own.weights, float(own.M[0])
        self.scale = pair_scale(nodes.kappa, nodes.D, nodes.tau, own.weights, self.M)
        self.student = students(nodes.kappa, nodes.D, nodes.tau, nodes.b, own.weights, self.M)
        self.columns = test[None] * own.weights
        self.alpha: Complex = np.ones(1)
        self.system: TwoPoint | None = None
        if not math.isinf(tokens):
            f, D = place.f.T, nodes.D
            self.columns = np.concatenate([test[None], f]) * own.weights
            seen = self._seen(D, D)
            s, wide = seen[..., 1:], self.scale[..., None] / self.M
            K = outer(halves(D[:, None] * self.columns[1:]), halves(D[:, None] * f))
            K = K + (wide * s)[..., None] * s[..., None, :]
            source = self._seen(D * test, D)[..., 1:] + wide * seen[..., :1] * s
            self.system = TwoPoint(place, cells, nodes.gamma, K, source, tokens)
            rho = self.system.rho
            self.alpha = np.concatenate([np.ones((*rho.shape[:-1], 1)), rho], axis=-1)
        self.DD = self.form(nodes.D, nodes.D)

    def form(self, left: Complex, right: Complex) -> Complex:
        """Σ_k w x left_ik right_jk."""
        return np.asarray(np.sum(self._seen(left, right) * self.alpha, axis=-1))

    def _seen(self, left: Complex, right: Complex) -> Complex:
        return outer(halves(left)[:, :, None] * self.columns, halves(right)[:, :, None])[..., 0]

    def moment(self) -> Complex:
        """Y = E tr V₁G'V₂ᵀ = quad(h'+ρ) - lin₁(b^Λ) - lin₂(b̄^Λ) + sq(y^Λ) (8), (10)."""
        e, u, v = self.student
        Y = self.form(u, u) + self.scale / self.M * self.DD * pairs(v, self.weights, v)
        if self.system is None:
            return np.asarray(Y)
        weighted = self.weights[:, None] * self.place.f
        lines = linear(self.nodes.kappa, self.nodes.D, self.nodes.b, e, weighted)
        Y = Y - np.sum(lines[:, None] * self.system.behind, axis=-1)
        Y = Y - np.sum(mirrored(lines.T).T * self.system.ahead, axis=-1)
        return np.asarray(Y + self.system.both @ weighted.sum(axis=0))


class _Best:
    """The forms with B* = C G^-1 in them: three resolvents, closed by leaving one column out (13)."""

    def __init__(self, own: Population, pair: _Pairs) -> None:
        nodes, w, M, a = pair.nodes, pair.weights, pair.M, own.a
        D = 1 / (own.h[0] + own.kappa[0])
        self.a, self.pair, self.c, self.hD = a, pair, own.kappa[0] * D, own.h[0] * D  # hcω = hD/(κn)
        self.beta, self.beta2 = (float(x[0]) for x in own.predictor_means)
        seen = nodes.tau * self.hD * nodes.D
        n, mixed = 1 - seen @ w / M, (a * seen) @ w / M
        self.o, self.e = 1 / (nodes.kappa * n), pair.student.e[:, 0]
        self.bq = (self.beta - mixed) * self.o
        c, beta = self.c, self.beta
        self.f = ((nodes.b * nodes.D * (c * beta + (1 - c) * a)) @ w / M - self.e * mixed) / n
        inner = c * (a * beta - self.beta2) + (1 - c) * a * (a - beta)
        self.g = np.outer(self.bq, (1 - c) * a) + np.outer(self.o, self.hD * inner)
        self.gq = (self.beta2 - nodes.kappa * ((nodes.tau * nodes.D * self.g) @ w) / M) * self.o

    def once(self, test: Array) -> Complex:
        """oneB(h')."""
        nodes, rows = self.pair.nodes, np.outer(self.gq, self.c) + self.g
        return np.asarray(nodes.kappa * ((nodes.D * rows) @ (test * self.pair.weights)))

    def squared(self) -> Complex:
        """quadB(h' + ρ)."""
        D, a, hD = self.pair.nodes.D, self.a, self.hD
        V = a**2 - 2 * a * self.beta + self.beta2
        o, bq, gq = self.o[:, None], self.bq[:, None], self.gq[:, None]
        k2, o2, bq2, gq2 = (mirrored(x) for x in (self.pair.nodes.kappa, self.o, self.bq, self.gq))
        return self._closed(
            gq2,
            (-k2 * (o * gq2 + o2 * gq), D * hD, D),
            (k2 * (o * bq2 + o2 * bq), D * (hD * a), D),
            (k2 * o * o2, D * (hD**2 * V), D),
        )

    def mixed(self) -> Complex:
        """quadBC(h' + ρ) - linB₁(b^Λ)."""
        pair, nodes, D, hD = self.pair, self.pair.nodes, self.pair.nodes.D, self.hD
        o, bq, bD = self.o[:, None], self.bq[:, None], nodes.b * nodes.D
        k2, e2, f2 = (mirrored(x) for x in (nodes.kappa, self.e, self.f))
        step = D * (hD * (self.a - self.beta))
        found = self._closed(
            f2, (k2 * o * e2, D * (hD * self.a), D), (-k2 * o * f2, D * hD, D), (bq, D, bD), (o, step, bD)
        )
        if pair.system is None:
            return found
        line = nodes.kappa[:, None] * (bq * D + o * step) @ pair.columns[1:].T
        return np.asarray(found - np.sum(line[:, None] * pair.system.behind, axis=-1))

    def _closed(self, top: Complex, *rest: tuple[Complex, Complex, Complex]) -> Complex:
        """κ₁(κ₂ζ Σ xD₁D₂ + Σ x rest), ζ = (M top - κ₁ Σ τ₁ rest)/(κ₁n₁₂), rest = Σ share · row₁ · row₂."""
        pair, k1 = self.pair, self.pair.nodes.kappa[:, None]
        w, tau = pair.weights, pair.nodes.tau
        near = sum(share * pairs(tau * row, w, other) for share, row, other in rest)
        far = sum(share * pair.form(row, other) for share, row, other in rest)
        # The scale of a pair is Mκ₁κ₂/n₁₂; M may be infinite.
        return np.asarray(pair.scale * (top / k1 - near / pair.M) * pair.DD + k1 * far)
