"""Sweeps: a TOML file of teachers, sizes and schedules → tasks for the lab, each one question to a method."""

from __future__ import annotations

import itertools
import math
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from seqlaw.files import load_teacher, load_toml, make_schedule, read
from seqlaw.lab.grid import Task, axis, combine, require_few
from seqlaw.methods.ask import method_name, method_of
from seqlaw.methods.drawn import lengths_on_cpu
from seqlaw.methods.method import finite_only
from seqlaw.methods.terms import network_columns
from seqlaw.model.checks import InputError, positive, real, whole
from seqlaw.model.device import device_name
from seqlaw.model.extension import IMPORT_PATH
from seqlaw.model.lengths import LARGEST, Position, one_or_many, parse
from seqlaw.model.network import Network, as_network, linear_only
from seqlaw.model.optimizer import as_optimizer, plain_only
from seqlaw.model.schedule import GAMMA, Schedule
from seqlaw.model.setting import WIDEST
from seqlaw.model.teacher import LONGEST, PRESETS, Teacher
from seqlaw.renamed import KEYS
from seqlaw.sweeping.codec import BEST, LATER, schedule_columns

_STRICT = {"extra": "forbid"}  # to pydantic, which reads the dataclasses: an unknown field is an error
_NUMBERS = ("L", "R", "gamma", "warmup", "decay", "beta")
OWN = "own"
"""The test length that follows the training length, as in the paper."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """M, N, P and d, each a number, a list, or a range {log = [a, b], n = k}; one pass has batch, not N.

    With a batch there may be epochs too, in which each of the batch·⌈L/epochs⌉ sequences is used so often.

    A P may be a mixture or phases, as text: "16:0.7,1024:0.3", "2:0.9 then 4096:0.1".
    """

    M: Any
    N: Any = None
    P: Any
    d: Any
    batch: Any = None
    epochs: Any = None
    __pydantic_config__ = _STRICT

    @property
    def names(self) -> tuple[str, ...]:
        """What a grid over sizes runs along."""
        again = () if self.epochs is None else ("epochs",)
        return ("M", "d", "N" if self.batch is None else "batch", "P", *again)

    def __post_init__(self) -> None:
        if self.epochs is not None and self.batch is None:
            raise InputError("sizes.epochs", "must be left out without a batch", self.epochs)
        if (self.N is None) == (self.batch is None):
            given = {"N": self.N, "batch": self.batch}
            raise InputError("sizes.N", "must be given, or batch for one pass, and not both", given)
        for name in self.names:
            most = {"M": WIDEST, "P": LONGEST}.get(name, LARGEST)
            values = axis(f"sizes.{name}", getattr(self, name), whole=True)
            object.__setattr__(self, name, [_size(f"sizes.{name}", value, most) for value in values])


@dataclass(frozen=True, kw_only=True)
class Schedules:
    """A kind of schedule: steps L or horizon R, peak γ and its fractions (wsd) or momentum β (constant), each
    a list or a range. A γ of "best" is, at each point, the step of least risk.

    `kind` may be the import path of a schedule of your own, and `shape` has its further fields.
    """

    kind: str = "wsd"
    L: Any = None
    R: Any = None
    gamma: Any = 0.1
    warmup: Any = None
    decay: Any = None
    beta: Any = None
    nesterov: bool = False
    shape: dict[str, Any] = field(default_factory=dict)
    __pydantic_config__ = _STRICT

    def __post_init__(self) -> None:
        if (self.L is None) == (self.R is None):
            raise InputError("schedules", "must have L or R, and not both", {"L": self.L, "R": self.R})
        for name in _NUMBERS:
            if (given := getattr(self, name)) is not None:
                values = axis(f"schedules.{name}", given, whole=name == "L")
                check = {"L": whole, "beta": real, "gamma": _step}.get(name, positive)
                object.__setattr__(self, name, [check(f"schedules.{name}", value) for value in values])
        if self.R is not None and BEST in self.gamma:
            raise InputError("schedules.gamma", "must be a number with R, whose steps it sets", BEST)

    def axes(self) -> dict[str, list[Any]]:
        """What was given, by name."""
        named = {name: getattr(self, name) for name in _NUMBERS}
        given = {name: values for name, values in named.items() if values is not None}
        shape = {name: axis(f"schedules.shape.{name}", value) for name, value in self.shape.items()}
        for name, values in shape.items():
            for value in values:
                real(f"schedules.shape.{name}", value)
        return given | {f"shape.{name}": values for name, values in shape.items()}

    def columns(self, **point: Any) -> Task:
        """One schedule of the grid, as a task has it."""
        best = {"gamma": BEST} if point["gamma"] == BEST else {}
        return schedule_columns(self.build(**point | dict.fromkeys(best, GAMMA))) | best

    def build(self, **point: float) -> Schedule:
        """One schedule of the grid."""
        shape = {name.removeprefix("shape."): point.pop(name) for name in list(point) if "." in name}
        shape |= {name: point.pop(name) for name in ("warmup", "decay", "beta") if name in point}
        shape |= {"nesterov": True} if self.nesterov else {}
        return make_schedule(self.kind, **point, shape=shape, where="schedules")


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A grid of questions to one method.

    A teacher is a preset's name, a file, a `Teacher`, or a table of its numbers, each a number, a list or a
    range; `preset = "regime2"` in the table gives those that are left out. Points that coincide are one task.
    `combine` is how sizes and schedules meet (`product` or `zip`); teachers and test lengths always multiply.
    With `nested`, all N, P, schedules and test lengths of one teacher, M and d are one task: they share
    sketches and data sets, as the paper's own sweeps do, and a change of any of them makes it another task.
    With `device = "cuda"` the random methods take a GPU, one a worker.
    `positions` are tested in place of lengths: 0 is the first of a sequence.
    `network` (with `hidden` and `depth`) and `optimizer` are for the methods that take them.
    `depends` names files that code of the user's reads: their content is part of what made a number.
    """

    sizes: Sizes
    schedules: list[Schedules] = field(default_factory=lambda: [Schedules(L=30000)])
    teachers: list[Any] = field(default_factory=lambda: ["regime2"])
    method: str = "equivalent"
    combine: str = "product"
    eval_lengths: Any = OWN
    positions: Any = None
    network: str = "linear"
    hidden: int | None = None
    depth: int | None = None
    optimizer: str = "sgd"
    sketches: int = 4
    repetitions: int = 2
    seed: int = 0
    nested: bool = False
    device: str | None = None
    depends: list[str] = field(default_factory=list)
    __pydantic_config__ = _STRICT

    def __post_init__(self) -> None:
        method = method_of(self.method)
        object.__setattr__(self, "method", method_name(method))
        for name, least in (("sketches", 1), ("repetitions", 1), ("seed", 0)):
            number = whole(name, getattr(self, name), least=least, most=2**63 - 1)  # as far as a store counts
            object.__setattr__(self, name, number)
        object.__setattr__(self, "device", device_name(self.device))
        for one in self.depends:
            if not Path(one).is_file():
                raise InputError("depends", "must name files that are there", one)
        object.__setattr__(self, "depends", [os.path.abspath(one) for one in self.depends])
        if not self.teachers or not self.schedules:
            raise InputError("teachers" if not self.teachers else "schedules", "must not be empty", [])
        if (refusal := linear_only(self._student)) is not None and not method.networks:
            raise refusal
        other = plain_only(as_optimizer("optimizer", self.optimizer))
        if other is not None and not method.optimizers:
            raise other
        lengths = axis("eval_lengths", self.eval_lengths, whole=True)
        checked = [P if P == OWN else whole("eval_lengths", P, most=LONGEST) for P in lengths]
        object.__setattr__(self, "eval_lengths", checked)
        if self.positions is not None:
            if checked != [OWN]:
                raise InputError("positions", "cannot be given together with eval_lengths", self.positions)
            given = axis("positions", self.positions, whole=True)
            object.__setattr__(self, "positions", [Position(p).p for p in given])
        if (
            self.device
            and method.draws
            and not method.lengths_on_card
            and any(isinstance(P, str) for P in self.sizes.P)
        ):
            raise lengths_on_cpu(self.device)
        if math.inf in self.sizes.d and not method.infinite:
            raise finite_only("sizes.d")
        teachers = [one for place, source in enumerate(self.teachers) for one in _teachers(place, source)]
        object.__setattr__(self, "teachers", teachers)
        _ = self.tasks  # a zip of unequal lengths, an M above d or a schedule without room show up here

    @property
    def _student(self) -> Network | None:
        return as_network("network", self.network, hidden=self.hidden, depth=self.depth)

    @cached_property
    def _asked(self) -> list[Task]:
        """All sizes, schedules and test lengths, each as one flat dict, those that coincide among them."""
        points: list[Task] = []
        for family in self.schedules:
            built: dict[tuple[float, ...], Task] = {}
            axes = {name: getattr(self.sizes, name) for name in self.sizes.names} | family.axes()
            grid = combine(axes, self.combine)
            each = len(self.positions or self.eval_lengths) * len(self.teachers)
            require_few("combine", len(points) * len(self.teachers) + len(grid) * each)
            for point in grid:
                sizes = {name: point.pop(name) for name in self.sizes.names}
                if sizes["M"] > sizes["d"]:
                    raise InputError("sizes.M", f"must be at most d = {sizes['d']}", sizes["M"])
                shape = tuple(point.values())
                if shape not in built:
                    built[shape] = family.columns(**point)
                once = {"N": None, "epochs": sizes.get("epochs", 1), "safeguard": True}
                once = once if "batch" in sizes else {}
                many = {"P": None, "lengths": sizes["P"]} if isinstance(sizes["P"], str) else {}
                own = None if many else sizes["P"]
                tests: list[Task] = [{"eval_length": own if P == OWN else P} for P in self.eval_lengths]
                if self.positions is not None:
                    tests = [{"eval_length": None, "position": p} for p in self.positions]
                points += [sizes | once | many | built[shape] | test for test in tests]
        return points

    @cached_property
    def _points(self) -> list[Task]:
        return list({tuple(point.items()): point for point in self._asked}.values())

    @property
    def merged(self) -> int:
        """How many points of the grid are the same as others, and so are run once with them."""
        return len(self._asked) * len(self.teachers) - len(self._points) * len(set(self.teachers))

    @cached_property
    def tasks(self) -> list[Task]:
        """The tasks, each a flat dict of parameters (and, if nested, the list of its points)."""
        random: Task = {name: getattr(self, name) for name in method_of(self.method).draws}
        random = LATER | random | ({"device": self.device} if random else {})
        random |= {} if self._student is None else network_columns(self._student)
        random |= {} if self.optimizer == "sgd" else {"optimizer": self.optimizer}
        teachers = dict.fromkeys(self.teachers)
        shared: list[Task] = [{"method": self.method, **asdict(teacher), **random} for teacher in teachers]
        if not self.nested:
            return [teacher | point for teacher in shared for point in self._points]
        families: dict[tuple[int, float], list[Task]] = {}
        for point in self._points:
            rest = {name: value for name, value in point.items() if name not in ("M", "d")}
            families.setdefault((point["M"], point["d"]), []).append(rest)
        return [
            teacher | {"M": M, "d": d, "points": members}
            for teacher, ((M, d), members) in itertools.product(shared, families.items())
        ]


def _step(name: str, value: Any) -> float | str:
    return BEST if value == BEST else positive(name, value)


def _size(name: str, value: Any, most: int | None) -> float | str:
    if name == "sizes.P" and isinstance(value, str):
        P = one_or_many(parse(value))
        return P if isinstance(P, int) else str(P)
    if name == "sizes.d" and isinstance(value, float) and value == math.inf:
        return math.inf
    return whole(name, value, most=most)


def _teachers(place: int, source: Any) -> list[Teacher]:
    """The power laws of one entry: one, or all combinations of the ranges of a table."""
    where = f"teachers.{place}"
    if isinstance(source, Mapping):
        given = dict(source)
        if (preset := given.pop("preset", None)) is not None:
            if not isinstance(preset, str) or preset not in PRESETS:
                raise InputError(f"{where}.preset", f"must be one of {', '.join(PRESETS)}", preset)
            given = asdict(PRESETS[preset]) | given
        axes = {name: axis(f"{where}.{name}", value) for name, value in given.items()}
        return [read(Teacher, point, where=where) for point in combine(axes)]
    teacher = load_teacher(source) if isinstance(source, str) else source
    if not isinstance(teacher, Teacher):
        raise InputError("teachers", "must be power laws (a preset or six numbers)", source)
    return [teacher]


def _beside(file: Path, data: dict[str, Any]) -> dict[str, Any]:
    """The tables with the files that they name found beside the sweep's, from whatever folder it is run."""
    found = {
        name: [
            str(file.parent / one) if isinstance(one, str) and (file.parent / one).is_file() else one
            for one in data[name]
        ]
        for name in ("teachers", "depends")
        if isinstance(data.get(name), list)
    }
    return data | found


def _look_beside(file: Path, data: Mapping[str, Any]) -> None:
    """Let Python find a module that the file names (`mymodule:Linear`) beside the file; workers follow."""
    tables = data.get("schedules")
    kinds = [one.get("kind") for one in tables if isinstance(one, dict)] if isinstance(tables, list) else []
    folder = file.parent.absolute()
    for path in filter(None, (IMPORT_PATH.fullmatch(str(one)) for one in (data.get("method"), *kinds))):
        top = path["module"].partition(".")[0]
        beside = (folder / f"{top}.py").exists() or (folder / top).is_dir()
        if not beside:
            continue
        loaded = getattr(sys.modules.get(top), "__file__", None)
        if loaded is not None and folder not in Path(loaded).absolute().parents:
            rule = f"names the {top} beside this file, but another was loaded ({loaded}): start Python again"
            raise InputError(file.name, rule, path[0])
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))


def load_sweep(source: Sweep | Mapping[str, Any] | str | Path) -> Sweep:
    """A sweep from a TOML file or its tables; an error names the file, the field, the rule and the value."""
    if isinstance(source, Sweep):
        return source
    where, data = "sweep", source
    if isinstance(source, (str, Path)):
        where, data = Path(source).name, _beside(Path(source), load_toml(source))
        _look_beside(Path(source), data)
    try:
        return read(Sweep, data, where="")
    except InputError as error:
        if (field := error.field.lstrip(".")) in KEYS:
            raise InputError(f"{where}: {field}", f"is {KEYS[field]} since 0.3", error.value) from None
        known = ", ".join(each.name for each in fields(Sweep)) if "." not in field else ""
        known = f" (its fields: {known})" if known else ""
        rule = error.rule.replace("unexpected keyword argument", f"is not a field of a sweep{known}")
        tables = " of tables, each under [[schedules]]" if error.field.endswith("schedules") else ""
        rule = rule.replace("input should be a valid list", f"must be a list{tables}")
        raise InputError(f"{where}: {field}", rule, error.value) from None
