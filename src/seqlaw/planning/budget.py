"""Budgets, what an allocation of them spends, and the risk of every allocation that they allow.

At fixed (M, P, L) the risk is approx + bias + variance₁/N, so N is as large as the budgets allow and an
allocation is known by three sizes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass

from seqlaw.model.checks import InputError, positive, whole
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import LONGEST, Modes, Teacher
from seqlaw.rungs.equivalent import equivalent_risks

Triple = tuple[int, int, int]
"""(M, P, L)."""
_LARGEST_L = 10**18


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Ceilings: compute N·P·M²·L ≤ C, tokens N·P ≤ T, and optionally each size."""

    compute: float
    tokens: float
    max_M: float = math.inf
    max_N: float = math.inf
    max_P: float = math.inf
    max_L: float = math.inf

    def __post_init__(self) -> None:
        for name in ("compute", "tokens"):
            if positive(name, getattr(self, name)) > 1e32:
                raise InputError(name, "must be at most 1e32", getattr(self, name))
        for name in ("max_M", "max_N", "max_P", "max_L"):
            if getattr(self, name) != math.inf:
                object.__setattr__(self, name, whole(name, getattr(self, name)))


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """Sizes, what they spend, and the risk that they reach."""

    M: int
    N: int
    P: int
    L: int
    reducible: float

    @property
    def tokens(self) -> int:
        return self.N * self.P

    @property
    def compute(self) -> int:
        return self.N * self.P * self.M**2 * self.L


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """The problem: which student, which budgets, tested where (None: at the training length)."""

    teacher: Teacher | Modes
    d: float | None
    schedule: Schedule
    budget: Budget
    eval_length: int | None
    seen: dict[Triple, tuple[float, float]] = dataclasses.field(default_factory=dict)
    """approx + bias, and the variance of one trajectory, of every allocation looked at."""

    def trajectories(self, triple: Triple) -> int:
        """The largest N that the budgets allow, 0 where none."""
        M, P, L = triple
        budget = self.budget
        if M > budget.max_M or P > budget.max_P or L > budget.max_L:
            return 0
        return min(int(budget.tokens) // P, int(budget.compute) // (P * M**2 * L), _whole(budget.max_N))

    def relaxed(self, triple: Triple) -> float:
        """The reducible risk at the largest real N ≥ 1."""
        if self.trajectories(triple) < 1:
            return math.inf
        M, P, L = triple
        N = min(self.budget.tokens / P, self.budget.compute / (P * M**2 * L), self.budget.max_N)
        fixed, variance = self.seen[triple]
        return fixed + variance / N

    def value(self, triple: Triple) -> float:
        """The reducible risk at the largest whole N."""
        N = self.trajectories(triple)
        if N < 1:
            return math.inf
        fixed, variance = self.seen[triple]
        return fixed + variance / N

    def best(self) -> Triple:
        return min(self.seen, key=self.value)

    def setting(self, triple: Triple, N: int | None = None) -> Setting:
        M, P, L = triple
        return Setting(
            teacher=self.teacher,
            M=M,
            N=self.trajectories(triple) if N is None else N,
            P=P,
            d=self.d,
            schedule=self.schedule.with_steps(L),
            eval_length=self.eval_length,
        )

    def look(self, triples: Iterable[Triple]) -> None:
        """Evaluate the allocations that the budgets allow and that are new, in one batch."""
        new = [t for t in dict.fromkeys(triples) if t not in self.seen and self.trajectories(t) >= 1]
        risks = equivalent_risks([self.setting(t, 1) for t in new], quick=True)
        self.seen.update({t: (r.approx + r.bias, r.variance) for t, r in zip(new, risks, strict=True)})

    def allocation(self, triple: Triple) -> Allocation:
        M, P, L = triple
        return Allocation(M=M, N=self.trajectories(triple), P=P, L=L, reducible=self.value(triple))


def _whole(value: float) -> int:
    return 10**40 if value == math.inf else int(value)


def limits(search: Search) -> tuple[Triple, Triple]:
    """The least and the largest (M, P, L) of any feasible allocation, or an error that says why none."""
    budget, least_L = search.budget, _shortest(search.schedule)
    d = search.teacher.d if isinstance(search.teacher, Modes) else search.d
    assert d is not None
    if budget.tokens < 2:
        raise InputError("tokens", "must allow one trajectory of length 2", budget.tokens)
    if budget.max_P < 2:
        raise InputError("max_P", "must allow trajectories of length 2", budget.max_P)
    if budget.max_L < least_L:
        raise InputError("max_L", f"must allow the schedule's least {least_L} steps", budget.max_L)
    room = int(budget.compute) // (2 * least_L)
    if room < 1:
        rule = f"must allow M = 1, N = 1, P = 2 and the schedule's least {least_L} steps"
        raise InputError("compute", rule, budget.compute)
    top_M = int(min(math.isqrt(room), budget.max_M, d))
    top_P = int(min(budget.tokens, room * 2, budget.max_P, LONGEST))
    top_L = int(min(int(budget.compute) // 2, budget.max_L, _LARGEST_L))
    return (1, 2, least_L), (top_M, top_P, top_L)


def _shortest(schedule: Schedule) -> int:
    """The least number of steps that the schedule's phases allow."""
    for L in range(1, 10**4):
        try:
            schedule.with_steps(L)
        except InputError:
            continue
        return L
    raise InputError("schedule", "must allow fewer than 10000 steps", schedule)
