"""The full batch over sketches: the frozen filter, and the finite-sample correction of it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from seqlaw.methods import accuracy
from seqlaw.methods.expected import population
from seqlaw.methods.finite_sample.law import (
    Question,
    accuracy_for,
    boundary_error,
    corrected,
    correction_over_sketches,
    no_correction,
    without_safeguard,
)
from seqlaw.methods.finite_sample.norm import EmpiricalNorm, averaged_rows, empirical_norms
from seqlaw.methods.finite_sample.two_point import Terms
from seqlaw.methods.frozen import Frozen, frozen_rows
from seqlaw.methods.paths import reaches
from seqlaw.methods.spectral_sum import Rule, sum_rule
from seqlaw.model.lengths import Length
from seqlaw.model.setting import Setting


class DataCorrection(NamedTuple):
    """The finite-sample correction of one setting: the law at N sequences less that at N = ∞."""

    question: Question
    terms: Terms
    variance: float
    """The frozen filter's variance at this setting."""


def expected_corrections(
    settings: Sequence[Setting], *, as_given: bool = False
) -> list[DataCorrection | None]:
    """The correction over sketches, for settings of one teacher; None where the law does not apply."""
    reached = [one for one in settings if reaches(one.schedule)]
    if not reached:
        return [None] * len(settings)
    rules = sum_rule(reached[0]), sum_rule(reached[0], accuracy.fine.double)
    found = iter(answered(reached, *rules, as_given=as_given))
    return [next(found)[1] if reaches(one.schedule) else None for one in settings]


def answered(
    settings: Sequence[Setting],
    fine: Rule,
    coarse: Rule,
    *,
    quick: bool = False,
    ample: float = math.inf,
    as_given: bool = False,
) -> list[tuple[Frozen, DataCorrection | None]]:
    """The frozen filter and the finite-sample correction, for settings of one teacher.

    The step is that of the mean ‖Ĝ‖. Where ‖Ĝ‖ scatters enough to matter, the answer is the mean over the
    steps that the safeguard leaves, unless the law does not apply to one of them. With `as_given` there is
    no safeguard.
    """
    level = accuracy.quick if quick else accuracy.fine
    rule = sum_rule(settings[0], level.double, widest=max(one.M for one in settings))
    norms = empirical_norms(rule, [setting.P for setting in settings])
    found = frozen_rows(settings, fine, coarse, as_given=as_given)
    answers = list(
        zip(
            found,
            _corrections(settings, found, rule, norms, quick=quick, ample=ample, as_given=as_given),
            strict=True,
        )
    )
    parts: dict[int, list[tuple[float, Setting]]] = {}
    for k, (setting, (one, correction)) in enumerate(zip(settings, answers, strict=True)):
        one.row["norm_variance"] = norms[setting.P].relative_variance(setting.tokens)
        if correction is None or as_given:
            continue
        steps = norms[setting.P].steps(setting.schedule, one.row["norm"], setting.tokens, one.row["edge"])
        taken = (
            no_correction(rule.modes, replace(correction.question, schedule=step)) is None
            for _, step in steps
        )
        if len(steps) > 1 and all(taken):
            parts[k] = [(weight, replace(setting, schedule=step)) for weight, step in steps]
    if not parts:
        return answers
    varied = [one for part in parts.values() for _, one in part]
    rows = frozen_rows(varied, fine, coarse, as_given=True)
    both = iter(zip(rows, _corrections(varied, rows, rule, norms, quick=quick), strict=True))
    for k, part in parts.items():
        seen = [(weight, *next(both)) for weight, _ in part]
        terms = [(weight, vars(correction.terms)) for weight, _, correction in seen if correction is not None]
        one, correction = answers[k]
        if correction is not None and len(terms) == len(seen):
            row = averaged_rows([(weight, each.row) for weight, each, _ in seen])
            clipped = sum(weight for weight, each, _ in seen if each.schedule is not settings[k].schedule)
            mean = Terms(**averaged_rows(terms))
            answers[k] = (
                replace(one, row=row, clipped=clipped),
                DataCorrection(correction.question, mean, row["variance"]),
            )
    return answers


def _corrections(
    settings: Sequence[Setting],
    found: Sequence[Frozen],
    rule: Rule,
    norms: dict[Length, EmpiricalNorm],
    *,
    quick: bool = False,
    ample: float = math.inf,
    as_given: bool = False,
) -> list[DataCorrection | None]:
    """The correction of each setting of one teacher; None where the law does not apply."""
    questions = [
        Question(
            M=float(setting.M),
            N=float(setting.N),
            P=setting.P,
            eval_length=setting.test_length,
            schedule=one.schedule,
            share=one.row["effective_share"],
            learned=one.row["learned_dimensions"],
            edge=norms[setting.P].edge(one.row["edge"], setting.tokens),
            norm_variance=norms[setting.P].relative_variance(setting.tokens),
            boundary=boundary_error(rule.modes, setting.P),
        )
        for setting, one in zip(settings, found, strict=True)
    ]
    if as_given:
        questions = [without_safeguard(one) for one in questions]
    corrections: list[DataCorrection | None] = [None] * len(settings)
    for level in (accuracy.fine, accuracy.quick):
        part = [
            k
            for k, asked in enumerate(questions)
            if asked.tokens_per_dimension <= ample
            and accuracy_for(asked, quick=quick) is level
            and no_correction(rule.modes, asked) is None
        ]
        if part:
            asked = [questions[k] for k in part]
            own = population(rule, [one.P for one in asked], np.array([one.M for one in asked]))
            for k, terms in zip(part, correction_over_sketches(asked, own, rule.modes, level), strict=True):
                corrections[k] = DataCorrection(questions[k], terms, found[k].row["variance"])
    return corrections


def corrected_terms(
    setting: Setting, row: dict[str, float], correction: DataCorrection | None
) -> dict[str, float]:
    """bias, variance and cross: those of the frozen filter with the finite-sample correction.

    At another test length only the loss is corrected: bias and variance stay frozen, cross is the rest.
    """
    bias, variance = row["bias"], row["variance"]
    if correction is None:
        return {"bias": bias, "variance": variance, "cross": 0.0}
    if not is_split(setting, row):
        return {"bias": bias, "variance": variance, "cross": correction.terms.loss - variance}
    return corrected(correction.terms, correction.question, bias, variance, variance)


def is_split(setting: Setting, row: dict[str, float]) -> bool:
    """Whether the law over sketches gives bias, variance and cross separately."""
    return setting.test_length == setting.P and row["kappa"] > 0
