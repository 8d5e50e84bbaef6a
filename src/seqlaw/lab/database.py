"""The file itself: its tables, how one is made and known as ours, and why it may be refused.

SQLite's rollback journal keeps it whole, on network file systems too.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import struct
import time
import zlib
from collections.abc import Iterator
from pathlib import Path

from seqlaw.lab.errors import StoreError

FILE = "results.sqlite"
SCHEMA = 6
APPLICATION = int.from_bytes(b"seql", "big")  # the header field by which a file of ours is known

_TABLES = (
    "CREATE TABLE store (records INTEGER NOT NULL, sum INTEGER NOT NULL)",
    "CREATE TABLE machines (id INTEGER PRIMARY KEY, facts TEXT NOT NULL, sum INTEGER NOT NULL)",
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, facts TEXT NOT NULL, sum INTEGER NOT NULL)",
    "CREATE TABLE results (id INTEGER PRIMARY KEY, key TEXT NOT NULL, version TEXT NOT NULL,"
    " seed INTEGER NOT NULL, task TEXT NOT NULL, rows TEXT, error TEXT, seconds REAL NOT NULL,"
    " finished TEXT NOT NULL, machine INTEGER NOT NULL, function TEXT NOT NULL, sum INTEGER NOT NULL)",
)
_REASONS = {
    "SQLITE_FULL": "the disk is full; what was recorded is kept: free some space and run the command again",
    "SQLITE_READONLY_ROLLBACK": "a driver was killed while writing; run its command again",
    "SQLITE_READONLY": "it is read-only",
    "SQLITE_CANTOPEN": "it cannot be opened or created",
    "SQLITE_NOTADB": "it is damaged, or no result file: nothing in it can be read",
    "SQLITE_CORRUPT": "it is damaged: nothing in it can be read; move it away and run the sweep again",
    "SQLITE_BUSY": "another program holds it",
}


def checksum(number: int, facts: bytes = b"") -> int:
    """CRC-32 of all values of a row of a small table."""
    return zlib.crc32(b"%a\n%b" % (number, facts))


def reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, gives text as bytes (damaged text is no text) and opens a cut file."""
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30)
    database.text_factory = bytes
    database.execute("PRAGMA writable_schema = ON")  # SQLite's name for: as far as it goes
    return database


def inspect(path: Path) -> list[str]:
    """Refuse a file that is not ours or of another schema; says if it is cut.

    All from the bytes of the file, as https://www.sqlite.org/fileformat.html has them: magic at byte 0, page
    size at 16, page count at 28, user version at 60, application id at 68.
    """
    with path.open("rb") as file:
        header = file.read(100)
    size = path.stat().st_size
    if header[:16] != b"SQLite format 3\0"[: len(header)]:
        raise StoreError(f"{path} is no result file (not an SQLite database)")
    if len(header) < 100:
        raise StoreError(f"{path} is truncated: {size} bytes are left; move it away and run the sweep again")
    page = struct.unpack_from(">H", header, 16)[0]
    page = 65536 if page == 1 else page
    pages, schema, application = (struct.unpack_from(">I", header, place)[0] for place in (28, 60, 68))
    if application != APPLICATION:
        raise StoreError(f"{path} is a database of another program")
    if schema != SCHEMA:
        raise StoreError(
            f"{path} has schema version {schema}; this software reads {SCHEMA} only: export it with the "
            "version that wrote it, or take a new folder"
        )
    for attempt in range(5):  # a driver at work may have written the header and not yet the rest
        if (size := path.stat().st_size) >= pages * page:
            return []
        time.sleep(0.05 * attempt)
    return [f"the file is cut: {size} of {pages * page} bytes are left"]


def roll_back(path: Path) -> None:
    """Undo what a killed driver has half written, which a reader cannot; only for who holds the lock."""
    if not path.with_name(path.name + "-journal").exists():
        return
    if path.exists() and path.stat().st_size:
        inspect(path)  # the file of another program is left alone
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as database:
        database.execute("PRAGMA writable_schema = ON")  # as in `reader`
        database.execute("PRAGMA user_version").fetchall()  # the first look at the file rolls it back


def create(path: Path) -> None:
    """Make an empty store beside its place and move it there, so that a kill leaves no half-made file."""
    draft = path.with_name(path.name + ".new")
    make(draft)
    os.replace(draft, path)


def make(draft: Path) -> None:
    """An empty store under a draft's name."""
    for end in ("", "-journal"):
        draft.with_name(draft.name + end).unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as database:
        database.executescript(
            f"BEGIN; {'; '.join(_TABLES)}; INSERT INTO store VALUES (0, {checksum(0)}); "
            f"PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {SCHEMA}; COMMIT;"
        )


def is_as_made(database: sqlite3.Connection) -> bool:
    """Whether the tables are those of `make`."""
    found = database.execute("SELECT sql FROM sqlite_schema ORDER BY rowid")
    return [sql for (sql,) in found] == [sql.encode() for sql in _TABLES]


@contextlib.contextmanager
def translated(path: Path) -> Iterator[None]:
    """Say in one line what SQLite or the system refused."""
    try:
        yield
    except sqlite3.Error as error:
        name = getattr(error, "sqlite_errorname", "")
        reason = next((text for start, text in _REASONS.items() if name.startswith(start)), str(error))
        raise StoreError(f"{path}: {reason}") from error
    except OSError as error:
        known = {errno.ENOSPC: _REASONS["SQLITE_FULL"], errno.EEXIST: "this is a file, not a folder"}
        reason = known.get(error.errno or 0, str(error.strerror).lower())
        raise StoreError(f"{error.filename or path}: {reason}") from error
