"""What an option is: how its value is read and written, and what people are told about it."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from decimal import Decimal, InvalidOperation
from typing import Any, get_args, get_type_hints

from seqlaw.model.checks import InputError, positive, real, whole

RANGE, BUDGET, DATA, TEACHER, STUDENT, TRAINING, METHOD, OUTPUT = PANELS = (
    "Range", "Budget", "Data", "Teacher", "Student and data", "Training", "Method", "Output",
)  # fmt: skip
"""The groups of options, in the order in which help and explorer show them."""


@dataclass(frozen=True)
class Kind:
    """A kind of value: read from what was typed or sent, and written as a person would type it."""

    metavar: str
    read: Callable[[str, Any], Any]
    """(field, text or JSON value) → value; else an InputError that names the field."""
    schema: Mapping[str, Any]
    """What the API says that it takes."""
    separator: str = ":"
    """Between the parts of a value that has several."""

    def write(self, value: Any) -> str:
        if isinstance(value, (tuple, list)):
            return self.separator.join(map(typed, value))
        return typed(value)


def typed(value: Any) -> str:
    """A value as a person would type it, and exactly: 4096, 0.1, 1e12, inf."""
    if isinstance(value, (bool, str)) or not isinstance(value, (int, float)):
        return str(value)
    if float(value).is_integer() and abs(value) < 1e16:
        digits = str(int(value))
        mantissa = digits.rstrip("0")
        return f"{mantissa}e{len(digits) - 1}" if len(digits) > 6 and len(mantissa) == 1 else digits
    return repr(float(value))


def size(name: str, value: Any) -> int:
    """A whole number written 4096, 4_096 or 1e9."""
    if not isinstance(value, str):
        return whole(name, value)
    try:
        number = Decimal(value)
    except InvalidOperation:
        raise InputError(name, "must be a number", value) from None
    if number.is_finite() and number == number.to_integral_value() and number.adjusted() < 50:
        return whole(name, int(number))  # 1e30 is 10^30, not the nearest binary number
    return whole(name, float(number))


def size_or_infinite(name: str, value: Any) -> float:
    """`size`, or inf."""
    if value == math.inf or (isinstance(value, str) and value.strip().lower() in ("inf", "infinity")):
        return math.inf
    return size(name, value)


def count(name: str, value: Any) -> int:
    """A whole number, zero among them."""
    number = real(name, value)
    return whole(name, int(value) if isinstance(value, str) and value.isdecimal() else number, least=0)


def interval(name: str, value: Any) -> float | tuple[float, float]:
    """A number, or two written 1.7:1.9."""
    if not isinstance(value, str) or ":" not in value:
        return real(name, value)
    low, _, high = value.partition(":")
    if ":" in high:
        raise InputError(name, "must be a number or an interval such as 1.7:1.9", value)
    return real(name, low), real(name, high)


def step(name: str, value: Any) -> float | str:
    """A number, or `best`."""
    if isinstance(value, str) and value.strip().lower() == "best":
        return "best"
    try:
        return real(name, value)
    except InputError as error:
        raise InputError(name, f"{error.rule} or best", value) from None


def size_or_best(name: str, value: Any) -> int | str:
    """A whole number, or `best`."""
    if isinstance(value, str) and value.strip().lower() == "best":
        return "best"
    try:
        return size(name, value)
    except InputError as error:
        if error.rule != "must be a number":
            raise
        raise InputError(name, f"{error.rule} or best", value) from None


def text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise InputError(name, "must be text", value)
    return value


def flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        raise InputError(name, "must be true or false", value)
    return value


def several(read: Callable[[str, Any], Any]) -> Callable[[str, Any], tuple[Any, ...]]:
    """Values written 2,8,31, or a list of them."""

    def read_all(name: str, value: Any) -> tuple[Any, ...]:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, (list, tuple)):
            raise InputError(name, "must be a list", value)
        return tuple(read(name, part.strip() if isinstance(part, str) else part) for part in parts)

    return read_all


_NUMBER = {"type": "number"}
_SIZE = {"type": "integer", "minimum": 1}
SIZE = Kind("INT", size, _SIZE)
SIZE_OR_INF = Kind("INT|inf", size_or_infinite, {"anyOf": [_SIZE, {"type": "string", "const": "inf"}]})
COUNT = Kind("INT", count, {"type": "integer", "minimum": 0})
NUMBER = Kind("NUMBER", real, _NUMBER)
POSITIVE = Kind("NUMBER", positive, {"type": "number", "exclusiveMinimum": 0})
INTERVAL = Kind("NUMBER|LOW:HIGH", interval, _NUMBER)
STEP = Kind("NUMBER|best", step, {"anyOf": [_NUMBER, {"type": "string", "const": "best"}]})
SIZE_OR_BEST = Kind("INT|best", size_or_best, {"anyOf": [_SIZE, {"type": "string", "const": "best"}]})
TEXT = Kind("TEXT", text, {"type": "string"})
FLAG = Kind("", flag, {"type": "boolean"})
SIZES = Kind("INT,INT,…", several(size), {"type": "array", "items": _SIZE}, ",")
NUMBERS = Kind("NUMBER,…", several(real), {"type": "array", "items": _NUMBER}, ",")
TEXTS = Kind("TEXT,…", several(text), {"type": "array", "items": {"type": "string"}}, ",")
Interval = float | tuple[float, float] | None
_KINDS: dict[Any, Kind] = {
    **{
        int: SIZE,
        float: NUMBER,
        str: TEXT,
        bool: FLAG,
        float | str: STEP,
        int | str: SIZE_OR_BEST,
        float | tuple[float, float]: INTERVAL,
    },
    **{tuple[int, ...]: SIZES, tuple[float, ...]: NUMBERS, tuple[str, ...]: TEXTS},
}
"""The kind of an option whose field has this type, or this type or None."""


@dataclass(frozen=True)
class Slider:
    """How the explorer shows a number: the ends of its slider, and what stands at an end."""

    low: float
    high: float
    step: float | None = None
    """In equal steps; else in equal ratios."""
    left: str | None = None
    right: str | None = None
    """What the end of the slider stands for, in place of a number."""
    placeholder: str = ""


@dataclass(frozen=True, kw_only=True)
class Option:
    """What is known of a field beside its name and its default."""

    names: str
    """As typed, `-M/--width`; of a switch `--this/--not-this`. Without a dash: an argument."""
    help: str
    kind: Kind
    panel: str
    unless: str = ""
    """What is taken where nothing is given, if the default does not say it."""
    metavar: str = ""
    repeated: bool = False
    """Whether the option may be given several times."""
    choices: tuple[str, ...] = ()
    """Names that the API takes; the command line also reads files and import paths there."""
    web: bool = True
    """Whether the API takes it; what names a file or code stays on the command line."""
    echo: bool = True
    """Whether the answer depends on it, so that `inputs` has it."""
    words: str = ""
    """Its label in the explorer …"""
    slider: Slider | None = None
    """… and its slider."""

    def read(self, name: str, value: Any) -> Any:
        if self.repeated:
            return several(self.kind.read)(name, [value] if isinstance(value, str) else value)
        return self.kind.read(name, value)

    def named(self, default: Any) -> str:
        """As an error has it; of a switch the side that changes something."""
        if self.kind is FLAG:
            return self.names.split("/")[-1 if default is True else 0]
        return self.names if self.names.startswith("-") else self.names.partition(".")[0]

    def write(self, value: Any) -> list[str]:
        """The words of a command that give it this value."""
        short = self.names.split("/")[0]
        if self.kind is FLAG:
            return [short if value else self.names.split("/")[-1]]
        if not short.startswith("-"):
            return [typed(one) for one in (value if self.repeated else [value])]
        return [
            word for one in (value if self.repeated else [value]) for word in (short, self.kind.write(one))
        ]


def option(default: Any, help: str, panel: str, **more: Any) -> Any:
    """A field of a question; `more` is what else an Option has.

    Its name as typed is the field's and its kind is that of the field's type, but for `names` and `kind`.
    """
    return field(default=default, metadata={"option": {"help": help, "panel": panel, **more}})


def like(question: Any, name: str, default: Any, **more: Any) -> Any:
    """The option of another question with another default; `more` is what else is different."""
    return field(
        default=default, metadata={"option": question.__dataclass_fields__[name].metadata["option"] | more}
    )


def options_of(question: Any) -> dict[str, Option]:
    """The options of a question by field, panel after panel."""
    hints, found = get_type_hints(question), {}
    for f in fields(question):
        if "option" in f.metadata:
            known = {"names": f"--{f.name.replace('_', '-')}"} | f.metadata["option"]
            if "kind" not in known:
                hint = hints[f.name]
                hint = get_args(hint)[0] if known.get("repeated") else hint
                known["kind"] = next(kind for own, kind in _KINDS.items() if hint in (own, own | None))
            found[f.name] = Option(**known)
    return dict(sorted(found.items(), key=lambda pair: PANELS.index(pair[1].panel)))
