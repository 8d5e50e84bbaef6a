"""Side-by-side timing: the best of several interleaved rounds, so that a busy machine hurts both alike."""

from __future__ import annotations

import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path


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


def of_files(
    command: str,
    shapes: Iterable[tuple[int, ...]],
    write: Callable[[Path, tuple[int, ...]], None],
    run: Callable[[str], tuple[float, float, float]],
    *,
    asked: str,
    naive: str,
) -> None:
    """Seconds, peak memory and the ratio to the naive way, each shape in a file and a process of its own."""
    for shape in shapes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "x.npy"
            write(path, shape)
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                seconds, peak, other = pool.apply(run, (str(path),))
        name = f"{command} on {'x'.join(map(str, shape))}"
        report(f"{name}: seconds", seconds, asked)
        report(f"{name}: peak memory, GiB", peak, "< 2")
        report(f"{name} over {naive}", seconds / other, "-")
