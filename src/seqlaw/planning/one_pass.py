"""The best one pass: width, batch, length, steps and step size for tokens b·P·L and compute b·P·L·M².

More steps or more data are the same thing here, so for a width the budgets leave two sizes free, P and b;
the step is tuned at each. The risk has one valley, but a test length may give it two (docs/one-pass.md), so
the search climbs from several lengths, in ever finer steps of the logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from seqlaw.model.checks import InputError, whole
from seqlaw.model.flags import Flag
from seqlaw.model.schedule import Schedule, as_schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes, Teacher, as_teacher
from seqlaw.model.threads import one_thread
from seqlaw.planning.budget import PAPER_COST, Budget
from seqlaw.rungs.one_pass.equivalent import Learners, one_pass_equivalent
from seqlaw.rungs.one_pass.tuning import best_step, critical_tokens
from seqlaw.rungs.terms import Risk

NEAR = 1.01
"""A size is as good where the risk is at most this times the least."""
_STARTS = (4, 64, 1024)
_STEPS = (2.0, 1.0, 0.5)  # in log2 of a size
_FINE = (0.2, 0.07)  # of the best alone, by the accurate law
_CLOSE = (0.05, 0.15, 0.4)  # where a range is looked for first: at a kink it is a few percent
_RIVAL = 1.05  # times a risk: what may still be less, or as good, once it is known to the last digits


class Run(NamedTuple):
    """One way to spend the budget, at its best step."""

    M: int
    P: int
    batch: int
    L: int
    gamma: float
    reducible: float


@dataclass(frozen=True, kw_only=True)
class OnePassPlan:
    """What to do with compute C and tokens T in one pass."""

    teacher: Teacher | Modes
    schedule: Schedule
    regime: str
    budget: Budget
    d: float
    d_by_default: bool
    eval_length: int | None
    setting: Setting
    """The best."""
    risk: Risk
    flat: dict[str, tuple[int, int]]
    """Of M, P and batch: about from where to where the risk is within 1 % of the least."""
    by_batch: tuple[Run, ...]
    by_length: tuple[Run, ...]
    by_width: tuple[Run, ...]
    critical_tokens: float
    flags: tuple[Flag, ...]

    @property
    def compute(self) -> float:
        one = self.setting
        return float(self.budget.formula(M=one.M, N=one.batch, P=one.P, L=one.schedule.L))


class _Search:
    """The runs that were looked at, each once."""

    def __init__(
        self, teacher: Teacher | Modes, d: float, schedule: Schedule, eval_length: int | None, budget: Budget
    ) -> None:
        self.budget, self.schedule = budget, schedule
        self.widest = int(min(d, budget.max_M, 10**6))
        self.longest = int(min(budget.tokens / schedule.least_steps(), budget.max_P, 10**9))
        own_d = None if isinstance(teacher, Modes) else d
        self.like = Setting(
            teacher=teacher, M=1, P=2, d=own_d, batch=1, schedule=schedule, eval_length=eval_length
        )
        self.learners = Learners(self.like, quick=True)
        self.known: dict[tuple[int, int, int], Run] = {}
        self.certain: dict[Run, Run] = {}
        self.near = math.inf

    def run(self, M: int, P: int, batch: int) -> Run:
        """The whole budget at these sizes; an infinite risk where it leaves no steps."""
        key = (M, P, batch)
        if key not in self.known:
            L = self._steps(*key)
            if L < self.schedule.least_steps():
                self.known[key] = Run(*key, L, 0.0, math.inf)
            else:
                setting = replace(self.like, M=M, P=P, batch=batch, schedule=self.schedule.with_steps(L))
                found = best_step(setting, self.learners, near=self.near)
                self.near = found.gamma
                self.known[key] = Run(*key, L, found.gamma, found.approx + found.excess)
        return self.known[key]

    def setting(self, run: Run) -> Setting:
        steps = self.schedule.with_steps(run.L).scaled(run.gamma)
        return replace(self.like, M=run.M, P=run.P, batch=run.batch, schedule=steps)

    def sure(self, run: Run, rival: float = math.inf) -> Run:
        """With the risk that the accurate law has: coarse nodes miss it by up to 3 %, the step by far less.

        As it is where it is no rival to that risk.
        """
        if run.reducible < _RIVAL * rival and run not in self.certain:
            [risk] = one_pass_equivalent([self.setting(run)])
            self.certain[run] = run._replace(reducible=risk.reducible)
        return self.certain.get(run, run)

    def _steps(self, M: int, P: int, batch: int) -> int:
        budget = self.budget
        data = min(budget.tokens / (batch * P), budget.max_N / batch, budget.max_L)
        return int(min(data, float(budget.most_steps(M, P, batch))))

    def clipped(self, M: float, P: float, batch: float) -> tuple[int, int, int]:
        """Whole sizes within the limits."""
        return (
            min(max(round(M), 1), self.widest),
            min(max(round(P), self.budget.shortest), max(self.longest, self.budget.shortest)),
            max(round(batch), 1),
        )

    def climbed(self, start: Run, steps: Iterable[float], *, sure: bool = False) -> Run:
        """To a run that no step in one size, or of length against batch, makes better."""
        best = start
        for step in steps:
            factor, moved = 2.0**step, True
            while moved:
                moved = False
                for way in _WAYS:
                    sizes = (x * factor**w for x, w in zip(best[:3], way, strict=True))
                    found = self.run(*self.clipped(*sizes))
                    found = self.sure(found, best.reducible) if sure else found
                    if found.reducible < best.reducible * (1 - 1e-6):
                        best, moved = found, True
        return best

    def profile(self, best: Run, size: str, *, close: Sequence[float] = ()) -> list[Run]:
        """The least risk at other values of a size, each a factor two from the next, the others kept near.

        `close` has values nearer the best, in log2 of the size.
        """
        runs, place = [best], Run._fields.index(size)
        for way in (-1, 1):
            for k in (*close, *range(1, 60)):
                sizes: list[float] = list(best[:3])
                sizes[place] = best[place] * 2.0 ** (way * k)
                moved = [self.clipped(*sizes)]
                if size == "P":  # the same tokens a step
                    moved.append(self.clipped(sizes[0], sizes[1], best.batch * best.P / sizes[1]))
                if moved[0][place] == runs[-1 if way > 0 else 0][place]:
                    if k < 1:
                        continue
                    break
                known = [self.sure(self.run(*one), best.reducible) for one in moved]
                found = min(known, key=lambda run: run.reducible)
                if not math.isfinite(found.reducible):
                    break
                runs.insert(len(runs) if way > 0 else 0, found)
                if found.reducible > 3 * best.reducible:
                    break
        return runs


_WAYS = ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1), (0, 1, -1), (0, -1, 1))


@one_thread()
def plan_one_pass(
    teacher: Teacher | Modes | str,
    budget: Budget,
    *,
    schedule: Schedule | str = "wsd",
    d: float | None = None,
    eval_length: int | None = None,
) -> OnePassPlan:
    """The best (M, b, P, L, γ) for tokens b·P·L and compute; γ of `schedule` is not used."""
    teacher, schedule = as_teacher("teacher", teacher), as_schedule("schedule", schedule)
    if budget.cost != PAPER_COST:
        raise InputError("cost", f"must be {PAPER_COST} in one pass, with N the batch", budget.cost)
    if budget.max_P < budget.shortest:
        raise InputError("max_P", f"must be at least {budget.shortest}", budget.max_P)
    eval_length = None if eval_length is None else whole("eval_length", eval_length)
    chosen = float(teacher.d) if isinstance(teacher, Modes) else math.inf if d is None else d
    search = _Search(teacher, chosen, schedule, eval_length, budget)
    best = _best(search)
    if not math.isfinite(best.reducible):
        least = schedule.least_steps()
        raise InputError("tokens", f"or compute must allow {least} steps of one sequence", budget.tokens)
    profiles = {size: search.profile(best, size) for size in ("M", "P", "batch")}
    best = min((best, *(run for runs in profiles.values() for run in runs)), key=lambda run: run.reducible)
    setting = search.setting(best)
    risk = one_pass_equivalent([setting])[0]
    return OnePassPlan(
        teacher=teacher,
        schedule=schedule,
        regime=setting.regime,
        budget=budget,
        d=chosen,
        d_by_default=d is None and not isinstance(teacher, Modes),
        eval_length=eval_length,
        setting=setting,
        risk=risk,
        flat={size: _within(search.profile(best, size, close=_CLOSE), size, best) for size in profiles},
        by_batch=tuple(profiles["batch"]),
        by_length=tuple(profiles["P"]),
        by_width=tuple(profiles["M"]),
        critical_tokens=critical_tokens(setting, search.learners),
        flags=risk.flags,
    )


def _best(search: _Search) -> Run:
    """From a few lengths and widths, coarsely; from the best of those or the kink beside it, finely."""
    widths, M = list[float](), float(search.widest)
    while M >= 1 and len(widths) < 8:
        widths.append(M)
        M /= 8
    starts = []
    for P in dict.fromkeys(min(P, max(search.longest, search.budget.shortest)) for P in _STARTS):
        runs = [search.run(*search.clipped(M, P, 1)) for M in widths]
        starts.append(min(runs, key=lambda run: run.reducible))
    coarse = [search.climbed(start, _STEPS[:1]) for start in starts]
    best = search.climbed(min(coarse, key=lambda run: run.reducible), _STEPS)
    # The widest student that can see all tokens: there the risk has a kink, which steps in a size jump over.
    widest = math.isqrt(int(search.budget.compute / search.budget.tokens))
    kink = search.run(*search.clipped(widest, best.P, best.batch))
    sure = min(search.sure(best), search.sure(kink), key=lambda run: run.reducible)
    return search.climbed(sure, _FINE, sure=True)


def _within(runs: Sequence[Run], size: str, best: Run) -> tuple[int, int]:
    """Where on either side the risk is 1 % above the least: between two values as in a parabola."""
    place = Run._fields.index(size)
    here = [run[place] for run in runs].index(best[place]) if best[place] in [r[place] for r in runs] else 0
    ends = []
    for way in (-1, 1):
        end, before = float(best[place]), 0.0
        for run in runs[here + way :: way] if 0 <= here + way < len(runs) else []:
            above = math.sqrt(max(run.reducible / best.reducible - 1, 0.0))
            if above > (most := math.sqrt(NEAR - 1)):
                end *= (run[place] / end) ** ((most - before) / (above - before))
                break
            end, before = float(run[place]), above
        ends.append(round(end))
    return ends[0], ends[1]
