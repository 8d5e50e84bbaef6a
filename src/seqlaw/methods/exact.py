"""The exact rung: the expectation over trajectories in closed form, for given sketches.

The filter frozen at G, the paper's leading order, plus what a finite number of data changes
(`finite_sample`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import ClassVar

import numpy as np

from seqlaw.methods.drawn import sketches_cost
from seqlaw.methods.equivalent import Shift, expected_shifts
from seqlaw.methods.expected import population
from seqlaw.methods.finite_sample.error import data_error, data_flags
from seqlaw.methods.finite_sample.ladder import Terms
from seqlaw.methods.finite_sample.law import (
    FINE,
    QUICK,
    Question,
    changed,
    given_sketch,
    refuses,
)
from seqlaw.methods.finite_sample.norm import Rise, averaged_rows, rises
from seqlaw.methods.frozen_sketch import (
    FrozenGiven,
    finite_filter_variance,
    frozen_given,
    population_bias,
)
from seqlaw.methods.method import BLOCK, Cost, Draws, Method, Progress, device_for
from seqlaw.methods.rows import Row, columns, families, indices, summaries, summarise, with_sums
from seqlaw.methods.score import Score, score
from seqlaw.methods.spectral_sum import Rule
from seqlaw.methods.terms import TERMS, Risk, frozen_error, frozen_filter_flags, safeguard_flags
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import InputError
from seqlaw.model.device import Device
from seqlaw.model.flags import Flag, flag
from seqlaw.model.lengths import Length, mean_length
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import Problem, gaussian_sketch, sketched_problem
from seqlaw.model.threads import one_thread

WIDEST_GIVEN, WIDEST_TOGETHER = 64, 256
"""M up to which the law is solved for each sketch, O(M³) a node; coarsely, where it has no split else.

Beyond, what the data change is carried over from the mean over sketches: within 1.9 % of the excess at
M = 80, 0.2 to 0.8 % at 96, 0.03 to 0.75 % at 192 (measured, the last two root mean squares over sketches)."""
CARRIED_ERROR = 0.01
DIAGNOSTICS = (
    *("finite_filter_variance", "score_low", "score_high"),
    *("clipped", "tokens_per_dimension", "error"),
)


def _solved(
    members: Sequence[Setting], sketches: int | Sequence[int], seed: int, device: Device | None
) -> Iterator[tuple[int, dict[Length, Problem]]]:
    """(sketch, its problems by length) for settings that share teacher and width."""
    modes, M = members[0].modes, members[0].M
    lengths = dict.fromkeys(P for member in members for P in (member.P, member.test_length))
    for sketch in indices("sketches", sketches):
        S = gaussian_sketch(M, modes.d, seed=seed, index=sketch, device=device)
        yield sketch, {P: sketched_problem(modes, S, P) for P in lengths}


class Exact(Method):
    """The expectation over trajectories in closed form, given sketches: O(d² M + M³) for any N, P and L."""

    name: ClassVar[str] = "exact"
    mixtures: ClassVar[bool] = True
    draws: ClassVar[tuple[str, ...]] = ("sketches",)
    population: ClassVar[bool] = True
    expectation: ClassVar[str] = "exact"

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        return exact_risks(settings, sketches=draws.count("sketches"), seed=draws.seed, device=draws.device)

    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        return exact_rows(settings, sketches=draws.sketches, seed=draws.seed, device=draws.device)

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        def core(M: int, d: float, lengths: set[int]) -> float:
            return sum(0.003 + d**2 * (3e-8 * math.log2(2 * P) + 2e-10 * M) for P in lengths)

        cost = sketches_cost(settings, draws, core, (5e-4, 5e-3))
        each = sum(
            0.004 + 1.5e-3 * math.log2(2 * mean_length(one.P)) + 2.2e-7 * one.M**3
            for one in settings
            if one.M <= WIDEST_GIVEN  # where the law is solved on every sketch
        )
        return replace(cost, seconds=cost.seconds + draws.count("sketches") * each)


class SketchesOnly(Method):
    """Approximation and bias given sketches, without data: rows of the experiments, not a rung to ask for."""

    name: ClassVar[str] = "population"
    draws: ClassVar[tuple[str, ...]] = ("sketches",)

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        raise InputError("rung", "has no risk without data", self.name)

    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        return population_rows(settings, sketches=draws.sketches, seed=draws.seed, device=draws.device)

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        problems = {(one.M, one.P): float(one.d or 0) for one in settings}
        each = (0.001 + 2e-10 * M**2 * (d + M) for (M, _), d in problems.items())
        return Cost(seconds=draws.count("sketches") * sum(each), memory=BLOCK)


def exact_rows(
    settings: Sequence[Setting],
    *,
    sketches: int | Sequence[int] = 1,
    seed: int = 0,
    device: str | None = None,
) -> list[Row]:
    """One row for each setting and sketch: parameters, five terms, diagnostics.

    Settings of one teacher and width share their sketches (a count, or the numbers of those wanted), and all
    settings of one length share the closed score covariance, whatever their N, schedules and test lengths.
    """
    return _rows("exact", settings, sketches, seed, device)


def population_rows(
    settings: Sequence[Setting],
    *,
    sketches: int | Sequence[int] = 1,
    seed: int = 0,
    device: str | None = None,
) -> list[Row]:
    """Approximation and bias of each setting and sketch: what needs no data, and none of the cost of noise.

    N plays no part. The sketches are those of `exact_rows`.
    """
    return _rows("population", settings, sketches, seed, device)


@one_thread()
def _rows(
    rung: str, settings: Sequence[Setting], sketches: int | Sequence[int], seed: int, device: str | None
) -> list[Row]:
    rows: list[Row] = []
    where = device_for(settings, device)
    for family in families(settings):
        members = [settings[index] for index in family]
        wide = rung == "exact" and members[0].M > WIDEST_GIVEN
        carried = expected_shifts(members) if wide else [None] * len(members)
        for sketch, problems in _solved(members, sketches, seed, where):
            found = (
                _population(members, problems) if rung == "population" else _exact(members, problems, carried)
            )
            for index, terms in zip(family, found, strict=True):
                rows.append(
                    {"rung": rung, "point": index, "sketch": sketch, **columns(settings[index])} | terms
                )
    return sorted(rows, key=lambda row: (row["point"], row["sketch"]))


def _population(settings: Sequence[Setting], problems: dict[Length, Problem]) -> list[Row]:
    """Without data."""
    rows = []
    for setting in settings:
        problem, test = problems[setting.P], problems[setting.test_length]
        schedule = setting.schedule.safeguarded(float(problem.eigenvalues[-1]))
        bias = population_bias(problem, schedule, test)
        terms = {"irreducible": test.irreducible, "approx": test.approx, "bias": bias}
        rows.append(terms | {"clipped": float(schedule is not setting.schedule)})
    return rows


def _exact(
    settings: Sequence[Setting], problems: dict[Length, Problem], carried: Sequence[Shift | None]
) -> list[Row]:
    """The settings of one family on one sketch: the frozen filter, and what the data change.

    What they change is `carried` over from the mean over sketches where the student is wide. With few data
    a row is the mean over the steps that the safeguard leaves.
    """
    rule = Rule(modes=settings[0].modes, weights=np.ones(settings[0].modes.d))
    lengths = list(dict.fromkeys(setting.P for setting in settings))
    scores, rise = {P: score(problems[P]) for P in lengths}, rises(rule, lengths)
    asked = [
        (k, weight, one)
        for k, setting in enumerate(settings)
        for weight, one in _stepped(setting, problems, scores[setting.P], rise[setting.P])
    ]
    questions, leading = [one.question for *_, one in asked], [one.leading for *_, one in asked]
    rows = []
    for k, _, one in asked:
        setting = settings[k]
        problem, test = problems[setting.P], problems[setting.test_length]
        noise, schedule = scores[setting.P], one.question.schedule
        rows.append(
            {"irreducible": test.irreducible, "approx": test.approx, "cross": 0.0}
            | {"bias": one.bias, "variance": one.variance}
            | {
                "finite_filter_variance": finite_filter_variance(problem, setting.N, schedule, test),
                "score_low": noise.low,
                "score_high": noise.high,
                "clipped": float(schedule is not setting.schedule),
                "tokens_per_dimension": one.question.tokens_per_dimension,
                "saturation": schedule.total * float(problem.eigenvalues[0]),
                "frozen": 1.0,
                "error": frozen_error(one.question.tokens_per_dimension, one.question.chance),
            }
        )
    for k, shift in _shifts(questions, rule, problems, [carried[k] for k, *_ in asked], leading).items():
        row = rows[k]
        row |= changed(shift, questions[k], row["bias"], row["variance"], leading[k]) | {"frozen": 0.0}
        row["error"] = data_error(questions[k], row["saturation"], row["clipped"])
        if questions[k].M > WIDEST_GIVEN:
            row["error"] += CARRIED_ERROR
    parts: list[list[tuple[float, Row]]] = [[] for _ in settings]
    for (k, weight, _), row in zip(asked, rows, strict=True):
        parts[k].append((weight, row))
    means = [averaged_rows(part) for part in parts]
    return [with_sums(row) | {name: row[name] for name in row if name not in TERMS} for row in means]


def _stepped(
    setting: Setting, problems: dict[Length, Problem], noise: Score, rise: Rise
) -> list[tuple[float, FrozenGiven]]:
    """The frozen filter at the steps that the safeguard leaves; at the mean one if only that has a law."""
    problem, test = problems[setting.P], problems[setting.test_length]
    norm = float(problem.eigenvalues[-1])

    def at(schedule: Schedule) -> FrozenGiven:
        return frozen_given(problem, test, setting.N, schedule, noise, rise)

    steps = rise.steps(setting.schedule, norm, setting.tokens, norm)
    found = [(weight, at(one)) for weight, one in steps]
    if len(found) > 1 and any(refuses(setting.modes, one.question) for _, one in found):
        mean = at(setting.schedule.safeguarded(rise.norm(norm, setting.tokens)))
        return [(1.0, mean)] if refuses(setting.modes, mean.question) is None else found
    return found


def _shifts(
    questions: Sequence[Question],
    rule: Rule,
    problems: dict[Length, Problem],
    carried: Sequence[Shift | None],
    leading: Sequence[float],
) -> dict[int, Terms]:
    """What the data change, by question, where the law reaches."""
    found, own_way = {}, []
    for k, (asked, shift) in enumerate(zip(questions, carried, strict=True)):
        together = asked.eval_length != asked.P or asked.M == rule.modes.d  # not told apart over sketches
        if asked.M <= (WIDEST_TOGETHER if together else WIDEST_GIVEN):
            if refuses(rule.modes, asked) is None:
                own_way.append(k)
        elif shift is not None and min(shift.variance, leading[k]) > 0:
            terms = shift.terms.over(shift.variance / leading[k])  # as the sketch's own frozen variance is
            found[k] = replace(terms, cross=terms.loss - leading[k]) if together else terms
    if own_way:
        asked_here = [questions[k] for k in own_way]
        own = population(rule, [one.P for one in asked_here], np.array([one.M for one in asked_here]))
        level = FINE if asked_here[0].M <= WIDEST_GIVEN else QUICK
        here = {P: problem.on_host() for P, problem in problems.items()}  # small: M is
        found |= dict(
            zip(
                own_way,
                given_sketch([[one] for one in asked_here], own, rule.modes, here, level),
                strict=True,
            )
        )
    return found


def exact_risks(
    settings: Sequence[Setting], *, sketches: int = 1, seed: int = 0, device: str | None = None
) -> list[Risk]:
    """The expected risk of each setting: means and standard errors over sketches."""
    rows = exact_rows(settings, sketches=sketches, seed=seed, device=device)
    return summaries(settings, rows, _summary)


def exact_risk(setting: Setting, *, sketches: int = 1, seed: int = 0) -> Risk:
    """The expected risk at one setting; cost O(sketches · (d² M + M³)) for any N, P and L."""
    return exact_risks([setting], sketches=sketches, seed=seed)[0]


def _summary(setting: Setting, rows: Sequence[Row]) -> Risk:
    flags, assumed = list(setting_flags(setting)), tuple[str, ...]()
    flags += safeguard_flags(float(np.mean([row["clipped"] for row in rows])))
    tokens, error = min(row["tokens_per_dimension"] for row in rows), max(row["error"] for row in rows)
    few: Sequence[Flag] = ()
    if any(row["frozen"] for row in rows):
        assumed, few = ("cross",), frozen_filter_flags(tokens)
        flags += [flag("cross"), *few]
    else:
        saturation = max(row["saturation"] for row in rows)
        flags += data_flags(setting.M, setting.tokens, saturation, error)
        if setting.M > WIDEST_TOGETHER and (setting.test_length != setting.P or setting.M == setting.d):
            flags.append(flag("cross-rest"))
    share = np.mean([1 - row["approx"] / row["reducible"] for row in rows])
    of_data = (
        "may be much too low (frozen-filter)" if few else f"relative error about {error * share:.2g} besides"
    )
    accuracy = {"reducible": of_data}
    return summarise(
        "exact", setting, rows, diagnostics=DIAGNOSTICS, flags=flags, assumed=assumed, accuracy=accuracy
    )
