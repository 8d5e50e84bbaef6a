"""The one codec of a Setting: its parameters as one flat dict of plain values, and back."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from seqlaw.model.checks import InputError
from seqlaw.model.schedule import Schedule, kind_name, schedule_kind
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Teacher

Task = dict[str, Any]


LATER: Task = {"batch": None, "lengths": None, "device": None}
"""What a task says where it asks for no mini-batches, mixtures of lengths or a GPU."""


def task_of(setting: Setting) -> Task:
    """The parameters of a setting as one flat dict, which `setting_of` reads back."""
    if not isinstance(setting.teacher, Teacher):
        raise InputError("teacher", "must be a power law (a preset or six numbers)", setting.teacher)
    sizes: Task = {name: getattr(setting, name) for name in ("M", "d", "N", "P")}
    return (
        asdict(setting.teacher)
        | sizes
        | schedule_columns(setting.schedule)
        | {"eval_length": setting.test_length}
        | LATER
        | one_pass_columns(setting)
        | length_columns(setting)
    )


def length_columns(setting: Setting) -> Task:
    """A mixture or phases as text; nothing for one length, whose keys stay."""
    if setting.lengths is None:
        return {}
    return {"P": None, "lengths": str(setting.lengths), "eval_length": setting.eval_length}


def one_pass_columns(setting: Setting) -> Task:
    """Mini-batches as parameters; N follows from them. Nothing for the full batch, whose keys stay."""
    if setting.batch is None:
        return {}
    return {"batch": setting.batch, "epochs": setting.epochs, "safeguard": setting.safeguard, "N": None}


def schedule_columns(schedule: Schedule) -> Task:
    """A schedule by name (or import path) and numbers."""
    numbers: Task = asdict(schedule)  # type: ignore[call-overload]  # every schedule is a dataclass
    return {"schedule": kind_name(schedule)} | {column(name): value for name, value in numbers.items()}


def column(field: str) -> str:
    """The name of a schedule's field in a task: one of the user's must not be taken for a teacher's."""
    return field if field in ("gamma", "L", "warmup", "decay", "beta", "nesterov") else f"schedule_{field}"


def draws_of(task: Task) -> dict[str, Any]:
    """What a task says of sketches and repetitions, and where they are drawn."""
    return {name: task[name] for name in ("sketches", "repetitions", "device") if name in task}


def setting_of(task: Task) -> Setting:
    """The setting that a task's parameters describe."""
    teacher = Teacher(**{f.name: task[f.name] for f in fields(Teacher)})
    kind: Any = schedule_kind(task["schedule"])
    schedule: Schedule = kind(**{f.name: task[column(f.name)] for f in fields(kind)})
    sizes: Any = {name: task.get(name) for name in ("M", "N", "P", "d", "eval_length", "batch", "lengths")}
    more: Any = {name: task[name] for name in ("epochs", "safeguard") if name in task}
    return Setting(teacher=teacher, schedule=schedule, **sizes, **more)
