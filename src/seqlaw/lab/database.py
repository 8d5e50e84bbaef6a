"""The file itself: its tables, how one is made and known as ours, its journal, and why it may be refused."""

from __future__ import annotations

import contextlib
import errno
import os
import sqlite3
import struct
from collections.abc import Iterator
from pathlib import Path

from seqlaw.lab.errors import StoreError

FILE = "results.sqlite"
SCHEMA = 3
OLDEST = 2
"""Of release 0.1: read as it is, and brought up to date by the next driver."""
APPLICATION = int.from_bytes(b"seql", "big")  # the header field by which a file of ours is known

_TABLES = f"""
BEGIN;
CREATE TABLE machines (id INTEGER PRIMARY KEY, facts TEXT NOT NULL UNIQUE);
CREATE TABLE runs (
  id INTEGER PRIMARY KEY,
  started TEXT NOT NULL, version TEXT NOT NULL, seed INTEGER NOT NULL, note TEXT NOT NULL,
  resume TEXT NOT NULL DEFAULT '');
CREATE TABLE planned (key TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE results (
  key TEXT NOT NULL, version TEXT NOT NULL, seed INTEGER NOT NULL, task TEXT NOT NULL,
  rows TEXT, error TEXT, seconds REAL NOT NULL, finished TEXT NOT NULL,
  machine INTEGER NOT NULL REFERENCES machines(id),
  CHECK ((rows IS NULL) <> (error IS NULL)));
CREATE UNIQUE INDEX results_key ON results (version, key);
CREATE INDEX results_failed ON results (version, key) WHERE error IS NOT NULL;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = 2;
COMMIT;
"""
FROM_2_TO_3 = """
BEGIN;
ALTER TABLE results ADD COLUMN function TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN function TEXT NOT NULL DEFAULT '';
ALTER TABLE runs ADD COLUMN driver TEXT NOT NULL DEFAULT '';
ALTER TABLE planned ADD COLUMN version TEXT NOT NULL DEFAULT '';
PRAGMA user_version = 3;
COMMIT;
"""
# SQLite's write-ahead log needs shared memory between processes, which these file systems do not give.
_NETWORK = (
    "nfs", "cifs", "smb", "lustre", "gpfs", "beegfs", "ceph", "afs", "9p", "fuse", "glusterfs", "pvfs",
)  # fmt: skip
_REASONS = {
    "SQLITE_FULL": "the disk is full; what was recorded is kept: free some space and run the command again",
    "SQLITE_READONLY": "it is read-only",
    "SQLITE_CANTOPEN": "it cannot be opened or created",
    "SQLITE_NOTADB": "it is damaged, or no result file",
    "SQLITE_CORRUPT": "it is damaged",
    "SQLITE_BUSY": "another program holds it",
}


def reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write."""
    return sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=30)


def inspect(path: Path) -> None:
    """Refuse a file that is not ours, of another schema or cut short, from its header and without opening it.

    https://www.sqlite.org/fileformat.html: magic at byte 0, page size at 16, page count at 28, user version
    at 60, application id at 68.
    """
    with path.open("rb") as file:
        header = file.read(100)
    size = path.stat().st_size
    if header[:16] != b"SQLite format 3\0"[: len(header)]:
        raise StoreError(f"{path} is no result file (not an SQLite database)")
    if len(header) < 100:
        raise StoreError(f"{path} is truncated: {size} bytes are left")
    (page,) = struct.unpack_from(">H", header, 16)
    (pages,) = struct.unpack_from(">I", header, 28)
    (schema,) = struct.unpack_from(">I", header, 60)
    (application,) = struct.unpack_from(">I", header, 68)
    if application != APPLICATION:
        raise StoreError(f"{path} is a database of another program")
    if not OLDEST <= schema <= SCHEMA:
        raise StoreError(f"{path} has schema version {schema}; this software knows {OLDEST} to {SCHEMA}")
    expected = pages * (65536 if page == 1 else page)
    log = path.with_name(path.name + "-wal")
    if log.exists() and log.stat().st_size:
        _check(path)  # a driver was killed: pages that the file lacks may be in the log
    elif size < expected:
        raise StoreError(f"{path} is truncated: {size} of {expected} bytes are left")


def _check(path: Path) -> None:
    with contextlib.closing(reader(path)) as database:
        if database.execute("PRAGMA quick_check(1)").fetchone() != ("ok",):
            raise StoreError(f"{path} is damaged or truncated")


def create(path: Path) -> None:
    """Make an empty store beside its place and move it there, so that a kill leaves no half-made file."""
    draft = path.with_name(path.name + ".new")
    for leftover in (draft, draft.with_name(draft.name + "-journal")):
        leftover.unlink(missing_ok=True)
    with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as database:
        database.executescript(_TABLES + FROM_2_TO_3)
    os.replace(draft, path)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[sqlite3.Connection]:
    """A file of ours, for reading."""
    with translated(path):
        inspect(path)
        with contextlib.closing(reader(path)) as database:
            yield database


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
