"""What a task of the reproduction runs, in a worker: its imports are the source of its numbers."""

from __future__ import annotations

from seqlaw.methods.ask import method_of
from seqlaw.methods.exact import SketchesOnly
from seqlaw.methods.method import Draws, Method
from seqlaw.methods.terms import Row
from seqlaw.model.setting import Setting
from seqlaw.sweeping.codec import Task, setting_of


def panel_rows(task: Task, seed: int) -> list[Row]:
    """One task of the lab: the rows of one panel on one method for one sketch and data set."""
    method, settings, draws = _asked(task, seed)
    rows = method.rows(settings, draws)
    for row in rows:
        row |= {"panel": task["panel"], "method": task["method"]}
    return rows


def size(task: Task) -> float:
    """How large a task is beside others."""
    method, settings, draws = _asked(task, 0)
    return method.work(settings, draws)


def _asked(task: Task, seed: int) -> tuple[Method, list[Setting], Draws]:
    """The method and the settings of a task, and its one sketch and data set where the method draws any."""
    method = SketchesOnly() if task["method"] == SketchesOnly.name else method_of(task["method"])
    draws = Draws(
        sketches=[task.get("sketch", 0)],
        repetitions=[task.get("repetition", 0)],
        seed=seed,
        device=task.get("device"),
    )
    return method, [setting_of(task | point) for point in task["points"]], draws
