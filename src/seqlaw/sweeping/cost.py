"""About how long tasks take and how much memory they need, as their rungs say."""

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
    """About what a task takes on a core of its own, within a factor of two.

    Other programs on the same cores are not foreseen, nor is a slower processor than the one of 2026 that
    the constants come from.
    """
    return _cost(canonical(task))


@functools.lru_cache(2**17)  # asked for when estimating, sorting, grouping and counting
def _cost(text: str) -> Cost:
    task: Task = json.loads(text)
    settings = [setting_of(task | point) for point in task.get("points", [{}])]
    return method_of(task["rung"]).cost(settings, Draws(**draws_of(task)))


def seconds(task: Task) -> float:
    return cost(task).seconds


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What lies ahead of a sweep."""

    tasks: int
    left: int
    """Tasks without a record yet."""
    merged: int
    """Points of the grid that are the same as others, and are run once with them."""
    seconds: float
    """For what is left, on so many cores with nothing else to do."""
    memory: float
    """Bytes, with the largest tasks at work at once."""


def estimate(tasks: int, left: list[Task], jobs: int, merged: int = 0) -> Estimate:
    """About what is left of a sweep, by the costs above."""
    costs = [cost(task) for task in left]
    times = [one.seconds for one in costs]
    return Estimate(
        tasks=tasks,
        left=len(left),
        merged=merged,
        seconds=max(sum(times) / jobs, max(times, default=0.0)),
        memory=sum(heapq.nlargest(jobs, (PROCESS + one.memory for one in costs))),
    )
