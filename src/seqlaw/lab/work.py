"""What runs where the work is done: one task, in the driver or in a worker of any cluster."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import os
import platform
import time
from collections.abc import Callable
from typing import Any

from seqlaw.lab.grid import Task, canonical, compact
from seqlaw.lab.software import function_path, software, without_depends
from seqlaw.lab.store import Outcome
from seqlaw.model.device import WORKER
from seqlaw.model.helper_process import die_with_parent

Function = Callable[[Task, int], list[dict[str, Any]]]
"""A task and a seed to tidy rows; importable or picklable, and a pure function of both."""

Job = tuple[str, Task, str]
"""A task with its key and the software that is to answer it."""


def attempt(function: Function, job: Job, seed: int) -> Outcome:
    """Run one task; whatever it raises becomes the reason of its failure, so that the rest goes on."""
    key, task, wanted = job
    path = function_path(function)
    # A function of a script or a notebook travels with its code: here is no file to tell it by.
    code = wanted if path.startswith("__main__:") else software(function, task)
    code = wanted if code == without_depends(wanted) else code
    start = time.perf_counter()
    rows = error = None
    try:
        found = function(task, seed)
        rows = compact([{name: _plain(value) for name, value in row.items()} for row in found])
    except (Exception, SystemExit) as raised:  # any fault of a task is a result of the sweep, not its end
        error = " ".join(f"{type(raised).__name__}: {raised}".split())
    return Outcome(
        key=key,
        software=code,
        function=path,
        task=task,
        seconds=time.perf_counter() - start,
        machine=facts(),
        rows=rows,
        error=error,
    )


def failure(job: Job, path: str, reason: str, seconds: float = 0.0) -> Outcome:
    """A task of the function at a path that ended with its process."""
    key, task, code = job
    return Outcome(
        key=key, software=code, function=path, task=task, seconds=seconds, machine=facts(), error=reason
    )


@functools.cache
def facts() -> str:
    """What this machine is, as far as the last bits of a number may depend on it."""
    return canonical(
        {
            "host": platform.node(),
            "system": platform.platform(),
            "processor": _processor(),
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "packages": versions("numpy", "scipy", "numba", "torch"),
        }
    )


def versions(*packages: str) -> dict[str, str]:
    """The versions of those that are installed."""
    found = {}
    for name in packages:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[name] = importlib.metadata.version(name)
    return found


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor()


def _plain(value: Any) -> Any:
    """A NumPy scalar as the Python number of the same bits."""
    return value.item() if hasattr(value, "item") else value


def dask_setup(worker: object) -> None:
    """Called by dask in each worker of a local cluster: it must not outlive its driver.

    Workers are numbered, for where each is to have a GPU.
    """
    os.environ[WORKER] = str(getattr(worker, "name", ""))
    die_with_parent()
