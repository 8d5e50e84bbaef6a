"""Few workers, a short queue, a time limit: what keeps the server bounded. And jobs, which take longer."""

from __future__ import annotations

import asyncio
import os
import pickle
import secrets
import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from seqlaw.model.checks import InputError
from seqlaw.model.helper_process import HEADER, command, pack
from seqlaw.web.worker import Progress

_START_SECONDS = 60.0  # for a worker to load the numerics on a busy machine
_KEEPING = {"MALLOC_MMAP_THRESHOLD_": str(2**25), "MALLOC_TRIM_THRESHOLD_": str(2**26)}
"""Else glibc hands every array above 128 KiB back to the system, which takes a tenth of a plan's time."""
GONE = (asyncio.IncompleteReadError, ConnectionError)
"""What reading from or writing to an ended worker raises."""


class Busy(Exception):
    """No room in the queue."""


class OutOfTime(Exception):
    """The answer took longer than the limit; its worker was stopped."""


class Lost(Exception):
    """The worker ended amid the question, and so did a second one."""


class Fault(Exception):
    """The worker met a fault of our own, which it has printed."""


class Worker:
    """One process of `seqlaw.web.worker`."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    @classmethod
    async def start(cls) -> Worker:
        process = await asyncio.create_subprocess_exec(
            *command("seqlaw.web.worker"),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            env={**_KEEPING, **os.environ},
        )
        worker = cls(process)
        try:
            async with asyncio.timeout(_START_SECONDS):
                await worker._read()
        except BaseException as error:
            await worker.stop()
            if isinstance(error, (TimeoutError, *GONE)):
                raise Lost from error
            raise
        return worker

    async def _read(self) -> tuple[Any, ...]:
        assert self._process.stdout is not None
        head = await self._process.stdout.readexactly(HEADER.size)
        message: tuple[Any, ...] = pickle.loads(
            await self._process.stdout.readexactly(HEADER.unpack(head)[0])
        )
        return message

    async def ask(self, view: str, body: Any, progress: Progress) -> bytes:
        """The JSON of a view, or the InputError that it raised."""
        assert self._process.stdin is not None
        self._process.stdin.write(pack((view, body)))
        await self._process.stdin.drain()
        while True:
            kind, *rest = await self._read()
            if kind == "progress":
                progress(*rest)
            elif kind == "refused":
                raise InputError(*rest)
            elif kind == "failed":
                raise Fault
            else:
                text: bytes = rest[0]
                return text

    @property
    def ended(self) -> bool:
        return self._process.returncode is not None

    async def stop(self) -> None:
        with suppress(ProcessLookupError):
            self._process.kill()
        await self._process.wait()


class Pool:
    """At most `size` workers at work and `queue` questions waiting."""

    def __init__(self, *, size: int, queue: int, seconds: float) -> None:
        self.queue, self.seconds = queue, seconds
        self.waiting = 0
        self._slots = asyncio.Semaphore(size)
        self._idle: list[Worker] = []
        self._workers: set[Worker] = set()

    async def warm(self) -> None:
        """Have one worker ready before the first question."""
        self._idle.append(await self._start())

    async def _start(self) -> Worker:
        worker = await Worker.start()
        self._workers.add(worker)
        return worker

    async def _drop(self, worker: Worker) -> None:
        self._workers.discard(worker)
        await worker.stop()

    async def run(
        self, view: str, body: Any, *, progress: Progress | None = None, started: asyncio.Event | None = None
    ) -> bytes:
        """Ask a free worker; cancelling this stops the worker, whatever it is doing."""
        if self.waiting >= self.queue:
            raise Busy
        self.waiting += 1
        try:
            await self._slots.acquire()
        finally:
            self.waiting -= 1
        try:
            if started is not None:
                started.set()
            while self._idle and self._idle[-1].ended:
                await self._drop(self._idle.pop())
            if self._idle:
                with suppress(*GONE):  # it has ended just now, which may not be the question's fault
                    return await self._ask(self._idle.pop(), view, body, progress)
            try:
                return await self._ask(await self._start(), view, body, progress)
            except GONE as error:
                raise Lost from error
        finally:
            self._slots.release()

    async def _ask(self, worker: Worker, view: str, body: Any, progress: Progress | None) -> bytes:
        try:
            async with asyncio.timeout(self.seconds):
                text = await worker.ask(view, body, progress or (lambda done, total: None))
        except (InputError, Fault):
            self._idle.append(worker)
            raise
        except TimeoutError:
            await self._drop(worker)
            raise OutOfTime from None
        except BaseException:  # cancelled, or the worker is gone: either way it cannot be used again
            await self._drop(worker)
            raise
        self._idle.append(worker)
        return text

    async def close(self) -> None:
        for worker in list(self._workers):
            await self._drop(worker)


@dataclass(kw_only=True, eq=False)
class Job:
    """A question in the background."""

    id: str = field(default_factory=lambda: secrets.token_urlsafe(12))
    state: str = "waiting"
    done: int = 0
    total: int = 0
    answer: bytes | None = None
    error: InputError | None = None
    seen: float = field(default_factory=time.monotonic)
    task: asyncio.Task[bytes] | None = None

    def progress(self, done: int, total: int) -> None:
        self.done, self.total = done, total


class Jobs:
    """Jobs that can be watched and cancelled; one that nobody watches any more is cancelled too."""

    KEPT = 32
    ACTIVE = 4
    UNWATCHED_SECONDS = 30.0

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._followers: set[asyncio.Task[None]] = set()

    def start(self, view: str, body: Any) -> Job:
        if sum(job.state in ("waiting", "running") for job in self._jobs.values()) >= self.ACTIVE:
            raise Busy
        job = Job()
        self._jobs[job.id] = job
        while len(self._jobs) > self.KEPT:
            ended = next(key for key, j in self._jobs.items() if j.state not in ("waiting", "running"))
            del self._jobs[ended]
        started = asyncio.Event()
        job.task = asyncio.create_task(self._pool.run(view, body, progress=job.progress, started=started))
        follower = asyncio.create_task(self._follow(job, job.task, started))
        self._followers.add(follower)
        follower.add_done_callback(self._followers.discard)
        return job

    async def _follow(self, job: Job, task: asyncio.Task[bytes], started: asyncio.Event) -> None:
        while not task.done():
            await asyncio.wait({task}, timeout=0.25)
            if started.is_set() and job.state == "waiting":
                job.state = "running"
            if time.monotonic() - job.seen > self.UNWATCHED_SECONDS:
                task.cancel()
        try:
            job.answer, job.state = task.result(), "done"
        except asyncio.CancelledError:
            job.state = "cancelled"
        except InputError as error:
            job.error, job.state = error, "failed"
        except OutOfTime:
            job.error = InputError("time", f"must stay below {self._pool.seconds:g} s", "a longer job")
            job.state = "failed"
        except Exception:  # whatever it is: a job that runs for ever would block all others
            job.error, job.state = InputError("job", "must not end its worker", "a stopped worker"), "failed"

    def get(self, key: str) -> Job | None:
        job = self._jobs.get(key)
        if job is not None:
            job.seen = time.monotonic()
        return job

    async def cancel(self, job: Job) -> None:
        """Stop the job and wait until its worker is gone."""
        if job.task is not None and not job.task.done():
            job.task.cancel()
            await asyncio.wait({job.task})
            job.state = "cancelled"

    async def close(self) -> None:
        for job in self._jobs.values():
            await self.cancel(job)
