"""The sampled method: sketches and data drawn, students trained on them, and their five terms.

On one data set L_M(B_L) = irreducible + approx + bias + variance + cross to rounding (Proposition 1 before
the expectation), at the training length or any other test length.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import ClassVar

from seqlaw.methods import optimizers
from seqlaw.methods.drawn import by_setting, families, indices, on_device, stream_flags, summarise
from seqlaw.methods.method import Draws, Method, Progress
from seqlaw.methods.moments import (
    cheaper_drawing,
    direct_cost,
    mixed_moments,
    nested_moments,
    sample_moments,
)
from seqlaw.methods.one_pass import descent
from seqlaw.methods.one_pass.exact import mean_student
from seqlaw.methods.one_pass.step import DIAGNOSTICS as ONE_PASS
from seqlaw.methods.one_pass.step import step_flags, stepped
from seqlaw.methods.stage import parts_of
from seqlaw.methods.terms import Risk, Row, columns, with_sums
from seqlaw.methods.workbench import Workbench
from seqlaw.model.arrays import ends, host, namespace, zeros
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import Array, InputError
from seqlaw.model.descent import Moments, Spectrum
from seqlaw.model.device import Device
from seqlaw.model.flags import Flag, flag
from seqlaw.model.lengths import Counted, Length, longest, mean_length
from seqlaw.model.optimizer import Optimizer
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
    kept, spread = (math.isfinite(float((x * x).sum())) for x in (left, noise))
    return {
        "irreducible": test.irreducible,
        "approx": test.approx,
        "bias": weighted_square(left, test.G) / 2 if kept else math.inf,
        "variance": weighted_square(noise, test.G) / 2 if spread else math.inf,
        "cross": float(((left @ test.G) * noise).sum()) if kept and spread else 0.0,
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


class Sampled(Method):
    """Sketches and trajectories drawn, students trained on them: what a training run sees."""

    name: ClassVar[str] = "sampled"
    mixtures: ClassVar[bool] = True
    one_pass: ClassVar[bool] = True
    phases: ClassVar[bool] = True
    optimizers: ClassVar[bool] = True
    draws: ClassVar[tuple[str, ...]] = ("sketches", "repetitions")
    population: ClassVar[bool] = True
    expectation: ClassVar[str] = "exact"

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        found = by_setting(settings, self.rows(settings, draws, progress))
        return [_risk(setting, rows, draws) for setting, rows in found]

    def rows(self, settings: Sequence[Setting], draws: Draws, progress: Progress | None = None) -> list[Row]:
        """One row for each setting, sketch and repetition: parameters, five terms, diagnostics.

        Settings of one teacher and width are one nested family: in each repetition they share one data set
        (all N and P in one pass) and the decomposition of its moments, as the paper's sweeps do.
        `sketches` and `repetitions` are counts, or the numbers of those wanted: `[3]` gives the rows that a
        count of 4 gives to number 3. `progress(done, total)` counts data sets. Neither the threads nor their
        number change a bit. A `device` draws the data, and does what a wide student needs.
        """
        for setting in settings:
            if (refusal := self.refuses(setting)) is not None:
                raise refusal
            if setting.optimizer is not None and draws.device is not None:
                rule = f"must be cpu (or left out) with {setting.optimizer.name}"
                raise InputError("device", rule, draws.device)
        rows: list[Row] = []
        with on_device(settings, draws.device) as where, one_thread():
            for setting in settings:
                if setting.optimizer is not None:
                    _step(setting, setting.optimizer, draws.seed)  # once, for all threads
            workers = 1 if where else draws.workers
            tasks = list(_tasks(settings, draws, where))
            across = max(1, min(workers, len(tasks)))

            def run(task: Task) -> list[Row]:
                return _on_sketch(settings, task, draws, workers // across, where)

            for done, new in enumerate(in_order(run, tasks, across), 1):
                rows += new
                if progress is not None:
                    progress(done, len(tasks))
        return sorted(rows, key=lambda row: (row["point"], row["sketch"], row["repetition"]))

    def work(self, settings: Sequence[Setting], draws: Draws) -> float:
        data_sets = draws.count("sketches") * draws.count("repetitions")
        passes = sum(_drawing(one) for one in settings if one.batch is not None)
        full = [one for one in settings if one.batch is None]
        nested = sum(max(_drawing(full[k]) for k in family) for family in families(full))
        taken = sum(optimizers.seconds(one) for one in settings)
        return super().work(settings, draws) + data_sets * (passes + nested + taken)

    def refuses(self, setting: Setting) -> InputError | None:
        """One data set that takes more than a day to draw is a mistake, not a request."""
        if (refusal := super().refuses(setting) or descent.too_large(setting)) is not None:
            return refusal
        if (hours := optimizers.seconds(setting) / 3600) > 24:
            rule = f"with M = {setting.M} would take about {hours:.2g} hours a run (at most 24)"
            return InputError("L", rule, setting.schedule.L)
        if (hours := _drawing(setting) / 3600) <= 24:
            return None
        rule = f"with N = {setting.N} and d = {setting.d} would take about {hours:.2g} hours a data set"
        return InputError("P", f"{rule} (at most 24)", str(setting.lengths) if setting.lengths else setting.P)


def _risk(setting: Setting, rows: Sequence[Row], draws: Draws) -> Risk:
    flags, alone = list(setting_flags(setting)), len(setting.stages) == 1
    measured: tuple[str, ...] = ("clipped", "covariance_event") if alone else ("clipped",)
    if setting.optimizer is not None:
        measured = ("gamma",)
        flags += _step_flags(setting.optimizer, rows)
    elif setting.batch is not None:
        if alone:
            measured = tuple(name for name in ONE_PASS if name not in ("additive", "multiplicative"))
        flags += step_flags(rows)
    elif clipped := sum(row["clipped"] for row in rows):
        flags.append(flag("safeguard", clipped=clipped, rows=len(rows)))
    flags += stream_flags(setting, draws, data=True)
    return summarise("sampled", setting, rows, diagnostics=measured, flags=flags)


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


def _drawing(setting: Setting) -> float:
    """About how many seconds a core draws one data set; with mini-batches, all of a run."""
    d, P = int(setting.d or 0), setting.P
    if setting.batch is not None:
        return 1e-9 * direct_cost(setting.N, d, setting.M) * mean_length(P)
    drawn = [(setting.N, longest(P))]
    if isinstance(P, Counted):
        drawn = list(zip(P.counts, P.lengths, strict=True))
    return 1e-9 * sum(length * cheaper_drawing(N, d, setting.M)[1] for N, length in drawn)


def _on_sketch(
    settings: Sequence[Setting], task: Task, draws: Draws, workers: int, device: Device | None
) -> list[Row]:
    """The rows of a task."""
    family, sketch, repetitions = task
    members, key = [settings[k] for k in family], (draws.seed, sketch)
    bench = Workbench(members[0].modes, members[0].M, sketch=sketch, seed=draws.seed, device=device)
    if members[0].batch is None:
        found = _full_batch(members, bench, (*key, repetitions[0]), workers, device)
    else:
        found = _mini_batches(members[0], bench, [(*key, one) for one in repetitions], device)
    points = family if members[0].batch is None else family * len(repetitions)
    return [
        {"method": "sampled", "point": k, "sketch": sketch, **columns(settings[k])} | row
        for k, row in zip(points, found, strict=True)
    ]


def _full_batch(
    members: Sequence[Setting],
    bench: Workbench,
    key: tuple[int, int, int],
    workers: int,
    device: Device | None,
) -> list[Row]:
    """One row a setting of one family, on one nested data set."""
    data = _data(members, bench, key, workers, device)
    spectra = {point: [Spectrum.of(one.G) for one in found] for point, found in data.items()}
    events = {
        point: covariance_event(bench.problem(point[1]), found[0])
        for point, found in data.items()
        if len(found) == 1
    }
    rows = []
    for one in members:
        point = (one.N, one.P)
        if one.optimizer is not None:
            rows += _optimized(one, one.optimizer, bench, [key], _staged(one, data[point]))
            continue
        norm = max(float(spectrum.mu[-1]) for spectrum in spectra[point])
        schedule = one.schedule.safeguarded(norm)
        row = trained(
            [bench.problem(P) for P, *_ in one.stages],
            data[point],
            spectra[point],
            parts_of(schedule, [steps for *_, steps in one.stages], norm),
            bench.problem(one.test_length),
        )
        row |= {"repetition": key[-1], "clipped": float(schedule is not one.schedule)}
        row["step"] = schedule.gamma
        rows.append(row | ({"covariance_event": events[point]} if point in events else {}))
    return rows


def _data(
    members: Sequence[Setting],
    bench: Workbench,
    key: tuple[int, int, int],
    workers: int = 1,
    device: Device | None = None,
) -> dict[tuple[int, Length], list[Moments]]:
    """The moments that each stage of a family's members sees."""
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
    return data


def _mini_batches(
    setting: Setting, bench: Workbench, keys: Sequence[tuple[int, int, int]], device: Device | None
) -> list[Row]:
    """One row a repetition; the split is about the mean student, which is known."""
    if setting.optimizer is not None:
        seen = optimizers.batch_moments(setting, bench.S, keys)
        return _optimized(setting, setting.optimizer, bench, keys, seen)
    nodes = [bench.nodes(P) for P, *_ in setting.stages]
    step, test = stepped(setting, nodes), bench.problem(setting.test_length).on_host()
    factor = bench.problem(setting.P).power(-p) if (p := setting.schedule.precondition) else None
    students = host(descent.descended(setting, step.schedule, bench.S, keys, device, factor=factor))
    left = host(mean_student(setting, step.schedule, bench).mean) - test.B_star
    about = {"gamma": step.schedule.gamma, "gamma_max": step.largest, "clipped": float(step.clipped)}
    if len(nodes) == 1:
        about = step.diagnostics(nodes[0], setting.P)
    rows = []
    for (*_, repetition), B in zip(keys, students, strict=True):
        terms = split(left, B - test.B_star - left, test)
        if setting.epochs > 1:  # data that are used again move the mean: only the sum has a law
            terms |= {"variance": terms["variance"] + terms["cross"], "cross": 0.0}
        loss = math.inf if math.isinf(terms["variance"]) else test.loss(B)
        rows.append({"repetition": repetition} | about | with_sums(terms) | {"loss": loss})
    return rows


_TUNING = (-1, -2, -3, -4)
"""The sketches that steps are tuned on, which no count draws: rows are not made of what chose their step.

In the 24 settings of `optimizers.FACTORS` a step chosen on one sketch cost 3 % more than the best for all
(at most 84 %), one chosen on four cost 0.6 % more (at most 11 %, at M = 8).
"""


def _optimized(
    setting: Setting,
    optimizer: Optimizer,
    bench: Workbench,
    keys: Sequence[tuple[int, int, int]],
    seen: optimizers.Seen,
) -> list[Row]:
    """One row a run of an optimizer, which is no filter: the split is about the population's run.

    With B° trained by the same steps on G and C, bias = ½‖B° - B*'‖²_G', variance = ½‖B - B°‖²_G' and cross
    their product. B° is not the mean of B: with little data in a step the difference shows in cross.
    """
    step, test = _step(setting, optimizer, keys[0][0]), bench.problem(setting.test_length)
    problems = [bench.problem(P) for P, *_ in setting.stages]
    population = optimizers.trained(optimizer, _staged(setting, problems), setting.schedule, [step.size])[0]
    students = optimizers.trained(optimizer, seen, setting.schedule, [step.size] * len(keys))
    untrained, rows = test.approx + weighted_square(test.B_star, test.G) / 2, []
    for (*_, repetition), B in zip(keys, students, strict=True):
        row = with_sums(split(population - test.B_star, B - population, test))
        row["loss"] = test.loss(B) if math.isfinite(row["total"]) else math.inf
        about = {
            "gamma": step.size,
            "edge": float(step.edge),
            "diverged": float(row["reducible"] > untrained),
        }
        rows.append({"repetition": repetition} | row | about)
    return rows


def _staged(setting: Setting, moments: Sequence[Moments | Problem]) -> optimizers.Seen:
    return optimizers.repeated(
        (one.G, one.C, stage.steps) for one, stage in zip(moments, setting.stages, strict=True)
    )


@lru_cache(maxsize=1024)  # the tasks of a sweep have one sketch each
def _step(setting: Setting, optimizer: Optimizer, seed: int) -> optimizers.Step:
    """The step as given, or the best on sketches apart, with a data set or run of each."""
    if optimizer.step is not None:
        return optimizers.Step(optimizer.step)
    found = []
    for sketch in _TUNING:
        key, bench = (seed, sketch, 0), Workbench(setting.modes, setting.M, sketch=sketch, seed=seed)
        if setting.batch is None:
            seen = _staged(setting, _data([setting], bench, key)[setting.N, setting.P])
        else:
            seen = optimizers.batch_moments(setting, bench.S, [key])
        found.append((seen, bench.problem(setting.test_length)))
    return optimizers.best_step(optimizer, setting.schedule, found)


def _step_flags(optimizer: Optimizer, rows: Sequence[Row]) -> list[Flag]:
    """The step, and the runs that ended worse than they began."""
    first, diverged = rows[0], sum(row["diverged"] for row in rows)
    tuned = optimizer.step is None
    about = {"gamma": first["gamma"], "tuned": tuned, "edge": bool(first["edge"]), "sketches": len(_TUNING)}
    found = [flag("optimizer-step", optimizer=optimizer.name, **about)]
    if diverged:
        found.append(flag("optimizer-diverged", diverged=diverged, rows=len(rows), gamma=first["gamma"]))
    return found
