"""What an answer shows, in reading order: sentences, tables, notes and flags, as text or as HTML."""

from __future__ import annotations

import io
import shutil
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

from seqlaw.answers.words import Side, warned
from seqlaw.model.amount import amount
from seqlaw.model.flags import Flag

WIDTH = 100
"""Columns that a person's output keeps to."""


@dataclass(frozen=True)
class Table:
    """Aligned columns: the first is words, the rest are numbers; `title` stands above."""

    rows: Sequence[Sequence[Any]]
    header: Sequence[str] = ()
    title: str = ""


@dataclass(frozen=True)
class Note:
    """A remark beside the answer."""

    text: str


@dataclass(frozen=True)
class Flagged:
    """A flag, which the medium puts into words for its reader."""

    flag: Flag


Block = str | Table | Note | Flagged
"""A sentence (a line or a paragraph of its own), or more than that."""


def as_text(blocks: Iterable[Block], side: Side) -> str:
    """The page that a command prints, folded to the terminal or to 100 columns."""
    return "".join(_text(block, side) for block in blocks)


def _text(block: Block, side: Side) -> str:
    match block:
        case str():
            return folded(block)
        case Note(text):
            return folded(text, lead="- ")
        case Flagged(flag):
            return folded(warned(flag, side), hang=2)
        case Table():
            return _table(block)


def columns() -> int:
    """What the terminal has, within reason."""
    return max(40, min(WIDTH, shutil.get_terminal_size((WIDTH, 24)).columns))


def folded(text: str, *, lead: str = "", hang: int = 0) -> str:
    """A sentence in lines; `lead` marks the first one, spaces (or `hang` of them) the rest."""
    lines = textwrap.fill(
        text,
        columns(),
        initial_indent=lead,
        subsequent_indent=" " * (hang or len(lead)),
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines + "\n"


def _table(block: Table) -> str:
    """Aligned columns, as wide as sentences if numbers allow."""
    # A title inside the table would be folded to the table's width.
    title = folded(block.title) if block.title else ""
    texts = [[amount(cell, 5) for cell in row] for row in block.rows]
    return title + (_aligned(block.header, texts) or _folded_table(block.header, texts))


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str | None:
    """What `_folded_table` makes of a table that fits, in a tenth of its time; None where it does not."""
    from rich.cells import cell_len

    count = max(map(len, rows), default=0)
    lines = [[*row, *[""] * count][:count] for row in ([header] if header else []) + [*rows]]
    widths = [max(map(cell_len, column)) for column in zip(*lines, strict=True)]
    across = sum(widths) + 3 * count - 1
    if not count or across + 2 > columns() or any("\n" in cell for line in lines for cell in line):
        return None
    page = []
    for line in lines:
        gaps = [" " * (width - cell_len(cell)) for cell, width in zip(line, widths, strict=True)]
        cells = [line[0] + gaps[0], *(gap + cell for gap, cell in zip(gaps[1:], line[1:], strict=True))]
        page.append(f"  {'   '.join(cells)}  ")
    if header:
        page.insert(1, f" {'─' * across} ")
    blank = " " * (across + 2)
    return "\n".join([blank, *page, blank, ""])


def _folded_table(header: Sequence[str], texts: Sequence[Sequence[str]]) -> str:
    """Cells of words folded where the table is too wide."""
    from rich.box import SIMPLE
    from rich.console import Console
    from rich.measure import Measurement
    from rich.table import Table as RichTable

    table = RichTable(box=SIMPLE, show_header=bool(header))
    for k in range(max(map(len, texts), default=0)):
        name = header[k] if k < len(header) else ""
        # rich would cut a word that is longer than its column: none is.
        cells = [name, *(row[k] for row in texts if k < len(row))]
        least = max(len(part) for cell in cells for part in ([cell] if k else cell.split() or [""]))
        table.add_column(name, justify="right" if k else "left", no_wrap=k > 0, min_width=least)
    for row in texts:
        table.add_row(*row)
    page = io.StringIO()
    # In a notebook rich would show the table by itself, before the page that it belongs to.
    console = Console(file=page, highlight=False, markup=False, color_system=None, force_jupyter=False)
    needed = Measurement.get(console, console.options.update(max_width=10_000), table)
    # In a pipe or a narrow window too: words may fold, numbers are never cut.
    console.width = max(min(needed.maximum, columns()), needed.minimum)
    console.print(table)
    return page.getvalue()


def as_html(blocks: Iterable[Block]) -> str:
    """A short page for a notebook: what the command prints, as paragraphs and tables."""
    return "\n".join(_html(block) for block in blocks)


def _html(block: Block) -> str:
    match block:
        case str(text) | Note(text):
            return f"<p>{escape(text)}</p>"
        case Flagged(flag):
            return f"<p><small>{escape(warned(flag, 'python'))}</small></p>"
        case Table():
            head = "".join(f"<th>{escape(name)}</th>" for name in block.header)
            rows = "".join(
                "<tr>" + "".join(f"<td>{escape(amount(cell, 5))}</td>" for cell in row) + "</tr>"
                for row in block.rows
            )
            title = f"<p>{escape(block.title)}</p>" if block.title else ""
            return f"{title}<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
