"""Log–log slopes with their uncertainty, with or without an offset."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import stdtrit

from seqlaw.model.checks import Array, InputError, real, vector
from seqlaw.model.signature import checked


@dataclass(frozen=True, kw_only=True)
class PowerFit:
    """y ≈ offset + scale · x^slope by least squares on logarithms."""

    slope: float
    se: float
    """Standard error of the slope, the residuals taken as independent and of equal size in log y."""
    low: float
    """Lower end of the confidence interval of the slope (Student's t)."""
    high: float
    r2: float
    n: int
    window: tuple[float, float]
    """The least and the largest x that took part."""
    scale: float
    offset: float = 0.0
    """e of y = e + a·x^-c; 0 where none was asked for."""
    offset_se: float | None = None
    """None where no offset was fitted, or where the best one is zero, the end of its range."""


@checked
def fit_power_law(
    x: ArrayLike,
    y: ArrayLike,
    *,
    window: tuple[float, float] | None = None,
    level: float = 0.95,
    offset: bool = False,
) -> PowerFit:
    """The least-squares slope of log y against log x, on low ≤ x ≤ high if a window is given.

    log y_i = log a + slope · log x_i + ε_i; with `offset`, log y_i = log(e + a x_i^slope) + ε_i and e ≥ 0,
    so that large and small y weigh alike.
    """
    if not 0 < real("level", level) < 1:
        raise InputError("level", "must lie in (0, 1)", level)
    x, y = _points(x, y, window, least=4 if offset else 3)
    u, v = np.log(x), np.log(y)
    center = float(u.mean())
    slope, height = _line(u - center, v)
    e, parameters = 0.0, 2
    if offset:
        found = _with_offset(u - center, v, slope, height)
        if found is not None:
            (slope, height, e), parameters = found, 3
    jacobian, rest = _linearised(u - center, v, slope, height, e, parameters)
    freedom = x.size - parameters
    covariance = np.linalg.pinv(jacobian.T @ jacobian) * float(rest @ rest) / freedom
    se = float(np.sqrt(covariance[0, 0]))
    reach = float(stdtrit(freedom, (1 + level) / 2)) * se
    spread, rounding = float(np.sum((v - v.mean()) ** 2)), v.size * (4 * np.spacing(np.abs(v).max())) ** 2
    return PowerFit(
        slope=slope,
        se=se,
        low=slope - reach,
        high=slope + reach,
        r2=1 - float(rest @ rest) / spread if spread > rounding else 1.0,
        n=x.size,
        window=(float(x.min()), float(x.max())),
        scale=float(np.exp(height - slope * center)),
        offset=e,
        offset_se=float(np.sqrt(covariance[2, 2])) if parameters == 3 else None,
    )


def _points(
    x: ArrayLike, y: ArrayLike, window: tuple[float, float] | None, *, least: int
) -> tuple[Array, Array]:
    """The points in the window, checked."""
    x, y = vector("x", x), vector("y", y)
    if x.shape != y.shape:
        raise InputError("y", f"must have {x.size} values like x", y.size)
    if window is not None:
        low, high = (real("window", end) for end in window)
        if low > high:
            raise InputError("window", "must be two numbers in rising order", window)
        inside = (low <= x) & (x <= high)
        x, y = x[inside], y[inside]
    for name, values in (("x", x), ("y", y)):
        if np.any(values <= 0):
            raise InputError(name, "must be positive for a power law", float(values[values <= 0][0]))
    if x.size < least:
        raise InputError("x", f"must have at least {least} points in the window", x.size)
    if np.unique(x).size < least - 1:
        raise InputError("x", f"must take at least {least - 1} different values", np.unique(x).size)
    return x, y


def _line(u: Array, v: Array) -> tuple[float, float]:
    """Slope and height at u = 0 of the least-squares line; u has mean zero."""
    return float(u @ v / (u @ u)), float(v.mean())


def _with_offset(u: Array, v: Array, slope: float, height: float) -> tuple[float, float, float] | None:
    """The best (slope, height, e) with 0 < e < min y, or None where no offset does better.

    The sum of squares may have several minima in e, hence several starts; e is scaled by min y.
    """
    from scipy.optimize import least_squares  # slow to import, and only an offset needs it

    least = float(np.exp(v.min()))

    def residuals(p: Array) -> Array:
        return np.asarray(np.logaddexp(np.log(p[2] * least), p[1] + p[0] * u) - v)

    best, bare = None, float(np.sum((height + slope * u - v) ** 2))
    for share in (1e-3, 0.1, 0.5, 0.9, 0.99):
        start = [*_line(u, np.log(np.exp(v) - share * least)), share]
        start[1] = float(np.mean(np.log(np.exp(v) - share * least)))
        found = least_squares(
            residuals,
            start,
            bounds=([-np.inf, -np.inf, 1e-12], [np.inf, np.inf, 1.0]),
            x_scale=[1, 1, 0.1],
            xtol=1e-14,
            ftol=1e-14,
            gtol=1e-14,
        )
        if best is None or found.cost < best.cost:
            best = found
    # An offset below a millionth of the least y, or none of use, is the end of its range.
    if best is None or best.x[2] < 1e-6 or 2 * best.cost >= bare:
        return None
    return float(best.x[0]), float(best.x[1]), float(best.x[2] * least)


def _linearised(
    u: Array, v: Array, slope: float, height: float, e: float, parameters: int
) -> tuple[Array, Array]:
    """The derivatives of log y in (slope, height, e), and the residuals."""
    power = np.exp(height + slope * u)
    fitted = e + power
    columns = [u * power / fitted, power / fitted, 1 / fitted][:parameters]
    return np.stack(columns, axis=1), np.log(fitted) - v
