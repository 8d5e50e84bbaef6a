"""The averaged spectrum h_P with its two parts, where they cross and how far training reaches (κ)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from seqlaw.methods.rates import guide_cutoff
from seqlaw.model.checks import Array, InputError, whole
from seqlaw.model.setting import Setting, as_setting
from seqlaw.model.teacher import Modes, Teacher

FARTHEST = 10**12
"""The last mode that is looked at of a longer spectrum."""
_SCAN = 600  # places at which the heavier part is looked up before a crossing is bisected


@dataclass(frozen=True, kw_only=True, eq=False)
class AveragedSpectrum:
    """h_P at some modes; every number is exact to rounding."""

    j: Array
    initial: Array
    innovation: Array
    crossing: float | None
    """The last (real) mode, up to d and 10^12, at which the two parts are equal; None where there is none and
    for modes given as arrays. The theorem's m_P is its order, constants dropped."""
    kappa: float | None
    """κ with R (c_ξ κ^-α + c_0 P^-1 κ^-θ) = 1, the paper's guide; None for modes given as arrays."""

    @property
    def total(self) -> Array:
        """h_P itself."""
        return self.initial + self.innovation


def averaged_spectrum(setting: Setting, *, points: int = 24, last: int | None = None) -> AveragedSpectrum:
    """h_P at about `points` modes from 1 to `last`, evenly in the logarithm.

    `last` is by default 30 times as far as M, the crossing and κ lie, within d.
    """
    as_setting("setting", setting)
    teacher, P = setting.teacher, setting.one_length
    assert setting.d is not None  # Setting fills it in
    d = int(min(setting.d, FARTHEST))
    crossing = kappa = None
    if isinstance(teacher, Teacher):
        crossing = _crossing(teacher, P, d)
        kappa = _cutoff(teacher, setting.schedule.horizon, P)
    if last is None:
        last = int(min(d, max(1e3, 30 * max(setting.M, crossing or 1.0, kappa or 1.0))))
    last, points = whole("to", last, most=d), whole("points", points, least=2, most=10**4)
    j = np.unique(np.round(np.geomspace(1, last, points)))
    initial, innovation = _at(teacher, j).averaged_parts(P)
    if not np.any(initial + innovation > 0):
        raise InputError("P", "must be long enough for the states to vary at all", P)
    return AveragedSpectrum(j=j, initial=initial, innovation=innovation, crossing=crossing, kappa=kappa)


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


def _crossing(teacher: Teacher, P: int, top: int) -> float | None:
    """The last index at which the parts of h_P are equal (a scan in log j, then bisection), if any."""

    def heavier(u: Array) -> Array:
        initial, innovation = teacher.at(np.exp(u)).averaged_parts(P)
        return np.asarray(initial > innovation)

    u = np.linspace(0.0, math.log(max(top, 1)), _SCAN)
    signs = heavier(u)
    changes = np.flatnonzero(signs[1:] != signs[:-1])
    if changes.size == 0:
        return None
    low, high = float(u[changes[-1]]), float(u[changes[-1] + 1])
    while high - low > 1e-12 * max(1.0, high):
        middle = (low + high) / 2
        low, high = (middle, high) if heavier(np.array([middle]))[0] == signs[changes[-1]] else (low, middle)
    return math.exp(low)
