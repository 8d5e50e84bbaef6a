"""The result file: one SQLite database in the output folder, written by one driver at a time.

Rows are keyed by (task key, software), so that changed code adds its rows beside the old ones. The column
`version` holds the software (`lab.software`; in files of 0.1 the version alone). A record is acknowledged
when its transaction has reached the disk.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from filelock import FileLock, Timeout

from seqlaw.lab.database import FILE, FROM_2_TO_3, create, inspect, journal_for, opened, reader, translated
from seqlaw.lab.errors import StoreError
from seqlaw.lab.grid import Task, compact

LOCK = "driver.lock"
_STANDING = """
SELECT last.*, COUNT(*), COUNT(results.rows), COUNT(results.error)
FROM (SELECT version, resume, {function} FROM runs ORDER BY id DESC LIMIT 1) AS last, planned
LEFT JOIN results ON results.version = {planned} AND results.key = planned.key
"""
_COLUMNS = ("key", "version", "seed", "task", "rows", "error", "seconds", "finished", "machine", "function")


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What became of one task: its rows as JSON, or the reason for which it failed."""

    key: str
    software: str
    """The code that ran, by version and fingerprint."""
    function: str
    """`module:name` of what ran."""
    task: Task
    seconds: float
    machine: str
    rows: str | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One stored task, as read back."""

    key: str
    version: str
    seed: int
    task: Task
    rows: list[dict[str, Any]] | None
    error: str | None
    seconds: float
    finished: str
    machine: dict[str, Any]
    function: str
    """`module:name` of what ran; empty in files of 0.1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """How much is done of what the last driver was asked for."""

    version: str
    """The software that it ran."""
    function: str
    """`module:name` of what it ran; empty in files of 0.1."""
    tasks: int
    finished: int
    """With rows."""
    failed: int
    resume: str
    """The command that goes on; empty if none was told."""


class Store:
    """The driver's side: locked, so that there is one writer; close it, or use it in a `with`.

    `planned` are the keys of all tasks that are asked for, recorded or not, each with the software that is to
    answer it; `resume` is the command that asks for them again.
    """

    def __init__(
        self,
        folder: Path,
        *,
        seed: int,
        software: str,
        function: str = "",
        planned: Mapping[str, str] = MappingProxyType({}),
        resume: str = "",
        note: str = "",
        journal: str | None = None,
    ):
        self.folder, self.seed, self.planned = folder, seed, planned
        self.path = folder / FILE
        self._machines: dict[str, int] = {}
        with contextlib.ExitStack() as undo, translated(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder)
            undo.callback(self._lock.release)
            if self.path.exists() and self.path.stat().st_size:
                inspect(self.path)
            else:
                create(self.path)
            self._connection = sqlite3.connect(self.path, isolation_level=None, timeout=30)
            undo.callback(self._connection.close)
            self._connection.execute(f"PRAGMA journal_mode = {journal or journal_for(folder)}")
            self._connection.execute("PRAGMA synchronous = FULL")
            if self._connection.execute("PRAGMA user_version").fetchone() == (2,):
                self._connection.executescript(FROM_2_TO_3)
            with self._transaction() as database:
                driver = f"process {os.getpid()} on {socket.gethostname()}"
                database.execute(
                    "INSERT INTO runs (started, version, function, seed, note, resume, driver) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (_now(), software, function, seed, note, resume, driver),
                )
                database.execute("DELETE FROM planned")
                database.executemany("INSERT INTO planned (key, version) VALUES (?, ?)", planned.items())
            undo.pop_all()

    def known(self) -> tuple[set[str], set[str]]:
        """The planned keys that their software has recorded: those with rows, and those that failed."""
        with translated(self.path):
            return _known(self._connection, self.planned)

    def others(self) -> dict[str, int]:
        """How many tasks other software has recorded here."""
        with translated(self.path):
            found = self._connection.execute("SELECT version, COUNT(*) FROM results GROUP BY version")
            return {name: count for name, count in found if name not in self.planned.values()}

    def record(self, outcomes: Iterable[Outcome]) -> None:
        """Write a batch in one transaction: all of it is on disk when this returns, or none of it."""
        finished = _now()
        with translated(self.path), self._transaction() as database:
            database.executemany(
                f"INSERT OR REPLACE INTO results ({', '.join(_COLUMNS)}) VALUES ({', '.join('?' * 10)})",
                [
                    (o.key, o.software, self.seed, compact(o.task), o.rows, o.error, o.seconds, finished,
                     self._machine(o.machine), o.function)
                    for o in outcomes
                ],
            )  # fmt: skip

    def _machine(self, facts: str) -> int:
        if facts not in self._machines:
            self._connection.execute("INSERT OR IGNORE INTO machines (facts) VALUES (?)", (facts,))
            found = self._connection.execute("SELECT id FROM machines WHERE facts = ?", (facts,)).fetchone()
            self._machines[facts] = found[0]
        return self._machines[facts]

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
            self._connection.execute("COMMIT")
        except BaseException:
            self._machines.clear()  # what was added in this transaction is gone with it
            if self._connection.in_transaction:  # a full disk has ended it already
                self._connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Fold the log back, so that one plain file stays behind, and let the lock go."""
        # With a reader there, or a full disk, the log stays as it is: the next driver folds it back.
        with contextlib.suppress(sqlite3.OperationalError):
            self._connection.execute("PRAGMA busy_timeout = 0")
            self._connection.execute("PRAGMA journal_mode = DELETE")
        self._connection.close()
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def read(folder: Path) -> Iterator[Record]:
    """All records of a folder in the order in which they were written; also while a driver is at work."""
    with opened(_present(folder)) as database:
        machines = {id: json.loads(facts) for id, facts in database.execute("SELECT * FROM machines")}
        old = database.execute("PRAGMA user_version").fetchone() == (2,)
        names = ", ".join(_COLUMNS[:-1] if old else _COLUMNS)
        for stored in database.execute(f"SELECT {names} FROM results ORDER BY rowid"):
            key, version, seed, task, rows, error, seconds, finished, machine, *function = stored
            yield Record(
                key=key,
                version=version,
                seed=seed,
                task=json.loads(task),
                rows=None if rows is None else json.loads(rows),
                error=error,
                seconds=seconds,
                finished=finished,
                machine=machines[machine],
                function=function[0] if function else "",
            )


def recorded(folder: Path, planned: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """The keys that their software has recorded, with rows and as failed; none in a new folder."""
    path = folder / FILE
    with translated(path):
        if not path.exists() or not path.stat().st_size:
            return set(), set()
    with opened(path) as database:
        return _known(database, planned)


def standing(folder: Path) -> Standing | None:
    """What has become of the last driver's tasks; None where it has just made the file."""
    with opened(_present(folder)) as database:
        # 0.1 had one software for all tasks of a driver.
        old = database.execute("PRAGMA user_version").fetchone() == (2,)
        names = ("last.version", "''") if old else ("planned.version", "function")
        query = _STANDING.format(planned=names[0], function=names[1])
        version, resume, function, tasks, finished, failed = database.execute(query).fetchone()
    if not tasks:
        return None
    return Standing(
        version=version, function=function, tasks=tasks, finished=finished, failed=failed, resume=resume
    )


def _present(folder: Path) -> Path:
    """The file of a folder, which must be there."""
    path = folder / FILE
    with translated(path):
        if not path.exists():
            raise StoreError(f"{folder} holds no results ({FILE} is not there)")
    return path


def _known(database: sqlite3.Connection, planned: Mapping[str, str]) -> tuple[set[str], set[str]]:
    good, bad = set[str](), set[str]()
    for key, version, failed in database.execute("SELECT key, version, error IS NOT NULL FROM results"):
        if planned.get(key) == version:
            (bad if failed else good).add(key)
    return good, bad


def _locked(folder: Path) -> FileLock:
    """The lock. The system drops it with the process, however that ends."""
    lock = FileLock(folder / LOCK, timeout=0, thread_local=False)
    try:
        lock.acquire()
    except NotImplementedError:  # filelock's word for a file system without locks
        raise StoreError(f"{folder}: this file system has no locks, which keep a second driver out") from None
    except Timeout:
        raise StoreError(f"{folder} is in use by {_holder(folder)}: one driver at a time") from None
    return lock


def _holder(folder: Path) -> str:
    """Who holds the lock: the last driver that wrote itself down."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(reader(folder / FILE)) as database:
        for driver, started in database.execute("SELECT driver, started FROM runs ORDER BY id DESC LIMIT 1"):
            return f"{driver} since {started}"
    return "another process"  # one that has just begun


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
