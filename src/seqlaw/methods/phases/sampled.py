"""Phases simulated: each with data of its own, full batch or fresh mini-batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from seqlaw.methods.drawn import side_by_side
from seqlaw.methods.method import Cost, Draws, Method, Progress
from seqlaw.methods.moments import sample_moments
from seqlaw.methods.one_pass.sampled import OnePassSampled, descended, split_risk
from seqlaw.methods.one_pass.step import HAIR
from seqlaw.methods.phases.chain import FULL_RATIO
from seqlaw.methods.phases.exact import Ladders, phased
from seqlaw.methods.rows import Row, columns, summaries, summarise, with_sums
from seqlaw.methods.sampled import Sampled
from seqlaw.methods.terms import Risk
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import InputError
from seqlaw.model.descent import Spectrum
from seqlaw.model.flags import flag
from seqlaw.model.pieces import filters, stretches
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import weighted_square

_TOGETHER = 16  # repetitions side by side


class PhasedSampled(Method):
    """Training in phases itself, on sketches and trajectories that are drawn."""

    name: ClassVar[str] = "sampled"
    draws: ClassVar[tuple[str, ...]] = ("sketches", "repetitions")
    one_pass: ClassVar[bool] = True
    phases: ClassVar[bool] = True

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        rows = self._rows(settings, draws, progress)
        return summaries(settings, rows, _summary)

    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        return self._rows(settings, draws, None)

    def _rows(self, settings: Sequence[Setting], draws: Draws, progress: Progress | None) -> list[Row]:
        for setting in settings:
            if (refusal := self.refuses(setting)) is not None:
                raise refusal

        def trained(k: int, sketch: int, group: list[int]) -> list[Row]:
            train = _full_batch if settings[k].batch is None else _one_pass
            found = train(settings[k], Ladders(settings[k], sketch, draws.seed), sketch, group, draws.seed)
            return [columns(settings[k]) | row for row in found]

        return side_by_side(
            settings, draws, trained, together=_TOGETHER, workers=draws.workers, progress=progress
        )

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        parts = [_alike(one).cost([one], draws) for one in settings]
        return Cost(seconds=sum(part.seconds for part in parts), memory=max(part.memory for part in parts))

    def refuses(self, setting: Setting) -> InputError | None:
        return super().refuses(setting) or _alike(setting).too_much(setting)


def _alike(setting: Setting) -> Sampled | OnePassSampled:
    """The rung of one length that draws as much."""
    return Sampled() if setting.batch is None else OnePassSampled()


def _full_batch(
    setting: Setting, ladders: Ladders, sketch: int, repetitions: Sequence[int], seed: int
) -> list[Row]:
    """B_L - B*' = [bias path] + [noise path], each phase with its own Ĝ: the paper's split, in phases."""
    P, test = phased(setting), ladders.problem(setting.test_length)
    problems = [ladders.problem(length) for length in P.lengths]
    rows = []
    for repetition in repetitions:
        data = [
            sample_moments(
                ladders.modes, ladders.S, N, length, seed=seed, key=(sketch, repetition, "phase", k)
            )
            for k, (N, length) in enumerate(zip(P.counts, P.lengths, strict=True))
        ]
        spectra = [Spectrum.of(moments.G) for moments in data]
        norm = max(float(spectrum.mu[-1]) for spectrum in spectra)
        schedule = setting.schedule.safeguarded(norm)
        mean, noise = np.zeros_like(test.G), np.zeros_like(test.G)
        runs = stretches(schedule, P.steps(schedule.L), FULL_RATIO, norm)
        for problem, moments, spectrum, run in zip(problems, data, spectra, runs, strict=True):
            live = np.maximum(spectrum.mu, 1e-280)  # fewer tokens than dimensions leave some at 0
            psi, g = filters(run, live)
            U = spectrum.U
            missed = moments.C - problem.B_star @ moments.G
            mean = problem.B_star + ((mean - problem.B_star) @ U * psi) @ U.T
            noise = (noise @ U * psi + missed @ U * g) @ U.T
        left = mean - test.B_star
        terms = {
            "irreducible": test.irreducible,
            "approx": test.approx,
            "bias": weighted_square(left, test.G) / 2,
            "variance": weighted_square(noise, test.G) / 2,
            "cross": float(np.sum((left @ test.G) * noise)),
        }
        about = {"loss": test.loss(mean + noise), "clipped": float(schedule is not setting.schedule)}
        rows.append({"repetition": repetition} | with_sums(terms) | about)
    return rows


def _one_pass(
    setting: Setting, ladders: Ladders, sketch: int, repetitions: Sequence[int], seed: int
) -> list[Row]:
    """Mini-batch descent; the split is about the mean iterate, which is known."""
    test, schedule = ladders.problem(setting.test_length), ladders.safe(setting)
    left = ladders.mean(setting, schedule) - test.B_star
    clipped = float(setting.schedule.gamma > HAIR * schedule.gamma)
    students = descended(setting, schedule, ladders.S, [(seed, sketch, one) for one in repetitions])
    return [
        {"repetition": repetition, "gamma": schedule.gamma, "clipped": clipped} | split_risk(B, left, test)
        for repetition, B in zip(repetitions, students, strict=True)
    ]


def _summary(setting: Setting, rows: Sequence[Row]) -> Risk:
    flags = list(setting_flags(setting))
    if clipped := sum(row["clipped"] for row in rows):
        flags.append(flag("safeguard", clipped=clipped, rows=len(rows)))
    return summarise("sampled", setting, rows, diagnostics=("clipped",), flags=flags)
