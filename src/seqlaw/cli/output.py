"""How results leave: one JSON document, or a table for people."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

import seqlaw


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
        value = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
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
    from rich.table import Table

    table = Table(title=title or None, title_justify="left", box=SIMPLE, show_header=bool(header))
    width = 0
    texts = [[number(cell) for cell in row] for row in rows]
    for row in texts:
        width = max(width, len(row))
    for k in range(width):
        table.add_column(header[k] if k < len(header) else "", justify="left" if k == 0 else "right")
    for row in texts:
        table.add_row(*row)
    Console(soft_wrap=True, highlight=False, markup=False).print(table)


def number(value: Any) -> str:
    """Five significant digits; whole numbers as they are."""
    if isinstance(value, (float, np.floating)):
        return f"{value:.5g}"
    return str(value)


def print_flags(flags: Iterable[str]) -> None:
    """One line a flag."""
    for flag in flags:
        print(f"! {flag}")
