"""The result file: what it keeps, whom it refuses, and that it is left alone when refused."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from filelock import FileLock

from conftest import ROOT, python_path
from seqlaw.lab.database import FILE, file_system, inspect, journal_for
from seqlaw.lab.errors import StoreError
from seqlaw.lab.store import Outcome, Standing, Store, contents, read, recorded


def outcome(i: int, *, error: str | None = None, size: int = 1, software: str = "1.0") -> Outcome:
    rows = None if error else json.dumps([{"value": i / 7}] * size)
    return Outcome(
        key=f"{i:032x}",
        software=software,
        function="mine:f",
        task={"i": i},
        seconds=0.5,
        machine='{"host":"here"}',
        rows=rows,
        error=error,
    )


def plan(*numbers: int, software: str = "1.0") -> dict[str, str]:
    return {outcome(i).key: software for i in numbers}


def opened(folder: Path, software: str = "1.0", journal: str | None = None) -> Store:
    return Store(folder, seed=3, software=software, planned=plan(1, 2, software=software), journal=journal)


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_what_is_recorded_is_read_back(tmp_path: Path, journal: str) -> None:
    with opened(tmp_path, journal=journal) as store:
        store.record([outcome(1), outcome(2, error="ValueError: no")])
        assert store.known() == ({outcome(1).key}, {outcome(2).key})
        during = list(read(tmp_path))  # a reader needs no lock
    after = list(read(tmp_path))
    assert during == after
    first, second = after
    assert (first.seed, first.version, first.task, first.rows) == (3, "1.0", {"i": 1}, [{"value": 1 / 7}])
    assert (second.rows, second.error) == (None, "ValueError: no")
    assert first.machine == {"host": "here"}
    assert {path.name for path in tmp_path.iterdir()} == {FILE, "driver.lock"}  # no log stays behind
    with opened(tmp_path) as store:
        store.record([outcome(2)])
        assert store.known() == ({outcome(1).key, outcome(2).key}, set())


def test_rows_of_other_software_are_kept_and_marked(tmp_path: Path) -> None:
    with opened(tmp_path, "1.0") as store:
        store.record([outcome(1), outcome(2)])
    with opened(tmp_path, "1.1") as store:
        assert store.known() == (set(), set())
        assert store.others() == {"1.0": 2}
        store.record([outcome(1, software="1.1")])
        assert store.known() == ({outcome(1).key}, set())
    assert [(record.version, record.task["i"]) for record in read(tmp_path)] == [
        ("1.0", 1),
        ("1.0", 2),
        ("1.1", 1),
    ]


def test_the_last_plan_says_how_much_is_done(tmp_path: Path) -> None:
    def expect(software: str, tasks: int, finished: int, failed: int, resume: str) -> None:
        assert contents(tmp_path).standing == Standing(
            version=software, function="mine:f", tasks=tasks, finished=finished, failed=failed, resume=resume
        )

    with Store(
        tmp_path, seed=3, software="1.0", function="mine:f", planned=plan(0, 1, 2, 3), resume="again"
    ) as store:
        expect("1.0", 4, 0, 0, "again")
        store.record([outcome(1), outcome(2, error="ValueError: no"), outcome(9)])  # 9 is of another plan
        expect("1.0", 4, 1, 1, "again")
    # A task may name code of its own, so that its software is not the driver's.
    planned = plan(1, software="1.1") | plan(2, software="1.1+mymodule.5d4e")
    with Store(tmp_path, seed=3, software="1.1", function="mine:f", planned=planned) as store:
        store.record([outcome(2, software="1.1")])
        expect("1.1", 2, 0, 0, "")
        store.record([outcome(2, software="1.1+mymodule.5d4e")])
    expect("1.1", 2, 1, 0, "")


def test_a_second_driver_is_refused_and_told_by_whom(tmp_path: Path) -> None:
    with (
        opened(tmp_path),
        pytest.raises(StoreError, match=rf"is in use by process {os.getpid()} on .*: one driver"),
    ):
        opened(tmp_path)
    opened(tmp_path).close()


def test_the_lock_of_a_killed_driver_is_gone(tmp_path: Path) -> None:
    program = (
        "import sys, time; from pathlib import Path; from seqlaw.lab.store import Store\n"
        "store = Store(Path(sys.argv[1]), seed=3, software='1.0'); print('ready', flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": python_path(ROOT / "src")}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as driver:
        assert driver.stdout is not None
        driver.stdout.readline()
        with pytest.raises(StoreError, match=f"process {driver.pid} on"):
            opened(tmp_path)
        driver.send_signal(signal.SIGKILL)
    opened(tmp_path).close()


def foreign(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute("CREATE TABLE guests (name TEXT)")
        database.commit()


def not_sqlite(path: Path) -> None:
    path.write_text("M,N,P\n1,2,3\n")


def other_schema(path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 99")


def truncated_header(path: Path) -> None:
    filled(path)
    os.truncate(path, 60)


def earlier_schema(path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as database:
        database.execute("PRAGMA user_version = 3")


def log_of_a_killed_driver(folder: Path) -> bytes:
    """A store whose driver was killed, as far as its files go: closed here, with its log kept aside."""
    store = opened(folder)
    store.record([outcome(1000)])
    log = folder / (FILE + "-wal")
    saved = log.read_bytes()
    store.close()
    return saved


def foreign_log(path: Path) -> None:
    """An old log beside a new file: SQLite would apply it."""
    (path.parent / "old").mkdir()
    saved = log_of_a_killed_driver(path.parent / "old")
    filled(path)
    path.with_name(FILE + "-wal").write_bytes(saved)


def stale_log(path: Path) -> None:
    """A log of this very store beside a file of a later day."""
    saved = log_of_a_killed_driver(path.parent)
    filled(path)
    path.with_name(FILE + "-wal").write_bytes(saved)


def filled(path: Path) -> None:
    with opened(path.parent) as store:
        store.record([outcome(i, size=50) for i in range(100)])


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (foreign, "is a database of another program"),
        (not_sqlite, "is no result file"),
        (other_schema, "has schema version 99; this software reads 5 only"),
        (earlier_schema, "has schema version 3; .* export it with the version that wrote it, or take a new"),
        (truncated_header, "is truncated: 60 bytes are left; move it away"),
        (foreign_log, "-wal is the log of another file than results.sqlite: move it away"),
        (stale_log, "-wal is the log of another file than results.sqlite: move it away"),
    ],
)
def test_a_file_that_is_not_a_sound_store_is_refused_and_left_alone(
    tmp_path: Path, spoil: Callable[[Path], None], message: str
) -> None:
    path = tmp_path / FILE
    spoil(path)
    before = path.read_bytes()
    for use in (lambda: opened(tmp_path), lambda: list(read(tmp_path))):
        with pytest.raises(StoreError, match=message) as caught:
            use()
        assert "\n" not in str(caught.value)
        assert str(path) in str(caught.value)
        assert path.read_bytes() == before


def test_the_log_of_a_killed_driver_is_taken_up(tmp_path: Path) -> None:
    filled(tmp_path / FILE)
    before = (tmp_path / FILE).read_bytes()
    saved = log_of_a_killed_driver(tmp_path)
    (tmp_path / FILE).write_bytes(before)  # as it was: nothing of the log had reached it
    with closing(sqlite3.connect(tmp_path / FILE)) as database:
        database.execute("PRAGMA journal_mode = WAL")
    (tmp_path / (FILE + "-wal")).write_bytes(saved)
    assert [record.task["i"] for record in read(tmp_path)] == [*range(100), 1000]
    opened(tmp_path).close()
    assert len(list(read(tmp_path))) == 101


def killed_while_writing(path: Path) -> None:
    """What a driver leaves that a kill meets with a part of its pages written: a hot rollback journal."""
    program = (
        "import os, sqlite3, sys; database = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "database.execute('PRAGMA cache_size = 1'); database.execute('BEGIN IMMEDIATE')\n"
        "database.execute('UPDATE store SET mark = 0')\n"
        "for i in range(200): database.execute('INSERT INTO machines VALUES (?, ?, 0)', (i + 9, 'x' * 500))\n"
        "os._exit(0)"
    )
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)


def test_what_a_killed_driver_has_half_written_is_undone(tmp_path: Path) -> None:
    with opened(tmp_path, journal="delete") as store:
        store.record([outcome(1)])
    path, before = tmp_path / FILE, list(read(tmp_path))
    whole = path.read_bytes()
    killed_while_writing(path)
    assert path.read_bytes() != whole
    with pytest.raises(StoreError, match="a driver was killed while writing; run its command again"):
        list(read(tmp_path))
    with opened(tmp_path, journal="delete") as store:
        assert (store.saved, store.known()) == ("", (set(plan(1)), set()))
    assert list(read(tmp_path)) == before
    assert {one.name for one in tmp_path.iterdir()} == {FILE, "driver.lock"}


def test_asking_what_is_left_undoes_it_too_unless_a_driver_is_at_work(tmp_path: Path) -> None:
    """`seqlaw reproduce` asks before it opens the store: the same command has to go on."""
    with opened(tmp_path, journal="delete") as store:
        store.record([outcome(1)])
    killed_while_writing(tmp_path / FILE)
    with FileLock(tmp_path / "driver.lock"), pytest.raises(StoreError, match="killed while writing"):
        recorded(tmp_path, plan(1, 2))
    assert recorded(tmp_path, plan(1, 2)) == (set(plan(1)), set())
    opened(tmp_path).close()  # the lock is free


def test_a_journal_whose_file_is_gone_is_not_applied_to_the_new_one(tmp_path: Path) -> None:
    with opened(tmp_path, journal="delete") as store:
        store.record([outcome(1)])
    killed_while_writing(tmp_path / FILE)
    (tmp_path / FILE).unlink()
    with opened(tmp_path, journal="delete") as store:
        assert (store.saved, store.known()) == ("", (set(), set()))
    assert list(read(tmp_path)) == []


def test_the_half_written_file_of_another_program_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / FILE
    with closing(sqlite3.connect(path)) as database:
        database.executescript("CREATE TABLE store (mark); CREATE TABLE machines (id, facts, sum)")
    killed_while_writing(path)
    files = (path, tmp_path / f"{FILE}-journal")
    before = [file.read_bytes() for file in files]
    with pytest.raises(StoreError, match="a database of another program"):
        opened(tmp_path)
    assert [file.read_bytes() for file in files] == before


def damaged(path: Path, spoil: str, *values: object) -> None:
    with closing(sqlite3.connect(path)) as database:
        database.execute(spoil, values)
        database.commit()


@pytest.mark.parametrize(
    "spoil",
    [
        "UPDATE results SET rows = replace(rows, '0.', '1.') WHERE id = 3",
        "UPDATE results SET key = 'f' || substr(key, 2) WHERE id = 3",
        "UPDATE results SET version = '1.1' WHERE id = 3",
        "UPDATE results SET seed = 4 WHERE id = 3",
        "UPDATE results SET seconds = 0.25 WHERE id = 3",
        "UPDATE results SET task = CAST(x'7bff' AS TEXT) WHERE id = 3",
        "DELETE FROM results WHERE id = 3",
    ],
)
def test_a_damaged_record_is_named_left_out_and_computed_again(tmp_path: Path, spoil: str) -> None:
    with Store(tmp_path, seed=3, software="1.0", planned=plan(*range(5))) as store:
        store.record([outcome(i) for i in range(5)])
    whole = list(read(tmp_path))
    damaged(tmp_path / FILE, spoil)
    spoilt = (tmp_path / FILE).read_bytes()
    found = contents(tmp_path)
    assert found.records == [record for record in whole if record.task["i"] != 2]
    named = "1 missing" if spoil.startswith("DELETE") else r"left out: 1 damaged \(number 3\)"
    words = rf"results\.sqlite is damaged: 4 records can be read, {named}; run the same command"
    with pytest.raises(StoreError, match=words):
        list(read(tmp_path))
    with Store(tmp_path, seed=3, software="1.0", planned=plan(*range(5))) as store:
        assert store.known() == (set(plan(0, 1, 3, 4)), set())
        assert store.saved.endswith("the damaged file is kept as results.sqlite.damaged-1")
        store.record([outcome(2)])
    assert (tmp_path / "results.sqlite.damaged-1").read_bytes() == spoilt
    again = sorted(read(tmp_path), key=lambda record: record.task["i"])
    assert [(one.key, one.rows) for one in again] == [(one.key, one.rows) for one in whole]


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="no list of open files")
def test_a_damaged_file_is_closed_before_it_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows neither replaces nor deletes an open file."""
    filled(tmp_path / FILE)
    damaged(tmp_path / FILE, "DELETE FROM results WHERE id = 3")
    moved: list[set[str]] = []

    def move(source: Path, target: Path) -> None:
        links = [Path("/proc/self/fd", name) for name in os.listdir("/proc/self/fd")]
        moved.append({os.readlink(link) for link in links if os.path.lexists(link)})
        os.rename(source, target)

    monkeypatch.setattr(os, "replace", move)
    opened(tmp_path).close()
    [names] = moved
    assert str(tmp_path / "driver.lock") in names  # so the list does show what is open
    assert not [name for name in names if FILE in name]


@pytest.mark.parametrize("rows", ["3", '{"a":1}', "[3]", "[[]]", "nonsense", '"text"'])
def test_json_of_the_wrong_shape_is_one_line(tmp_path: Path, rows: str) -> None:
    """With a right checksum, too: whoever wrote it."""
    from dataclasses import replace

    with opened(tmp_path) as store:
        store.record([replace(outcome(1), rows=rows), outcome(2)])
    with pytest.raises(StoreError, match=r"1 records can be read, left out: 1 damaged \(number 1\)"):
        list(read(tmp_path))


def test_a_cut_file_gives_what_is_left(tmp_path: Path) -> None:
    filled(tmp_path / FILE)
    os.truncate(tmp_path / FILE, (tmp_path / FILE).stat().st_size - 20000)
    found = contents(tmp_path)
    assert 50 < len(found.records) < 100
    assert f"{len(found.records)} records can be read" in found.damage.words
    assert "the file is cut" in found.damage.words
    with opened(tmp_path) as store:
        assert f"{len(found.records)} records can be read" in store.saved
    assert list(read(tmp_path)) == found.records


def test_no_flipped_bit_is_silent(tmp_path: Path) -> None:
    """Each is harmless, or named: benchmarks/attack.py flips more."""
    filled(tmp_path / FILE)
    file = tmp_path / FILE
    sound, whole = file.read_bytes(), list(read(tmp_path))
    dice, named, refused = random.Random(7), 0, 0
    places = [dice.randrange(8 * len(sound)) for _ in range(150)]
    places += [8 * byte + dice.randrange(8) for byte in range(16, 72)]  # the header
    for place in places:
        changed = bytearray(sound)
        changed[place // 8] ^= 1 << place % 8
        file.write_bytes(changed)
        try:
            found = contents(tmp_path)
        except StoreError as error:
            named += "\n" not in str(error)
            refused += 1
            continue
        assert all(record in whole for record in found.records)
        named += bool(found.damage)
        assert found.damage or found.records == whole, f"silent: bit {place}"
    assert refused < 50 < named < len(places)


def test_a_folder_takes_one_kind_of_run(tmp_path: Path) -> None:
    Store(tmp_path, seed=3, software="1.0", kind="reproduce").close()
    before = (tmp_path / FILE).read_bytes()
    words = "holds the results of seqlaw reproduce: take another folder for seqlaw sweep"
    with pytest.raises(StoreError, match=words):
        Store(tmp_path, seed=3, software="1.0", kind="sweep")
    assert (tmp_path / FILE).read_bytes() == before
    Store(tmp_path, seed=3, software="1.0").close()


def test_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="holds no results"):
        list(read(tmp_path))


def test_a_killed_creation_leaves_nothing_in_the_way(tmp_path: Path) -> None:
    (tmp_path / FILE).touch()
    (tmp_path / f"{FILE}.new").write_text("half-made")
    opened(tmp_path).close()
    inspect(tmp_path / FILE)


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_full_disk_loses_nothing_that_was_acknowledged(tmp_path: Path, journal: str) -> None:
    with opened(tmp_path, journal=journal) as store:
        store.record([outcome(1)])
        # SQLite's own limit fails in the same place, with the same code, as a write to a full disk.
        store._connection.execute("PRAGMA max_page_count = 12")
        with pytest.raises(StoreError, match="the disk is full; what was recorded is kept") as caught:
            store.record([outcome(i, size=500) for i in range(2, 50)])
        assert "\n" not in str(caught.value)
        assert store.known() == ({outcome(1).key}, set())
    with opened(tmp_path) as store:
        store.record([outcome(2)])
    assert [record.task["i"] for record in read(tmp_path)] == [1, 2]


@contextmanager
def without_power(folder: Path) -> Iterator[None]:
    """Read-only for this process; root may write anywhere, so root becomes nobody for a while."""
    parents = [above for above in folder.parents if above.stat().st_uid == os.geteuid()]
    modes = {above: above.stat().st_mode for above in (folder, *parents)}
    root = os.geteuid() == 0
    for above, mode in modes.items():
        above.chmod(mode | stat.S_IXOTH | stat.S_IXGRP)  # it keeps its group
    folder.chmod(0o555)
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
        for above, mode in modes.items():
            above.chmod(mode)


def test_a_read_only_folder_is_refused_for_writing_and_read_all_the_same(tmp_path: Path) -> None:
    with opened(tmp_path) as store:
        store.record([outcome(1)])
    before = (tmp_path / FILE).read_bytes()
    with without_power(tmp_path):
        assert len(list(read(tmp_path))) == 1
        with pytest.raises(StoreError, match=r"/driver\.lock: permission denied$"):
            opened(tmp_path)
        with pytest.raises(StoreError, match=r"/new: permission denied$"):
            opened(tmp_path / "new")
    assert (tmp_path / FILE).read_bytes() == before


def test_the_journal_suits_the_file_system(tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(
        "22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
        f"40 22 0:35 / {tmp_path}/home\\040dir rw - nfs4 server:/home rw\n"
        f"41 22 0:36 / {tmp_path}/home rw - tmpfs tmpfs rw\n"
    )
    assert file_system(tmp_path / "home dir" / "x", mounts) == "nfs4"
    assert file_system(tmp_path / "home" / "x", mounts) == "tmpfs"
    assert file_system(tmp_path / "homes", mounts) == "ext4"
    assert file_system(tmp_path, tmp_path / "absent") == ""
    assert journal_for(tmp_path) in ("wal", "delete")
