"""What a schedule is, and its scalar filters.

Gradient descent on a quadratic acts on an eigenvalue s of the covariance through two numbers,
    ψ(s) = Π_t (1 - γ_t s)                     the residual: the share of the first error left,
    g(s) = Σ_t γ_t Π_{q>t} (1 - γ_q s)         the response: the weight given to the data,
with s g(s) = 1 - ψ(s) (telescoping), so g = -expm1(log ψ)/s and g(0) = Σγ_t.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log1p

from seqlaw.model.checks import Array, InputError, positive

LARGEST_STEP = 0.95
"""γ|s| beyond this is refused: the power series slows down, and past 1 a factor turns negative.
The paper's safeguard keeps γ‖Ĝ‖ at or below ½."""

RAY_ANGLE = math.pi / 4
"""Of a ray on which filters are asked for: half-way between the spectrum and where ψ grows."""
RAY_TOP = 0.9
"""γ|s| up to which ψ is asked for on a ray."""
_VANISHED = 27.0
"""Where -log |ψ| is larger, ψ counts as 0: below 2e-12."""

MOST_STEPS = 10**18
_FEW_RUNS = 64  # runs beyond which equal sizes are looked for
LISTED = 2**20
"""Steps up to which a schedule is listed one by one."""


def steps_to(R: float, gamma: float) -> int:
    """⌈R/γ⌉, forgiving the rounding of R = 0.3, γ = 0.1."""
    steps = positive("R", R) / positive("gamma", gamma) * (1 - 1e-12)
    if steps > MOST_STEPS:
        raise InputError("R", f"must be at most {MOST_STEPS:g} times gamma", R)
    return max(1, math.ceil(steps))


def fewest(enough: Callable[[int], bool], R: float) -> int:
    """The least L that is enough for R; more are, too."""
    low, high = 0, 1
    while not enough(high):
        if high > MOST_STEPS:
            raise InputError("R", f"must be reached by a schedule of at most {MOST_STEPS:g} steps", R)
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high


@contextmanager
def speaking_of(R: float) -> Iterator[None]:
    """An error about L becomes one about R, which has chosen that L."""
    try:
        yield
    except InputError as error:
        if error.field.endswith(".L"):
            raise InputError("R", f"asks for {error.value} steps, but L {error.rule}", R) from None
        raise


def runs_of(sizes: Array) -> tuple[Array, Array]:
    """Counts and sizes of the runs of equal steps."""
    starts = np.concatenate([[0], np.flatnonzero(np.diff(sizes)) + 1])
    counts = np.diff(np.concatenate([starts, [sizes.size]]))
    return counts.astype(np.float64), sizes[starts]


class Filter(ABC):
    """What training does to an eigenvalue s: a response φ(s) and the residual 1 - sφ(s).

    Both are asked for at complex s, and must be analytic off the negative real axis. `gamma` says from
    where on s is large (1/γ), `total` is φ(0).
    """

    gamma: float
    power: float = 1.0
    """q of 1 - ψ(s) ≈ total·s^q as s → 0; 1 for plain descent."""
    entire: ClassVar[bool] = False
    """Whether the residual is analytic everywhere, so that a contour may go round 0."""

    memory: ClassVar[bool] = False
    """Whether a step looks at the one before: momentum, for the full batch only."""

    @property
    @abstractmethod
    def total(self) -> float:
        """The factor of 1 - ψ(s) ≈ total·s^power as s → 0: Σγ for plain descent."""

    @abstractmethod
    def response(self, s: ArrayLike) -> NDArray[Any]:
        """φ(s)."""

    def residual(self, s: ArrayLike) -> NDArray[Any]:
        """1 - sφ(s)."""
        return np.asarray(1 - np.asarray(s) * self.response(s))

    def progress(self, s: float) -> float:
        """How far an eigenvalue s is trained, Σγ s for plain descent: beyond 1 most of it is learned."""
        return float(self.total * s**self.power)

    def speed(self, s: Any) -> Any:
        """x(s): a step γ multiplies the distance to the end of training by 1 - γx; x = s if plain."""
        return s

    def size_at(self, speed: float) -> float:
        """The eigenvalue of this speed."""
        return speed

    def is_smooth(self, steps: float) -> bool:
        """Whether the residual is near exp(-Σγ s) off the real axis, as after so many full plain steps."""
        return False

    def off_axis(self, s: NDArray[Any], *, beyond: bool = True) -> NDArray[Any]:
        """The residual at nodes of a ray or loop (`methods.contours`); s^power has an angle of at most 45°.

        `beyond`: also on the arc that closes a loop beyond the spectrum.
        """
        return self.residual(s)


class Schedule(Filter):
    """One interface for all schedules; `gamma` is the peak step and `L` the number of steps."""

    L: int
    name: ClassVar[str]
    precondition: float = 0.0
    weight_decay: float = 0.0
    entire: ClassVar[bool] = True

    @property
    def plain(self) -> Schedule:
        """The step sizes alone, without a preconditioner and weight decay (`model.preconditioned`)."""
        return self

    @property
    def additions(self) -> dict[str, float]:
        """`precondition` and `weight_decay`; nothing for plain descent."""
        return {}

    def with_plain(self, schedule: Schedule) -> Schedule:
        """The same training with the step sizes of another schedule."""
        return schedule

    @abstractmethod
    def at(self, t: ArrayLike) -> Array:
        """The step sizes γ_t at steps t = 1 … L."""

    @property
    def total(self) -> float:
        """Σ_t γ_t."""
        counts, sizes = self._listed()
        return math.fsum(counts * sizes)

    @property
    def horizon(self) -> float:
        """The paper's effective horizon R: γL, unless the schedule says otherwise."""
        return self.gamma * self.L

    def runs(self) -> tuple[Array, Array] | None:
        """Counts and sizes of its runs of equal steps; None where it is smooth between `corners`.

        A schedule of the user's, whose shape is not known, is taken step by step.
        """
        if self.L > LISTED:
            rule = f"must be at most {LISTED} for a schedule that does not say its runs or corners"
            raise InputError("L", rule, self.L)
        return runs_of(self.steps())

    def corners(self) -> list[int]:
        """The last steps of its phases, in each of which γ_t does not turn."""
        return [self.L]

    def is_smooth(self, steps: float) -> bool:
        return self.total >= steps * self.gamma

    def felt(self, s: ArrayLike) -> NDArray[Any]:
        """Where ψ must be computed: γ|s| ≤ `RAY_TOP`, and a bound on |ψ| is not negligible.

        The bound sums log |1 - wx| ≤ -w|x|cos φ + w²|x|²/2 over the steps: x = γs, w = γ_t/γ, w² ≤ w.
        """
        size = self.gamma * np.abs(s)
        rate = self.total / self.gamma * size * (math.cos(RAY_ANGLE) - size / 2)
        return np.asarray((size <= RAY_TOP * (1 + 1e-12)) & (rate <= _VANISHED))

    def off_axis(self, s: NDArray[Any], *, beyond: bool = True) -> NDArray[Any]:
        """ψ on a ray or loop, set to 0 where its bound is negligible (`felt`).

        For γ|s| > `RAY_TOP` it is 0 too, unless a loop asks for `beyond` and ψ is not yet negligible at
        `RAY_TOP`: then the factors 1 - γ_t s are multiplied. An endless ray needs the 0, since this product
        grows with |s|.
        """
        felt = self.felt(s)
        psi = np.zeros(s.shape, dtype=np.complex128)
        psi[felt] = self.residual(s[felt])
        if beyond and self.felt(RAY_TOP / self.gamma):
            far = self.gamma * np.abs(s) > RAY_TOP * (1 + 1e-12)
            psi[far] = np.exp(Schedule.log_psi(self, s[far]))
        return psi

    def log_psi(self, s: NDArray[Any]) -> NDArray[Any]:
        """log ψ(s) for arguments that have been checked: Σ_t log(1 - γ_t s), each size once."""
        counts, sizes = self._listed()
        if sizes.size > _FEW_RUNS:
            sizes, which = np.unique(sizes, return_inverse=True)
            counts = np.asarray(np.bincount(which, weights=counts), dtype=np.float64)
        total = np.zeros_like(s)
        rows = max(1, 2**20 // max(1, s.size))  # a block of a million logarithms at a time
        for start in range(0, sizes.size, rows):
            logs = log1p(-sizes[start : start + rows, None] * s.ravel())
            total = total + (counts[start : start + rows] @ logs).reshape(s.shape)
        return total

    def _listed(self) -> tuple[Array, Array]:
        return self.runs() or runs_of(self.steps())

    @classmethod
    def steps_reaching(cls, R: float, gamma: float) -> int:
        """The fewest steps whose horizon reaches R: ⌈R/γ⌉, unless the schedule says otherwise."""
        return steps_to(R, gamma)

    @classmethod
    def from_horizon(cls, R: float, gamma: float) -> Self:
        """The schedule with the fewest steps whose horizon reaches R."""
        make: Callable[..., Self] = cls
        with speaking_of(R):
            return make(gamma=gamma, L=cls.steps_reaching(R, gamma)).with_horizon(R)

    def with_horizon(self, R: float) -> Self:
        """A schedule of the same kind, peak step and shape with the fewest steps that reach R."""
        with speaking_of(R):
            found = self.with_steps(self.steps_reaching(R, self.gamma))
            if found.horizon >= R * (1 - 1e-12):
                return found

            def enough(L: int) -> bool:
                try:
                    return self.with_steps(L).horizon >= R * (1 - 1e-12)
                except InputError:  # too few steps for its kind
                    return False

            return self.with_steps(fewest(enough, R))  # a shape of its own

    def with_steps(self, L: int) -> Self:
        """A schedule of the same kind, peak step and shape with L steps."""
        return replace(self, L=L)  # type: ignore[type-var]  # every subclass is a dataclass

    def least_steps(self) -> int:
        """The fewest steps that a schedule of its kind can have."""
        return 1

    def steps(self) -> Array:
        """All step sizes γ_1 … γ_L."""
        return self.at(np.arange(1, self.L + 1))

    def safeguarded(self, norm: float) -> Self:
        """The same schedule scaled to the peak γ̄ = min(γ, 1/(2‖Ĝ‖)), for ‖Ĝ‖ = norm."""
        limit = 1 / (2 * self.speed(positive("norm", norm)))
        return self if self.gamma <= limit else self.scaled(limit)

    def scaled(self, gamma: float) -> Self:
        return replace(self, gamma=gamma)  # type: ignore[type-var]  # every subclass is a dataclass

    def log_residual(self, s: ArrayLike) -> NDArray[Any]:
        """log ψ(s), real or complex like s (the sum of principal logarithms); with momentum complex."""
        s = np.asarray(s)
        s = s.astype(np.complex128 if np.iscomplexobj(s) else np.float64)
        if not np.all(np.isfinite(s)):
            raise InputError("s", "must be finite", s[~np.isfinite(s)].flat[0].item())
        largest = float(np.abs(s).max(initial=0.0))
        if self.gamma * largest > LARGEST_STEP:
            raise InputError(
                "gamma * max|s|",
                f"must be at most {LARGEST_STEP} (take schedule.safeguarded(norm))",
                self.gamma * largest,
            )
        return self.log_psi(s)

    def residual(self, s: ArrayLike) -> NDArray[Any]:
        """ψ(s) = Π_t (1 - γ_t s)."""
        return _real_as(s, np.exp(self.log_residual(s)))

    def response(self, s: ArrayLike) -> NDArray[Any]:
        """g(s) = (1 - ψ(s))/s, and Σγ_t at s = 0."""
        return self.both(s)[1]

    def both(self, s: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        """ψ(s) and g(s), from one logarithm."""
        log = self.log_residual(s)
        at = np.asarray(s)
        # Below this γ_1 s/2·L is far under rounding and the quotient of two denormals is not safe.
        flat = np.abs(at) < 1e-280
        learned = np.where(flat, self.total, -np.expm1(log) / np.where(flat, 1.0, at))
        return _real_as(s, np.exp(log)), _real_as(s, learned)


def _real_as(s: ArrayLike, value: NDArray[Any]) -> NDArray[Any]:
    """Real where s is: the logarithm of a momentum's ψ, which turns negative, is complex."""
    return np.asarray(value if np.iscomplexobj(s) else value.real)
