"""How results leave: one JSON document, or a table for people."""

from __future__ import annotations

import dataclasses
import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import seqlaw
from seqlaw.model.schedule import Schedule


def print_json(command: str, inputs: Mapping[str, Any], result: Mapping[str, Any]) -> None:
    """The document of one command; infinity is null with a flag, and NaN never leaves."""
    lost: list[str] = []
    body = {
        "command": command,
        "version": seqlaw.__version__,
        "inputs": _plain(inputs, "inputs", lost),
        **_plain(result, "", lost),
    }
    if lost:
        body["flags"] = [
            *body.get("flags", []),
            *(f"infinite: {name} is infinite, given as null" for name in lost),
        ]
    print(json.dumps(body, indent=2, allow_nan=False))


def _plain(value: Any, name: str, lost: list[str]) -> Any:
    """Dataclasses, arrays and NumPy numbers as JSON types."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        kind = {"kind": value.name} if isinstance(value, Schedule) else {}
        value = kind | {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(k): _plain(v, f"{name}.{k}".lstrip("."), lost) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v, f"{name}[{k}]", lost) for k, v in enumerate(value)]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and math.isinf(value):
        lost.append(name)
        return None
    return value


def print_table(rows: Iterable[Sequence[Any]], *, header: Sequence[str] = (), title: str = "") -> None:
    """Aligned columns; the first column is words, the rest are numbers."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=SIMPLE, show_header=bool(header))
    width = 0
    texts = [[number(cell) for cell in row] for row in rows]
    for row in texts:
        width = max(width, len(row))
    for k in range(width):
        name = header[k] if k < len(header) else ""
        table.add_column(name, justify="left" if k == 0 else "right", no_wrap=True)
    for row in texts:
        table.add_row(*row)
    console = Console(highlight=False, markup=False)
    # A table keeps its shape in a pipe or a narrow window: the terminal may wrap, rich must not cut.
    wide = console.options.update(max_width=10_000)
    console.width = max(console.width, Measurement.get(console, wide, table).maximum)
    console.print(table)


def number(value: Any) -> str:
    """Five significant digits; whole numbers as they are."""
    if isinstance(value, (float, np.floating)):
        return f"{value:.5g}"
    return str(value)


def merge_flags(flag_lists: Sequence[Iterable[str]]) -> list[str]:
    """The flags of many points, one line a kind: the first text, and at how many points.

    Assumptions are of the same kind only if they are the same text; other flags carry the point's numbers.
    """
    first: dict[str, str] = {}
    points: dict[str, int] = {}
    for flags in flag_lists:
        texts = {flag if flag.startswith("assumption") else flag.partition(":")[0]: flag for flag in flags}
        for kind, text in texts.items():
            first.setdefault(kind, text)
            points[kind] = points.get(kind, 0) + 1
    total = len(flag_lists)
    return [
        text if points[kind] == total else f"{text} (at {points[kind]} of {total} points)"
        for kind, text in first.items()
    ]


def print_flags(flags: Iterable[str]) -> None:
    """One line a flag."""
    for flag in flags:
        print(f"! {flag}")


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
        task = bar.add_task(unit, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
