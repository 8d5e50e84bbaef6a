"""The best epochs for scarce tokens: unique tokens N·P, and compute N·P·M² for each pass over them.

The law of epochs is too dear for tables. So the search starts from the best single pass and changes one size
at a time, the epochs with the width that the compute then leaves, at the best step of each. It goes down one
valley (docs/epochs.md says how often that was not the deepest).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from seqlaw.methods.one_pass.equivalent import Learners, one_pass_equivalent
from seqlaw.methods.one_pass.tuning import best_step
from seqlaw.methods.terms import Risk
from seqlaw.model.checks import InputError
from seqlaw.model.setting import Setting
from seqlaw.model.threads import one_thread
from seqlaw.planning.budget import Allocation, Search, limits
from seqlaw.planning.one_pass import OnePass, best_pass
from seqlaw.planning.passes import Run
from seqlaw.planning.search import FLAT

BEST = "best"
MOST = 256
"""The most epochs that are looked at."""
_WORTH = 0.015
"""The search minimises risk·epochs^0.015, so a doubling of the epochs must lower the risk by 1 %."""
_SPENT = 0.9
"""Compute limits a student wider than 0.9 of what it allows; other epochs make no narrower one wider."""


class Repeated(NamedTuple):
    """One way to spend the budget with the data used again, at its best step."""

    epochs: int
    M: int
    N: int
    P: int
    batch: int
    L: int
    gamma: float
    reducible: float

    @property
    def rank(self) -> float:
        """What the search minimises."""
        return float(self.reducible * self.epochs**_WORTH)


@dataclass(frozen=True, kw_only=True)
class Epochs(OnePass):
    """The best mini-batches with the sequences used again; profiles and ranges are of what was looked at."""

    once: Repeated
    """The best single pass under the same budgets."""
    by_epochs: tuple[Repeated, ...]
    """At other epochs, the length and the batch as they are, the width as the compute allows.

    One pass has all its sizes chosen, unless the batch is held.
    """


_STEPS, _SETTLED = tuple(2**part for part in (1, 1 / 2, 1 / 4, 1 / 8, 1 / 32)), 1e-3
"""Factors of a move, each until a round of moves gains less than 0.1 %. The finest is for the width: where
compute binds, 1 % more of it costs 2 % of the sequences."""
Move = Callable[[Repeated, float], tuple[float, float, float, float]]


class Ground:
    """The risk of (epochs, M, P, batch) with as many sequences as the budgets allow, each looked at once."""

    def __init__(self, search: Search, batch: int | None) -> None:
        self.search, self.batch, self.box = search, batch, limits(search)
        self.learners: Learners | None = None
        self.known: dict[tuple[int, int, int, int], Repeated | None] = {}

    def room(self, epochs: int, M: int) -> float:
        """The tokens that the budgets allow."""
        return min(self.search.budget.tokens, self.search.budget.compute / (epochs * float(M) ** 2))

    def batches(self, epochs: int, M: int, P: int, batch: int) -> int:
        """As many as the budgets allow."""
        budget = self.search.budget
        N = min(self.room(epochs, M) / P, budget.max_N)
        return int(min(N * (1 + 1e-13) // batch, budget.max_L // epochs))

    def filled(self, epochs: int, M: int, P: int, batch: int) -> int:
        """The longest sequences of which there are as many: few of them would leave tokens unused."""
        room, batches = self.room(epochs, M), self.batches(epochs, M, P, batch)
        if not batches or (batches + 1) * batch * P <= room:
            return P
        return max(min(int(room // (batches * batch)), self.box.high["P"]), P)

    def setting(self, epochs: int, M: int, P: int, batch: int) -> Setting | None:
        """The student; None where the budgets leave the schedule too few steps."""
        batches = self.batches(epochs, M, P, batch)
        if batches * epochs < self.search.least_steps:
            return None
        plain = self.search.setting(M, 1, P, batches * epochs)
        return plain.but(N=None, batch=batch, epochs=epochs)

    def at(
        self, epochs: float, M: float, P: float, batch: float, near: Repeated | None = None
    ) -> Repeated | None:
        """This point at its best step; the search starts from that of `near` times √(batch/epochs)."""
        sizes = {"M": M, "P": P}
        kept = {s: min(max(round(x), self.box.low[s]), self.box.high[s]) for s, x in sizes.items()}
        about = max(round(epochs), 1), kept["M"], kept["P"], max(round(batch), 1)
        key = *about[:2], self.filled(*about), about[3]
        if key not in self.known:
            setting = self.setting(*key)
            self.known[key] = None
            if setting is not None:
                self.learners = self.learners or Learners(setting, quick=True)
                guess = math.inf
                if near is not None:
                    guess = near.gamma * math.sqrt(key[3] / near.batch * near.epochs / key[0])
                try:
                    with np.errstate(invalid="ignore"):
                        found = best_step(setting, self.learners, near=guess)
                except np.linalg.LinAlgError:  # lengths near 1e10, whose spectrum is lost in rounding
                    return None
                sized = (*key[:2], setting.N, *key[2:], setting.schedule.L)
                self.known[key] = Repeated(*sized, found.gamma, found.excess + found.approx)
        return self.known[key]

    def width(self, one: Repeated, epochs: float) -> float:
        """The widest student that sees one's tokens so often; no wider than one that leaves compute over."""
        now, then = (
            math.sqrt(self.search.budget.compute / (K * one.N * one.P))
            for K in (one.epochs, max(round(epochs), 1))
        )
        return min(one.M, then) if one.M < _SPENT * now else then

    def moves(self, free: bool) -> Iterable[Move]:
        """Each size alone, a longer sequence in a smaller batch; free epochs with width, length and batch."""
        held = self.batch is not None

        def again(P: float, batch: float) -> Move:
            return lambda one, f: (
                one.epochs * f,
                self.width(one, one.epochs * f),
                one.P * f**P,
                one.batch * f**batch,
            )

        if free:
            yield lambda one, f: (one.epochs * f, one.M, one.P, one.batch)
            yield again(0, 0)
            yield again(1, 0)
            if not held:
                yield again(0, 0.5)
        yield lambda one, f: (one.epochs, one.M, one.P * f, one.batch if held else one.batch / f)
        yield lambda one, f: (one.epochs, one.M * f, one.P, one.batch)
        if not held:
            yield lambda one, f: (one.epochs, one.M, one.P, one.batch * f)

    def descend(self, best: Repeated, free: bool) -> Repeated:
        """The best that moves of one size after another reach: by factors of two, then by smaller ones."""
        for step in _STEPS:
            begun = math.inf
            while best.rank < (1 - _SETTLED) * begun:
                begun = best.rank
                for move in self.moves(free):
                    for factor in (1 / step, step):
                        other = self.at(*move(best, factor), near=best)
                        while other is not None and other.rank < best.rank and other.epochs <= MOST:
                            best, other = other, self.at(*move(other, factor), near=other)
        return best


@one_thread()
def epochs_plan(search: Search, epochs: int | str, batch: int | None = None) -> Epochs:
    """The best (M, N, P, batch, epochs, γ), or with so many epochs, or with this batch."""
    setting, risk, *_ = best_pass(search)
    once, ground, free = _single(setting, risk), Ground(search, batch), epochs == BEST
    sizes = once.P, batch or once.batch
    first = ground.at(1, once.M, *sizes)
    if first is not None and not free:
        first = ground.at(int(epochs), ground.width(first, int(epochs)), *sizes)
    if first is None:
        rule = f"or compute must allow {search.least_steps} steps of {sizes[1]} sequences of length {once.P}"
        raise InputError("tokens", rule, search.budget.tokens)
    best = ground.descend(first, free)
    if best.epochs > 1 or batch is not None:  # else tables have found it more closely
        found = ground.setting(best.epochs, best.M, best.P, best.batch)
        assert found is not None
        setting = replace(found, schedule=found.schedule.scaled(best.gamma))
        [risk] = one_pass_equivalent([setting])
    told = risk.reducible / best.reducible
    for move in ground.moves(free=False):  # what the profiles have at least
        for factor in (0.5, 2.0):
            ground.at(*move(best, factor), near=best)
    near = [ground.at(K, ground.width(best, K), best.P, best.batch, best) for K in _around(best.epochs)]
    seen = [one._replace(reducible=told * one.reducible) for one in ground.known.values() if one is not None]
    here = best._replace(reducible=risk.reducible)

    def along(size: str, *same: str) -> list[Repeated]:
        """What was looked at along a size, others being the same: the best of each value."""
        rows = [one for one in seen if all(getattr(one, name) == getattr(best, name) for name in same)]
        rows = sorted(rows, key=lambda one: -one.reducible)
        least = {getattr(one, size): one for one in rows} | {getattr(best, size): here}
        return [least[value] for value in sorted(least)]

    others = {one.epochs: one._replace(reducible=told * one.reducible) for one in near if one is not None}
    if batch is None:
        others[1] = once
    lines = {
        "M": along("M", "epochs", "P"),
        "P": along("P", "epochs", "M"),
        "batch": along("batch", "epochs", "M", "P"),
        "epochs": sorted((others | {best.epochs: here}).values()),
    }
    flat = {}
    for size, rows in lines.items():
        good = [getattr(one, size) for one in rows if one.reducible <= (1 + FLAT) * risk.reducible]
        flat[size] = min(good), max(good)
    by = {name: tuple(_run(one) for one in lines[size]) for name, size in _PROFILES.items()}
    return Epochs(
        setting=setting,
        best=_allocation(search, setting, risk.reducible),
        risk=risk,
        flat=flat,
        limits=dict.fromkeys(flat, (None, None)),
        critical_tokens=math.inf,
        once=once,
        by_epochs=tuple(lines["epochs"]),
        **by,
    )


_PROFILES = {"by_batch": "batch", "by_length": "P", "by_width": "M"}


def _around(epochs: int) -> list[int]:
    """One pass, and factors of two from the best."""
    return sorted({1, *(round(epochs * 2.0**k) for k in (-2, -1, 1, 2) if epochs * 2.0**k >= 1.5)} - {epochs})


def _single(setting: Setting, risk: Risk) -> Repeated:
    P, batch, schedule = setting.one_length, setting.batch or 1, setting.schedule
    return Repeated(1, setting.M, setting.N, P, batch, schedule.L, schedule.gamma, risk.reducible)


def _run(one: Repeated) -> Run:
    return Run(one.M, one.P, one.batch, one.L, one.gamma, one.reducible)


def _allocation(search: Search, setting: Setting, reducible: float) -> Allocation:
    sizes = {"M": setting.M, "P": setting.one_length, "L": setting.schedule.L}
    compute = float(search.budget.formula(**sizes, N=setting.batch or 1))
    return Allocation(**sizes, N=setting.N, compute=compute, reducible=reducible, tokens=setting.tokens)
