"""Threads that change no bit: one inside BLAS, several over independent tasks, results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Event, Thread
from typing import TypeVar

from threadpoolctl import threadpool_limits

Task = TypeVar("Task")
Result = TypeVar("Result")
_LIMITED: ContextVar[bool] = ContextVar("limited", default=False)


@contextmanager
def one_thread() -> Iterator[None]:
    """A context, or as `@one_thread()` a decorator, in which BLAS and LAPACK use one thread.

    Sums then come in one order, so stored numbers do not depend on a machine's cores, and several workers do
    not ask for more threads than there are cores, which costs far more than it gives.
    """
    if _LIMITED.get():  # to look the libraries up again would take 1.4 ms
        yield
        return
    before = _LIMITED.set(True)
    try:
        with threadpool_limits(limits=1, user_api="blas"):
            yield
    finally:
        _LIMITED.reset(before)


@contextmanager
def repeated(call: Callable[[], None], seconds: float) -> Iterator[None]:
    """A context in which a thread makes a call every so many seconds."""
    over = Event()

    def repeat() -> None:
        while not over.wait(seconds):
            call()

    Thread(target=repeat, daemon=True).start()
    try:
        yield
    finally:
        over.set()


def cores() -> int:
    """The processors that this process may use where the system says (Linux), else those that there are."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def in_order(function: Callable[[Task], Result], tasks: Iterable[Task], workers: int) -> Iterator[Result]:
    """Results in the order of the tasks, with at most `workers` + 1 of them alive."""
    if workers == 1:
        yield from map(function, tasks)
        return
    with ThreadPoolExecutor(workers) as pool:
        window: deque[Future[Result]] = deque()
        for task in tasks:
            window.append(pool.submit(function, task))
            if len(window) > workers:
                yield window.popleft().result()
        while window:
            yield window.popleft().result()
