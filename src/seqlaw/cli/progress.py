"""How far long work is, on a terminal only."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import typer

from seqlaw.lab.run import Summary

PRIOR = 0.05
"""The share of the work that an estimate made beforehand weighs as much as."""


def seconds_left(elapsed: float, share: float, expected: float | None, since: float = 0.0) -> float | None:
    """(1 - share) · total - since, total = (PRIOR · expected + elapsed) / (PRIOR + share).

    `share` is one of estimated work, since costs differ more than tasks do; it and `elapsed` belong to the
    last record, `since` seconds ago, since a task may be long. None as long as nothing is known.
    """
    if expected is None:
        if share <= 0:
            return None
        total = elapsed / share
    else:
        total = (PRIOR * expected + elapsed) / (PRIOR + share)
    return max((1 - share) * total - since, 0.0)


def duration(seconds: float) -> str:
    """About how long, in the unit that suits it."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return f"{seconds:.2g} s" if seconds < 10 else f"{seconds:.0f} s"


class WorkBar:
    """A bar over the estimated work with tasks and time left, then what comes after; silent without `bar`."""

    def __init__(self, bar: Any | None) -> None:
        self._bar, self._start = bar, time.monotonic()
        self._elapsed = self._share = 0.0
        self._expected: float | None = None
        self._summary: Summary | None = None
        self._task = None if bar is None else bar.add_task("starting", total=1.0, left=self.left)

    def expect(self, seconds: float) -> None:
        """What the work was estimated to take."""
        self._expected = seconds

    def progress(self, summary: Summary, share: float) -> None:
        """After a record: see `seqlaw.lab.run.Progress`."""
        self._elapsed, self._share, self._summary = time.monotonic() - self._start, share, summary
        if self._bar is not None:
            ended = summary.done + summary.skipped + summary.failed
            self._bar.update(
                self._task, completed=share, description=f"{share:.0%}, {ended}/{summary.tasks} tasks"
            )

    def step(self, text: str) -> None:
        """What is done now that is not a task; nobody knows how long it takes."""
        if self._bar is not None:
            self._bar.update(self._task, total=None, description=text, left=lambda: "")

    def kept(self) -> str:
        """What an interruption leaves, for people."""
        if self._summary is None:
            return "stopped; the same command goes on"
        kept = self._summary.done + self._summary.skipped + self._summary.failed
        return f"stopped: {kept} of {self._summary.tasks} tasks kept; the same command goes on"

    def left(self) -> str:
        """The time left, for people."""
        since = time.monotonic() - self._start - self._elapsed
        seconds = seconds_left(self._elapsed, self._share, self._expected, since)
        return "" if seconds is None else f"about {duration(max(seconds, 1.0))} left"


@contextmanager
def work_bar() -> Iterator[WorkBar]:
    """The bar; an interruption says what is kept and ends the command."""
    with ExitStack() as drawn:
        bar = drawn.enter_context(_drawn_bar())
        try:
            yield bar
        except KeyboardInterrupt:
            drawn.close()  # the bar goes before the line comes
            print(f"seqlaw: {bar.kept()}", file=sys.stderr)
            raise typer.Exit(130) from None


@contextmanager
def _drawn_bar() -> Iterator[WorkBar]:
    """The bar, drawn on standard error if that is a terminal."""
    if not sys.stderr.isatty():
        yield WorkBar(None)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn
    from rich.text import Text

    class Left(ProgressColumn):
        """Asked again at each redraw, so that it counts down between records."""

        def render(self, task: Task) -> Text:
            return Text(task.fields["left"]())

    columns = (BarColumn(), TextColumn("{task.description}"), Left())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        yield WorkBar(bar)
