"""Where the work is done: a process for tasks that may take too long, and a group of tasks in a worker.

A worker runs its group one after the other, with word of tasks that take long.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from seqlaw.lab.errors import EngineError
from seqlaw.lab.software import function_path, software
from seqlaw.lab.store import Outcome
from seqlaw.lab.work import Function, Job, attempt, facts, failure
from seqlaw.model.checks import library
from seqlaw.model.helper_process import command, pack, served, unpack
from seqlaw.model.threads import one_thread, repeated

LONG = 3.0
"""Seconds after which a task is named."""
_here = threading.local()  # the child of a worker's thread


class Child:
    """A process for the tasks of one function; started for the first, and anew after one that it ended at."""

    def __init__(self, function: Function, seed: int, timeout: float) -> None:
        self._path, self._timeout = function_path(function), timeout
        self._work: bytes = library("cloudpickle").dumps((function, seed))  # also a script's own functions
        self._process: subprocess.Popen[bytes] | None = None

    def does(self, function: Function, seed: int, timeout: float) -> bool:
        """Whether it is for this work."""
        return (self._work, self._timeout) == (library("cloudpickle").dumps((function, seed)), timeout)

    def attempt(self, job: Job) -> Outcome:
        """Run one task; taking too long and ending its process are reasons of a failure, as any other."""
        process = self._process or self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        late = threading.Event()

        def stop() -> None:
            late.set()
            _kill(process)

        timer = threading.Timer(min(self._timeout, threading.TIMEOUT_MAX), stop)
        timer.daemon = True
        start = time.perf_counter()
        try:
            timer.start()
            process.stdin.write(pack(job))
            process.stdin.flush()
            (outcome,) = unpack(process.stdout)
        except (EOFError, OSError):
            outcome = None
        finally:
            timer.cancel()  # after an interruption too, or the program would wait for it
        seconds = time.perf_counter() - start
        if outcome is None or late.is_set():  # it may be killed only now
            self.close()
        if outcome is not None:
            found: Outcome = outcome
            return found
        reason = "WorkerDied: the process of this task ended (killed, crashed or out of memory)"
        if late.is_set():
            reason = f"Timeout: it took longer than {self._timeout:g} s"
        return failure(job, self._path, reason, seconds)

    def _started(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        # A session of its own: what the task starts is ended with it, or its end of the pipe would stay open.
        process = self._process = subprocess.Popen(
            command(__name__), stdin=pipe, stdout=pipe, start_new_session=True
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(pack((sys.path, self._work)))
            process.stdin.flush()
            unpack(process.stdout)
        except (EOFError, OSError):
            self.close()
            raise EngineError(f"the process of a task cannot load {self._path}") from None
        return process

    def close(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            _kill(process)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    assert pipe is not None
                    pipe.close()


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a child and, where the system has groups of processes, what it started."""
    if sys.platform == "win32":
        process.kill()
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


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


@contextlib.contextmanager
def _announced(topic: str) -> Iterator[Callable[[str], None]]:
    """A function that is told each task's key; after LONG seconds with one, the driver is told too."""
    from distributed import get_worker

    worker: Any = None
    with contextlib.suppress(ValueError):  # no worker: a test
        worker = get_worker()
    now: list[Any] = ["", 0.0, False]

    def watch() -> None:
        key, start, told = now
        ago = time.monotonic() - start
        if ago > LONG and not told and worker is not None:
            now[2] = True
            worker.log_event(topic, {"key": key, "ago": ago})

    def announce(key: str) -> None:
        now[:] = [key, time.monotonic(), False]

    with repeated(watch, 1.0):
        yield announce


def main() -> None:
    """Run tasks until the input closes."""
    messages, send = served()
    path, work = next(messages)
    sys.path[:] = path
    function, seed = pickle.loads(work)
    if not function_path(function).startswith("__main__:"):
        software(function)  # takes a second the first time, which is not the first task's
    facts()
    send("ready")
    with one_thread():
        for job in messages:
            send(attempt(function, job, seed))


if __name__ == "__main__":
    main()
