"""The lab against a bare loop: resuming, overhead a task, and what a second core gives."""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from timing import report

from seqlaw.lab.grid import key
from seqlaw.lab.run import run
from seqlaw.lab.software import function_path, software
from seqlaw.lab.store import Outcome, Store
from seqlaw.sweeping.file import load_sweep
from seqlaw.sweeping.run import sweep
from seqlaw.sweeping.task import risk_rows

HERE = Path(__file__).parent


def spin(task: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """A fixed amount of computing."""
    total = 0
    for k in range(task["loops"]):
        total ^= k * k
    return [{"total": total, "third": total / 3}]


def loops_for(milliseconds: float) -> int:
    """How many rounds of `spin` take so long on this machine now."""
    start = time.perf_counter()
    spin({"loops": 10**6}, 0)
    return round(10**6 * milliseconds / 1000 / (time.perf_counter() - start))


def resuming() -> None:
    """A sweep file of 10^5 tasks, all but one recorded: from the call to the start of the missing task."""
    sizes = {"M": list(range(1, 101)), "N": list(range(1, 101)), "P": list(range(1, 11)), "d": 1000}
    tables = {"method": "equivalent", "sizes": sizes, "schedules": [{"kind": "block", "L": 1000}]}
    tasks = load_sweep(tables).tasks
    row = '[{"approx":0.0012345678901234567,"bias":0.0012345678901234567,"variance":0.0012345678901234567}]'
    with tempfile.TemporaryDirectory() as folder:
        code = {"software": software(risk_rows), "function": function_path(risk_rows)}
        with Store(Path(folder), seed=0, **code) as store:
            store.record(
                Outcome(key=key(task, 0), **code, task=task, seconds=0.01, machine="{}", rows=row)
                for task in tasks[:-1]
            )
        clocks = (
            time.perf_counter,
            time.process_time,
        )  # the second does not count a busy machine's other work
        began: list[float] = []
        start = [clock() for clock in clocks]
        sweep(tables, folder, announce=lambda ahead: began.extend(clock() for clock in clocks))
    for name, before, after in zip(("wall", "processor"), start, began, strict=True):
        report(
            f"{name} seconds until a sweep of 10^5 recorded tasks begins the missing one",
            after - before,
            "< 2",
        )


def overhead() -> None:
    """10 ms tasks in one process, against a bare loop: median of interleaved rounds."""
    tasks = [{"loops": loops_for(10), "i": i} for i in range(150)]
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for attempt in range(7):
            start = time.perf_counter()
            for task in tasks:
                spin(task, 0)
            middle = time.perf_counter()
            run(spin, tasks, folder=Path(folder) / str(attempt))
            ratios.append((time.perf_counter() - middle) / (middle - start))
    report("10 ms tasks: the lab in one process over a bare loop", statistics.median(ratios), "< 1.2")


def two_cores() -> None:
    """The rate of two workers against that of two bare loops side by side: median of interleaved rounds.

    The start of the cluster is left out: the rate counts from the first to the last recorded group.
    """
    loops, count = loops_for(10), 500
    code = (
        f"import sys, time; sys.path.insert(0, {str(HERE)!r}); from bench_lab import spin\n"
        f"start = time.perf_counter()\nfor i in range({count // 2}): spin({{'loops': {loops}}}, 0)\n"
        "print(time.perf_counter() - start)"
    )
    tasks = [{"loops": loops, "i": i} for i in range(count)]
    ratios = []
    with tempfile.TemporaryDirectory() as folder:
        for attempt in range(5):
            pair = [subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) for _ in range(2)]
            bare = [float(process.communicate()[0]) for process in pair]
            marks: list[tuple[float, int]] = []
            run(
                spin,
                tasks,
                folder=Path(folder) / str(attempt),
                jobs=2,
                progress=lambda summary, share, marks=marks: marks.append(
                    (time.perf_counter(), summary.done)
                ),
            )
            (first, early), (last, late) = marks[1], marks[-1]
            alone = sum(count / 2 / seconds for seconds in bare)
            ratios.append((late - early) / (last - first) / alone)
    shown = "10 ms tasks: two workers' rate over that of two bare loops"
    report(shown, statistics.median(ratios), ">= 0.85")


if __name__ == "__main__":
    resuming()
    overhead()
    two_cores()
