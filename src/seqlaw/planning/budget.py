"""Budgets, what an allocation of them spends, and which sizes they allow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError, positive, whole, whole_or_infinite
from seqlaw.model.formula import Formula
from seqlaw.model.lengths import Length
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import WIDEST, Setting
from seqlaw.model.teacher import LONGEST, Modes, Teacher

SIZES = ("M", "N", "P", "L")
PAPER_COST = "N*P*L*M**2"
MOST_STEPS = 10**18


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Ceilings: compute ≤ C, tokens N·P ≤ T, and optionally each size; a floor under P if wanted.

    `cost` is the compute of a training run, a formula in M, N, P, L that is linear in N: the paper's N·P·M²·L
    unless given.

    >>> import seqlaw
    >>> seqlaw.Budget(compute=1e12, tokens=1e6, max_P=256).cost
    'N*P*L*M**2'
    """

    compute: float
    tokens: float
    max_M: float = math.inf
    max_N: float = math.inf
    max_P: float = math.inf
    max_L: float = math.inf
    min_P: float = 1
    cost: str = PAPER_COST

    def __post_init__(self) -> None:
        for name in ("compute", "tokens"):
            if positive(name, getattr(self, name)) > 1e32:
                raise InputError(name, "must be at most 1e32", getattr(self, name))
        for name in ("max_M", "max_N", "max_P", "max_L"):
            object.__setattr__(self, name, whole_or_infinite(name, getattr(self, name)))
        object.__setattr__(self, "min_P", whole("min_P", self.min_P, most=LONGEST))
        if self.min_P > self.max_P:
            raise InputError("min_P", f"must be at most max_P = {self.max_P}", self.min_P)
        formula = self.formula
        low = {size: np.geomspace(2, 1e6 if size == "M" else 1e9, 10) for size in SIZES}
        for size in SIZES:  # one size runs, the others stand at several places
            for others in (2.0, 50.0, 1e4):
                spent = formula(**{s: low[s] if s == size else np.full(10, others) for s in SIZES})
                if not (np.all(np.isfinite(spent)) and spent[0] > 0 and np.all(np.diff(spent) > 0)):
                    raise InputError(
                        "cost", "must be positive, finite and grow with each of M, N, P, L", self.cost
                    )

    @cached_property
    def formula(self) -> Formula:
        return Formula(self.cost, SIZES, "N")

    @cached_property
    def _proportional(self) -> bool:
        """Whether the cost is proportional to L at the sizes that are tried."""
        sizes = {"M": np.array([1.0, 7.0, 300.0]), "N": 3.0, "P": np.array([2.0, 90.0, 1e5])}
        one = self.formula(**sizes, L=1.0)
        return all(
            np.allclose(self.formula(**sizes, L=L), L * one, rtol=1e-12, atol=0) for L in (2.0, 77.0, 1e7)
        )

    @property
    def shortest(self) -> int:
        """The least length that is considered: at P = 1 a student sees initial states only."""
        return max(2, int(self.min_P))

    @property
    def fewest(self) -> int:
        """The least N."""
        return 1

    def trained_on(self, P: int) -> Length:
        """The lengths that N sequences have when a search asks for P."""
        return P

    def tokens_each(self, P: Any) -> Any:
        """Tokens a sequence."""
        return P

    def tokens_of(self, N: int, P: int) -> int:
        """Of whole sequences."""
        return N * P

    def spent(self, M: int, N: int, P: int, L: int) -> float:
        """The compute of whole sequences."""
        found: float = self.formula(M=M, N=N, P=P, L=L)  # whole where the sizes are
        return found

    def in_whole(self, M: int, N: int, P: int, L: int) -> tuple[int, int]:
        """N lowered where floating point rounded it above the tokens; L as it is."""
        return min(N, int(self.tokens) // P), L

    def most_sequences(self, M: Any, P: Any, L: Any) -> Array:
        """The largest N that every budget allows, as a real number; below 1 where none."""
        constant, slope = self.formula.parts({"M": M, "P": P, "L": L})
        with np.errstate(over="ignore"):
            room = np.minimum((self.compute - constant) / slope, self.max_N)
            found = np.minimum(room, self.tokens / self.tokens_each(P)) * (1 + 1e-13)
        return np.asarray(np.where(found < self.fewest, 0.0, found) if self.fewest > 1 else found)

    def most_steps(self, M: Any, P: Any, N: Any) -> Array:
        """The largest whole L with cost ≤ C, below 1 where none; by bisection unless proportional to L."""
        with np.errstate(over="ignore"):
            one = np.asarray(self.formula(M=M, P=P, N=N, L=1.0), dtype=float)
            if self._proportional:
                steps = self.compute / one
            else:
                low, high = np.zeros_like(one), np.full_like(one, float(MOST_STEPS))
                for _ in range(64):
                    middle = np.sqrt((low + 1) * (high + 1)) - 1
                    fits = self.formula(M=M, P=P, N=N, L=middle) <= self.compute
                    low, high = np.where(fits, middle, low), np.where(fits, high, middle)
                steps = low
        return np.asarray(np.floor(np.minimum(steps * (1 + 1e-13), min(self.max_L, MOST_STEPS))))

    def allows(self, M: int, N: int, P: int, L: int) -> bool:
        """In whole numbers, to the last digit."""
        sizes = {"M": M, "N": N, "P": P, "L": L}
        ceilings = all(sizes[size] <= getattr(self, f"max_{size}") for size in SIZES)
        return bool(
            ceilings
            and min(sizes.values()) >= 1
            and N >= self.fewest
            and P >= self.min_P
            and self.tokens_of(N, P) <= self.tokens
            and self.spent(**sizes) <= self.compute
        )


@dataclass(frozen=True, kw_only=True)
class Allocation:
    """Sizes, what they spend, and the risk that they reach."""

    M: int
    N: int
    P: int
    L: int
    compute: float
    reducible: float
    tokens: int


@dataclass(frozen=True, kw_only=True, eq=False)
class Search:
    """The problem: which student, which budgets, tested where (None: at the training length)."""

    teacher: Teacher | Modes
    d: float
    schedule: Schedule
    budget: Budget
    eval_length: int | None

    def setting(self, M: int, N: int, P: int, L: int) -> Setting:
        return Setting(
            teacher=self.teacher,
            M=M,
            N=N,
            P=self.budget.trained_on(P),
            d=self.d,
            schedule=self.schedule.with_steps(L),
            eval_length=self.eval_length,
        )

    @cached_property
    def tables(self) -> dict[bytes, tuple[Array, Array]]:
        """What landscapes have computed, by their nodes: one with the law has the nodes of one without."""
        return {}

    @cached_property
    def widest(self) -> float:
        """The largest M that the teacher has modes for."""
        if not isinstance(self.teacher, Modes):
            return self.d
        return float(np.count_nonzero(self.teacher.sigma_xi + self.teacher.sigma_0))

    @cached_property
    def least_steps(self) -> int:
        """The least number of steps that the schedule's phases allow."""
        for L in range(1, 10**4):
            try:
                self.schedule.with_steps(L)
            except InputError:
                continue
            return L
        raise InputError("schedule", "must allow fewer than 10000 steps", self.schedule)


@dataclass(frozen=True, kw_only=True)
class Box:
    """The least and the largest of each size in any feasible allocation, and what sets them."""

    low: dict[str, int]
    high: dict[str, int]
    set_by: dict[str, tuple[str, str]]


def limits(search: Search) -> Box:
    """The box of all feasible allocations, or an error that says why there is none."""
    budget, least_L, least_P = search.budget, search.least_steps, search.budget.shortest
    if search.widest == 0:
        raise InputError("teacher", "must have a mode that varies", "none")
    if budget.tokens < 2:
        raise InputError("tokens", "must allow one trajectory of length 2", budget.tokens)
    if budget.max_P < 2:
        raise InputError("max_P", "must allow trajectories of length 2", budget.max_P)
    if budget.max_L < least_L:
        raise InputError("max_L", f"must allow the schedule's least {least_L} steps", budget.max_L)
    if budget.formula(M=1, N=1, P=2, L=least_L) > budget.compute:
        rule = f"must allow M = 1, N = 1, P = 2 and the schedule's least {least_L} steps"
        raise InputError("compute", rule, budget.compute)
    if least_P > budget.tokens:
        raise InputError("min_P", f"must be at most the tokens, {budget.tokens:g}", budget.min_P)
    low = {"M": 1, "N": budget.fewest, "P": least_P, "L": least_L}
    if budget.formula(**low) > budget.compute:
        rule = f"must leave compute for M = 1, N = {budget.fewest} and the schedule's least {least_L} steps"
        raise InputError("min_P", rule, budget.min_P)
    tops: dict[str, dict[str, float]] = {
        "M": {"d": search.widest, "longest": WIDEST},
        "N": {"tokens": budget.tokens / budget.tokens_each(least_P)},
        "P": {"tokens": budget.tokens, "longest": LONGEST},
        "L": {"longest": MOST_STEPS},
    }
    high, set_by = {}, {}
    for size in SIZES:
        ways = tops[size] | {f"max_{size}": getattr(budget, f"max_{size}")}
        name, top = min(ways.items(), key=lambda way: way[1])
        high[size] = most = _largest(budget, low, size, top)
        floor = {"P": "min_P" if budget.min_P > 2 else "shortest", "L": "schedule"}
        set_by[size] = floor.get(size, "one"), name if most + 1 > top else "compute"
    return Box(low=low, high=high, set_by=set_by)


def _largest(budget: Budget, low: dict[str, int], size: str, top: float) -> int:
    """The largest whole number up to `top` that the compute allows, the other sizes at their least."""

    def fits(value: int) -> bool:
        return bool(budget.formula(**(low | {size: value})) <= budget.compute)

    good, bad = low[size], 2 * low[size]
    while bad <= top and fits(bad):
        good, bad = bad, 2 * bad
    bad = min(bad, math.floor(top) + 1) if top < math.inf else bad
    while bad - good > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if fits(middle) else (good, middle)
    return good
