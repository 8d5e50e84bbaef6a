"""What the API takes and gives: the settings of the library, with the ceilings that a shared server needs.

Nothing is checked twice. The bodies carry numbers to `Teacher`, the schedules, `Setting` and `Budget`, which
know the rules; only the ceilings below belong to the server.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from seqlaw.files import make_schedule
from seqlaw.methods.ask import along, spaced
from seqlaw.model.checks import InputError, whole
from seqlaw.model.schedule import GAMMA, STEPS, Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Teacher, as_teacher
from seqlaw.planning.budget import Budget

METHOD = "equivalent"
LARGEST = 1e15
"""The largest size: whole numbers up to it are exact in JSON."""
MOST_POINTS = 64
MOST_TESTS = 4
SAMPLED = {"M": 256, "d": 1024, "sketches": 16, "repetitions": 8, "points": 16}
"""Ceilings of a sampled job; `views.sampled_seconds` bounds the whole of it."""
ONE_PASS = {"points": 24, "steps": 10**12}
"""Ceilings of one pass, where a point takes up to 0.3 s, and as much again to tune its step."""
LADDER = {"M": 128, "d": 1024, "sketches": 8, "points": 25}
"""Ceilings of the view of ladders, which multiplies M×M matrices."""
LIMITS: dict[str, Any] = {
    "size": LARGEST,
    "points": MOST_POINTS,
    "eval_lengths": MOST_TESTS,
    "sampled": SAMPLED,
    "one_pass": ONE_PASS,
    "ladder": LADDER,
}

_STRICT = {"extra": "forbid"}  # to pydantic, which reads the dataclasses: an unknown field is an error
Size = Annotated[
    float,
    Field(le=LARGEST),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": int(LARGEST)}),
]
Modes = Annotated[
    float, WithJsonSchema({"anyOf": [{"type": "number", "minimum": 1}, {"type": "string", "const": "inf"}]})
]
Points = Annotated[int, Field(ge=2, le=MOST_POINTS)]


Preset = Literal["regime1", "regime2"]
Kind = Literal["wsd", "block", "constant", "cosine"]


@dataclass(frozen=True, kw_only=True)
class ScheduleBody:
    """A kind of schedule, its peak step, and its steps L (30000 unless given) or its horizon R."""

    kind: Kind = "wsd"
    gamma: float = GAMMA
    L: Size | None = None
    R: Annotated[float, Field(le=LARGEST)] | None = None
    warmup: float | None = None
    decay: float | None = None
    beta: float | None = None
    """Momentum of the constant schedule."""
    nesterov: bool = False
    __pydantic_config__ = _STRICT

    def __post_init__(self) -> None:
        self.build()

    def build(self) -> Schedule:
        L = STEPS if self.L is None and self.R is None else self.L
        schedule = make_schedule(
            self.kind,
            gamma=self.gamma,
            L=L,
            R=self.R,
            shape={
                "warmup": self.warmup,
                "decay": self.decay,
                "beta": self.beta,
                "nesterov": self.nesterov or None,
            },
        )
        if schedule.L > LARGEST:
            raise InputError("R", f"must ask for at most {LARGEST:g} steps", self.R)
        return schedule


def _preset(value: Any) -> Any:
    return as_teacher("teacher", value) if isinstance(value, str) else value


def _kind(value: Any) -> Any:
    return {"kind": value} if isinstance(value, str) else value  # no import path: a server runs no such code


NamedTeacher = Annotated[Teacher, BeforeValidator(_preset, json_schema_input_type=Teacher | Preset)]
"""A teacher's numbers, or a preset's name."""
NamedSchedule = Annotated[ScheduleBody, BeforeValidator(_kind, json_schema_input_type=ScheduleBody | Kind)]
"""A schedule, or its kind alone."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """One setting: `seqlaw.Setting` as JSON, with N or, in one pass, a batch. `d` may be the string "inf"."""

    teacher: NamedTeacher
    M: Size
    N: Size | None = None
    P: Size
    d: Modes
    schedule: NamedSchedule
    eval_length: Size | None = None
    batch: Size | None = None
    """Fresh trajectories a step, in one pass."""
    tune: bool = False
    """One pass: the best step at each point instead of gamma."""
    safeguard: bool = True
    """False, in one pass: gamma as given, be it too large."""
    __pydantic_config__ = _STRICT

    def __post_init__(self) -> None:
        self.setting()
        if self.tune and self.batch is None:
            raise InputError("tune", "can be chosen in one pass only (give a batch)", self.tune)

    def require_few(self, points: int) -> None:
        """Raise where one pass would be solved at too many points."""
        if self.batch is not None and points > ONE_PASS["points"]:
            raise InputError("points", f"must be at most {ONE_PASS['points']} in one pass", points)

    def setting(self) -> Setting:
        return Setting(
            teacher=self.teacher,
            M=whole("M", self.M),
            N=None if self.N is None else whole("N", self.N),
            P=whole("P", self.P),
            d=self.d,
            schedule=self.schedule.build(),
            eval_length=None if self.eval_length is None else whole("eval_length", self.eval_length),
            batch=None if self.batch is None else whole("batch", self.batch),
            safeguard=self.safeguard,
        )


@dataclass(frozen=True, kw_only=True)
class Along(Question):
    """The setting with one size varied from `start` to `stop`, evenly in the logarithm."""

    along: Literal["M", "N", "P", "R", "b"] = "P"
    """b, the batch, in one pass only; N not there."""
    start: Annotated[float, Field(le=LARGEST)] = 2
    stop: Annotated[float, Field(le=LARGEST)] = 4096
    points: Points = ONE_PASS["points"]
    tokens: Size | None = None
    """One pass: batch·P·L at every point; the steps follow."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.require_few(self.points)
        if self.tune and self.along == "R":
            raise InputError("tune", "cannot be chosen along R, which the step sets", self.tune)
        self.values()

    def settings(self) -> list[Setting]:
        """One for each point, before any step is tuned."""
        return along(self.setting(), self.along, self.values(), tokens=self.tokens)

    def values(self) -> list[float]:
        if self.along != "R":
            for name in ("start", "stop"):
                whole(name, getattr(self, name))
        if not 0 < self.start < self.stop < math.inf:
            raise InputError("stop", "must be above the start, which must be positive", self.stop)
        if self.along == "M" and self.stop > self.d:
            raise InputError("stop", f"must be at most d = {self.d:g}", self.stop)
        if self.along == "R":
            try:
                self.schedule.build().with_horizon(self.start)
            except InputError as error:  # too short for the schedule's phases
                raise InputError("start", f"is too short: {error.field} {error.rule}", self.start) from None
        return spaced(self.along, self.start, self.stop, self.points)


@dataclass(frozen=True, kw_only=True)
class CurveBody(Along):
    """A curve of the server's method, which no request can change: it may be code of the user's."""

    quick: bool = False
    """Coarser sums (2e-4 of the risk instead of 1e-6), for a slider that is moving."""


@dataclass(frozen=True, kw_only=True)
class SampledBody(Along):
    """A curve to be sampled: sketches, data sets a sketch, and the seed of both."""

    points: Annotated[int, Field(ge=2, le=SAMPLED["points"])] = 6
    sketches: Annotated[int, Field(ge=1, le=SAMPLED["sketches"])] = 3
    repetitions: Annotated[int, Field(ge=1, le=SAMPLED["repetitions"])] = 1
    seed: Annotated[int, Field(ge=0, le=2**53)] = 0
    epochs: Annotated[int, Field(ge=1, le=LARGEST)] = 1
    """With a batch: how often each sequence is used, shuffled anew in each epoch."""

    def setting(self) -> Setting:
        return super().setting().but(epochs=self.epochs)


@dataclass(frozen=True, kw_only=True)
class TradeoffBody(Question):
    """Tokens to split, and the common test lengths beside the training length."""

    tokens: Size = 1e6
    eval_lengths: Annotated[list[Size], Field(min_length=1, max_length=MOST_TESTS)]
    points: Annotated[int, Field(ge=2, le=25)] = 13

    def __post_init__(self) -> None:
        super().__post_init__()
        # Tests of one training share it, but each test has a best step of its own.
        self.require_few(self.points * (1 + len(self.eval_lengths) if self.tune else 1))
        whole("tokens", self.tokens, least=2)
        for length in self.eval_lengths:
            whole("eval_lengths", length)


@dataclass(frozen=True, kw_only=True)
class PlanBody:
    """A teacher, a schedule's kind and peak step, and the budgets."""

    teacher: NamedTeacher
    schedule: NamedSchedule
    budget: Budget
    d: Modes
    eval_length: Size | None = None
    __pydantic_config__ = _STRICT

    def __post_init__(self) -> None:
        for name in ("compute", "tokens"):
            if getattr(self.budget, name) > 1e30:
                raise InputError(f"budget.{name}", "must be at most 1e30", getattr(self.budget, name))
        if self.d != math.inf:
            whole("d", self.d)
        if self.eval_length is not None:
            whole("eval_length", self.eval_length)


@dataclass(frozen=True, kw_only=True)
class LadderBody:
    """Two lengths one after the other, at shares of the longer, for a test at `eval_length` (the longer)."""

    teacher: NamedTeacher
    M: Annotated[float, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": LADDER["M"]})]
    d: Annotated[float, WithJsonSchema({"type": "integer", "minimum": 1, "maximum": LADDER["d"]})]
    schedule: NamedSchedule
    tokens: Size = 2**24
    short: Size = 2
    long: Size = 4096
    share: Annotated[float, Field(ge=0.02, le=0.98)] = 0.35
    """Of the steps, for the longer length: one of the points."""
    eval_length: Size | None = None
    points: Annotated[int, Field(ge=2, le=LADDER["points"])] = 13
    sketches: Annotated[int, Field(ge=2, le=LADDER["sketches"])] = 4
    __pydantic_config__ = _STRICT

    def __post_init__(self) -> None:
        for name in ("M", "d"):
            if getattr(self, name) > LADDER[name]:
                rule = f"must be at most {LADDER[name]} in this view"
                raise InputError(name, rule, getattr(self, name))
        self.setting()
        if whole("short", self.short) >= whole("long", self.long):
            raise InputError("long", f"must be above the shorter, {self.short:g}", self.long)

    def setting(self) -> Setting:
        return Setting(
            teacher=self.teacher,
            M=whole("M", self.M),
            N=1,
            P=2,
            d=self.d,
            schedule=self.schedule.build(),
            eval_length=whole("eval_length", self.long if self.eval_length is None else self.eval_length),
        )

    def shares(self) -> list[float]:
        """Evenly from 0.02 to 0.98, and the one that was asked for."""
        even = [round(0.02 + 0.96 * k / (self.points - 1), 4) for k in range(self.points)]
        return sorted({*even, float(self.share)})


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
