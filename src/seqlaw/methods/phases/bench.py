"""One sketch on which many mixtures and ladders are tried: what they share is computed once.

Sequences are not counted here: a mixture or a phase has its share of the tokens, whole or not.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from seqlaw.methods.one_pass.law import ROUGH
from seqlaw.methods.one_pass.nodes import Ground, channels, given_sketch, grounded, innovation_lags, keep
from seqlaw.methods.one_pass.step import limit
from seqlaw.methods.phases.chain import (
    FULL_RATIO,
    State,
    full_batch_ladder,
    norm_of,
    one_pass_ladder,
    refined,
)
from seqlaw.methods.score import Score, lag_sums, leading_score, score
from seqlaw.model.checks import Array
from seqlaw.model.lengths import Length, Lengths, mean_length, parts
from seqlaw.model.pieces import Pieces, filters, is_cut, stretches
from seqlaw.model.schedule import Schedule
from seqlaw.model.sketch import Problem, gaussian_sketch, sketched_problem
from seqlaw.model.teacher import Modes

_KEPT = 2**21  # numbers that a length may keep for its starts
_ONCE = 1.4
"""Ratio of the cuts of a smooth schedule in one pass, before the Richardson step: seen to err by 2e-5 of the
variance (WSD) and 3e-3 of it (cosine)."""
_ROUGH = 1.3  # ratio of the cuts of a smooth schedule while shares are searched


def stages(lengths: Length) -> tuple[tuple[Length, float], ...]:
    """What is trained on, one after another, with its share of the steps and of the tokens."""
    return tuple(lengths) if isinstance(lengths, Lengths) and lengths.phases else ((lengths, 1.0),)


class Sums:
    """The lag sums of each length, d×d, and their channels: no sketch changes them, a mixture adds them."""

    def __init__(self, modes: Modes) -> None:
        self.modes = modes
        self._sums: dict[int, tuple[Array, Array]] = {}
        self._channels: dict[int, tuple[Array, Array, Array]] = {}

    def lags(self, P: Length) -> tuple[Array, Array]:
        """K/P and J/P."""
        for length, _ in parts(P):
            if length not in self._sums:
                self._sums[length] = lag_sums(self.modes, length)
        if isinstance(P, int):
            return self._sums[P]
        K, J = (sum(share * self._sums[one][k] for one, share in parts(P)) for k in (0, 1))
        return np.asarray(K), np.asarray(J)

    def channels(self, P: Length) -> tuple[Array, tuple[Array, Array]]:
        """φ, and J as a product (`one_pass.nodes`); a mixture's lie side by side."""
        found = []
        for length, share in parts(P):
            if length not in self._channels:
                self._channels[length] = channels(self.modes, length), *innovation_lags(self.modes, length)
            root = math.sqrt(share * length / mean_length(P))
            found.append([root * x for x in self._channels[length]])
        phi, X, Y = (np.concatenate(rows) for rows in zip(*found, strict=True))
        return phi, (X, Y)


class Trial(NamedTuple):
    """How students are trained: a schedule, and the tokens of the whole run, of a step in one pass."""

    schedule: Schedule
    tokens: float
    step_tokens: float | None
    """None for the full batch."""


class Bench:
    """One sketch."""

    def __init__(self, sums: Sums, M: int, *, sketch: int, seed: int) -> None:
        self.sums = sums
        self.S = gaussian_sketch(M, sums.modes.d, seed=seed, index=sketch)
        self._problems: dict[int, Problem] = {}
        self._scores: dict[int, Score] = {}
        self._grounds: dict[int, Ground] = {}
        self._limits: dict[tuple[Length, float], float] = {}

    def problem(self, P: Length) -> Problem:
        if isinstance(P, Lengths):  # as many as shares are tried: not kept
            return sketched_problem(self.sums.modes, self.S, P)
        if P not in self._problems:
            self._problems[P] = sketched_problem(self.sums.modes, self.S, P)
        return self._problems[P]

    def score(self, P: int) -> Score:
        if P not in self._scores:
            self._scores[P] = score(self.problem(P), self.sums.lags(P))
        return self._scores[P]

    def _noise(self, problem: Problem, *, quick: bool) -> Array:
        """T·E[QᵀQ]; `quick` takes the leading part of a mixture's."""
        if isinstance(problem.P, int):
            return self.score(problem.P).covariance
        lags = self.sums.lags(problem.P)
        return leading_score(problem, *lags) if quick else score(problem, lags).covariance

    def _ground(self, problem: Problem, *, quick: bool) -> Ground:
        if isinstance(problem.P, int) and problem.P in self._grounds:
            return self._grounds[problem.P]
        found = grounded(problem, *self.sums.channels(problem.P), self._noise(problem, quick=quick))
        if 2 * (len(found.phi) + len(found.lags[0])) * problem.M**2 <= _KEPT:
            found = keep(problem, found)
        if isinstance(problem.P, int):
            self._grounds[problem.P] = found
        return found

    def trained(self, lengths: Length, trial: Trial, runs: Runs, *, quick: bool = False) -> State:
        """The student trained so: the mean and the covariance of its iterate."""
        plan = stages(lengths)
        problems = [self.problem(P) for P, _ in plan]
        train = self._full_batch if trial.step_tokens is None else self._one_pass
        return train(problems, plan, trial, runs, quick=quick)

    def _full_batch(
        self,
        problems: list[Problem],
        plan: tuple[tuple[Length, float], ...],
        trial: Trial,
        runs: Runs,
        *,
        quick: bool,
    ) -> State:
        noises = [
            self._noise(problem, quick=quick) / (share * trial.tokens)
            for problem, (_, share) in zip(problems, plan, strict=True)
        ]
        return full_batch_ladder(
            problems, noises, runs.of(plan, _ROUGH if quick else FULL_RATIO, _safe(problems, trial))
        )

    def _one_pass(
        self,
        problems: list[Problem],
        plan: tuple[tuple[Length, float], ...],
        trial: Trial,
        runs: Runs,
        *,
        quick: bool,
    ) -> State:
        known = [self._ground(problem, quick=quick) for problem in problems]
        batches = [(trial.step_tokens or 1.0) / mean_length(P) for P, _ in plan]
        most = min(self._limit(*one) for one in zip(problems, known, batches, strict=True))
        scale = min(1.0, most / trial.schedule.gamma)

        def cut(ratio: float) -> State:
            return one_pass_ladder(problems, known, batches, runs.of(plan, ratio, scale))

        if quick or not is_cut(trial.schedule):
            return cut(ROUGH)
        return refined(cut(_ONCE), cut(_ONCE**0.5))

    def _limit(self, problem: Problem, known: Ground, batch: float) -> float:
        """The largest peak step of a student at rest."""
        key = (problem.P, batch)
        if key not in self._limits:
            self._limits[key] = limit(given_sketch(problem, known), batch)
        return self._limits[key]

    def forget(self) -> None:
        """The eigensystems of steps, which are many."""
        for known in self._grounds.values():
            if known.kept is not None:
                known.kept.turned.clear()

    def tokens_per_dimension(self, lengths: Length, trial: Trial, runs: Runs) -> float:
        """The least over stages of effective tokens a dimension that the stage learns."""
        found, plan = math.inf, stages(lengths)
        problems = [self.problem(P) for P, _ in plan]
        safe = runs.of(plan, FULL_RATIO, _safe(problems, trial))
        for problem, (P, share), run in zip(problems, plan, safe, strict=True):
            known = self.score(P) if isinstance(P, int) else score(problem, self.sums.lags(P))
            effective = known.effective_share * share * trial.tokens
            learned = float(np.sum(1 - filters(run, problem.eigenvalues)[0]))
            found = min(found, effective / max(learned, math.ulp(0.0)))
        return found


def _safe(problems: list[Problem], trial: Trial) -> float:
    """What the safeguard leaves of the peak step of the full batch."""
    return min(1.0, 1 / (2 * norm_of(problems) * trial.schedule.gamma))


class Runs:
    """The runs of equal steps of each stage of a schedule, kept: all sketches and lengths share them."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self._known: dict[tuple[tuple[int, ...], float], list[Pieces]] = {}

    def of(self, plan: tuple[tuple[Length, float], ...], ratio: float, scale: float) -> list[Pieces]:
        """Of the stages of a plan, each size times `scale`."""
        L = self.schedule.L
        steps = (
            (L,) if len(plan) == 1 else Lengths((1,) * len(plan), tuple(s for _, s in plan), True).steps(L)
        )
        if (steps, ratio) not in self._known:
            self._known[steps, ratio] = stretches(self.schedule, steps, ratio, 0.5 / self.schedule.gamma)
        return [Pieces(run.counts, run.sizes * scale) for run in self._known[steps, ratio]]
