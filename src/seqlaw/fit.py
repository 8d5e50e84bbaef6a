"""Log–log slopes with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, kw_only=True)
class PowerFit:
    """y ≈ scale · x^slope by least squares on logarithms."""

    slope: float
    se: float
    r2: float
    n: int


def fit_power_law(x: ArrayLike, y: ArrayLike) -> PowerFit:
    """The least-squares slope of log y against log x, with its standard error."""
    u, v = np.log(np.asarray(x, float)), np.log(np.asarray(y, float))
    u, v = u - u.mean(), v - v.mean()
    slope = float(u @ v / (u @ u))
    rest = v - slope * u
    error = float(np.sqrt(rest @ rest / max(u.size - 2, 1) / (u @ u)))
    return PowerFit(slope=slope, se=error, r2=float(1 - rest @ rest / (v @ v)), n=u.size)
