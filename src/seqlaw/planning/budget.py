"""Budgets, what an allocation of them spends, and the risk of every allocation that they allow.

At fixed (M, P, L) the risk is approx + bias + variance₁/N, so N is as large as the budgets allow and an
allocation is known by three sizes.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from seqlaw.model.checks import Array, InputError, positive, whole
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import LONGEST, Modes, Teacher
from seqlaw.rungs.equivalent import equivalent_risks

Triple = tuple[int, int, int]
"""(M, P, L)."""
_LARGEST_L = 10**18


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Ceilings: compute N·P·M²·L ≤ C, tokens N·P ≤ T, and optionally each size; a floor under P if wanted."""

    compute: float
    tokens: float
    max_M: float = math.inf
    max_N: float = math.inf
    max_P: float = math.inf
    max_L: float = math.inf
    min_P: float = 1

    def __post_init__(self) -> None:
        for name in ("compute", "tokens"):
            if positive(name, getattr(self, name)) > 1e32:
                raise InputError(name, "must be at most 1e32", getattr(self, name))
        for name in ("max_M", "max_N", "max_P", "max_L"):
            if getattr(self, name) != math.inf:
                object.__setattr__(self, name, whole(name, getattr(self, name)))
        object.__setattr__(self, "min_P", whole("min_P", self.min_P, most=LONGEST))
        if self.min_P > self.max_P:
            raise InputError("min_P", f"must be at most max_P = {self.max_P}", self.min_P)

    @property
    def shortest(self) -> int:
        """The least length that is considered: at P = 1 a student sees initial states only."""
        return max(2, int(self.min_P))


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
        if M > budget.max_M or not budget.min_P <= P <= budget.max_P or L > budget.max_L:
            return 0
        return min(int(budget.tokens) // P, int(budget.compute) // (P * M**2 * L), _whole(budget.max_N))

    def relaxed(self, triple: Triple) -> float:
        """The reducible risk at the largest real N ≥ 1."""
        M, P, L = triple
        return self.at(
            min(self.budget.tokens / P, self.budget.compute / (P * M**2 * L), self.budget.max_N), triple
        )

    def value(self, triple: Triple) -> float:
        """The reducible risk at the largest whole N."""
        return self.at(self.trajectories(triple), triple)

    def at(self, N: float, triple: Triple) -> float:
        """The reducible risk with N trajectories, infinite where the budgets do not allow them."""
        if not 1 <= math.floor(N) <= self.trajectories(triple):
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


@dataclass(frozen=True, kw_only=True)
class Box:
    """The least and the largest (M, P, L) of any feasible allocation."""

    low: Triple
    high: Triple

    @cached_property
    def logs(self) -> Array:
        """Both corners in logarithms, 2 × 3."""
        return np.asarray(np.log(np.array([self.low, self.high], dtype=float)))

    def integers(self, logs: Iterable[float]) -> Triple:
        """The nearest whole sizes inside, from logarithms."""
        M, P, L = (round(math.exp(u)) for u in np.clip(np.array(list(logs)), *self.logs))
        return self.clip((M, P, L))

    def clip(self, triple: Triple) -> Triple:
        """The nearest sizes inside."""
        M, P, L = (min(max(x, a), b) for x, a, b in zip(triple, self.low, self.high, strict=True))
        return M, P, L

    def holds(self, triple: Triple) -> bool:
        return all(a <= x <= b for x, a, b in zip(triple, self.low, self.high, strict=True))


def limits(search: Search) -> Box:
    """The box of all feasible allocations, or an error that says why there is none."""
    budget, least_L, least_P = search.budget, _shortest(search.schedule), search.budget.shortest
    teacher = search.teacher
    d = np.count_nonzero(teacher.sigma_xi + teacher.sigma_0) if isinstance(teacher, Modes) else search.d
    assert d is not None
    if d == 0:
        raise InputError("teacher", "must have a mode that varies", "none")
    if budget.tokens < 2:
        raise InputError("tokens", "must allow one trajectory of length 2", budget.tokens)
    if budget.max_P < 2:
        raise InputError("max_P", "must allow trajectories of length 2", budget.max_P)
    if budget.max_L < least_L:
        raise InputError("max_L", f"must allow the schedule's least {least_L} steps", budget.max_L)
    tokens, compute = int(budget.tokens), int(budget.compute)
    if compute < 2 * least_L:
        rule = f"must allow M = 1, N = 1, P = 2 and the schedule's least {least_L} steps"
        raise InputError("compute", rule, budget.compute)
    if least_P > tokens:
        raise InputError("min_P", f"must be at most the tokens, {budget.tokens:g}", budget.min_P)
    if least_P * least_L > compute:
        rule = f"must leave compute for M = 1, N = 1 and the schedule's least {least_L} steps"
        raise InputError("min_P", rule, budget.min_P)
    top_M = int(min(math.isqrt(compute // (least_P * least_L)), budget.max_M, d))
    top_P = int(min(tokens, compute // least_L, budget.max_P, LONGEST))
    top_L = int(min(compute // least_P, budget.max_L, _LARGEST_L))
    return Box(low=(1, least_P, least_L), high=(top_M, top_P, top_L))


def _shortest(schedule: Schedule) -> int:
    """The least number of steps that the schedule's phases allow."""
    for L in range(1, 10**4):
        try:
            schedule.with_steps(L)
        except InputError:
            continue
        return L
    raise InputError("schedule", "must allow fewer than 10000 steps", schedule)
