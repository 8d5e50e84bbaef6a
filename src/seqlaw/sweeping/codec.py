"""The one codec of a Setting: its parameters as one flat dict of plain values, and back."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from seqlaw.methods.terms import network_columns
from seqlaw.model.checks import InputError
from seqlaw.model.network import as_network
from seqlaw.model.optimizer import OPTIMIZERS
from seqlaw.model.schedule import GAMMA, Schedule, kind_name, schedule_kind
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Teacher

Task = dict[str, Any]
BEST = "best"
"""A γ that each point chooses for itself."""

LATER: Task = {"batch": None, "lengths": None, "device": None}
"""What a task says where it asks for no mini-batches, mixtures of lengths or a GPU."""


def task_of(setting: Setting) -> Task:
    """The parameters of a setting as one flat dict, which `setting_of` reads back.

    Mini-batches, mixtures, positions, optimizers and networks add keys only where there are some.
    """
    if not isinstance(setting.teacher, Teacher):
        raise InputError("teacher", "must be a power law (a preset or six numbers)", setting.teacher)
    task: Task = asdict(setting.teacher) | {name: getattr(setting, name) for name in ("M", "d", "N", "P")}
    task |= schedule_columns(setting.schedule) | {"eval_length": setting.test_length} | LATER
    if setting.batch is not None:  # N follows from the batch
        task |= {name: getattr(setting, name) for name in ("batch", "epochs", "safeguard")} | {"N": None}
    if setting.lengths is not None:
        task |= {"P": None, "lengths": str(setting.lengths), "eval_length": setting.eval_length}
    if (optimizer := setting.optimizer) is not None:
        if OPTIMIZERS.get(optimizer.name) is not type(optimizer):
            raise InputError("optimizer", f"must be one of sgd, {', '.join(OPTIMIZERS)}", optimizer.name)
        task |= {"optimizer": optimizer.name} | {f"optimizer_{k}": v for k, v in asdict(optimizer).items()}
    if setting.position is not None:
        task |= {"position": setting.position, "eval_length": None}
    return task | ({} if setting.network is None else network_columns(setting.network))


_OPTIONAL = ("position", "epochs", "safeguard", "precondition", "weight_decay")


def schedule_columns(schedule: Schedule) -> Task:
    """A schedule by name (or import path) and numbers."""
    numbers: Task = asdict(schedule.plain)  # type: ignore[call-overload]  # every schedule is a dataclass
    named = {column(name): value for name, value in numbers.items()}
    return {"schedule": kind_name(schedule)} | named | schedule.additions


def column(field: str) -> str:
    """The name of a schedule's field in a task: one of the user's must not be taken for a teacher's."""
    return field if field in ("gamma", "L", "warmup", "decay", "beta", "nesterov") else f"schedule_{field}"


def draws_of(task: Task) -> dict[str, Any]:
    """What a task says of sketches and repetitions, and where they are drawn."""
    return {name: task[name] for name in ("sketches", "repetitions", "device") if name in task}


def step_is_best(task: Task) -> bool:
    """Whether the step is to be the best one."""
    return task.get("gamma") == BEST


def setting_of(task: Task) -> Setting:
    """The setting that a task's parameters describe; of a step that is to be tuned with any other."""
    teacher = Teacher(**{f.name: task[f.name] for f in fields(Teacher)})
    kind: Any = schedule_kind(task["schedule"])
    numbers = {f.name: task[column(f.name)] for f in fields(kind)}
    if step_is_best(task):
        numbers["gamma"] = GAMMA
    schedule: Schedule = kind(**numbers)
    sizes: Any = {name: task.get(name) for name in ("M", "N", "P", "d", "eval_length", "batch", "lengths")}
    more: Any = {name: task[name] for name in _OPTIONAL if name in task}
    if (name := task.get("optimizer")) in OPTIMIZERS:
        keys = {f.name: f"optimizer_{f.name}" for f in fields(OPTIMIZERS[name])}
        more["optimizer"] = OPTIMIZERS[name](**{k: task[v] for k, v in keys.items() if v in task})
    if (network := task.get("network")) is not None:
        more["network"] = as_network("network", network, hidden=task.get("hidden"), depth=task.get("depth"))
    return Setting(teacher=teacher, schedule=schedule, **sizes, **more)
