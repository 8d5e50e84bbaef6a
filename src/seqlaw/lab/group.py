"""A group of tasks where the work is done: one after the other, with word of those that take long."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from seqlaw.lab.child import Child
from seqlaw.lab.grid import Task
from seqlaw.lab.store import Outcome
from seqlaw.lab.work import Function, Job, attempt
from seqlaw.model.amount import duration
from seqlaw.model.threads import one_thread

LONG = 3.0
"""Seconds after which a task is named."""
_here = threading.local()  # the child of a worker's thread


class AtWork:
    """Which tasks are running, as far as the driver knows: those that take longer than LONG."""

    def __init__(self, tasks: Mapping[str, Task]) -> None:
        self._tasks, self._varied = tasks, list[str]()
        self._since: dict[str, float] = {}

    def began(self, key: str, ago: float = 0.0) -> None:
        self._since[key] = time.monotonic() - ago

    def ended(self, keys: Iterable[str]) -> None:
        for key in keys:
            self._since.pop(key, None)

    def longest(self) -> str:
        """The task that has run for the longest time, for people; empty if none takes long."""
        running = sorted((since, key) for key, since in list(self._since.items()))
        if not running or time.monotonic() - running[0][0] < LONG:
            return ""
        since, key = running[0]
        return f"longest running: {self._name(key)}, for {duration(time.monotonic() - since)}"

    def _name(self, key: str) -> str:
        """A task by what tells it from the others."""
        if not self._varied:
            first = next(iter(self._tasks.values()))
            others = [name for name in first if any(t.get(name) != first[name] for t in self._tasks.values())]
            self._varied = [name for name in others if name != "points"] or ["key"]
        task = {"key": key[:8]} | self._tasks[key]
        return " ".join(f"{name}={task.get(name)}" for name in self._varied)


def run_group(
    function: Function, jobs: Sequence[Job], seed: int, timeout: float | None = None, topic: str = ""
) -> list[Outcome]:
    """Run a group of tasks in a worker of a cluster; those that take long are announced under the topic."""
    child = None
    if timeout is not None:
        child = getattr(_here, "child", None)
        if child is None or not child.does(function, seed, timeout):
            child = _here.child = Child(function, seed, timeout)
    outcomes = []
    with one_thread(), _announced(topic) as announce:
        for job in jobs:
            announce(job[0])
            outcomes.append(attempt(function, job, seed) if child is None else child.attempt(job))
    return outcomes


@contextmanager
def _announced(topic: str) -> Iterator[Callable[[str], None]]:
    """A function that is told each task's key; after LONG seconds with one, the driver is told too."""
    from distributed import get_worker

    worker: Any = None
    with suppress(ValueError):  # no worker: a test
        worker = get_worker()
    now: list[Any] = ["", 0.0, False]
    over = threading.Event()

    def watch() -> None:
        while not over.wait(1.0):
            key, start, told = now
            ago = time.monotonic() - start
            if ago > LONG and not told and worker is not None:
                now[2] = True
                worker.log_event(topic, {"key": key, "ago": ago})

    def announce(key: str) -> None:
        now[:] = [key, time.monotonic(), False]

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield announce
    finally:
        over.set()
