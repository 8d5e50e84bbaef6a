"""The law at any amount of data, over sketches: the fixed point at the nodes of a contour, and its terms.

At one z, with T_j the covariance of mode j between positions and D = 1/(τ+κ) (docs/finite-sample.md):
    Γ = (I + (1/NP) Σ_j D_j T_j)^-1,  τ_j = tr(Γ T_j)/P,  κ(1 - (1/M) Σ τD) = -z,
    b_j = Σ_pq Γ[p,q] T_j[p+1,q]/P.
N → ∞: Γ = I, τ = h, the frozen filter. At two, K₁₂x = D₁D₂(x + c₁₂[x]) in `two_point`.
All is complex symmetric: transposes, never conjugates.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqlaw.methods.expected import Population
from seqlaw.methods.finite_sample.positions import Complex, Positions, halves
from seqlaw.methods.finite_sample.two_point import CLOSE, Terms, TwoPoint, outer, over_pairs, products
from seqlaw.methods.functional import linear, mirrored, pair_scale, pairs, students
from seqlaw.methods.resolvent import newton, path_kappa
from seqlaw.model.checks import Array

_STRIDE = 4.0
"""The solution is followed from the frozen filter to N; this is the factor between amounts of data, …"""
_NEAR = 8.0
"""… starting at so many tokens per dimension."""
_STALE = 0.1
"""The slope of Newton's method, most of its cost, is kept while each step is this much shorter than the last;
the error left is then this share of the step."""


@dataclass(frozen=True, kw_only=True, eq=False)
class FixedPoint:
    """The solution at the nodes of contours: settings × nodes × …, or nodes × … of one setting.

    docs/finite-sample.md, (1) to (5).
    """

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

    @classmethod
    def stacked(cls, points: Sequence[FixedPoint]) -> FixedPoint:
        """The nodes of so many settings."""
        return cls(**{name: np.stack([vars(one)[name] for one in points]) for name in vars(points[0])})


def frozen_nodes(own: Population, place: Positions, cells: Array, z: Complex) -> FixedPoint:
    """The fixed point at N = ∞, Γ = I; `cells` has weights, settings × cells; z is settings × nodes."""

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
    per_dimension: Array,
    start: FixedPoint,
) -> FixedPoint:
    """The fixed point at these tokens, in all and per dimension, followed from the frozen filter."""
    stages = max(1, math.ceil(math.log(max(_NEAR / per_dimension.min(), 1.0)) / math.log(_STRIDE)))
    first = np.maximum(tokens, tokens * _NEAR / per_dimension)
    t, kappa = start.t, start.kappa
    for stage in range(1, stages + 1):
        here, last = first * (tokens / first) ** (stage / stages), stage == stages
        close, before, anew = CLOSE if last else 0.05, math.inf, True
        for _ in range(80 if last else 8):
            kappa, D, gamma = _given(own, place, z, here, t, kappa)
            if anew:
                A = products(place, cells, gamma) / here[:, None, None, None]
                slope = A @ _two_point_matrix(own, place, t, D, kappa)
            new = (gamma * cells[:, None]) @ place.here.T
            step = np.linalg.solve(np.eye(t.shape[-1]) - slope, (new - t)[..., None])[..., 0]
            t = t + step
            size = float(np.max(np.abs(step)) / np.max(np.abs(t)))
            if size <= (close if anew else _STALE * close):
                break
            before, anew = size, not size <= _STALE * before
    kappa, D, gamma = _given(own, place, z, tokens, t, kappa)
    b = ((gamma * cells[:, None]) @ place.ahead.T) @ place.f.T
    return FixedPoint(kappa=kappa, t=t, tau=t @ place.f.T, D=D, gamma=gamma, b=b)


def _given(
    own: Population, place: Positions, z: Complex, tokens: Array, t: Complex, kappa: Complex
) -> tuple[Complex, Complex, Complex]:
    """κ, D and Γ for a given t."""
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
    """f times the weights of the sum over modes; of an infinite sum the weights alone could overflow."""
    return own.weights[:, None] * place.f


# --- all pairs of nodes --------------------------------------------------------------------------------


def terms(
    own: Population,
    place: Positions,
    cells: Array,
    nodes: FixedPoint,
    filters: tuple[Complex, Complex],
    test: Array,
    tokens: Array | None,
    *,
    split: bool,
) -> list[Terms]:
    """(8)–(13) for each setting; `filters` are the weights of the contour times ψ/z and times ψ.

    `test` is h'; `tokens` None means infinite data. Without `split` bias and cross are left at 0.
    """
    response, residual = filters
    pair = _Pairs(own, place, cells, nodes, test, tokens)
    seen = (own.a * test * own.weights)[..., None]
    once = linear(nodes.kappa, nodes.D, nodes.b, pair.student.e, seen)[..., 0]
    loss = over_pairs(response, response, pair.moment()) / 2 - 2 * np.sum(response * once, axis=-1).real
    bias = cross = np.zeros_like(loss)
    if split:
        best = _BestStudent(own, pair)
        square = over_pairs(residual, residual, best.squared())
        single = 2 * np.sum(residual * best.once(test), axis=-1).real
        bias, cross = square / 2, over_pairs(residual, response, best.mixed()) - single - square
    rows = zip(loss.tolist(), bias.tolist(), cross.tolist(), strict=True)
    return [Terms(loss=one, bias=two, cross=three) for one, two, three in rows]


class _Pairs:
    """Forms between all pairs of nodes, with x = h' + ρ, ρ = f α from `two_point`.

    Σ_k w_k x_k V_ik W_jk is a product of matrices for each column of [h' | f], contracted with (1, α).
    """

    def __init__(
        self,
        own: Population,
        place: Positions,
        cells: Array,
        nodes: FixedPoint,
        test: Array,
        tokens: Array | None,
    ) -> None:
        self.nodes, self.place, self.weights, self.M = nodes, place, own.weights, own.M[:, None, None]
        self.scale = pair_scale(nodes.kappa, nodes.D, nodes.tau, own.weights, self.M)
        self.student = students(nodes.kappa, nodes.D, nodes.tau, nodes.b, own.weights, self.M)
        self.columns = test[:, None] * own.weights
        self.alpha: Complex = np.ones(1)
        self.system: TwoPoint | None = None
        if tokens is not None:
            f, D = place.f.T, nodes.D
            every = np.broadcast_to(f, (len(test), *f.shape))
            self.columns = np.concatenate([test[:, None], every], axis=1) * own.weights
            seen = self._seen(D, D)
            s, wide = seen[..., 1:], (self.scale / self.M)[..., None]
            apart = D[..., None, :]
            K = outer(halves(apart * self.columns[:, None, 1:], -4), halves(apart * f, -4))
            K = K + (wide * s)[..., None] * s[..., None, :]
            source = self._seen(D * test[:, None], D)[..., 1:] + wide * seen[..., :1] * s
            self.system = TwoPoint(place, cells, nodes.gamma, K, source, tokens)
            rho = self.system.rho
            self.alpha = np.concatenate([np.ones((*rho.shape[:-1], 1)), rho], axis=-1)
        self.DD = self.form(nodes.D, nodes.D)

    def form(self, left: Complex, right: Complex) -> Complex:
        """Σ_k w x left_ik right_jk."""
        return np.asarray(np.sum(self._seen(left, right) * self.alpha, axis=-1))

    def _seen(self, left: Complex, right: Complex) -> Complex:
        columns = self.columns[:, None, None]
        return outer(halves(left, -3)[..., None, :] * columns, halves(right, -3)[..., None, :])[..., 0]

    def moment(self) -> Complex:
        """Y = E tr V₁G'V₂ᵀ = quad(h'+ρ) - lin₁(b^Λ) - lin₂(b̄^Λ) + sq(y^Λ) (8), (10)."""
        e, u, v = self.student
        Y = self.form(u, u) + self.scale / self.M * self.DD * pairs(v, self.weights, v)
        if self.system is None:
            return np.asarray(Y)
        weighted = self.weights[:, None] * self.place.f
        lines = linear(self.nodes.kappa, self.nodes.D, self.nodes.b, e, weighted)
        there = np.concatenate([lines, np.conj(lines)], axis=-2)
        Y = Y - np.sum(lines[..., None, :] * self.system.behind, axis=-1)
        Y = Y - np.sum(there[..., None, :, :] * self.system.ahead, axis=-1)
        return np.asarray(Y + self.system.both @ weighted.sum(axis=0))


class _BestStudent:
    """The forms (13) with the best student B* = C G^-1, a third resolvent, at all pairs of nodes.

    The letters are those of docs/finite-sample.md, §5. At each of the K nodes: omega = κ_0 ω = 1/(κn),
    beta_Q = tr B*Q/M, gamma_Q = tr B*QB*ᵀ/M, f = tr B*ᵀSbSᵀQ/M, e = (1/M) Σ bD, and g = g₁ (K × modes).
    Per mode: c = κ_0 D₀ and hD_0 = h D₀, so that hcω = hD_0 omega. All of them for each setting.
    """

    def __init__(self, own: Population, pair: _Pairs) -> None:
        nodes, w, M, a = pair.nodes, pair.weights, own.M[:, None], own.a
        D = 1 / (own.h + own.kappa[:, None])
        self.a, self.pair, self.c, self.hD_0 = a, pair, own.kappa[:, None] * D, own.h * D
        self.beta, self.beta2 = (x[:, None] for x in own.predictor_means)
        seen = nodes.tau * self.hD_0[:, None] * nodes.D
        n, mixed = 1 - seen @ w / M, (a * seen) @ w / M
        self.omega, self.e = 1 / (nodes.kappa * n), pair.student.e[..., 0]
        self.beta_Q = (self.beta - mixed) * self.omega
        c, beta = self.c, self.beta
        turned = (c * beta + (1 - c) * a)[:, None]
        self.f = ((nodes.b * nodes.D * turned) @ w / M - self.e * mixed) / n
        inner = c * (a * beta - self.beta2) + (1 - c) * a * (a - beta)
        self.g = self.beta_Q[..., None] * ((1 - c) * a)[:, None]
        self.g = self.g + self.omega[..., None] * (self.hD_0 * inner)[:, None]
        self.gamma_Q = (self.beta2 - nodes.kappa * ((nodes.tau * nodes.D * self.g) @ w) / M) * self.omega

    def once(self, test: Array) -> Complex:
        """oneB(h')."""
        nodes, rows = self.pair.nodes, self.gamma_Q[..., None] * self.c[:, None] + self.g
        seen = (test * self.pair.weights)[..., None]
        return np.asarray(nodes.kappa * ((nodes.D * rows) @ seen)[..., 0])

    def squared(self) -> Complex:
        """quadB(h' + ρ)."""
        D, a, hD_0 = self.pair.nodes.D, self.a, self.hD_0[:, None]
        V = (a**2 - 2 * a * self.beta + self.beta2)[:, None]
        omega, beta_Q, gamma_Q = _here(self.omega, self.beta_Q, self.gamma_Q)
        k2, omega2, beta_Q2, gamma_Q2 = _there(self.pair.nodes.kappa, self.omega, self.beta_Q, self.gamma_Q)
        return self._closed(
            gamma_Q2,
            (-k2 * (omega * gamma_Q2 + omega2 * gamma_Q), D * hD_0, D),
            (k2 * (omega * beta_Q2 + omega2 * beta_Q), D * (hD_0 * a), D),
            (k2 * omega * omega2, D * (hD_0**2 * V), D),
        )

    def mixed(self) -> Complex:
        """quadBC(h' + ρ) - linB₁(b^Λ)."""
        pair, nodes, D, hD_0 = self.pair, self.pair.nodes, self.pair.nodes.D, self.hD_0[:, None]
        (omega, beta_Q), bD = _here(self.omega, self.beta_Q), nodes.b * nodes.D
        k2, e2, f2 = _there(nodes.kappa, self.e, self.f)
        step = D * (hD_0 * (self.a - self.beta)[:, None])
        closed = self._closed(
            f2,
            (k2 * omega * e2, D * (hD_0 * self.a), D),
            (-k2 * omega * f2, D * hD_0, D),
            (beta_Q, D, bD),
            (omega, step, bD),
        )
        if pair.system is None:
            return closed
        columns = np.swapaxes(pair.columns[:, 1:], -1, -2)
        line = nodes.kappa[..., None] * (beta_Q * D + omega * step) @ columns
        return np.asarray(closed - np.sum(line[..., None, :] * pair.system.behind, axis=-1))

    def _closed(self, top: Complex, *rest: tuple[Complex, Complex, Complex]) -> Complex:
        """κ₁(κ₂ζ Σ xD₁D₂ + Σ x rest), ζ = (M top - κ₁ Σ τ₁ rest)/(κ₁n₁₂), rest = Σ share · row₁ · row₂."""
        pair, k1 = self.pair, self.pair.nodes.kappa[..., None]
        w, tau = pair.weights, pair.nodes.tau
        tau_rest = sum(share * pairs(tau * row, w, other) for share, row, other in rest)
        x_rest = sum(share * pair.form(row, other) for share, row, other in rest)
        # The scale of a pair is Mκ₁κ₂/n₁₂; M may be infinite.
        return np.asarray(pair.scale * (top / k1 - tau_rest / pair.M) * pair.DD + k1 * x_rest)


def _here(*values: Complex) -> list[Complex]:
    """At the first node of each pair."""
    return [x[..., None] for x in values]


def _there(*values: Complex) -> list[Complex]:
    """At the second node of each pair."""
    return [mirrored(x)[..., None, :] for x in values]
