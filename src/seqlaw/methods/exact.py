"""The exact method: the expectation over the data in closed form, for given sketches.

Full batch: the filter frozen at G, the paper's leading order, carried through the stages of training
(`stage`), plus the finite-sample correction (`finite_sample`). Mini-batches: the law of one pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import ClassVar, NamedTuple

import numpy as np

from seqlaw.methods import accuracy
from seqlaw.methods.drawn import by_setting, families, indices, on_device, stream_flags, summarise
from seqlaw.methods.expected import population
from seqlaw.methods.finite_sample.error import data_error, data_flags
from seqlaw.methods.finite_sample.law import (
    SWITCH,
    Question,
    boundary_error,
    corrected,
    correction_given_sketch,
    no_correction,
    without_safeguard,
)
from seqlaw.methods.finite_sample.norm import averaged_rows
from seqlaw.methods.finite_sample.two_point import Terms
from seqlaw.methods.frozen_sketch import finite_filter_variance, learned_dimensions
from seqlaw.methods.full_batch import DataCorrection, expected_corrections
from seqlaw.methods.method import Draws, Method, Progress
from seqlaw.methods.one_pass.epochs import FullBatchRisk, epochs_flags
from seqlaw.methods.one_pass.exact import one_pass_row
from seqlaw.methods.one_pass.law import diagonal_error
from seqlaw.methods.one_pass.step import DIAGNOSTICS as ONE_PASS
from seqlaw.methods.one_pass.step import no_law, step_flags
from seqlaw.methods.spectral_sum import Rule
from seqlaw.methods.stage import at_rest, full_batch, moved, parts_of
from seqlaw.methods.terms import (
    TERMS,
    Promise,
    Risk,
    Row,
    columns,
    frozen_error,
    frozen_filter_flags,
    safeguard_flags,
    with_sums,
)
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
"""A stage whose Σγ is below this share of the largest is left out of the correction: it changes nothing."""
_MEASURED = ("clipped", "tokens_per_dimension", "error")
DIAGNOSTICS = ("finite_filter_variance", "score_low", "score_high", *_MEASURED)


OnSketch = Callable[[Workbench], list[Row]]
"""The rows of a family of settings on one sketch."""


class Exact(Method):
    """The expectation over the data in closed form, given sketches: O(d² M + M³) for any N, P and L."""

    name: ClassVar[str] = "exact"
    mixtures: ClassVar[bool] = True
    one_pass: ClassVar[bool] = True
    phases: ClassVar[bool] = True
    draws: ClassVar[tuple[str, ...]] = ("sketches",)
    population: ClassVar[bool] = True
    expectation: ClassVar[str] = "exact"

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        return [
            _kind(setting)(setting, rows, draws)
            for setting, rows in by_setting(settings, self.rows(settings, draws))
        ]

    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        """One row for each setting and sketch: parameters, five terms, diagnostics.

        Settings of one teacher and width share their sketches (a count, or the numbers of those wanted), and
        all settings of one length the closed score covariance, whatever their N, schedules and test lengths.
        """

        def prepared(members: list[Setting]) -> OnSketch:
            full = [one for one in members if one.batch is None]
            carried = _carried(full)

            def on_sketch(bench: Workbench) -> list[Row]:
                found = iter(_full_batch(full, bench, carried) if full else ())
                return [
                    next(found) if one.batch is None else one_pass_row(one, bench, _without_safeguard)
                    for one in members
                ]

            return on_sketch

        return _rows(self.name, settings, draws, prepared)

    def refuses(self, setting: Setting) -> InputError | None:
        return super().refuses(setting) or no_law(setting)


class SketchesOnly(Method):
    """Approximation and bias given sketches, without data: for the paper's experiments, not for users."""

    name: ClassVar[str] = "population"
    draws: ClassVar[tuple[str, ...]] = ("sketches",)

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        raise InputError("method", "has no risk without data", self.name)

    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        """The terms that need no data, without the cost of the noise; the sketches are those of `Exact`."""

        def without_data(setting: Setting, bench: Workbench) -> Row:
            problem, test = bench.problem(setting.P), bench.problem(setting.test_length)
            schedule = setting.schedule.safeguarded(float(problem.eigenvalues[-1]))
            terms = moved(at_rest(problem), problem, schedule).terms(test)
            kept = {name: terms[name] for name in ("irreducible", "approx", "bias")}
            return kept | {"clipped": float(schedule is not setting.schedule)}

        def prepared(members: list[Setting]) -> OnSketch:
            return lambda bench: [without_data(one, bench) for one in members]

        return _rows(self.name, settings, draws, prepared)


@one_thread()
def _rows(
    name: str, settings: Sequence[Setting], draws: Draws, prepared: Callable[[list[Setting]], OnSketch]
) -> list[Row]:
    """The rows of each family on each of its sketches; `prepared` is called once a family."""
    rows: list[Row] = []
    with on_device(settings, draws.device) as where:
        for family in families(settings):
            members = [settings[k] for k in family]
            on_sketch = prepared(members)
            for sketch in indices("sketches", draws.sketches):
                bench = Workbench(
                    members[0].modes, members[0].M, sketch=sketch, seed=draws.seed, device=where
                )
                rows += [
                    {"method": name, "point": k, "sketch": sketch, **columns(settings[k])} | row
                    for k, row in zip(family, on_sketch(bench), strict=True)
                ]
    return sorted(rows, key=lambda row: (row["point"], row["sketch"]))


class _Frozen(NamedTuple):
    """The frozen filter on a sketch with one step, and what is asked of the law at any amount of data."""

    row: Row
    leading: float
    """The finite-sample law's leading variance, without the score's elementwise products."""
    stages: list[Question]
    together: bool
    error: float
    """Relative error of the law, averaged over the stages with their noise as weights."""


def _carried(settings: Sequence[Setting]) -> list[DataCorrection | None]:
    """The correction over sketches, for students too wide to correct on each sketch."""
    found: list[DataCorrection | None] = [None] * len(settings)
    wide = [k for k, one in enumerate(settings) if len(one.stages) == 1 and one.M > WIDEST_GIVEN]
    if wide:
        for k, correction in zip(wide, expected_corrections([settings[k] for k in wide]), strict=True):
            found[k] = correction
    return found


def _full_batch(
    settings: Sequence[Setting], bench: Workbench, carried: Sequence[DataCorrection | None]
) -> list[Row]:
    """The rows of one family on one sketch: the frozen filter with the finite-sample correction.

    With few data a row is the mean over the steps that the safeguard leaves.
    """
    asked = [
        (k, weight, one) for k, setting in enumerate(settings) for weight, one in _stepped(setting, bench)
    ]
    corrections = _corrections([one for *_, one in asked], bench, [carried[k] for k, *_ in asked])
    parts: list[list[tuple[float, Row]]] = [[] for _ in settings]
    for (k, weight, one), correction in zip(asked, corrections, strict=True):
        row = one.row
        if correction is not None:
            row |= corrected(correction, one.stages[0], row["bias"], row["variance"], one.leading) | {
                "frozen": 0.0
            }
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
        return bench.empirical_norm(P).norm(norm, N * mean_length(P))

    largest = max(range(len(setting.stages)), key=mean_norm)
    P, N, _ = setting.stages[largest]
    norm = float(bench.problem(P).eigenvalues[-1])
    steps = bench.empirical_norm(P).steps(setting.schedule, norm, N * mean_length(P), norm)
    found = [(weight, _frozen(setting, one, bench)) for weight, one in steps]
    if len(found) > 1 and any(no_correction(setting.modes, one) for _, each in found for one in each.stages):
        mean = _frozen(setting, setting.schedule.safeguarded(mean_norm(largest)), bench)
        return found if any(no_correction(setting.modes, one) for one in mean.stages) else [(1.0, mean)]
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
        saturations.append(part.progress(float(problem.eigenvalues[0])))
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
                edge=bench.empirical_norm(P).edge(
                    1.1 * norm, tokens
                ),  # a tenth more: each stage has its own norm
                norm_variance=bench.empirical_norm(P).relative_variance(tokens),
                boundary=boundary_error(problem.modes, P),
                switch=SWITCH if alone else math.inf,
            )
        )
    dimension = min(one.tokens_per_dimension for one in questions)
    row: Row = state.terms(test) | {
        "clipped": float(schedule is not setting.schedule),
        "step": schedule.gamma,
        "tokens_per_dimension": dimension,
        "saturation": max(saturations),
        "frozen": 1.0,
        "error": frozen_error(dimension, sum(one.norm_variance for one in questions)),
    }
    if alone:
        row["finite_filter_variance"] = finite_filter_variance(problems[0], setting.N, schedule, test)
        row |= {"score_low": scores[0].low, "score_high": scores[0].high}
    each = [one.terms(test)["variance"] for one in leading]
    error = sum(
        data_error(one, full, row["clipped"]) * part
        for one, full, part in zip(questions, saturations, (each[k] for k in own), strict=True)
    )
    return _Frozen(row, sum(each), questions, _together(setting), error / max(sum(each), math.ulp(0.0)))


def _without_safeguard(setting: Setting, schedule: Schedule, bench: Workbench) -> FullBatchRisk:
    """The full batch on the sequences of a setting with mini-batches."""
    full = setting.but(batch=None, N=setting.N, schedule=schedule)
    one = _frozen(full, schedule, bench)
    one = one._replace(stages=[without_safeguard(one.stages[0])])
    carried = [expected_corrections([full], as_given=True)[0] if full.M > WIDEST_GIVEN else None]
    [correction] = _corrections([one], bench, carried)
    row, few = one.row, frozen_filter_flags(one.row["tokens_per_dimension"])
    error = math.inf if few else float(row["error"])
    if correction is not None:
        row |= corrected(correction, one.stages[0], row["bias"], row["variance"], one.leading)
        error = one.error + (CARRIED_ERROR if full.M > WIDEST_GIVEN else 0.0)
    return FullBatchRisk(float(row["bias"] + row["variance"] + row["cross"]), error)


def _together(setting: Setting) -> bool:
    """Whether the law over sketches gives only the sum of the terms at this setting."""
    return len(setting.stages) > 1 or setting.test_length != setting.P or setting.M == setting.d


def _corrections(
    asked: Sequence[_Frozen], bench: Workbench, carried: Sequence[DataCorrection | None]
) -> list[Terms | None]:
    """The correction where the law applies: solved on the sketch, or scaled from that over sketches."""
    modes = bench.modes
    rule = Rule(modes=modes, weights=np.ones(modes.d))
    found: list[Terms | None] = [None] * len(asked)
    own_way = []
    for k, (one, correction) in enumerate(zip(asked, carried, strict=True)):
        first, together = one.stages[0], one.together
        if first.M <= (WIDEST_TOGETHER if together else WIDEST_GIVEN):
            if not any(no_correction(modes, stage) for stage in one.stages):
                own_way.append(k)
        elif correction is not None and min(correction.variance, one.leading) > 0:
            # Scaled by the sketch's leading variance over the frozen variance averaged over sketches.
            terms = correction.terms.over(correction.variance / one.leading)
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


def _of_full_batch(setting: Setting, rows: Sequence[Row], draws: Draws) -> Risk:
    flags, assumed = list(setting_flags(setting)), tuple[str, ...]()
    clipped, step = (float(np.mean([row[name] for row in rows])) for name in ("clipped", "step"))
    flags += safeguard_flags(clipped, gamma=step)
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
        diagnostics=DIAGNOSTICS if len(setting.stages) == 1 else _MEASURED,
        flags=[*flags, *stream_flags(setting, draws, data=False)],
        assumed=assumed,
        accuracy={"reducible": of_data},
    )


def _of_one_pass(setting: Setting, rows: Sequence[Row], draws: Draws) -> Risk:
    alone = len(setting.stages) == 1
    exact = alone and setting.P == 1 and setting.eval_length in (None, 1)
    error = diagonal_error(*(float(np.mean([row[name] for row in rows])) for name in ("bias", "variance")))
    return summarise(
        "exact",
        setting,
        rows,
        diagnostics=ONE_PASS if alone else ("gamma", "clipped", "gamma_max"),
        flags=[*setting_flags(setting), *step_flags(rows), *stream_flags(setting, draws, data=False)],
        assumed=("cross",),
        accuracy={"variance": Promise("exact" if exact else "about", error, besides=True)},
    )


def _of_epochs(setting: Setting, rows: Sequence[Row], draws: Draws) -> Risk:
    error = max(row.get("error", math.inf) for row in rows)
    share = float(np.mean([1 - row["approx"] / row["reducible"] for row in rows]))
    promise = Promise("about", error * share, besides=True) if math.isfinite(error) else Promise("low")
    flags = [*setting_flags(setting), *step_flags(rows), *epochs_flags(setting, rows)]
    if math.isinf(error) and all(math.isfinite(row["variance"]) for row in rows):
        flags.append(flag("epochs-frozen"))
    measured = [name for name in ONE_PASS if name not in ("additive", "multiplicative")]
    return summarise(
        "exact",
        setting,
        rows,
        diagnostics=[*measured, *(("full_batch", "error") if "error" in rows[0] else ())],
        flags=[*flags, *stream_flags(setting, draws, data=False)],
        assumed=("cross",),
        accuracy={"variance": Promise("with cross"), "cross": Promise("in variance"), "reducible": promise},
    )


def _kind(setting: Setting) -> Callable[[Setting, Sequence[Row], Draws], Risk]:
    """What sums up the rows of a setting."""
    if setting.batch is None:
        return _of_full_batch
    return _of_one_pass if setting.epochs == 1 else _of_epochs
