"""Sweeps that survive: killed workers, killed drivers, interruptions, and the same rows everywhere."""

from __future__ import annotations

import functools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import ROOT, python_path
from lab_tasks import moody, walk
from seqlaw.lab import child
from seqlaw.lab.engine import GROUP_SECONDS, GROUPS_A_THREAD, _Flight, joined_cluster
from seqlaw.lab.errors import EngineError, StoreError
from seqlaw.lab.progress import drawn_bar
from seqlaw.lab.run import run
from seqlaw.lab.software import software
from seqlaw.lab.store import FILE, contents, read
from seqlaw.model.checks import InputError

PATHS = os.pathsep.join(map(str, (ROOT / "src", ROOT / "tests")))
DRIVER = (
    "import json, sys, lab_tasks; from seqlaw.lab.run import run\n"
    "folder, name, jobs, tasks = sys.argv[1:]\n"
    "print(run(getattr(lab_tasks, name), json.loads(tasks), folder=folder, seed=5, jobs=int(jobs)))"
)


def rows(folder: Path) -> dict[str, Any]:
    """What must not depend on how a sweep was run, to the last bit (JSON keeps every bit of a float)."""
    return {record.key: (record.task, record.seed, record.rows, record.error) for record in read(folder)}


@contextmanager
def started(
    *command: str, log: Path | None = None, **options: Any
) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A process whose descendants are all known by a mark in their environment; killed at the end."""
    mark = f"SEQLAW_TEST={uuid.uuid4().hex}"
    name, _, value = mark.partition("=")
    environment = {**os.environ, "PYTHONPATH": python_path(PATHS), name: value}
    if log is not None:
        environment["WALK_LOG"] = str(log)
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, *command], stdout=pipe, stderr=pipe, text=True, env=environment, **options
    ) as process:
        try:
            yield process, mark
        finally:
            process.kill()


def marked(mark: str) -> list[int]:
    """The processes that carry a mark, zombies excepted."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if mark.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.append(int(folder.name))
        except OSError:  # it ended meanwhile, or is not ours to read
            continue
    return found


def gone(mark: str, seconds: float = 30) -> bool:
    """Whether all marked processes end within some seconds."""
    end = time.monotonic() + seconds
    while marked(mark) and time.monotonic() < end:
        time.sleep(0.05)
    return not marked(mark)


def until(condition: Any, seconds: float = 90) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def test_one_process_resumes_and_keeps_failures_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "log"
    monkeypatch.setenv("WALK_LOG", str(log))
    tasks: list[dict[str, Any]] = [{"i": i} for i in range(4)]
    tasks += [{"i": 4, "mood": "raise"}, {"i": 5, "mood": "exit"}]
    first = run(moody, tasks[:2], folder=tmp_path, seed=5)
    assert (first.tasks, first.done, first.skipped, first.failed) == (2, 2, 0, 0)
    second = run(moody, tasks, folder=tmp_path, seed=5)
    assert (second.tasks, second.done, second.skipped, second.failed) == (6, 2, 2, 2)
    assert sorted(log.read_text().split()) == ["0", "1", "2", "3"]  # none of them twice
    reasons = [record.error for record in read(tmp_path) if record.error]
    assert reasons == ["ValueError: a bad mood", "SystemExit: 3"]
    third = run(moody, tasks, folder=tmp_path, seed=5)
    assert (third.done, third.skipped, third.failed) == (0, 4, 2)  # a failure is known, too
    again = run(moody, tasks, folder=tmp_path, seed=5, retry_failed=True)
    assert (again.done, again.skipped, again.failed) == (0, 4, 2)
    other = run(moody, tasks[:1], folder=tmp_path, seed=6)
    assert other.done == 1


def test_other_software_runs_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run(walk, [{"i": 1}], folder=tmp_path)
    old = software(walk)
    monkeypatch.setattr("lab_tasks.__version__", "7.1")
    summary = run(walk, [{"i": 1}], folder=tmp_path)
    assert (summary.done, summary.skipped, summary.others) == (1, 0, {old: 1})
    assert [record.version for record in read(tmp_path)] == [old, software(walk)]


def test_two_workers_give_the_rows_of_one_and_find_the_task_at_fault(tmp_path: Path) -> None:
    tasks: list[dict[str, Any]] = [{"i": i, "sleep": 0.005} for i in range(150)]
    run(moody, tasks, folder=tmp_path / "one", seed=5)
    expected = rows(tmp_path / "one")
    fatal: list[dict[str, Any]] = [{"i": 1000, "mood": "kill"}, {"i": 1001, "mood": "raise"}]
    summary = run(moody, [*tasks[:70], *fatal, *tasks[70:]], folder=tmp_path / "two", seed=5, jobs=2)
    assert (summary.done, summary.failed) == (150, 2)
    found = rows(tmp_path / "two")
    reasons = {task["i"]: error for task, _, _, error in found.values() if error}
    assert reasons.pop(1001) == "ValueError: a bad mood"
    assert reasons.pop(1000).startswith("WorkerDied: every worker that ran this task alone died")
    assert not reasons
    assert {key: value for key, value in found.items() if value[3] is None} == expected


@contextmanager
def cluster(file: Path) -> Iterator[tuple[subprocess.Popen[str], subprocess.Popen[str]]]:
    """A scheduler and two workers, started by dask's own command lines; yields it and one of them."""
    where = ("--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(file))
    with started("-m", "dask", "scheduler", "--port", "0", *where) as (scheduler, _):
        until(file.exists)
        worker = ("-m", "dask", "worker", "--nthreads", "1", *where)
        with started(*worker) as (first, _), started(*worker):
            yield scheduler, first


@pytest.mark.slow
def test_the_users_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other software is refused; a worker killed half-way changes no row; a lost scheduler loses nothing."""
    file, out = tmp_path / "scheduler.json", tmp_path / "out"
    with cluster(file) as (scheduler, worker):
        with monkeypatch.context() as patch:
            patch.setattr("lab_tasks.__version__", "7.1")
            with pytest.raises(
                EngineError, match=r"a worker runs version 7\.0\+\w+ of the software .* 7\.1\+"
            ):
                run(walk, sleepers(1), folder=tmp_path / "other", scheduler=str(file))
        assert not rows(tmp_path / "other")

        summary = run(
            walk,
            sleepers(150),
            folder=out,
            seed=5,
            scheduler=str(file),
            progress=lambda summary, share: worker.kill() if summary.done > 75 else None,
        )
        assert (summary.done, summary.failed) == (150, 0)
        assert worker.wait(5) == -signal.SIGKILL
        assert rows(out) == whole_run(150)

        address = json.loads(file.read_text())["address"]
        with pytest.raises(EngineError, match="the scheduler is gone; run the same command again to go on"):
            run(
                walk,
                sleepers(1000),
                folder=out,
                seed=5,
                scheduler=address,
                progress=lambda summary, share: scheduler.kill() if summary.done else None,
            )
    assert 150 < len(rows(out)) < 1000


def test_a_scheduler_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"the scheduler file .* is not there"):
        run(walk, [{"i": 1}], folder=tmp_path, scheduler=str(tmp_path / "none.json"))
    reason = r"cannot reach a scheduler at 127\.0\.0\.1:1"
    with pytest.raises(EngineError, match=reason), joined_cluster("127.0.0.1:1", timeout=1):
        pass


@pytest.mark.parametrize(
    "address",
    [
        "not an address",
        "",
        "tcp://",
        "tcp://[",
        "localhost",
        "tcp://host:99999",
        "http://a:1",
        "a:b:c",
        "tcp://a:-1",
    ],
)
def test_a_malformed_scheduler_is_refused_at_once(tmp_path: Path, address: str) -> None:
    start = time.monotonic()
    with pytest.raises(InputError, match="scheduler must be an address like tcp://host:8786, or a scheduler"):
        run(walk, [{"i": 1}], folder=tmp_path / "out", scheduler=address)
    assert time.monotonic() - start < 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["", "{}", "[3]", '{"address": 3}', '{"address": "tcp://["}', "\xff"])
def test_a_scheduler_file_that_is_none_is_refused_at_once(tmp_path: Path, text: str) -> None:
    file = tmp_path / "scheduler.json"
    file.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match="scheduler must be an address"):
        run(walk, [{"i": 1}], folder=tmp_path / "out", scheduler=str(file))


def test_the_command_says_so_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text("[sizes]\nM = 4\nN = 9\nP = 4\nd = 16\n")
    line = ("-m", "seqlaw", "sweep", str(tmp_path / "grid.toml"), "--out", str(tmp_path / "out"))
    with started(*line, "--engine", "dask", "--scheduler", "tcp://[") as (process, _):
        _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors.count("\n")) == (2, 1)
    assert errors.startswith("seqlaw: --scheduler must be an address like tcp://host:8786")


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_task_that_hangs_is_ended_and_recorded_as_failed(tmp_path: Path, jobs: int) -> None:
    """Also one that holds the interpreter lock; its worker goes on with the others."""
    hang = [{"i": 100, "sleep": 60}, {"i": 101, "mood": "stuck", "log": str(tmp_path / "stuck")}]
    tasks = [{"i": i} for i in range(4)] + hang + [{"i": 5, "mood": "kill"}, {"i": 6}]
    summary = run(moody, tasks, folder=tmp_path, seed=5, jobs=jobs, timeout=1.5)
    assert (summary.done, summary.failed) == (5, 3)
    found = {record.task["i"]: record for record in read(tmp_path)}
    assert [found[i].error for i in (100, 101)] == ["Timeout: it took longer than 1.5 s"] * 2
    assert found[5].error.startswith("WorkerDied: the process of this task ended")
    assert 1.5 <= found[100].seconds < 10
    run(moody, [{"i": i} for i in (0, 1, 2, 3, 6)], folder=tmp_path / "plain", seed=5)
    plain = rows(tmp_path / "plain")
    assert {key: value for key, value in rows(tmp_path).items() if value[3] is None} == plain


@pytest.mark.slow
def test_a_function_of_a_script_can_have_a_timeout(tmp_path: Path) -> None:
    code = (
        "import time; from seqlaw.lab.run import run\n"
        "def f(task, seed):\n    time.sleep(task['s'])\n    return [{'y': task['s']}]\n"
        "if __name__ == '__main__':\n"
        f"    print(run(f, [{{'s': 0}}, {{'s': 60}}], folder={str(tmp_path / 'out')!r}, timeout=1).failed)\n"
    )
    (tmp_path / "script.py").write_text(code)
    with started(str(tmp_path / "script.py")) as (process, mark):
        out, errors = process.communicate(timeout=60)
        assert (out, errors) == ("1\n", "")
        assert gone(mark)


def test_the_child_of_a_killed_driver_ends_with_it(tmp_path: Path) -> None:
    driver = DRIVER.replace("jobs=int(jobs)", "jobs=int(jobs), timeout=600")
    log = tmp_path / "log"
    with started("-c", driver, str(tmp_path), "stuck", "1", json.dumps([{"log": str(log)}])) as (one, mark):
        until(log.exists)
        one.kill()
        one.wait()
        assert gone(mark, 3)


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_the_longest_running_task_is_named(
    tmp_path: Path, jobs: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("seqlaw.lab.progress.EVERY", 0.5)
    tasks = [{"i": 1, "sleep": 0.01, "same": 3}, {"i": 2, "sleep": 6.5, "same": 3}]
    with drawn_bar(plain=True) as bar:
        run(walk, tasks, folder=tmp_path, jobs=jobs, progress=bar.progress, watch=bar.watch)
    said = [line for line in capsys.readouterr().err.splitlines() if "longest running" in line]
    assert said
    assert all("longest running: i=2 sleep=6.5, for " in line for line in said)


def executions(log: Path) -> Counter[int]:
    return Counter(map(int, log.read_text().split())) if log.exists() else Counter()


@functools.cache
def whole_run(count: int) -> dict[str, Any]:
    """The rows of an uninterrupted run of the tasks below, in one process."""
    with tempfile.TemporaryDirectory() as folder:
        run(walk, sleepers(count), folder=folder, seed=5)
        return rows(Path(folder))


def sleepers(count: int) -> list[dict[str, Any]]:
    return [{"i": i, "sleep": 0.02} for i in range(count)]


def killed_and_resumed(folder: Path, wait: Callable[[Path], None], count: int) -> float:
    """Kill a driver after `wait(log)` and check all that must hold; returns the share recorded."""
    out, log, jobs = folder / "out", folder / "log", 2
    command = ("-c", DRIVER, str(out), "walk", str(jobs), json.dumps(sleepers(count)))
    with started(*command, log=log) as (driver, mark):
        wait(log)
        driver.kill()
        driver.wait()
        assert gone(mark), "a worker outlived its driver"
    kept = {record.task["i"] for record in read(out)} if (out / FILE).exists() else set()
    before = executions(log)
    assert kept <= set(before)
    in_flight = jobs * GROUPS_A_THREAD * (GROUP_SECONDS / 0.02 + 1)
    assert len(set(before) - kept) <= in_flight
    with started(*command, log=log) as (driver, mark):
        _, errors = driver.communicate(timeout=120)
        assert (driver.returncode, errors) == (0, "")
        assert gone(mark)
    after = executions(log)
    assert all(after[i] == 1 for i in kept), "recorded work was done again"
    assert set(after) == set(range(count))
    assert rows(out) == whole_run(count)
    return len(kept) / count


@pytest.mark.slow
def test_a_killed_driver_resumes_where_it_was(tmp_path: Path) -> None:
    share = killed_and_resumed(tmp_path, lambda log: until(lambda: len(executions(log)) > 50), 100)
    assert 0 < share < 1


@pytest.mark.slow
def test_twenty_random_kills(tmp_path: Path) -> None:
    clock = random.Random(20)
    shares = []
    for attempt in range(20):
        folder = tmp_path / str(attempt)
        folder.mkdir()
        moment = clock.uniform(0, 7)  # from before the first line of the driver to about its end
        shares.append(killed_and_resumed(folder, lambda log, moment=moment: time.sleep(moment), 400))
    print(sorted(shares))
    assert sum(0 < share < 1 for share in shares) > 3, "too few kills fell amid the work"


KILLS = int(os.environ.get("SEQLAW_KILLS", "2"))
ONE_PASS_AND_PHASES = """
method = "{method}"
sketches = 2
repetitions = 1
eval_lengths = ["own", 16]
[sizes]
M = [4, 6, 8]
batch = [3, 5, 8, 13]
P = [5, "2:0.5,8:0.5", "2:0.9 then 8:0.1", "8:0.5 then 2:0.5"]
d = 24
[[schedules]]
kind = "constant"
gamma = 0.3
L = 400
"""


@pytest.mark.slow
@pytest.mark.parametrize("method", ["exact", "sampled"])
def test_kills_of_sweeps_through_one_pass_and_phases(tmp_path: Path, method: str) -> None:
    """`seqlaw sweep`, killed at a random number of rows and resumed, has the rows of a run in one piece."""
    file = tmp_path / "grid.toml"
    file.write_text(ONE_PASS_AND_PHASES.format(method=method))

    def driver(out: Path, jobs: int) -> tuple[str, ...]:
        return ("-m", "seqlaw", "sweep", str(file), "--out", str(out), "--jobs", str(jobs))

    def finish(out: Path, jobs: int) -> dict[str, Any]:
        with started(*driver(out, jobs)) as (process, mark):
            _, errors = process.communicate(timeout=300)
            assert (process.returncode, errors) == (0, "")
            assert gone(mark)
        return rows(out)

    whole = finish(tmp_path / "whole", 1)
    assert len(whole) == 96
    assert {error for *_, error in whole.values()} == {None}
    clock, amid = random.Random(23), 0
    for attempt in range(KILLS):
        out, moment = tmp_path / str(attempt), clock.randrange(len(whole))
        with started(*driver(out, 2)) as (process, mark):
            until(lambda out=out, moment=moment: (out / FILE).exists() and len(rows(out)) >= moment, 300)
            process.kill()
            process.wait()
            assert gone(mark), "a worker outlived its driver"
        kept = rows(out)
        amid += 0 < len(kept) < len(whole)
        assert kept.items() <= whole.items()
        assert finish(out, 2) == whole
    print(method, KILLS, "kills,", amid, "amid the work")
    assert amid > 0


def test_workers_stuck_in_a_call_die_with_their_driver(tmp_path: Path) -> None:
    logs = [tmp_path / "0", tmp_path / "1"]
    tasks = json.dumps([{"log": str(log)} for log in logs])
    with started("-c", DRIVER, str(tmp_path), "stuck", "2", tasks) as (driver, mark):
        until(lambda: all(log.exists() for log in logs))
        driver.kill()
        driver.wait()
        assert gone(mark, 3)


@pytest.mark.parametrize(("jobs", "number"), [(1, signal.SIGINT), (2, signal.SIGINT), (1, signal.SIGTERM)])
def test_an_interruption_keeps_what_is_finished(tmp_path: Path, jobs: int, number: int) -> None:
    log = tmp_path / "log"
    tasks = [{"i": i, "sleep": 0.01} for i in range(100)]
    tasks += [{"i": i, "sleep": 60} for i in range(100, 100 + jobs)]
    command = ("-c", DRIVER, str(tmp_path), "walk", str(jobs), json.dumps(tasks))
    with started(*command, log=log, start_new_session=True) as (driver, mark):
        until(lambda: set(range(100, 100 + jobs)) <= set(executions(log)))
        time.sleep(0.5)  # a result on its way from a worker is not finished yet
        os.killpg(driver.pid, number) if number == signal.SIGINT else driver.send_signal(number)
        _, errors = driver.communicate(timeout=60)
        assert errors.rstrip().endswith("KeyboardInterrupt")
        assert gone(mark)
    assert {record.task["i"] for record in read(tmp_path)} == set(range(100))


def test_an_interruption_without_news_is_no_progress(tmp_path: Path) -> None:
    """It would tell a bar that so many seconds have brought nothing, and five minutes to be left."""
    seen: list[float] = []

    def interrupted(task: dict[str, Any], seed: int) -> list[dict[str, Any]]:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(interrupted, [{"i": 0}], folder=tmp_path, progress=lambda summary, share: seen.append(share))
    assert seen == [0.0]


def test_a_second_driver_is_refused(tmp_path: Path) -> None:
    tasks = json.dumps([{"i": 0, "sleep": 60}])
    with started("-c", DRIVER, str(tmp_path), "walk", "1", tasks) as (driver, _):
        until(lambda: (tmp_path / FILE).exists() and contents(tmp_path).standing is not None)
        with pytest.raises(StoreError, match=rf"is in use by process {driver.pid} on"):
            run(walk, [{"i": 0}], folder=tmp_path)


@pytest.mark.parametrize("ended", ["closed", "failed"])
def test_a_cluster_that_has_lost_its_workers_for_good_is_not_waited_for(ended: str) -> None:
    """On a machine too busy to start a worker again, a sweep waited for ever."""
    ends = SimpleNamespace(status=SimpleNamespace(name=ended))
    runs = SimpleNamespace(status=SimpleNamespace(name="running"))
    client = SimpleNamespace(status="running", cluster=SimpleNamespace(workers={0: ends, 1: runs}))
    flight = _Flight(client, (walk, 0, None, ""))
    assert flight.land(patience=0.01) is None
    client.cluster.workers[1] = ends
    with pytest.raises(EngineError, match="no worker starts again; run the same command again to go on"):
        flight.land(patience=0.01)
    client.cluster.workers.clear()  # as dask forgets them
    with pytest.raises(EngineError, match="no worker starts again"):
        flight.land(patience=0.01)
    client.cluster = None  # another's cluster: workers may join
    assert flight.land(patience=0.01) is None


def test_an_interrupted_task_leaves_no_timer_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    """The program waited for the rest of --timeout after Ctrl-C."""
    worker = child.Child(walk, 0, 60.0)
    before = set(threading.enumerate())

    def interrupted(source: object) -> None:
        raise KeyboardInterrupt

    try:
        worker.attempt(("key", {"i": 1}, "code"))
        monkeypatch.setattr(child, "unpack", interrupted)
        with pytest.raises(KeyboardInterrupt):
            worker.attempt(("key", {"i": 1}, "code"))
    finally:
        worker.close()
    for thread in set(threading.enumerate()) - before:
        thread.join(5)
        assert not thread.is_alive()


def test_what_a_task_starts_ends_with_it_and_loading_is_not_its_time() -> None:
    """A process that the task had started held the pipe; the first task paid for what the child loads."""
    worker = child.Child(moody, 0, 1.0)
    try:
        start = time.monotonic()
        found = worker.attempt(("key", {"i": 1, "mood": "fork"}, "code"))
        assert found.error == "Timeout: it took longer than 1 s"
        assert time.monotonic() - start < 20  # of the sixty that its process sleeps
    finally:
        worker.close()
