"""Sweeps: a TOML file of teachers, sizes and schedules → tasks for the lab, each one question to a rung."""

from __future__ import annotations

import heapq
import itertools
import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from functools import cached_property
from pathlib import Path
from typing import Any

from seqlaw.lab import table
from seqlaw.lab.engine import Notice
from seqlaw.lab.grid import Task, axis, combine
from seqlaw.lab.run import Progress, Summary, run
from seqlaw.lab.table import Table
from seqlaw.model.checks import InputError, positive, whole
from seqlaw.model.schedule import SCHEDULES, Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import LONGEST, Modes, Teacher
from seqlaw.rungs import ask
from seqlaw.rungs.moments import cheaper_method, direct_cost, gram_cost
from seqlaw.rungs.rows import Row, columns, with_sums
from seqlaw.rungs.terms import TERMS
from seqlaw.spec import load_teacher, load_toml, make_schedule, read

_STRICT = {"extra": "forbid"}  # to pydantic, which reads the dataclasses: an unknown field is an error
OWN = "own"
"""The test length that follows the training length, as in the paper."""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """M, N, P and d, each a number, a list, or a range {log = [a, b], n = k}."""

    M: Any
    N: Any
    P: Any
    d: Any
    __pydantic_config__ = _STRICT

    def __post_init__(self) -> None:
        for name, most in (("M", None), ("N", None), ("P", LONGEST), ("d", None)):
            values = axis(f"sizes.{name}", getattr(self, name), whole=True)
            object.__setattr__(self, name, [_size(f"sizes.{name}", value, most) for value in values])


@dataclass(frozen=True, kw_only=True)
class Schedules:
    """A kind of schedule: steps L or horizon R, peak γ and (wsd) its fractions, each a list or a range."""

    kind: str = "wsd"
    L: Any = None
    R: Any = None
    gamma: Any = 0.1
    warmup: Any = None
    decay: Any = None
    __pydantic_config__ = _STRICT

    def __post_init__(self) -> None:
        if (self.L is None) == (self.R is None):
            raise InputError("schedules", "must have L or R, and not both", {"L": self.L, "R": self.R})
        for name in ("L", "R", "gamma", "warmup", "decay"):
            if (given := getattr(self, name)) is not None:
                values = axis(f"schedules.{name}", given, whole=name == "L")
                check = whole if name == "L" else positive
                object.__setattr__(self, name, [check(f"schedules.{name}", value) for value in values])

    def axes(self) -> dict[str, list[Any]]:
        """What was given, by name."""
        named = {name: getattr(self, name) for name in ("L", "R", "gamma", "warmup", "decay")}
        return {name: values for name, values in named.items() if values is not None}

    def build(self, **point: float) -> Schedule:
        """One schedule of the grid."""
        return make_schedule(self.kind, **point, where="schedules")


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """A grid of questions to one rung.

    `combine` is how sizes and schedules meet (`product` or `zip`); teachers and test lengths always multiply.
    With `nested`, all N, P, schedules and test lengths of one teacher, M and d are one task: they share
    sketches and data sets, as the paper's own sweeps do, and a change of any of them makes it another task.
    """

    sizes: Sizes
    schedules: list[Schedules] = field(default_factory=lambda: [Schedules(L=30000)])
    teachers: list[Teacher | str] = field(default_factory=lambda: ["regime2"])
    rung: str = "equivalent"
    combine: str = "product"
    eval_lengths: Any = OWN
    sketches: int = 4
    repetitions: int = 2
    seed: int = 0
    nested: bool = False
    __pydantic_config__ = _STRICT

    def __post_init__(self) -> None:
        if self.rung not in ask.RUNGS:
            raise InputError("rung", f"must be one of {', '.join(ask.RUNGS)}", self.rung)
        for name, least in (("sketches", 1), ("repetitions", 1), ("seed", 0)):
            object.__setattr__(self, name, whole(name, getattr(self, name), least=least))
        if not self.teachers or not self.schedules:
            raise InputError("teachers" if not self.teachers else "schedules", "must not be empty", [])
        lengths = axis("eval_lengths", self.eval_lengths, whole=True)
        checked = [P if P == OWN else whole("eval_lengths", P, most=LONGEST) for P in lengths]
        object.__setattr__(self, "eval_lengths", checked)
        if self.rung != "equivalent" and math.inf in self.sizes.d:
            raise InputError("sizes.d", "must be finite on this rung (only `equivalent` takes inf)", math.inf)
        object.__setattr__(self, "teachers", [_teacher(source) for source in self.teachers])
        _ = self.tasks  # a zip of unequal lengths, an M above d or a schedule without room show up here

    def _points(self) -> list[Task]:
        """All sizes, schedules and test lengths, each as one flat dict."""
        points = []
        for family in self.schedules:
            built: dict[tuple[float, ...], Task] = {}
            axes = {name: getattr(self.sizes, name) for name in ("M", "d", "N", "P")} | family.axes()
            for point in combine(axes, self.combine):
                sizes = {name: point.pop(name) for name in ("M", "d", "N", "P")}
                if sizes["M"] > sizes["d"]:
                    raise InputError("sizes.M", f"must be at most d = {sizes['d']}", sizes["M"])
                shape = tuple(point.values())
                if shape not in built:
                    built[shape] = _schedule_columns(family.build(**point))
                lengths = dict.fromkeys(sizes["P"] if P == OWN else P for P in self.eval_lengths)
                points += [sizes | built[shape] | {"eval_length": P} for P in lengths]
        return points

    @cached_property
    def tasks(self) -> list[Task]:
        """The tasks, each a flat dict of parameters (and, if nested, the list of its points)."""
        random: dict[str, int] = {}
        if self.rung != "equivalent":
            random["sketches"] = self.sketches
        if self.rung == "sampled":
            random["repetitions"] = self.repetitions
        points = self._points()
        shared: list[Task] = [
            {"rung": self.rung, **asdict(_teacher(source)), **random} for source in self.teachers
        ]
        if not self.nested:
            return [teacher | point for teacher in shared for point in points]
        families: dict[tuple[int, float], list[Task]] = {}
        for point in points:
            rest = {name: value for name, value in point.items() if name not in ("M", "d")}
            families.setdefault((point["M"], point["d"]), []).append(rest)
        return [
            teacher | {"M": M, "d": d, "points": members}
            for teacher, ((M, d), members) in itertools.product(shared, families.items())
        ]


def _size(name: str, value: Any, most: int | None) -> float:
    if name == "sizes.d" and isinstance(value, float) and value == math.inf:
        return math.inf
    return whole(name, value, most=most)


def _teacher(source: Teacher | Modes | str) -> Teacher:
    teacher = load_teacher(source) if isinstance(source, str) else source
    if not isinstance(teacher, Teacher):
        raise InputError("teachers", "must be power laws (a preset or six numbers)", source)
    return teacher


def _schedule_columns(schedule: Schedule) -> Task:
    numbers: Task = asdict(schedule)  # type: ignore[call-overload]  # every named schedule is a dataclass
    return {"schedule": schedule.name, **numbers}


def _beside(file: Path, data: dict[str, Any]) -> dict[str, Any]:
    """The tables with the teachers' files found beside the sweep's, from whatever folder it is run."""
    teachers = data.get("teachers")
    if not isinstance(teachers, list):
        return data
    found = [
        str(file.parent / one) if isinstance(one, str) and (file.parent / one).is_file() else one
        for one in teachers
    ]
    return data | {"teachers": found}


def load_sweep(source: Sweep | Mapping[str, Any] | str | Path) -> Sweep:
    """A sweep from a TOML file or its tables; an error names the file, the field, the rule and the value."""
    if isinstance(source, Sweep):
        return source
    where, data = "sweep", source
    if isinstance(source, (str, Path)):
        where, data = Path(source).name, _beside(Path(source), load_toml(source))
    try:
        return read(Sweep, data, where="")
    except InputError as error:
        rule = error.rule.replace("unexpected keyword argument", "is not a field of a sweep")
        tables = " of tables, each under [[schedules]]" if error.field.endswith("schedules") else ""
        rule = rule.replace("input should be a valid list", f"must be a list{tables}")
        raise InputError(f"{where}: {error.field.lstrip('.')}", rule, error.value) from None


def risk_rows(task: Task, seed: int) -> list[Row]:
    """What a task asks: for each of its points one row, the terms and what is known of their accuracy."""
    settings = [setting_of(task | point) for point in task.get("points", [{}])]
    how = {name: task[name] for name in ("rung", "sketches", "repetitions") if name in task}
    rows = []
    for setting, risk in zip(settings, ask.risks(settings, seed=seed, **how), strict=True):
        rows.append(
            columns(setting)
            | with_sums({name: getattr(risk, name) for name in TERMS})
            | {f"se_{name}": error for name, error in risk.standard_error.items()}
            | dict(risk.diagnostics)
            | {"accuracy": "; ".join(f"{name}: {text}" for name, text in risk.accuracy.items())}
            | {"flags": "; ".join(risk.flags)}
        )
    return rows


def task_of(setting: Setting) -> Task:
    """The parameters of a setting as one flat dict, which `setting_of` reads back."""
    sizes = {name: getattr(setting, name) for name in ("M", "d", "N", "P")}
    teacher = asdict(_teacher(setting.teacher))
    return teacher | sizes | _schedule_columns(setting.schedule) | {"eval_length": setting.test_length}


def setting_of(task: Task) -> Setting:
    """The setting that a task's parameters describe."""
    teacher = Teacher(**{f.name: task[f.name] for f in fields(Teacher)})
    kind: Any = SCHEDULES[task["schedule"]]
    schedule: Schedule = kind(**{f.name: task[f.name] for f in fields(kind)})
    sizes = {name: task[name] for name in ("M", "N", "P", "d", "eval_length")}
    return Setting(teacher=teacher, schedule=schedule, **sizes)


def seconds(task: Task) -> float:
    """About how long a task takes on a core of its own, within a factor of two.

    Other programs on the same cores are not foreseen, nor is a slower processor than the one of 2026 that
    the constants come from.
    """
    M, d, points = task["M"], task["d"], task.get("points", [task])
    if task["rung"] == "equivalent":
        first, more = (0.04, 0.02) if d == math.inf else (0.01, 0.001)
        return first + more * (len(points) - 1)
    lengths = {point["P"] for point in points}
    if task["rung"] == "exact":
        passes = sum(0.003 + d**2 * (3e-8 * math.log2(2 * P) + 2e-10 * M) for P in lengths)
        return float(task["sketches"] * (passes + 5e-4 * len(points)))
    N, P = max(point["N"] for point in points), max(lengths)
    position = gram_cost(d) if cheaper_method(N, d, M) == "gram" else direct_cost(N, d, M)
    solving = len({(point["N"], point["P"]) for point in points}) * (0.002 + 2e-9 * M**3)
    problems = len(lengths) * (0.001 + 1e-9 * (d * M**2 + M**3))
    return float(task["sketches"] * task["repetitions"] * (P * position * 1e-9 + solving + problems))


def memory(task: Task) -> float:
    """About how many bytes a worker needs for a task, itself included."""
    process, block = 2.5e8, 3.2e7
    if task["rung"] == "equivalent":
        return process + block
    M, d, points = task["M"], task["d"], task.get("points", [task])
    chain = task["rung"] == "sampled" and any(cheaper_method(p["N"], d, M) == "gram" for p in points)
    return float(process + block + 8 * (6 * M * d + (4 + 4 * len(points)) * M**2) + 100 * d**2 * chain)


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What lies ahead of a sweep."""

    tasks: int
    left: int
    """Tasks without a record yet."""
    seconds: float
    """For what is left, on so many cores with nothing else to do."""
    memory: float
    """Bytes, with the largest tasks at work at once."""


def estimate(tasks: int, left: list[Task], jobs: int) -> Estimate:
    """About what is left of a sweep, by the costs above."""
    costs = [seconds(task) for task in left]
    return Estimate(
        tasks=tasks,
        left=len(left),
        seconds=max(sum(costs) / jobs, max(costs, default=0.0)),
        memory=sum(heapq.nlargest(jobs, map(memory, left))),
    )


ENGINES = ("local", "dask")


def sweep(
    source: Sweep | Mapping[str, Any] | str | Path,
    out: Path | str,
    *,
    jobs: int = 1,
    engine: str = "local",
    scheduler: str | None = None,
    dry_run: bool = False,
    retry_failed: bool = False,
    resume: str = "",
    announce: Callable[[Estimate], None] = lambda ahead: None,
    progress: Progress = lambda summary, share: None,
    notice: Notice = lambda line: None,
) -> Summary:
    """Run what a sweep (a file, its tables or a `Sweep`) has not recorded in the folder `out` yet.

    `jobs` processes here, or with `engine="dask"` the cluster at `scheduler`: the rows are the same.
    `announce` gets the estimate before the work begins, which with `dry_run` it does not; `resume` is the
    command that goes on, for those who find the folder unfinished.
    In a script, `jobs` above 1 needs `if __name__ == "__main__":`, since workers import the script.
    """
    jobs = whole("jobs", jobs)
    if engine not in ENGINES:
        raise InputError("engine", f"must be one of {', '.join(ENGINES)}", engine)
    if (engine == "dask") != (scheduler is not None):
        raise InputError("scheduler", "goes with engine dask, which needs one", scheduler)
    spec = load_sweep(source)
    return run(
        risk_rows,
        spec.tasks,
        folder=out,
        seed=spec.seed,
        jobs=jobs,
        scheduler=scheduler,
        cost=seconds,
        dry_run=dry_run,
        retry_failed=retry_failed,
        note=repr(spec),
        resume=resume,
        announce=lambda tasks, left: announce(estimate(tasks, left, jobs)),
        progress=progress,
        notice=notice,
    )


def load(folder: Path | str, *, version: str | None = None) -> Table:
    """The rows of a sweep's folder as a DataFrame (`.frame`) and a Dataset (`.dataset`).

    They are of one version of the software: the one that wrote last, or the given one; `"all"` takes every
    version, told apart by the column `version`.
    """
    return table.load(folder, version=version, derived=("regime", "R"))


def export(folder: Path | str, to: Path | str, *, version: str | None = None) -> int:
    """Write a sweep's tidy rows to a .parquet or .csv file, whole or not at all; returns their number.

    Without rows nothing is written: `StoreError` says how to get some.
    """
    return table.export(load(folder, version=version), to)
