"""A plan for a teacher that is not known exactly: the optimum of each draw, and what one choice loses."""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass

import numpy as np

from seqlaw.methods.equivalent import equivalent_risks
from seqlaw.methods.method import Progress
from seqlaw.model.checks import Array, InputError, whole
from seqlaw.model.flags import Flag
from seqlaw.model.teacher import Teacher
from seqlaw.model.uncertain import Uncertain
from seqlaw.planning.budget import SIZES, Allocation, Search
from seqlaw.planning.few_data import AMPLE
from seqlaw.planning.search import FinitePlan, finite_plan

DRAWS = 24
LOW, HIGH = 0.1, 0.9
"""The quantiles at the ends of a spread."""

_RESOLVED = 2e-4  # of the risk, what quick sums tell apart: below it the middle's optimum is as good


@dataclass(frozen=True, kw_only=True)
class Spread:
    """The 10 %, 50 % and 90 % quantiles of a quantity over the draws."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Draw:
    """One teacher drawn from the intervals, and the allocation that is best for it."""

    teacher: Teacher
    best: Allocation
    flags: tuple[Flag, ...]
    regret: float
    """What the single choice loses if this teacher is true."""
    regret_of_middle: float
    """What the middle teacher's optimum loses if this teacher is true."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """One allocation for every teacher, and the share of the least risk that it loses over the draws."""

    allocation: Allocation
    """Its risk is that under the middle teacher."""
    mean: float
    worst: float


@dataclass(frozen=True, kw_only=True)
class Over:
    """What intervals do to a plan."""

    draws: tuple[Draw, ...]
    spread: dict[str, Spread]
    """Of each size, and of the least `reducible` risk."""
    single: Choice
    """Of the optima of the draws and of the middle, the one that loses least in the mean."""
    middle: Choice
    """The middle teacher's optimum, for comparison."""


def check_draws(uncertain: Uncertain, draws: int, d: float | None) -> None:
    """Raise now the errors that a draw would raise after minutes."""
    whole("draws", draws, least=2, most=1000)
    for name in ("alpha", "theta"):
        if d in (None, math.inf) and name in uncertain.intervals and uncertain.intervals[name][0] <= 1:
            rule = "must be above 1 at both ends, or d finite: else the trace of a covariance diverges"
            raise InputError(name, rule, ":".join(f"{end:g}" for end in uncertain.intervals[name]))


def plan_over(
    uncertain: Uncertain,
    search: Search,
    middle: FinitePlan,
    *,
    draws: int = DRAWS,
    seed: int = 0,
    progress: Progress | None = None,
) -> Over:
    """Ask for each draw what `search` asks of the middle teacher, whose optimum is `middle`."""
    teachers = uncertain.draws(draws, seed=seed)
    searches = [dataclasses.replace(search, teacher=teacher) for teacher in teachers]
    plans: list[FinitePlan] = []
    columns: list[list[float]] = []
    for one in searches:
        plans.append(finite_plan(one))
        if progress is not None:
            progress(len(plans), 2 * draws)
    candidates = [middle.best, *(plan.best for plan in plans)]
    for one in searches:
        columns.append(risks_of(one, candidates))
        if progress is not None:
            progress(draws + len(columns), 2 * draws)
    lost = regrets(np.array(columns).T)
    means = lost.mean(axis=1)
    chosen = int(np.argmin(means)) if means[0] > means.min() + _RESOLVED else 0
    single = middle.best
    if chosen:
        best = candidates[chosen]
        [own] = equivalent_risks([search.setting(best.M, best.N, best.P, best.L)])
        single = dataclasses.replace(best, reducible=own.reducible)
    quantities = {name: [getattr(plan.best, name) for plan in plans] for name in (*SIZES, "reducible")}
    return Over(
        draws=tuple(
            Draw(teacher=teacher, best=plan.best, flags=plan.risk.flags, regret=a, regret_of_middle=b)
            for teacher, plan, a, b in zip(
                teachers, plans, lost[chosen].tolist(), lost[0].tolist(), strict=True
            )
        ),
        spread={name: _spread(values) for name, values in quantities.items()},
        single=Choice(allocation=single, mean=float(means[chosen]), worst=float(lost[chosen].max())),
        middle=Choice(allocation=middle.best, mean=float(means[0]), worst=float(lost[0].max())),
    )


def risks_of(search: Search, allocations: list[Allocation]) -> list[float]:
    """The reducible risk of each allocation if the teacher is the search's."""
    settings = [search.setting(a.M, a.N, a.P, a.L) for a in allocations]
    return [risk.reducible for risk in equivalent_risks(settings, quick=True, ample=AMPLE)]


def regrets(risks: Array) -> Array:
    """Rows are allocations, columns teachers: the risk over the least of its column, minus 1."""
    return np.asarray(risks / risks.min(axis=0) - 1)


def _spread(values: list[float]) -> Spread:
    low, median, high = np.quantile(values, [LOW, 0.5, HIGH]).tolist()
    return Spread(low=low, median=median, high=high)
