"""How closely to compute: one record for sums over modes, paths of integration and Newton's method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Sum(NamedTuple):
    """A sum over modes: a head mode by mode, then Gauss–Legendre panels in log j (`spectral_sum`).

    Panels are even up to `until`, beyond which no crossover lies, then grow. Their width is in e-folds of the
    steeper covariance, since h/(h+κ) turns over within a few of those.
    """

    head: int
    nodes: int
    width: float
    until: float
    growth: float


class Ray(NamedTuple):
    """A trapezoid rule in log z: its step (it errs by exp(-π²/2 step)), and how far it extends in e-folds."""

    step: float
    outside: float


class Correction(NamedTuple):
    """The finite-sample correction: nodes on half a hyperbola, the logarithm of an ellipse's error, the
    tolerance of positions, and the step on a loop."""

    half: int
    decay: float
    tol: float
    step: float = 0.35


class Crowd(NamedTuple):
    """How directions share nodes: `alone` have one each, the others `a_fold` an e-fold of their index."""

    alone: int
    a_fold: float


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """The settings of all numerical parts for one level of accuracy."""

    sums: Sum
    double: Sum
    """For double sums, and for many schedules of one spectrum."""
    ray: Ray
    newton: float
    """Newton's method for κ stops at a relative step of this size; the error left is its square."""
    correction: Correction
    cut: float
    """In one pass: ratio of the levels at which a smooth schedule is cut, before the Richardson step."""
    crowd: Crowd
    """In one pass."""


# Measured over exponents up to 5 and M up to 10^5: the first is right to 1e-11 of sums whose terms vary on
# the scale of log j; double sums by the second give the variance to 1e-6, by the third to 2e-4.
_SUMS = (
    Sum(head=128, nodes=16, width=3.6, until=60.0, growth=1.5),
    Sum(head=32, nodes=8, width=3.6, until=45.0, growth=2.0),
    Sum(head=16, nodes=6, width=4.5, until=45.0, growth=2.0),
    Sum(head=12, nodes=5, width=5.0, until=45.0, growth=3.0),
)
# A ray of step 0.25 errs by 3e-9, of 0.5 by 5e-5. On the reference points of tests/data/finite_sample.json
# the two corrections are right to 1e-7 and to 1e-4 of the excess risk.
fine = Accuracy(
    sums=_SUMS[0],
    double=_SUMS[1],
    ray=Ray(step=0.25, outside=6.0),
    newton=1e-9,
    correction=Correction(half=8, decay=9.0, tol=1e-7),
    cut=1.21,
    crowd=Crowd(alone=24, a_fold=8.5),
)
"""The answer of a command: numerical errors far below the 1/M of the theory."""
quick = Accuracy(
    sums=_SUMS[1],
    double=_SUMS[2],
    ray=fine.ray,
    newton=fine.newton,
    correction=Correction(half=5, decay=6.0, tol=1e-3, step=0.5),
    cut=2.0,
    crowd=Crowd(alone=8, a_fold=3.5),
)
"""Right to 2e-4 of the reducible risk."""
search = Accuracy(
    sums=_SUMS[3],
    double=_SUMS[3],
    ray=Ray(step=0.5, outside=4.0),
    newton=2e-3,
    correction=quick.correction,
    cut=3.0,
    crowd=quick.crowd,
)
"""Right to 1e-3 of the reducible risk (`test_the_surface_of_a_search`): where a search looks first."""
