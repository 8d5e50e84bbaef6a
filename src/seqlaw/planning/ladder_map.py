"""Where lengths that change help: the best two phases against the best single length, by horizon and test.

The phase diagram of a teacher. Every ordered pair of candidates on a grid of shares is tried on some
sketches, and what is chosen is compared on others.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np

from seqlaw.methods.workbench import LagSums
from seqlaw.model.checks import Array, InputError, positive, whole
from seqlaw.model.lengths import Length, Lengths
from seqlaw.model.setting import Setting
from seqlaw.model.signature import checked
from seqlaw.model.teacher import LONGEST
from seqlaw.model.threads import one_thread
from seqlaw.planning.ladder import CANDIDATES, CHOOSING, distinct, require_phases
from seqlaw.planning.trials import Bench, Runs, Trial

HORIZONS = (10**3, 10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6, 10**7)
TESTS = (16, 128, 4096)
SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
"""Of the last phase."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Who wins at one horizon and test length."""

    L: int
    R: float
    eval_length: int
    single: int
    reducible: float
    """Of the best single length."""
    first: int
    last: int
    share: float
    """The best ladder: its lengths, and the steps of the last phase."""
    gain: float
    """What it takes off the single length's risk; below 0 it loses."""
    error: float
    """The standard error of the gain, paired by sketch."""

    @property
    def helps(self) -> bool:
        return self.gain > max(2 * self.error, 0.001)


@dataclass(frozen=True, kw_only=True)
class LadderMap:
    """The cells of one teacher."""

    regime: str
    tokens: int
    candidates: tuple[int, ...]
    sketches: int
    seed: int
    cells: tuple[Cell, ...]


@checked
@one_thread()
def ladder_map(
    setting: Setting,
    tokens: float,
    *,
    candidates: Sequence[int] = CANDIDATES,
    horizons: Sequence[int] = HORIZONS,
    tests: Sequence[int] = TESTS,
    sketches: int = 4,
    seed: int = 0,
) -> LadderMap:
    """The best two-phase ladder and the best single length for each number of steps and test length.

    The full batch, to leading order in the data. Both are chosen on other sketches than they are compared on.
    """
    budget = whole("tokens", positive("tokens", tokens), least=2)
    rising = distinct(candidates)
    if len(rising) < 2:
        raise InputError("candidates", "must be at least two lengths", list(candidates))
    if setting.batch is not None:
        raise InputError("batch", "must be left out of the map, which is of the full batch", setting.batch)
    require_phases(setting)
    sums, count = LagSums(setting.modes), whole("sketches", sketches, least=2)
    benches = [Bench(sums, setting.M, sketch=k, seed=seed) for k in range(count + CHOOSING)]
    comparing, choosing = benches[:count], benches[count:]
    common = [whole("test", P, most=LONGEST) for P in tests]
    ladders = [Lengths(pair, (1 - s, s), True) for pair in permutations(rising, 2) for s in SHARES]
    cells: list[Cell] = []
    for L in [whole("horizons", L, least=math.ceil(1 / SHARES[0])) for L in horizons]:
        trial = Trial(setting.schedule.with_steps(L), budget, None)
        runs = Runs(trial.schedule)
        tried: list[Length] = [*rising, *ladders]
        known = [[_risks(bench, one, trial, common, runs, quick=True) for bench in choosing] for one in tried]
        mean = np.mean(known, axis=1)
        best = np.stack(
            [mean[: len(rising)].argmin(axis=0), len(rising) + mean[len(rising) :].argmin(axis=0)]
        )
        chosen = {int(one) for one in best.ravel()}
        risk = {
            one: np.array([_risks(bench, tried[one], trial, common, runs) for bench in comparing])
            for one in chosen
        }
        for k, (test, (alone, ladder)) in enumerate(zip(common, best.T.tolist(), strict=True)):
            pair = tried[alone], tried[ladder]
            cells.append(_cell(trial, test, pair, risk[alone][:, k], risk[ladder][:, k]))
    return LadderMap(
        regime=setting.regime, tokens=budget, candidates=rising, sketches=count, seed=seed, cells=tuple(cells)
    )


def _risks(
    bench: Bench, one: Length, trial: Trial, tests: Sequence[int], runs: Runs, *, quick: bool = False
) -> list[float]:
    """approx + bias + variance at each test length, of one training."""
    state = bench.trained(one, trial, runs, quick=quick)
    found = [state.terms(bench.problem(test)) for test in tests]
    return [terms["approx"] + terms["bias"] + terms["variance"] for terms in found]


def _cell(trial: Trial, test: int, pair: tuple[Length, Length], single: Array, ladder: Array) -> Cell:
    """The risks of the single length and of the ladder, sketch by sketch."""
    ratio = ladder / single
    alone, best = pair
    assert isinstance(best, Lengths)
    assert isinstance(alone, int)
    return Cell(
        L=trial.schedule.L,
        R=trial.schedule.horizon,
        eval_length=test,
        single=alone,
        reducible=float(single.mean()),
        first=best.lengths[0],
        last=best.lengths[1],
        share=best.shares[1],
        gain=float(1 - ratio.mean()),
        error=float(ratio.std(ddof=1)) / math.sqrt(ratio.size),
    )
