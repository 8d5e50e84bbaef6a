"""The peak step size of least risk among those that the safeguard allows.

At fixed steps the risk has one valley in γ: the bias falls and the variance rises with Σγ. With the full
batch the equivalent method finds it for every method. It first looks along the whole valley with the filter
frozen, which costs one solve for all steps (`rays.surface`). Where data are few, the finite-sample law at
two or three steps corrects it. For one pass `one_pass.tuning` finds it. The depth of a step is log₂
of the largest step over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from scipy.interpolate import CubicSpline

from seqlaw.methods.accuracy import search
from seqlaw.methods.equivalent import equivalent_risks
from seqlaw.methods.finite_sample.law import SWITCH
from seqlaw.methods.one_pass import tuning
from seqlaw.methods.rays import surface
from seqlaw.methods.spectral_sum import sum_rule
from seqlaw.methods.terms import Risk
from seqlaw.model.checks import InputError
from seqlaw.model.flags import Flag, flag
from seqlaw.model.setting import Setting
from seqlaw.model.threads import one_thread

UNLIMITED = 1e9
"""A peak step that the safeguard brings down to the largest."""
_AMPLE = 500.0
"""Effective tokens a learned dimension from which the frozen filter decides. Its risk errs by 0.5 % there, in
the same direction at all steps, which costs far less than 0.1 % at the bottom of a flat valley."""
_DEEPEST, _SPACING, _FINEST = 20, 1.0, 0.0625
"""The frozen filter looks at factors of two; a cubic spline gives those between. 2^(1/32) off the bottom of
the valley costs far below 0.1 %."""
_REACH = 0.75
"""How far to each side the law looks. It missed no best step of 77 by 0.1 % (with 1 instead, two), and told
what half and twice of the step cost to 0.003 in the median, 0.04 at worst, where that is 0.05 to 0.8."""
_SCARCE = 3.0
"""Effective tokens a learned dimension above which the outer two of these three are enough for the step: no
bottom of 54 was missed by 0.1 %, but half and twice of it are known to 0.005 to 0.05 only."""
_FAR = 300.0
"""Where the parabola is extended far from its depths, e^300 is as high as any other wall."""


class Best(NamedTuple):
    """A setting at its best step, and what other steps would cost."""

    setting: Setting
    largest: bool = False
    """Whether it is the largest step that the safeguard allows."""
    half: float | None = None
    """The relative excess of the reducible risk at half the step; not known in one pass."""
    twice: float | None = None
    """At twice the step; None where the safeguard allows no such step."""

    def told(self, risk: Risk) -> Risk:
        """The risk with the flag that names this step, and without the safeguard's, which would repeat it."""
        if self.half is None:
            return risk
        named = flag(
            "best-step",
            gamma=self.setting.schedule.gamma,
            largest=self.largest,
            half=self.half,
            twice=self.twice,
        )
        return replace(risk, flags=(named, *(one for one in risk.flags if _matters(one, risk))))


def _matters(one: Flag, risk: Risk) -> bool:
    """Not the safeguard; and saturation only where the bias, which it makes uncertain, is not negligible."""
    if one.code == "saturated":
        return risk.bias > risk.diagnostics.get("error", 0.0) * risk.reducible
    return one.code != "safeguard"


def largest_step(setting: Setting, risk: Risk) -> Best:
    """`Best` at the largest step. In a plan steps cost compute, and smaller ones need more for the same Σγ.

    `risk` is the setting's at a step that the safeguard brings down to the largest.
    """
    gamma = risk.diagnostics["gamma"]
    [half] = equivalent_risks([_at(setting, gamma / 2)])
    return Best(setting=_at(setting, gamma), largest=True, half=half.reducible / risk.reducible - 1)


def tuned(settings: Sequence[Setting], *, rough: bool = False) -> list[Best]:
    """Each setting at its best step, full batch or one pass; `rough` as in `best_steps`.

    All positions are of one student: its step is the best at its own length.
    """
    trained, found = [replace(one, position=None) for one in settings], dict[Setting, Best]()
    for once in (False, True):
        mine = list(dict.fromkeys(one for one in trained if (one.batch is not None) == once))
        best = [Best(one) for one in tuning.tuned(mine)] if once else best_steps(mine, rough=rough)
        found |= dict(zip(mine, best, strict=True))
    return [
        found[which]._replace(setting=replace(found[which].setting, position=one.position))
        for which, one in zip(trained, settings, strict=True)
    ]


@one_thread()
def best_steps(settings: Sequence[Setting], *, rough: bool = False) -> list[Best]:
    """The best step of each setting with the full batch.

    `rough` is as sure of the step, but with few data not of what half and twice of it would cost.
    """
    for one in settings:
        if one.optimizer is not None:
            raise InputError("gamma", f"is tuned by {one.optimizer.name} itself: leave it out", "best")
        if one.lengths is not None and one.lengths.phases:
            raise InputError("gamma", "must be a number with phases", "best")
    if not settings:
        return []
    trained = [_at(replace(one, eval_length=None), UNLIMITED) for one in settings]
    at_once = list(dict.fromkeys(trained))  # the largest step does not depend on the test
    found = dict(zip(at_once, equivalent_risks(at_once, quick=True, ample=0.0), strict=True))
    largest = [found[one].diagnostics["gamma"] for one in trained]
    data = [found[one].diagnostics["tokens_per_dimension"] for one in trained]
    few = [tokens < _AMPLE for tokens in data]
    frozen = _frozen_valleys(settings)
    best = [min(valley, key=valley.__getitem__, default=0.0) for valley in frozen]
    best = [min(depth, float(_DEEPEST)) for depth in best]
    known = [{} if few[k] else dict(valley) for k, valley in enumerate(frozen)]

    def look(wanted: Sequence[Sequence[float]]) -> None:
        """The risk of each setting at so many depths, all in one call."""
        new = [(k, depth) for k, depths in enumerate(wanted) for depth in depths if depth not in known[k]]
        asked = [_at(settings[k], largest[k] * 2.0**-depth) for k, depth in new]
        for (k, depth), risk in zip(new, equivalent_risks(asked, quick=True, ample=SWITCH), strict=True):
            known[k][depth] = risk.reducible

    searched = {k for k, valley in enumerate(frozen) if not valley}
    moving = {k for k, valley in enumerate(frozen) if few[k] and valley}
    centres: dict[int, set[float]] = {k: set() for k in moving}
    while moving:
        beside = {k: _beside(best[k], ends=rough and data[k] > _SCARCE) for k in moving}
        look([beside.get(k, []) for k in range(len(settings))])
        for k, depths in sorted(beside.items()):
            low, *_, high = depths
            centres[k].add(best[k])
            corrected = _corrected(frozen[k], {depth: known[k][depth] for depth in depths})
            best[k] = min((d for d in corrected if low <= d <= high), key=corrected.__getitem__)
            if low < best[k] < high or best[k] in (0, _DEEPEST):
                moving.discard(k)
                known[k] = corrected
            elif best[k] in centres[k]:  # two parabolas point at each other: the law itself is searched
                moving.discard(k)
                searched.add(k)
                best[k] = min(known[k], key=known[k].__getitem__)
    for spacing in (1.0, 0.5, 0.25, 0.125, _FINEST):
        moving = set(searched)
        while moving:
            steps = (-spacing, 0.0, spacing)
            look(
                [
                    [d for step in steps if (d := best[k] + step) >= 0] if k in moving else []
                    for k in range(len(settings))
                ]
            )
            for k in sorted(moving):
                lowest = min(known[k], key=known[k].__getitem__)
                if lowest == best[k]:
                    moving.discard(k)
                best[k] = lowest
    look([[depth, depth + 1, depth - 1] if depth >= 1 else [depth, depth + 1] for depth in best])
    return [
        Best(
            setting=_at(one, largest[k] * 2.0 ** -best[k]),
            largest=best[k] == 0,
            half=known[k][best[k] + 1] / known[k][best[k]] - 1,
            twice=known[k][best[k] - 1] / known[k][best[k]] - 1 if best[k] >= 1 else None,
        )
        for k, one in enumerate(settings)
    ]


def _beside(depth: float, *, ends: bool) -> list[float]:
    """Three depths round one, or the outer two, at which the law tells how wrong the frozen filter is."""
    low, high = max(depth - _REACH, 0.0), min(depth, _DEEPEST) + _REACH
    return [low, high] if ends else [low, max(depth, low + _REACH / 2), high]


def _corrected(frozen: dict[float, float], law: dict[float, float]) -> dict[float, float]:
    """The frozen filter's risk at each depth times the ratio law/frozen.

    The ratio's logarithm is a parabola through three depths, or a line where only two are known.
    """
    at, depths = np.array(list(law)), np.array(list(frozen))
    shape = np.array(list(frozen.values()))
    ratio = np.log([risk / frozen[depth] for depth, risk in law.items()])
    parabola = np.polynomial.Polynomial.fit(at, ratio, at.size - 1)(depths)
    values = shape * np.exp(np.minimum(parabola, _FAR))
    return dict(zip(depths.tolist(), values.tolist(), strict=True))


def _frozen_valleys(settings: Sequence[Setting]) -> list[dict[float, float]]:
    """The frozen filter's reducible risk by depth, for each setting; none with momentum, which has no ray."""
    valleys: list[dict[float, float]] = [{} for _ in settings]
    groups: dict[Any, list[int]] = {}
    for k, one in enumerate(settings):
        if not one.schedule.memory:
            shape = one.schedule.scaled(1.0)
            groups.setdefault((one.teacher, one.d, shape), []).append(k)
    for (_, _, shape), part in groups.items():
        own = [settings[k] for k in part]
        points = list(dict.fromkeys((one.M, one.P) for one in own))
        tests = list(dict.fromkeys(one.eval_length for one in own))
        M = np.array([float(M) for M, _ in points])
        rule = sum_rule(own[0], search.double, widest=float(M.max()))
        depths, between = (np.arange(0, _DEEPEST + 1 + step, step) for step in (_SPACING, _FINEST))
        steps = [shape.scaled(float(UNLIMITED * 2.0**-depth)) for depth in depths]
        at = [tests.index(one.eval_length) for one in own], [points.index((one.M, one.P)) for one in own]
        fixed, variance = (found[at] for found in surface(rule, M, [P for _, P in points], steps, *tests))
        N = np.array([[float(one.N)] for one in own])
        risks = np.exp(CubicSpline(depths, np.log(fixed + variance / N), axis=1)(between))
        for k, risk in zip(part, risks.tolist(), strict=True):
            valleys[k] = dict(zip(between.tolist(), risk, strict=True))
    return valleys


def _at(setting: Setting, gamma: float) -> Setting:
    return replace(setting, schedule=setting.schedule.scaled(gamma))
