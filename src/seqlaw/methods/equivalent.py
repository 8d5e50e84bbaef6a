"""The equivalent method: the expectation over trajectories and over the sketch, with no random number drawn.

The filter frozen at G (`frozen`), plus what a finite number of data changes (`finite_sample`); O(1) in d,
N, P and L. Exact to leading order as M and the data grow together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from seqlaw.methods import accuracy
from seqlaw.methods.expected import population
from seqlaw.methods.finite_sample.error import data_error, data_flags
from seqlaw.methods.finite_sample.law import (
    Question,
    boundary_error,
    changed,
    correction_over_sketches,
    level_of,
    refuses,
)
from seqlaw.methods.finite_sample.norm import Rise, averaged_rows, rises
from seqlaw.methods.finite_sample.two_point import Terms
from seqlaw.methods.frozen import Frozen, frozen_rows
from seqlaw.methods.method import BLOCK, Cost, Draws, Method, Progress
from seqlaw.methods.one_pass.equivalent import one_pass_equivalent
from seqlaw.methods.one_pass.step import no_law
from seqlaw.methods.paths import reaches
from seqlaw.methods.spectral_sum import Rule, sum_rule
from seqlaw.methods.terms import (
    Promise,
    Risk,
    frozen_error,
    frozen_filter_flags,
    safeguard_flags,
    saturation_flags,
)
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import InputError
from seqlaw.model.flags import flag
from seqlaw.model.lengths import Length
from seqlaw.model.pieces import is_cut
from seqlaw.model.setting import Setting
from seqlaw.model.threads import one_thread

_OF_SKETCH = 0.5
"""The sum of the terms errs by at most so much of 1/M over sketches: against the exact method's mean over 100
sketches it did in 69 of 70 random settings, allowing two standard errors (0.2/M in the median). This and
the error of the data are independent: they add as squares."""
_LEAST_TRAINING = 1e-4
"""Σγ‖G‖ below which (1-ψ)², of order its square, drowns in the contour's 1e-13."""


def equivalent_risk(setting: Setting) -> Risk:
    """The expected risk at one setting, by the deterministic equivalent."""
    return equivalent_risks([setting])[0]


@one_thread()
def equivalent_risks(
    settings: Sequence[Setting], *, quick: bool = False, frozen: bool = False, ample: float = math.inf
) -> list[Risk]:
    """The expected risk of each setting; settings of one teacher and d are computed together.

    `quick` takes coarser sums, good to 2e-4 of the reducible risk. `frozen` leaves the filter frozen at G,
    the paper's leading order; so does `ample` where there are more effective tokens a learned dimension.
    """
    for setting in settings:
        if (refusal := _refusal(setting)) is not None:
            raise refusal
    answers: list[Risk | None] = [None] * len(settings)
    groups: dict[Any, list[int]] = {}
    for index, setting in enumerate(settings):
        groups.setdefault((setting.teacher, setting.d), []).append(index)
    for indices in groups.values():
        members = [settings[k] for k in indices]
        level = accuracy.quick if quick else accuracy.fine
        widest = max(one.M for one in members)
        fine, coarse = (sum_rule(members[0], sums, widest=widest) for sums in (level.sums, level.double))
        answered = (
            [(one, None) for one in frozen_rows(members, fine, coarse, endless=True)]
            if frozen
            else _answered(members, fine, coarse, quick=quick, ample=ample)
        )
        for index, setting, (one, shift) in zip(indices, members, answered, strict=True):
            answers[index] = _risk(setting, one, shift)
    return [risk for risk in answers if risk is not None]


class Equivalent(Method):
    """The expectation over the sketch too: no random number, O(1) in d, N and P, ln L at most in L."""

    name: ClassVar[str] = "equivalent"
    mixtures: ClassVar[bool] = True
    one_pass: ClassVar[bool] = True
    infinite: ClassVar[bool] = True

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        return _each_its_way(settings, equivalent_risks, one_pass_equivalent)

    def quick(self, settings: Sequence[Setting]) -> list[Risk]:
        return _each_its_way(
            settings,
            lambda full: equivalent_risks(full, quick=True),
            lambda passes: one_pass_equivalent(passes, ratio=accuracy.quick.cut),
        )

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        first, more = (0.05, 0.03) if settings[0].d == math.inf else (0.02, 0.01)
        passes = sum(0.3 if is_cut(one.schedule) else 0.02 for one in settings if one.batch is not None)
        return Cost(seconds=first + more * (len(settings) - 1) + passes, memory=BLOCK)

    def refuses(self, setting: Setting) -> InputError | None:
        own = _refusal if setting.batch is None else no_law
        return super().refuses(setting) or own(setting)


def _each_its_way(
    settings: Sequence[Setting],
    full_batch: Callable[[list[Setting]], list[Risk]],
    one_pass: Callable[[list[Setting]], list[Risk]],
) -> list[Risk]:
    """Settings without a batch go one way, those with one the other."""
    found: dict[int, Risk] = {}
    for way, passes in ((full_batch, False), (one_pass, True)):
        part = [k for k, one in enumerate(settings) if (one.batch is not None) == passes]
        if part:
            found |= dict(zip(part, way([settings[k] for k in part]), strict=True))
    return [found[k] for k in range(len(settings))]


def _refusal(setting: Setting) -> InputError | None:
    """Momentum too near 1 for these steps: no contour of not too many nodes is known."""
    if reaches(setting.schedule):
        return None
    beta, L = getattr(setting.schedule, "beta", None), setting.schedule.L
    rule = f"must be at most 1 - 100/L, L = {L}, on the equivalent method (the exact method takes any)"
    return InputError("beta", rule, beta)


class Shift(NamedTuple):
    """What a finite number of data changes at a setting."""

    question: Question
    terms: Terms
    variance: float
    """The frozen one there."""


def expected_shifts(settings: Sequence[Setting]) -> list[Shift | None]:
    """What the data change over sketches in settings of one teacher; None where the law does not reach."""
    near = [one for one in settings if reaches(one.schedule)]
    if not near:
        return [None] * len(settings)
    found = iter(_answered(near, sum_rule(near[0]), sum_rule(near[0], accuracy.fine.double)))
    return [next(found)[1] if reaches(one.schedule) else None for one in settings]


def _answered(
    settings: Sequence[Setting], fine: Rule, coarse: Rule, *, quick: bool = False, ample: float = math.inf
) -> list[tuple[Frozen, Shift | None]]:
    """The frozen filter and what the data change in settings of one teacher.

    At the step of the mean norm; and where the norm's chance shows, the mean over the steps that the
    safeguard leaves, unless the law refuses one of them.
    """
    level = accuracy.quick if quick else accuracy.fine
    rule = sum_rule(settings[0], level.double, widest=max(one.M for one in settings))
    rise = rises(rule, [setting.P for setting in settings])
    found = frozen_rows(settings, fine, coarse)
    answers = list(zip(found, _shifts(settings, found, rule, rise, quick=quick, ample=ample), strict=True))
    parts: dict[int, list[tuple[float, Setting]]] = {}
    for k, (setting, (one, shift)) in enumerate(zip(settings, answers, strict=True)):
        one.row["chance"] = rise[setting.P].chance(setting.tokens)
        if shift is None:
            continue
        steps = rise[setting.P].steps(setting.schedule, one.row["norm"], setting.tokens, one.row["edge"])
        taken = (refuses(rule.modes, replace(shift.question, schedule=step)) is None for _, step in steps)
        if len(steps) > 1 and all(taken):
            parts[k] = [(weight, replace(setting, schedule=step)) for weight, step in steps]
    if not parts:
        return answers
    varied = [one for part in parts.values() for _, one in part]
    rows = frozen_rows(varied, fine, coarse, as_given=True)
    both = iter(zip(rows, _shifts(varied, rows, rule, rise, quick=quick), strict=True))
    for k, part in parts.items():
        seen = [(weight, *next(both)) for weight, _ in part]
        terms = [(weight, vars(shift.terms)) for weight, _, shift in seen if shift is not None]
        one, shift = answers[k]
        if shift is not None and len(terms) == len(seen):
            row = averaged_rows([(weight, each.row) for weight, each, _ in seen])
            clipped = sum(weight for weight, each, _ in seen if each.schedule is not settings[k].schedule)
            mean = Terms(**averaged_rows(terms))
            answers[k] = replace(one, row=row, clipped=clipped), Shift(shift.question, mean, row["variance"])
    return answers


def _shifts(
    settings: Sequence[Setting],
    found: Sequence[Frozen],
    rule: Rule,
    rise: dict[Length, Rise],
    *,
    quick: bool = False,
    ample: float = math.inf,
) -> list[Shift | None]:
    """What the data change in each setting of one teacher; None where the law does not reach."""
    questions = [
        Question(
            M=float(setting.M),
            N=float(setting.N),
            P=setting.P,
            eval_length=setting.test_length,
            schedule=one.schedule,
            share=one.row["effective_share"],
            learned=one.row["learned_dimensions"],
            edge=rise[setting.P].edge(one.row["edge"], setting.tokens),
            chance=rise[setting.P].chance(setting.tokens),
            boundary=boundary_error(rule.modes, setting.P),
        )
        for setting, one in zip(settings, found, strict=True)
    ]
    shifts: list[Shift | None] = [None] * len(settings)
    for level in (accuracy.fine, accuracy.quick):
        part = [
            k
            for k, asked in enumerate(questions)
            if asked.tokens_per_dimension <= ample
            and level_of(asked, quick=quick) is level
            and refuses(rule.modes, asked) is None
        ]
        if part:
            asked = [questions[k] for k in part]
            own = population(rule, [one.P for one in asked], np.array([one.M for one in asked]))
            for k, terms in zip(part, correction_over_sketches(asked, own, rule.modes, level), strict=True):
                shifts[k] = Shift(questions[k], terms, found[k].row["variance"])
    return shifts


def _terms(setting: Setting, row: dict[str, float], shift: Shift | None) -> dict[str, float]:
    """bias, variance and cross: the frozen filter's with what the data change, at any amount of them.

    At another test length the law has the loss alone: bias and variance stay frozen, cross is the rest.
    """
    bias, variance = row["bias"], row["variance"]
    if shift is None:
        return {"bias": bias, "variance": variance, "cross": 0.0}
    if not _split(setting, row):
        return {"bias": bias, "variance": variance, "cross": shift.terms.loss - variance}
    return changed(shift.terms, shift.question, bias, variance, variance)


def _split(setting: Setting, row: dict[str, float]) -> bool:
    """Whether the law over sketches tells bias, variance and cross apart."""
    return setting.test_length == setting.P and row["kappa"] > 0


def _risk(setting: Setting, frozen: Frozen, shift: Shift | None) -> Risk:
    schedule, row = frozen.schedule, frozen.row
    flags = list(setting_flags(setting))
    flags += safeguard_flags(frozen.clipped, gamma=schedule.gamma)
    learned = max(row["learned_dimensions"], math.ulp(0.0))
    tokens = row["effective_share"] * setting.tokens / learned
    terms = _terms(setting, row, shift)
    trained = schedule.total * row["edge"]
    if trained < _LEAST_TRAINING:
        flags.append(flag("untrained", trained=trained))
        terms["variance"] = max(terms["variance"], 0.0)
    saturation = schedule.total * row["kappa"]
    flags += saturation_flags(setting, saturation)
    if terms["bias"] < frozen.floor * row["source_energy"]:
        flags.append(flag("bias", floor=frozen.floor))
        terms["bias"] = 0.0
    if shift is None:
        few = frozen_filter_flags(tokens)
        flags += [flag("cross"), *few]
        error = math.inf if few else frozen_error(tokens, row.get("chance", 0.0))
    else:
        error = data_error(shift.question, saturation, frozen.clipped)
        flags += data_flags(setting.M, setting.tokens, saturation, error)
        if not _split(setting, row):
            flags.append(flag("cross-rest"))
    stated, reducible_error = _accuracy(setting, row, terms, error, saturation)
    names = ("finite_filter_variance", "effective_dimension", "learned_dimensions", "source_energy", "kappa")
    return Risk(
        method="equivalent",
        regime=setting.regime,
        irreducible=row["irreducible"],
        approx=row["approx"],
        bias=terms["bias"],
        variance=terms["variance"],
        cross=terms["cross"],
        steps=setting.schedule.L,
        horizon=setting.schedule.horizon,
        eval_length=setting.test_length,
        accuracy=stated,
        diagnostics={
            **{name: row[name] for name in names},
            "saturation": saturation,
            "gamma": schedule.gamma,
            "clipped": frozen.clipped,
            "tokens_per_dimension": tokens,
            "error": reducible_error,
        },
        flags=tuple(flags),
    )


def _accuracy(
    setting: Setting, row: dict[str, float], terms: dict[str, float], error: float, saturation: float
) -> tuple[dict[str, Promise], float]:
    """The stated accuracy of each number, and the relative error of the reducible risk.

    `error` is that of the excess, from the data; over sketches 1/M comes to each term (docs/equivalent.md).
    """
    M, approx = setting.M, row["approx"]
    of_sketch = Promise("about", 1 / M, "1/M = ")
    if math.isinf(error):
        low = dict.fromkeys(("bias", "variance", "reducible"), Promise("low"))
        return low | {"approx": of_sketch, "cross": Promise("unknown")}, error
    # Measured: while less than a dimension is learned, the scatter of one column's norm shows.
    wide = (3 if row["learned_dimensions"] <= 1 else 1) / M
    excess = abs(sum(terms.values()))
    share = excess / max(approx + excess, math.ulp(0.0))
    reducible = math.hypot(_OF_SKETCH * ((1 - share) / M + share * wide), share * error)
    sum_of_terms = Promise("about", reducible)
    if not _split(setting, row) and terms["cross"]:
        frozen = dict.fromkeys(("bias", "variance"), Promise("frozen"))
        return frozen | {"approx": of_sketch, "cross": Promise("rest"), "reducible": sum_of_terms}, reducible
    return {
        "approx": of_sketch,
        "bias": Promise("above" if saturation > 1 else "about", 1 / M + error),
        "variance": Promise("about", wide + error),
        "cross": Promise("size", (wide + error) * excess),
        "reducible": sum_of_terms,
    }, reducible
