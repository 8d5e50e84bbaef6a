"""What each view shows, computed: a body in, a dict of numbers out. Runs in a worker."""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

from seqlaw.answers.curve import MARK, Curve
from seqlaw.answers.rates import rates
from seqlaw.answers.risk import DEARER, answered, two_digits
from seqlaw.answers.spectrum import NO_NUMBER, AveragedSpectrum
from seqlaw.answers.words import REMARKS, sentence, words_alone
from seqlaw.files import plain
from seqlaw.methods.ask import METHODS, along, method_of, require_answerable
from seqlaw.methods.best_step import Best, tuned
from seqlaw.methods.equivalent import Equivalent, equivalent_risks
from seqlaw.methods.method import SHORT, Draws, Progress
from seqlaw.methods.one_pass.reuse import effective_reuse
from seqlaw.methods.one_pass.tuning import critical_tokens, with_tokens
from seqlaw.methods.rates import approx_guide, bias_guide, guide_cutoff
from seqlaw.methods.terms import Risk
from seqlaw.model.amount import amount
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import InputError, needs
from seqlaw.model.flags import Flag
from seqlaw.model.lengths import mean_length
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import SingularProblem
from seqlaw.model.teacher import Teacher
from seqlaw.questions.planning import Plan
from seqlaw.questions.question import Question
from seqlaw.questions.risk import Spectrum
from seqlaw.web.panels import panels
from seqlaw.web.schema import ONE_PASS, SAMPLED, Moving, Pair, Sampled, Split

Answer = dict[str, Any]
_SAMPLED_SECONDS = 120.0
_LESS = {True: "d, N", False: "d, b, the steps"}
_SENTENCES = {
    "I": "θ ≥ α: innovations rule the spectrum. To leading order only the number of tokens counts, "
    "not how they are cut.",
    "II": "α − 2r ≤ θ < α: the initialization has the heavier tail. Longer sequences wash it out.",
}
_ONCE = "The theorem trains on the full batch, one pass on fresh sequences in every step."


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
    if setting.batch is not None:
        return answer | {"sentence": f"{answer['sentence']} {_ONCE}"}
    with suppress(*NO_NUMBER):  # no exponents there: the flags say which assumption breaks
        law = rates(setting)
        answer |= {"conditions": law.conditions, "exponents": law.exponents}
    return answer


def _broken(flags: Sequence[Flag]) -> str:
    """The sentence of a badge outside the theorem: what it needs and what it got."""
    needs = "; ".join(words_alone(flag, "cli") for flag in flags)
    return f"{needs[0].upper()}{needs[1:]}. The numbers are computed anyway."


def _view(asked: Question, setting: Setting, flags: Sequence[Flag], **fields: Any) -> Answer:
    """A view: its fields, with what stands around each."""
    return {"badge": badge(setting), **fields, "copy": asked.copies(), **told(flags)}


def told(flags: Sequence[Flag]) -> Answer:
    """Flags for the reader: warnings, and apart from them what is true of a method everywhere."""
    return {
        "flags": [words(flag) for flag in flags if flag.code not in REMARKS],
        "remarks": [words(flag) for flag in flags if flag.code in REMARKS],
    }


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


def _found(method: str) -> str:
    """The server's method; code of the user's was named by the command, and may lie in this folder."""
    if method not in METHODS and "" not in sys.path:
        sys.path.append("")
    return method


def spectrum(asked: Spectrum, progress: Progress) -> Answer:
    """h_P with its two parts, where they cross (m_P) and how far training reaches (κ)."""
    found = asked.ask()
    assert isinstance(found, AveragedSpectrum)
    setting, orders = found.setting, found.orders
    point = equivalent_risks([setting])[0]
    fields = {name: getattr(found, name) for name in ("j", "initial", "innovation", "total")} | {
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
                point.stated["approx"],
            ),
        ],
    }  # fmt: skip
    return _view(asked, setting, point.flags, **fields)


def curve(asked: tuple[Moving, str], progress: Progress) -> Answer:
    """The terms along one size, at the setting itself (unless quick), slopes, and the theorem's guides."""
    body, name = replace(asked[0], method=asked[1]), asked[1]
    if body.tune and body.along == "R":
        raise InputError("gamma", "cannot be best along R, which the step sets", "best")
    given, method = body.call().arguments, method_of(_found(name))
    setting, values = given["setting"], given["values"]
    settings = along(setting, body.along, values, tokens=body.tokens)
    if body.tokens is not None:
        setting = with_tokens(setting, body.tokens)
    settings = [*settings, *([] if body.quick else [setting])]
    draws = Draws()
    require_answerable(method, settings)
    _require_few_steps(settings, "stop" if body.along == "R" else "L" if body.tokens is None else "tokens")
    best = tuned(settings) if body.tune else [Best(one) for one in settings]
    settings = [one.setting for one in best]
    found_risks = method.quick(settings) if body.quick else method.risks(settings, draws)
    told_risks = [one.told(risk) for one, risk in zip(best, found_risks, strict=True)]
    risks = answered(settings, told_risks, draws)
    point = None if body.quick else risks.pop()
    axis = SHORT.get(body.along, body.along)
    reuse = None
    if axis == "epochs" and body.tune and not body.quick:
        reuse = tuple(effective_reuse(settings[: len(risks)]))
    found = Curve(setting=setting, along=axis, values=tuple(values), risks=tuple(risks), reuse=reuse)
    tested_apart = any(risk.setting.test_length != risk.setting.P for risk in risks)
    once = setting.batch is not None
    fields = {
        "tested": axis if axis == "position" else setting.test_length if tested_apart else "own",
        "derived": {"N": setting.N, "tokens": setting.tokens} if once else {},
        "guides": {} if tested_apart or once else _guides(settings[: len(risks)], found.points),
        "tokens": body.tokens,
        "point": None if point is None else point.point,
        "accuracy": (risks[0] if point is None else point).stated,
        "slopes": found.slopes,
        "se_is": found.se_is,
    }
    return _view(body, setting, found.flagged(), **_rows(found), **fields, **_marked(found, body))


def _marked(found: Curve, body: Moving) -> Answer:
    """Where tokens are as many as dimensions; along b at fixed tokens, beyond which batch they are wasted.

    Along epochs what repeating is worth, and where it begins to hurt.
    """
    at, text, notes = found.interpolation, MARK, list[str]()
    if found.along == "epochs" and not body.quick:
        notes = [found.sentence]
    if found.along == "batch" and body.tokens is not None and not body.quick:
        critical = critical_tokens(found.setting)
        if math.isfinite(critical):
            batch = critical / mean_length(found.setting.P)
            at, text = batch if body.tune else None, "critical batch"
            notes = [f"With {amount(body.tokens)} tokens and the best step for each batch: beyond about "
                     f"{two_digits(critical)} tokens a step, a batch of {two_digits(batch)}, bias + variance "
                     f"are {DEARER}."]  # fmt: skip
    seen = at is not None and body.start <= at <= body.stop
    return {"mark": {"at": at, "words": text} if seen else None, "notes": notes}


def _require_few_steps(settings: Sequence[Setting], field: str) -> None:
    """One pass takes longer the more steps it has, if slowly."""
    most = max(one.schedule.L for one in settings)
    if settings[0].batch is not None and most > ONE_PASS["steps"]:
        raise InputError(field, f"must ask for at most {ONE_PASS['steps']:g} steps in one pass", most)


def sampled(asked: Sampled, progress: Progress) -> Answer:
    """The terms along one size, measured on drawn data sets, with standard errors."""
    call = asked.call()
    setting, values = call.arguments["setting"], call.arguments["values"]
    _check_sampled(asked, along(setting, asked.along, values, tokens=asked.tokens))
    found = replace(call, arguments={**call.arguments, "workers": 1})(progress)
    rows = {"rows": found.fields()["rows"], "copy": asked.copies()}
    return _rows(found) | rows | told(found.flagged())


def _rows(found: Curve) -> Answer:
    """The points; d = inf, an input, as the null that JSON has for it, without a flag."""
    rows = [row | {"d": None if row["d"] == math.inf else row["d"]} for row in found.points]
    return {"along": found.along, "method": found.method, "rows": rows}


def _check_sampled(body: Sampled, settings: Sequence[Setting]) -> None:
    method = method_of(body.method)
    if method.library is not None and find_spec(method.library[0]) is None:
        raise InputError("method", needs(*method.library), body.method)
    for name, value in (("M", max(s.M for s in settings)), ("d", float(settings[0].d or 0))):
        if value > SAMPLED[name]:
            field = "stop" if name == body.along else name
            raise InputError(field, f"must be at most {SAMPLED[name]} for sampled points", value)
    require_answerable(method, settings)
    draws = Draws(sketches=body.sketches, repetitions=body.repetitions, seed=body.seed)
    seconds = method.work(settings, draws)
    if seconds > _SAMPLED_SECONDS:
        raise InputError(
            "sampled",
            f"points must take at most {_SAMPLED_SECONDS:g} s: lower {_LESS[body.batch is None]}, the range "
            "or the sketches",
            f"about {seconds:.3g} s",
        )


class _Quick(Equivalent):
    """Coarser sums, for a slider that is moving."""

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        return self.quick(settings)


def longer_or_more(asked: Split, progress: Progress) -> Answer:
    """The risk along P at fixed tokens, tested at the own length and at common ones."""
    call = asked.call()
    setting, lengths = call.arguments["setting"], call.arguments["lengths"]
    rough = ""
    if setting.batch is not None:
        rough = ", of the variance 3/M"
        _require_few_steps([with_tokens(replace(setting, P=lengths[0]), call.arguments["tokens"])], "tokens")
    found = replace(call, arguments={**call.arguments, "method": _Quick()})() if asked.quick else call()
    accuracy = f"relative error about 1/M = {1 / setting.M:.2g}{rough}"
    fields = {"tokens": found.tokens, "batch": setting.batch, **found.fields(), "accuracy": accuracy}
    return _view(asked, setting, found.flagged(), **fields)


def planner(asked: Plan, progress: Progress) -> Answer:
    """The allocation, the curve of best widths, the corollary, the three programs, and why they differ."""
    found = replace(asked.call(), arguments={**asked.call().arguments, "workers": 1})()
    own = {
        "notes": [found.sentence] if asked.one_pass else list(found.notes),
        "budget": {"compute": asked.compute, "tokens": asked.tokens},
        "tested": "own" if asked.eval_length is None else asked.eval_length,
    }
    return _view(asked, found.setting, found.flagged(), **found.fields() | own)


def ladders(asked: Pair, progress: Progress) -> Answer:
    """Two lengths against the share of the longer: short first, long first, mixed, and each alone."""
    call = asked.call()
    try:
        found = call()
    except SingularProblem as error:
        raise InputError("M", f"is too wide for this teacher: {error}", asked.M) from None
    own = {"candidates": asked.candidates, "tokens": found.tokens, "eval_length": found.eval_length}
    fields = found.fields() | own | {"notes": [found.sentence]}
    shown = _view(asked, call.arguments["setting"], found.flagged(), **fields)
    shown["badge"]["conditions"] = []  # which are of one length each
    return shown


def six_panels(asked: tuple[str | None, str], progress: Progress) -> Answer:
    """The paper's six panels, from a reproduce folder or from the equivalent method."""
    folder, method = asked
    return panels(folder, _found(method))


VIEWS: dict[str, Callable[[Any, Progress], Answer]] = {
    "spectrum": spectrum,
    "curve": curve,
    "sampled": sampled,
    "tradeoff": longer_or_more,
    "plan": planner,
    "ladders": ladders,
    "panels": six_panels,
}


def _number(name: str, meaning: str, value: float | None, accuracy: str) -> Answer:
    return {"name": name, "meaning": meaning, "value": value, "accuracy": accuracy}


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
