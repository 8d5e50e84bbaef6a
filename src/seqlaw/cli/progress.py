"""The bar of a long command."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import typer

from seqlaw.lab.progress import WorkBar, drawn_bar


@contextmanager
def work_bar() -> Iterator[WorkBar]:
    """The bar; an interruption says what is kept and ends the command."""
    with ExitStack() as drawn:
        bar = drawn.enter_context(drawn_bar())
        try:
            yield bar
        except KeyboardInterrupt:
            drawn.close()  # the bar goes before the line comes
            print(f"seqlaw: {bar.kept()}", file=sys.stderr)
            raise typer.Exit(130) from None
