"""Tasks in a process of their own, which is ended if one of them takes too long."""

from __future__ import annotations

import pickle
import subprocess
import sys
import threading
import time

from seqlaw.lab.errors import EngineError
from seqlaw.lab.software import function_path
from seqlaw.lab.store import Outcome
from seqlaw.lab.work import Function, Job, attempt, facts
from seqlaw.model.checks import library
from seqlaw.model.process import command, pack, served, unpack
from seqlaw.model.threads import one_thread


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
        timer = threading.Timer(self._timeout, process.kill)
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
        if outcome is None or seconds >= self._timeout:  # it may be killed only now
            self.close()
        if outcome is not None:
            found: Outcome = outcome
            return found
        reason = "WorkerDied: the process of this task ended (killed, crashed or out of memory)"
        if seconds >= self._timeout:
            reason = f"Timeout: it took longer than {self._timeout:g} s"
        key, task, code = job
        return Outcome(
            key=key,
            software=code,
            function=self._path,
            task=task,
            seconds=seconds,
            machine=facts(),
            error=reason,
        )

    def _started(self) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        process = self._process = subprocess.Popen(command(__name__), stdin=pipe, stdout=pipe)
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
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def main() -> None:
    """Run tasks until the input closes."""
    messages, send = served()
    path, work = next(messages)
    sys.path[:] = path
    function, seed = pickle.loads(work)
    send("ready")
    with one_thread():
        for job in messages:
            send(attempt(function, job, seed, facts()))


if __name__ == "__main__":
    main()
