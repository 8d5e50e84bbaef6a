"""Damaged files and wrong types, as an attack found them: one line and exit code 2, or an InputError.

`benchmarks/hostile.py` draws more of each; a slow test runs some of its tries.
"""

import io
import math
import os
import subprocess
import sys
import time
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import seqlaw
from conftest import ROOT, python_path
from seqlaw import Budget, InputError, Lengths, Setting
from seqlaw.cli import main
from seqlaw.fit import fit_power_law
from seqlaw.methods import trajectories
from seqlaw.methods.ask import METHODS
from seqlaw.model import stored
from seqlaw.model.checks import shown
from seqlaw.sequences import mat as load
from seqlaw.sequences.opening import open_file

SMALL = Budget(compute=1e4, tokens=1e3)
SETTING = Setting(teacher="regime2", M=4, N=50, P=4, d=32, schedule="wsd")
X = np.random.default_rng(5).standard_normal((8, 6, 3))


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def refused(capsys, *line):
    """The one line of a command that exits with 2."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")  # a warning would be a second line
        with pytest.raises(SystemExit) as stop:
            main(list(line))
    seen = capsys.readouterr()
    assert stop.value.code == 2
    assert seen.out == ""
    assert seen.err.startswith("seqlaw: ")
    assert seen.err.count("\n") == 1
    assert len(seen.err) < 1000
    return seen.err


def mat(**changed):
    """A .mat file with some bytes changed."""
    from scipy.io import savemat

    file = io.BytesIO()
    savemat(file, {"X": X[:2, :4]}, do_compression=changed.pop("packed", False))
    data = bytearray(file.getvalue())
    for at, value in changed.items():
        data[int(at.removeprefix("at"))] = value
    return bytes(data)


MATS = {
    "a type that is none": {"at128": 0},
    "compressed, it says": {"at128": 15},
    "a crash of SciPy's reader": {"at184": 0},
    "another crash": {"at185": 5},
    "a damaged stream": {"packed": True, "at140": 255, "at150": 0},
    "sizes of gigabytes": {"at191": 127},
    "no dimensions": {"at144": 0},
}


@pytest.mark.parametrize("name", MATS)
def test_a_damaged_mat_file_is_one_line(capsys, name):
    """Even where SciPy's reader crashes: it runs in a process of its own."""
    Path("x.mat").write_bytes(mat(**MATS[name]))
    assert "FILE must be" in refused(capsys, "measure", "x.mat")


def test_a_mat_file_is_what_scipy_reads():
    from scipy.io import savemat

    cells = np.empty(3, dtype=object)
    cells[:] = [X[k, : 3 + k] for k in range(3)]
    savemat("x.mat", {"X": X, "who": np.arange(8), "one": 1.0})
    savemat("cells.mat", {"held": cells})
    found, labels = open_file(Path("x.mat"), "who")
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(labels.ravel(), np.arange(8))
    found, labels = open_file(Path("cells.mat"))
    assert labels is None
    for one, other in zip(found, cells, strict=True):
        np.testing.assert_array_equal(one, other)


def test_structs_and_names_beside_the_array_of_a_mat_file_do_not_count(capsys):
    """`file` is the name of an argument of `np.savez`; a struct is written with objects."""
    from scipy.io import savemat
    from scipy.sparse import eye_array

    nested, mixed = np.empty(2, dtype=object), np.empty(3, dtype=object)
    nested[:] = [mixed, X[0]]
    mixed[:] = [X[0], {"rate": 1.0}, X[1]]
    rest = {"info": {"rate": 100.0}, "nested": nested, "mixed": mixed, "S": eye_array(3).tocsc()}
    savemat("x.mat", {"X": X, "file": np.arange(8), "allow_pickle": 1.0} | rest)
    found, labels = open_file(Path("x.mat"), "file")
    np.testing.assert_array_equal(found, X)
    np.testing.assert_array_equal(labels.ravel(), np.arange(8))
    savemat("data.mat", {"data": X, "info": {"rate": 100.0}})
    np.testing.assert_array_equal(open_file(Path("data.mat"))[0], X)
    for name, value in rest.items():  # as data they are refused, and nothing else is taken for the data
        savemat("x.mat", {"X": value, "times": X[0]})
        for command in ("measure", "forecast"):
            assert refused(capsys, command, "x.mat"), name


@pytest.mark.skipif(sys.platform != "linux", reason="a limit of memory")
def test_a_mat_file_is_read_below_a_limit_of_memory():
    Path("x.mat").write_bytes(mat())
    line = f"ulimit -v 1500000; exec {sys.executable} -P {load.__file__} x.mat x.npz"
    one = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    done = subprocess.run(["sh", "-c", line], env=one, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    np.testing.assert_array_equal(np.load("x.npz")["X"], X[:2, :4])


def test_a_mat_file_is_read_where_the_limit_cannot_be_set(monkeypatch):
    """As on macOS."""

    def fails(*_):
        raise ValueError("current limit exceeds maximum limit")

    monkeypatch.setattr(pytest.importorskip("resource"), "setrlimit", fails)
    Path("x.mat").write_bytes(mat())
    assert load._convert("x.mat", "x.npz") == 0


def test_code_beside_a_mat_file_is_not_imported(capsys):
    Path("scipy.py").write_text("open('ran', 'w')")
    Path("x.mat").write_bytes(mat())
    with pytest.raises(SystemExit) as stop:
        main(["measure", "x.mat"])
    assert stop.value.code == 0
    assert not Path("ran").exists()


HEADERS = {
    "cut": "{'descr': '<f8', 'fortran_order': False, 'shape': (8, 6, 3), ",
    "negative": "{'descr': '<f8', 'fortran_order': False, 'shape': (-8, 6, 3), }",
    "twice negative": "{'descr': '<f8', 'fortran_order': False, 'shape': (-8, -6, 3), }",
    "10^30": f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({10**30}, 6, 3), }}",
    "terabytes": f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({2**40}, 6, 3), }}",
    "brackets": "(" * 3000,
    "digits": "9" * 6000,
}


@pytest.mark.parametrize("ending", ["npy", "npz"])
@pytest.mark.parametrize("name", HEADERS)
def test_a_hostile_npy_header_is_one_line(capsys, name, ending):
    head = HEADERS[name].encode().ljust(118)
    data = b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + X.tobytes()
    if ending == "npy":
        Path("x.npy").write_bytes(data)
    else:
        with zipfile.ZipFile("x.npz", "w") as archive:
            archive.writestr("X.npy", data)
            archive.writestr("a.npy", data)
    refused(capsys, "measure", f"x.{ending}")
    refused(capsys, "risk", "--teacher", "x.npz")


def test_an_archive_that_expands_without_end_is_refused_before_it_does(capsys, monkeypatch):
    np.savez_compressed("x.npz", X=np.zeros((10, 1000, 100)))
    assert Path("x.npz").stat().st_size < 20_000
    monkeypatch.setattr(stored, "EXPANDED", 10**6)  # 8 MB stand for gigabytes
    assert "must hold compressed arrays of at most" in refused(capsys, "measure", "x.npz")


def damaged_zarr(file, old, new):
    zarr = pytest.importorskip("zarr")
    if hasattr(zarr, "create_array"):
        zarr.create_array("x.zarr", data=X, chunks=(4, 6, 3), zarr_format=2)
    else:  # zarr 2
        zarr.array(X, chunks=(4, 6, 3), store="x.zarr")
    path = Path("x.zarr") / file
    text = path.read_bytes()
    assert old in text
    path.write_bytes(text.replace(old, new, 1))


ZARR = {
    "zero chunks": (".zarray", b"4,", b"0,"),
    "negative chunks": (".zarray", b"4,", b"-4,"),
    "brackets": (".zarray", b"4,", b"[" * 3000 + b"]" * 3000 + b","),
    "chunks of petabytes": (".zarray", b"4,", b"4000000000000,"),
    "a shape of petabytes": (".zarray", b"8,", b"8000000000000,"),
    "no numbers": (".zarray", b"<f8", b"|S8"),
    "a damaged chunk": ("0.0.0", b"", b"\xff" * 16),
}


@pytest.mark.parametrize("name", ZARR)
def test_a_damaged_zarr_folder_is_one_line(capsys, name):
    damaged_zarr(*ZARR[name])
    refused(capsys, "measure", "x.zarr")
    refused(capsys, "forecast", "x.zarr", "--lengths", "2,3")


def test_a_table_with_more_cells_than_bytes_is_refused_before_it_is_made(capsys, monkeypatch):
    """A header of 20 000 columns above 20 000 lines of one number each: 3 GB of missing values."""
    Path("x.csv").write_text(",".join(map("c{}".format, range(20_000))) + "\n1" * 20_000)
    monkeypatch.setattr(pd, "read_csv", lambda *given, **named: pytest.fail("made"))
    assert "must hold at most" in refused(capsys, "fit", "x.csv", "--x", "c1", "--y", "c2")


def test_a_parquet_file_of_a_billion_rows_is_refused_before_they_are_made(capsys):
    pa = pytest.importorskip("pyarrow")
    import pyarrow.parquet as pq

    few = pa.table({"s": pa.array(np.zeros(10**6, dtype=np.int8))})
    with pq.ParquetWriter("x.parquet", few.schema) as file:
        for _ in range(150):
            file.write_table(few)
    assert Path("x.parquet").stat().st_size < 10**6
    assert "must hold at most" in refused(capsys, "forecast", "x.parquet", "--sequence", "s")


DIGITS, BRACKETS = "9" * 5000, "[" * 3000 + "]" * 3000
SWEEPS = {
    "5000 digits": ("N = 8", f"N = {DIGITS}"),
    "4000 digits": ("N = 8", f"N = {DIGITS[:4000]}"),
    "the end of a range of 4000 digits": ("N = 8", f"N = {{log = [1, {DIGITS[:4000]}], n = 3}}"),
    "brackets": ("N = 8", f"N = {BRACKETS}"),
    "a range to 1e308": ("N = 8", "N = {log = [1, 1e308], n = 5}"),
    "a range over 2e308": ("d = 9", "d = {lin = [-1e308, 1e308], n = 5}"),
    "a seed of 2^63": ("[sizes]", "seed = 9223372036854775808\n[sizes]"),
    "a billion points": ("N = 8", "N = {log = [1, 1e12], n = 1000000000}"),
    "1e10 points": ("N = 8", "N = {log = [1, 1e12], n = 100000}"),
    "too many teachers": (
        "[sizes]",
        "teachers = [{preset = 'regime2', alpha = {lin = [1, 2], n = 200001}}]\n[sizes]",
    ),
}
SWEEP = "[sizes]\nM = 4\nN = 8\nP = 8\nd = 9\n"


@pytest.mark.parametrize("name", SWEEPS)
def test_a_hostile_sweep_file_is_one_line_at_once(capsys, name):
    text = SWEEP.replace(*SWEEPS[name])
    if name == "1e10 points":
        text = text.replace("P = 8", "P = {log = [1, 1e12], n = 100000}")
    Path("x.toml").write_text(text)
    start = time.perf_counter()
    refused(capsys, "sweep", "x.toml", "--out", "o", "--dry-run")
    assert time.perf_counter() - start < 10
    assert not Path("o").exists()


@pytest.mark.parametrize(
    "value",
    [DIGITS, BRACKETS, f'"{"x" * 10**5}"', "{a = " * 300 + "1" + "}" * 300],
    ids=["digits", "brackets", "text", "tables"],
)
def test_a_hostile_teacher_file_is_one_line(capsys, value):
    Path("x.toml").write_text(f"alpha = {value}\ntheta = 2.5\nr = 0.2\nrho = 0.55\nc_xi = 0.05\nc_0 = 0.01\n")
    refused(capsys, "risk", "--teacher", "x.toml")


def test_a_file_beyond_its_limit_is_not_read(capsys):
    Path("x.toml").write_bytes(b"#" * (stored.TEXT + 1))
    assert "larger than 10 MB" in refused(capsys, "risk", "--teacher", "x.toml")


def test_a_list_of_columns_without_end_stays_one_readable_line(capsys):
    Path("x.csv").write_text(",".join(map("column{}".format, range(1000))) + "\n" + ",".join("1" * 1000))
    refused(capsys, "law", "x.csv", "--loss", "loss", "--term", "M")
    refused(capsys, "forecast", "x.csv", "--sequence", "s")


LONG = "9" * 400


@pytest.mark.parametrize(
    "line",
    [
        f"fit {LONG} --x M --y loss",
        f"measure {LONG}.npy",
        f"forecast {LONG}.csv --sequence s",
        f"risk --lengths {LONG}",
        f"risk --lengths 2:{LONG}",
        f"risk --teacher {LONG}.toml",
        f"risk --seed {LONG * 12}",
        f"plan --cost N*P*{LONG}",
        f"plan --cost {'-' * 990}N",
    ],
    ids=lambda line: line[:30],
)
def test_a_word_without_end_is_one_readable_line(capsys, line):
    refused(capsys, *line.split())


class Speechless:
    def __repr__(self):
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (10**5000, "a value of type int"),
        (Speechless(), "a value of type Speechless"),
        (np.ones((2, 2)), "array([[1., 1.], [1., 1.]])"),
        ("two  words\n", r"'two  words\n'"),
        ("x" * 500, f"'{'x' * 199}… (502 characters)"),
    ],
    ids=["digits", "speechless", "array", "text", "long"],
)
def test_a_refused_value_is_one_line_of_a_readable_length(value, text):
    assert shown(value) == text
    assert str(InputError("M", "must be", value)) == f"M must be, got {text}"


CALLS = {
    "d must be a number, got 'x'": lambda: seqlaw.plan("regime2", SMALL, d="x"),
    "d must be a number, got -inf": lambda: seqlaw.plan("regime2", SMALL, d=-math.inf),
    "d must be a whole number, got 0.5": lambda: seqlaw.plan("regime2", SMALL, d=0.5),
    "lengths must be Lengths, or text": lambda: seqlaw.plan("regime2", SMALL, lengths=5),
    "lengths must be a list, got 2": lambda: Lengths(2, (1.0,)),
    "lengths must be a list, got 1.0": lambda: Lengths((2,), 1.0),
    "phases must be True or False": lambda: Lengths((2,), (1.0,), np.ones(2)),
    "lengths must be a list of whole numbers, got 5": lambda: seqlaw.tradeoff(SETTING, 1e3, lengths=5),
    "mixture must be Lengths, or text": lambda: seqlaw.tradeoff(SETTING, 1e3, mixture=5),
    f"method must be one of {', '.join(METHODS)}": lambda: seqlaw.risk(SETTING, method=[]),
    "seed must be a whole number, got nan": lambda: seqlaw.risk(SETTING, seed=math.nan),
    "workers must be a whole number, got '2'": lambda: seqlaw.risk(SETTING, workers="2"),
    "sketches must be a whole number, got a value of type int": lambda: seqlaw.risk(
        SETTING, sketches=10**5000
    ),
    "progress must be a function, got 3": lambda: seqlaw.risk(SETTING, progress=3),
    "setting must be a Setting or a list of settings, got 2": lambda: seqlaw.risk(2),
    "setting must be a Setting or a list of settings": lambda: seqlaw.risk([1]),
    "source must be text or a path, got 2.0": lambda: seqlaw.load_teacher(2.0),
    r"source must be text or a path, got '\\x00'": lambda: seqlaw.load_teacher("\0"),
    "path must be text or a path": lambda: seqlaw.measure(X).save([]),
    "M must be a whole number": lambda: seqlaw.measure(X).advise(M="4"),
    "folder must be a path or text": lambda: seqlaw.load(None),
    "budget must be a Budget": lambda: seqlaw.plan("regime2", 2.0, one_pass=True),
    "setting must be a Setting": lambda: seqlaw.ladder("regime2", 1e3),
    "max_L must be a number": lambda: Budget(compute=1, tokens=1, max_L=pd.Series([1, 2])),
    "Explicit.sizes must be an array of real": lambda: seqlaw.Explicit(sizes=[10**400]),
    "Modes.a must be an array of real numbers": lambda: seqlaw.Modes(
        a=[[1], [1, 2]], sigma_xi=[1], sigma_0=[1]
    ),
    "epochs must be a number": lambda: Setting(
        teacher="regime2", M=4, N=5, P=4, d=9, schedule="wsd", epochs=X
    ),
    "window must be 2 numbers": lambda: fit_power_law([1, 2, 4], [1, 2, 4], window=(1, 2, 3)),
    "lengths must hold a length": lambda: seqlaw.forecast(X, lengths=np.array([])),
    "P must be lengths": lambda: SETTING.modes.averaged([[1, 2], [3]]),
    "leave_out must be a list of names, got 3": lambda: seqlaw.forecast(X, leave_out=3),
    "centre must be True or False": lambda: seqlaw.measure(X, centre="yes"),
    "S must be a real matrix": lambda: trajectories(SETTING.modes, 3, 3, S="N"),
    "key must be a list of": lambda: trajectories(SETTING.modes, 3, 3, key=True),
    "N must make at most": lambda: trajectories(SETTING.modes, 2**40, 3),
}


@pytest.mark.parametrize("words", CALLS)
def test_a_wrong_type_is_an_input_error(words):
    with pytest.raises(InputError, match=f"^{words}".replace("(", r"\(")) as found:
        CALLS[words]()
    assert "\n" not in str(found.value)


def test_what_fits_is_taken_as_before():
    """Whole numbers written as floats, NumPy's numbers, tuples, arrays, ranges, paths."""
    plain = seqlaw.tradeoff(SETTING, 1000, lengths=[2, 4], eval_lengths=(4,))
    for lengths in (np.array([2, 4]), range(2, 5, 2), (2.0, np.int64(4)), pd.Series([2, 4])):
        assert seqlaw.tradeoff(SETTING, np.float64(1e3), lengths=lengths, eval_lengths=(4,)) == plain
    assert seqlaw.risk(SETTING, method="sampled", sketches=2.0, seed=np.int64(3)) == seqlaw.risk(
        SETTING, method="sampled", sketches=2, seed=3
    )
    endless = Budget(compute=1e4, tokens=1e3, max_M=np.float64(math.inf), max_N=np.int64(9), max_P=9.0)
    assert endless == Budget(compute=1e4, tokens=1e3, max_N=9, max_P=9)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "count"), [("files", 60), ("commands", 60), ("calls", 200)])
def test_some_tries_of_the_campaign(kind, count):
    script = ROOT / "benchmarks" / "hostile.py"
    done = subprocess.run(
        [sys.executable, script, kind, str(count), "11"],
        env=os.environ | {"PYTHONPATH": python_path(Path(seqlaw.__file__).parent.parent)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert f"{kind}: {count} tries, 0 failed" in done.stdout, done.stdout
