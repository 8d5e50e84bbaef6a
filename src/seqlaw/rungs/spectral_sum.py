"""Sums over the latent modes at a cost that does not grow with their number.

Σ_{j≤d} f(j) for a smooth f: the head j ≤ J is summed as it is, the tail is an integral in log j from
J+½ to d+½ by Gauss–Legendre panels, with the midpoint form of Euler–Maclaurin at both ends,
    Σ_{j=J+1}^d f(j) = ∫ f - [δf]/24 + 17[δ³f]/5760 - …,
where δ is the central difference of step one at j+½. Every piece is linear in f, so the whole sum is
one rule of nodes and weights. d = inf works where the sum converges.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from seqlaw.model.checks import Array, InputError
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes, Teacher

_NODES = 14  # Gauss–Legendre nodes a panel; panels are one e-fold of j wide
_FINE_UNTIL = 60.0  # in log j; beyond 10^26 no crossover lies and the panels may grow
_SLOWEST = 0.02  # an infinite sum of j^-(1+c) is refused below this c: its tail would not be reached


@dataclass(frozen=True, kw_only=True, eq=False)
class Rule:
    """Nodes (the modes at them) and weights: Σ_j f(mode_j) ≈ Σ_k weights_k f(modes_k)."""

    modes: Modes
    weights: Array


def sum_rule(setting: Setting, *, head: int = 128) -> Rule:
    """The rule of a setting's spectrum: exact for arrays and short power laws, else head and tail.

    With head = 128 the error is below 1e-12 of sums whose terms vary on the scale of log j; a
    shorter head gives a coarser rule for double sums.
    """
    teacher, d = setting.teacher, setting.d
    assert d is not None
    if isinstance(teacher, Modes):
        return Rule(modes=teacher, weights=np.ones(teacher.d))
    if d <= 4 * head:
        return Rule(modes=teacher.modes(int(d)), weights=np.ones(int(d)))
    j, weights = _head_and_tail(head, _last_index(teacher) if d == math.inf else d, infinite=d == math.inf)
    return Rule(modes=teacher.at(j), weights=weights)


def _last_index(teacher: Teacher) -> float:
    """Where an infinite sum is cut: as far as floating point reaches, e^700 or so."""
    slowest = min(teacher.alpha, teacher.theta) - 1
    if slowest <= 0:
        raise InputError(
            "d", "= inf needs alpha > 1 and theta > 1: the trace of a covariance diverges", math.inf
        )
    if slowest < _SLOWEST:
        raise InputError(
            "d", f"= inf needs alpha and theta of at least {1 + _SLOWEST}: the sums converge too slowly", math.inf
        )
    return math.exp(700)


def _head_and_tail(J: int, d: float, *, infinite: bool) -> tuple[Array, Array]:
    low, high = math.log(J + 0.5), math.log(d + 0.5)
    fine = min(high, max(_FINE_UNTIL, low))
    edges = list(np.linspace(low, fine, max(1, math.ceil(fine - low)) + 1))
    width = 1.0
    while edges[-1] < high:
        width *= 1.5
        edges.append(min(high, edges[-1] + width))
    x, w = np.polynomial.legendre.leggauss(_NODES)
    left, right = np.array(edges[:-1])[:, None], np.array(edges[1:])[:, None]
    u = ((left + right) / 2 + (right - left) / 2 * x).ravel()
    tail = np.exp(u)
    weights = ((right - left) / 2 * w).ravel() * tail
    nodes = [np.arange(1, J + 1, dtype=np.float64), tail]
    weights_list = [np.ones(J), weights]
    # -[δf]/24 + 17[δ³f]/5760, upper end minus lower end; an infinite sum has no upper end.
    around = np.array([-1.0, 0.0, 1.0, 2.0])
    difference = np.array([0.0, -1.0, 1.0, 0.0]) / -24 + 17 / 5760 * np.array([-1.0, 3.0, -3.0, 1.0])
    ends = [(J, -1.0)] if infinite else [(J, -1.0), (d, 1.0)]
    for end, sign in ends:
        nodes.append(end + around)
        weights_list.append(sign * difference)
    return np.concatenate(nodes), np.concatenate(weights_list)
