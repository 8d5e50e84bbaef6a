"""A sweep: tasks that are not recorded yet go to an engine, and what comes back goes to the store."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import FrameType

import numpy as np

from seqlaw.lab.engine import (
    AtWork,
    Notice,
    in_process,
    joined_cluster,
    local_cluster,
    on_cluster,
    scheduler_address,
)
from seqlaw.lab.grid import Task, key
from seqlaw.lab.software import depends_print, function_path, require_unchanged, software, with_named
from seqlaw.lab.store import Outcome, Store, recorded
from seqlaw.lab.work import Function, Job
from seqlaw.model.checks import Array


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
    """Tasks recorded in the same folder by other code (see `software`): kept, and left alone."""


Progress = Callable[[Summary, float], None]
"""Called after every record with the summary so far and the share of the work that is done."""


Announce = Callable[[int, list[Task]], None]
"""Called once before the work with the number of tasks and those that are left, the largest first."""


Watch = Callable[[Callable[[], str]], None]
"""Called once before the work with a function that names the longest running task, for people."""


def run(
    function: Function,
    tasks: Iterable[Task],
    *,
    folder: Path | str,
    seed: int = 0,
    jobs: int = 1,
    scheduler: str | None = None,
    size: Callable[[Task], float] = lambda task: 1.0,
    timeout: float | None = None,
    depends: Sequence[str] = (),
    dry_run: bool = False,
    retry_failed: bool = False,
    kind: str = "",
    note: str = "",
    resume: str = "",
    announce: Announce = lambda tasks, left: None,
    progress: Progress = lambda summary, share: None,
    watch: Watch = lambda longest: None,
    notice: Notice = lambda line: None,
) -> Summary:
    """Run `function(task, seed)` for every task that `folder` has no record of, and record the rows.

    `jobs` local processes (1: this one), or the dask cluster of `scheduler` (an address or a scheduler file).
    The rows depend on neither. The largest tasks by `size` go first, so that no worker ends late.
    `resume` is the command that does the same again, for people who find the folder unfinished. A folder
    takes one `kind` of run, if it has a name (`sweep`, `reproduce`).
    A task that takes longer than `timeout` seconds is ended, which takes a process of its own, and recorded
    as failed. The content of the files that it `depends` on counts as part of the function.
    KeyboardInterrupt (Ctrl-C, or SIGTERM) leaves with the finished work recorded.
    In a script, `jobs` above 1 needs the usual `if __name__ == "__main__":`, since workers import the script.
    """
    start = time.monotonic()
    if scheduler is not None:
        scheduler_address(scheduler)
    named: dict[str, Task] = {key(task, seed): task for task in tasks}
    own = software(function, depends=depends_print(depends))
    planned = {name: with_named(own, task) for name, task in named.items()}
    if dry_run:
        good, bad = recorded(Path(folder), planned, kind=kind)
        bad = set() if retry_failed else bad
        known = good | bad
        left = [task for name, task in named.items() if name not in known]
        announce(len(named), sorted(left, key=size, reverse=True))
        return _known(start, named, good, bad, {})
    require_unchanged()
    opened = Store(
        Path(folder),
        seed=seed,
        software=own,
        function=function_path(function),
        planned=planned,
        depends=depends,
        kind=kind,
        resume=resume,
        note=note,
    )
    with opened as store, _shield() as shield:
        if store.saved:
            notice(store.saved)
        good, bad = store.known()
        bad = set() if retry_failed else bad
        known = good | bad
        todo: list[Job] = [(name, named[name], planned[name]) for name in named if name not in known]
        sizes = {name: size(task) for name, task, _ in todo}
        todo.sort(key=lambda job: sizes[job[0]], reverse=True)
        announce(len(named), [task for _, task, _ in todo])
        tally = Tally(start, _known(start, named, good, bad, store.others()), sizes)
        progress(tally.summary, tally.share())

        def record(batch: list[Outcome]) -> None:
            if not batch:  # an interruption found nothing finished: no progress, and no news on the rate
                return
            with shield():
                store.record(batch)
            tally.add(batch)
            progress(tally.summary, tally.share())

        at_work = AtWork({name: task for name, task, _ in todo})
        watch(at_work.longest)
        batches = _batches(function, todo, seed, jobs, scheduler, timeout, at_work, notice)
        with contextlib.closing(batches):
            try:
                for batch in batches:
                    record(batch)
            except KeyboardInterrupt:
                # Raised here and not in the engine, it has not asked yet what else is finished.
                with contextlib.suppress(KeyboardInterrupt, StopIteration):
                    record(batches.throw(KeyboardInterrupt()))
                raise
        return replace(tally.summary, seconds=time.monotonic() - start)


def _known(
    start: float, named: dict[str, Task], good: set[str], bad: set[str], others: dict[str, int]
) -> Summary:
    """How a sweep stands before the work."""
    counts = {"tasks": len(named), "done": 0, "skipped": len(good), "failed": len(bad)}
    return Summary(**counts, seconds=time.monotonic() - start, others=others)


class Tally:
    """How a sweep stands, and what share of the work is done, by the times of the tasks that have ended.

    The tasks that are left take a + b·size seconds each, a, b ≥ 0 by least squares over those that ended.
    """

    def __init__(self, start: float, summary: Summary, sizes: dict[str, float]) -> None:
        self._start, self.summary, self._sizes = start, summary, sizes
        self._left = np.array([len(sizes), sum(sizes.values())], dtype=float)
        self._normal, self._timed = np.zeros((2, 2)), np.zeros(2)
        self._share = 0.0

    def add(self, batch: list[Outcome]) -> None:
        lost, now = sum(outcome.error is not None for outcome in batch), self.summary
        done, seconds = now.done + len(batch) - lost, time.monotonic() - self._start
        self.summary = replace(now, done=done, failed=now.failed + lost, seconds=seconds)
        rows = np.array([[1.0, self._sizes[outcome.key]] for outcome in batch])
        self._left -= rows.sum(axis=0)
        self._normal += rows.T @ rows
        self._timed += np.array([outcome.seconds for outcome in batch]) @ rows

    def share(self) -> float:
        """Seconds of work done over those in all; it never falls, whatever the next tasks teach."""
        if not round(self._left[0]):
            return 1.0
        if self._timed[0] > 0:
            left = float(self._left @ _line(self._normal, self._timed))
            self._share = max(self._share, self._timed[0] / (self._timed[0] + max(left, 0.0)))
        return self._share


def _line(normal: Array, timed: Array) -> Array:
    """(a, b) ≥ 0 of seconds = a + b·size from Σ(1, s)(1, s)ᵀ and Σ t(1, s); a = 0 where all sizes are one."""
    (n, s), (_, s2) = normal
    if s2 == 0:
        return np.array([timed[0] / n, 0.0])
    a, b = np.linalg.solve(normal, timed) if n * s2 - s**2 > 1e-9 * n * s2 else (-1.0, 0.0)
    if a < 0:
        a, b = 0.0, timed[1] / s2
    return np.array([a, b] if b >= 0 else [timed[0] / n, 0.0])


class Together:
    """The progress of runs in turn as that of one of `tasks` tasks; `parts` is how many each has to run."""

    def __init__(self, progress: Progress, parts: Sequence[int], tasks: int) -> None:
        self._progress, self._parts, self._tasks = progress, parts, tasks
        self.ended: list[Summary] = []

    def show(self, now: Summary, share: float) -> None:
        """The progress of the run that is under way."""
        begun, work, names = [*self.ended, now], sum(self._parts), ("done", "skipped", "failed", "seconds")
        sums = {name: sum(getattr(one, name) for one in begun) for name in names}
        done = sum(self._parts[: len(self.ended)]) + share * self._parts[len(self.ended)]
        self._progress(replace(begun[0], tasks=self._tasks, **sums), done / work if work else 1.0)


def _batches(
    function: Function,
    todo: list[Job],
    seed: int,
    jobs: int,
    scheduler: str | None,
    timeout: float | None,
    at_work: AtWork,
    notice: Notice,
) -> Generator[list[Outcome], None, None]:
    if not todo:
        return
    if scheduler is None and jobs == 1:
        yield from in_process(function, todo, seed, timeout=timeout, at_work=at_work)
        return
    cluster = local_cluster(min(jobs, len(todo))) if scheduler is None else joined_cluster(scheduler)
    with cluster as client:
        yield from on_cluster(client, function, todo, seed, at_work=at_work, timeout=timeout, notice=notice)


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
