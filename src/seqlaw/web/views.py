"""What each view shows, computed: a body in, a dict of numbers out. Runs in a worker."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from seqlaw.fit import fit_power_law
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import InputError
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Teacher
from seqlaw.planning.plan import plan
from seqlaw.planning.tradeoff import split_lengths, tradeoff
from seqlaw.rungs.ask import along, error_name, risks
from seqlaw.rungs.equivalent import equivalent_risks
from seqlaw.rungs.moments import cheaper_method, direct_cost, gram_cost
from seqlaw.rungs.rates import approx_guide, bias_guide, guide_cutoff, rates
from seqlaw.rungs.rows import columns, with_sums
from seqlaw.rungs.terms import TERMS, Risk, merge_flags
from seqlaw.spec import plain
from seqlaw.spectrum import averaged_spectrum
from seqlaw.web.copying import copy_curve, copy_plan, copy_spectrum, copy_tradeoff
from seqlaw.web.panels import panels
from seqlaw.web.schema import SAMPLED, CurveBody, PlanBody, Question, SampledBody, TradeoffBody

Answer = dict[str, Any]
Progress = Callable[[int, int], None]
CURVES = ("approx", "bias", "variance", "reducible")
_SENTENCES = {
    "I": "θ ≥ α: innovations rule the spectrum. To leading order only the number of tokens counts, "
    "not how they are cut.",
    "II": "α − 2r ≤ θ < α: the initialization has the heavier tail. Longer sequences wash it out.",
}
# What arithmetic raises where double precision ends: overflow, a logarithm of zero, a root that is not found.
NO_NUMBER = (ArithmeticError, ValueError, RuntimeError, np.linalg.LinAlgError)
_SPECTRUM_POINTS = 240
_SAMPLED_SECONDS = 120.0


def to_json(answer: Answer) -> bytes:
    """The answer as JSON; what is not finite becomes null and a flag."""
    lost: list[str] = []
    body = plain(answer, "", lost)
    # d = inf is an input, and a condition may ask for "above zero": no news for the reader.
    lost = [flag for flag in lost if ".d is infinite" not in flag and ": badge." not in flag]
    if lost:
        body["flags"] = [*body.get("flags", []), *_counted(lost)]
    return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()


def _counted(lost: list[str]) -> list[str]:
    """One flag a kind ("infinite", "undefined"), with how many more there are."""
    kinds = Counter(flag.partition(":")[0] for flag in lost)
    first = {flag.partition(":")[0]: flag for flag in reversed(lost)}
    return [first[kind] + (f" (and {n - 1} more)" if n > 1 else "") for kind, n in kinds.items()]


def badge(setting: Setting) -> Answer:
    """The regime, each condition of the theorem with its value, and the assumptions that are broken."""
    teacher, flags = setting.teacher, list(setting_flags(setting))
    assert isinstance(teacher, Teacher)
    answer: Answer = {
        "regime": teacher.regime,
        "covered": not flags,
        "sentence": _broken(flags) if flags else _SENTENCES[teacher.regime],
        "theta": teacher.theta,
        "alpha": teacher.alpha,
        "edge": teacher.alpha - 2 * teacher.r,
        "conditions": [],
        "exponents": {},
        "flags": flags,
    }
    try:
        law = rates(setting)
    except NO_NUMBER:  # no exponents here: the flags already say which assumption breaks
        return answer
    return answer | {"conditions": law.conditions, "exponents": law.exponents}


def spectrum(body: Question, progress: Progress) -> Answer:
    """h_P with its two parts, where they cross (m_P) and how far training reaches (κ)."""
    setting = body.setting()
    found = averaged_spectrum(setting, points=_SPECTRUM_POINTS)
    shown = badge(setting)
    law = _or_none(lambda: rates(setting))
    orders = {} if law is None else law.crossovers
    point = equivalent_risks([setting])[0]
    return {
        "badge": shown,
        "j": found.j,
        "initial": found.initial,
        "innovation": found.innovation,
        "total": found.total,
        "marks": {"m_P": found.crossing, "kappa": found.kappa, "M": setting.M},
        "numbers": [
            _number("m_P", "where the two parts cross", found.crossing, "to rounding"),
            _number("m_P, theorem", "P^(1/(α−θ))", orders.get("m_P"), "order only, constants dropped"),
            _number("κ", "where R·(c_ξ κ^−α + c_0 κ^−θ/P) = 1", found.kappa, "the paper's guide"),
            _number("κ, theorem", "max(R^(1/α), (R/P)^(1/θ))", orders.get("kappa"), "order only"),
            _number("P_M", "M^(α−θ): where approx stops falling with P", orders.get("P_M"), "order only"),
            _number("P_R", "R^(1−θ/α): where bias stops depending on P", orders.get("P_R"), "order only"),
            _number(
                "learned", "dimensions that training has learned", point.diagnostics["learned_dimensions"],
                f"relative error about 1/M = {1 / setting.M:.2g}",
            ),
        ],
        "copy": copy_spectrum(setting, points=_SPECTRUM_POINTS, last=int(found.j[-1]), orders=bool(orders)),
        "flags": [flag for flag in point.flags if not flag.startswith("cross:")],  # a term of the risk
    }  # fmt: skip


def curve(body: CurveBody, progress: Progress) -> Answer:
    """The terms along one size, at the setting itself (unless quick), slopes, and the theorem's guides."""
    setting = body.setting()
    settings = along(setting, body.along, body.values())
    here = [] if body.quick else [setting]
    answers = equivalent_risks([*settings, *here], quick=body.quick)
    point = answers.pop() if here else None
    rows = [_row(s, a) for s, a in zip(settings, answers, strict=True)]
    tested_apart = any(s.test_length != s.P for s in settings)
    return {
        "badge": badge(setting),
        "along": body.along,
        "tested": "own" if not tested_apart else setting.test_length,
        "rows": rows,
        "guides": {} if tested_apart else _guides(settings, rows),
        "point": None if point is None else _row(setting, point),
        "accuracy": answers[0].accuracy if point is None else point.accuracy,
        "slopes": {name: _slope(body.along, name, rows) for name in CURVES},
        "se_is": error_name("equivalent"),
        "copy": copy_curve(body),
        "flags": merge_flags([a.flags for a in answers], body.along, [row[body.along] for row in rows]),
    }


def sampled(body: SampledBody, progress: Progress) -> Answer:
    """The terms along one size, measured on sampled data sets, with standard errors."""
    settings = along(body.setting(), body.along, body.values())
    _check_sampled(body, settings)
    answers = risks(
        settings,
        rung="sampled",
        sketches=body.sketches,
        repetitions=body.repetitions,
        seed=body.seed,
        progress=progress,
    )
    rows = [
        _row(s, a) | {"standard_error": dict(a.standard_error)}
        for s, a in zip(settings, answers, strict=True)
    ]
    return {
        "along": body.along,
        "rows": rows,
        "copy": copy_curve(body),
        "flags": merge_flags([a.flags for a in answers], body.along, [row[body.along] for row in rows]),
    }


def sampled_seconds(settings: Sequence[Setting], data_sets: int) -> float:
    """What sampling the settings should cost, by the cost model of the moments, plus the decompositions."""
    seconds = 0.0
    families: dict[int, list[Setting]] = {}
    for setting in settings:
        families.setdefault(setting.M, []).append(setting)
    for M, members in families.items():
        d, N = int(members[0].d or 0), max(s.N for s in members)
        gram = cheaper_method(N, d, M) == "gram"
        step = gram_cost(d) if gram else direct_cost(N, d, M)
        seconds += 1e-9 * max(s.P for s in members) * step
        seconds += 1e-9 * len(members) * (30 * M**3 + 4 * d * M**2)
    return seconds * data_sets


def _check_sampled(body: SampledBody, settings: Sequence[Setting]) -> None:
    for name, value in (("M", max(s.M for s in settings)), ("d", float(settings[0].d or 0))):
        if value > SAMPLED[name]:
            field = "stop" if name == body.along else name
            raise InputError(field, f"must be at most {SAMPLED[name]} for sampled points", value)
    seconds = sampled_seconds(settings, body.sketches * body.repetitions)
    if seconds > _SAMPLED_SECONDS:
        raise InputError(
            "sampled",
            f"points must take at most {_SAMPLED_SECONDS:g} s: lower d, N, the range or the sketches",
            f"about {seconds:.3g} s",
        )


def longer_or_more(body: TradeoffBody, progress: Progress) -> Answer:
    """The risk along P at fixed tokens, tested at the own length and at common ones."""
    setting = body.setting()
    tokens = int(body.tokens)
    lengths = split_lengths(tokens, body.points)
    answer = tradeoff(setting, tokens, lengths=lengths, eval_lengths=[int(P) for P in body.eval_lengths])
    return {
        "badge": badge(setting),
        "tokens": tokens,
        "rows": [asdict(row) | {"reducible": row.reducible} for row in answer.rows],
        "best": answer.best,
        "accuracy": f"relative error about 1/M = {1 / setting.M:.2g}",
        "copy": copy_tradeoff(body, lengths),
        "flags": merge_flags(answer.flags, "P", [row.P for row in answer.rows]),
    }


def planner(body: PlanBody, progress: Progress) -> Answer:
    """The allocation, the curve of best widths, the corollary, the three programs, and why they differ."""
    schedule = body.schedule.build()
    eval_length = None if body.eval_length is None else int(body.eval_length)
    answer = plan(body.teacher, body.budget, schedule=schedule, d=body.d, eval_length=eval_length)
    best, risk = answer.finite.best, answer.finite.risk
    point = Setting(
        teacher=body.teacher, M=best.M, N=best.N, P=best.P, d=body.d, eval_length=eval_length,
        schedule=schedule.with_steps(best.L),
    )  # fmt: skip
    law = answer.corollary
    return {
        "badge": badge(point),
        "phase": answer.phase,
        "K": answer.K,
        "tau": answer.tau,
        "tau_crit": None if law is None else law.tau_crit,
        "corollary": None if law is None else asdict(law.exponents),
        "programs": {
            name: None
            if program is None
            else asdict(program.exponents) | {"ranges": program.ranges, "binding": program.binding}
            for name, program in answer.programs.items()
        },
        "best": asdict(best) | {"tokens": best.tokens, "compute": best.compute},
        "flat": answer.finite.flat,
        "terms": with_sums({name: getattr(risk, name) for name in TERMS}),
        "accuracy": risk.accuracy,
        "isoflop": [asdict(a) | {"tokens": a.tokens, "compute": a.compute} for a in answer.finite.isoflop],
        "by_length": [asdict(a) for a in answer.finite.by_length],
        "confirmation": None if answer.confirmation is None else _confirmation(answer.confirmation),
        "tested": "own" if eval_length is None else eval_length,
        "notes": answer.notes,
        "copy": copy_plan(body),
        "flags": answer.flags,
    }


def six_panels(body: str | None, progress: Progress) -> Answer:
    """The paper's six panels, from a reproduce folder or from the equivalent rung."""
    return panels(body)


VIEWS: dict[str, Callable[[Any, Progress], Answer]] = {
    "spectrum": spectrum,
    "curve": curve,
    "sampled": sampled,
    "tradeoff": longer_or_more,
    "plan": planner,
    "panels": six_panels,
}


def _row(setting: Setting, risk: Risk) -> Answer:
    return columns(setting) | with_sums({name: getattr(risk, name) for name in TERMS})


def _number(name: str, meaning: str, value: float | None, accuracy: str) -> Answer:
    return {"name": name, "meaning": meaning, "value": value, "accuracy": accuracy}


def _confirmation(risk: Risk) -> Answer:
    return {"reducible": risk.reducible, "standard_error": risk.standard_error.get("reducible")}


def _or_none(compute: Callable[[], Any]) -> Any:
    """The theorem's numbers where the exponents allow them."""
    try:
        return compute()
    except NO_NUMBER:
        return None


def _broken(flags: Sequence[str]) -> str:
    """The sentence of a badge outside the theorem: what it needs and what it got."""
    needs = "; ".join(flag.partition(": ")[2] for flag in flags)
    return f"{needs[0].upper()}{needs[1:]}. Computed all the same."


def _guides(settings: Sequence[Setting], rows: Sequence[Answer]) -> Answer:
    """The theorem's shape of each term where the theorem holds, scaled to the middle of these points."""
    covered = [k for k, setting in enumerate(settings) if not setting_flags(setting)]

    def shapes() -> dict[str, list[float]]:
        columns: dict[str, list[float]] = {"approx": [], "bias": [], "variance": []}
        for setting in (settings[k] for k in covered):
            teacher = setting.teacher
            assert isinstance(teacher, Teacher)
            M, N, P, R = setting.M, setting.N, setting.P, setting.schedule.horizon
            columns["approx"].append(approx_guide(teacher, M, P))
            columns["bias"].append(bias_guide(teacher, R, P))
            columns["variance"].append(min(M, guide_cutoff(teacher, R, P)) / (N * P))
        return columns

    guides: Answer = {}
    for name, values in (_or_none(shapes) or {}).items() if covered else ():
        middle = len(covered) // 2
        if values[middle] > 0:
            scale = rows[covered[middle]][name] / values[middle]
            found = dict(zip(covered, (scale * value for value in values), strict=True))
            guides[name] = [found.get(k) for k in range(len(rows))]  # None: a gap in the line
    return guides


def _slope(axis: str, name: str, rows: Sequence[Answer]) -> Answer | None:
    """The log–log slope, where the term is positive everywhere."""
    y = [row[name] for row in rows]
    if len(rows) < 3 or not all(0 < value < math.inf for value in y):
        return None
    fit = fit_power_law([row[axis] for row in rows], y)
    return {"slope": fit.slope, "se": fit.se}
