"""Which tasks are large and how much memory they need, as their methods say."""

from __future__ import annotations

import functools
import heapq
import json
from dataclasses import dataclass

from seqlaw.lab.grid import canonical
from seqlaw.methods.ask import method_of
from seqlaw.methods.method import Cost, Draws
from seqlaw.sweeping.codec import Task, draws_of, setting_of

PROCESS = 2.5e8
"""Bytes of a worker before it does anything."""


def cost(task: Task) -> Cost:
    """About what a task takes; of the seconds only ratios between tasks are used."""
    return _cost(canonical(task))


@functools.lru_cache(2**17)  # asked for when counting, sorting, grouping and counting
def _cost(text: str) -> Cost:
    task: Task = json.loads(text)
    settings = [setting_of(task | point) for point in task.get("points", [{}])]
    return method_of(task["method"]).cost(settings, Draws(**draws_of(task)))


def work(task: Task) -> float:
    """How large a task is beside others: the largest run first, and progress is a share of the sum."""
    return cost(task).seconds


def words(task: Task) -> str:
    """A task by its method and sizes."""
    sizes = [
        f"{name} = {task[name]}" for name in ("M", "N", "batch", "P", "L", "d") if task.get(name) is not None
    ]
    return ", ".join([task["method"], *sizes])


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What lies ahead of a sweep."""

    tasks: int
    left: int
    """Tasks without a record yet."""
    merged: int
    """Points of the grid that are the same as others, and are run once with them."""
    largest: str | None
    """The largest task of what is left: it runs first."""
    memory: float
    """Bytes, with the largest tasks at work at once."""


def estimate(tasks: int, left: list[Task], jobs: int, merged: int = 0) -> Estimate:
    """What is left of a sweep, on so many workers."""
    costs = [cost(task) for task in left]
    return Estimate(
        tasks=tasks,
        left=len(left),
        merged=merged,
        largest=words(max(left, key=work)) if left else None,
        memory=sum(heapq.nlargest(jobs, (PROCESS + one.memory for one in costs))),
    )
