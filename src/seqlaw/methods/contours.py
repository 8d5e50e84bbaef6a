"""Paths of integration around a spectrum, and the weights that turn a filter into a sum over their nodes.

For every f(z) = ∫ dν(μ)/(μ - z), that is every trace of the resolvent, and every filter r(μ),
    ∫ r(μ)/μ dν = ω_0 f(0) + Im Σ_k ω_k r(z_k) f(z_k),        ω_k = -(dz/z)_k/π on a path z,
with nodes on the upper half-plane only, since f(z̄) = conj f(z). A contour encloses 0 and the spectrum, so the
constant 1 gives nothing: 1 - ψ has the weights of -ψ. A ray and a loop leave 0 outside, since a filter may
have a pole or a cut on the negative axis, and take 1 - ψ as it is. Where r(0) = 1 the value at z = 0 is taken
off, ω_0 = -Im Σ_k ω_k r(z_k): a constant f gives 0 exactly, and the error is relative to the answer, not to
f(0).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from seqlaw.methods.accuracy import Ray
from seqlaw.methods.resolvent import Complex
from seqlaw.model.checks import Array, InputError
from seqlaw.model.filters import RAY_ANGLE, RAY_TOP, Filter, Schedule

HYPERBOLA_STEPS = 200
"""Σγ/γ below which ψ is not near enough to an exponential for the hyperbola (at 100: 6e-12 of F(0))."""
_NOTHING = 1e-12
"""1 - ψ below this is left out on a loop."""
_FAR = 1e6
"""Times the edge: where (Ĝ - z)^-1 is -1/z to as much."""
MOST_STEPS = 1e5
"""Σγ/γ that an ellipse takes, with some 2000 nodes; only momentum asks for more of one (`reaches`)."""
_HALF = 20
"""Nodes on half a hyperbola for ψ and ψ²: 1e-13 of F(0), and for momentum at L(1-β) = 100 ψ to 4e-11."""
_DECAY = 17.5
"""An ellipse errs by e^-2·17.5 = 6e-16 of what is integrated."""
# z = -μ(1 + sin(iu - φ)), u ≤ width, μ = factor·half/Λt for exp(-tz) to exp(-Λtz) (Weideman and Trefethen):
# φ has the largest (π² - 2πφ)/width, cosh width = ((π-2φ)Λ + 4φ - π)/((4φ-π) sin φ), factor = (4πφ-π²)/width.
_TUNED = {1: (4.4921, 1.1721, 1.0818), 2: (2.9416525, 1.1430971, 1.528045)}


@dataclass(frozen=True, kw_only=True, eq=False)
class Path:
    """Nodes z with weights ω, (B, K): one path a point, or (1, K) for all points and many filters.

    The nodes of a ray run from the outside in. `beyond` of them are too deep to be solved for: below the
    spectrum f - f(0) is proportional to z, which gives f there.
    """

    z: Complex
    omega: Complex
    beyond: int = 0
    encloses: bool = True
    """Whether it is a contour round 0."""
    endless: bool = False
    """Whether it is a ray, far out on which a residual counts as 0."""

    @property
    def solved(self) -> int:
        return int(self.z.shape[1]) - self.beyond

    def residuals(self, filters: Sequence[Filter], unit: float = 1.0) -> Complex:
        """ψ at the nodes, in units of 1/unit: (1, S, K) of all filters, or (B, 1, K) of each on its own."""
        rows = np.broadcast_to(self.z / unit, (len(filters), self.z.shape[1]))
        psi = np.zeros(rows.shape, dtype=np.complex128)
        for one, filter_, z in zip(psi, filters, rows, strict=True):
            one[:] = filter_.residual(z) if self.encloses else filter_.off_axis(z, beyond=not self.endless)
        return psi[None] if len(self.z) == 1 else psi[:, None]

    def weights(self, values: Complex, *, vanishes: bool) -> Weights:
        """The weights of a filter with these values at the nodes; `vanishes`: at 0, as 1 - ψ does."""
        all_nodes = self.omega[:, None] * values
        nodes, deep = all_nodes[..., : self.solved], all_nodes[..., self.solved :]
        fall = self.z[:, None, self.solved :] / self.z[:, None, self.solved - 1 : self.solved]
        nodes[..., -1] += np.sum(deep * fall, axis=-1)
        zero = np.sum(deep * (1 - fall), axis=-1).imag if vanishes else -nodes.sum(axis=-1).imag
        return Weights(zero=zero, nodes=nodes)

    def operators(self, psi: Complex) -> tuple[Complex, Complex, Complex]:
        """z, α and ζ (B, K) with φ(Ĝ) = Σ αR + conj, ψ(Ĝ) = -Σ ζR + conj, R = (Ĝ - z)^-1, from ψ (B, 1, K).

        R is not asked for at 0, where directions without data have a pole: what a loop wants there is
        extrapolated from its last node. The 1 of ψ = 1 - sφ is -zR at a node far away.
        """
        if self.encloses:
            response = self.omega * psi[:, 0] / -2j
            return self.z, response, response * self.z
        weights = self.weights(1 - psi, vanishes=True)
        z, response = self.z[:, : self.solved], weights.nodes[:, 0] / 2j
        last = z[:, -1]
        response[:, -1] += weights.zero[:, 0] * (1 + 1j * last.real / last.imag) / 2
        far = -_FAR * np.abs(z[:, :1])
        left = far * (1 - 2 * response.sum(axis=1, keepdims=True).real) / 2
        return (
            np.concatenate([far, z], axis=1),
            np.concatenate([np.zeros_like(left), response], axis=1),
            np.concatenate([left, response * z], axis=1),
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class Weights:
    """A filter on a path: `zero` f(0) + Im Σ nodes_k f_k for any f; (B or 1, S) and (B or 1, S, K)."""

    zero: Array
    nodes: Complex

    def of(self, f: Complex) -> Array:
        """At f (B, 1 + K) → (B, S)."""
        rows = f.reshape(len(self.zero), -1, f.shape[1])
        found = rows[..., :1].real * self.zero[:, None]
        found = found + (rows[..., 1:] @ self.nodes.swapaxes(1, 2)).imag
        return np.asarray(found.reshape(len(f), -1))

    def of_points(self, part: slice) -> Weights:
        """Those of some points."""
        return self if len(self.zero) == 1 else Weights(zero=self.zero[part], nodes=self.nodes[part])

    @property
    def halves(self) -> Complex:
        """α (B or 1, S, 1 + K) with the filter's operator r(G)/G = Σ_k α_k (G - z_k)^-1 + conj."""
        return np.concatenate([self.zero[..., None] / 2, self.nodes / 2j], axis=-1)


def hyperbola(total: Array, *, powers: int, half: int = _HALF) -> Path:
    """A hyperbola for each Σγ, tuned to exp(-Σγ z) and its powers up to 1 or 2."""
    factor, phi, width = _TUNED[powers]
    mu, step = (factor * half / (powers * total))[:, None], width / half
    u = (np.arange(half) + 0.5) * step
    z = -mu * (1 + np.sin(1j * u - phi))
    dz = -1j * mu * np.cos(1j * u - phi) * (step / np.pi)
    return Path(z=z, omega=-dz / z)


def ellipse(edge: Array, total: Array, gamma: Array, *, powers: int, decay: float = _DECAY) -> Path:
    """An ellipse with foci 0 and the edge for each point, for schedules of up to Σγ = total with peak γ.

    On its left tip, at -δ, ψ^powers grows to about exp(powers Σγ δ), kept near e³; on its right tip γ|z|
    stays where a schedule's power series is short. From γ·edge = 1 on, for a product of few steps, only the
    left one is bounded: up to 2 none grows more on the right.
    """
    largest = gamma * edge
    reach = np.where(largest < 1, 2 * np.maximum(0.6, (1 + largest) / 2) / largest - 1, np.inf)
    eta = np.arccosh(np.minimum(1 + 6 / (powers * total * edge), reach))[:, None]
    # Few nodes of a wide ellipse alias ψ²: at Σγ·edge = 0.15 by 7e-8 of F(0) on 9 nodes, at 1.5 by
    # 2e-13 on 14; on 16 by 3e-15 at any.
    n = max(math.ceil(decay / eta.min()) + 4, 16 if powers == 2 else 0)
    v = np.pi * (1 - (np.arange(n) + 0.5) / n)  # from the left tip along the upper half
    middle = edge[:, None] / 2
    z = middle * (1 + np.cosh(eta) * np.cos(v) + 1j * np.sinh(eta) * np.sin(v))
    # v falls from the left tip and dz/dv rises counter-clockwise, so the half's weight is +1/n.
    dz = middle * (-np.cosh(eta) * np.sin(v) + 1j * np.sinh(eta) * np.cos(v)) / n
    return Path(z=z, omega=-dz / z)


def ray(deepest: float, total: float, level: Ray) -> Path:
    """z = x e^{iφ} for all schedules with residuals near 1 below 1/total and none beyond `RAY_TOP`.

    docs/equivalent.md, (7').

    κ is solved for down to |z| = deepest. The integrand is analytic between the spectrum and the half-plane
    where ψ grows, so the trapezoid rule in log x converges as exp(-π²/2 step).
    """
    step, outside = level.step, round(level.outside / level.step)
    solved = outside + max(4, math.ceil(math.log(RAY_TOP / deepest) / step)) + 1
    last = min(deepest, 1 / total) * math.exp(-9)
    count = max(solved + 1, outside + math.ceil(math.log(RAY_TOP / last) / step) + 1)
    size = math.log(RAY_TOP) + step * (outside - np.arange(count))
    omega = np.full((1, count), step / math.pi, dtype=np.complex128)
    omega[0, [0, -1]] /= -math.expm1(-step)  # f ~ 1/z outside, f - f(0) ~ z inside: geometric sums
    z = np.exp(size) * np.exp(1j * RAY_ANGLE)
    return Path(z=z[None], omega=omega, beyond=count - solved, encloses=False, endless=True)


def loop(filters: Sequence[Filter], edge: Array, deepest: Array, level: Ray) -> Path:
    """A closed path from 0 round the spectrum, for filters with a cut or a pole on the negative axis.

    One for each filter, or where edge and deepest are of one spectrum one for all.
    z = r e^{iφ tanh u}/cosh u is a ray of angle φ as u → ∞, and meets the real axis at r beyond the edge. On
    the scale of s^power the ray has 45° at most, where a schedule's ψ falls. The trapezoid rule in u errs by
    exp(-2πφ/step) on the ray and by about as much at its end. κ is solved for down to |z| = deepest.
    """
    power, total = (np.array([getattr(one, name) for one in filters]) for name in ("power", "total"))
    top = np.array([one.size_at(RAY_TOP / one.gamma) for one in filters])
    onset = total ** (-1 / power)
    if len(edge) == 1:
        top, power, onset = top.min(keepdims=True), power.max(keepdims=True), onset.min(keepdims=True)
    angle = np.minimum(RAY_ANGLE / power, math.pi / 2)
    step = level.step * math.sqrt(float(angle.min()) / RAY_ANGLE)
    # Far from the edge the end is as good as the ray, but few steps grow beyond γs = 1 or so.
    r = edge * np.clip(top / edge, 2.0, 2 * (angle / RAY_ANGLE) ** 2)
    solved = max(4, math.ceil(float(np.log(2 * r / deepest).max()) / step))
    # Further in, 1 - ψ falls as s^power until it is nothing; a path ends where floating point does.
    ends = np.minimum(np.log(2 * r / np.minimum(deepest, onset)) - math.log(_NOTHING) / power, 700.0)
    count = max(solved + 1, math.ceil(float(ends.max()) / step))
    u = (np.arange(count) + 0.5) * step
    along, across = np.tanh(u), 2 * np.exp(-u) / (1 + np.exp(-2 * u))
    z = r[:, None] * across * np.exp(1j * angle[:, None] * along)
    omega = step / math.pi * (along - 1j * angle[:, None] * across**2)
    return Path(z=z, omega=omega, beyond=count - solved, encloses=False)


def contour(
    filters: Sequence[Filter],
    edge: Array,
    *,
    powers: int = 2,
    half: int = _HALF,
    decay: float = _DECAY,
    steps: float | None = None,
) -> Path:
    """A contour round [0, edge] for each schedule: hyperbolas, or below `steps` ellipses, all of one kind."""
    if not all(one.entire for one in filters):
        rule = "must be a plain schedule on a contour, which goes round 0 (take a loop)"
        raise InputError("filter", rule, "another kind")
    total = np.array([one.total for one in filters])
    if is_long(filters[0], steps):
        return hyperbola(total, powers=powers, half=half)
    return ellipse(edge, total, np.array([one.gamma for one in filters]), powers=powers, decay=decay)


def shared_path(filters: Sequence[Schedule], deepest: float, edge: float, unit: float, level: Ray) -> Path:
    """One path for filters that are all of one kind (`on_ray`), in units of 1/unit: a ray or an ellipse."""
    total = max(one.total for one in filters) / unit
    if on_ray(filters[0], unit):
        return ray(deepest, total, level)
    return ellipse(np.array([edge]), np.array([total]), np.ones(1), powers=2)


def on_ray(one: Schedule, unit: float) -> bool:
    """Whether a ray in units of 1/unit is the schedule's path: ψ is nothing at its upper end, nor beyond."""
    return not (one.felt(RAY_TOP / unit) or one.felt(RAY_TOP / one.gamma))


def is_long(one: Filter, steps: float | None = None) -> bool:
    """Whether ψ is near enough to an exponential off the real axis for the hyperbola."""
    return one.is_smooth(HYPERBOLA_STEPS if steps is None else steps)


def reaches(one: Filter) -> bool:
    """Whether a path of not too many nodes is fit for the filter."""
    if not one.entire:
        return not one.memory  # momentum's ψ grows on a loop
    return is_long(one) or one.total <= MOST_STEPS * one.gamma
