"""The curves that the paper draws next to its measurements, recovered with their scales.

Regime I: the theorem's asymptotic power laws. Regime II: the finite two-scale curves of approximation and
bias, and the finite-filter variance averaged over the sketches. A guide known up to a factor is scaled once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from seqlaw.methods.rates import approx_guide, bias_guide
from seqlaw.model.checks import Array
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Teacher
from seqlaw.paper.experiments.curves import Curve, slope_of
from seqlaw.paper.experiments.panels import TEACHERS, Series

POWERS: dict[tuple[str, str], Callable[[Teacher], float]] = {
    ("approx", "M"): lambda teacher: 1 - teacher.beta_alpha,
    ("bias", "R"): lambda teacher: (1 - teacher.beta_alpha) / teacher.alpha,
    ("variance", "N"): lambda teacher: -1.0,
    ("variance", "P"): lambda teacher: -1.0,
    ("variance", "R"): lambda teacher: 1 / teacher.alpha,
}
"""Regime I's exponents (Theorem 1), before the active dimension meets the width."""

TWO_SCALE: dict[str, Callable[[Setting], float]] = {
    "approx": lambda s: approx_guide(TEACHERS["II"], s.M, s.one_length),
    "bias": lambda s: bias_guide(TEACHERS["II"], s.schedule.horizon, s.one_length),
}

FORMULAS = {
    ("I", "approx"): "M^{1-β_α}",
    ("I", "bias"): "R^{(1-β_α)/α}",
    ("I", "variance"): "N^{-1}, P^{-1}, R^{1/α}",
    ("II", "approx"): "c_ξ M^{1-β_α} + c_0 P^{-1} M^{1-β_θ}",
    ("II", "bias"): "c_ξ κ^{1-β_α} + c_0 P^{-1} κ^{1-β_θ}, R(c_ξ κ^{-α} + c_0 P^{-1} κ^{-θ}) = 1",
    ("II", "variance"): "tr(Ω_P)/(2NP) Σ_j (μ_j g(μ_j))²",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Guide:
    """The dashed curve of a series, scaled to its measurement."""

    y: Array
    slope: float
    ratio: Array
    """Measured over guide, at each point."""


def guide(measured: Curve, finite_filter: Curve | None) -> Guide:
    """The paper's guide for a measured curve; `finite_filter` is Var^ff for the variance of Regime II.

    Scale: none for Var^ff; 1 at the middle point for the bias of Regime II, as the paper's printed ratios
    show; otherwise the mean ratio is 1.
    """
    series, y = measured.series, measured.y
    if series.regime == "I":
        exponent = POWERS[series.quantity, series.against](TEACHERS["I"])
        shape = measured.x**exponent
        return _scaled(shape, exponent, y, float(np.mean(y / shape)))
    if series.quantity == "variance":
        assert finite_filter is not None
        return _scaled(finite_filter.y, slope_of(measured.x, finite_filter.y), y, 1.0)
    shape = two_scale(series)
    ratio = y / shape
    scale = ratio[len(ratio) // 2] if series.quantity == "bias" else ratio.mean()
    return _scaled(shape, slope_of(measured.x, shape), y, float(scale))


def two_scale(series: Series) -> Array:
    """The unscaled two-scale curve of a Regime II series."""
    return np.array([TWO_SCALE[series.quantity](setting) for setting in series.settings])


def _scaled(shape: Array, slope: float, y: Array, scale: float) -> Guide:
    return Guide(y=shape * scale, slope=slope, ratio=y / (shape * scale))
