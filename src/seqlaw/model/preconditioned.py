"""A preconditioner and weight decay: one more filter round any schedule.

    B_t = B_{t-1} - γ_t [(B_{t-1} Ĝ - Ĉ) Ĝ^-p + λ B_{t-1}],   0 ≤ p ≤ 0.9,   λ ≥ 0.
All of it commutes with Ĝ, so with q = 1 - p and x = s^q + λ an eigenvalue s sees the schedule's ψ and g at x:
    response φ(s) = s^-p g(x),      residual 1 - sφ(s) = (λ + s^q ψ(x))/x.
γ and the horizon R are in units of x. The safeguard keeps γ(‖Ĝ‖^q + λ) ≤ ½. A direction without data (s = 0)
is not moved. p > 0 brings a branch cut on the negative axis, λ > 0 a pole there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from seqlaw.model.checks import Array, InputError, real
from seqlaw.model.filters import Schedule

LARGEST_POWER = 0.9
"""The largest p: towards natural gradient, p = 1, steps no longer see the spectrum at all."""


@dataclass(frozen=True, kw_only=True)
class Preconditioned(Schedule):
    """A schedule whose gradients are multiplied by Ĝ^-p, with weight decay λ; made by `preconditioned`."""

    schedule: Schedule
    precondition: float = 0.0
    weight_decay: float = 0.0
    entire: ClassVar[bool] = False

    @property
    def plain(self) -> Schedule:
        return self.schedule

    @property
    def additions(self) -> dict[str, float]:
        return {"precondition": self.precondition, "weight_decay": self.weight_decay}

    @property
    def power(self) -> float:  # type: ignore[override]  # read off p
        """q = 1 - p."""
        return 1 - self.precondition

    @property
    def gamma(self) -> float:  # type: ignore[override]  # the schedule's, like all that follows
        return self.schedule.gamma

    @property
    def L(self) -> int:  # type: ignore[override]
        return self.schedule.L

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.schedule.name

    @property
    def memory(self) -> bool:  # type: ignore[override]
        return self.schedule.memory

    @property
    def horizon(self) -> float:
        return self.schedule.horizon

    @property
    def total(self) -> float:
        """g(λ): Σγ without weight decay, at most 1/λ with it."""
        if self.weight_decay == 0:
            return self.schedule.total
        if self.gamma * self.weight_decay > 0.5:  # only before the safeguard
            return 1 / self.weight_decay
        return float(self.schedule.response(self.weight_decay))

    def at(self, t: ArrayLike) -> Array:
        return self.schedule.at(t)

    def runs(self) -> tuple[Array, Array] | None:
        return self.schedule.runs()

    def corners(self) -> list[int]:
        return self.schedule.corners()

    def least_steps(self) -> int:
        return self.schedule.least_steps()

    def is_smooth(self, steps: float) -> bool:
        return False

    def with_plain(self, schedule: Schedule) -> Self:
        return replace(self, schedule=schedule)

    def with_steps(self, L: int) -> Self:
        return self.with_plain(self.schedule.with_steps(L))

    def with_horizon(self, R: float) -> Self:
        return self.with_plain(self.schedule.with_horizon(R))

    def scaled(self, gamma: float) -> Self:
        return self.with_plain(self.schedule.scaled(gamma))

    def speed(self, s: Any) -> Any:
        return s**self.power + self.weight_decay

    def size_at(self, speed: float) -> float:
        return float(max(speed - self.weight_decay, 0.0) ** (1 / self.power))

    def log_psi(self, s: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(np.log(self.residual(s)))

    def residual(self, s: ArrayLike) -> NDArray[Any]:
        return self.both(s)[0]

    def both(self, s: ArrayLike) -> tuple[NDArray[Any], NDArray[Any]]:
        s = np.asarray(s)
        moved = s != 0
        safe = np.where(moved, s, 1.0)  # a negative power of zero is no number
        power = np.where(moved, safe**self.power, 0.0)
        x = power + self.weight_decay
        psi, g = self.schedule.both(x)
        residual = np.where(moved, (self.weight_decay + power * psi) / np.where(moved, x, 1.0), 1.0)
        response = safe**-self.precondition * g
        return residual, response if self.precondition == 0 else np.where(moved, response, 0.0)

    def off_axis(self, s: NDArray[Any], *, beyond: bool = True) -> NDArray[Any]:
        power = s**self.power
        x = power + self.weight_decay
        return np.asarray((self.weight_decay + power * self.schedule.off_axis(x, beyond=beyond)) / x)


def refused(schedule: Schedule, rule: str) -> InputError:
    """An error about the preconditioner, or the weight decay, that a schedule has."""
    field = "precondition" if schedule.precondition else "weight_decay"
    return InputError(field, rule, getattr(schedule, field))


def preconditioned(schedule: Schedule, precondition: float, weight_decay: float) -> Schedule:
    """The schedule with this preconditioner and weight decay, in place of those it may have."""
    p, decay = real("precondition", precondition), real("weight_decay", weight_decay)
    if not 0 <= p <= LARGEST_POWER:
        raise InputError("precondition", f"must lie in [0, {LARGEST_POWER}]", precondition)
    if decay < 0:
        raise InputError("weight_decay", "must not be negative", weight_decay)
    plain = schedule.plain
    if p == decay == 0:
        return plain
    return Preconditioned(schedule=plain, precondition=p, weight_decay=decay)
