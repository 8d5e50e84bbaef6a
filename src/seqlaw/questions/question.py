"""What a question is, and how it is asked: one call of a public function.

A question is a frozen dataclass whose fields are options. The command line, the API, the explorer's controls
and the copied commands read nothing else, so that a new option is one new field.
"""

from __future__ import annotations

import inspect
import math
import shlex
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields, is_dataclass
from functools import cache
from typing import Any, ClassVar, Self

import seqlaw
from seqlaw.answers.answer import Answer
from seqlaw.model.checks import InputError
from seqlaw.model.lengths import Lengths
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import PRESETS
from seqlaw.questions.options import Option, options_of

Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Call:
    """A call of a public function: made to answer, and written out for people who go on in Python."""

    function: Callable[..., Any]
    arguments: Mapping[str, Any]

    def __call__(self, progress: Progress | None = None) -> Any:
        more = {"progress": progress} if "progress" in self._parameters() else {}
        return self.function(**self.arguments, **more)

    def _parameters(self) -> Mapping[str, inspect.Parameter]:
        return inspect.signature(self.function).parameters

    def python(self) -> str:
        """A script that makes this call."""
        names: set[str] = set()
        lines, arguments = [], []
        for name, parameter in self._parameters().items():
            value = self.arguments.get(name, parameter.default)
            if value == parameter.default or name == "workers":
                continue
            source = _source(value, names)
            if isinstance(value, Setting):
                lines, source = [f"{name} = {source}"], name
            given = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            arguments.append(source if given else f"{name}={source}")
        call = f"answer = {self.function.__name__}({', '.join(arguments)})"
        head = ["import math\n"] if any("math.inf" in line for line in (*lines, call)) else []
        home = "seqlaw" if self.function.__name__ in dir(seqlaw) else self.function.__module__
        places = {home: [self.function.__name__]}
        places.setdefault("seqlaw", []).extend(names)
        imported = [f"from {place} import {', '.join(sorted(own))}" for place, own in places.items() if own]
        return "\n".join([*head, *imported, "", *lines, call, "print(answer)"]) + "\n"


def _source(value: Any, names: set[str]) -> str:
    """Python that makes a value; `names` gains what is to be imported for it."""
    if isinstance(value, float) and value == math.inf:
        return "math.inf"
    if isinstance(value, Lengths):
        return repr(str(value))
    for name, preset in PRESETS.items():
        if value == preset:
            return repr(name)
    if is_dataclass(value) and not isinstance(value, type):
        kind = type(value)
        names.add(kind.__name__)
        given = {}
        for name, parameter in inspect.signature(kind).parameters.items():
            held = _held(value, name)
            if held is MISSING or name in _unsaid(value) or held == parameter.default:
                continue
            given[name] = _source(held, names)
        return f"{kind.__name__}({', '.join(f'{name}={text}' for name, text in given.items())})"
    return repr(value)


def _held(value: Any, name: str) -> Any:
    """What a value was made with; a setting keeps some of it inside its schedule."""
    if isinstance(value, Setting):
        if name == "schedule":
            return value.schedule.plain
        if name in ("precondition", "weight_decay"):
            return getattr(value.schedule, name) or MISSING
    return getattr(value, name, MISSING)


def _unsaid(value: Any) -> set[str]:
    """Parts of a setting that follow from others, or have their default."""
    if not isinstance(value, Setting):
        return set()
    once = value.batch is not None
    unsaid = {"training", "lengths", "N" if once else "batch"}
    unsaid |= {"epochs"} if value.epochs == 1 else set()
    return unsaid | ({"safeguard"} if value.safeguard else set())


@dataclass(frozen=True, kw_only=True)
class Question(ABC):
    """A question with all its options."""

    example: ClassVar[str]
    """A command that asks it."""
    command: ClassVar[str]
    """Its name on the command line."""
    unit: ClassVar[str] = ""
    """What its progress counts; nothing, if it is quick."""
    pictured: ClassVar[bool] = False
    """Whether there is a picture."""
    verbose: ClassVar[bool] = False
    """Whether there is more to read than the page has."""
    prints: ClassVar[bool] = True
    """Whether there is an answer to print, as a page or as JSON."""

    @classmethod
    @cache
    def options(cls) -> dict[str, Option]:
        """The options by field, panel after panel."""
        return options_of(cls)

    @classmethod
    def defaults(cls) -> dict[str, Any]:
        """The default of each field; of one that must be given, MISSING."""
        return {f.name: f.default for f in fields(cls)}

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> Self:
        """The question of values as they were typed or sent; what is None or left out has its default."""
        options = cls.options()
        for name in given:
            if name not in options:
                raise InputError(name, f"is no option of {cls.command}", given[name])
        values = {name: options[name].read(name, value) for name, value in given.items() if value is not None}
        for name, default in cls.defaults().items():
            if default is MISSING and name not in values:
                raise InputError(name, "must be given", None)
        return cls(**values)

    @abstractmethod
    def call(self) -> Call:
        """The public function that answers, with its arguments."""

    def ask(self, progress: Progress | None = None) -> Answer:
        """The answer."""
        found: Answer = self.call()(progress)
        return found

    def write(self, found: Any) -> list[str]:
        """Write what the options ask for into files, and say so, a line each."""
        return []

    def passed(self, function: Callable[..., Any], **more: Any) -> Call:
        """A call with every field that has the name of a parameter; `more` is what is built from others."""
        own = {f.name for f in fields(self)}
        same = {name: getattr(self, name) for name in inspect.signature(function).parameters if name in own}
        return Call(function, same | more)

    def counted(self) -> str:
        """What its progress counts."""
        return self.unit

    def plainly(self) -> Self:
        """The same question in fewer words."""
        return self

    @classmethod
    def asked(cls) -> type[Question]:
        """The question of the command; a server may have one with other defaults."""
        return next(one for one in cls.__mro__ if "command" in vars(one))

    def given(self) -> dict[str, Any]:
        """The options that differ from the command's defaults."""
        known = self.asked()
        defaults = known.defaults()
        return {
            name: getattr(self, name) for name in known.options() if getattr(self, name) != defaults[name]
        }

    def echo(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """The options that were given and that `known`, an answer's inputs, does not tell already."""
        options, told = self.asked().options(), _names(known)
        return {
            name: value for name, value in self.given().items() if options[name].echo and name not in told
        }

    def line(self) -> str:
        """The command that asks this."""
        plain, options = self.plainly(), self.asked().options()
        words = [word for name, value in plain.given().items() for word in options[name].write(value)]
        return shlex.join(["seqlaw", self.command, *words])

    def copies(self) -> dict[str, str]:
        """The question as a command and as Python."""
        return {"command": self.line(), "python": self.call().python()}


def _names(value: Any) -> set[str]:
    """The names at any depth of mappings and records."""
    if is_dataclass(value) and not isinstance(value, type):
        value = {f.name: getattr(value, f.name) for f in fields(value)}
    if not isinstance(value, Mapping):
        return set()
    return set(map(str, value)).union(*map(_names, value.values()))
