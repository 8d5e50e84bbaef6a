"""Which tasks of a sweep are large, and about how much memory they need."""

from __future__ import annotations

import heapq
from dataclasses import dataclass

from seqlaw.methods.ask import method_of
from seqlaw.methods.method import Draws
from seqlaw.sweeping.codec import Task, draws_of, setting_of

PROCESS = 2.5e8
"""Bytes of a worker before it does anything."""
ARRAYS = 3.2e7
"""Bytes of the arrays that every method works on."""


def work(task: Task) -> float:
    """How large a task is beside others: the largest run first, and progress is a share of the sum."""
    settings = [setting_of(task | point) for point in task.get("points", [{}])]
    return method_of(task["method"]).work(settings, Draws(**draws_of(task)))


def _held(task: Task) -> float:
    """Bytes of a task at work: a sketch, its problems and decompositions; for N ≥ 2d also the Gram chain."""
    draws = method_of(task["method"]).draws
    M, d = task["M"], task["d"] if draws else 0
    most = max((task | point).get("N") or 0 for point in task.get("points", [{}]))
    chain = 12 * d**2 if "repetitions" in draws and most >= 2 * d else 0.0
    return PROCESS + ARRAYS + (8.0 * (7 * M * d + 12 * M**2 + chain) if draws else 0.0)


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
    """What is left of a sweep, the largest task first, on so many workers."""
    return Estimate(
        tasks=tasks,
        left=len(left),
        merged=merged,
        largest=words(left[0]) if left else None,
        memory=sum(heapq.nlargest(jobs, map(_held, left))),
    )
