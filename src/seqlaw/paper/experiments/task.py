"""What a task of the reproduction runs, in a worker: its imports are the source of its numbers."""

from __future__ import annotations

from seqlaw.rungs.ask import rung_of
from seqlaw.rungs.exact import Population
from seqlaw.rungs.rows import Row
from seqlaw.rungs.rung import Draws, Rung
from seqlaw.sweeping.codec import Task, setting_of


def panel_rows(task: Task, seed: int) -> list[Row]:
    """One task of the lab: the rows of one panel on one rung for one sketch and data set."""
    settings = [setting_of(task | point) for point in task["points"]]
    rows = rung(task).rows(settings, draws(task, seed))
    for row in rows:
        row |= {"panel": task["panel"], "rung": task["rung"]}
    return rows


def rung(task: Task) -> Rung:
    """The rung of a task."""
    return Population() if task["rung"] == Population.name else rung_of(task["rung"])


def draws(task: Task, seed: int) -> Draws:
    """The one sketch and data set of a task, where its rung draws any."""
    return Draws(sketches=[task.get("sketch", 0)], repetitions=[task.get("repetition", 0)], seed=seed)
