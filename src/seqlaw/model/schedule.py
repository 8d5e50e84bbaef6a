"""The schedules: constant, cosine, warm-up–stable–decay, block decay, and any array of steps.

The interface is `seqlaw.model.filters`. Constant, block and explicit ones are runs of equal steps, which is
all that they say. Warm-up, exponential decay and cosine phases have closed power sums, so log ψ is summed as
    log ψ(s) = Σ_t log(1 - γ_t s) = -Σ_n (s^n / n) Σ_t γ_t^n,
which keeps full relative precision for real and complex s however small, at O(1) in L.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlaw.model.checks import Array, InputError, positive, real, vector, whole
from seqlaw.model.extension import IMPORT_PATH, import_object, path_of
from seqlaw.model.filters import MOST_STEPS, Schedule, fewest, runs_of, speaking_of, steps_to
from seqlaw.model.power_sums import ramp_power_sums, sum_logs

__all__ = [
    "GAMMA",
    "SCHEDULES",
    "STEPS",
    "WSD",
    "BlockDecay",
    "Constant",
    "Cosine",
    "Explicit",
    "Schedule",
    "as_schedule",
]


@dataclass(frozen=True, kw_only=True)
class _Counted(Schedule):
    """A peak step and a number of steps, both checked."""

    gamma: float
    L: int
    least: ClassVar[int] = 1

    def least_steps(self) -> int:
        return self.least

    def __post_init__(self) -> None:
        name = type(self).__name__
        object.__setattr__(self, "gamma", positive(f"{name}.gamma", self.gamma))
        object.__setattr__(self, "L", whole(f"{name}.L", self.L, least=self.least, most=MOST_STEPS))


@dataclass(frozen=True, kw_only=True)
class Constant(_Counted):
    """γ_t = γ; R = γL.

    >>> import seqlaw
    >>> seqlaw.Constant(gamma=0.1, L=1000).horizon
    100.0
    """

    name: ClassVar[str] = "constant"

    def at(self, t: ArrayLike) -> Array:
        return np.full(np.shape(t), self.gamma)

    def runs(self) -> tuple[Array, Array]:
        return np.array([float(self.L)]), np.array([self.gamma])


@dataclass(frozen=True, kw_only=True)
class _Smooth(_Counted):
    """γ_t = γ w_t, with the power sums of w_t in closed form."""

    @abstractmethod
    def power_sums(self, n: Array) -> Array:
        """Σ_t w_t^n for n = 1 … n_max."""

    def runs(self) -> None:
        return None

    def log_psi(self, s: NDArray[Any]) -> NDArray[Any]:
        return sum_logs(self.power_sums, self.gamma * s)


@dataclass(frozen=True, kw_only=True)
class Cosine(_Smooth):
    """γ_t = γ cos²(π(t-1)/(2L)), from γ down to almost zero; R = γL.

    Σ_t cos^{2n}(π(t-1)/(2L)) = L binom(2n, n)/4^n + ½ exactly for n < 2L (no aliasing).

    >>> import seqlaw
    >>> seqlaw.Cosine(gamma=0.1, L=1000).horizon
    100.0
    """

    name: ClassVar[str] = "cosine"

    def at(self, t: ArrayLike) -> Array:
        return np.asarray(self.gamma * np.cos(np.pi * (np.asarray(t) - 1) / (2 * self.L)) ** 2)

    @property
    def total(self) -> float:
        return self.gamma * (self.L + 1) / 2

    def power_sums(self, n: Array) -> Array:
        if self.L <= n[-1]:
            return np.asarray(((self.at(np.arange(1, self.L + 1)) / self.gamma) ** n[:, None]).sum(axis=1))
        return self.L * np.cumprod((2 * n - 1) / (2 * n)) + 0.5


@dataclass(frozen=True, kw_only=True)
class WSD(_Smooth):
    """Warm-up, stable, decay (the theorem's schedule); R = γL.

    γ t/L_w up to L_w, γ up to L_s, then γ exp(-(t - L_s) ln L/(L - L_s)), which ends at γ/L.
    `warmup` and `decay` are the fractions L_w/L and (L - L_s)/L; 1 ≤ L_w < L_s < L is checked.

    >>> import seqlaw
    >>> seqlaw.WSD(gamma=0.1, L=1000, warmup=0.1, decay=0.2).at([1, 500, 1000])
    array([0.001 , 0.1   , 0.0001])
    """

    warmup: float = 0.1
    decay: float = 0.2
    name: ClassVar[str] = "wsd"
    least: ClassVar[int] = 3

    def __post_init__(self) -> None:
        super().__post_init__()
        for field in ("warmup", "decay"):
            fraction = real(f"WSD.{field}", getattr(self, field))
            object.__setattr__(self, field, fraction)
            if not 0 < fraction < 1:
                raise InputError(f"WSD.{field}", "must lie in (0, 1)", fraction)
        if self.warmup + self.decay >= 1:
            raise InputError("WSD.warmup", f"must be below 1 - decay = {1 - self.decay:g}", self.warmup)
        if not 1 <= self.warmup_end < self.stable_end < self.L:
            raise InputError(
                "WSD.L",
                f"must leave room for each phase (1 <= L_w < L_s < L; here L_w = {self.warmup_end}, "
                f"L_s = {self.stable_end}; {self.least_steps()} steps or more always do)",
                self.L,
            )

    def least_steps(self) -> int:
        # Each phase needs a step of its own; a half rounds either way.
        return max(self.least, *(math.ceil(min(2 / share, 1e15)) for share in (self.warmup, self.decay)))

    @property
    def warmup_end(self) -> int:
        """L_w."""
        return round(self.warmup * self.L)

    @property
    def stable_end(self) -> int:
        """L_s."""
        return self.L - round(self.decay * self.L)

    @classmethod
    def from_horizon(cls, R: float, gamma: float, *, warmup: float = 0.1, decay: float = 0.2) -> Self:
        """The schedule with the fewest steps whose horizon reaches R, and these fractions."""
        with speaking_of(R):
            return cls(gamma=gamma, L=cls.steps_reaching(R, gamma), warmup=warmup, decay=decay)

    def at(self, t: ArrayLike) -> Array:
        t = np.asarray(t, dtype=np.float64)
        ramp = np.minimum(t / self.warmup_end, 1)
        fall = np.maximum(t - self.stable_end, 0) * (math.log(self.L) / (self.L - self.stable_end))
        return np.asarray(self.gamma * ramp * np.exp(-fall))

    def power_sums(self, n: Array) -> Array:
        steps = self.L - self.stable_end
        with np.errstate(over="ignore"):  # a steep decay: the sum is its first term, or nothing
            falling = -np.expm1(-n * math.log(self.L)) / np.expm1(n * (math.log(self.L) / steps))
        return np.asarray(ramp_power_sums(self.warmup_end, n) + (self.stable_end - self.warmup_end) + falling)

    @property
    def total(self) -> float:
        ramp, flat, fall = self.warmup_end, self.stable_end - self.warmup_end, self.L - self.stable_end
        return self.gamma * ((ramp + 1) / 2 + flat + (1 - 1 / self.L) / math.expm1(math.log(self.L) / fall))

    def corners(self) -> list[int]:
        return [self.warmup_end, self.stable_end, self.L]


@dataclass(frozen=True, kw_only=True)
class BlockDecay(_Counted):
    """γ_t = γ/2^⌊(t-1)/L_eff⌋, L_eff = ⌊L/ln L⌋ (the paper's experiments); R = γ L_eff.

    About ln L blocks, the last one partial; Σγ_t ≈ 2R.

    >>> import seqlaw
    >>> seqlaw.BlockDecay(gamma=0.1, L=1000).L_eff
    144
    """

    name: ClassVar[str] = "block"
    least: ClassVar[int] = 2

    @property
    def L_eff(self) -> int:
        """⌊L/ln L⌋ (natural logarithm)."""
        return math.floor(self.L / math.log(self.L))

    def runs(self) -> tuple[Array, Array]:
        """Number of steps and step size of each block."""
        count = -(-self.L // self.L_eff)
        lengths = np.full(count, float(self.L_eff))
        lengths[-1] = self.L - (count - 1) * self.L_eff
        return lengths, self.gamma * 0.5 ** np.arange(count)

    def at(self, t: ArrayLike) -> Array:
        return np.asarray(self.gamma * 0.5 ** ((np.asarray(t) - 1) // self.L_eff))

    @property
    def horizon(self) -> float:
        return self.gamma * self.L_eff

    @classmethod
    def steps_reaching(cls, R: float, gamma: float) -> int:
        """The smallest L with γ⌊L/ln L⌋ ≥ R: R = 1200, γ = 0.1 gives the paper's L = 142397."""
        wanted = steps_to(R, gamma)
        return fewest(lambda L: L > 1 and math.floor(L / math.log(L)) >= wanted, R)


@dataclass(frozen=True, kw_only=True, eq=False)
class Explicit(Schedule):
    """Any array of step sizes γ_t ≥ 0; R is their sum. Costs O(distinct sizes) per eigenvalue.

    >>> import seqlaw
    >>> seqlaw.Explicit(sizes=[0.1, 0.05]).horizon
    0.15...
    """

    sizes: Array
    name: ClassVar[str] = "explicit"

    def __post_init__(self) -> None:
        sizes = vector("Explicit.sizes", self.sizes)
        if np.any(sizes < 0) or not np.any(sizes > 0):
            raise InputError(
                "Explicit.sizes",
                "must not be negative, and at least one must be positive",
                float(sizes.min()),
            )
        object.__setattr__(self, "sizes", sizes)

    @property
    def gamma(self) -> float:  # type: ignore[override]  # read off the array, not a field
        return float(self.sizes.max())

    @property
    def L(self) -> int:  # type: ignore[override]  # as gamma
        return self.sizes.size

    def at(self, t: ArrayLike) -> Array:
        return np.asarray(self.sizes[np.asarray(t) - 1])

    @property
    def horizon(self) -> float:
        return self.total

    def runs(self) -> tuple[Array, Array]:
        return runs_of(self.sizes)

    def scaled(self, gamma: float) -> Self:
        return replace(self, sizes=self.sizes * (gamma / self.gamma))

    def with_steps(self, L: int) -> Self:
        raise InputError("schedule", f"must not be an explicit one here, where {L} steps follow", self.L)

    @classmethod
    def steps_reaching(cls, R: float, gamma: float) -> int:
        raise InputError("R", "cannot choose the length of an explicit schedule: give its sizes", R)


SCHEDULES: dict[str, type[Schedule]] = {kind.name: kind for kind in (WSD, BlockDecay, Constant, Cosine)}
"""The schedules that a name, a step count or horizon and a peak step size define."""

FURTHER: dict[str, type[Schedule]] = {}
"""Those with a name that need more: momentum (`model/momentum.py`)."""

GAMMA, STEPS = 0.1, 30_000
"""γ and L of a schedule that is given by its name alone, in Python and on the command line."""


def as_schedule(field: str, value: object) -> Schedule:
    """A schedule as it is, or that of a name ("wsd", "block", …) with γ = 0.1, L = 30000; else an error."""
    if isinstance(value, Schedule):
        _check_formulas(field, value)
        return value
    if isinstance(value, str):
        return build_schedule(schedule_kind(value, field=field), field, gamma=GAMMA, L=STEPS)
    raise InputError(field, f"must be one of {', '.join(SCHEDULES)}, or a Schedule", value)


_CHECKED_STEPS = 10**5
_CONSISTENT: set[tuple[type, str]] = set()
"""Schedules that passed: searches make thousands of settings with one."""


def _check_formulas(field: str, schedule: Schedule) -> None:
    """Refuse a user's schedule whose `total` or `log_psi` is not that of its steps; each is checked once."""
    kind = type(schedule)
    if kind.__module__.split(".")[0] == "seqlaw" or schedule.memory or schedule.L > _CHECKED_STEPS:
        return
    if (kind, repr(schedule)) in _CONSISTENT:
        return
    sizes = np.asarray(schedule.steps(), dtype=np.float64)
    if not math.isclose(schedule.total, sizes.sum(), rel_tol=1e-3):
        raise InputError(
            field, f"must have the sum of its steps, {sizes.sum():.6g}, as `total`", schedule.total
        )
    s = np.array([0.001, 0.03, 0.3]) / sizes.max()
    sums = np.log1p(-np.multiply.outer(s, sizes)).sum(axis=1)
    if not np.allclose(found := np.real(schedule.log_psi(s)), sums, rtol=1e-3, atol=1e-9):
        rule = f"must have the sum of log(1 - step * s), {sums[-1]:.6g} at s = {s[-1]:.4g}, as `log_psi(s)`"
        raise InputError(field, rule, float(found[-1]))
    _CONSISTENT.add((kind, repr(schedule)))


def schedule_kind(name: str, *, field: str = "schedule") -> type[Schedule]:
    """The schedule of a name, or the user's own of an import path (`mymodule:Linear`)."""
    if (named := (SCHEDULES | FURTHER).get(name)) is not None:
        return named
    if not IMPORT_PATH.fullmatch(name):
        known = ", ".join(SCHEDULES)
        raise InputError(field, f"must be one of {known} or an import path like mymodule:Name", name)
    kind: Any = import_object(field, name)
    if not (isinstance(kind, type) and issubclass(kind, Schedule) and hasattr(kind, "__dataclass_fields__")):
        raise InputError(field, "must name a subclass of seqlaw.Schedule that is a dataclass", name)
    if not {"gamma", "L"} <= set(kind.__dataclass_fields__):
        raise InputError(field, "must name a schedule with the fields gamma and L", name)
    found: type[Schedule] = kind
    return found


def build_schedule(kind: type[Schedule], field: str, **numbers: Any) -> Schedule:
    """A schedule of these numbers; what a class of the user's lacks is an error about `field`."""
    make: Callable[..., Schedule] = kind
    try:
        return make(**numbers)
    except TypeError as error:  # abstract methods, further fields without a default
        raise InputError(field, f"must be built from {', '.join(numbers)} ({error})", path_of(kind)) from None


def kind_name(schedule: Schedule) -> str:
    """What `schedule_kind` knows the schedule's class by."""
    schedule = schedule.plain
    named = (SCHEDULES | FURTHER).get(schedule.name)
    known = named is type(schedule) or isinstance(schedule, Explicit)
    return schedule.name if known else path_of(type(schedule))
