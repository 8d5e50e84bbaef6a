"""A sweep: tasks that are not recorded yet go to an engine, and what comes back goes to the store."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from seqlaw.lab.engine import Cost, Notice, in_process, joined_cluster, local_cluster, on_cluster
from seqlaw.lab.grid import Task, key
from seqlaw.lab.store import Outcome, Store
from seqlaw.lab.work import Function, Job, version


@dataclass(frozen=True, kw_only=True)
class Summary:
    """How a sweep stands: `tasks = done + skipped + failed`, unless it was interrupted."""

    tasks: int
    done: int
    """Run now, with success."""
    skipped: int
    """Recorded before, with success."""
    failed: int
    """Recorded with a reason instead of rows, now or before."""
    seconds: float
    others: dict[str, int] = field(default_factory=dict)
    """Tasks recorded in the same folder by other versions of the software: kept, and left alone."""


Progress = Callable[[Summary, float], None]
"""Called after every record with the summary so far and the share of the estimated work that is done."""


def run(
    function: Function,
    tasks: Iterable[Task],
    *,
    folder: Path | str,
    seed: int = 0,
    jobs: int = 1,
    scheduler: str | None = None,
    cost: Cost | None = None,
    retry_failed: bool = False,
    note: str = "",
    progress: Progress = lambda summary, share: None,
    notice: Notice = lambda line: None,
) -> Summary:
    """Run `function(task, seed)` for every task that `folder` has no record of, and record the rows.

    `jobs` local processes (1: this one), or the dask cluster of `scheduler` (an address or a scheduler file).
    The rows depend on neither. With a `cost`, the dearest tasks go first, so that no worker ends late.
    KeyboardInterrupt (Ctrl-C, or SIGTERM) leaves with the finished work recorded.
    In a script, `jobs` above 1 needs the usual `if __name__ == "__main__":`, since workers import the script.
    """
    start = time.monotonic()
    jobs_by_key: dict[str, Task] = {key(task, seed): task for task in tasks}
    with Store(Path(folder), seed=seed, version=version(function), note=note) as store, _shield() as shield:
        recorded, failures = store.known()
        if retry_failed:
            failures = set()
        todo: list[Job] = [
            job for job in jobs_by_key.items() if job[0] not in recorded and job[0] not in failures
        ]
        if cost is not None:
            todo.sort(key=lambda job: -cost(job[1]))
        price = cost or (lambda task: 1.0)
        work, worked = sum(price(task) for _, task in todo), 0.0
        skipped = sum(k in recorded for k in jobs_by_key)
        done, failed = 0, sum(k in failures for k in jobs_by_key)
        others = store.others()

        def summary() -> Summary:
            return Summary(
                tasks=len(jobs_by_key),
                done=done,
                skipped=skipped,
                failed=failed,
                seconds=time.monotonic() - start,
                others=others,
            )

        def record(batch: list[Outcome]) -> None:
            nonlocal done, failed, worked
            with shield():
                store.record(batch)
            lost = sum(outcome.error is not None for outcome in batch)
            done, failed = done + len(batch) - lost, failed + lost
            worked += sum(price(outcome.task) for outcome in batch)
            progress(summary(), worked / work)

        progress(summary(), 0.0 if todo else 1.0)
        batches = _batches(function, todo, seed, jobs, scheduler, cost, notice)
        with contextlib.closing(batches):
            try:
                for batch in batches:
                    record(batch)
            except KeyboardInterrupt:
                # Raised here and not in the engine, it has not asked yet what else is finished.
                with contextlib.suppress(KeyboardInterrupt, StopIteration):
                    record(batches.throw(KeyboardInterrupt()))
                raise
        return summary()


def _batches(
    function: Function,
    todo: list[Job],
    seed: int,
    jobs: int,
    scheduler: str | None,
    cost: Cost | None,
    notice: Notice,
) -> Generator[list[Outcome], None, None]:
    if not todo:
        return
    if scheduler is None and jobs == 1:
        yield from in_process(function, todo, seed)
        return
    cluster = local_cluster(min(jobs, len(todo))) if scheduler is None else joined_cluster(scheduler)
    with cluster as client:
        yield from on_cluster(client, function, todo, seed, cost=cost, notice=notice)


@contextlib.contextmanager
def _shield() -> Iterator[Callable[[], contextlib.AbstractContextManager[None]]]:
    """Ctrl-C and SIGTERM as KeyboardInterrupt, put off inside the context that it gives."""
    if threading.current_thread() is not threading.main_thread():  # signals are the main thread's
        yield contextlib.nullcontext
        return
    shielded = pending = False

    def receive(signum: int, frame: FrameType | None) -> None:
        nonlocal pending
        if shielded:
            pending = True
        else:
            raise KeyboardInterrupt

    @contextlib.contextmanager
    def shield() -> Iterator[None]:
        nonlocal shielded
        shielded = True
        try:
            yield
        finally:
            shielded = False
        if pending:
            raise KeyboardInterrupt

    before = {number: signal.signal(number, receive) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield shield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
