"""The exact method: the expectation over the data in closed form, for given sketches.

Full batch: the filter frozen at G, the paper's leading order, carried through the stages of training
(`stage`), plus what a finite number of data changes (`finite_sample`). Mini-batches: the law of one pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from seqlaw.methods import accuracy
from seqlaw.methods.drawn import Drawn, sketches_cost
from seqlaw.methods.equivalent import Shift, expected_shifts
from seqlaw.methods.expected import population
from seqlaw.methods.finite_sample.error import data_error, data_flags
from seqlaw.methods.finite_sample.law import (
    SWITCH,
    Question,
    boundary_error,
    changed,
    correction_given_sketch,
    refuses,
)
from seqlaw.methods.finite_sample.norm import averaged_rows
from seqlaw.methods.finite_sample.two_point import Terms
from seqlaw.methods.frozen_sketch import finite_filter_variance, learned_dimensions
from seqlaw.methods.method import BLOCK, Cost, Draws, Method, Progress, device_for
from seqlaw.methods.one_pass.exact import one_pass_row
from seqlaw.methods.one_pass.law import diagonal_error
from seqlaw.methods.one_pass.step import DIAGNOSTICS as ONE_PASS
from seqlaw.methods.one_pass.step import no_law, step_flags
from seqlaw.methods.rows import Row, columns, families, indices, summarise, with_sums
from seqlaw.methods.spectral_sum import Rule
from seqlaw.methods.stage import at_rest, full_batch, moved, parts_of
from seqlaw.methods.terms import TERMS, Promise, Risk, frozen_error, frozen_filter_flags, safeguard_flags
from seqlaw.methods.workbench import Workbench
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import InputError
from seqlaw.model.flags import Flag, flag
from seqlaw.model.lengths import mean_length
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.threads import one_thread

WIDEST_GIVEN, WIDEST_TOGETHER = 64, 256
"""M up to which the law is solved on every sketch, O(M³) a node; the second for what its mean over sketches
cannot split into terms, with coarse accuracy.

Beyond, what the data change is carried over from the mean over sketches: within 1.9 % of the excess at
M = 80, 0.2 to 0.8 % at 96, 0.03 to 0.75 % at 192 (measured, the last two root mean squares over sketches)."""
CARRIED_ERROR = 0.01
"""What carrying over adds to the stated error: between the root mean squares and the worst above."""
_STILL = 1e-15
"""Of the largest Σγ of the stages: one with less changes nothing, and has no law of its own."""
_MEASURED = ("clipped", "tokens_per_dimension", "error")
DIAGNOSTICS = ("finite_filter_variance", "score_low", "score_high", *_MEASURED)


class Exact(Drawn):
    """The expectation over the data in closed form, given sketches: O(d² M + M³) for any N, P and L."""

    name: ClassVar[str] = "exact"
    mixtures: ClassVar[bool] = True
    one_pass: ClassVar[bool] = True
    phases: ClassVar[bool] = True
    draws: ClassVar[tuple[str, ...]] = ("sketches",)
    population: ClassVar[bool] = True
    expectation: ClassVar[str] = "exact"

    @one_thread()
    def drawn_rows(
        self, settings: Sequence[Setting], draws: Draws, progress: Progress | None = None
    ) -> list[Row]:
        """One row for each setting and sketch: parameters, five terms, diagnostics.

        Settings of one teacher and width share their sketches (a count, or the numbers of those wanted), and
        all settings of one length the closed score covariance, whatever their N, schedules and test lengths.
        """
        rows: list[Row] = []
        where = device_for(settings, draws.device)
        for family in families(settings):
            all_at_once = [k for k in family if settings[k].batch is None]
            full = [settings[k] for k in all_at_once]
            carried = _carried(full)
            modes, M = settings[family[0]].modes, settings[family[0]].M
            for sketch in indices("sketches", draws.sketches):
                bench = Workbench(modes, M, sketch=sketch, seed=draws.seed, device=where)
                found = dict(zip(all_at_once, _full_batch(full, bench, carried), strict=True)) if full else {}
                for k in family:
                    row = found[k] if k in found else one_pass_row(settings[k], bench)
                    rows.append(
                        {"method": "exact", "point": k, "sketch": sketch, **columns(settings[k])} | row
                    )
        return sorted(rows, key=lambda row: (row["point"], row["sketch"]))

    def summary(self, setting: Setting, rows: Sequence[Row]) -> Risk:
        return (_of_full_batch if setting.batch is None else _of_one_pass)(setting, rows)

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        passes = sum(one.batch is not None for one in settings)

        def core(M: int, d: float, lengths: set[int]) -> float:
            noise = 1e-7 if passes else 3e-8
            each = 0.004 + (0.01 + 1.5e-8 * d * M**2) * bool(passes)
            return sum(each + d**2 * (noise * math.log2(2 * P) + 2e-10 * M) for P in lengths)

        cost = sketches_cost(settings, draws, core, (5e-4, 5e-3))
        each = sum(
            (0.004 + 1.5e-3 * math.log2(2 * mean_length(one.P)) + 2.2e-7 * one.M**3) * len(one.stages)
            for one in settings
            if one.M <= (WIDEST_TOGETHER if _together(one) else WIDEST_GIVEN)  # solved on every sketch
        )
        return replace(cost, seconds=cost.seconds + draws.count("sketches") * (each + 0.1 * passes))

    def refuses(self, setting: Setting) -> InputError | None:
        return super().refuses(setting) or no_law(setting)


class SketchesOnly(Method):
    """Approximation and bias given sketches, without data: rows of the experiments, not one to ask for."""

    name: ClassVar[str] = "population"
    draws: ClassVar[tuple[str, ...]] = ("sketches",)

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        raise InputError("method", "has no risk without data", self.name)

    @one_thread()
    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        """What needs no data, and none of the cost of noise; the sketches are those of `Exact`."""
        rows: list[Row] = []
        where = device_for(settings, draws.device)
        for family in families(settings):
            modes, M = settings[family[0]].modes, settings[family[0]].M
            for sketch in indices("sketches", draws.sketches):
                bench = Workbench(modes, M, sketch=sketch, seed=draws.seed, device=where)
                for k in family:
                    setting = settings[k]
                    problem, test = bench.problem(setting.P), bench.problem(setting.test_length)
                    schedule = setting.schedule.safeguarded(float(problem.eigenvalues[-1]))
                    terms = moved(at_rest(problem), problem, schedule).terms(test)
                    rows.append(
                        {"method": self.name, "point": k, "sketch": sketch, **columns(setting)}
                        | {name: terms[name] for name in ("irreducible", "approx", "bias")}
                        | {"clipped": float(schedule is not setting.schedule)}
                    )
        return sorted(rows, key=lambda row: (row["point"], row["sketch"]))

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        problems = {(one.M, one.P): float(one.d or 0) for one in settings}
        each = (0.001 + 2e-10 * M**2 * (d + M) for (M, _), d in problems.items())
        return Cost(seconds=draws.count("sketches") * sum(each), memory=BLOCK)


class _Frozen(NamedTuple):
    """The frozen filter on a sketch with one step, and what is asked of the law at any amount of data."""

    row: Row
    leading: float
    """The variance as the law has it, without the elementwise products."""
    stages: list[Question]
    together: bool
    error: float
    """Relative error of the law, averaged over the stages with their noise as weights."""


def _carried(settings: Sequence[Setting]) -> list[Shift | None]:
    """What the data change over sketches, for students too wide for the law of each sketch."""
    found: list[Shift | None] = [None] * len(settings)
    wide = [k for k, one in enumerate(settings) if len(one.stages) == 1 and one.M > WIDEST_GIVEN]
    if wide:
        for k, shift in zip(wide, expected_shifts([settings[k] for k in wide]), strict=True):
            found[k] = shift
    return found


def _full_batch(settings: Sequence[Setting], bench: Workbench, carried: Sequence[Shift | None]) -> list[Row]:
    """The settings of one family on one sketch: the frozen filter, and what the data change.

    With few data a row is the mean over the steps that the safeguard leaves.
    """
    asked = [
        (k, weight, one) for k, setting in enumerate(settings) for weight, one in _stepped(setting, bench)
    ]
    shifts = _shifts([one for *_, one in asked], bench, [carried[k] for k, *_ in asked])
    parts: list[list[tuple[float, Row]]] = [[] for _ in settings]
    for (k, weight, one), shift in zip(asked, shifts, strict=True):
        row = one.row
        if shift is not None:
            row |= changed(shift, one.stages[0], row["bias"], row["variance"], one.leading) | {"frozen": 0.0}
            row["error"] = one.error + (CARRIED_ERROR if one.stages[0].M > WIDEST_GIVEN else 0.0)
        parts[k].append((weight, row))
    means = [averaged_rows(part) for part in parts]
    return [with_sums(row) | {name: row[name] for name in row if name not in TERMS} for row in means]


def _stepped(setting: Setting, bench: Workbench) -> list[tuple[float, _Frozen]]:
    """The frozen filter at the steps that the safeguard leaves; at the mean one if only that has a law.

    The stage whose data have the largest norm decides.
    """

    def mean_norm(stage: int) -> float:
        P, N, _ = setting.stages[stage]
        norm = float(bench.problem(P).eigenvalues[-1])
        return bench.rise(P).norm(norm, N * mean_length(P))

    largest = max(range(len(setting.stages)), key=mean_norm)
    P, N, _ = setting.stages[largest]
    norm, rise = float(bench.problem(P).eigenvalues[-1]), bench.rise(P)
    steps = rise.steps(setting.schedule, norm, N * mean_length(P), norm)
    found = [(weight, _frozen(setting, one, bench)) for weight, one in steps]
    if len(found) > 1 and any(refuses(setting.modes, one) for _, each in found for one in each.stages):
        mean = _frozen(setting, setting.schedule.safeguarded(mean_norm(largest)), bench)
        return found if any(refuses(setting.modes, one) for one in mean.stages) else [(1.0, mean)]
    return found


def _frozen(setting: Setting, schedule: Schedule, bench: Workbench) -> _Frozen:
    """The frozen filter, with a schedule after its safeguard."""
    test, plan = bench.problem(setting.test_length), setting.stages
    problems, scores = [bench.problem(P) for P, *_ in plan], [bench.score(P) for P, *_ in plan]
    norm = max(float(one.eigenvalues[-1]) for one in problems)
    cut = parts_of(schedule, [steps for *_, steps in plan], norm)
    state, alone = at_rest(problems[0]), len(plan) == 1
    leading = [state] * len(plan)  # each with the noise of one stage alone
    questions, saturations, own = [], [], []
    longest = max(part.total for part in cut)
    for k, (problem, score, part, (P, N, _)) in enumerate(zip(problems, scores, cut, plan, strict=True)):
        tokens, norm = N * mean_length(P), float(problem.eigenvalues[-1])
        state = full_batch(state, problem, score.covariance / tokens, part)
        for j in range(k + 1):
            noise = score.leading / tokens if j == k else None
            leading[j] = full_batch(leading[j], problem, noise, part)
        if part.total <= _STILL * longest:
            continue
        saturations.append(part.total * float(problem.eigenvalues[0]))
        own.append(k)
        questions.append(
            Question(
                M=float(problem.M),
                N=float(N),
                P=P,
                eval_length=test.P,
                schedule=part,
                share=score.effective_share,
                learned=learned_dimensions(problem, part),
                edge=bench.rise(P).edge(1.1 * norm, tokens),  # a tenth more: each stage has its own norm
                chance=bench.rise(P).chance(tokens),
                boundary=boundary_error(problem.modes, P),
                switch=SWITCH if alone else math.inf,
            )
        )
    dimension = min(one.tokens_per_dimension for one in questions)
    row: Row = state.terms(test) | {
        "clipped": float(schedule is not setting.schedule),
        "tokens_per_dimension": dimension,
        "saturation": max(saturations),
        "frozen": 1.0,
        "error": frozen_error(dimension, sum(one.chance for one in questions)),
    }
    if alone:
        row["finite_filter_variance"] = finite_filter_variance(problems[0], setting.N, schedule, test)
        row |= {"score_low": scores[0].low, "score_high": scores[0].high}
    else:
        row["gamma"] = schedule.gamma
    each = [one.terms(test)["variance"] for one in leading]
    error = sum(
        data_error(one, full, row["clipped"]) * part
        for one, full, part in zip(questions, saturations, (each[k] for k in own), strict=True)
    )
    return _Frozen(row, sum(each), questions, _together(setting), error / max(sum(each), math.ulp(0.0)))


def _together(setting: Setting) -> bool:
    """Whether the law over sketches has the terms of this setting only together."""
    return len(setting.stages) > 1 or setting.test_length != setting.P or setting.M == setting.d


def _shifts(
    asked: Sequence[_Frozen], bench: Workbench, carried: Sequence[Shift | None]
) -> list[Terms | None]:
    """What the data change, where the law reaches: solved on the sketch, or carried over from their mean."""
    modes = bench.modes
    rule = Rule(modes=modes, weights=np.ones(modes.d))
    found: list[Terms | None] = [None] * len(asked)
    own_way = []
    for k, (one, shift) in enumerate(zip(asked, carried, strict=True)):
        first, together = one.stages[0], one.together
        if first.M <= (WIDEST_TOGETHER if together else WIDEST_GIVEN):
            if not any(refuses(modes, stage) for stage in one.stages):
                own_way.append(k)
        elif shift is not None and min(shift.variance, one.leading) > 0:
            terms = shift.terms.over(shift.variance / one.leading)  # as the sketch's own frozen variance is
            found[k] = replace(terms, cross=terms.loss - one.leading) if together else terms
    if own_way:
        stages = [asked[k].stages for k in own_way]
        flat = [stage for group in stages for stage in group]
        own = population(rule, [one.P for one in flat], np.array([one.M for one in flat]))
        level = accuracy.fine if flat[0].M <= WIDEST_GIVEN else accuracy.quick
        lengths = dict.fromkeys(P for one in flat for P in (one.P, one.eval_length))
        here = {P: bench.problem(P).on_host() for P in lengths}  # small: M is
        for k, terms in zip(own_way, correction_given_sketch(stages, own, modes, here, level), strict=True):
            found[k] = terms
    return found


def _of_full_batch(setting: Setting, rows: Sequence[Row]) -> Risk:
    flags, assumed = list(setting_flags(setting)), tuple[str, ...]()
    flags += safeguard_flags(float(np.mean([row["clipped"] for row in rows])))
    tokens, error = min(row["tokens_per_dimension"] for row in rows), max(row["error"] for row in rows)
    few: Sequence[Flag] = ()
    if any(row["frozen"] for row in rows):
        assumed, few = ("cross",), frozen_filter_flags(tokens)
        flags += [flag("cross"), *few]
    else:
        saturation = max(row["saturation"] for row in rows)
        seen = (N * mean_length(P) for P, N, _ in setting.stages)
        flags += data_flags(setting.M, min(seen, key=lambda x: abs(x - setting.M)), saturation, error)
        if setting.M > WIDEST_TOGETHER and _together(setting):
            flags.append(flag("cross-rest"))
    share = np.mean([1 - row["approx"] / row["reducible"] for row in rows])
    of_data = Promise("low") if few else Promise("about", error * float(share), besides=True)
    return summarise(
        "exact",
        setting,
        rows,
        diagnostics=DIAGNOSTICS if len(setting.stages) == 1 else ("gamma", *_MEASURED),
        flags=flags,
        assumed=assumed,
        accuracy={"reducible": of_data},
    )


def _of_one_pass(setting: Setting, rows: Sequence[Row]) -> Risk:
    alone = len(setting.stages) == 1
    exact = alone and setting.P == 1 and setting.eval_length in (None, 1)
    error = diagonal_error(*(float(np.mean([row[name] for row in rows])) for name in ("bias", "variance")))
    return summarise(
        "exact",
        setting,
        rows,
        diagnostics=ONE_PASS if alone else ("gamma", "clipped", "gamma_max"),
        flags=[*setting_flags(setting), *step_flags(rows)],
        assumed=("cross",),
        accuracy={"variance": Promise("exact" if exact else "about", error, besides=True)},
    )
