"""Σ_t log(1 - x w_t) from the power sums of w, and those of a ramp: log ψ at O(1) in the number of steps."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.model.checks import Array


def sum_logs(power_sums: Any, x: NDArray[Any]) -> NDArray[Any]:
    """Σ_t log(1 - x w_t) = -Σ_n (x^n/n) W_n, W_n = Σ_t w_t^n, for |x| < 1 and 0 ≤ w_t ≤ 1."""
    largest = max(float(np.abs(x).max(initial=0.0)), 1e-300)
    terms = max(2, math.ceil(-40 / math.log(largest)))  # e^-40: W_n/n falls with n, so this is relative
    n = np.arange(1, terms + 1)
    total = np.zeros_like(x)
    for coefficient in (power_sums(n) / n)[::-1]:
        total = (total + coefficient) * x
    return -total


def ramp_power_sums(T: int, n: Array) -> Array:
    """Σ_{t=1}^T (t/T)^n for n = 1 … n_max: direct when short, else Euler–Maclaurin.

    T/(n+1) + 1/2 + n/(12T) - n(n-1)(n-2)/(720T³) + n…(n-4)/(30240T⁵) - n…(n-6)/(1209600T⁷);
    with n ≤ T/16 the first dropped term is below 1e-17 of the sum.
    """
    if T < 16 * n[-1]:
        return np.asarray(((np.arange(1, T + 1) / T) ** n[:, None]).sum(axis=1))
    n = n.astype(np.float64)
    total = T / (n + 1) + 0.5
    falling = n / T
    for k, coefficient in enumerate((1 / 12, -1 / 720, 1 / 30240, -1 / 1209600)):
        # The derivative of order 2k+1 of t^n is the same at both ends when n = 2k+1.
        total = total + np.where(n == 2 * k + 1, 0.0, coefficient * falling)
        falling = falling * (n - 2 * k - 1) * (n - 2 * k - 2) / T**2
    return np.asarray(total)
