"""Many mixtures and ladders tried on one sketch, for the planner.

Sequences are not counted here: a mixture or a phase has its share of the tokens, whole or not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from seqlaw.methods.accuracy import search
from seqlaw.methods.one_pass.directions import Ground, directions_of
from seqlaw.methods.one_pass.step import limit
from seqlaw.methods.score import leading_score, score
from seqlaw.methods.stage import CUT, State, at_rest, full_batch, one_pass, refined
from seqlaw.methods.workbench import LagSums, Workbench
from seqlaw.model.checks import Array
from seqlaw.model.lengths import Length, Lengths, mean_length
from seqlaw.model.pieces import Part, Pieces, is_cut, stretches
from seqlaw.model.schedule import Schedule
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


class Runs:
    """The runs of equal steps of each stage of a schedule, kept: all sketches and lengths share them."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._known: dict[tuple[tuple[int, ...], float], list[Pieces]] = {}

    def of(self, plan: Stages, ratio: float, scale: float) -> list[Part]:
        """Of the stages of a plan, each size times `scale`."""
        L, shares = self.schedule.L, tuple(share for _, share in plan)
        steps = (L,) if len(plan) == 1 else Lengths((1,) * len(plan), shares, True).steps(L)
        if (steps, ratio) not in self._known:
            self._known[steps, ratio] = stretches(self.schedule, steps, ratio, 0.5 / self.schedule.gamma)
        return [Part(Pieces(run.counts, run.sizes * scale)) for run in self._known[steps, ratio]]


class Bench(Workbench):
    """One sketch; `quick` takes the leading part of a mixture's noise, and coarser cuts."""

    def __init__(self, sums: LagSums, M: int, *, sketch: int, seed: int) -> None:
        super().__init__(sums.modes, M, sketch=sketch, seed=seed, sums=sums)
        self._lags = sums
        self._limits: dict[tuple[Length, float], float] = {}

    def trained(self, lengths: Length, trial: Trial, runs: Runs, *, quick: bool = False) -> State:
        """The student trained so: the mean and the covariance of its iterate."""
        plan = stages(lengths)
        problems = [self.problem(P) for P, _ in plan]
        noises = [self._noise(problem, quick=quick) for problem in problems]
        if trial.step_tokens is None:
            cut = runs.of(plan, _ROUGH if quick else CUT, _safe(problems, trial))
            state = at_rest(problems[0])
            for problem, noise, part, (_, share) in zip(problems, noises, cut, plan, strict=True):
                state = full_batch(state, problem, noise / (share * trial.tokens), part)
            return state
        known = [self.ground(one.P, one, noise) for one, noise in zip(problems, noises, strict=True)]
        batches = [trial.step_tokens / mean_length(P) for P, _ in plan]
        most = min(self._limit(*one) for one in zip(problems, known, batches, strict=True))
        scale = min(1.0, most / trial.schedule.gamma)

        def once(ratio: float) -> State:
            state = at_rest(problems[0])
            for one in zip(problems, known, batches, runs.of(plan, ratio, scale), strict=True):
                state = one_pass(state, *one)
            return state

        if quick or not is_cut(trial.schedule):
            return once(search.cut)
        return refined(once(_ONCE), once(_ONCE**0.5))

    def tokens_per_dimension(self, lengths: Length, trial: Trial, runs: Runs) -> float:
        """The least over stages of effective tokens a dimension that the stage learns."""
        found, plan = math.inf, stages(lengths)
        problems = [self.problem(P) for P, _ in plan]
        safe = runs.of(plan, CUT, _safe(problems, trial))
        for problem, (P, share), part in zip(problems, plan, safe, strict=True):
            known = self.score(P) if isinstance(P, int) else score(problem, self._lags.lags(P))
            effective = known.effective_share * share * trial.tokens
            learned = float(np.sum(1 - part.residual(problem.eigenvalues)))
            found = min(found, effective / max(learned, math.ulp(0.0)))
        return found

    def _noise(self, problem: Problem, *, quick: bool) -> Array:
        """T·E[QᵀQ]."""
        if quick and isinstance(problem.P, Lengths):
            return leading_score(problem, *self._lags.lags(problem.P))
        if isinstance(problem.P, Lengths):
            return score(problem, self._lags.lags(problem.P)).covariance
        return self.score(problem.P).covariance

    def _limit(self, problem: Problem, known: Ground, batch: float) -> float:
        """The largest peak step of a student at rest."""
        key = (problem.P, batch)
        if key not in self._limits:
            self._limits[key] = limit(directions_of(problem, known), batch)
        return self._limits[key]


def _safe(problems: list[Problem], trial: Trial) -> float:
    """What the safeguard leaves of the peak step of the full batch."""
    norm = max(float(problem.eigenvalues[-1]) for problem in problems)
    return min(1.0, 1 / (2 * norm * trial.schedule.gamma))
