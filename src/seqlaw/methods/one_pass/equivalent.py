"""One pass over sketches: the expected risk with no random number, any d (docs/one-pass.md, §6)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from seqlaw.methods import accuracy
from seqlaw.methods.expected import population
from seqlaw.methods.frozen import frozen_rows
from seqlaw.methods.one_pass.directions import Directions
from seqlaw.methods.one_pass.law import Spread, mean_filter, variances
from seqlaw.methods.one_pass.over_sketches import expected_directions
from seqlaw.methods.one_pass.step import Step, stepped
from seqlaw.methods.spectral_sum import sum_rule
from seqlaw.methods.terms import Promise, Risk, saturation_flags
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import Array, InputError
from seqlaw.model.flags import flag
from seqlaw.model.lengths import Length, averaged
from seqlaw.model.setting import Setting
from seqlaw.model.threads import one_thread

LARGEST_ON_CONTOURS = 0.55
"""γ‖G‖ up to which the bias comes from a contour; without the safeguard it may be more."""


class Learners:
    """The nodes of each length and width of one spectrum, solved once."""

    def __init__(self, setting: Setting, *, quick: bool = False) -> None:
        self.crowd = (accuracy.search if quick else accuracy.fine).crowd
        level = accuracy.quick if quick else accuracy.fine
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
            self._solved[key] = expected_directions(self.rule, *key, self.crowd)
        return self._solved[key]


@one_thread()
def one_pass_equivalent(settings: Sequence[Setting], *, ratio: float = accuracy.fine.cut) -> list[Risk]:
    """The expected risk of each setting; settings of one teacher and d share their nodes."""
    answers: dict[int, Risk] = {}
    groups: dict[Any, list[int]] = {}
    for index, setting in enumerate(settings):
        groups.setdefault((setting.teacher, setting.d), []).append(index)
    for indices in groups.values():
        members = [settings[k] for k in indices]
        learners = Learners(members[0])
        steps = [stepped(one, [learners.nodes(one)]) for one in members]
        means = mean_terms(members, [one.schedule.gamma for one in steps], learners)
        spreads: dict[Any, Spread | None] = {}
        for index, one, step, mean in zip(indices, members, steps, means, strict=True):
            # Where only the test length differs the training is the same; a schedule may have no hash.
            key = (one.P, one.M, one.batch, one.safeguard, id(one.schedule))
            if key not in spreads:
                spreads[key] = _spread(one, step, learners.nodes(one), ratio)
            answers[index] = _risk(one, step, mean, learners, spreads[key])
    return [answers[k] for k in range(len(settings))]


def mean_terms(
    settings: Sequence[Setting], gammas: Sequence[float], learners: Learners
) -> list[dict[str, float]]:
    """What the mean iterate has, at these peak steps: the full batch's population terms."""
    asked = [
        replace(one, schedule=one.schedule.scaled(gamma)) for one, gamma in zip(settings, gammas, strict=True)
    ]
    large = [one.schedule.gamma * learners.nodes(one).norm > LARGEST_ON_CONTOURS for one in asked]
    for one, beyond in zip(asked, large, strict=True):
        if beyond and one.test_length != one.P:
            most = LARGEST_ON_CONTOURS / learners.nodes(one).norm
            rule = f"must be at most {most:.3g} at another test length on this method (exact takes any)"
            raise InputError("gamma", rule, one.schedule.gamma)
    # Their steps only set the bias, which is put in below.
    calm = [
        replace(one, schedule=one.schedule.scaled(0.5 / learners.nodes(one).norm)) if beyond else one
        for one, beyond in zip(asked, large, strict=True)
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
    saturation, bias = step.schedule.total * mean["kappa"], mean["bias"]
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
