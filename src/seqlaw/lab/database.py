"""The file itself: its tables, how one is made and known as ours, its log, and why it may be refused."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import secrets
import sqlite3
import struct
import time
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from seqlaw.lab.errors import StoreError

FILE = "results.sqlite"
SCHEMA = 5
APPLICATION = int.from_bytes(b"seql", "big")  # the header field by which a file of ours is known

_TABLES = (
    "CREATE TABLE store (mark TEXT NOT NULL)",  # the first table: it lies on page 2, where `inspect` looks
    "CREATE TABLE machines (id INTEGER PRIMARY KEY, facts TEXT NOT NULL, sum INTEGER NOT NULL)",
    "CREATE TABLE runs (id INTEGER PRIMARY KEY, facts TEXT NOT NULL, sum INTEGER NOT NULL)",
    "CREATE TABLE results (id INTEGER PRIMARY KEY, key TEXT NOT NULL, version TEXT NOT NULL,"
    " seed INTEGER NOT NULL, task TEXT NOT NULL, rows TEXT, error TEXT, seconds REAL NOT NULL,"
    " finished TEXT NOT NULL, machine INTEGER NOT NULL, function TEXT NOT NULL, sum INTEGER NOT NULL)",
)
# SQLite's write-ahead log needs shared memory between processes, which these file systems do not give.
_NETWORK = (
    "nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "afs", "9p", "fuse", "glusterfs", "pvfs",
)  # fmt: skip
_REASONS = {
    "SQLITE_FULL": "the disk is full; what was recorded is kept: free some space and run the command again",
    "SQLITE_READONLY_ROLLBACK": "a driver was killed while writing; run its command again",
    "SQLITE_READONLY": "it is read-only",
    "SQLITE_CANTOPEN": "it cannot be opened or created",
    "SQLITE_NOTADB": "it is damaged, or no result file: nothing in it can be read",
    "SQLITE_CORRUPT": "it is damaged: nothing in it can be read; move it away and run the sweep again",
    "SQLITE_BUSY": "another program holds it",
}


@dataclass(frozen=True, kw_only=True)
class Mark:
    """What a store is: its identity, how many transactions it has seen, and how many records it holds.

    Every transaction writes it, so a log that belongs to a file has marks of the same identity that go on
    from the file's own.
    """

    identity: str
    step: int = 0
    records: int = 0

    def __str__(self) -> str:
        text = f"seqlaw store {self.identity} {self.step:012} {self.records:012}"
        return f"{text} {zlib.crc32(text.encode()):08x}"

    @classmethod
    def found(cls, page: bytes) -> Mark | None:
        """The mark in a page of the file; None where there is none, or a damaged one."""
        for text in _MARK.finditer(page):
            mark = cls(identity=text[1].decode(), step=int(text[2]), records=int(text[3]))
            if str(mark).encode() == text[0]:
                return mark
        return None


_MARK = re.compile(rb"seqlaw store ([0-9a-f]{32}) (\d{12}) (\d{12}) [0-9a-f]{8}")


def reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write, gives text as bytes (damaged text is no text) and opens a cut file."""
    database = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30)
    database.text_factory = bytes
    database.execute("PRAGMA writable_schema = ON")  # SQLite's name for: as far as it goes
    return database


def inspect(path: Path) -> list[str]:
    """Refuse a file that is not ours, of another schema or beside a log of another; says if it is cut.

    All from the bytes of the file: SQLite would apply whatever log lies there.
    https://www.sqlite.org/fileformat.html: magic at byte 0, page size at 16, page count at 28, user version
    at 60, application id at 68.
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
    log = path.with_name(path.name + "-wal")
    for attempt in range(5):  # a driver at work may move its log into the file between two looks
        if _belongs(log, path, page):
            break
        time.sleep(0.05 * attempt)
    else:
        raise StoreError(f"{log} is the log of another file than {path.name}: move it away, then run again")
    if size < pages * page and not _frames(log):
        return [f"the file is cut: {size} of {pages * page} bytes are left"]
    return []


def roll_back(path: Path) -> None:
    """Undo what a killed driver has half written, which a reader cannot; only for who holds the lock."""
    if not path.with_name(path.name + "-journal").exists():
        return
    if path.exists() and path.stat().st_size:
        inspect(path)  # the file of another program is left alone
    with contextlib.closing(sqlite3.connect(path, timeout=30)) as database:
        database.execute("PRAGMA writable_schema = ON")  # as in `reader`
        database.execute("PRAGMA user_version").fetchall()  # the first look at the file rolls it back


def _frames(log: Path) -> list[tuple[int, int, bytes]]:
    """The frames of a write-ahead log: page number, pages after a commit (else 0), the page itself."""
    try:
        data = log.read_bytes()
    except FileNotFoundError:
        return []
    if len(data) < 32:
        return []
    (page,) = struct.unpack_from(">I", data, 8)
    found = []
    for start in range(32, len(data) - page - 23, 24 + page):
        number, committed = struct.unpack_from(">II", data, start)
        if data[start + 8 : start + 16] != data[16:24]:  # of an earlier round of the log
            break
        found.append((number, committed, data[start + 24 : start + 24 + page]))
    return found


def _belongs(log: Path, path: Path, page: int) -> bool:
    """Whether a log goes on from this file: of one identity, and without a gap between their steps."""
    frames = _frames(log)
    if not any(committed for _, committed, _ in frames):
        return True  # nothing that SQLite would apply
    with path.open("rb") as file:
        file.seek(page)
        own = Mark.found(file.read(page))
    marks = [mark for number, _, data in frames if number == 2 and (mark := Mark.found(data)) is not None]
    return (
        own is not None
        and bool(marks)
        and {mark.identity for mark in marks} == {own.identity}
        and marks[0].step - 1 <= own.step <= marks[-1].step
    )


def create(path: Path) -> None:
    """Make an empty store beside its place and move it there, so that a kill leaves no half-made file."""
    draft = path.with_name(path.name + ".new")
    make(draft)
    os.replace(draft, path)


def make(draft: Path) -> None:
    """An empty store under a draft's name."""
    for end in ("", "-journal", "-wal", "-shm"):
        draft.with_name(draft.name + end).unlink(missing_ok=True)
    mark = Mark(identity=secrets.token_hex(16))
    with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as database:
        database.executescript(
            f"BEGIN; {'; '.join(_TABLES)}; INSERT INTO store VALUES ('{mark}'); "
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


def journal_for(folder: Path) -> str:
    """`wal` on a local disk, `delete` (a rollback journal) on a network file system."""
    return "delete" if file_system(folder).startswith(_NETWORK) else "wal"


def file_system(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> str:
    """The type of the file system that holds a folder; empty where the system does not say."""
    try:
        lines = mounts.read_text().splitlines()
    except OSError:
        return ""
    target, best, kind = str(folder.resolve()), -1, ""
    for line in lines:
        before, _, after = line.partition(" - ")
        point = before.split()[4].replace("\\040", " ")
        inside = target == point or target.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= best:
            best, kind = len(point), after.split()[0]
    return kind
