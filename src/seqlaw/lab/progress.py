"""How far long work is: a bar in a terminal, a line in a notebook, elsewhere lines if asked for."""

from __future__ import annotations

import importlib
import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from seqlaw.lab.run import Summary
from seqlaw.model.amount import duration
from seqlaw.model.threads import repeated

EVERY = 10.0
"""Seconds between two plain lines."""


def seconds_left(elapsed: float, share: float, since: float = 0.0) -> float | None:
    """(1 - share) · elapsed/share - since: the first records set the pace.

    `share` is one of the work, since tasks differ in size; it and `elapsed` belong to the last record,
    `since` seconds ago, since a task may be long. None before the first record.
    """
    if share <= 0:
        return None
    return max((1 - share) * elapsed / share - since, 0.0)


def left_words(elapsed: float, share: float, since: float = 0.0) -> str:
    """The time left for people; nothing before the first record."""
    seconds = seconds_left(elapsed, share, since)
    return "" if seconds is None else f"about {duration(max(seconds, 1.0))} left"


Draw = Callable[[float | None, str, Callable[[], str]], None]
"""Shows a share of the work (None: unknown), words, and what says the time left whenever it is asked."""


class WorkBar:
    """The share of the work with tasks and time left, then what comes after; silent without `draw`."""

    def __init__(self, draw: Draw = lambda share, text, left: None) -> None:
        self._draw, self._start = draw, time.monotonic()
        self._elapsed = self._share = 0.0
        self._summary: Summary | None = None
        self._longest: Callable[[], str] = lambda: ""
        self._shown: tuple[float | None, str, Callable[[], str]] = (0.0, "starting", self.left)
        draw(*self._shown)

    def progress(self, summary: Summary, share: float) -> None:
        """After a record: see `seqlaw.lab.run.Progress`."""
        self._elapsed, self._share, self._summary = time.monotonic() - self._start, share, summary
        ended = summary.done + summary.skipped + summary.failed
        self._show(share, f"{share:.0%}, {ended}/{summary.tasks} tasks", self.left)

    def step(self, text: str) -> None:
        """What is done now that is not a task; nobody knows how long it takes."""
        self._show(None, text, lambda: "")

    def watch(self, longest: Callable[[], str]) -> None:
        """What names the longest running task from now on."""
        self._longest = longest

    def again(self) -> None:
        """Say how it stands once more if a task takes long: no record comes meanwhile."""
        if self._longest():
            self._draw(*self._shown)

    def _show(self, share: float | None, text: str, left: Callable[[], str]) -> None:
        self._shown = (share, text, left)
        self._draw(*self._shown)

    def kept(self) -> str:
        """What an interruption leaves, for people."""
        if self._summary is None:
            return "stopped; the same command goes on"
        kept = self._summary.done + self._summary.skipped + self._summary.failed
        return f"stopped: {kept} of {self._summary.tasks} tasks kept; the same command goes on"

    def left(self) -> str:
        """The time left, and the longest running task, for people."""
        since = time.monotonic() - self._start - self._elapsed
        known = left_words(self._elapsed, self._share, since)
        return ", ".join(filter(None, (known, self._longest())))


@contextmanager
def drawn_bar(*, plain: bool = False) -> Iterator[WorkBar]:
    """The bar, drawn on standard error if that is a terminal, or in the notebook; lines if `plain`.

    A terminal's redraws itself; the others are asked now and then whether a task takes long.
    """
    if not plain and sys.stderr.isatty():
        with _terminal() as draw:
            yield WorkBar(draw)
        return
    line = plain_lines() if plain else _notebook()
    bar = WorkBar() if line is None else WorkBar(line)
    with repeated(bar.again, EVERY):
        yield bar


def plain_lines() -> Draw:
    """Lines on standard error, EVERY seconds at most; the end, and what is no task, always have one."""
    last = -math.inf

    def draw(share: float | None, text: str, left: Callable[[], str]) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last >= EVERY or share is None or share >= 1:
            last = now
            words = [text, "" if share is None or share >= 1 else left()]
            print(f"seqlaw: {', '.join(filter(None, words))}", file=sys.stderr, flush=True)

    return draw


@contextmanager
def _terminal() -> Iterator[Draw]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    class Left(ProgressColumn):
        """Asked again at each redraw, so that it counts down between records."""

        def render(self, task: Task) -> Text:
            return Text(task.fields["left"]())

    columns = (BarColumn(), TextColumn("{task.description}"), Left())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0, left=lambda: "")
        yield lambda share, text, left: bar.update(
            task, completed=share, total=None if share is None else 1.0, description=text, left=left
        )


def _notebook() -> Draw | None:
    """One line that is written over; None outside of a notebook."""
    if "IPython" not in sys.modules:
        return None
    ipython: Any = importlib.import_module("IPython")
    shell = ipython.get_ipython()
    if shell is None or not hasattr(shell, "kernel"):
        return None
    line = ipython.display.display({"text/plain": ""}, raw=True, display_id=True)

    def draw(share: float | None, text: str, left: Callable[[], str]) -> None:
        line.update({"text/plain": f"{text}  {left()}".rstrip()}, raw=True)

    return draw
