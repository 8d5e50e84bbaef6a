"""The averaged spectrum h_P with its two parts, where they cross (m_P) and how far training reaches (κ)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from seqlaw.model.checks import Array, whole
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes, Teacher
from seqlaw.rungs.rates import guide_cutoff

FARTHEST = 10**12
"""The last mode that is shown of a longer spectrum."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AveragedSpectrum:
    """h_P at some modes; every number is exact to rounding, None where there is none."""

    j: Array
    initial: Array
    innovation: Array
    m_P: float | None
    """The (real) mode at which the two parts are equal; None for measured modes, and where they never are."""
    kappa: float | None
    """κ with R (c_ξ κ^-α + c_0 P^-1 κ^-θ) = 1, the paper's guide; None for measured modes."""

    @property
    def total(self) -> Array:
        """h_P itself."""
        return self.initial + self.innovation


def averaged_spectrum(setting: Setting, *, points: int = 24, last: int | None = None) -> AveragedSpectrum:
    """h_P at about `points` modes from 1 to `last`, evenly in the logarithm.

    `last` is by default as far as the interesting modes (M, m_P, κ) lie and 30 times farther, within d.
    """
    teacher, P = setting.teacher, setting.P
    assert setting.d is not None  # Setting fills it in
    d = int(min(setting.d, FARTHEST))
    m_P = kappa = None
    if isinstance(teacher, Teacher):
        m_P = _crossing(teacher, P, d)
        kappa = _cutoff(teacher, setting.schedule.horizon, P)
    if last is None:
        last = int(min(d, max(1e3, 30 * max(setting.M, m_P or 1.0, kappa or 1.0))))
    last, points = whole("to", last, most=d), whole("points", points, least=2, most=10**4)
    j = np.unique(np.round(np.geomspace(1, last, points)))
    initial, innovation = _at(teacher, j).averaged_parts(P)
    return AveragedSpectrum(j=j, initial=initial, innovation=innovation, m_P=m_P, kappa=kappa)


def _at(teacher: Teacher | Modes, j: Array) -> Modes:
    if isinstance(teacher, Teacher):
        return teacher.at(j)
    place = j.astype(int) - 1
    return Modes(a=teacher.a[place], sigma_xi=teacher.sigma_xi[place], sigma_0=teacher.sigma_0[place])


def _cutoff(teacher: Teacher, R: float, P: int) -> float | None:
    """The guide's κ, where the exponents allow one (α = 0 has none)."""
    try:
        return guide_cutoff(teacher, R, P)
    except (ArithmeticError, ValueError, RuntimeError):
        return None


def _crossing(teacher: Teacher, P: int, top: float) -> float | None:
    """The (real) index at which the two parts of h_P are equal, by bisection in log j; None if nowhere."""

    def heavier(u: float) -> bool:
        initial, innovation = teacher.at([math.exp(u)]).averaged_parts(P)
        return bool(initial[0] > innovation[0])

    low, high = 0.0, math.log(max(top, 1.0))
    first = heavier(low)
    if heavier(high) == first:
        return None
    while high - low > 1e-12 * max(1.0, high):
        middle = (low + high) / 2
        low, high = (middle, high) if heavier(middle) == first else (low, middle)
    return math.exp(low)
