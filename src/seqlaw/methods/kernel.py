"""The two loops that draw normals: NumPy always, Numba where it is installed, the same bits from both.

Numba's generator methods continue NumPy's stream number by number, and neither contracts x·a + z·s
into one rounding, so which one runs is a matter of speed only.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

from seqlaw.model.checks import Array
from seqlaw.model.device import Stream

WORTH_COMPILING = 2 * 10**8
"""Normals from which on a second or two of importing and compiling is repaid."""

Generator = np.random.Generator | Stream


class Kernel(NamedTuple):
    """`advance(rng, X, a, scale, scratch)`: X ← X·a + z·scale in place; `fill(rng, out)`: normals."""

    advance: Callable[[Generator, Array, Array, Array, Array], object]
    fill: Callable[[Generator, Array], object]


def _advance(rng: Generator, X: Array, a: Array, scale: Array, scratch: Array) -> None:
    rng.standard_normal(out=scratch)
    np.multiply(scratch, scale, out=scratch)
    np.multiply(X, a, out=X)
    np.add(X, scratch, out=X)


def _fill(rng: Generator, out: Array) -> None:
    rng.standard_normal(out=out)


NUMPY = Kernel(_advance, _fill)


@cache
def compiled() -> Kernel | None:
    """The Numba kernel, or None where Numba is not installed (the extra `fast`)."""
    if find_spec("numba") is None:
        return None
    from numba import njit

    @njit(nogil=True)
    def advance(rng, X, a, scale, scratch):  # type: ignore[no-untyped-def]  # Numba infers its own
        for i in range(X.shape[0]):
            for j in range(X.shape[1]):
                X[i, j] = X[i, j] * a[j] + rng.standard_normal() * scale[j]

    @njit(nogil=True)
    def fill(rng, out):  # type: ignore[no-untyped-def]  # as above
        for i in range(out.size):
            out[i] = rng.standard_normal()

    return Kernel(advance, fill)


def kernel(normals: float) -> Kernel:
    """The faster kernel for a job that draws so many normals in all."""
    return (compiled() if normals >= WORTH_COMPILING else None) or NUMPY
