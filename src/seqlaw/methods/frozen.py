"""The filter frozen at G, over sketches: approximation, bias and variance to leading order in the data.

`functional` has the formulas; here each setting finds its path. Settings that share their spectrum with many
others take a ray, or for short schedules an ellipse, whose nodes are solved for once. The rest take a contour
each, tuned to the schedule. Batched over settings of one teacher.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqlaw.methods.accuracy import fine
from seqlaw.methods.expected import noise, pick, population, score_diagonal
from seqlaw.methods.finite_sample.norm import Rise, rises
from seqlaw.methods.functional import solve, terms
from seqlaw.methods.paths import contour, is_long, on_ray, shared_path
from seqlaw.methods.resolvent import spectral_edge
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model.filters import Schedule
from seqlaw.model.momentum import Momentum
from seqlaw.model.setting import Setting

FLOOR, RAY_FLOOR = 1e-12, 1e-10
"""A bias below this share of F(0) is not resolved and is reported as 0; on a contour, on a ray.
With momentum at another test length, which takes ψ where the own length takes ψ², as on a ray."""
_MANY = 8
"""Schedules of one spectrum from which a ray, four times the nodes of a contour, is cheaper."""
_CHUNK = 2**18  # points × modes at a time
_DEEP = 1e-4
"""Of the spectrum's lower edge: below, f - f(0) is proportional to z to as much."""
Safe = Callable[[Setting, float], Schedule]


@dataclass(frozen=True, kw_only=True)
class Frozen:
    """One setting's answer: the schedule after its safeguard, terms, diagnostics, the floor of the bias."""

    schedule: Schedule
    row: dict[str, float]
    clipped: float
    """The share of the data sets that the safeguard acts on, so far as it is known."""
    floor: float = FLOOR


def frozen_rows(
    settings: Sequence[Setting], single: Rule, double: Rule, *, endless: bool = False, as_given: bool = False
) -> list[Frozen]:
    """The answers of settings of one teacher and d; double sums and shared spectra on a rule of their own.

    The safeguard is what N sequences need on average, or what an `endless` number does; or the schedules
    are taken `as_given`.
    """
    rise = {} if endless or as_given else rises(double, [setting.P for setting in settings])

    def safe(setting: Setting, norm: float) -> Schedule:
        if as_given:
            return setting.schedule
        seen = rise.get(setting.P, Rise(0.0, 0.0)).norm(norm, setting.tokens)
        return setting.schedule.safeguarded(seen)

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
        # Momentum's ψ grows again along a ray.
        key = k if isinstance(one.schedule, Momentum) else (one.M, one.P, one.test_length)
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
        kind = on_ray(schedule, unit) if shared else (is_long(schedule), one.test_length != one.P)
        kinds.setdefault(kind, []).append(k)
    answers: dict[int, Frozen] = {}
    noisy = noise(rules[0])
    for part in kinds.values():
        at = [0] if shared else part
        here, chosen = pick(own, at), [schedules[k] for k in part]
        if shared:
            deepest = _DEEP * unit * float(own.lower_edge[0])
            path = shared_path(chosen, deepest, unit * float(edge[0]), unit, fine.ray)
        else:
            path = contour(chosen, edge[at])
        P, tested = [points[k].P for k in at], [points[k].test_length for k in at]
        moved = tested[0] != P[0]
        scored = score_diagonal(here, rules[1], P, noisy)
        solved = solve(here, path, tested if moved else None, rules, scored, unit=unit)
        found = terms(solved, path.residuals(chosen, unit))
        still = {
            "approx": solved.approx,
            "source_energy": here.source(here.kappa),
            "kappa": here.kappa,
            "effective_share": scored.share,
            "edge": edge[at],
            "norm": norm[at],
            "lagless": noisy + 2 * here.approx,
        }
        columns = {name: np.broadcast_to(x, len(part)).tolist() for name, x in still.items()}
        columns |= {name: x.ravel().tolist() for name, x in found.items()}
        for place, k in enumerate(part):
            row = {name: column[place] for name, column in columns.items()} | {"irreducible": noisy / 2}
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
