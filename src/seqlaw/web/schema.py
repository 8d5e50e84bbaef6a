"""What the API takes and gives: the questions of the commands, with the ceilings that a shared server needs.

A body has the fields of a question, each read as the command reads it. Nothing is checked twice: only the
ceilings below belong to the server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, WithJsonSchema, create_model

from seqlaw.model import teacher
from seqlaw.model.checks import InputError
from seqlaw.model.network import NETWORKS
from seqlaw.model.optimizer import OPTIMIZERS
from seqlaw.model.teacher import PRESETS
from seqlaw.questions.options import FLAG, RANGE, SIZE, Option, like, option
from seqlaw.questions.planning import Ladder, Plan, Tradeoff
from seqlaw.questions.question import Question
from seqlaw.questions.risk import Curve, Spectrum

METHOD = "equivalent"
MEASURED = ("sampled", "trained")
"""The methods of measured points."""
LARGEST = 1e15
"""The largest size: whole numbers up to it are exact in JSON."""
SAMPLED = {"M": 256, "d": 1024}
"""Ceilings of a measured job's widths; `views.sampled_seconds` bounds the whole of it."""
MOST = {"eval_length": 4, "candidates": 2, "shares": 26}
"""How many a list may hold."""
ONE_PASS = {"points": 24, "steps": 10**12}
"""Ceilings of one pass, where a point takes up to 0.3 s, and as much again to tune its step."""


@dataclass(frozen=True, kw_only=True)
class Moving(Curve):
    """A curve of the server's method, which no request can change: it may be code of the user's."""

    points: int = option(ONE_PASS["points"], "How many values.", RANGE)
    quick: bool = option(
        False, "Coarser sums (2e-4 of the risk instead of 1e-6), for a moving slider.", RANGE
    )

    def __post_init__(self) -> None:
        require_few(self, self.points)


@dataclass(frozen=True, kw_only=True)
class Sampled(Curve):
    """A curve to be measured: sketches, data sets a sketch, and the seed of both; or networks to train."""

    method: str = like(Curve, "method", MEASURED[0], choices=MEASURED, words="method", web=True)
    network: str | None = like(
        Curve, "network", None, choices=("linear", *NETWORKS), words="student", web=True
    )
    optimizer: str | None = like(
        Curve, "optimizer", None, choices=("sgd", *OPTIMIZERS), words="optimizer", web=True
    )
    points: int = option(6, "How many values.", RANGE, words="points")
    sketches: int = option(3, "Sketches to average over.", RANGE, words="sketches")
    repetitions: int = option(1, "Data sets a sketch.", RANGE, words="data sets a sketch")


@dataclass(frozen=True, kw_only=True)
class Split(Tradeoff):
    """Tokens to split, and the common test lengths beside the training length."""

    points: int = option(13, "How many lengths.", RANGE)
    quick: bool = like(Moving, "quick", False)

    def __post_init__(self) -> None:
        # Tests of one training share it, but each test has a best step of its own.
        require_few(self, self.points * (1 + len(self.eval_length) if self.tune else 1))


@dataclass(frozen=True, kw_only=True)
class Pair(Ladder):
    """Two lengths one after the other, at shares of the longer."""

    candidates: tuple[int, ...] = option((2, 4096), "Two lengths.", RANGE)
    shares: tuple[float, ...] = option((0.35,), "Shares of the longer.", RANGE)


def require_few(question: Curve | Tradeoff, points: int) -> None:
    """Raise where one pass would be solved at too many points."""
    if question.batch is not None and points > ONE_PASS["points"]:
        raise InputError("points", f"must be at most {ONE_PASS['points']} in one pass", points)


@dataclass(frozen=True)
class View:
    """A question that the server takes: at most so much of a field, and fields that it does not take."""

    question: type[Question]
    most: Mapping[str, float] = field(default_factory=dict)
    without: tuple[str, ...] = ()

    def options(self) -> dict[str, Option]:
        """What a body may have."""
        found = self.question.options()
        return {name: one for name, one in found.items() if one.web and name not in self.without}

    def ceiling(self, name: str) -> float:
        return self.most.get(name, LARGEST)


VIEWS = {
    "spectrum": View(Spectrum, {"points": 240}),
    "curve": View(Moving, {"points": 64, "epochs": 64}, ("sketches", "repetitions", "seed")),
    "sampled": View(Sampled, {"points": 16, "sketches": 16, "repetitions": 8, "seed": 2**53}),
    "tradeoff": View(Split, {"points": 25, "epochs": 64}, ("sketches", "repetitions", "seed")),
    "plan": View(Plan, {"compute": 1e30, "tokens": 1e30}),
    "ladders": View(Pair, {"M": 128, "d": 1024, "sketches": 8, "shares": 1}, ("batch", "most_phases")),
}
"""The views that ask a question."""


def _read(view: View, name: str, one: Option, value: Any) -> Any:
    """A value of a body, as the command reads it, within the server's ceiling."""
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if one.choices and value not in one.choices:
        raise InputError(name, f"must be one of {', '.join(one.choices)}", value)
    found = one.read(name, value)
    most = view.ceiling(name)
    for number in found if isinstance(found, tuple) else [found]:
        if isinstance(number, (int, float)) and not isinstance(number, bool) and most < number < float("inf"):
            raise InputError(name, f"must be at most {most:g}", value)
    if isinstance(found, tuple) and not 1 <= len(found) <= MOST[name]:
        raise InputError(name, f"must name at least one and at most {MOST[name]}", value)
    if name in view.most and found == float("inf"):
        raise InputError(name, f"must be at most {most:g}", value)
    return found


def _schema(view: View, name: str, one: Option) -> dict[str, Any]:
    """What the OpenAPI document says of a field; null stands for the default."""
    schema = dict(one.kind.schema)
    if one.choices:
        schema["enum"] = list(one.choices)
    if schema.get("type") in ("integer", "number"):
        schema["maximum"] = view.ceiling(name)
    if one.repeated:
        schema = {"type": "array", "items": schema, "minItems": 1}
    return {"anyOf": [schema, {"type": "null"}], "title": one.words or name, "description": one.help}


def body_of(name: str, view: View) -> type[BaseModel]:
    """The body of a view, which pydantic reads."""
    fields: dict[str, Any] = {
        field: (
            Annotated[
                Any,
                BeforeValidator(partial(_read, view, field, one)),
                WithJsonSchema(_schema(view, field, one)),
            ],
            None,
        )
        for field, one in view.options().items()
    }
    return create_model(f"{name.title()}Body", __config__=ConfigDict(extra="forbid"), **fields)


def question_of(view: View, body: BaseModel) -> Question:
    """The question of a body; what is null or left out has its default."""
    given = {name: value for name, value in body if value is not None}
    return view.question(**given)


def controls() -> dict[str, Any]:
    """For each view the options that the explorer shows: label, default, panel, slider and choices."""
    return {
        view: {
            name: {
                "words": one.words,
                "panel": one.panel,
                "value": _first(view, name, one, asked.question.defaults()[name]),
                "whole": one.kind.schema is SIZE.schema or name == "d",
                "check": one.kind is FLAG,
                "choices": one.choices,
                **({} if one.slider is None else asdict(one.slider)),
            }
            for name, one in asked.options().items()
            if one.words
        }
        for view, asked in VIEWS.items()
    }


_FIRST: dict[Any, Any] = {
    **{name: getattr(PRESETS["regime2"], name) for name in teacher.NUMBERS},
    **{"M": 64, "N": 4096, "P": 32, "d": 1024, "L": 30000, "R": 3000, "batch": 8, "tokens": 1e6},
    **{"warmup": 0.1, "decay": 0.2, ("plan", "d"): "inf", ("plan", "tokens"): 1e8},
    **{("ladders", "d"): 512, ("ladders", "tokens"): 2**24, "network": "linear", "optimizer": "sgd"},
}
"""What the explorer starts with where a command's default is none, or too much to see at once."""


def _first(view: str, name: str, one: Option, default: Any) -> str:
    value = _FIRST.get((view, name), _FIRST.get(name, default))
    if value is None or value is False or value == float("inf") or name == "min_P":
        return ""
    if isinstance(value, tuple):
        return ", ".join(map(one.kind.write, value))
    return one.kind.write(value)


@dataclass(frozen=True, kw_only=True)
class Problem:
    """What was refused: the field, the rule it breaks, and the value; `also` what else is wrong."""

    field: str
    rule: str
    value: str
    message: str
    also: list[str] | None = None


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The body of every answer that is not a success."""

    error: Problem


@dataclass(frozen=True, kw_only=True)
class JobState:
    """A background job: its progress, and its answer or its problem once it has ended."""

    id: str
    state: Literal["waiting", "running", "done", "failed", "cancelled"]
    done: int
    total: int
    answer: dict[str, Any] | None = None
    error: Problem | None = None
