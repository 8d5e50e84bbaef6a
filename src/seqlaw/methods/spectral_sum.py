"""Sums over the latent modes at a cost that does not grow with their number.

Σ_{j≤d} f(j) for a smooth f: the head j ≤ J is summed as it is, the tail is an integral in log j from
J+½ to d+½ by Gauss–Legendre panels, with the midpoint form of Euler–Maclaurin at both ends,
    Σ_{j=J+1}^d f(j) = ∫ f - [δf]/24 + 17[δ³f]/5760 - …,
where δ is the central difference of step one at j+½. Every piece is linear in f, so the whole sum is
one rule of nodes and weights. d = inf works where the sum converges.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from seqlaw.methods.accuracy import Sum, fine
from seqlaw.model.checks import Array, InputError
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes, Teacher

_SLOWEST = 0.02  # an infinite sum of j^-(1+c) is refused below this c: its tail would not be reached


@dataclass(frozen=True, kw_only=True, eq=False)
class Rule:
    """Nodes (the modes at them) and weights: Σ_j f(mode_j) ≈ Σ_k weights_k f(modes_k)."""

    modes: Modes
    weights: Array


def sum_rule(setting: Setting, level: Sum = fine.sums, *, widest: float = math.inf) -> Rule:
    """The rule of a setting's spectrum: exact for arrays and short power laws, else head and tail.

    For students no wider than `widest` the panels grow from where h is far below any κ.
    """
    teacher, d = setting.teacher, setting.d
    assert d is not None
    if isinstance(teacher, Modes):
        # A mode that never varies adds nothing to any sum, and 0/0 where the student is as wide as the rest.
        live = teacher.sigma_xi + teacher.sigma_0 > 0
        if not live.any():
            raise InputError("teacher", "must have a mode that varies", "none")
        modes = Modes(a=teacher.a[live], sigma_xi=teacher.sigma_xi[live], sigma_0=teacher.sigma_0[live])
        return Rule(modes=modes, weights=np.ones(modes.d))
    if d <= 4 * level.head:
        return Rule(modes=teacher.modes(int(d)), weights=np.ones(int(d)))
    infinite = d == math.inf
    width = level.width / max(teacher.alpha, teacher.theta, 1.0)
    until = min(level.until, math.log(max(widest, level.head)) + 7)
    last = _last_index(teacher) if infinite else d
    j, weights = _head_and_tail(level._replace(width=width, until=until), last, infinite=infinite)
    return Rule(modes=teacher.at(j), weights=weights)


@functools.cache
def gauss_legendre(nodes: int) -> tuple[Array, Array]:
    """Nodes and weights on [-1, 1]: constants, a fifth of the time of a small batch."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    return x, w


def _last_index(teacher: Teacher) -> float:
    """Where an infinite sum is cut: as far as floating point reaches, e^700 or so."""
    slowest = min(teacher.alpha, teacher.theta) - 1
    if slowest < _SLOWEST:
        name = "theta" if teacher.theta <= teacher.alpha else "alpha"
        needed = f"{name} > 1: the trace of a covariance diverges"
        if slowest > 0:
            needed = f"{name} of at least {1 + _SLOWEST}: the sums converge too slowly"
        raise InputError("d", f"= inf needs {needed} (try -d 1024)", f"{name} = {getattr(teacher, name):g}")
    return math.exp(700)


def _head_and_tail(level: Sum, d: float, *, infinite: bool) -> tuple[Array, Array]:
    J, width = level.head, level.width
    low, high = math.log(J + 0.5), math.log(d + 0.5)
    even = min(high, level.until)
    edges = list(np.linspace(low, even, max(1, math.ceil((even - low) / width)) + 1))
    while edges[-1] < high:
        width *= level.growth
        edges.append(min(high, edges[-1] + width))
    x, w = gauss_legendre(level.nodes)
    left, right = np.array(edges[:-1])[:, None], np.array(edges[1:])[:, None]
    u = ((left + right) / 2 + (right - left) / 2 * x).ravel()
    tail = np.exp(u)
    weights = ((right - left) / 2 * w).ravel() * tail
    places = [np.arange(1, J + 1, dtype=np.float64), tail]
    weights_list = [np.ones(J), weights]
    # -[δf]/24 + 17[δ³f]/5760, upper end minus lower end; an infinite sum has no upper end.
    around = np.array([-1.0, 0.0, 1.0, 2.0])
    difference = np.array([0.0, -1.0, 1.0, 0.0]) / -24 + 17 / 5760 * np.array([-1.0, 3.0, -3.0, 1.0])
    ends = [(J, -1.0)] if infinite else [(J, -1.0), (d, 1.0)]
    for end, sign in ends:
        places.append(end + around)
        weights_list.append(sign * difference)
    return np.concatenate(places), np.concatenate(weights_list)
