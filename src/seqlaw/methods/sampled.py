"""The sampled rung: safeguarded gradient descent on the moments of a data set, and its five terms.

On one data set L_M(B_L) = irreducible + approx + bias + variance + cross to rounding (Proposition 1 before
the expectation), at the training length or any other test length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqlaw.methods.method import Cost, Draws, Method, Progress, device_for, sketch_memory
from seqlaw.methods.moments import (
    Drawing,
    cheaper_drawing,
    direct_cost,
    gram_cost,
    mixed_moments,
    nested_moments,
    position_cost,
)
from seqlaw.methods.rows import Row, columns, families, indices, summaries, summarise, with_sums
from seqlaw.methods.terms import TERMS, Risk
from seqlaw.model.arrays import ends, namespace
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import InputError, whole
from seqlaw.model.descent import Moments, Spectrum
from seqlaw.model.device import Device
from seqlaw.model.flags import flag
from seqlaw.model.lengths import Counted, Length, longest
from seqlaw.model.schedule import Schedule, as_schedule
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import Problem, gaussian_sketch, sketched_problem, weighted_square
from seqlaw.model.threads import in_order, one_thread

DIAGNOSTICS = ("clipped", "covariance_event")


@dataclass(frozen=True, kw_only=True)
class SampledTerms:
    """The five terms of one data set."""

    irreducible: float
    approx: float
    bias: float
    variance: float
    cross: float
    clipped: bool
    """Whether the safeguard scaled the schedule down."""

    @property
    def total(self) -> float:
        """The risk L(B_L) of the trained student."""
        return self.irreducible + self.approx + self.bias + self.variance + self.cross


def sampled_terms(
    problem: Problem,
    moments: Moments,
    schedule: Schedule | str,
    test: Problem | None = None,
    *,
    spectrum: Spectrum | None = None,
) -> SampledTerms:
    """Train on the moments and split the risk on `test` (the same sketch at length P'; default: P).

    B_L - B*' = [B*(I - ψ(Ĝ)) - B*'] + Ê g(Ĝ), Ê = Ĉ - B*Ĝ: half the squared norms in G' of the two parts
    are bias and variance, their product is cross. At P' = P the first part is the paper's -B*ψ(Ĝ).
    `spectrum` saves an eigendecomposition when several schedules share the moments.
    """
    test = problem if test is None else test
    spectrum = Spectrum.of(moments.G) if spectrum is None else spectrum
    if test.S is not problem.S and not np.array_equal(test.S, problem.S):
        raise InputError("test", "must use the sketch of the training problem", "another sketch")
    safe = spectrum.safeguard(as_schedule("schedule", schedule))
    left = -spectrum.residual(problem.B_star, safe)
    if test.P != problem.P:
        left = left + (problem.B_star - test.B_star)
    noise = spectrum.response(moments.C - problem.B_star @ moments.G, safe)
    return SampledTerms(
        irreducible=test.irreducible,
        approx=test.approx,
        bias=weighted_square(left, test.G) / 2,
        variance=weighted_square(noise, test.G) / 2,
        cross=float(((left @ test.G) * noise).sum()),
        clipped=safe is not schedule,
    )


def covariance_event(problem: Problem, moments: Moments) -> float:
    """‖G^{-1/2} Ĝ G^{-1/2} - I‖, which the paper's proofs need below a constant times R^{-1/2}."""
    white = problem.eigenvectors / namespace(problem.eigenvalues).sqrt(problem.eigenvalues)
    low, high = ends(white.T @ moments.G @ white)
    return max(abs(low - 1), abs(high - 1))


class Sampled(Method):
    """Sketches and trajectories drawn, students trained on their moments: what a training run sees."""

    name: ClassVar[str] = "sampled"
    mixtures: ClassVar[bool] = True
    draws: ClassVar[tuple[str, ...]] = ("sketches", "repetitions")
    population: ClassVar[bool] = True
    expectation: ClassVar[str] = "exact"

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        return sampled_risks(
            settings,
            sketches=draws.count("sketches"),
            repetitions=draws.count("repetitions"),
            seed=draws.seed,
            workers=draws.workers,
            progress=progress,
            device=draws.device,
        )

    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        return sampled_rows(
            settings,
            sketches=draws.sketches,
            repetitions=draws.repetitions,
            seed=draws.seed,
            workers=draws.workers,
            device=draws.device,
        )

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        seconds, memory = 0.0, 0.0
        for family in families(settings):
            members = [settings[index] for index in family]
            M, d = members[0].M, int(members[0].d or 0)
            N, P = max(one.N for one in members), max(longest(one.P) for one in members)
            card = draws.device is not None
            gram = cheaper_drawing(N, d, M, card) == "gram"
            # A chain of Gram matrices is drawn between any two neighbouring N.
            position = position_cost(N, len({one.N for one in members}), d, M, card)
            solving = len({(one.N, one.P) for one in members}) * (0.002 + 2e-9 * M**3)
            problems = len({one.P for one in members}) * (0.001 + 1e-9 * (d * M**2 + M**3))
            data_sets = draws.count("sketches") * draws.count("repetitions")
            seconds += data_sets * (P * position * 1e-9 + solving + problems)
            memory = max(memory, sketch_memory(M, d, len(family)) + 100 * d**2 * gram)
        return Cost(seconds=seconds, memory=memory)

    def refuses(self, setting: Setting) -> InputError | None:
        """One data set of more than a day is a mistake, not a request."""
        return super().refuses(setting) or self.too_much(setting)

    def too_much(self, setting: Setting) -> InputError | None:
        """The refusal of what takes too long."""
        d = setting.modes.d
        hours = sum(P * _position_cost(N, d, setting.M) for N, P in _data_sets(setting)) / 3.6e12
        if hours <= 24:
            return None
        rule = f"with N = {setting.N} and d = {d} would take about {hours:.2g} hours a data set (at most 24)"
        return InputError("P", rule, str(setting.lengths) if setting.lengths else setting.P)


def sampled_rows(
    settings: Sequence[Setting],
    *,
    sketches: int | Sequence[int] = 1,
    repetitions: int | Sequence[int] = 1,
    seed: int = 0,
    drawing: Drawing = "auto",
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    device: str | None = None,
) -> list[Row]:
    """One row for each setting, sketch and repetition: parameters, five terms, diagnostics.

    Settings of one teacher and width are one nested family: in each repetition they share one data set
    (all N and P in one pass) and the decomposition of its moments, as the paper's sweeps do.
    `sketches` and `repetitions` are counts, or the numbers of those wanted: `[3]` gives the rows that a
    count of 4 gives to number 3. `progress(done, total)` counts data sets. Neither the threads nor their
    number change a bit. `loss` is the risk of the trained B_L computed as such, not from the terms.
    A `device` draws the data, and does what a wide student needs.
    """
    where = device_for(settings, device)
    workers = 1 if where else whole("workers", workers)
    tasks = [
        (family, sketch, repetition)
        for family in families(settings)
        for sketch in indices("sketches", sketches)
        for repetition in indices("repetitions", repetitions)
    ]
    for setting in settings:
        if (refusal := Sampled().refuses(setting)) is not None:
            raise refusal
    across = min(workers, len(tasks))

    def run(task: tuple[list[int], int, int]) -> list[Row]:
        family, sketch, repetition = task
        return _repetition(settings, family, sketch, repetition, seed, drawing, workers // across, where)

    rows: list[Row] = []
    with one_thread():
        for done, new in enumerate(in_order(run, tasks, across), 1):
            rows.extend(new)
            if progress is not None:
                progress(done, len(tasks))
    return sorted(rows, key=lambda row: (row["point"], row["sketch"], row["repetition"]))


def _repetition(
    settings: Sequence[Setting],
    family: list[int],
    sketch: int,
    repetition: int,
    seed: int,
    drawing: Drawing,
    workers: int,
    device: Device | None,
) -> list[Row]:
    """All rows of one family on one nested data set."""
    members = [settings[index] for index in family]
    modes, M = members[0].modes, members[0].M
    S = gaussian_sketch(M, modes.d, seed=seed, index=sketch, device=device)
    lengths = dict.fromkeys(P for member in members for P in (member.P, member.test_length))
    problems = {P: sketched_problem(modes, S, P) for P in lengths}
    points: list[tuple[int, Length]] = [(member.N, member.P) for member in members]
    data: dict[tuple[int, Length], Moments] = {}
    key = (sketch, repetition)
    if plain := [(N, P) for N, P in points if isinstance(P, int)]:
        nested = nested_moments(
            modes, S, plain, seed=seed, key=key, drawing=drawing, workers=workers, device=device
        )
        data.update({(N, P): moments for (N, P), moments in nested.items()})
    for N, mixture in points:
        if isinstance(mixture, Counted):
            data[N, mixture] = mixed_moments(
                modes, S, mixture, seed=seed, key=key, drawing=drawing, workers=workers
            )
    spectra = {point: Spectrum.of(moments.G) for point, moments in data.items()}
    events = {point: covariance_event(problems[point[1]], moments) for point, moments in data.items()}
    rows = []
    for index, member, point in zip(family, members, points, strict=True):
        terms = sampled_terms(
            problems[member.P],
            data[point],
            member.schedule,
            problems[member.test_length],
            spectrum=spectra[point],
        )
        rows.append(
            {"rung": "sampled", "point": index, "sketch": sketch, "repetition": repetition}
            | columns(member)
            | with_sums({name: getattr(terms, name) for name in TERMS})
            | {"loss": _loss(problems[member.test_length], data[point], member.schedule, spectra[point])}
            | {"clipped": float(terms.clipped), "covariance_event": events[point]}
        )
    return rows


def _data_sets(setting: Setting) -> list[tuple[int, int]]:
    """(N, P) of what is drawn."""
    P = setting.P
    return (
        list(zip(P.counts, P.lengths, strict=True))
        if isinstance(P, Counted)
        else [(setting.N, setting.one_length)]
    )


def _position_cost(N: int, d: int, M: int) -> float:
    """Nanoseconds a position, the cheaper way."""
    return min(direct_cost(N, d, M), gram_cost(d)) if N >= 2 * d else direct_cost(N, d, M)


def _loss(test: Problem, moments: Moments, schedule: Schedule, spectrum: Spectrum) -> float:
    """L(B_L) of the trained B_L = Ĉ g(Ĝ) itself, which owes nothing to the split into terms."""
    return test.loss(spectrum.response(moments.C, spectrum.safeguard(schedule)))


def sampled_risks(
    settings: Sequence[Setting],
    *,
    sketches: int = 1,
    repetitions: int = 1,
    seed: int = 0,
    drawing: Drawing = "auto",
    workers: int = 1,
    progress: Callable[[int, int], None] | None = None,
    device: str | None = None,
) -> list[Risk]:
    """The measured risk of each setting: means and standard errors over sketches and repetitions."""
    rows = sampled_rows(
        settings,
        sketches=sketches,
        repetitions=repetitions,
        seed=seed,
        drawing=drawing,
        workers=workers,
        progress=progress,
        device=device,
    )
    return summaries(settings, rows, _summary)


def sampled_risk(
    setting: Setting,
    *,
    sketches: int = 1,
    repetitions: int = 1,
    seed: int = 0,
    drawing: Drawing = "auto",
    workers: int = 1,
) -> Risk:
    """The measured risk at one setting; `diagnostics` holds the clipping rate and the covariance event."""
    return sampled_risks(
        [setting], sketches=sketches, repetitions=repetitions, seed=seed, drawing=drawing, workers=workers
    )[0]


def _summary(setting: Setting, rows: Sequence[Row]) -> Risk:
    flags = list(setting_flags(setting))
    clipped = sum(row["clipped"] for row in rows)
    if clipped:
        flags.append(flag("safeguard", clipped=clipped, rows=len(rows)))
    return summarise("sampled", setting, rows, diagnostics=DIAGNOSTICS, flags=flags)
