"""How results leave: one JSON document, or a table for people."""

from __future__ import annotations

import json
import re
import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import seqlaw
from seqlaw.rungs.terms import merge_flags as merge_flags
from seqlaw.spec import plain

WIDTH = 100
"""Columns that a person's output keeps to."""


def print_json(command: str, inputs: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """The document of one command; infinity is null with a flag."""
    lost: list[str] = []
    body = {
        "command": command,
        "version": seqlaw.__version__,
        "inputs": plain(inputs, "inputs", lost),
        **plain(result, "", lost),
    }
    if lost:
        body["flags"] = [*body.get("flags", []), *lost]
    print(json.dumps(body, indent=2, allow_nan=False))


def _columns() -> int:
    """What the terminal has, within reason."""
    return max(40, min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns))


def print_text(text: str, *, lead: str = "") -> None:
    """A sentence, folded to the terminal or to 100 columns; `lead` marks its first line, spaces the rest."""
    print(
        textwrap.fill(
            text,
            _columns(),
            initial_indent=lead,
            subsequent_indent=" " * len(lead),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def print_table(rows: Iterable[Sequence[Any]], *, header: Sequence[str] = (), title: str = "") -> None:
    """Aligned columns, as wide as sentences if numbers allow; the first is words, the rest are numbers."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    if title:
        print_text(title)  # a title inside the table would be folded to the table's width
    table = Table(box=SIMPLE, show_header=bool(header))
    texts = [[number(cell) for cell in row] for row in rows]
    for k in range(max(map(len, texts), default=0)):
        name = header[k] if k < len(header) else ""
        # rich would cut a word that is longer than its column: none is.
        cells = [name, *(row[k] for row in texts if k < len(row))]
        least = max(len(part) for cell in cells for part in ([cell] if k else cell.split() or [""]))
        table.add_column(name, justify="right" if k else "left", no_wrap=k > 0, min_width=least)
    for row in texts:
        table.add_row(*row)
    console = Console(highlight=False, markup=False)
    needed = Measurement.get(console, console.options.update(max_width=10_000), table)
    # In a pipe or a narrow window too: words may fold, numbers are never cut.
    console.width = max(min(needed.maximum, _columns()), needed.minimum)
    console.print(table)


def number(value: Any) -> str:
    """Five significant digits, large ones as 1.5e9; whole numbers as they are."""
    if isinstance(value, (float, np.floating)):
        return re.sub(r"e\+0*", "e", f"{value:.5g}")
    return str(value)


def print_flags(flags: Iterable[str]) -> None:
    """One paragraph a flag; what is true of a rung everywhere is a note, not a warning."""
    for flag in flags:
        print_text(flag, lead="note " if flag.startswith("cross:") else "! ")


@contextmanager
def progress_bar(unit: str) -> Iterator[Callable[[int, int], None] | None]:
    """A callback `(done, total)` that draws a bar with rate and time left, on a terminal only."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), MofNCompleteColumn(), TextColumn(unit), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(unit, total=None, visible=False)  # until the total is known
        yield lambda done, total: bar.update(task, completed=done, total=total, visible=True)
