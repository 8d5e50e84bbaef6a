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
from seqlaw.methods.expected import Population, noise, pick, population, score_diagonal
from seqlaw.methods.finite_sample.norm import Rise, rises
from seqlaw.methods.functional import solve, terms
from seqlaw.methods.paths import Path, contour, ellipse, is_long, ray
from seqlaw.methods.resolvent import spectral_edge
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model.checks import Array
from seqlaw.model.filters import RAY_TOP, Schedule
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
        answers |= dict(zip(group, _together([settings[k] for k in group], double, safe), strict=True))
    step = max(1, _CHUNK // single.weights.size)
    for first in range(0, len(rest), step):
        chunk = rest[first : first + step]
        found = _each([settings[k] for k in chunk], (single, double), safe)
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


def _together(settings: Sequence[Setting], rule: Rule, safe: Safe) -> list[Frozen]:
    """Settings of one spectrum on one path for the long schedules, and one for the short."""
    own = population(rule, [settings[0].P], np.array([float(settings[0].M)]))
    edge, norm = spectral_edge(own.h, own.weights, own.M)
    schedules = [safe(one, float(norm[0])) for one in settings]
    peak = max(schedule.gamma for schedule in schedules)

    def path(part: list[int]) -> Path:
        total = max(schedules[k].total for k in part) / peak
        if on_ray(schedules[part[0]], peak):
            return ray(_DEEP * float(depth(own)[0]) * peak, total, fine.ray)
        return ellipse(edge * peak, np.array([total]), np.ones(1), powers=2)

    kinds = [on_ray(schedule, peak) for schedule in schedules]
    return _answers(settings, schedules, own, edge, norm, (rule, rule), kinds, path, peak)


def _each(settings: Sequence[Setting], rules: tuple[Rule, Rule], safe: Safe) -> list[Frozen]:
    """Settings each on a contour of its own."""
    own = population(rules[0], [one.P for one in settings], np.array([float(one.M) for one in settings]))
    edge, norm = spectral_edge(own.h, own.weights, own.M)
    schedules = [safe(one, n) for one, n in zip(settings, norm.tolist(), strict=True)]
    kinds = [(is_long(s), one.test_length != one.P) for one, s in zip(settings, schedules, strict=True)]

    def path(part: list[int]) -> Path:
        return contour([schedules[k] for k in part], edge[part])

    return _answers(settings, schedules, own, edge, norm, rules, kinds, path)


def _answers(
    settings: Sequence[Setting],
    schedules: Sequence[Schedule],
    own: Population,
    edge: Array,
    norm: Array,
    rules: tuple[Rule, Rule],
    kinds: Sequence[Any],
    path_of: Callable[[list[int]], Path],
    unit: float = 1.0,
) -> list[Frozen]:
    """The answers of settings, a point of `own` each or all at the same, together where their kind is one."""
    answers: dict[int, Frozen] = {}
    noisy = noise(rules[0])
    for kind in dict.fromkeys(kinds):
        part = [k for k, one in enumerate(kinds) if one == kind]
        points = part if own.M.size > 1 else [0]
        here, path, P = pick(own, points), path_of(part), [settings[k].P for k in part][: len(points)]
        tested = [settings[k].test_length for k in part][: len(points)]
        moved = tested[0] != P[0]
        scored = score_diagonal(here, rules[1], P, noisy)
        solved = solve(here, path, tested if moved else None, rules, scored, unit=unit)
        found = terms(solved, path.residuals([schedules[k] for k in part], unit))
        still = {
            "approx": solved.approx,
            "source_energy": here.source(here.kappa),
            "kappa": here.kappa,
            "effective_share": scored.share,
            "edge": edge[points],
            "norm": norm[points],
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


def on_ray(schedule: Schedule, peak: float) -> bool:
    """Whether a ray in units of 1/peak is fit for this schedule: ψ is nothing at its upper end."""
    return not schedule.felt(np.array([RAY_TOP / peak]))[0]


def depth(own: Population) -> Array:
    """The |z| below which f - f(0) ~ z at each point: about its spectrum's lower edge.

    Near there z ≈ -(κ - κ_0)(1 - (1/M) Σ h²D²). As wide as the teacher (κ_0 = 0) f - f(0) ~ √z instead, and
    a node far below the least h leaves little.
    """
    D = 1 / (own.h + own.kappa[:, None])
    slope = 1 - (own.h * D) ** 2 @ own.weights / own.M
    least = np.where(own.h > 0, own.h, np.inf).min(axis=1)
    return np.asarray(np.maximum(own.kappa * slope, 1e-7 * least))
