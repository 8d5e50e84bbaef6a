"""Side-by-side timing: the best of several interleaved rounds, so that a busy machine hurts both alike."""

from __future__ import annotations

import time
from collections.abc import Callable


def best_times(*jobs: Callable[[], object], rounds: int = 7) -> list[float]:
    """The shortest time of each job over interleaved rounds, in seconds."""
    best = [float("inf")] * len(jobs)
    for job in jobs:
        job()  # warm up caches and lazy imports
    for _ in range(rounds):
        for k, job in enumerate(jobs):
            start = time.perf_counter()
            job()
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def report(name: str, ratio: float, target: str) -> None:
    """One line: what was compared, the ratio, what was asked."""
    print(f"{name:<78} {ratio:>10.3g}   (asked: {target})")
