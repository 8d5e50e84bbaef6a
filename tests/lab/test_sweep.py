"""Sweep files, the rows they give, and the commands sweep, export and fit."""

from __future__ import annotations

import json
import math
import os
import re
import signal
import subprocess
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from conftest import ROOT, python_path
from lab_tasks import walk
from seqlaw.answers.risk import risk
from seqlaw.cli import main
from seqlaw.lab.errors import StoreError
from seqlaw.lab.run import run
from seqlaw.lab.software import function_path, software
from seqlaw.lab.store import FILE, Store, contents
from seqlaw.lab.table import load as load_any
from seqlaw.lab.table import to_dataset
from seqlaw.methods import ask
from seqlaw.methods.ask import METHODS
from seqlaw.model.checks import InputError
from seqlaw.model.schedule import BlockDecay
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import PRESETS
from seqlaw.sweeping.file import Schedules, Sizes, Sweep, load_sweep
from seqlaw.sweeping.run import export, load, sweep
from seqlaw.sweeping.task import risk_rows

FILE_TEXT = """
method = "exact"
teachers = ["regime1", {alpha = 1.8, theta = 1.25, r = 0.35, rho = 0.55, c_xi = 0.03, c_0 = 0.30}]
eval_lengths = ["own", 16]
sketches = 2
seed = 3

[sizes]
M = {log = [4, 16], n = 3}
N = 1e3
P = [4, 16]
d = 48

[[schedules]]
kind = "block"
R = [50, 200]

[[schedules]]
kind = "wsd"
L = 1000
warmup = 0.2
"""


def tables(**changes: Any) -> dict[str, Any]:
    """A small valid sweep as TOML would give it."""
    sizes = {"M": [4, 8], "N": 100, "P": [4, 16], "d": 32}
    base: dict[str, Any] = {"method": "exact", "sketches": 1, "sizes": sizes, "schedules": [{"L": 500}]}
    return base | changes


def test_a_file_becomes_tasks(tmp_path: Path) -> None:
    (tmp_path / "grid.toml").write_text(FILE_TEXT)
    spec = load_sweep(tmp_path / "grid.toml")
    # 2 teachers × 3 M × (3 schedules) × (P = 4 tested at 4 and 16, P = 16 tested at 16)
    assert len(spec.tasks) == 2 * 3 * 3 * 3
    assert spec.tasks[0] == {
        "method": "exact",
        **{name: getattr(PRESETS["regime1"], name) for name in ("alpha", "theta", "r", "rho", "c_xi", "c_0")},
        "sketches": 2,
        "M": 4,
        "d": 48,
        "N": 1000,
        "P": 4,
        "schedule": "block",
        "gamma": 0.1,
        "L": BlockDecay.from_horizon(50, 0.1).L,
        "eval_length": 4,
        "batch": None,
        "lengths": None,
        "device": None,
    }
    python = Sweep(
        method="exact",
        teachers=["regime1", PRESETS["regime2"]],
        eval_lengths=["own", 16],
        sketches=2,
        seed=3,
        sizes=Sizes(M=[4, 8, 16], N=1000, P=[4, 16], d=48),
        schedules=[Schedules(kind="block", R=[50.0, 200.0]), Schedules(L=1000, warmup=0.2)],
    )
    assert python.tasks == spec.tasks


def test_zip_puts_values_side_by_side() -> None:
    sizes = {"M": [4, 8], "N": [10, 20], "P": 4, "d": 32}
    spec = load_sweep(tables(combine="zip", sizes=sizes, schedules=[{"L": [100, 200]}]))
    assert [(t["M"], t["N"], t["P"], t["L"]) for t in spec.tasks] == [(4, 10, 4, 100), (8, 20, 4, 200)]


def test_infinity_is_for_the_equivalent_method() -> None:
    sizes = {"M": 8, "N": 100, "P": 4, "d": [32, math.inf]}
    spec = load_sweep(tables(method="equivalent", sizes=sizes))
    assert [task["d"] for task in spec.tasks] == [32, math.inf]
    assert "sketches" not in spec.tasks[0]  # nothing random: its number is no part of the question


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rung": "exact"}, "sweep: rung is method since 0.3, got 'exact'"),
        ({"sketchs": 3}, "sweep: sketchs is not a field of a sweep (its fields: sizes, schedules, "),
        (
            {"sizes": {"M": 4, "N": 1, "P": 1, "d": 8, "Q": 2}},
            "sweep: sizes.Q is not a field of a sweep, got 2",
        ),
        ({"schedules": [{"L": 9, "steps": 1}]}, "sweep: schedules.0.steps is not a field of a sweep, got 1"),
        ({"sizes": {"M": 4, "N": 1, "P": 1}}, "sweep: sizes.d must be given"),
        (
            {"sizes": {"M": {"log": [-4, 8], "n": 3}, "N": 1, "P": 1, "d": 8}},
            "sweep: sizes.M.log must have positive ends, got [-4, 8]",
        ),
        (
            {"sizes": {"M": {"log": [4, 8], "n": -3}, "N": 1, "P": 1, "d": 8}},
            "sweep: sizes.M.n must be a whole number from 1, got -3",
        ),
        ({"sizes": {"M": [4, -8], "N": 1, "P": 1, "d": 8}}, "sweep: sizes.M must be at least 1, got -8"),
        ({"sizes": {"M": 2.5, "N": 1, "P": 1, "d": 8}}, "sweep: sizes.M must be a whole number, got 2.5"),
        ({"sizes": {"M": 16, "N": 1, "P": 1, "d": 8}}, "sweep: sizes.M must be at most d = 8, got 16"),
        ({"sizes": {"M": 4, "N": 1, "P": 1, "d": math.inf}}, "sweep: sizes.d must be finite on this method"),
        ({"teachers": ["regime3"]}, "sweep: teacher must be one of regime1, regime2"),
        (
            {"teachers": [{"alpha": 1.5, "theta": 2.5, "r": 0.2, "rho": 1.2, "c_xi": 1, "c_0": 1}]},
            "sweep: Teacher.rho must lie in (0, 1), got 1.2",
        ),
        ({"teachers": []}, "sweep: teachers must not be empty"),
        (
            {"method": "rates"},
            f"sweep: method must be one of {', '.join(METHODS)} (the theorem: seqlaw rates)",
        ),
        ({"combine": "outer"}, "sweep: combine must be product or zip, got 'outer'"),
        (
            {"combine": "zip", "schedules": [{"L": [9, 19, 29]}]},
            "sweep: combine zip needs axes of equal length (or of one value), got {'M': 2, 'P': 2, 'L': 3}",
        ),
        ({"schedules": [{"kind": "no-such", "L": 9}]}, "sweep: schedules.kind must be one of wsd, block"),
        ({"schedules": [{"L": 9, "R": 1}]}, "sweep: schedules must have L or R, and not both"),
        ({"schedules": [{}]}, "sweep: schedules must have L or R, and not both"),
        ({"schedules": [{"kind": "block", "L": 9, "decay": 0.1}]}, "sweep: schedules.decay goes with the"),
        ({"schedules": [{"L": 4, "warmup": 0.9}]}, "sweep: WSD.warmup must be below"),
        ({"schedules": [{"R": -3}]}, "sweep: schedules.R must be positive, got -3"),
        ({"eval_lengths": [0]}, "sweep: eval_lengths must be at least 1, got 0"),
        ({"eval_lengths": "other"}, "sweep: eval_lengths must be a number, got 'other'"),
        ({"sketches": 0}, "sweep: sketches must be at least 1, got 0"),
        ({"seed": -1}, "sweep: seed must be at least 0, got -1"),
    ],
)
def test_a_bad_sweep_is_refused_in_one_line(tmp_path: Path, changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        sweep(tables(**changes), tmp_path / "out")
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("method", ["sampled", "exact", "equivalent"])
def test_a_row_is_the_answer_of_its_method_to_the_last_bit(tmp_path: Path, method: str) -> None:
    source = tables(method=method, sketches=2, repetitions=2, seed=5, schedules=[{"kind": "block", "R": 20}])
    summary = sweep(source, tmp_path)
    assert (summary.tasks, summary.done, summary.failed) == (4, 4, 0)
    frame = load(tmp_path).frame
    for row in frame.to_dict("records"):
        setting = Setting(
            teacher=PRESETS["regime2"],
            M=row["M"],
            N=100,
            P=row["P"],
            d=32,
            schedule=BlockDecay.from_horizon(20, 0.1),
        )
        direct = risk(setting, method=method, sketches=2, repetitions=2, seed=5)
        for name in ("irreducible", "approx", "bias", "variance", "cross", "reducible", "total"):
            assert row[name] == getattr(direct, name)
        for name, error in direct.standard_error.items():
            assert row[f"se_{name}"] == error
        assert row["flags"] == "; ".join(flag.code for flag in direct.flags)
    assert not frame.duplicated(["M", "P"]).any()


def test_a_nested_family_is_one_task_and_shares_its_data(tmp_path: Path) -> None:
    sizes = {"M": [4, 8], "N": [50, 100], "P": [4, 16], "d": 32}
    source = tables(
        method="sampled", nested=True, sketches=1, repetitions=2, sizes=sizes, eval_lengths=["own", 8]
    )
    assert sweep(source, tmp_path).tasks == 2
    frame = load(tmp_path).frame
    assert len(frame) == 2 * 2 * 2 * 2
    schedule = load_sweep(source).schedules[0].build(L=500, gamma=0.1)
    points = [(N, P, test) for N in (50, 100) for P in (4, 16) for test in (P, 8)]
    settings = [
        Setting(teacher=PRESETS["regime2"], M=8, N=N, P=P, d=32, schedule=schedule, eval_length=test)
        for N, P, test in points
    ]
    direct = risk(settings, method="sampled", sketches=1, repetitions=2, seed=0)
    rows = frame[frame["M"] == 8].set_index(["N", "P", "eval_length"])
    for point, one in zip(points, direct, strict=True):
        assert rows.loc[point, "variance"] == one.variance


def test_a_changed_file_adds_what_is_new(tmp_path: Path) -> None:
    sweep(tables(), tmp_path)
    first = load(tmp_path).frame.set_index("key")
    sizes = {"M": [4, 8, 16], "N": 100, "P": [4], "d": 32}
    ahead = []
    summary = sweep(tables(sizes=sizes), tmp_path, announce=ahead.append, dry_run=True)
    assert (summary.tasks, summary.done, summary.skipped, ahead[0].left) == (3, 0, 2, 1)
    summary = sweep(tables(sizes=sizes), tmp_path)
    assert (summary.tasks, summary.done, summary.skipped) == (3, 1, 2)
    second = load(tmp_path).frame.set_index("key")
    assert len(second) == 5
    pd.testing.assert_frame_equal(second.loc[first.index], first)


def test_software_is_never_mixed_silently(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep(tables(), tmp_path)
    monkeypatch.setattr("seqlaw.__version__", "99.0")
    assert load(tmp_path).frame.empty  # of the code that asks there is nothing
    summary = sweep(tables(sizes={"M": 4, "N": 100, "P": 4, "d": 32}), tmp_path)
    assert (summary.done, summary.skipped, list(summary.others.values())) == (1, 0, [4])
    rows = load(tmp_path)
    assert (len(rows.frame), sum(rows.others.values())) == (1, 4)
    assert rows.frame["version"].str.startswith("99.0+").all()
    (old,) = rows.others
    assert len(load(tmp_path, software=old).frame) == 4
    both = load(tmp_path, software="all")
    assert sorted(both.frame["version"].value_counts()) == [1, 4]
    assert "version" in both.dataset.dims
    with pytest.raises(StoreError, match=r"has no rows of software 1\.2, only of"):
        load(tmp_path, software="1.2")


def test_a_product_is_a_grid_and_a_zip_a_line(tmp_path: Path) -> None:
    sweep(tables(teachers=["regime1", "regime2"], schedules=[{"R": [50, 100]}]), tmp_path / "product")
    grid = load(tmp_path / "product").dataset
    assert dict(grid.sizes) == {"alpha": 2, "M": 2, "P": 2, "L": 2}
    assert grid["theta"].dims == ("alpha",)
    assert grid["regime"].sel(alpha=1.5).item() == "I"
    assert grid["R"].values.tolist() == [50, 100]
    assert grid["eval_length"].dims == ("P",)
    row = load(tmp_path / "product").frame.iloc[5]
    cell = grid.sel(alpha=row["alpha"], M=row["M"], P=row["P"], L=row["L"])
    assert cell["bias"].item() == row["bias"]
    assert (int(grid["N"]), grid["method"].item()) == (100, "exact")

    sizes = {"M": [4, 8, 16], "N": [10, 20, 30], "P": [4, 8, 2], "d": 32}
    sweep(tables(combine="zip", sizes=sizes), tmp_path / "zip")
    line = load(tmp_path / "zip").dataset
    assert dict(line.sizes) == {"M": 3}
    assert line["P"].values.tolist() == [4, 8, 2]


def test_scattered_points_lie_along_one_dimension(tmp_path: Path) -> None:
    tasks = [{"a": i % 7, "b": (3 * i) % 11, "i": i} for i in range(20)]
    run(walk, tasks, folder=tmp_path)
    rows = load_any(tmp_path, derived=("t",))
    assert dict(rows.dataset.sizes) == {"i": 20, "t": 3}  # i names the task, a and b go along with it
    assert rows.dataset["b"].dims == ("i",)
    assert dict(to_dataset(rows.frame.drop(columns="i"), ("a", "b", "t")).sizes) == {"a": 7, "b": 11, "t": 3}
    assert dict(to_dataset(rows.frame, ("a", "t")).sizes) == {"point": 60}  # cells with several rows
    assert dict(load_any(tmp_path, software="all").dataset.sizes) == {"point": 60}


def test_no_row_is_lost_where_some_lack_a_parameter(tmp_path: Path) -> None:
    sweep(tables(schedules=[{"L": 500, "warmup": [0.1, 0.2]}, {"kind": "block", "L": 500}]), tmp_path)
    rows = load(tmp_path)
    assert dict(rows.dataset.sizes) == {"point": 12}
    np.testing.assert_array_equal(rows.dataset["bias"], rows.frame["bias"])


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_exported_rows_keep_every_bit(tmp_path: Path, suffix: str) -> None:
    sweep(tables(), tmp_path / "out")
    assert export(tmp_path / "out", tmp_path / f"rows{suffix}") == 4
    readers = {".parquet": pd.read_parquet, ".csv": lambda f: pd.read_csv(f, float_precision="round_trip")}
    back = readers[suffix](tmp_path / f"rows{suffix}")
    for name in ("approx", "bias", "variance", "total"):
        np.testing.assert_array_equal(back[name], load(tmp_path / "out").frame[name])
    assert {path.name for path in tmp_path.iterdir()} == {"out", f"rows{suffix}"}
    with pytest.raises(StoreError, match=r"rows\.xlsx must end in \.parquet or \.csv"):
        export(tmp_path / "out", tmp_path / "rows.xlsx")


def command(*arguments: object) -> int:
    with pytest.raises(SystemExit) as caught:
        main([str(argument) for argument in arguments])
    return int(caught.value.code or 0)


def test_the_commands(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, out = tmp_path / "grid.toml", tmp_path / "out"
    file.write_text(FILE_TEXT)
    assert command("sweep", file, "--out", out, "--dry-run", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["tasks"], shown["done"], shown["skipped"], shown["failed"]) == (54, 0, 0, 0)
    assert shown["estimate"].keys() == {"tasks", "left", "merged", "largest"}
    assert shown["estimate"]["largest"].startswith("exact, M = 16, N = ")
    assert not out.exists()
    assert command("sweep", file, "--out", out, "--jobs", 1) == 0
    printed = capsys.readouterr()
    assert re.match(r"54 tasks, 54 to do on 1 core; the largest: \w+, M", printed.out)
    # At P = 16 the test lengths "own" and 16 are the same: 2 teachers × 3 M × 3 schedules.
    assert "18 points of the grid are the same as others" in " ".join(printed.out.split())
    assert "54 done, 0 recorded before, 0 failed" in printed.out
    assert printed.err == ""
    assert command("sweep", file, "--out", out, "--jobs", 1, "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["tasks"], shown["done"], shown["skipped"], shown["inputs"]["seed"]) == (54, 0, 54, 3)
    assert command("export", out, "--to", tmp_path / "rows.csv", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["path"], shown["count"]) == (str(tmp_path / "rows.csv"), 54)
    assert (shown["tasks"], shown["finished"], shown["failed"], shown["resume"]) == (54, 54, 0, None)
    where = ("--where", "regime=I", "--where", "P=4", "--where", "eval_length=own", "--where", "schedule=wsd")
    for source in (out, tmp_path / "rows.csv"):
        assert command("fit", source, "--x", "M", "--y", "approx", *where, "--json") == 0
        shown = json.loads(capsys.readouterr().out)
        assert (shown["n"], shown["window"]) == (3, [4, 16])
        assert shown["low"] < shown["slope"] < shown["high"] < 0
        assert shown["flags"] == []
    assert command("fit", out, "--x", "M", "--y", "approx", "--window", "3:20", "--offset") == 0
    printed = capsys.readouterr().out
    assert "offset" in printed
    assert "warning: 54 rows at 3 values of M. If something else varies" in printed


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("sweep", "absent.toml", "--out", "o"), "FILE must exist, got absent.toml"),
        (("sweep", "bad.toml", "--out", "o"), "bad.toml: sketchs is not a field of a sweep (its fields: "),
        (("sweep", "broken.toml", "--out", "o"), "FILE must be readable TOML"),
        (("sweep", "good.toml", "--out", "o", "--engine", "mpi"), "--engine must be one of local, dask"),
        (("sweep", "good.toml", "--out", "o", "--engine", "dask"), "--scheduler goes with engine dask"),
        (("sweep", "good.toml", "--out", "o", "--jobs", "0"), "--jobs must be at least 1, got 0"),
        (("sweep", "good.toml", "--out", "foreign"), "foreign/results.sqlite is no result file"),
        (("export", "nowhere", "--to", "rows.csv"), "nowhere holds no results"),
        (("fit", "good.toml", "--x", "M", "--y", "bias"), "FILE must be a .parquet or .csv file"),
        (("fit", "rows.csv", "--x", "M", "--y", "bias"), "--y must be a column (M, N), got bias"),
        (("fit", "rows.csv", "--x", "M", "--y", "N", "--window", "3"), "--window must be A:B, got 3"),
        (
            ("fit", "rows.csv", "--x", "M", "--y", "N", "--window", "9:3"),
            "--window must be A:B with A below B",
        ),
        (
            ("fit", "rows.csv", "--x", "M", "--y", "N", "--where", "Q=1"),
            "--where must be COLUMN=VALUE with a column (M, N), got Q=1",
        ),
        (
            ("fit", "rows.csv", "--x", "M", "--y", "N", "--where", "M"),
            "--where must be COLUMN=VALUE, and =VALUE is missing (M has 1), got M",
        ),
        (
            ("fit", "rows.csv", "--x", "M", "--y", "N", "--level", "95"),
            "--level must lie in (0, 1), got 95\n",
        ),
        (("fit", "empty.csv", "--x", "M", "--y", "N"), "FILE must hold rows, got the empty empty.csv"),
        (("fit", "rows.csv", "--x", "M", "--y", "N", "--where", "M=63"), "no row has M=63 (it has 1)"),
        (("fit", "rows.csv", "--x", "M", "--y", "N"), "--x must have at least 3 points"),
        (("fit", "words.csv", "--x", "M", "--y", "N"), "--y must be a column of numbers, got N"),
        (("sweep", "good.toml", "--out", "good.toml"), "good.toml: this is a file, not a folder"),
        (
            ("sweep", "single.toml", "--out", "o"),
            "single.toml: schedules must be a list of tables, each under [[schedules]], got {'L': 9}",
        ),
    ],
)
def test_a_bad_command_is_one_line_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("good.toml").write_text(FILE_TEXT)
    Path("bad.toml").write_text(FILE_TEXT.replace("sketches", "sketchs"))
    Path("broken.toml").write_text("M = [")
    Path("rows.csv").write_text("M,N\n1,2\n")
    Path("empty.csv").write_text("\n")
    Path("words.csv").write_text("M,N\n1,x\n")
    Path("single.toml").write_text("[sizes]\nM = 4\nN = 8\nP = 8\nd = 9\n[schedules]\nL = 9\n")
    Path("foreign").mkdir()
    (Path("foreign") / FILE).write_text("something else")
    assert command(*arguments) == 2
    errors = capsys.readouterr().err
    assert errors.startswith(f"seqlaw: {message}")
    assert errors.count("\n") == 1
    assert (Path("foreign") / FILE).read_text() == "something else"
    assert not Path("o").exists()


def test_failed_tasks_are_told_and_set_the_exit_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(settings: list[Setting], **how: Any) -> Any:
        if settings[0].M == 8:
            raise ValueError("no such width")
        return whole(settings, **how)

    whole = ask.risks
    monkeypatch.setattr(ask, "risks", broken)
    file = tmp_path / "grid.toml"
    file.write_text(FILE_TEXT)
    assert command("sweep", file, "--out", tmp_path / "out", "--jobs", 1) == 1
    printed = capsys.readouterr().out
    assert "36 done, 0 recorded before, 18 failed" in printed
    assert "warning: ValueError: no such width (18 tasks) [failed]" in printed
    failures = load(tmp_path / "out").failures
    assert set(failures["M"]) == {8}
    monkeypatch.setattr(ask, "risks", whole)
    assert command("sweep", file, "--out", tmp_path / "out", "--jobs", 1) == 1  # known, not repeated
    capsys.readouterr()
    assert command("export", tmp_path / "out", "--to", tmp_path / "rows.csv") == 0
    again = f"seqlaw sweep {file} --out {tmp_path / 'out'} --retry-failed"
    assert capsys.readouterr().err == (
        f"seqlaw: 36 of 54 tasks finished, 18 failed; try them again with: {again}\n"
    )
    assert command(*again.split()[1:], "--jobs", 1, "--json") == 0
    assert len(load(tmp_path / "out").frame) == 54
    capsys.readouterr()
    assert command("export", tmp_path / "out", "--to", tmp_path / "rows.csv") == 0
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_ctrl_c_is_exit_code_130_with_the_finished_work_kept(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, out = tmp_path / "grid.toml", tmp_path / "out"
    file.write_text(FILE_TEXT.replace("sketches = 2", "sketches = 300"))
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from seqlaw.cli import main; main()"
    arguments = [sys.executable, "-c", program, "sweep", str(file), "--out", str(out), "--jobs", "1"]
    environment = {**os.environ, "PYTHONPATH": python_path(ROOT / "src")}
    with subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True) as driver:
        while not ((out / FILE).exists() and len(load(out).frame)):
            time.sleep(0.05)
        driver.send_signal(signal.SIGINT)
        _, errors = driver.communicate(timeout=120)
    assert driver.returncode == 130
    assert "Traceback" not in errors
    kept = len(load(out).frame)
    assert 0 < kept < 54
    assert errors == f"seqlaw: stopped: {kept} of 54 tasks kept; the same command goes on\n"
    resume = f"seqlaw sweep {file} --out {out}"
    left = f"seqlaw: {kept} of 54 tasks finished; resume with: {resume}\n"
    assert command("export", out, "--to", tmp_path / "rows.csv", "--json") == 0
    printed = capsys.readouterr()
    shown = json.loads(printed.out)
    assert printed.err == left
    assert [shown[name] for name in ("count", "tasks", "finished", "failed", "resume")] == [
        kept,
        54,
        kept,
        0,
        resume,
    ]
    command("fit", out, "--x", "M", "--y", "approx")
    assert capsys.readouterr().err.startswith(left)


def test_without_rows_there_is_no_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out, rows = tmp_path / "out", tmp_path / "rows.csv"
    plan = dict.fromkeys("ab", software(risk_rows))
    with Store(
        out,
        seed=0,
        software=software(risk_rows),
        function=function_path(risk_rows),
        planned=plan,
        resume="seqlaw sweep …",
    ):
        pass
    rows.write_text("of another day")
    for arguments in (("export", out, "--to", rows), ("fit", out, "--x", "M", "--y", "approx")):
        assert command(*arguments) == 2
        printed = capsys.readouterr()
        assert printed.out == ""
        assert printed.err == ("seqlaw: no rows yet: 0 of 2 tasks finished; resume with: seqlaw sweep …\n")
    assert rows.read_text() == "of another day"
    assert {path.name for path in tmp_path.iterdir()} == {"out", "rows.csv"}


def test_the_guide_shows_valid_files() -> None:
    guide = (ROOT / "docs" / "sweeps.md").read_text()
    blocks = re.findall(r"```toml\n(.*?)```", guide, flags=re.DOTALL)
    counts = [len(load_sweep(tomllib.loads(block)).tasks) for block in blocks]
    # teachers × M × N × P × schedules × test lengths
    assert counts == [2 * 4 * 1 * 2 * 2 * 1, (1 + 9) * 8 * 2 * 4 * (4 + 2) * 2]


def test_a_driver_of_other_software_says_nothing_about_the_rows(tmp_path):
    """This code finished, other code was stopped before its first task: the table is whole."""
    run(walk, [{"i": 1}], folder=tmp_path)
    with Store(tmp_path, seed=0, software="2", function="lab_tasks:walk", planned={"a": "2", "b": "2"}):
        pass
    found = load_any(tmp_path)
    assert (len(found.frame), found.standing) == (3, None)
    assert load_any(tmp_path, software="all").standing.tasks == 2


def test_a_teachers_file_lies_beside_the_sweeps(tmp_path, monkeypatch):
    """So that the command that resumes a sweep works in any folder."""
    numbers = {"alpha": 2.0, "theta": 1.5, "r": 0.3, "rho": 0.5, "c_xi": 1.0, "c_0": 1.0}
    (tmp_path / "mine.toml").write_text("\n".join(f"{name} = {x}" for name, x in numbers.items()))
    text = re.sub("teachers = .*", 'teachers = ["mine.toml", "regime1"]', FILE_TEXT)
    (tmp_path / "sweep.toml").write_text(text)
    monkeypatch.chdir("/")
    assert [t.alpha for t in load_sweep(tmp_path / "sweep.toml").teachers] == [2.0, PRESETS["regime1"].alpha]


def test_a_folder_is_a_sweeps_or_the_papers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    (tmp_path / "grid.toml").write_text("[sizes]\nM = 4\nN = 9\nP = 4\nd = 16\n[[schedules]]\nL = 50\n")
    grid = ("sweep", tmp_path / "grid.toml", "--jobs", 1, "--out")
    paper = ("reproduce", "--quick", "--panels", "a", "--method", "equivalent", "--jobs", 1, "--out")
    for first, second, words in (
        (grid, paper, "holds the results of seqlaw sweep: take another folder for seqlaw reproduce"),
        (paper, grid, "holds the results of seqlaw reproduce: take another folder for seqlaw sweep"),
    ):
        out = tmp_path / str(first[0])
        assert command(*first, out) == 0
        capsys.readouterr()
        before = (out / FILE).read_bytes()
        assert command(*second, out) == 2
        assert capsys.readouterr().err == f"seqlaw: {out} {words}\n"
        assert (out / FILE).read_bytes() == before
    assert command(*grid, tmp_path / "reproduce", "--dry-run") == 2


def test_a_damaged_record_is_named_by_the_commands_and_computed_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "grid.toml").write_text("[sizes]\nM = [4, 5]\nN = 9\nP = 4\nd = 16\n[[schedules]]\nL = 50\n")
    grid = ("sweep", tmp_path / "grid.toml", "--jobs", 1, "--out", tmp_path / "out")
    assert command(*grid) == 0
    whole = load(tmp_path / "out").frame
    file = tmp_path / "out" / FILE
    data = file.read_bytes()
    place = data.index(b'"approx":0.') + len(b'"approx":0.')
    file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
    capsys.readouterr()
    assert command("export", tmp_path / "out", "--to", tmp_path / "rows.csv") == 0
    said = capsys.readouterr()
    assert said.out.startswith("1 rows")
    assert f"seqlaw: {file} is damaged: 1 records can be read, left out: 1 damaged (number " in said.err
    with pytest.warns(UserWarning, match="is damaged: 1 records can be read"):
        assert len(load(tmp_path / "out").frame) == 1
    assert command(*grid) == 0
    said = capsys.readouterr()
    assert "1 done, 1 recorded before" in said.out
    assert "the damaged file is kept as results.sqlite.damaged-1" in said.err
    assert load(tmp_path / "out").frame.drop(columns="seconds").equals(whole.drop(columns="seconds"))


def test_a_timeout_is_an_option_of_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "grid.toml").write_text("[sizes]\nM = [4, 5]\nN = 9\nP = 4\nd = 16\n[[schedules]]\nL = 50\n")
    grid = ("sweep", tmp_path / "grid.toml", "--jobs", 1, "--out", tmp_path / "out", "--timeout")
    assert command(*grid, 0) == 2
    assert "--timeout must be positive" in capsys.readouterr().err
    assert command(*grid, 1e-9) == 1
    assert "Timeout: it took longer than 1e-09 s" in " ".join(capsys.readouterr().out.split())
    assert "--timeout 1e-09" in contents(tmp_path / "out").standing.resume
    assert command(*grid, 60, "--retry-failed") == 0
    sweep(tmp_path / "grid.toml", tmp_path / "plain")
    kept = load(tmp_path / "out").frame.drop(columns="seconds")
    assert kept.equals(load(tmp_path / "plain").frame.drop(columns="seconds"))
