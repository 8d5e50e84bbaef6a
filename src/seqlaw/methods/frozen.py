"""The filter frozen at G, over sketches: approximation, bias and variance to leading order in the data.

`functional` has the formulas; this module chooses the path of integration. Settings that share a spectrum
with many others share a ray, or an ellipse for short schedules, whose nodes are solved once. Each other
setting has a contour of its own, tuned to its schedule. Batched over settings of one teacher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqlaw.methods.accuracy import fine
from seqlaw.methods.contours import contour, is_long, loop, on_ray, shared_path
from seqlaw.methods.expected import noise, pick, population, score_diagonal
from seqlaw.methods.finite_sample.norm import EmpiricalNorm, empirical_norms
from seqlaw.methods.functional import solve, terms
from seqlaw.methods.resolvent import spectral_edge
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model.filters import Schedule
from seqlaw.model.momentum import Momentum
from seqlaw.model.setting import Setting

FLOOR, RAY_FLOOR = 1e-12, 1e-10
"""A bias below this share of F(0) is not resolved and is reported as 0: on a contour, and on a ray. Momentum
at another test length counts as a ray: it needs ψ, where the training length needs ψ²."""
_MANY = 8
"""From this many schedules on one spectrum a shared ray is cheaper, although it has four times the nodes."""
_CHUNK = 2**18  # points × modes at a time
_DEEP = 1e-4
"""Times the spectrum's lower edge: below that, f - f(0) is proportional to z with this relative error."""
Safe = Callable[[Setting, float], Schedule]
"""The schedule of a setting after its safeguard, from ‖G‖."""


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """The answer for one setting: the schedule after its safeguard, and a row of terms and diagnostics."""

    schedule: Schedule
    row: dict[str, float]
    clipped: float
    """The share of the data sets for which the safeguard lowers the step; 0 or 1 at the mean ‖Ĝ‖."""
    floor: float = FLOOR
    """A bias below this share of F(0) is not resolved."""


def frozen_rows(
    settings: Sequence[Setting],
    single: Rule,
    double: Rule,
    *,
    infinite_data: bool = False,
    as_given: bool = False,
) -> list[Frozen]:
    """The answers for settings of one teacher and d; `double` is the rule of double sums and shared spectra.

    The safeguard uses the mean ‖Ĝ‖ of N sequences, or ‖G‖ for `infinite_data`. With `as_given` there is none.
    """
    empirical = (
        {} if infinite_data or as_given else empirical_norms(double, [setting.P for setting in settings])
    )

    def safe(setting: Setting, norm: float) -> Schedule:
        if as_given:
            return setting.schedule
        known = empirical.get(setting.P, EmpiricalNorm(0.0, 0.0))
        return setting.schedule.safeguarded(known.norm(norm, setting.tokens))

    answers: dict[int, Frozen] = {}
    shared, rest = _shared(settings, double)
    for group in shared:
        found = _answers([settings[k] for k in group], (double, double), safe, shared=True)
        answers |= dict(zip(group, found, strict=True))
    step = max(1, _CHUNK // single.weights.size)
    for first in range(0, len(rest), step):
        chunk = rest[first : first + step]
        found = _answers([settings[k] for k in chunk], (single, double), safe, shared=False)
        answers |= dict(zip(chunk, found, strict=True))
    return [answers[k] for k in range(len(settings))]


def _shared(settings: Sequence[Setting], rule: Rule) -> tuple[list[list[int]], list[int]]:
    """The settings that share a spectrum with enough others, and the rest."""
    groups: dict[Any, list[int]] = {}
    for k, one in enumerate(settings):
        # Momentum's ψ grows again along a ray, and a cut or a pole needs a loop.
        alone = isinstance(one.schedule, Momentum) or not one.schedule.entire
        key = k if alone else (one.M, one.P, one.test_length)
        groups.setdefault(key, []).append(k)
    shared = [
        group
        for group in groups.values()
        if len({settings[k].schedule for k in group}) >= _MANY
        # As wide as the teacher, f(z) is no power series at 0.
        and settings[group[0]].M < rule.weights.sum() * (1 - 1e-12)
    ]
    taken = {k for group in shared for k in group}
    return shared, [k for k in range(len(settings)) if k not in taken]


def _answers(
    settings: Sequence[Setting], rules: tuple[Rule, Rule], safe: Safe, *, shared: bool
) -> list[Frozen]:
    """The answers of settings of one spectrum on a shared path, or of each on a contour of its own."""
    points = settings[:1] if shared else settings
    own = population(rules[0], [one.P for one in points], np.array([float(one.M) for one in points]))
    edge, norm = spectral_edge(own.h, own.weights, own.M)
    norms = np.broadcast_to(norm, len(settings)).tolist()
    schedules = [safe(one, n) for one, n in zip(settings, norms, strict=True)]
    unit = max(schedule.gamma for schedule in schedules) if shared else 1.0
    kinds: dict[Any, list[int]] = {}
    for k, (one, schedule) in enumerate(zip(settings, schedules, strict=True)):
        own_kind = (schedule.entire, is_long(schedule), one.test_length != one.P)
        kind = on_ray(schedule, unit) if shared else own_kind
        kinds.setdefault(kind, []).append(k)
    answers: dict[int, Frozen] = {}
    noise_power = noise(rules[0])
    for part in kinds.values():
        at = [0] if shared else part
        here, chosen = pick(own, at), [schedules[k] for k in part]
        if shared:
            deepest = _DEEP * unit * float(own.lower_edge[0])
            path = shared_path(chosen, deepest, unit * float(edge[0]), unit, fine.ray)
        elif chosen[0].entire:
            path = contour(chosen, edge[at])
        else:
            path = loop(chosen, edge[at], _DEEP * own.lower_edge[at], fine.ray)
        P, tested = [points[k].P for k in at], [points[k].test_length for k in at]
        moved = tested[0] != P[0]
        scored = score_diagonal(here, rules[1], P, noise_power)
        solved = solve(here, path, tested if moved else None, rules, scored, unit=unit)
        found = terms(solved, path.residuals(chosen, unit))
        per_point = {
            "approx": solved.approx,
            "source_energy": here.source(here.kappa),
            "kappa": here.kappa,
            "effective_share": scored.share,
            "edge": edge[at],
            "norm": norm[at],
            "lagless": noise_power + 2 * here.approx,
        }
        columns = {name: np.broadcast_to(x, len(part)).tolist() for name, x in per_point.items()}
        columns |= {name: x.ravel().tolist() for name, x in found.items()}
        for place, k in enumerate(part):
            row = {name: column[place] for name, column in columns.items()} | {"irreducible": noise_power / 2}
            row["variance"] /= settings[k].tokens
            row["finite_filter_variance"] = (
                row.pop("lagless") / (2 * settings[k].tokens) * row["tested_dimension"]
            )
            rough = not path.encloses or (moved and isinstance(schedules[k], Momentum))
            answers[k] = Frozen(
                schedule=schedules[k],
                row=row,
                clipped=float(schedules[k] is not settings[k].schedule),
                floor=RAY_FLOOR if rough else FLOOR,
            )
    return [answers[k] for k in range(len(settings))]
