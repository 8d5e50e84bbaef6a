"""The search for the best one pass: runs that spend the whole budget, each at its best step.

More steps or more data are the same thing here, so for a width the budgets leave two sizes free, P and b;
the step is tuned at each. The risk has one valley, but a test length may give it two (docs/one-pass.md), so
the search climbs from several lengths, in ever finer steps of the logarithms.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from seqlaw.methods.one_pass.equivalent import Learners, one_pass_equivalent
from seqlaw.methods.one_pass.tuning import best_step
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes, Teacher
from seqlaw.planning.budget import Budget

NEAR = 1.01
"""A size is as good where the risk is at most this times the least."""
_STARTS = (4, 64, 1024)
_STEPS = (2.0, 1.0, 0.5)  # in log2 of a size
_FINE = (0.2, 0.07)  # of the best alone, by the accurate law
_NARROWED = 3  # times, the place where a range ends
_RIVAL = 1.05  # times a risk: what may still be less, or as good, once it is known to the last digits


_WAYS = ((1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1), (0, 1, -1), (0, -1, 1))
_BESIDE = {  # the others where one size is held, in steps that cost little; a batch is for the best length
    "M": ((0, 0.4, 0), (0, -0.4, 0), (0, 0, 0.8), (0, 0, -0.8), (0, 0.4, -0.4), (0, -0.4, 0.4)),
    "P": ((0.2, 0, 0), (-0.2, 0, 0), (0, 0, 0.8), (0, 0, -0.8)),
    "batch": ((0.2, 0, 0), (-0.2, 0, 0)),
}
_PLACES = {"M": 0, "P": 1, "batch": 2}


class Run(NamedTuple):
    """One way to spend the budget, at its best step."""

    M: int
    P: int
    batch: int
    L: int
    gamma: float
    reducible: float


_NONE = Run(1, 1, 1, 0, math.inf, math.inf)


class Passes:
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
        self.kink = math.isqrt(int(budget.compute / budget.tokens))
        """The widest student that can see all tokens: there the risk has a kink, which steps jump over."""

    def run(self, M: int, P: int, batch: int) -> Run:
        """The whole budget at these sizes; an infinite risk where it leaves no steps."""
        key = (M, P, batch)
        if key not in self.known:
            L = self._steps(*key)
            if L < self.schedule.least_steps():
                self.known[key] = Run(*key, L, 0.0, math.inf)
            else:
                setting = self.like.but(M=M, P=P, batch=batch, schedule=self.schedule.with_steps(L))
                found = best_step(setting, self.learners, near=self._step_near(key))
                self.known[key] = Run(*key, L, found.gamma, found.approx + found.excess)
        return self.known[key]

    def _step_near(self, sizes: tuple[int, int, int]) -> float:
        """The best step of the run that is nearest in the logarithms; infinite where there is none."""

        def apart(run: Run) -> float:
            return sum(math.log(x / y) ** 2 for x, y in zip(sizes, run[:3], strict=True))

        return min((run for run in self.known.values() if run.gamma), key=apart, default=_NONE).gamma

    def setting(self, run: Run) -> Setting:
        steps = self.schedule.with_steps(run.L).scaled(run.gamma)
        return self.like.but(M=run.M, P=run.P, batch=run.batch, schedule=steps)

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

    def limits(self, size: str, ends: tuple[int, int]) -> tuple[str | None, str | None]:
        """The limits that the ends of a size's range are."""
        budget = self.budget
        floors = {"P": (budget.shortest, "min_P" if budget.min_P > 2 else "shortest")}
        ceilings = {
            "M": (
                self.widest,
                "max_M" if self.widest == budget.max_M else "d" if self.widest == self.like.d else "longest",
            ),
            "P": (self.longest, "max_P" if self.longest == budget.max_P else "tokens"),
        }
        (least, low), (most, high) = floors.get(size, (1, "one")), ceilings.get(size, (math.inf, None))
        return (low if ends[0] <= least else None), (high if ends[1] >= most else None)

    def climbed(
        self,
        start: Run,
        steps: Iterable[float],
        ways: Sequence[tuple[float, float, float]] = _WAYS,
        *,
        sure: bool = False,
    ) -> Run:
        """To a run that no step in one size, or of length against batch, makes better."""
        best = start
        for step in steps:
            factor, moved = 2.0**step, True
            while moved:
                moved = False
                for way in ways:
                    sizes = (x * factor**w for x, w in zip(best[:3], way, strict=True))
                    found = self.run(*self.clipped(*sizes))
                    found = self.sure(found, best.reducible) if sure else found
                    if found.reducible < best.reducible * (1 - 1e-6):
                        best, moved = found, True
        return best

    def least(self, size: str, value: int, beside: Sequence[Run], rival: float) -> Run:
        """The least risk with one size held at a value, the others chosen anew from what is best `beside`."""
        sizes = [_held(run, size, value) for run in beside]
        if len(beside) == 2:  # and on the line through both
            near, far = (math.log(run[_PLACES[size]]) for run in beside)
            share = (math.log(value) - near) / (far - near) if far != near else 0.0
            between = [x * (y / x) ** share for x, y in zip(*(run[:3] for run in beside), strict=True)]
            sizes.append(_held(between, size, value))
        if size == "P":
            sizes += [(M, P, run.batch * run.P / P) for run, (M, P, _) in zip(beside, sizes, strict=False)]
        if size != "M":
            sizes.append((float(self.kink), *sizes[-1][1:]))
        best = min((self.run(*self.clipped(*one)) for one in sizes), key=lambda run: run.reducible)
        if not math.isfinite(best.reducible):
            return best
        return self.sure(self.climbed(best, (1.0,), _BESIDE[size]), rival)

    def profile(self, best: Run, size: str) -> list[Run]:
        """The least risk at other values of a size, each a factor two from the next."""
        runs, place = [best], _PLACES[size]
        for way in (-1, 1):
            side = [best]
            for k in range(1, 60):
                value = self.clipped(*(x * 2.0 ** (way * k) for x in best[:3]))[place]
                if value == side[-1][place]:
                    break
                found = self.least(size, value, side[:-3:-1], best.reducible)
                if not math.isfinite(found.reducible):
                    break
                side.append(found)
                if found.reducible > 3 * best.reducible:
                    break
            runs = [*side[:0:-1], *runs] if way < 0 else [*runs, *side[1:]]
        return runs

    def flat(self, runs: Sequence[Run], size: str, best: Run) -> tuple[int, int]:
        """From where to where along a profile the risk is within 1 % of the least."""
        below = [run for run in runs if run[_PLACES[size]] < best[_PLACES[size]]]
        above = [run for run in runs if run[_PLACES[size]] > best[_PLACES[size]]]
        return self._end(below[::-1], size, best), self._end(above, size, best)

    def _end(self, runs: Sequence[Run], size: str, best: Run) -> int:
        """How far along `runs`, from the best on, the risk is within 1 % of the least."""
        place = _PLACES[size]
        inner, outer = best, None
        for run in runs:
            if run.reducible > NEAR * best.reducible:
                outer = run
                break
            inner = run
        if outer is None:
            return int(inner[place])
        for _ in range(_NARROWED):
            if abs(outer[place] - inner[place]) <= max(1, 0.02 * inner[place]):
                break
            middle = int(_crossing(inner, outer, best, place))
            least, most = sorted((int(inner[place]), int(outer[place])))
            middle = min(max(middle, least + 1), most - 1)
            found = self.least(size, middle, (inner, outer), best.reducible)
            inner, outer = (inner, found) if found.reducible > NEAR * best.reducible else (found, outer)
        last = _crossing(inner, outer, best, place)
        return math.floor(last) if outer[place] > inner[place] else math.ceil(last)


def _crossing(inner: Run, outer: Run, best: Run, place: int) -> float:
    """Where between two values the risk is 1 % above the least, as in a parabola."""
    low, most, high = (
        math.sqrt(max(above, 0.0))
        for above in (inner.reducible / best.reducible - 1, NEAR - 1, outer.reducible / best.reducible - 1)
    )
    return float(inner[place] * (outer[place] / inner[place]) ** ((most - low) / (high - low)))


def _held(sizes: Sequence[float], size: str, value: float) -> tuple[float, float, float]:
    M, P, batch = (value if k == _PLACES[size] else float(x) for k, x in enumerate(sizes[:3]))
    return M, P, batch


def best_pass(search: Passes) -> Run:
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
    kink = search.run(*search.clipped(search.kink, best.P, best.batch))
    sure = min(search.sure(best), search.sure(kink), key=lambda run: run.reducible)
    return search.climbed(sure, _FINE, sure=True)
