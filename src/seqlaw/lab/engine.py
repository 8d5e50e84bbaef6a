"""Where tasks run: in this process, on a local cluster, or on a dask cluster that the user runs.

Each engine is a generator of batches of outcomes, in the order in which they finish. Small tasks travel
in groups of about half a second: one message and one transaction a group.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import queue
import re
import signal
import sys
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from multiprocessing import resource_tracker
from typing import Any, TypeAlias

from seqlaw.lab.child import LONG, Child, run_group
from seqlaw.lab.errors import EngineError
from seqlaw.lab.grid import Task
from seqlaw.lab.software import function_path
from seqlaw.lab.store import Outcome
from seqlaw.lab.work import Function, Job, attempt, failure
from seqlaw.model.amount import duration
from seqlaw.model.checks import InputError, library
from seqlaw.model.threads import one_thread

Client: TypeAlias = Any  # of distributed, which is not typed, and imported only where it is needed
Future: TypeAlias = Any

GROUP_SECONDS = 0.5
"""The work in a group: what a kill can cost each worker, and what hides a message of a few milliseconds."""
LARGEST_GROUP = 1000
GROUPS_A_THREAD = 2  # one at work and one at hand
DEATHS = 2
"""Workers that a group, and then a task alone, may cost (on your own cluster: dask's default, 4)."""
_DIED = "WorkerDied: every worker that ran this task alone died (killed, crashed or out of memory)"

_ADDRESS = re.compile(
    r"(?:(?:tcp|tls|ws|wss|ucx)://)?(?:[\w.-]+|\[[0-9a-fA-F:.%\w]+\]):"
    r"(?:[1-9]\d{0,3}|[1-5]\d{4}|6[0-4]\d{3}|65[0-4]\d\d|655[0-2]\d|6553[0-5])"
)
Notice = Callable[[str], None]


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


def in_process(
    function: Function, jobs: Sequence[Job], seed: int, *, timeout: float | None, at_work: AtWork
) -> Iterator[list[Outcome]]:
    """One task after the other, here or, with a timeout, in a child of this process.

    An interruption still yields what is finished before it goes on up.
    """
    child = None if timeout is None else Child(function, seed, timeout)
    batch: list[Outcome] = []
    last = time.monotonic()
    try:
        with one_thread():
            for job in jobs:
                at_work.began(job[0])
                batch.append(attempt(function, job, seed) if child is None else child.attempt(job))
                at_work.ended([job[0]])
                if time.monotonic() - last > GROUP_SECONDS or len(batch) >= LARGEST_GROUP:
                    ready, batch = batch, []
                    yield ready
                    last = time.monotonic()
    except KeyboardInterrupt:
        yield batch
        raise
    finally:
        if child is not None:
            child.close()
    yield batch


@contextlib.contextmanager
def local_cluster(workers: int) -> Iterator[Client]:
    """A cluster of worker processes with one thread and one BLAS thread each, which end with this process."""
    dask, distributed = library("dask"), library("distributed")
    settings = {
        "distributed.scheduler.allowed-failures": DEATHS - 1,
        "distributed.scheduler.worker-ttl": None,  # a task that holds the interpreter lock is not dead
        "distributed.worker.profile.enabled": False,
        "distributed.admin.tick.limit": "1h",
        "distributed.deploy.lost-worker-timeout": "5m",  # a busy machine takes its time to start one again
        "distributed.nanny.pre-spawn-environ": {
            # dask's own 65536 gives every freed matrix of 128×128 back to the system: 30 % more time
            "MALLOC_TRIM_THRESHOLD_": 2**26,
            "MALLOC_MMAP_THRESHOLD_": 2**26,
            **{f"{name}_NUM_THREADS": 1 for name in ("OMP", "MKL", "OPENBLAS", "NUMBA")},
        },
    }
    with dask.config.set(settings), contextlib.ExitStack() as stack:
        # Threads and processes inherit the mask: Ctrl-C is for the driver, which ends its workers itself.
        with _sigint_blocked():
            cluster = stack.enter_context(
                distributed.LocalCluster(
                    n_workers=workers,
                    threads_per_worker=1,
                    processes=True,
                    dashboard_address=None,
                    # Any free port: the default one may be another cluster's, and would be warned about.
                    scheduler_kwargs={"dashboard": False, "dashboard_address": "127.0.0.1:0"},
                    silence_logs=logging.CRITICAL,
                    preload=["seqlaw.lab.work"],
                )
            )
        client = stack.enter_context(distributed.Client(cluster, set_as_default=False))
        try:
            yield client
        except BaseException:
            cluster.sync(_end_now, cluster)
            raise


@contextlib.contextmanager
def _sigint_blocked() -> Iterator[None]:
    """What starts inside ignores Ctrl-C, where the system has signal masks (Windows has none)."""
    if sys.platform == "win32":
        yield
        return
    resource_tracker.ensure_running()  # starting it lifts the mask, so it goes first
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


async def _end_now(cluster: Any) -> None:
    """End the workers without waiting for their tasks: nobody will ask for the results."""
    await asyncio.gather(*(nanny.close(timeout=0.2) for nanny in cluster.workers.values()))


def scheduler_address(scheduler: str) -> str:
    """The address itself, or the one in a scheduler file; refused at once if it is none."""
    address = scheduler
    if os.path.exists(scheduler) or scheduler.endswith(".json"):
        for attempt in range(10):  # the scheduler may be writing it just now
            try:
                with open(scheduler, encoding="utf-8") as file:
                    address = json.load(file)["address"]
                    break
            except FileNotFoundError:
                rule = f"the scheduler file {scheduler} is not there: is the scheduler running?"
                raise EngineError(rule) from None
            except (OSError, ValueError, TypeError, LookupError):
                address = ""
                time.sleep(0.02 * attempt)
    if not isinstance(address, str) or _ADDRESS.fullmatch(address) is None:
        rule = "must be an address like tcp://host:8786, or a scheduler file"
        raise InputError("scheduler", rule, scheduler)
    return address


@contextlib.contextmanager
def joined_cluster(scheduler: str, *, timeout: float = 30) -> Iterator[Client]:
    """The cluster at an address (`tcp://host:8786`) or behind a scheduler file."""
    distributed = library("distributed")
    address = scheduler_address(scheduler)
    try:
        client = distributed.Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise EngineError(f"cannot reach a scheduler at {scheduler}: {reason}") from error
    with client:
        yield client


def on_cluster(
    client: Client,
    function: Function,
    jobs: Sequence[Job],
    seed: int,
    *,
    at_work: AtWork,
    timeout: float | None = None,
    notice: Notice = lambda line: None,
) -> Iterator[list[Outcome]]:
    """Groups of tasks on a cluster's workers.

    dask runs the group of a killed worker again, elsewhere. A group whose workers die every time is taken
    apart at the end, when its tasks run alone, one at a time: only then is a death surely the task's own.
    """
    topic = f"seqlaw-{uuid.uuid4().hex}"
    client.subscribe_topic(topic, lambda event: at_work.began(event[1]["key"], event[1]["ago"]))
    flight = _Flight(client, (function, seed, timeout, topic))
    groups = _Groups(jobs)
    suspects: deque[Job] = deque()
    try:
        while groups or flight or suspects:
            room = GROUPS_A_THREAD * flight.threads(notice)
            while groups and len(flight) < room:
                flight.send(groups.take(room))
            if suspects and not groups and not flight:
                flight.send([suspects.popleft()], alone=True)
            landed = flight.land()
            if landed is None:
                continue
            group, alone, outcomes = landed
            at_work.ended(key for key, _, _ in group)
            if outcomes is not None:
                groups.learn(outcomes)
                yield outcomes
            elif alone:
                yield [failure(job, function_path(function), _DIED) for job in group]
            else:
                suspects.extend(group)
    except KeyboardInterrupt:
        yield flight.finished()
        raise


class _Groups:
    """The tasks still to be sent, and how many of them make half a second."""

    def __init__(self, jobs: Sequence[Job]) -> None:
        self._left = deque(jobs)
        self._seconds = GROUP_SECONDS

    def __len__(self) -> int:
        return len(self._left)

    def learn(self, outcomes: Sequence[Outcome]) -> None:
        """Expect of the next tasks what those of the last group took: the largest go first."""
        self._seconds = sum(outcome.seconds for outcome in outcomes) / len(outcomes)

    def take(self, room: int) -> list[Job]:
        """The next group; one task until one is timed, and smaller groups near the end: no worker waits."""
        fair = min(LARGEST_GROUP, -(-len(self._left) // room))
        many = int(GROUP_SECONDS / max(self._seconds, GROUP_SECONDS / LARGEST_GROUP))
        return [self._left.popleft() for _ in range(max(1, min(many, fair)))]


class _Flight:
    """The groups that are with the cluster now."""

    def __init__(self, client: Client, how: tuple[Function, int, float | None, str]) -> None:
        self._client, self._how = client, how
        self._sent: dict[Future, tuple[list[Job], bool]] = {}
        self._landed: queue.SimpleQueue[Future] = queue.SimpleQueue()
        self._threads, self._asked, self._said = 0, -1.0, False

    def __len__(self) -> int:
        return len(self._sent)

    def threads(self, notice: Notice) -> int:
        """How many threads the cluster has (at least one: work may wait for the first worker)."""
        if time.monotonic() - self._asked > 1 or not self._threads:
            self._threads = sum(self._client.nthreads().values())
            self._asked = time.monotonic()
            if not self._threads and not self._said:
                notice("the cluster has no workers now: waiting for some to join")
            self._said = not self._threads
        return max(1, self._threads)

    def send(self, group: list[Job], *, alone: bool = False) -> None:
        function, *more = self._how
        future = self._client.submit(run_group, function, group, *more, pure=False)
        self._sent[future] = (group, alone)
        future.add_done_callback(self._landed.put)

    def land(self, patience: float = 1.0) -> tuple[list[Job], bool, list[Outcome] | None] | None:
        """The next group that has ended, its outcomes None if its workers died; None if none has ended."""
        from distributed import KilledWorker
        from distributed.client import FutureCancelledError

        try:
            future = self._landed.get(timeout=patience)
        except queue.Empty:
            if self._client.status not in ("running", "connecting"):
                raise EngineError("the scheduler is gone; run the same command again to go on") from None
            if self._deserted():
                raise EngineError("no worker starts again; run the same command again to go on") from None
            return None
        group, alone = self._sent[future]
        try:
            outcomes = future.result()
        except KilledWorker:
            outcomes = None
        except FutureCancelledError:
            raise EngineError("the scheduler is gone; run the same command again to go on") from None
        except (ImportError, AttributeError) as error:
            raise EngineError(f"a worker cannot load the task function: {error}") from error
        for outcome, (_, _, own) in zip(outcomes or (), group, strict=False):
            if outcome.software != own:
                raise EngineError(
                    f"a worker runs version {outcome.software} of the software and this driver {own}: "
                    "install the same on both"
                )
        del self._sent[future]  # only now: `finished` must find it if an interruption came in between
        return group, alone, outcomes

    def _deserted(self) -> bool:
        """Whether every worker of our own cluster has ended for good: too busy a machine starts none."""
        cluster = self._client.cluster  # None if it is another's, whose workers may come back
        if cluster is None:
            return False  # dask forgets workers that it has lost: none at all is the same
        return all(worker.status.name in ("closed", "failed") for worker in cluster.workers.values())

    def finished(self) -> list[Outcome]:
        """The outcomes that are back already; the rest is given up."""
        outcomes: list[Outcome] = []
        for future in list(self._sent):
            if future.status == "finished":
                with contextlib.suppress(OSError, TimeoutError):
                    outcomes += future.result(timeout=5)
        self._client.cancel(list(self._sent), force=True)
        self._sent.clear()
        return outcomes
