"""The sampled method: sketches and data drawn, students trained on them, and their five terms.

On one data set L_M(B_L) = irreducible + approx + bias + variance + cross to rounding (Proposition 1 before
the expectation), at the training length or any other test length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import ClassVar

from seqlaw.methods.drawn import Drawn
from seqlaw.methods.method import Cost, Draws, Progress, device_for, sketch_memory
from seqlaw.methods.moments import (
    cheaper_drawing,
    direct_cost,
    gram_cost,
    mixed_moments,
    nested_moments,
    position_cost,
    sample_moments,
)
from seqlaw.methods.one_pass import descent
from seqlaw.methods.one_pass.exact import mean_student
from seqlaw.methods.one_pass.step import DIAGNOSTICS as ONE_PASS
from seqlaw.methods.one_pass.step import step_flags, stepped
from seqlaw.methods.rows import Row, columns, families, indices, summarise, with_sums
from seqlaw.methods.stage import parts_of
from seqlaw.methods.terms import Risk
from seqlaw.methods.workbench import Workbench
from seqlaw.model.arrays import ends, host, namespace, zeros
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import Array, InputError, whole
from seqlaw.model.descent import Moments, Spectrum
from seqlaw.model.device import Device
from seqlaw.model.flags import flag
from seqlaw.model.lengths import Counted, Length, longest
from seqlaw.model.schedule import Schedule, as_schedule
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import Problem, weighted_square
from seqlaw.model.threads import in_order, one_thread

Task = tuple[list[int], int, list[int]]
"""Settings, a sketch, and repetitions: of the full batch one, which a family shares."""


def split(left: Array, noise: Array, test: Problem) -> dict[str, float]:
    """B_L - B*' = left + noise: bias and variance are half their squared norms in G', cross their product.

    At the training length `left` is -B*ψ(Ĝ): the product has the minus sign of the paper's Cross.
    """
    finite = math.isfinite(float((noise * noise).sum()))
    return {
        "irreducible": test.irreducible,
        "approx": test.approx,
        "bias": weighted_square(left, test.G) / 2,
        "variance": weighted_square(noise, test.G) / 2 if finite else math.inf,
        "cross": float(((left @ test.G) * noise).sum()) if finite else 0.0,
    }


def trained(
    problems: Sequence[Problem],
    data: Sequence[Moments],
    spectra: Sequence[Spectrum],
    parts: Sequence[Schedule],
    test: Problem,
) -> Row:
    """Train from zero through stages, each on the moments of its own data, and split the risk on `test`.

    D ← B* + (D - B*)ψ(Ĝ) and E ← Eψ(Ĝ) + Êg(Ĝ), Ê = Ĉ - B*Ĝ, add up to the student B ← Bψ(Ĝ) + Ĉg(Ĝ), which
    is trained beside them: `loss` is its risk computed as such.
    """
    mean = noise = student = zeros(test.G, *test.G.shape)
    for problem, moments, spectrum, part in zip(problems, data, spectra, parts, strict=True):
        best = problem.B_star
        mean = best + spectrum.residual(mean - best, part)
        missed = moments.C - best @ moments.G
        noise = spectrum.residual(noise, part) + spectrum.response(missed, part)
        student = spectrum.residual(student, part) + spectrum.response(moments.C, part)
    return with_sums(split(mean - test.B_star, noise, test)) | {"loss": test.loss(student)}


def sampled_terms(
    problem: Problem, moments: Moments, schedule: Schedule | str, test: Problem | None = None
) -> Row:
    """The terms of one data set, trained with the safeguard, on `test` (the same sketch at length P')."""
    test = problem if test is None else test
    if test.S is not problem.S and not bool((test.S == problem.S).all()):
        raise InputError("test", "must use the sketch of the training problem", "another sketch")
    spectrum, given = Spectrum.of(moments.G), as_schedule("schedule", schedule)
    safe = spectrum.safeguard(given)
    return trained([problem], [moments], [spectrum], [safe], test) | {"clipped": float(safe is not given)}


def covariance_event(problem: Problem, moments: Moments) -> float:
    """‖G^{-1/2} Ĝ G^{-1/2} - I‖, which the paper's proofs need below a constant times R^{-1/2}."""
    white = problem.eigenvectors / namespace(problem.eigenvalues).sqrt(problem.eigenvalues)
    low, high = ends(white.T @ moments.G @ white)
    return max(abs(low - 1), abs(high - 1))


class Sampled(Drawn):
    """Sketches and trajectories drawn, students trained on them: what a training run sees."""

    name: ClassVar[str] = "sampled"
    mixtures: ClassVar[bool] = True
    one_pass: ClassVar[bool] = True
    phases: ClassVar[bool] = True
    draws: ClassVar[tuple[str, ...]] = ("sketches", "repetitions")
    population: ClassVar[bool] = True
    expectation: ClassVar[str] = "exact"

    def drawn_rows(
        self, settings: Sequence[Setting], draws: Draws, progress: Progress | None = None
    ) -> list[Row]:
        """One row for each setting, sketch and repetition: parameters, five terms, diagnostics.

        Settings of one teacher and width are one nested family: in each repetition they share one data set
        (all N and P in one pass) and the decomposition of its moments, as the paper's sweeps do.
        `sketches` and `repetitions` are counts, or the numbers of those wanted: `[3]` gives the rows that a
        count of 4 gives to number 3. `progress(done, total)` counts data sets. Neither the threads nor their
        number change a bit. A `device` draws the data, and does what a wide student needs.
        """
        where = device_for(settings, draws.device)
        workers = 1 if where else whole("workers", draws.workers)
        for setting in settings:
            if (refusal := self.refuses(setting)) is not None:
                raise refusal
        tasks = list(_tasks(settings, draws, where))
        across = max(1, min(workers, len(tasks)))

        def run(task: Task) -> list[Row]:
            family, sketch, repetitions = task
            members = [settings[k] for k in family]
            modes, M = members[0].modes, members[0].M
            bench = Workbench(modes, M, sketch=sketch, seed=draws.seed, device=where)
            key = (draws.seed, sketch)
            if members[0].batch is None:
                found = _full_batch(members, bench, (*key, repetitions[0]), workers // across, where)
            else:
                found = _mini_batches(members[0], bench, [(*key, one) for one in repetitions], where)
            points = family if members[0].batch is None else family * len(repetitions)
            return [
                {"method": "sampled", "point": k, "sketch": sketch, **columns(settings[k])} | row
                for k, row in zip(points, found, strict=True)
            ]

        rows: list[Row] = []
        with one_thread():
            for done, new in enumerate(in_order(run, tasks, across), 1):
                rows.extend(new)
                if progress is not None:
                    progress(done, len(tasks))
        return sorted(rows, key=lambda row: (row["point"], row["sketch"], row["repetition"]))

    def summary(self, setting: Setting, rows: Sequence[Row]) -> Risk:
        flags, alone = list(setting_flags(setting)), len(setting.stages) == 1
        measured: tuple[str, ...] = ("clipped", "covariance_event") if alone else ("clipped",)
        if setting.batch is not None:
            if alone:
                measured = tuple(name for name in ONE_PASS if name not in ("additive", "multiplicative"))
            flags += step_flags(rows)
        elif clipped := sum(row["clipped"] for row in rows):
            flags.append(flag("safeguard", clipped=clipped, rows=len(rows)))
        if setting.epochs > 1:
            flags.append(flag("epochs", epochs=setting.epochs))
        return summarise("sampled", setting, rows, diagnostics=measured, flags=flags)

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        data_sets = draws.count("sketches") * draws.count("repetitions")
        passes = [one for one in settings if one.batch is not None]
        seconds = sum(data_sets * descent.seconds(one) for one in passes)
        memory = max(
            (
                sketch_memory(one.M, float(one.d or 0), 1) + 128.0 * max(descent.BLOCK, descent.held(one))
                for one in passes
            ),
            default=0.0,
        )
        full = [one for one in settings if one.batch is None]
        for family in families(full):
            members = [full[index] for index in family]
            M, d = members[0].M, int(members[0].d or 0)
            N, P = max(one.N for one in members), max(longest(one.P) for one in members)
            card = draws.device is not None
            gram = cheaper_drawing(N, d, M, card) == "gram"
            # A chain of Gram matrices is drawn between any two neighbouring N.
            position = position_cost(N, len({one.N for one in members}), d, M, card)
            solving = len({(one.N, one.P) for one in members}) * (0.002 + 2e-9 * M**3)
            problems = len({one.P for one in members}) * (0.001 + 1e-9 * (d * M**2 + M**3))
            seconds += data_sets * (P * position * 1e-9 + solving + problems)
            memory = max(memory, sketch_memory(M, d, len(family)) + 100 * d**2 * gram)
        return Cost(seconds=seconds, memory=memory)

    def refuses(self, setting: Setting) -> InputError | None:
        """One data set, or one run, of more than a day is a mistake, not a request."""
        too_much = _too_much if setting.batch is None else descent.too_long
        return super().refuses(setting) or too_much(setting)


def _tasks(settings: Sequence[Setting], draws: Draws, device: Device | None) -> Iterator[Task]:
    sketches, repetitions = (indices(name, getattr(draws, name)) for name in ("sketches", "repetitions"))
    full = [k for k, one in enumerate(settings) if one.batch is None]
    for family in families([settings[k] for k in full]):
        yield from (([full[k] for k in family], s, [r]) for s in sketches for r in repetitions)
    for k, one in enumerate(settings):
        if one.batch is not None:
            step = descent.together(one, device)
            groups = [repetitions[first : first + step] for first in range(0, len(repetitions), step)]
            yield from (([k], s, group) for s in sketches for group in groups)


def _too_much(setting: Setting) -> InputError | None:
    """The refusal of a data set that takes too long."""
    d, P = setting.modes.d, setting.P
    drawn = (
        list(zip(P.counts, P.lengths, strict=True))
        if isinstance(P, Counted)
        else [(setting.N, setting.one_length)]
    )

    def nanoseconds(N: int) -> float:
        direct = direct_cost(N, d, setting.M)
        return min(direct, gram_cost(d)) if N >= 2 * d else direct

    hours = sum(length * nanoseconds(N) for N, length in drawn) / 3.6e12
    if hours <= 24:
        return None
    rule = f"with N = {setting.N} and d = {d} would take about {hours:.2g} hours a data set (at most 24)"
    return InputError("P", rule, str(setting.lengths) if setting.lengths else setting.P)


def _full_batch(
    members: Sequence[Setting],
    bench: Workbench,
    key: tuple[int, int, int],
    workers: int,
    device: Device | None,
) -> list[Row]:
    """One row a setting of one family, on one nested data set."""
    seed, *names = key
    modes, S = bench.modes, bench.S
    data: dict[tuple[int, Length], list[Moments]] = {}
    points = [(one.N, one.P) for one in members]
    if plain := [(N, P) for N, P in points if isinstance(P, int)]:
        nested = nested_moments(modes, S, plain, seed=seed, key=tuple(names), workers=workers, device=device)
        data |= {(N, P): [moments] for (N, P), moments in nested.items()}
    for one in members:
        P = one.P
        if isinstance(P, Counted) and P.phases:  # each with data of its own
            data[one.N, P] = [
                sample_moments(modes, S, N, int(longest(length)), seed=seed, key=(*names, "phase", k))
                for k, (length, N, _) in enumerate(one.stages)
            ]
        elif isinstance(P, Counted):
            mixed = mixed_moments(modes, S, P, seed=seed, key=tuple(names), workers=workers)
            data[one.N, P] = [mixed]
    spectra = {point: [Spectrum.of(one.G) for one in found] for point, found in data.items()}
    events = {
        point: covariance_event(bench.problem(point[1]), found[0])
        for point, found in data.items()
        if len(found) == 1
    }
    rows = []
    for one, point in zip(members, points, strict=True):
        norm = max(float(spectrum.mu[-1]) for spectrum in spectra[point])
        schedule = one.schedule.safeguarded(norm)
        row = trained(
            [bench.problem(P) for P, *_ in one.stages],
            data[point],
            spectra[point],
            parts_of(schedule, [steps for *_, steps in one.stages], norm),
            bench.problem(one.test_length),
        )
        row |= {"repetition": names[-1], "clipped": float(schedule is not one.schedule)}
        rows.append(row | ({"covariance_event": events[point]} if point in events else {}))
    return rows


def _mini_batches(
    setting: Setting, bench: Workbench, keys: Sequence[tuple[int, int, int]], device: Device | None
) -> list[Row]:
    """One row a repetition; the split is about the mean student, which is known."""
    nodes = [bench.nodes(P) for P, *_ in setting.stages]
    step, test = stepped(setting, nodes), bench.problem(setting.test_length).on_host()
    students = host(descent.descended(setting, step.schedule, bench.S, keys, device))
    left = host(mean_student(setting, step.schedule, bench).mean) - test.B_star
    about = {"gamma": step.schedule.gamma, "gamma_max": step.largest, "clipped": float(step.clipped)}
    if len(nodes) == 1:
        about = step.diagnostics(nodes[0], setting.P)
    rows = []
    for (*_, repetition), B in zip(keys, students, strict=True):
        terms = split(left, B - test.B_star - left, test)
        loss = math.inf if math.isinf(terms["variance"]) else test.loss(B)
        rows.append({"repetition": repetition} | about | with_sums(terms) | {"loss": loss})
    return rows
