"""The bar of a long command."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import typer

from seqlaw.lab.progress import WorkBar, drawn_bar, left_words, plain_lines
from seqlaw.model.amount import amount
from seqlaw.model.checks import InputError


def _is_plain(progress: str) -> bool:
    if progress not in ("auto", "plain"):
        raise InputError("progress", "must be auto or plain", progress)
    return progress == "plain"


@contextmanager
def work_bar(progress: str) -> Iterator[WorkBar]:
    """The bar; an interruption says what is kept and ends the command."""
    with ExitStack() as drawn:
        bar = drawn.enter_context(drawn_bar(plain=_is_plain(progress)))
        try:
            yield bar
        except KeyboardInterrupt:
            drawn.close()  # the bar goes before the line comes
            print(f"seqlaw: {bar.kept()}", file=sys.stderr)
            raise typer.Exit(130) from None


@contextmanager
def progress_bar(unit: str, progress: str) -> Iterator[Callable[[int, int], None] | None]:
    """A callback `(done, total)` that draws a bar with rate and time left, on a terminal; or lines."""
    if _is_plain(progress):
        draw, start = plain_lines(), time.monotonic()

        def line(done: int, total: int) -> None:
            share, elapsed = done / total, time.monotonic() - start
            draw(share, f"{amount(done)}/{amount(total)} {unit}", lambda: left_words(elapsed, share))

        yield line
        return
    if not sys.stderr.isatty():
        yield None
        return
    from rich import progress as drawing
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    with drawing.Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(unit, total=None, visible=False)  # until the total is known
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)
