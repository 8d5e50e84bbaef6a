"""What an answer shows, in reading order: sentences, tables, notes and flags, for any medium."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqlaw.model.flags import Flag


@dataclass(frozen=True)
class Sentence:
    """A line or a paragraph of its own."""

    text: str


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


Block = Sentence | Table | Note | Flagged
