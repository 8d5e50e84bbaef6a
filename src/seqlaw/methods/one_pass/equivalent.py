"""One pass averaged over sketches: the expected risk by formula, for any d (docs/one-pass-theory.md, §6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from seqlaw.methods import accuracy
from seqlaw.methods.expected import population
from seqlaw.methods.finite_sample.error import data_error
from seqlaw.methods.frozen import frozen_rows
from seqlaw.methods.full_batch import answered, corrected_terms
from seqlaw.methods.one_pass.epochs import (
    FullBatchRisk,
    epochs_error,
    epochs_flags,
    epochs_noise,
    excess,
)
from seqlaw.methods.one_pass.law import Spread, mean_filter, variances
from seqlaw.methods.one_pass.noise import Directions
from seqlaw.methods.one_pass.over_sketches import expected_directions
from seqlaw.methods.one_pass.step import Step, require_full_batch, stepped
from seqlaw.methods.spectral_sum import sum_rule
from seqlaw.methods.terms import Promise, Risk, frozen_error, frozen_filter_flags, saturation_flags
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import Array, InputError
from seqlaw.model.filters import Schedule
from seqlaw.model.flags import flag
from seqlaw.model.lengths import Length, averaged
from seqlaw.model.setting import Setting
from seqlaw.model.threads import one_thread

LARGEST_ON_CONTOURS = 0.55
"""γ‖G‖ up to which the bias comes from a contour; without the safeguard it may be more."""


class Learners:
    """The nodes of each length and width of one spectrum, solved once."""

    def __init__(self, setting: Setting, *, quick: bool = False) -> None:
        self.level = level = accuracy.quick if quick else accuracy.fine
        self.fine, self.rule = sum_rule(setting, level.sums), sum_rule(setting, level.double)
        self._solved: dict[tuple[Length, int], tuple[Directions, Array]] = {}

    def nodes(self, setting: Setting) -> Directions:
        return self._at(setting)[0]

    def tested(self, setting: Setting) -> Array:
        """The weight of each node's variance in the risk at the test length: w·Σ h' ς (15)."""
        nodes, sigma = self._at(setting)
        if setting.test_length == setting.P:
            return nodes.w * nodes.mu
        return np.asarray(
            nodes.w * (sigma @ (self.rule.weights * averaged(self.rule.modes, setting.test_length)))
        )

    def approx(self, setting: Setting) -> float:
        """The approximation at the own length."""
        return float(population(self.rule, [setting.P], np.array([float(setting.M)])).approx[0])

    def _at(self, setting: Setting) -> tuple[Directions, Array]:
        key = (setting.P, setting.M)
        if key not in self._solved:
            self._solved[key] = expected_directions(self.rule, *key, self.level.crowd)
        return self._solved[key]


@one_thread()
def one_pass_equivalent(settings: Sequence[Setting], *, quick: bool = False) -> list[Risk]:
    """The expected risk of each setting; settings of one teacher and d share their nodes.

    `quick` is good to 2e-4 of the reducible risk.
    """
    answers: dict[int, Risk] = {}
    groups: dict[Any, list[int]] = {}
    for index, setting in enumerate(settings):
        groups.setdefault((setting.teacher, setting.d), []).append(index)
    for indices in groups.values():
        members = [settings[k] for k in indices]
        learners = Learners(members[0], quick=quick)
        steps = [stepped(one, [learners.nodes(one)]) for one in members]
        means = mean_terms(members, [one.schedule.gamma for one in steps], learners)
        spreads: dict[Any, Spread | None] = {}
        for index, one, step, mean in zip(indices, members, steps, means, strict=True):
            # Where only the test length differs the training is the same; a schedule may have no hash.
            key = (one.P, one.M, one.training, id(one.schedule))
            if key not in spreads:
                alone = one.epochs > 1
                spreads[key] = None if alone else _spread(one, step, learners.nodes(one), learners.level.cut)
            answers[index] = _risk(one, step, mean, learners, spreads[key])
        again = [k for k in range(len(members)) if members[k].epochs > 1 and not steps[k].diverges]
        schedules = [steps[k].schedule for k in again]
        wholes = full_batches([members[k] for k in again], schedules, learners, quick=quick)
        for k, full in zip(again, wholes, strict=True):
            once = answers[indices[k]]
            answers[indices[k]] = _of_epochs(members[k], steps[k], once, learners, full)
    return [answers[k] for k in range(len(settings))]


def mean_terms(
    settings: Sequence[Setting], gammas: Sequence[float], learners: Learners
) -> list[dict[str, float]]:
    """The terms of the mean iterate at these peak steps, which are the full batch's population terms."""
    asked = [
        replace(one, schedule=one.schedule.scaled(gamma)) for one, gamma in zip(settings, gammas, strict=True)
    ]
    speeds = [one.schedule.speed(learners.nodes(one).norm) for one in asked]
    large = [
        one.schedule.gamma * speed > LARGEST_ON_CONTOURS for one, speed in zip(asked, speeds, strict=True)
    ]
    for one, beyond, speed in zip(asked, large, speeds, strict=True):
        if beyond and one.test_length != one.P:
            most = LARGEST_ON_CONTOURS / speed
            rule = f"must be at most {most:.3g} at another test length on this method (exact takes any)"
            raise InputError("gamma", rule, one.schedule.gamma)
    # Their steps only set the bias, which is put in below.
    calm = [
        replace(one, schedule=one.schedule.scaled(0.5 / speed)) if beyond else one
        for one, beyond, speed in zip(asked, large, speeds, strict=True)
    ]
    found = [
        row.row | {"floor": row.floor}
        for row in frozen_rows(calm, learners.fine, learners.rule, as_given=True)
    ]
    for row, one, beyond in zip(found, asked, large, strict=True):
        if beyond:
            nodes = learners.nodes(one)
            psi = mean_filter(one.schedule, nodes.mu)
            row["bias"] = float(np.sum(nodes.w * nodes.mu * nodes.beta * psi**2)) / 2
    return found


def full_batches(
    settings: Sequence[Setting], schedules: Sequence[Schedule], learners: Learners, *, quick: bool = False
) -> list[FullBatchRisk]:
    """The full batch on the sequences of settings with mini-batches, without a safeguard of its own."""
    if not settings:
        return []
    for one, schedule in zip(settings, schedules, strict=True):
        require_full_batch(one, learners.nodes(one), schedule)
    full = [
        one.but(batch=None, N=one.N, schedule=each) for one, each in zip(settings, schedules, strict=True)
    ]
    found = []
    for one, (frozen, correction) in zip(
        full, answered(full, learners.fine, learners.rule, quick=quick, as_given=True), strict=True
    ):
        row, schedule = frozen.row, frozen.schedule
        tokens = row["effective_share"] * one.tokens / max(row["learned_dimensions"], math.ulp(0.0))
        error = math.inf if frozen_filter_flags(tokens) else frozen_error(tokens, row["norm_variance"])
        if correction is not None:
            error = data_error(correction.question, schedule.progress(row["kappa"]), 0.0)
        terms = corrected_terms(one, row, correction)
        found.append(FullBatchRisk(terms["bias"] + terms["variance"] + terms["cross"], error))
    return found


def _of_epochs(setting: Setting, step: Step, once: Risk, learners: Learners, whole: FullBatchRisk) -> Risk:
    """The risk of epochs from that of the mean student alone."""
    assert setting.batch is not None
    nodes, weight, N = learners.nodes(setting), learners.tested(setting), float(setting.N)
    batch, ratio = float(setting.batch), learners.level.cut
    noise = epochs_noise(nodes, step.schedule, batch, N, setting.epochs, ratio=ratio)
    variance = excess(noise, weight, whole.excess, once.bias) - once.bias
    share = 1 - once.approx / max(once.approx + once.bias + variance, math.ulp(0.0))
    error = math.hypot(1 / setting.M, share * epochs_error(whole.error))
    promise = Promise("about", error) if math.isfinite(error) else Promise("low")
    more = [flag("epochs-frozen")] if math.isinf(error) else []
    about = {name: x for name, x in once.diagnostics.items() if name not in ("additive", "multiplicative")}
    return replace(
        once,
        variance=variance,
        accuracy={
            "approx": once.accuracy["approx"],
            "bias": once.accuracy["bias"],
            "variance": Promise("with cross"),
            "cross": Promise("in variance"),
            "reducible": promise,
        },
        diagnostics=about | {"full_batch": whole.excess, "error": error},
        flags=(*once.flags, *epochs_flags(setting, [about]), *more),
    )


def _spread(setting: Setting, step: Step, nodes: Directions, ratio: float) -> Spread | None:
    """The variance of each node; None above γ_max, where there is none."""
    assert setting.batch is not None
    if step.diverges:
        return None
    gamma, batch = np.array([step.schedule.gamma]), np.array([float(setting.batch)])
    return variances(nodes, step.schedule, batch, gamma, ratio=ratio)


def _risk(
    setting: Setting, step: Step, mean: dict[str, float], learners: Learners, spread: Spread | None
) -> Risk:
    nodes, weight = learners.nodes(setting), learners.tested(setting)
    additive = variance = math.inf
    if spread is not None:
        variance, additive = (float(weight @ part[0]) / 2 for part in spread)
    flags = [*setting_flags(setting), *step.flags()]
    saturation, bias = step.schedule.progress(mean["kappa"]), mean["bias"]
    flags += saturation_flags(setting, saturation)
    if bias < mean["floor"] * mean["source_energy"]:
        flags.append(flag("bias", floor=mean["floor"]))
        bias = 0.0
    M, wide = setting.M, mean["approx"] + bias
    error = (
        (wide + 3 * variance) / max(wide + variance, math.ulp(0.0)) / M
        if math.isfinite(variance)
        else math.inf
    )
    return Risk(
        method="equivalent",
        regime=setting.regime,
        irreducible=mean["irreducible"],
        approx=mean["approx"],
        bias=bias,
        variance=variance,
        cross=0.0,
        steps=setting.schedule.L,
        horizon=setting.schedule.horizon,
        eval_length=setting.test_length,
        accuracy={
            "approx": Promise("about", 1 / M, "1/M = "),
            "bias": Promise("above" if saturation > 1 else "about", 1 / M, "1/M = "),
            "variance": Promise("about", 3 / M, "3/M = "),
            "cross": Promise("zero"),
            "reducible": Promise("about", error),
        },
        diagnostics={
            "additive": additive,
            "multiplicative": 0.0 if step.diverges else variance - additive,
            **step.diagnostics(nodes, setting.P),
            "saturation": saturation,
            "kappa": mean["kappa"],
        },
        flags=tuple(flags),
    )
