"""The best one pass: width, batch, length, steps and step size for tokens b·P·L and compute b·P·L·M²."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from seqlaw.methods.one_pass.equivalent import one_pass_equivalent
from seqlaw.methods.one_pass.tuning import critical_tokens
from seqlaw.methods.terms import Risk
from seqlaw.model.checks import InputError
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes, Teacher
from seqlaw.model.threads import one_thread
from seqlaw.planning.budget import PAPER_COST, Allocation, Budget, Search
from seqlaw.planning.passes import Passes, Run, pass_search, runs_of, wide_and_close
from seqlaw.planning.search import FLAT, flat_range, least_with

_FAR, _MISSED = 3.0, 1.1
"""A profile of widths or batches ends at the first point above 3 times the least risk; a table may be 10 %
off there. That of lengths goes on."""
_BETWEEN = 9
"""Batches from one to its double among which the end of a range is looked for: known to 9 %."""
_OTHERS, _MAYBE, _RIVAL = {"M": (0.5, 0.7, 1.4), "P": (0.6, 1.6)}, 0.03, 0.02
"""These times the width or length are computed too if the tables put them within 3 %. The accurate law
decides between those within 2 % then: at widths that compute does not limit the quick law errs so much."""


@dataclass(frozen=True, kw_only=True)
class OnePass:
    """The best single pass over fresh mini-batches, and what other sizes cost."""

    setting: Setting
    """The best student, its batch and its step."""
    best: Allocation
    """Its sizes and what they spend; N counts all sequences of the pass."""
    risk: Risk
    flat: dict[str, tuple[int, int]]
    """The ranges of M, P and batch with a risk within 1 % of the least, the other sizes chosen again."""
    limits: dict[str, tuple[str | None, str | None]]
    """The limit that ends the range, if one does."""
    by_batch: tuple[Run, ...]
    by_length: tuple[Run, ...]
    by_width: tuple[Run, ...]
    critical_tokens: float
    """Tokens a step beyond which bias and variance are well above their best."""


class Found(NamedTuple):
    """The best pass, and the tables that it was found in."""

    setting: Setting
    risk: Risk
    search: Search
    wide: Passes
    close: Passes
    guess: Allocation


def best_pass(asked: Search) -> Found:
    """The best (M, b, P, L, γ) alone."""
    budget, schedule = asked.budget, asked.schedule
    if budget.cost != PAPER_COST:
        raise InputError("cost", f"must be {PAPER_COST} in one pass, with N the batch", budget.cost)
    if budget.max_P < budget.shortest:
        raise InputError("max_P", f"must be at least {budget.shortest}", budget.max_P)
    search = pass_search(asked)
    try:
        found = wide_and_close(search)
    except InputError:
        found = None
    if found is None:
        least = schedule.least_steps()
        raise InputError("tokens", f"or compute must allow {least} steps of one sequence", budget.tokens)
    wide, close, guess = found
    return Found(*_decided(search, close, guess), search, wide, close, guess)


@one_thread()
def one_pass(
    teacher: Teacher | Modes, budget: Budget, *, schedule: Schedule, d: float, eval_length: int | None
) -> OnePass:
    """The best (M, b, P, L, γ) for tokens b·P·L and compute b·P·L·M²; γ of `schedule` is not used."""
    asked = Search(teacher=teacher, d=d, schedule=schedule, budget=budget, eval_length=eval_length)
    setting, risk, search, wide, close, guess = best_pass(asked)
    sizes = {"M": setting.M, "P": setting.one_length, "L": setting.schedule.L}
    batch = int(setting.batch or 1)
    best = Run(**sizes, batch=batch, gamma=setting.schedule.gamma, reducible=risk.reducible)
    [same] = runs_of(search, [replace(guess, **sizes, N=batch)])
    guess = replace(guess, **sizes, N=batch, reducible=same.reducible)
    told = risk.reducible / same.reducible

    def runs(found: Sequence[Allocation | None], far: float = _FAR) -> list[Run]:
        """The runs, their risks multiplied by the ratio of the accurate to the quick law."""
        near = [one for one in found if one is not None and one.reducible < far * _MISSED * guess.reducible]
        return [run._replace(reducible=run.reducible * told) for run in runs_of(search, near)]

    def at_batches(values: Sequence[int]) -> list[Run]:
        """The better of what both tables find; at a batch beyond its nodes a table only guesses the width."""
        found = runs(wide.least_batch(values, best.P)) if values else []
        near = [run.batch for run in found if run.reducible < _MISSED * best.reducible]
        again = runs(close.least_batch(near, best.P)) if near else []
        other = {run.batch: run for run in again}
        return [min(run, other.get(run.batch, run), key=lambda one: one.reducible) for run in found]

    def beside(size: str) -> tuple[Run, ...]:
        """The least risk at other values of a size, each a factor two from the next."""
        here, box = getattr(best, size), wide.box
        low, high = (1, budget.tokens // best.P) if size == "batch" else (box.low[size], box.high[size])
        sides = []
        for way in (-1, 1):
            values = _doubled(here, way, low, high)
            if size == "batch":
                side = at_batches(values)
            else:
                side = runs(least_with(close, wide, size, values)) if values else []
            last = next((k for k, run in enumerate(side) if run.reducible > _FAR * best.reducible), len(side))
            sides.append(side[: last + 1])
        return (*sides[0][::-1], best, *sides[1])

    def by_length() -> tuple[Run, ...]:
        """The least risk at the ends and at every power of two, as far as the tables reach."""
        low, high = wide.box.low["P"], wide.box.high["P"]
        lengths = {low, high, *(2**k for k in range(int(high).bit_length()) if 2**k > low)} - {best.P}
        found = least_with(close, wide, "P", sorted(map(int, lengths)))
        known = [one for one in found if one is not None and wide.covers(one)]
        return tuple(sorted([*runs(known, far=math.inf), best], key=lambda run: run.P))

    flat, ends = {}, {}
    for size in ("M", "P"):
        (low, low_limit), (high, high_limit) = flat_range(close, wide, size, guess, FLAT)
        flat[size], ends[size] = (low, high), (low_limit, _limit(size, high_limit, budget))
    by_batch = beside("batch")
    flat["batch"] = _batch_range(best, by_batch, at_batches)
    ends["batch"] = "one" if flat["batch"][0] == 1 else None, None
    return OnePass(
        setting=setting,
        best=Allocation(
            **sizes,
            N=int(setting.N),
            compute=float(budget.formula(**sizes, N=best.batch)),
            reducible=risk.reducible,
            tokens=int(setting.tokens),
        ),
        risk=risk,
        flat=flat,
        limits=ends,
        by_batch=by_batch,
        by_length=by_length(),
        by_width=beside("M"),
        critical_tokens=critical_tokens(setting),
    )


def _decided(search: Search, close: Passes, guess: Allocation) -> tuple[Setting, Risk]:
    """The accurate law decides between the guess, its neighbours and other lengths that are as good."""
    rivals = [guess]
    for size, factors in _OTHERS.items():
        here = getattr(guess, size)
        values = sorted({round(here * factor) for factor in factors} - {here})
        if values := [value for value in values if close.reaches(size, value)]:
            found = [one for one in close.least(size, values) if one is not None]
            rivals += [one for one in found if one.reducible <= guess.reducible * (1 + _MAYBE)]
    runs = runs_of(search, rivals)
    least = min(run.reducible for run in runs)
    settings = []
    for run in runs:
        if run.reducible > least * (1 + _RIVAL):
            continue
        plain = search.setting(run.M, 1, run.P, run.L)
        settings.append(plain.but(N=None, batch=run.batch, schedule=plain.schedule.scaled(run.gamma)))
    risks = one_pass_equivalent(settings)
    return min(zip(settings, risks, strict=True), key=lambda pair: pair[1].reducible)


def _doubled(here: int, way: int, low: float, high: float) -> list[int]:
    """here·2^k for k = way, 2·way, …, up to the limit."""
    values = [min(max(round(here * 2.0 ** (way * k)), low), high) for k in range(1, 40)]
    return [int(value) for value in dict.fromkeys(values) if value != here]


def _limit(size: str, name: str | None, budget: Budget) -> str | None:
    """The name of a limit; one that the search has set, not the user, is named after its cause."""
    if name == f"max_{size}" and getattr(budget, name) == math.inf:
        return {"M": "longest", "P": "tokens"}[size]
    return name


def _batch_range(
    best: Run, doubled: Sequence[Run], at: Callable[[Sequence[int]], list[Run]]
) -> tuple[int, int]:
    """The range of batches that cost at most 1 % at the best length, each end between two that doubled."""
    here, most = doubled.index(best), (1 + FLAT) * best.reducible
    between: set[int] = set()
    for side in (doubled[here::-1], doubled[here:]):
        k = next((k for k, run in enumerate(side) if run.reducible > most), 0)
        if k:
            inner = np.geomspace(side[k - 1].batch, side[k].batch, _BETWEEN)[1:-1]
            between |= set(np.round(inner).astype(int).tolist())
    runs = sorted(
        {*doubled, *at(sorted(between - {run.batch for run in doubled}))}, key=lambda run: run.batch
    )
    here = runs.index(best)
    low, high = here, here
    while low > 0 and runs[low - 1].reducible <= most:
        low -= 1
    while high + 1 < len(runs) and runs[high + 1].reducible <= most:
        high += 1
    return runs[low].batch, runs[high].batch
