"""Damaged files, odd command lines and odd calls: an answer or a one-line refusal, and nothing else.

`python benchmarks/hostile.py files 1000` damages files of every kind that seqlaw reads; `commands 1000` and
`calls 2000` draw lines and Python calls. A third number is the seed. Each try runs in a process of its own
(fork: not on Windows), with its time and memory measured; what failed is listed, with the worst of both.
"""

import contextlib
import io
import json
import math
import os
import resource
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

SECONDS, MEGABYTES = 25, 2000
Random = np.random.Generator
Try = tuple[str, Callable[[], None]]
"""What is tried, for people, and how."""


def attempt(call: Callable[[], None], *, line: bool) -> tuple[str, float, float]:
    """How a call ended ("" as it should), its seconds and its megabytes with those of its children."""
    reading, writing = os.pipe()
    start = time.perf_counter()
    if (child := os.fork()) == 0:
        signal.alarm(4 * SECONDS)
        resource.setrlimit(resource.RLIMIT_AS, (2**33, 2**33))  # the machine outlives a failure
        out, err = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            problem = _problem(call, out, err, line=line)
        peak = max(
            resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        )
        os.write(writing, json.dumps([problem[-3000:], peak / 1024]).encode())
        os._exit(0)
    os.close(writing)
    with open(reading, "rb") as pipe:
        told = pipe.read()
    _, status, used = os.wait4(child, 0)
    seconds = time.perf_counter() - start
    problem, megabytes = (
        json.loads(told) if told else (f"killed by signal {status & 127}", used.ru_maxrss / 1024)
    )
    if seconds > SECONDS:
        problem = problem or f"took {seconds:.0f} s"
    if megabytes > MEGABYTES:
        problem = problem or f"took {megabytes:.0f} MB"
    return problem, seconds, megabytes


def _problem(call: Callable[[], None], out: io.StringIO, err: io.StringIO, *, line: bool) -> str:
    from seqlaw import SeqlawError

    try:
        call()
    except SystemExit as stop:
        text = err.getvalue()
        if stop.code in (0, None):
            return ""
        if stop.code != 2:
            return f"exit code {stop.code}: {text}"
        good = text.startswith("seqlaw: ") and text.count("\n") == 1 and len(text) < 2000
        return "" if good and not out.getvalue() else f"not one line: {text[:1000]}"
    except SeqlawError as error:
        return (
            f"raised from the command line: {error!r}"
            if line
            else ""
            if "\n" not in str(error)
            else f"lines: {error}"
        )
    except BaseException:
        return traceback.format_exc()
    return ""


# Files


def _write(folder: Path) -> dict[str, list[list[str]]]:
    """A good file of every kind, and the commands that read it (FILE stands for it)."""
    import pandas as pd
    import zarr
    from scipy.io import savemat

    rng = np.random.default_rng(7)
    X = np.cumsum(rng.standard_normal((40, 12, 3)), axis=1) / 3
    sequences = [*[["measure", "FILE"]] * 3, ["forecast", "FILE", "--lengths", "2,4"]]
    np.save(folder / "x.npy", X)
    np.savez(folder / "x.npz", X=X, who=np.arange(40))
    np.savez_compressed(folder / "packed.npz", X=X)
    savemat(folder / "x.mat", {"X": X}, do_compression=True)
    savemat(folder / "plain.mat", {"X": X, "n": 3})
    cells = np.empty(12, dtype=object)
    cells[:] = [X[k, : 4 + k % 8] for k in range(12)]
    savemat(folder / "cells.mat", {"X": cells})
    zarr.create_array(str(folder / "x.zarr"), data=X, chunks=(10, 12, 3))
    group = zarr.create_group(str(folder / "group.zarr"), zarr_format=2)
    group.create_array("X", data=X, chunks=(10, 12, 3))
    modes = {"a": 0.5 / np.arange(1.0, 9), "sigma_xi": 0.1 / np.arange(1.0, 9), "sigma_0": np.ones(8)}
    np.savez(folder / "teacher.npz", **modes)
    rows = pd.DataFrame(X.reshape(-1, 3), columns=list("abc"))
    rows.insert(0, "t", np.tile(np.arange(12), 40))
    rows.insert(0, "s", np.repeat(np.arange(40), 12))
    runs = pd.DataFrame([(m, t) for m in (10, 30, 90, 270) for t in (100, 400, 1600)], columns=["M", "T"])
    runs["loss"] = 1 + runs.M**-0.5 + runs["T"] ** -0.4 + 0.001 * rng.standard_normal(len(runs))
    for name, table in (("table", rows), ("runs", runs)):
        table.to_csv(folder / f"{name}.csv", index=False)
        table.to_parquet(folder / f"{name}.parquet")
    lines = {"x": X.tolist(), "held": [{"id": k, "x": x} for k, x in enumerate(X.tolist())]}
    for name, values in (lines | {"rows": rows.to_dict("records")}).items():
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in values))
    (folder / "lengths.csv").write_text("length,count\n" + "".join(f"{n},{900 - n}\n" for n in range(2, 200)))
    (folder / "teacher.toml").write_text(
        "alpha = 1.5\ntheta = 2.5\nr = 0.2\nrho = 0.55\nc_xi = 0.05\nc_0 = 0.01\n"
        "[intervals]\nalpha = [1.4, 1.6]\n"
    )
    (folder / "sweep.toml").write_text(
        'teachers = ["regime1", {preset = "regime2", alpha = {lin = [1.7, 1.9], n = 3}}]\n'
        'method = "equivalent"\n'
        "seed = 3\neval_lengths = [16]\n[sizes]\nM = [4, 8]\nN = {log = [10, 1000], n = 3}\nP = 4\nd = 64\n"
        '[[schedules]]\nkind = "wsd"\nL = [1000]\ngamma = 0.1\n'
    )
    risk = ["risk", "-M", "4", "--teacher", "FILE"]
    columns = ["--sequence", "s", "--time", "t"]
    tables = [["measure", "FILE", *columns], ["forecast", "FILE", *columns, "--lengths", "2,4"]]
    law = ["law", "FILE", "--loss", "loss", "--term", "M", "--bootstraps", "20"]
    fit = ["fit", "FILE", "--x", "M", "--y", "loss"]
    arrays = ("x.npy", "x.npz", "packed.npz", "x.mat", "plain.mat", "cells.mat", "x.zarr", "group.zarr")
    arrays += ("x.jsonl", "held.jsonl")
    commands = {
        **dict.fromkeys(arrays, sequences),
        **dict.fromkeys(("table.csv", "table.parquet", "rows.jsonl"), tables),
        **{name: [law, fit, fit, fit] for name in ("runs.csv", "runs.parquet")},
        "teacher.npz": [risk],
        "teacher.toml": [risk],
        "lengths.csv": [["risk", "-M", "4", "-N", "1e6", "--lengths", "FILE"]],
        "sweep.toml": [["sweep", "FILE", "--out", "out", "--dry-run"]],
    }
    return commands


HEADERS = (
    "{'descr': '<f8', 'fortran_order': False, 'shape': SHAPE, }",
    "{'descr': 'KIND', 'fortran_order': False, 'shape': (40, 12, 3), }",
    "{'descr': '<f8', 'fortran_order': False, 'shape': (40, 12, 3), ",
    "{'descr': '<f8', 'shape': (40, 12, 3)}",
    "(" * 3000,
    "'" + "a" * 50,
    "[" * 90 + "]" * 90,
    "9" * 6000,
)
SHAPES = (
    "(-1, 12, 3)",
    "(10**30,)",
    f"({10**30}, 12, 3)",
    "(2**62, 2, 3)",
    "(0, 0, 0)",
    f"({2**40}, 1024, 3)",
    "()",
    "(1.5, 2, 3)",
)
KINDS = ("O", "<U99999999", "V0", "<M8[s]", "<c16", "<f2", "|b1", "f8,f8", "x", "<f16")
VALUES = (
    "9" * 5000, "-1", "0", "1e308", "-1e308", "nan", "inf", "[]", "{}", '""', "true",
    "9223372036854775808", "1000000000",
    "[" * 3000 + "]" * 3000, "{a = " * 500 + "1" + "}" * 500, '"mixed"', "1979-05-27",
    "{log = [1, 1e308], n = 5}",
    "{lin = [-1e308, 1e308], n = 3}", "{log = [1, 10], n = 1000000000}", "{log = [1, 1e9], n = 99999}",
    "[1, 1e400]",
    "{log = [1e-320, 1], n = 4}", "[0.1, [2]]", '"' + "x" * 100000 + '"', "\x00", "é", "1e-400",
)  # fmt: skip


def _damage(good: bytes, name: str, rng: Random) -> bytes:
    """Some bytes changed, or the end lost, or a header or a value that a stranger wrote."""
    how = rng.integers(6)
    if name.endswith(".npy") and how < 3:
        text = (
            HEADERS[rng.integers(len(HEADERS))]
            .replace("SHAPE", str(rng.choice(SHAPES)))
            .replace("KIND", str(rng.choice(KINDS)))
        )
        head = text.encode()[:65000].ljust(118)
        return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + good[128:]
    if name.endswith((".toml", ".json", ".zarray", ".zgroup", ".zattrs")) and how < 4:
        lines = good.decode().split("\n")
        places = [k for k, one in enumerate(lines) if "=" in one or ":" in one]
        if places:
            k, mark = int(rng.choice(places)), ":" if name.endswith((".json", ".zarray", ".zgroup")) else "="
            key, _, old = lines[k].partition(mark)
            comma = "," if old.rstrip().endswith(",") else ""
            lines[k] = f"{key}{mark} {VALUES[rng.integers(len(VALUES))]}{comma}"
            return "\n".join(lines).encode()
    if name.endswith((".csv", ".jsonl")) and how < 3:
        lines = good.decode().split("\n")
        cells = lines[int(rng.integers(len(lines) - 1))].split(",")
        k = int(rng.integers(len(lines) - 1))
        cells[int(rng.integers(len(cells)))] = VALUES[rng.integers(len(VALUES))]
        lines[k] = ",".join(cells)
        return "\n".join(lines).encode()
    if how == 3:
        return good[: rng.integers(len(good))]
    if how == 4:
        return good + rng.bytes(int(rng.integers(1, 200)))
    data = bytearray(good)
    for _ in range(int(rng.choice([1, 2, 5, 20]))):
        head = min(len(data), 400)  # where what a reader believes stands
        at = rng.integers(head) if rng.random() < 0.6 else rng.integers(len(data))
        data[at] = data[at] ^ (1 << rng.integers(8)) if rng.random() < 0.6 else rng.integers(256)
    return bytes(data)


def files(count: int, rng: Random) -> Iterator[Try]:
    """Commands on a damaged file each."""
    import shutil

    from seqlaw.cli import main

    folder = Path("good")
    folder.mkdir()
    commands = _write(folder)
    for name, lines in commands.items():  # what they import, once for all
        for line in lines[-1:] if (folder / name).is_file() else ():
            with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
                main([str(folder / name) if word == "FILE" else word for word in line])
    for k in range(count):
        name = list(commands)[k % len(commands)]
        there = Path(f"tried-{k}{Path(name).suffix}")
        if (folder / name).is_dir():
            shutil.copytree(folder / name, there)
            inner = [one for one in there.rglob("*") if one.is_file()]
            meta = [one for one in inner if one.suffix == ".json" or one.name.startswith(".z")]
            damaged = meta if rng.random() < 0.7 else inner
            path = damaged[rng.integers(len(damaged))]
        else:
            path = Path(shutil.copy(folder / name, there))
        path.write_bytes(_damage(path.read_bytes(), path.name, rng))
        line = commands[name][rng.integers(len(commands[name]))]
        words = [str(there) if word == "FILE" else word for word in line]
        yield f"{name} {' '.join(words)}", lambda words=words: main(words)
        shutil.rmtree(there) if there.is_dir() else there.unlink()


# Command lines


def commands(count: int, rng: Random) -> Iterator[Try]:
    """Every command with a few of its options, each with a sensible value or an odd one."""
    from seqlaw.cli import main
    from seqlaw.cli.app import COMMANDS, command_of

    _write(Path())
    # One serves for ever, one takes minutes at its least.
    known = {name: command_of(name) for name in COMMANDS if name not in ("explore", "reproduce")}
    odd = (
        "", "x", "-1", "0", "nan", "inf", "-inf", "1e308", "1e400", "9" * 400, "9" * 5000, "1:2",
        "2:1,4:0", "a,b", ",", ":",
        "--", "é", "/", ".", "none.csv", "x" * 300, "-" * 500 + "1", "(" * 200, "1e-320", "0x10", "None",
        "true", "[]", "2:nan",
        "18446744073709551616", "\t", "x.npy", "teacher.toml", "table.csv", "mymodule:X", "os:system",
        "N*P*" + "9" * 400,
    )  # fmt: skip
    fair = (
        "1",
        "2",
        "3",
        "8",
        "0.5",
        "0.1",
        "16",
        "100",
        "1000",
        "2,4",
        "2:0.5,4:0.5",
        "wsd",
        "constant",
        "regime1",
        "s",
        "M",
        "loss",
        "T",
    )
    small = {
        "-M": "4",
        "-d": "32",
        "-N": "50",
        "-P": "4",
        "--points": "3",
        "--sketches": "1",
        "--repetitions": "1",
        "--tokens": "1e4",
        "--compute": "1e6",
        "--jobs": "1",
        "--bootstraps": "20",
        "--along": "N",
        "--from": "10",
        "--to": "100",
        "--loss": "loss",
        "--term": "M",
        "--x": "M",
        "--y": "loss",
        "--out": "out",
    }
    source = {
        "law": "runs.csv",
        "fit": "runs.csv",
        "measure": "x.npy",
        "forecast": "x.npy",
        "sweep": "sweep.toml",
        "export": "out",
    }
    for _ in range(count):
        name = str(rng.choice(sorted(known)))
        parameters = [
            one
            for one in known[name].params
            if one.param_type_name == "option" and one.name not in ("help", "engine", "scheduler")
        ]
        have = {opt for one in parameters for opt in one.opts}
        line = [name, *([source[name]] if name in source else [])]
        for option, value in small.items():
            line += [option, value] if option in have else []
        line += ["--dry-run"] if name == "sweep" else []
        for one in rng.choice(
            np.array(parameters, dtype=object),
            size=min(int(rng.integers(0, 5)), len(parameters)),
            replace=False,
        ):
            given = str(rng.choice(odd if rng.random() < 0.6 else fair))
            line += [one.opts[0]] if one.is_flag else [one.opts[0], given]
        if name in source and rng.random() < 0.15:
            line[1] = str(rng.choice(odd))
        shown = " ".join(word if len(word) < 60 else f"{word[:10]}…({len(word)})" for word in line)
        yield shown, lambda line=line: main(line)


# Python calls


class _Odd:
    """An object that answers nothing."""

    def __repr__(self) -> str:
        raise RuntimeError("no words")


def _odd_values() -> list[Any]:
    import pandas as pd

    return [
        None, True, False, 0, 1, -1, 2, 2.5, -0.0, math.nan, math.inf, -math.inf, 1e308, 1e-320, 10**400,
        10**5000, -(10**30), 2**64,
        "", "x", "regime2", "wsd", "N", "\0", "x" * 300, "nothing.npy", "/", "2:0.5,4:0.5", "1/0",
        "9" * 400, b"x", 1j, ..., int, _Odd(), object(),
        [], [1], ["x"], [None], [[1, 2], [3]], [math.nan], [10**400], (), (2, 4), (1, "x"), {}, {"a": 1},
        {1: 2}, {2, 4}, range(3), iter([2, 4]),
        np.array([]), np.array(3.0), np.array([1, 2]), np.ones((2, 3)), np.ones((4, 5, 3)),
        np.array(["x"]), np.array([1j]), np.full(3, np.nan), np.array([{}, 1], dtype=object),
        np.float64(2.0), np.int64(4), np.bool_(True), np.datetime64("2020-01-01"), pd.DataFrame({"x": [1,
        2]}), pd.Series([1, 2]), Path("nothing"), lambda *given: None,
    ]  # fmt: skip


def _targets() -> dict[str, tuple[Callable[..., Any], dict[str, Any]]]:
    """Public calls with arguments that make an answer quickly."""
    import pandas as pd

    import seqlaw as s
    from seqlaw.answers.advice import advise
    from seqlaw.answers.ladder import ladder_curve
    from seqlaw.files import load_uncertain
    from seqlaw.fit import fit_power_law
    from seqlaw.methods import trajectories
    from seqlaw.sweeping.run import export

    setting = s.Setting(teacher="regime2", M=4, N=50, P=4, d=32, schedule=s.WSD(gamma=0.1, L=100))
    budget, X = s.Budget(compute=1e4, tokens=1e3), np.random.default_rng(1).standard_normal((30, 8, 3))
    runs = pd.read_csv("runs.csv")
    law = {"alpha": 1.5, "theta": 2.5, "r": 0.2, "rho": 0.55, "c_xi": 0.05, "c_0": 0.01}
    teacher, modes, wsd = s.Teacher(**law), s.Teacher(**law).modes(8), s.WSD(gamma=0.1, L=100)
    tables = {"sizes": {"M": 4, "N": 8, "P": 4, "d": 16}}
    how = {
        "method": "equivalent",
        "sketches": 1,
        "repetitions": 1,
        "seed": 0,
        "workers": 1,
        "device": None,
        "progress": None,
    }
    found = s.measure(X)
    return {
        "Teacher": (s.Teacher, law),
        "Modes": (s.Modes, {"a": [0.5], "sigma_xi": [1.0], "sigma_0": [1.0], "name": ""}),
        "Lengths": (s.Lengths, {"lengths": (2, 4), "shares": (0.5, 0.5), "phases": False}),
        "Budget": (s.Budget, {"compute": 1e4, "tokens": 1e3, "max_M": 8, "max_N": 50, "max_P": 9,
            "max_L": 100, "min_P": 2, "cost": "N*P*L*M**2"}),
        "Uncertain": (s.Uncertain, {"teacher": "regime2", "intervals": {"alpha": (1.7, 1.9)}}),
        "Setting": (s.Setting, {"teacher": "regime2", "M": 4, "N": 50, "P": 4, "schedule": "wsd", "d": 32,
            "eval_length": 4, "batch": None, "epochs": 1, "safeguard": True, "lengths": None}),
        "Setting of a batch": (s.Setting, {"teacher": "regime2", "M": 4, "P": 4, "schedule": "wsd",
            "d": 32, "batch": 3, "epochs": 1, "safeguard": False}),
        **{kind.__name__: (kind, {"gamma": 0.1, "L": 100}) for kind in (s.Constant, s.Cosine, s.BlockDecay)},
        "WSD": (s.WSD, {"gamma": 0.1, "L": 100, "warmup": 0.1, "decay": 0.2}),
        "Explicit": (s.Explicit, {"sizes": [0.1, 0.1]}),
        "WSD.from_horizon": (s.WSD.from_horizon, {"R": 10, "gamma": 0.1, "warmup": 0.1, "decay": 0.2}),
        "Constant.from_horizon": (s.Constant.from_horizon, {"R": 10, "gamma": 0.1}),
        "with_horizon": (wsd.with_horizon, {"R": 10}),
        "with_steps": (wsd.with_steps, {"L": 10}),
        "scaled": (wsd.scaled, {"gamma": 0.2}),
        "Teacher.modes": (teacher.modes, {"d": 5}),
        "averaged": (modes.averaged, {"P": 5}),
        "draws": (s.Uncertain(teacher="regime2", intervals={"alpha": (1.7, 1.9)}).draws, {"n": 3, "seed": 0}),
        "counted": (s.Lengths((2, 4), (0.5, 0.5)).counted, {"N": 30}),
        "risk": (s.risk, {"setting": setting, **how}),
        "risk sampled": (s.risk, {"setting": setting, **how, "method": "sampled"}),
        "risk of a list": (s.risk, {"setting": [setting], **how}),
        "curve": (s.curve, {"setting": setting, "along": "N", "values": [40, 50], **how, "sampled": None,
            "tokens": None, "tune": False}),
        "rates": (s.rates, {"setting": setting}),
        "spectrum": (s.spectrum, {"setting": setting, "points": 4, "last": 20}),
        "plan": (s.plan, {"teacher": "regime2", "budget": budget, "schedule": "wsd", "d": 32,
            "eval_length": 4, "confirm": False, "draws": 2, "seed": 0, "workers": 1, "progress": None,
            "lengths": None, "one_pass": False, "flops": False}),
        "plan in one pass": (s.plan, {"teacher": "regime2", "budget": budget, "schedule": "wsd",
            "d": 32, "eval_length": 4, "one_pass": True}),
        "tradeoff": (s.tradeoff, {"setting": setting, "tokens": 1e3, "lengths": [2, 4], "eval_lengths": (4,
            ), "compute": None, "cost": "N*P*L*M**2", "tune": False, "mixture": None}),
        "advise": (advise, {"source": "regime2", "tokens": 1e3, "compute": None, "eval_length": 4,
            "M": 4, "schedule": "wsd", "d": 32}),
        "advise of a measurement": (advise, {"source": found, "tokens": 1e3}),
        "ladder": (s.ladder, {"setting": setting, "tokens": 1e3, "candidates": (2, 4), "most_phases": 2,
            "sketches": 1, "seed": 0}),
        "ladder_curve": (ladder_curve, {"setting": setting, "tokens": 1e3, "candidates": (2, 4),
            "shares": (0.5,), "sketches": 1, "seed": 0}),
        "fit_law": (s.fit_law, {"frame": runs, "loss": "loss", "terms": ["M", "T"], "preset": None,
            "without": None, "tested_at": None, "groups": None, "cost": "M*T", "budget": 1e5,
            "predict": None, "bootstraps": 20, "level": 0.9, "seed": 0}),
        "fit_power_law": (fit_power_law, {"x": [1, 2, 4, 8], "y": [1, 0.5, 0.26, 0.12], "window": None,
            "level": 0.95, "offset": False}),
        "forecast": (s.forecast, {"X": X, "tokens": 200, "lengths": [2, 4], "eval_length": 4,
            "student": "all", "M": None, "steps": 50, "target_loss": None, "sequence": None, "time": None,
            "groups": None, "window": None, "leave_out": (), "test": None, "standardise": False,
            "drop_missing": False, "seed": 0, "progress": None}),
        "forecast of a table": (s.forecast, {"X": pd.read_csv("table.csv"), "lengths": [2, 4],
            "sequence": "s", "time": "t", "groups": None, "leave_out": ()}),
        "measure": (s.measure, {"X": X, "centre": True, "seed": 0}),
        "load_teacher": (s.load_teacher, {"source": "teacher.toml"}),
        "load_uncertain": (load_uncertain, {"source": "teacher.toml"}),
        "save_law": (found.save, {"path": "saved.toml", "law": True, "source": "x"}),
        "save_teacher": (found.save, {"path": "saved.npz", "source": "x"}),
        "trajectories": (trajectories, {"modes": modes, "N": 3, "P": 4, "S": None, "seed": 0, "key": ()}),
        "sweep": (s.sweep, {"source": tables, "out": "swept", "jobs": 1, "dry_run": True,
            "retry_failed": False, "resume": "", "progress": False}),
        "sweep of sizes": (lambda **sizes: s.sweep({"sizes": sizes}, "swept", dry_run=True), tables["sizes"]),
        "load": (s.load, {"folder": "swept", "software": None}),
        "export": (export, {"folder": "swept", "to": "rows.csv", "software": None}),
        "reproduce": (s.reproduce, {"out": "paper", "method": "nothing", "panels": ["nothing"],
            "quick": True, "replicate": 1, "overlay": (), "seed": 0, "jobs": 1, "device": None}),
    }  # fmt: skip


def calls(count: int, rng: Random) -> Iterator[Try]:
    """Public calls with one argument, sometimes two, of any type at all."""
    _write(Path())
    targets = _targets()
    for k in range(count):
        name = list(targets)[k % len(targets)]
        function, given = targets[name]
        values = _odd_values()
        odd = {
            str(one): values[rng.integers(len(values))]
            for one in rng.choice(
                list(given), size=1 + int(rng.random() < 0.15) * (len(given) > 1), replace=False
            )
        }
        shown = ", ".join(f"{key}={_short(value)}" for key, value in odd.items())
        yield f"{name}({shown})", lambda function=function, arguments=given | odd: function(**arguments)


def _short(value: Any) -> str:
    try:
        return " ".join(repr(value).split())[:60]
    except (RuntimeError, ValueError):
        return type(value).__name__


def main(kind: str, count: int, seed: int) -> None:

    failed, slowest, largest, kinds = 0, (0.0, ""), (0.0, ""), Counter[str]()
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for words, call in {"files": files, "commands": commands, "calls": calls}[kind](
            count, np.random.default_rng(seed)
        ):
            problem, seconds, megabytes = attempt(call, line=kind != "calls")
            slowest, largest = max(slowest, (seconds, words)), max(largest, (megabytes, words))
            if problem:
                failed += 1
                kinds[problem.strip().splitlines()[-1][:60]] += 1
                print(f"--- {words}\n{problem}", flush=True)
    for last, times in kinds.most_common():
        print(f"{times:6d}  {last}")
    print(f"{kind}: {count} tries, {failed} failed")
    print(f"slowest {slowest[0]:.1f} s: {slowest[1]}\nlargest {largest[0]:.0f} MB: {largest[1]}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 0)
