"""Phases given sketches: the expected risk, full batch to leading order in the data, one pass closed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from seqlaw.methods.finite_sample.norm import Rise, rises
from seqlaw.methods.method import Cost, Draws, Method, Progress, sketch_memory
from seqlaw.methods.one_pass.law import FINE, diagonal_error, require_steady
from seqlaw.methods.one_pass.nodes import Ground, Nodes, given_sketch, ground
from seqlaw.methods.one_pass.step import HAIR, limit, step_flags
from seqlaw.methods.phases.chain import (
    FULL_RATIO,
    State,
    at_rest,
    full_batch_ladder,
    moved,
    norm_of,
    one_pass_ladder,
    refined,
)
from seqlaw.methods.rows import Row, columns, families, indices, summaries, summarise, with_sums
from seqlaw.methods.score import Score, score
from seqlaw.methods.spectral_sum import Rule
from seqlaw.methods.terms import Risk, frozen_error, frozen_filter_flags
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import Array
from seqlaw.model.flags import flag
from seqlaw.model.lengths import Counted, Length
from seqlaw.model.pieces import filters, is_cut, stretches
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import Problem, gaussian_sketch, sketched_problem
from seqlaw.model.threads import one_thread

_NAMES = ("gamma", "clipped", "tokens_per_dimension", "error")


class Ladders:
    """The problems of one sketch, and what of them no share, schedule or number of data changes."""

    def __init__(self, setting: Setting, sketch: int, seed: int) -> None:
        self.modes = setting.modes
        self.S = gaussian_sketch(setting.M, self.modes.d, seed=seed, index=sketch)
        self._problems: dict[Length, Problem] = {}
        self._scores: dict[Length, Score] = {}
        self._grounds: dict[Length, tuple[Ground, Nodes]] = {}
        self._rises: dict[Length, Rise] = {}

    def problem(self, P: Length) -> Problem:
        if P not in self._problems:
            self._problems[P] = sketched_problem(self.modes, self.S, P)
        return self._problems[P]

    def score(self, P: Length) -> Score:
        if P not in self._scores:
            self._scores[P] = score(self.problem(P))
        return self._scores[P]

    def ground(self, P: Length) -> tuple[Ground, Nodes]:
        """For one pass: what a phase needs, and the nodes of a student at rest."""
        if P not in self._grounds:
            known = ground(self.problem(P))
            self._grounds[P] = known, given_sketch(self.problem(P), known)
        return self._grounds[P]

    def rise(self, P: Length) -> Rise:
        if P not in self._rises:
            self._rises |= rises(Rule(modes=self.modes, weights=np.ones(self.modes.d)), [P])
        return self._rises[P]

    def safe(self, setting: Setting) -> Schedule:
        """The schedule, scaled so that its peak is safe in every phase."""
        P = phased(setting)
        if setting.batch is None:
            norms = [
                self.rise(length).norm(float(self.problem(length).eigenvalues[-1]), n * length)
                for length, n in zip(P.lengths, P.counts, strict=True)
            ]
            return setting.schedule.safeguarded(max(norms))
        most = min(limit(self.ground(length)[1], b) for length, b in zip(P.lengths, P.counts, strict=True))
        if not setting.safeguard:
            require_steady(setting.schedule, norm_of([self.problem(length) for length in P.lengths]))
            return setting.schedule
        return setting.schedule.scaled(most) if setting.schedule.gamma > most else setting.schedule

    def largest(self, setting: Setting) -> float:
        """The least γ_max of the phases."""
        P = phased(setting)
        pairs = zip(P.lengths, P.counts, strict=True)
        return min(self.ground(length)[1].largest_step(b) for length, b in pairs)

    def final(self, setting: Setting, schedule: Schedule) -> State:
        """The mean and the covariance of the student after all phases."""
        P = phased(setting)
        problems, steps = [self.problem(length) for length in P.lengths], P.steps(setting.schedule.L)
        if setting.batch is None:
            return full_batch_ladder(
                problems, self.noises(P), stretches(schedule, steps, FULL_RATIO, norm_of(problems))
            )
        known = [self.ground(length)[0] for length in P.lengths]

        def cut(ratio: float) -> State:
            return one_pass_ladder(
                problems, known, P.counts, stretches(schedule, steps, ratio, norm_of(problems))
            )

        return refined(cut(FINE), cut(FINE**0.5)) if is_cut(schedule) else cut(FINE)

    def mean(self, setting: Setting, schedule: Schedule) -> Array:
        """The mean of the student alone: without the noise of data or mini-batches."""
        P = phased(setting)
        problems, state = [self.problem(length) for length in P.lengths], at_rest(setting.M)
        runs = stretches(schedule, P.steps(setting.schedule.L), FULL_RATIO, norm_of(problems))
        for problem, run in zip(problems, runs, strict=True):
            state = moved(state, problem, run)
        return state.mean

    def noises(self, P: Counted) -> list[Array]:
        """E[QᵀQ] of each phase's data."""
        return [
            self.score(length).covariance / (n * length)
            for length, n in zip(P.lengths, P.counts, strict=True)
        ]

    def chance(self, setting: Setting) -> float:
        """The relative variance of ‖Ĝ‖, summed over phases."""
        P = phased(setting)
        return sum(
            self.rise(length).chance(n * length) for length, n in zip(P.lengths, P.counts, strict=True)
        )

    def tokens_per_dimension(self, setting: Setting, schedule: Schedule) -> float:
        """The least over phases of effective tokens a dimension that the phase learns."""
        P, found = phased(setting), math.inf
        problems = [self.problem(length) for length in P.lengths]
        runs = stretches(schedule, P.steps(schedule.L), FULL_RATIO, norm_of(problems))
        for problem, n, length, run in zip(problems, P.counts, P.lengths, runs, strict=True):
            learned = float(np.sum(1 - filters(run, problem.eigenvalues)[0]))
            share = self.score(length).effective_share
            found = min(found, share * n * length / max(learned, math.ulp(0.0)))
        return found


def phased(setting: Setting) -> Counted:
    """The phases of a setting, counted."""
    assert isinstance(setting.P, Counted)
    assert setting.P.phases
    return setting.P


class PhasedExact(Method):
    """Phases given sketches: O(M³) a phase for any number of steps."""

    name: ClassVar[str] = "exact"
    draws: ClassVar[tuple[str, ...]] = ("sketches",)
    one_pass: ClassVar[bool] = True
    phases: ClassVar[bool] = True

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        rows = self.rows(settings, draws)
        return summaries(settings, rows, summary)

    @one_thread()
    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        rows: list[Row] = []
        for family in families(settings):
            for sketch in indices("sketches", draws.sketches):
                ladders = Ladders(settings[family[0]], sketch, draws.seed)
                for index in family:
                    point = {"rung": "exact", "point": index, "sketch": sketch, **columns(settings[index])}
                    rows.append(point | _row(settings[index], ladders))
        return sorted(rows, key=lambda row: (row["point"], row["sketch"]))

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        seconds, memory = 0.0, 0.0
        for family in families(settings):
            M, d = settings[family[0]].M, float(settings[family[0]].d or 0)
            lengths = {P for index in family for P in phased(settings[index]).lengths}
            passes = sum(settings[index].batch is not None for index in family)
            noise = 1e-7 if passes else 3e-8
            each = sum(0.004 + d**2 * (noise * math.log2(2 * P) + 2e-10 * M) for P in lengths)
            each += (0.01 + 2e-8 * M**3) * len(family) + (0.04 + 1.8e-7 * M**3) * passes
            seconds += draws.count("sketches") * each
            memory = max(memory, sketch_memory(M, d, len(family)))
        return Cost(seconds=seconds, memory=memory)


def _row(setting: Setting, ladders: Ladders) -> Row:
    test = ladders.problem(setting.test_length)
    schedule = ladders.safe(setting)
    about = {"gamma": schedule.gamma, "clipped": float(setting.schedule.gamma > HAIR * schedule.gamma)}
    if setting.batch is None:
        about["tokens_per_dimension"] = ladders.tokens_per_dimension(setting, schedule)
        about["error"] = frozen_error(about["tokens_per_dimension"], ladders.chance(setting))
        return with_sums(ladders.final(setting, schedule).terms(test)) | about
    about["gamma_max"] = ladders.largest(setting)
    if schedule.gamma < about["gamma_max"]:
        return with_sums(ladders.final(setting, schedule).terms(test)) | about
    still = {"irreducible": test.irreducible, "approx": test.approx, "bias": 0.0, "cross": 0.0}
    return with_sums(still | {"variance": math.inf}) | about


def summary(setting: Setting, rows: Sequence[Row]) -> Risk:
    """The mean over sketches, with what must be said."""
    flags = list(setting_flags(setting))
    if setting.batch is not None:
        flags += step_flags(rows)
        bias, variance = (float(np.mean([row[name] for row in rows])) for name in ("bias", "variance"))
        return summarise(
            "exact",
            setting,
            rows,
            diagnostics=("gamma", "clipped", "gamma_max"),
            flags=flags,
            assumed=("cross",),
            accuracy={"variance": f"relative error about {diagonal_error(bias, variance):.2g} besides"},
        )
    if any(row["clipped"] for row in rows):
        flags.append(flag("safeguard"))
    tokens = min(row["tokens_per_dimension"] for row in rows)
    few = frozen_filter_flags(tokens)
    flags += [flag("cross"), *few]
    share = float(np.mean([1 - row["approx"] / row["reducible"] for row in rows]))
    of_data = (
        "may be much too low (frozen-filter)"
        if few
        else f"relative error about {max(row['error'] for row in rows) * share:.2g} besides"
    )
    return summarise(
        "exact",
        setting,
        rows,
        diagnostics=_NAMES,
        flags=flags,
        assumed=("cross",),
        accuracy={"reducible": of_data},
    )
