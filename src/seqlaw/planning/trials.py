"""Many mixtures and ladders tried on one sketch, for the planner.

Sequences are not counted here: a mixture or a phase has its share of the tokens, whole or not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from seqlaw.methods.accuracy import search
from seqlaw.methods.one_pass.noise import StepNoise, sketch_directions
from seqlaw.methods.one_pass.step import limit
from seqlaw.methods.stage import CUT, State, at_rest, full_batch, one_pass, refined
from seqlaw.methods.workbench import LagSums, Workbench
from seqlaw.model.checks import Array
from seqlaw.model.lengths import Length, Lengths, mean_length
from seqlaw.model.pieces import Part, Pieces, is_cut, stretches
from seqlaw.model.schedule import WSD, Cosine, Schedule
from seqlaw.model.sketch import Problem

_ONCE = 1.4
"""Ratio of the cuts of a smooth schedule in one pass, before the Richardson step: seen to err by 2e-5 of the
variance (WSD) and 3e-3 of it (cosine)."""
_ROUGH = 1.3  # ratio of the cuts of a smooth schedule while shares are searched
Stages = tuple[tuple[Length, float], ...]
"""What is trained on, one after another, with its share of the steps and of the tokens."""


def stages(lengths: Length) -> Stages:
    return tuple(lengths) if isinstance(lengths, Lengths) and lengths.phases else ((lengths, 1.0),)


class Trial(NamedTuple):
    """How students are trained: a schedule, and the tokens of the whole run, of a step in one pass."""

    schedule: Schedule
    tokens: float
    step_tokens: float | None
    """None for the full batch."""
    depth: float | None = None
    """log₂ of the largest step that each stage allows over the one it takes. None: the schedule's own step,
    which is lowered in all stages alike where one of them does not allow it."""


@lru_cache(maxsize=8)
def _kept(schedule: Schedule) -> dict[tuple[tuple[int, ...], float], list[Pieces]]:
    """The pieces of a smooth schedule, kept between questions: sliders of the teacher do not change them."""
    return {}


class Runs:
    """The runs of equal steps of each stage of a schedule, kept: all sketches and lengths share them."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._known = _kept(schedule) if isinstance(schedule, WSD | Cosine) else {}

    def of(self, plan: Stages, ratio: float, scales: Sequence[float]) -> list[Part]:
        """Of the stages of a plan, the sizes times the stage's own scale."""
        L, shares = self.schedule.L, tuple(share for _, share in plan)
        steps = (L,) if len(plan) == 1 else Lengths((1,) * len(plan), shares, True).steps(L)
        if (steps, ratio) not in self._known:
            self._known[steps, ratio] = stretches(self.schedule, steps, ratio, 0.5 / self.schedule.gamma)
        runs = zip(self._known[steps, ratio], scales, strict=True)
        return [Part(Pieces(run.counts, run.sizes * scale)) for run, scale in runs]


class Bench(Workbench):
    """One sketch; `quick` takes the leading part of a mixture's noise, and coarser cuts."""

    def __init__(self, sums: LagSums, M: int, *, sketch: int, seed: int) -> None:
        super().__init__(sums.modes, M, sketch=sketch, seed=seed, sums=sums)
        self._limits: dict[tuple[Length, float], float] = {}

    def trained(self, lengths: Length, trial: Trial, runs: Runs, *, quick: bool = False) -> State:
        """The student trained so: the mean and the covariance of its iterate."""
        plan = stages(lengths)
        problems = [self.problem(P) for P, _ in plan]
        noises = [self._noise(problem, quick=quick) for problem in problems]
        if trial.step_tokens is None:
            cut = runs.of(plan, _ROUGH if quick else CUT, self.scales(lengths, trial))
            state = at_rest(problems[0])
            for problem, noise, part, (_, share) in zip(problems, noises, cut, plan, strict=True):
                state = full_batch(state, problem, noise / (share * trial.tokens), part)
            return state
        in_step = [
            self.step_noise(one.length, one, noise) for one, noise in zip(problems, noises, strict=True)
        ]
        batches = [trial.step_tokens / mean_length(P) for P, _ in plan]
        largest = [self._limit(*one) for one in zip(problems, in_step, batches, strict=True)]
        scales = _scales(largest, trial)

        def once(ratio: float) -> State:
            state = at_rest(problems[0])
            for one in zip(problems, in_step, batches, runs.of(plan, ratio, scales), strict=True):
                state = one_pass(state, *one)
            return state

        if quick or not is_cut(trial.schedule):
            return once(search.cut)
        return refined(once(_ONCE), once(_ONCE**0.5))

    def tokens_per_dimension(self, lengths: Length, trial: Trial, runs: Runs) -> float:
        """The least over stages of effective tokens a dimension that the stage learns."""
        found, plan = math.inf, stages(lengths)
        problems = [self.problem(P) for P, _ in plan]
        safe = runs.of(plan, CUT, self.scales(lengths, trial))
        for problem, (P, share), part in zip(problems, plan, safe, strict=True):
            known = self.score(P)
            effective = known.effective_share * share * trial.tokens
            learned = float(np.sum(1 - part.residual(problem.eigenvalues)))
            found = min(found, effective / max(learned, math.ulp(0.0)))
        return found

    def scales(self, lengths: Length, trial: Trial) -> list[float]:
        """What each stage's steps are multiplied by."""
        problems = [self.problem(P) for P, _ in stages(lengths)]
        if trial.step_tokens is None:
            return _scales([1 / (2 * float(one.eigenvalues[-1])) for one in problems], trial)
        noises = [self.step_noise(one.length, one, self._noise(one, quick=False)) for one in problems]
        batches = [trial.step_tokens / mean_length(one.length) for one in problems]
        return _scales([self._limit(*one) for one in zip(problems, noises, batches, strict=True)], trial)

    def _noise(self, problem: Problem, *, quick: bool) -> Array:
        """T·E[QᵀQ]."""
        if quick and isinstance(problem.length, Lengths):
            return self.leading_score(problem.length)
        return self.score(problem.length).covariance

    def _limit(self, problem: Problem, noise: StepNoise, batch: float) -> float:
        """The largest peak step of a student at rest."""
        key = (problem.length, batch)
        if key not in self._limits:
            self._limits[key] = limit(sketch_directions(problem, noise), batch)
        return self._limits[key]


def _scales(largest: Sequence[float], trial: Trial) -> list[float]:
    """The step of each stage over the schedule's, where the stages allow such peak steps."""
    if trial.depth is None:
        return [min(1.0, min(largest) / trial.schedule.gamma)] * len(largest)
    return [2.0**-trial.depth * one / trial.schedule.gamma for one in largest]
