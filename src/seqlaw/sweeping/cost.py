"""About how long tasks take and how much memory they need."""

from __future__ import annotations

import heapq
import math
from dataclasses import dataclass

from seqlaw.rungs.moments import cheaper_method, direct_cost, gram_cost
from seqlaw.sweeping.codec import Task


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
    merged: int
    """Points of the grid that are the same as others, and are run once with them."""
    seconds: float
    """For what is left, on so many cores with nothing else to do."""
    memory: float
    """Bytes, with the largest tasks at work at once."""


def estimate(tasks: int, left: list[Task], jobs: int, merged: int = 0) -> Estimate:
    """About what is left of a sweep, by the costs above."""
    costs = [seconds(task) for task in left]
    return Estimate(
        tasks=tasks,
        left=len(left),
        merged=merged,
        seconds=max(sum(costs) / jobs, max(costs, default=0.0)),
        memory=sum(heapq.nlargest(jobs, map(memory, left))),
    )
