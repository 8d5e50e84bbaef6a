"""What each view shows, computed: a body in, a dict of numbers out. Runs in a worker."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

from seqlaw.answers.curve import MARK, SAMPLED_RUNG, Curve
from seqlaw.answers.curve import curve as sample_curve
from seqlaw.answers.plan import plan
from seqlaw.answers.rates import rates
from seqlaw.answers.risk import answered
from seqlaw.answers.spectrum import NO_NUMBER, averaged_spectrum
from seqlaw.answers.tradeoff import tradeoff
from seqlaw.answers.words import REMARKS, sentence, words_alone
from seqlaw.files import plain
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import InputError
from seqlaw.model.flags import Flag
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Teacher
from seqlaw.planning.tradeoff import split_lengths
from seqlaw.rungs.ask import along, require_answerable, rung_of
from seqlaw.rungs.equivalent import equivalent_risks
from seqlaw.rungs.rates import approx_guide, bias_guide, guide_cutoff
from seqlaw.rungs.rung import Draws, Progress
from seqlaw.web.copying import copy_curve, copy_plan, copy_spectrum, copy_tradeoff
from seqlaw.web.panels import panels
from seqlaw.web.schema import SAMPLED, CurveBody, PlanBody, Question, SampledBody, TradeoffBody

Answer = dict[str, Any]
_SENTENCES = {
    "I": "θ ≥ α: innovations rule the spectrum. To leading order only the number of tokens counts, "
    "not how they are cut.",
    "II": "α − 2r ≤ θ < α: the initialization has the heavier tail. Longer sequences wash it out.",
}
_SPECTRUM_POINTS = 240
_SAMPLED_SECONDS = 120.0


def to_json(answer: Answer) -> bytes:
    """The answer as JSON; what is not finite becomes null and a flag."""
    lost: list[Flag] = []
    # A condition of the badge may ask for "above zero": no news for the reader.
    body = {name: plain(part, name, [] if name == "badge" else lost) for name, part in answer.items()}
    if lost:
        body["flags"] = [*body.get("flags", []), *_counted(lost)]
    return json.dumps(body, allow_nan=False, separators=(",", ":")).encode()


def _counted(lost: list[Flag]) -> list[str]:
    """One flag a kind ("infinite", "undefined"), with how many more there are."""
    kinds = Counter(one.code for one in lost)
    first = {one.code: one for one in reversed(lost)}
    return [words(first[kind]) + (f" (and {n - 1} more)" if n > 1 else "") for kind, n in kinds.items()]


def words(flag: Flag) -> str:
    """A flag as a reader of the page is told it, who has the commands to copy."""
    return sentence(flag, "cli")


def badge(setting: Setting) -> Answer:
    """The regime, each condition of the theorem with its value, and the assumptions that are broken."""
    teacher, flags = setting.teacher, setting_flags(setting)
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
        "flags": [words(flag) for flag in flags],
    }
    with suppress(*NO_NUMBER):  # no exponents there: the flags say which assumption breaks
        law = rates(setting)
        answer |= {"conditions": law.conditions, "exponents": law.exponents}
    return answer


def spectrum(body: Question, progress: Progress) -> Answer:
    """h_P with its two parts, where they cross (m_P) and how far training reaches (κ)."""
    found = averaged_spectrum(body.setting(), points=_SPECTRUM_POINTS)
    setting, orders = found.setting, found.orders
    point = equivalent_risks([setting])[0]
    return {
        "badge": badge(setting),
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
                point.accuracy["approx"],
            ),
        ],
        "copy": copy_spectrum(setting, points=_SPECTRUM_POINTS, last=int(found.j[-1]), orders=bool(orders)),
        **_flags(point.flags),
    }  # fmt: skip


def curve(body: CurveBody, progress: Progress) -> Answer:
    """The terms along one size, at the setting itself (unless quick), slopes, and the theorem's guides."""
    setting, rung = body.setting(), rung_of(body.rung)
    settings = [*along(setting, body.along, body.values()), *([] if body.quick else [setting])]
    draws = Draws()
    require_answerable(rung, settings)
    risks = answered(settings, rung.quick(settings) if body.quick else rung.risks(settings, draws), draws)
    point = None if body.quick else risks.pop()
    found = Curve(setting=setting, along=body.along, values=tuple(body.values()), risks=tuple(risks))
    tested_apart = any(risk.setting.test_length != risk.setting.P for risk in risks)
    return {
        "badge": badge(setting),
        **_shown(found),
        "tested": "own" if not tested_apart else setting.test_length,
        "guides": {} if tested_apart else _guides(settings[: len(risks)], found.points),
        "point": None if point is None else point.point,
        "accuracy": risks[0].accuracy if point is None else point.accuracy,
        "slopes": found.slopes,
        "se_is": found.se_is,
        "mark": None if found.interpolation is None else {"at": found.interpolation, "words": MARK},
        "copy": copy_curve(body),
    }


def sampled(body: SampledBody, progress: Progress) -> Answer:
    """The terms along one size, measured on sampled data sets, with standard errors."""
    settings = along(body.setting(), body.along, body.values())
    _check_sampled(body, settings)
    found = sample_curve(
        body.setting(),
        body.along,
        body.values(),
        rung=SAMPLED_RUNG,
        sketches=body.sketches,
        repetitions=body.repetitions,
        seed=body.seed,
        progress=progress,
    )
    return {**_shown(found), "rows": found.fields()["rows"], "copy": copy_curve(body)}


def _shown(found: Curve) -> Answer:
    rows = [_known(row) for row in found.points]
    return {"along": found.along, "rung": found.rung, "rows": rows, **_flags(found.flagged())}


def _flags(flags: Sequence[Flag]) -> Answer:
    """Warnings, and apart from them what is true of a rung everywhere."""
    return {
        "flags": [words(flag) for flag in flags if flag.code not in REMARKS],
        "remarks": [words(flag) for flag in flags if flag.code in REMARKS],
    }


def _check_sampled(body: SampledBody, settings: Sequence[Setting]) -> None:
    for name, value in (("M", max(s.M for s in settings)), ("d", float(settings[0].d or 0))):
        if value > SAMPLED[name]:
            field = "stop" if name == body.along else name
            raise InputError(field, f"must be at most {SAMPLED[name]} for sampled points", value)
    draws = Draws(sketches=body.sketches, repetitions=body.repetitions, seed=body.seed)
    seconds = rung_of(SAMPLED_RUNG).cost(settings, draws).seconds
    if seconds > _SAMPLED_SECONDS:
        raise InputError(
            "sampled",
            f"points must take at most {_SAMPLED_SECONDS:g} s: lower d, N, the range or the sketches",
            f"about {seconds:.3g} s",
        )


def longer_or_more(body: TradeoffBody, progress: Progress) -> Answer:
    """The risk along P at fixed tokens, tested at the own length and at common ones."""
    setting = body.setting()
    lengths = split_lengths(int(body.tokens), body.points)
    found = tradeoff(setting, body.tokens, lengths=lengths, eval_lengths=[int(P) for P in body.eval_lengths])
    return {
        "badge": badge(setting),
        "tokens": found.tokens,
        **found.fields(),
        "accuracy": f"relative error about 1/M = {1 / setting.M:.2g}",
        "copy": copy_tradeoff(body, lengths),
        **_flags(found.flagged()),
    }


def planner(body: PlanBody, progress: Progress) -> Answer:
    """The allocation, the curve of best widths, the corollary, the three programs, and why they differ."""
    tested = None if body.eval_length is None else int(body.eval_length)
    schedule = body.schedule.build()
    found = plan(body.teacher, body.budget, schedule=schedule, d=body.d, eval_length=tested)
    return {
        "badge": badge(found.setting),
        **found.fields(),
        "notes": list(found.notes),
        "budget": {"compute": body.budget.compute, "tokens": body.budget.tokens},
        "tested": "own" if tested is None else tested,
        "copy": copy_plan(body),
        **_flags(found.flagged()),
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


def _known(row: Answer) -> Answer:
    """d = inf, an input, as the null that JSON has for it, without a flag."""
    return row | {"d": None if row["d"] == math.inf else row["d"]}


def _number(name: str, meaning: str, value: float | None, accuracy: str) -> Answer:
    return {"name": name, "meaning": meaning, "value": value, "accuracy": accuracy}


def _broken(flags: Sequence[Flag]) -> str:
    """The sentence of a badge outside the theorem: what it needs and what it got."""
    needs = "; ".join(words_alone(flag, "cli") for flag in flags)
    return f"{needs[0].upper()}{needs[1:]}. Computed all the same."


def _guides(settings: Sequence[Setting], rows: Sequence[Answer]) -> Answer:
    """The theorem's shape of each term where the theorem holds, scaled to the middle of these points."""
    covered = [k for k, setting in enumerate(settings) if not setting_flags(setting)]
    guides: Answer = {}
    with suppress(*NO_NUMBER):
        shapes = [_shape(settings[k]) for k in covered]
        for name in shapes[0] if shapes else ():
            middle = len(covered) // 2
            if shapes[middle][name] > 0:
                scale = rows[covered[middle]][name] / shapes[middle][name]
                found = {k: scale * shape[name] for k, shape in zip(covered, shapes, strict=True)}
                guides[name] = [found.get(k) for k in range(len(rows))]  # None: a gap in the line
    return guides


def _shape(setting: Setting) -> dict[str, float]:
    teacher, M, R, P = setting.teacher, setting.M, setting.schedule.horizon, setting.one_length
    assert isinstance(teacher, Teacher)
    return {
        "approx": approx_guide(teacher, M, P),
        "bias": bias_guide(teacher, R, P),
        "variance": min(M, guide_cutoff(teacher, R, P)) / (setting.N * P),
    }
