"""The result file: one SQLite database in the output folder, written by one driver at a time.

Records are known by (task key, software), so that changed code adds its rows beside the old ones. A record is
acknowledged when its transaction has reached the disk. Each has a checksum of all that it says, and the file
says how many there are: what is damaged is named and left out, and the next driver computes it again.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
import socket
import sqlite3
import time
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Self

from filelock import FileLock, Timeout

from seqlaw.lab.database import (
    FILE,
    Mark,
    create,
    inspect,
    is_as_made,
    journal_for,
    make,
    reader,
    roll_back,
    translated,
)
from seqlaw.lab.errors import StoreError
from seqlaw.lab.grid import Task, compact

LOCK = "driver.lock"
_DAMAGED = ("SQLITE_CORRUPT", "SQLITE_NOTADB", "SQLITE_ERROR", "SQLITE_TOOBIG", "SQLITE_IOERR_SHORT")
_INSERT = "INSERT INTO results VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_RUN = "INSERT OR REPLACE INTO runs VALUES (?, ?, ?)"
_INSERT_MACHINE = "INSERT INTO machines VALUES (?, ?, ?)"


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
    """`module:name` of what ran."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """How much is done of what the last driver was asked for."""

    version: str
    """The software that it ran."""
    function: str
    """`module:name` of what it ran."""
    tasks: int
    finished: int
    """With rows."""
    failed: int
    resume: str
    """The command that goes on; empty if none was told."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Run:
    """What one driver was asked for."""

    kind: str
    """`sweep` or `reproduce`; empty for a function of the user's."""
    started: str
    version: str
    function: str
    seed: int
    note: str
    resume: str
    driver: str
    depends: list[str]
    """The files whose content is part of the software."""
    plan: dict[str, list[str]]
    """The keys that were asked for, by the software that is to answer them; of the last driver only."""

    def __post_init__(self) -> None:
        if not isinstance(self.depends, list) or not isinstance(self.plan, dict):
            raise ValueError("a run that is none")


@dataclass(kw_only=True)
class Damage:
    """What of a file cannot be trusted; false if nothing."""

    path: Path
    records: list[int] = field(default_factory=list)
    """The numbers of records with a wrong checksum, or that are no record."""
    missing: int = 0
    sound: int = 0
    parts: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.records or self.missing or self.parts)

    @property
    def words(self) -> str:
        """What is damaged and what to do, in one line for people; empty if nothing is."""
        if not self:
            return ""
        shown = ", ".join(map(str, self.records[:8])) + (", …" if len(self.records) > 8 else "")
        bad = [f"left out: {len(self.records)} damaged (number {shown})"] if self.records else []
        bad += [f"{self.missing} missing"] if self.missing else []
        return (
            f"{self.path} is damaged: {self.sound} records can be read"
            f"{', ' if bad else ''}{', '.join([*bad, *self.parts])}; run the same command that wrote it "
            "again: it keeps these, computes the others, and keeps the damaged file beside it"
        )


class Store:
    """The driver's side: locked, so that there is one writer; close it, or use it in a `with`.

    `planned` are the keys of all tasks that are asked for, recorded or not, each with the software that is to
    answer it; `resume` is the command that asks for them again; `kind` is the command, which a folder keeps.
    What can be read of a damaged file is kept, the file itself too; `saved` then says so.
    """

    def __init__(
        self,
        folder: Path,
        *,
        seed: int,
        software: str,
        function: str = "",
        planned: Mapping[str, str] = MappingProxyType({}),
        depends: Sequence[str] = (),
        kind: str = "",
        resume: str = "",
        note: str = "",
        journal: str | None = None,
    ):
        self.folder, self.seed, self.planned = folder, seed, planned
        self.path, self.saved = folder / FILE, ""
        self._machines: dict[str, int] = {}
        self._slots: dict[tuple[str, str], tuple[int, bool]] = {}
        with contextlib.ExitStack() as undo, translated(self.path):
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder)
            undo.callback(self._lock.release)
            roll_back(self.path)
            if self.path.exists() and self.path.stat().st_size:
                runs = self._read(kind)
            else:
                create(self.path)
                runs = {}
            self._next = max((number for number, _ in self._slots.values()), default=0) + 1
            self._connection = sqlite3.connect(self.path, isolation_level=None, timeout=30)
            undo.callback(self._connection.close)
            self._connection.execute(f"PRAGMA journal_mode = {journal or journal_for(folder)}")
            self._connection.execute("PRAGMA synchronous = FULL")
            [(text,)] = self._connection.execute("SELECT mark FROM store")
            mark = Mark.found(text.encode())
            assert mark is not None  # a damaged one was replaced
            self._mark = mark
            plan: dict[str, list[str]] = {}
            for key, version in planned.items():
                plan.setdefault(version, []).append(key)
            run = Run(
                kind=kind,
                started=_now(),
                version=software,
                function=function,
                seed=seed,
                note=note,
                resume=resume,
                driver=f"process {os.getpid()} on {socket.gethostname()}",
                depends=list(depends),
                plan=plan,
            )
            with self._transaction() as database:
                old = {number: replace(one, plan={}) for number, one in runs.items() if one.plan}
                database.executemany(_INSERT_RUN, _facts_of_runs(old | {max(runs, default=0) + 1: run}))
            undo.pop_all()

    def _read(self, kind: str) -> dict[int, Run]:
        """The drivers before this one, after the file has been made whole where it is not."""
        for again in (False, True):
            with _looked(self.path) as look:
                _require_kind(self.folder, look.runs.values(), kind)
                self._slots = {
                    (row[2].decode(), row[1].decode()): (row[0], row[6] is not None) for row in look.records()
                }
                look.check()
                if look.damage and again:
                    raise StoreError(look.damage.words)
                if look.damage:
                    draft = _draft(look)
            if not look.damage:
                break
            kept = _put(draft, self.path)  # now that the file is closed: Windows replaces no open one
            self.saved = f"{look.damage.words.partition('; run')[0]}; the damaged file is kept as {kept}"
        return look.runs

    def known(self) -> tuple[set[str], set[str]]:
        """The planned keys that their software has recorded: those with rows, and those that failed."""
        return _known(((version, key, bad) for (version, key), (_, bad) in self._slots.items()), self.planned)

    def others(self) -> dict[str, int]:
        """How many tasks other software has recorded here."""
        now = set(self.planned.values())
        return dict(Counter(version for version, _ in self._slots if version not in now))

    def record(self, outcomes: Iterable[Outcome]) -> None:
        """Write a batch in one transaction: all of it is on disk when this returns, or none of it."""
        finished, seed = _now(), str(self.seed)
        slots: dict[tuple[str, str], tuple[int, bool]] = {}
        batch, old = [], []
        with translated(self.path):
            before = self._mark
            with self._transaction() as database:
                for number, o in enumerate(outcomes, self._next):
                    name = (o.software, o.key)
                    if name in self._slots:
                        old.append((self._slots[name][0],))
                    slots[name] = (number, o.error is not None)
                    machine, task, seconds = self._machine(o.machine), compact(o.task), float(o.seconds)
                    said = (o.key, o.software, seed, task, o.rows or "", o.error or "", repr(seconds),
                            finished, str(machine), o.function)  # fmt: skip
                    batch.append(
                        (number, o.key, o.software, self.seed, task, o.rows, o.error, seconds, finished,
                         machine, o.function, zlib.crc32("\n".join(said).encode()))
                    )  # fmt: skip
                database.executemany("DELETE FROM results WHERE id = ?", old)
                database.executemany(_INSERT, batch)
                self._mark = replace(before, records=before.records + len(batch) - len(old))
            self._slots |= slots
            self._next += len(batch)

    def _machine(self, facts: str) -> int:
        if facts not in self._machines:
            for number, known in self._connection.execute("SELECT id, facts FROM machines"):
                self._machines[known] = number
        if facts not in self._machines:
            number = self._machines[facts] = max(self._machines.values(), default=0) + 1
            self._connection.execute(_INSERT_MACHINE, (number, facts, _checksum(number, facts.encode())))
        return self._machines[facts]

    @contextlib.contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        before = self._mark
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield self._connection
            self._mark = replace(self._mark, step=before.step + 1)
            self._connection.execute("UPDATE store SET mark = ?", (str(self._mark),))
            self._connection.execute("COMMIT")
        except BaseException:
            self._mark = before
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


class _Look:
    """One look at a file: what is sound of it, and what is not."""

    def __init__(self, database: sqlite3.Connection, damage: Damage) -> None:
        self.database, self.damage = database, damage
        with self._reading():
            if not is_as_made(database):
                damage.parts.append("the description of its tables")
        self.mark: Mark | None = None
        with self._reading():
            for (text,) in database.execute("SELECT * FROM store"):
                self.mark = Mark.found(text)
        if self.mark is None:
            damage.parts.append("its number of records")
        self.machines: dict[int, bytes] = dict(self._sound("machines"))
        self.runs: dict[int, Run] = {}
        with self._reading():
            for number, facts in self._sound("runs"):
                self.runs[number] = Run(**json.loads(facts.decode()))

    @contextlib.contextmanager
    def _reading(self) -> Iterator[None]:
        """What SQLite finds to be damaged is noted, and the reading goes on elsewhere."""
        try:
            yield
        except (sqlite3.DatabaseError, TypeError, ValueError) as error:
            name = getattr(error, "sqlite_errorname", "SQLITE_CORRUPT")
            if not name.startswith(_DAMAGED):
                raise
            part = f"a part of the file ({error})"
            self.damage.parts += [part] if part not in self.damage.parts else []

    def _sound(self, table: str) -> Iterator[tuple[int, bytes]]:
        """The rows of a small table with a right checksum, without it."""
        with self._reading():
            for number, facts, checksum in self.database.execute(f"SELECT * FROM {table} ORDER BY id"):
                if isinstance(facts, bytes) and _checksum(number, facts) == checksum:
                    yield number, facts
                else:
                    self.damage.parts.append(f"number {number} of its {table}")

    def records(self) -> Iterator[tuple[Any, ...]]:
        """The sound rows of the table `results` in their order, each (version, key) once."""
        damage, seen = self.damage, set[tuple[bytes, bytes]]()
        last, bad = -1, 0

        def is_sound(row: tuple[Any, ...]) -> bool:
            nonlocal last, bad
            try:
                last, key, version, seed, task, rows, error, seconds, finished, machine, function, found = row
                said = (key, version, b"%a" % seed, task, rows or b"", error or b"", b"%a" % seconds,
                        finished, b"%a" % machine, function)  # fmt: skip
                sound = zlib.crc32(b"\n".join(said)) == found and (rows is None) != (error is None)
                name = (version, key)
                sound = sound and name not in seen
            except (TypeError, ValueError):  # other types, or another number of columns
                sound = False
            if sound:
                seen.add(name)
            else:
                bad += 1
                damage.records.append(row[0])
            return sound

        backwards: list[tuple[Any, ...]] = []
        before = len(damage.parts)
        with self._reading():
            yield from filter(is_sound, self.database.execute("SELECT * FROM results ORDER BY id"))
        if len(damage.parts) > before:  # what lies behind the damaged part is reached from the other end
            with self._reading():
                query = "SELECT * FROM results WHERE id > ? ORDER BY id DESC"
                backwards.extend(self.database.execute(query, (last,)))
            yield from filter(is_sound, reversed(backwards))
        damage.sound = len(seen)
        if self.mark is not None:
            damage.missing = max(0, self.mark.records - damage.sound - bad)

    def check(self) -> None:
        """SQLite's own check of the whole file, before anything is written to it."""
        with self._reading():
            for (found,) in self.database.execute("PRAGMA quick_check(1)"):
                if found != b"ok":
                    self.damage.parts.append(f"the structure of the file ({found.decode()})")


@contextlib.contextmanager
def _looked(path: Path) -> Iterator[_Look]:
    with translated(path):
        notes = inspect(path)
        with contextlib.closing(reader(path)) as database:
            database.execute("BEGIN")  # all of it as it is at one moment
            yield _Look(database, Damage(path=path, parts=notes))


def _checksum(number: int, facts: bytes) -> int:
    """CRC-32 of all values of a row of a small table."""
    return zlib.crc32(b"%a\n%b" % (number, facts))


def _facts_of_runs(runs: Mapping[int, Run]) -> list[tuple[int, str, int]]:
    """Rows of the table of runs."""
    names = [one.name for one in fields(Run)]
    facts = [(number, compact({name: getattr(run, name) for name in names})) for number, run in runs.items()]
    return [(number, text, _checksum(number, text.encode())) for number, text in facts]


def _draft(look: _Look) -> Path:
    """Write the sound part of a file beside it."""
    path = look.damage.path
    draft = path.with_name(path.name + ".new")
    make(draft)
    with contextlib.closing(sqlite3.connect(draft, isolation_level=None)) as database:
        database.execute("BEGIN")
        machines = [
            (number, facts.decode(), _checksum(number, facts)) for number, facts in look.machines.items()
        ]
        database.executemany(_INSERT_MACHINE, machines)
        database.executemany(_INSERT_RUN, _facts_of_runs(look.runs))
        count = 0
        for row in _Look(look.database, Damage(path=path)).records():
            count += 1
            texts = [one.decode() if isinstance(one, bytes) else one for one in row[1:]]
            database.execute(_INSERT, (count, *texts))
        [(text,)] = database.execute("SELECT mark FROM store")
        mark = Mark.found(text.encode())
        assert mark is not None
        database.execute("UPDATE store SET mark = ?", (str(replace(mark, records=count)),))
        database.execute("COMMIT")
    return draft


def _put(draft: Path, path: Path) -> str:
    """Put a draft in the place of a damaged file; the name under which that file is kept."""
    names = (f"{path.name}.damaged-{number}" for number in itertools.count(1))
    kept = next(name for name in names if not path.with_name(name).exists())
    log = path.with_name(path.name + "-wal")
    for source in (log, path):
        if source.exists():
            shutil.copy2(source, path.with_name(source.name.replace(path.name, kept)))
    os.replace(draft, path)
    for end in ("-wal", "-shm"):  # should this be killed just before, the log is known as another's
        path.with_name(path.name + end).unlink(missing_ok=True)
    return kept


@dataclass(frozen=True, kw_only=True, slots=True)
class Contents:
    """What a folder holds at one moment."""

    records: list[Record]
    """In the order in which they were written, without the damaged ones."""
    damage: Damage
    last: Run | None
    """What the last driver was asked for."""

    @property
    def standing(self) -> Standing | None:
        """What has become of the last driver's tasks; None where that is not known."""
        if self.last is None or not self.last.plan:
            return None
        planned = {key: version for version, keys in self.last.plan.items() for key in keys}
        found = ((record.version, record.key, record.rows is None) for record in self.records)
        good, bad = _known(found, planned)
        return Standing(
            version=self.last.version,
            function=self.last.function,
            tasks=len(planned),
            finished=len(good),
            failed=len(bad),
            resume=self.last.resume,
        )


def contents(folder: Path) -> Contents:
    """All that is sound in a folder, and what is not; also while a driver is at work."""
    path = folder / FILE
    with translated(path):
        if not path.exists():
            raise StoreError(f"{folder} holds no results ({FILE} is not there)")
    with _looked(path) as look:
        machines = {number: json.loads(facts) for number, facts in look.machines.items()}
        texts: dict[bytes, str] = {}  # one copy of what many records say
        records, broken = [], []
        for row in look.records():
            number, key, version, seed, task, rows, error, seconds, finished, machine, function, _ = row
            try:
                asked = json.loads(task.decode())  # of bytes it would guess the encoding
                found = None if rows is None else json.loads(rows.decode())
            except ValueError:
                asked = found = 0
            if not _is_task(asked) or not (found is None or _is_rows(found)):
                broken.append(number)
                continue
            for text in (version, finished, function):
                if text not in texts:
                    texts[text] = text.decode()
            records.append(
                Record(
                    key=key.decode(),
                    version=texts[version],
                    seed=seed,
                    task=asked,
                    rows=found,
                    error=None if error is None else error.decode(),
                    seconds=seconds,
                    finished=texts[finished],
                    machine=machines.get(machine, {}),
                    function=texts[function],
                )
            )
        look.damage.records += broken
        look.damage.sound -= len(broken)
    return Contents(
        records=records, damage=look.damage, last=look.runs[max(look.runs)] if look.runs else None
    )


def _is_task(value: Any) -> bool:
    return isinstance(value, dict) and ("points" not in value or _is_rows(value["points"]))


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and all(type(one) is dict for one in value)


def read(folder: Path) -> Iterator[Record]:
    """All records of a folder in the order in which they were written; a damaged file is refused."""
    found = contents(folder)
    if found.damage:
        raise StoreError(found.damage.words)
    yield from found.records


def recorded(folder: Path, planned: Mapping[str, str], *, kind: str = "") -> tuple[set[str], set[str]]:
    """The keys that their software has recorded, with rows and as failed; none in a new folder."""
    path = folder / FILE
    with translated(path):
        if not path.exists() or not path.stat().st_size:
            return set(), set()
        if path.with_name(f"{FILE}-journal").exists():  # a driver is at work, or was killed
            with contextlib.suppress(StoreError, OSError), contextlib.ExitStack() as undo:
                undo.callback(_locked(folder).release)
                roll_back(path)
    with _looked(path) as look:
        _require_kind(folder, look.runs.values(), kind)
        return _known(((row[2].decode(), row[1].decode(), row[6]) for row in look.records()), planned)


def _require_kind(folder: Path, runs: Iterable[Run], kind: str) -> None:
    """A folder is a sweep's or the paper's: both in one would be taken for each other."""
    other = next((run.kind for run in runs if kind and run.kind and run.kind != kind), "")
    if other:
        raise StoreError(
            f"{folder} holds the results of seqlaw {other}: take another folder for seqlaw {kind}"
        )


def _known(found: Iterable[tuple[str, str, object]], planned: Mapping[str, str]) -> tuple[set[str], set[str]]:
    """The planned keys among (version, key, whether it failed)."""
    good, bad = set[str](), set[str]()
    for version, key, failed in found:
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
    with (
        contextlib.suppress(sqlite3.Error, TypeError, ValueError),
        contextlib.closing(reader(folder / FILE)) as database,
    ):
        for (facts,) in database.execute("SELECT facts FROM runs ORDER BY id DESC LIMIT 1"):
            run = Run(**json.loads(facts.decode()))
            return f"{run.driver} since {run.started}"
    return "another process"  # one that has just begun


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
