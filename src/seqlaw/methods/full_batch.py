"""The full batch over sketches: the frozen filter, and the finite-sample correction of it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from seqlaw.methods import accuracy
from seqlaw.methods.contours import reaches
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
from seqlaw.methods.interpolated import curves_among, interpolated
from seqlaw.methods.spectral_sum import Rule, sum_rule
from seqlaw.model.checks import Array
from seqlaw.model.lengths import Length
from seqlaw.model.setting import Setting

_QUICK = 1e-4
"""Of the excess: the error of `accuracy.quick`, which is enough along an interpolated curve."""


class DataCorrection(NamedTuple):
    """The finite-sample correction of one setting: the law at N sequences less that at N = ∞."""

    question: Question
    terms: Terms
    variance: float
    """The frozen filter's variance at this setting."""
    interpolated: float = 0.0
    """The relative error of the excess that a curve adds, whose points are solved quickly or interpolated."""


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
    mean_step: bool = False,
) -> list[tuple[Frozen, DataCorrection | None]]:
    """The frozen filter and the finite-sample correction, for settings of one teacher.

    The step is that of the mean ‖Ĝ‖. Where ‖Ĝ‖ scatters enough to matter, the answer is the mean over the
    steps that the safeguard leaves, unless the law does not apply to one of them, or only the `mean_step` is
    wanted. With `as_given` there is no safeguard.
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
        if correction is None or as_given or mean_step:
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
    asked = [(settings[k], (i, len(part))) for k, part in parts.items() for i in range(len(part))]
    both = iter(zip(rows, _corrections(varied, rows, rule, norms, quick=quick, asked=asked), strict=True))
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
                DataCorrection(
                    correction.question,
                    mean,
                    row["variance"],
                    max(each.interpolated for _, _, each in seen if each is not None),
                ),
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
    asked: Sequence[tuple[Setting, Hashable]] | None = None,
) -> list[DataCorrection | None]:
    """The correction of each setting of one teacher; None where the law does not apply.

    Along a curve of many points some are interpolated. `asked` are the settings as they were asked for, if
    these are steps of theirs, each with a label: steps of one label are on one curve.
    """
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
    applies = [
        k
        for k, one in enumerate(questions)
        if one.tokens_per_dimension <= ample and no_correction(rule.modes, one) is None
    ]
    named = asked or [(one, None) for one in settings]
    labels = [(named[k][1], found[k].row["kappa"] > 0) for k in applies]
    curves = curves_among([named[k][0] for k in applies], labels)
    on_curves = {applies[i] for order, _ in curves for i in order}
    solved: dict[int, Terms] = {}

    def values(wanted: Sequence[int]) -> list[Array | None]:
        """The law's excess over the frozen filter's in the logarithm, its shares of variance and cross."""
        at = [applies[i] for i in wanted]
        levels = {k: accuracy_for(questions[k], quick=quick or k in on_curves) for k in at}
        for level in (accuracy.fine, accuracy.quick):
            part = [k for k in at if levels[k] is level]
            if part:
                chosen = [questions[k] for k in part]
                own = population(rule, [one.P for one in chosen], np.array([one.M for one in chosen]))
                terms = correction_over_sketches(chosen, own, rule.modes, level)
                solved.update(zip(part, terms, strict=True))
        return [_shape(questions[k], found[k].row, solved[k]) for k in at]

    corrections: list[DataCorrection | None] = [None] * len(settings)
    for k, (shape, error) in zip(applies, interpolated(len(applies), curves, values), strict=True):
        row = found[k].row
        terms = solved[k] if k in solved else _terms(questions[k], row, cast(Array, shape))
        besides = error + _QUICK if k in on_curves else 0.0
        corrections[k] = DataCorrection(questions[k], terms, row["variance"], besides)
    return corrections


def _shape(asked: Question, row: dict[str, float], terms: Terms) -> Array | None:
    """log s/f and the shares in s of variance and cross, s and f the excess by the law and frozen."""
    bias, variance = row["bias"], row["variance"]
    found = corrected(terms, asked, bias, variance, variance)
    excess, frozen = sum(found.values()), bias + variance
    if not min(excess, frozen) > 0:
        return None
    return np.array([math.log(excess / frozen), found["variance"] / excess, found["cross"] / excess])


def _terms(asked: Question, row: dict[str, float], shape: Array) -> Terms:
    """The correction with this shape."""
    bias, variance = row["bias"], row["variance"]
    excess = (bias + variance) * math.exp(shape[0])
    law_variance, cross = (float(share) * excess for share in shape[1:])
    of_bias = excess - law_variance - cross - bias
    of_variance = variance + (law_variance - variance) * asked.times_switch
    return Terms(loss=of_variance + of_bias + cross, bias=of_bias, cross=cross)


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
