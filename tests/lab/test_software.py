"""Which code made a number: no changed formula may return an old one, whoever changed it and wherever."""

from __future__ import annotations

import ast
import functools
import os
import shutil
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

import lab_tasks
import seqlaw
from conftest import ROOT, python_path
from seqlaw.cli import main
from seqlaw.lab import software as lab_software
from seqlaw.lab.errors import StoreError
from seqlaw.lab.run import run
from seqlaw.lab.software import NUMERIC, fingerprint, named_modules, software
from seqlaw.lab.table import load as load_any
from seqlaw.model.schedule import SCHEDULES
from seqlaw.sweeping.run import load, sweep
from seqlaw.sweeping.task import risk_rows

GRID = """
[sizes]
M = [4, 8]
N = 100
P = 4
d = 32
[[schedules]]
{schedule}
"""
LINEAR = """
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqlaw import Schedule
from seqlaw.model.power_sums import ramp_power_sums, sum_logs


@dataclass(frozen=True, kw_only=True)
class Linear(Schedule):
    gamma: float
    L: int
    share: float = 1.0
    name: ClassVar[str] = "linear"

    def at(self, t):
        return self.gamma * self.share * (self.L - np.asarray(t) + 1) / self.L

    @property
    def total(self):
        return self.gamma * self.share * (self.L + 1) / 2

    def log_psi(self, s):
        return sum_logs(lambda n: ramp_power_sums(self.L, n), self.gamma * self.share * s)
"""


def call(source: Path, *arguments: object, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """A command of the package under `source`, in a process of its own."""
    line = [sys.executable, "-c", "import sys; from seqlaw.cli import main; main(sys.argv[1:])"]
    return subprocess.run(
        [*line, *map(str, arguments)],
        env={**os.environ, "PYTHONPATH": python_path(source), "COLUMNS": "100", **environment},
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The package somewhere else, to be edited."""
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "seqlaw", tmp_path / "copy" / "seqlaw", ignore=ignored)
    return tmp_path / "copy"


@pytest.mark.slow
def test_a_changed_formula_gives_the_new_number_and_a_sentence_about_the_old_ones(
    tmp_path: Path, copy: Path
) -> None:
    (tmp_path / "grid.toml").write_text(GRID.format(schedule="L = 500"))
    command = ("sweep", "grid.toml", "--out", "out", "--jobs", 1)

    def approx() -> list[float]:
        made = call(copy, "export", "out", "--to", "rows.csv", cwd=tmp_path)
        assert made.returncode == 0, made.stderr
        import pandas as pd

        return pd.read_csv(tmp_path / "rows.csv")["approx"].tolist()

    assert "2 done, 0 recorded before" in call(copy, *command, cwd=tmp_path).stdout
    before = approx()
    again = call(copy, *command, cwd=tmp_path).stdout
    assert "0 done, 2 recorded before" in again
    assert "recorded by other code" not in again

    file = copy / "seqlaw" / "methods" / "frozen.py"
    text = file.read_text()
    changed = text.replace('"approx": solved.approx,', '"approx": 7 * solved.approx,')
    assert changed != text
    file.write_text(changed)
    refused = call(copy, "export", "out", "--to", "rows.csv", cwd=tmp_path)
    assert refused.returncode == 2
    old = refused.stderr.partition("--software ")[2].split()[0]
    assert refused.stderr == (
        f"seqlaw: no rows of this code: 2 tasks of {old} are left out; --software {old} takes those, "
        "--software all takes all\n"
    )
    printed = " ".join(call(copy, *command, cwd=tmp_path).stdout.split())
    assert "2 done, 0 recorded before" in printed
    assert f"2 tasks recorded by other code ({old}) are kept in the folder and not used here" in printed
    assert approx() == pytest.approx([7 * value for value in before])
    assert call(copy, "export", "out", "--to", "rows.csv", "--software", old, cwd=tmp_path).returncode == 0
    fit = ("fit", "out", "--x", "M", "--y", "approx", "--json")
    lines = call(copy, *fit, cwd=tmp_path).stderr.splitlines()
    assert lines[0].startswith(f"seqlaw: 2 tasks of {old} are left out; --software {old} takes those")
    assert lines[1].startswith("seqlaw: --x must have at least 3 points")  # of its own two

    # What computes no number is no part of it: the old rows come back with the old formula, page or no page.
    file.write_text(text)
    page = copy / "seqlaw" / "web" / "app.py"
    page.write_text(page.read_text() + "\n# another comment\n")
    assert "0 done, 2 recorded before" in call(copy, *command, cwd=tmp_path).stdout


def test_wheel_checkout_and_copy_have_one_fingerprint(tmp_path: Path, copy: Path) -> None:
    line = "from seqlaw.lab.software import software; from seqlaw.sweeping.task import risk_rows as f\n"
    line += "print(software(f))"

    def of(path: Path) -> str:
        environment = {**os.environ, "PYTHONPATH": python_path(path)}
        found = subprocess.run(
            [sys.executable, "-c", line], env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        return found.stdout.strip()

    for file in (copy / "seqlaw").rglob("*.py"):  # as a checkout on Windows may have them
        file.write_bytes(file.read_bytes().replace(b"\n", b"\r\n"))
    archive = shutil.make_archive(str(tmp_path / "seqlaw"), "zip", ROOT / "src")  # what a wheel is
    own = software(risk_rows)
    assert own.startswith(f"{seqlaw.__version__}+")
    assert [of(ROOT / "src"), of(copy), of(Path(archive))] == [own] * 3


def test_the_numbers_of_seqlaws_tasks_come_from_the_numeric_source_alone(tmp_path: Path) -> None:
    """What the task modules import, at once and later, lies in what is hashed."""
    rooms = tuple(part.removesuffix(".py").replace("/", ".") for part in NUMERIC)
    imported = set[str]()
    for part in NUMERIC:
        for _, text in lab_software._sources(ROOT / "src" / "seqlaw" / part, part):
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("seqlaw."):
                    imported.add(str(node.module).removeprefix("seqlaw."))
    assert len(imported) > 30
    assert [name for name in imported if not name.startswith(rooms)] == []


@pytest.mark.slow
def test_code_that_a_task_names_is_part_of_its_software(tmp_path: Path) -> None:
    """A schedule of the user's beside the sweep's file: its edits count, and tasks without it stay."""
    (tmp_path / "mine_1.py").write_text(LINEAR)
    own = 'kind = "mine_1:Linear"\nL = 500\nshape = {share = [0.5, 1.0]}\n[[schedules]]\nL = 500'
    (tmp_path / "grid.toml").write_text(GRID.format(schedule=own))
    source, command = ROOT / "src", ("sweep", tmp_path / "grid.toml", "--out", tmp_path / "out")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    first = call(source, *command, "--jobs", 2, cwd=elsewhere)  # workers find the module too
    assert "6 done" in first.stdout, first.stderr
    assert "0 done, 6 recorded before" in call(source, *command, cwd=elsewhere).stdout
    (tmp_path / "mine_1.py").write_text(LINEAR.replace("/ 2", "/ 2.0"))
    after = " ".join(call(source, *command, "--jobs", 1, cwd=elsewhere).stdout.split())
    assert "4 done, 2 recorded before" in after
    assert "4 tasks recorded by other code" in after
    made = call(
        source,
        *("export", tmp_path / "out", "--to", tmp_path / "rows.csv"),
        cwd=elsewhere,
        PYTHONPATH=python_path(source, tmp_path),
    )
    assert made.stdout.startswith("6 rows"), made.stderr


def test_a_users_schedule_works_in_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine_2.py").write_text(LINEAR + "\nnothing = 3\n")
    monkeypatch.chdir(tmp_path)
    run_here = ("-M", "16", "-d", "64", "-L", "500", "--json")
    with pytest.raises(SystemExit) as stop:
        main(["risk", "--schedule", "mine_2:Linear", *run_here])
    assert stop.value.code == 0
    assert '"kind": "mine_2:Linear"' in capsys.readouterr().out
    for path, words in (
        ("mine_2:Cubic", "--schedule must name something that mine_2 has, got mine_2:Cubic"),
        ("mine_3:Linear", "--schedule must name a module that can be imported (No module named 'mine_3')"),
        ("mine_2:nothing", "--schedule must name a subclass of seqlaw.Schedule that is a dataclass"),
        ("no-such", f"--schedule must be one of {', '.join(SCHEDULES)} or an import path like mymodule:"),
    ):
        with pytest.raises(SystemExit) as stop:
            main(["risk", "--schedule", path, *run_here])
        assert stop.value.code == 2
        assert capsys.readouterr().err.startswith(f"seqlaw: {words}")


def test_what_a_task_names() -> None:
    task = {
        "method": "exact",
        "note": "c:d",
        "points": [{"schedule": "a.b:Name", "x": 1.0}, {"schedule": "wsd"}],
    }
    assert named_modules(task) == {"a.b"}
    assert fingerprint("no_such_module") == ""
    assert software(lab_tasks.walk, task | {"points": []}) == software(lab_tasks.walk)


def test_a_function_without_a_file_is_known_by_its_code(tmp_path: Path) -> None:
    """As in a notebook; what it computed last is what `load` takes."""
    made = []
    for number in ("1.5", "2.5"):
        place: dict[str, object] = {"__name__": "__main__"}
        exec(f"def f(task, seed):\n    return [{{'y': {number}, 'in': 2 in {{1, 2}}}}]", place)
        made.append(place["f"])
    assert software(made[0]) != software(made[1])
    for function in made:
        run(function, [{"x": 1}], folder=tmp_path)
    assert load_any(tmp_path).frame["y"].tolist() == [2.5]


def test_what_a_notebooks_function_reaches_counts() -> None:
    """Other functions, numbers, modules and classes of the notebook, and those that these reach."""
    cell = """
import {module} as m
K = {K}
class Law:
    def at(self, x):
        return x ** {power}
def inner(x):
    return K * Law().at(x)
def f(task, seed):
    return [{{'y': inner(task['x']) + m.pi}}]
"""
    usual = {"module": "math", "K": 1.0, "power": 2}

    def made(**changes: object) -> str:
        place: dict[str, object] = {"__name__": "__main__"}
        exec(cell.format(**usual | changes), place)
        return software(place["f"])  # type: ignore[arg-type]

    assert made() == made()
    assert len({made(), made(K=2.0), made(power=3), made(module="numpy")}) == 4


def test_a_name_of_the_script_itself_is_refused() -> None:
    """Workers have another `__main__`."""
    words = r"method must lie in a module of its own, which workers can import, got '__main__:Mine'"
    with pytest.raises(seqlaw.InputError, match=words):
        seqlaw.methods.ask.method_of("__main__:Mine")
    assert named_modules({"method": "__main__:Mine"}) == {"__main__"}


def test_code_edited_after_it_was_loaded_records_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its numbers would be the old code's under the new code's name."""
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "edited_tasks.py"
    file.write_text("def f(task, seed):\n    return [{'y': 1.0}]\n")
    import edited_tasks

    run(edited_tasks.f, [{"x": 1}], folder=tmp_path / "out")
    file.write_text("def f(task, seed):\n    return [{'y': 2.0}]\n")
    os.utime(file, (0, 0))
    with pytest.raises(StoreError, match="has changed since it was loaded here: start Python again"):
        run(edited_tasks.f, [{"x": 2}], folder=tmp_path / "out")
    del lab_software._read[file]


def test_a_helper_edited_between_two_tasks_records_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first run had found it unchanged; the second task's fingerprint reads the new text."""
    monkeypatch.syspath_prepend(tmp_path)
    helper = tmp_path / "shared_helper.py"
    helper.write_text("def g():\n    return 1.0\n")
    for name in ("first_task", "second_task"):
        text = "from shared_helper import g\n\n\ndef f(task, seed):\n    return [{'y': g()}]\n"
        (tmp_path / f"{name}.py").write_text(text)
    import first_task
    import second_task

    run(first_task.f, [{"x": 1}], folder=tmp_path / "out")
    helper.write_text("def g():\n    return 2.0\n")
    with pytest.raises(StoreError, match="has changed since it was loaded here: start Python again"):
        run(second_task.f, [{"x": 1}], folder=tmp_path / "out")
    del lab_software._read[helper]


def test_touched_code_is_the_same_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What counts is the content, and not the time: an archive or a wrong clock may say any."""
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "touched_tasks.py"
    file.write_text("def f(task, seed):\n    return [{'y': 1.0}]\n")
    import touched_tasks

    for when in (0, 10**9, 2**31):
        os.utime(file, (when, when))
        assert run(touched_tasks.f, [{"x": when}], folder=tmp_path / "out").done == 1


def test_sources_newer_than_the_clock_are_no_edit(tmp_path: Path, copy: Path) -> None:
    for file in (copy / "seqlaw").rglob("*.py"):
        os.utime(file, (4e9, 4e9))
    (tmp_path / "grid.toml").write_text(GRID.format(schedule="L = 500"))
    made = call(copy, "sweep", "grid.toml", "--out", "out", "--jobs", 1, cwd=tmp_path)
    assert "2 done" in made.stdout, made.stderr


FUNCTIONS = [("K = 1.0", "K = 2.0"), ("return K", "return K + 1"), ("self.a", "2 * self.a")]
MORE = [("k=3", "k=4"), ("[1, 2]", "[1, 3]")]  # of which only the compiled file tells


@pytest.mark.parametrize(
    ("old", "new", "other"),
    [*((*one, False) for one in FUNCTIONS + MORE), *((*one, True) for one in FUNCTIONS)],
)
def test_an_edit_between_import_and_first_sweep_is_seen_by_content(
    tmp_path: Path, old: str, new: str, other: bool
) -> None:
    """Whatever the time says; functions and plain numbers also if another Python compiled it meanwhile."""
    (tmp_path / "mine_8.py").write_text(
        "import functools\nK = 1.0\nLIST = sorted([1, 2])\nclass A:\n    a = 1\n    @property\n"
        "    def b(self):\n        return self.a\n@functools.lru_cache\ndef g(k=3):\n    return K\n"
        "def f(task, seed):\n    return [{'y': g() + LIST[1] + A().b}]\n"
    )
    code = (
        "import os, sys, subprocess, mine_8; from pathlib import Path; from seqlaw.lab.run import run\n"
        "file = Path(mine_8.__file__); was = file.stat()\n"
        f"file.write_text(file.read_text().replace({old!r}, {new!r}))\n"
        f"{other} and subprocess.run([sys.executable, '-c', 'import mine_8'], check=True)\n"
        "os.utime(file, ns=(was.st_atime_ns, was.st_mtime_ns))\n"
        "run(mine_8.f, [{'x': 1}], folder=sys.argv[1])"
    )
    environment = {**os.environ, "PYTHONPATH": python_path(ROOT / "src", tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    line = [sys.executable, "-c", code, str(tmp_path / "out")]
    made = subprocess.run(line, env=environment, capture_output=True, text=True)
    assert "mine_8.py has changed since it was loaded here: start Python again" in made.stderr
    assert not (tmp_path / "out").exists()


def test_what_a_sweep_depends_on_is_part_of_its_software(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "data.json").write_text("1")
    file = tmp_path / "grid.toml"
    file.write_text('depends = ["data.json"]\n' + GRID.format(schedule="L = 500"))
    out = tmp_path / "out"
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")  # found beside the sweep's file
    assert sweep(file, out).done == 2
    assert (sweep(file, out).skipped, len(load(out).frame)) == (2, 2)
    (tmp_path / "data.json").write_text("2")
    assert load(out).frame.empty
    assert sum(load(out).others.values()) == 2
    assert sweep(file, out, jobs=2).done == 2  # a worker of a cluster does not see the file
    (tmp_path / "data.json").write_text("1")
    assert (sweep(file, out).skipped, len(load(out).frame)) == (2, 2)
    (tmp_path / "data.json").unlink()
    with pytest.raises(StoreError, match=r"data\.json, not found from here; software="):
        load(out).require_rows()
    with pytest.raises(seqlaw.InputError, match="depends must name files that are there"):
        sweep(file, out)


def test_ranges_of_a_teachers_numbers(tmp_path: Path) -> None:
    tables = {
        "teachers": [
            {"preset": "regime2", "theta": {"lin": [1.0, 3.0], "n": 9}, "rho": [0.3, 0.6]},
            "regime1",
        ],
        "sizes": {"M": 4, "N": 10, "P": 4, "d": 16},
        "schedules": [{"L": 50}],
    }
    assert sweep(tables, tmp_path).done == 19
    frame = load(tmp_path).frame
    assert sorted(frame.loc[frame["alpha"] == 1.8, "theta"].unique()) == [1 + k / 4 for k in range(9)]
    assert set(frame["regime"]) == {"I", "II", "outside"}


def test_progress_in_python(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    """A bar on a terminal, and none where there is no one to see it."""
    tables = {"sizes": {"M": [4, 8], "N": 10, "P": 4, "d": 16}, "schedules": [{"L": 50}]}
    sweep(tables, tmp_path / "pipe", progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    sweep(tables, tmp_path / "terminal", progress=True)
    assert "2/2 tasks" in capsys.readouterr().err


def test_a_field_of_a_users_schedule_is_not_the_teachers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor a size, though they have one name in a task's table of parameters."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "mine_4.py").write_text(LINEAR.replace("share", "alpha").replace("1.0", "0.9"))
    tables = {
        "sizes": {"M": 4, "N": 10, "P": 4, "d": 16},
        "schedules": [{"kind": "mine_4:Linear", "L": 50, "shape": {"alpha": [0.5, 0.7]}}],
    }
    assert sweep(tables, tmp_path / "out").done == 2
    frame = load(tmp_path / "out").frame
    assert frame["alpha"].tolist() == [1.8, 1.8]
    assert frame["schedule_alpha"].tolist() == [0.5, 0.7]
    import mine_4

    student = {"teacher": "regime2", "M": 4, "N": 10, "P": 4, "d": 16}
    wanted = [
        seqlaw.risk(seqlaw.Setting(**student, schedule=mine_4.Linear(gamma=0.1, L=50, alpha=alpha))).bias
        for alpha in (0.5, 0.7)
    ]
    assert frame["bias"].tolist() == wanted


TASKS = {
    "helper": ("from coefficient import K\ndef f(task, seed):\n    return [{'y': K}]\n", "coefficient"),
    "package": ("from parcel.inner import f\n", "parcel/__init__"),
    "public": (
        "from seqlaw import Setting, risk\ndef f(task, seed):\n"
        "    s = Setting(teacher='regime2', M=4, N=9, P=4, d=16, schedule='wsd')\n"
        "    return [{'y': risk(s).approx}]\n",
        "seqlaw/planning/budget",
    ),
    "script": (
        "K = 1.0\ndef helper():\n    return K\ndef f(task, seed):\n    return [{'y': helper()}]\n",
        "run",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("kind", TASKS)
def test_what_a_users_task_reaches_counts(tmp_path: Path, copy: Path, kind: str) -> None:
    """Another module of theirs, the packages that it lies in, seqlaw's public names, the script itself."""
    text, edited = TASKS[kind]
    (copy / "parcel").mkdir()
    (copy / "parcel" / "__init__.py").write_text("K = 1.0\n")
    (copy / "parcel" / "inner.py").write_text(
        "import parcel\ndef f(task, seed):\n    return [{'y': parcel.K}]\n"
    )
    (copy / "coefficient.py").write_text("K = 1.0\n")
    end = "from seqlaw.lab.run import run\nif __name__ == '__main__':\n"
    end += f"    print(run(f, [{{'x': 1}}], folder={str(tmp_path / 'out')!r}).done)\n"
    script = copy / "run.py"
    if kind != "script":
        (copy / "tasks.py").write_text(text)
        text = "from tasks import f\n"
    script.write_text(text + end)
    environment = {**os.environ, "PYTHONPATH": python_path(copy)}

    def done() -> str:
        made = subprocess.run([sys.executable, script], env=environment, capture_output=True, text=True)
        assert made.returncode == 0, made.stderr
        return made.stdout.strip()

    assert [done(), done()] == ["1", "0"]
    file = copy / f"{edited}.py"
    file.write_text(file.read_text().replace("K = 1.0", "K = 9.0") + "\nEDITED = True\n")
    assert [done(), done()] == ["1", "0"]


def test_two_functions_of_one_module_keep_their_own_rows(tmp_path: Path) -> None:
    assert run(lab_tasks.walk, [{"i": 1}], folder=tmp_path).done == 1
    assert run(lab_tasks.moody, [{"i": 1}], folder=tmp_path).done == 1
    assert software(functools.partial(lab_tasks.walk, seed=1)) != software(
        functools.partial(lab_tasks.walk, seed=2)
    )


def test_a_module_edited_between_its_import_and_the_first_sweep_records_nothing(tmp_path: Path) -> None:
    (tmp_path / "mine_5.py").write_text(LINEAR)
    code = (
        "import os, mine_5, seqlaw; from pathlib import Path; file = Path(mine_5.__file__)\n"
        "file.write_text(file.read_text().replace('/ 2', '/ 4')); os.utime(file, (1e9, 1e9))\n"
        "tables = {'sizes': {'M': 4, 'N': 9, 'P': 4, 'd': 16}}\n"
        "tables['schedules'] = [{'kind': 'mine_5:Linear', 'L': 9}]\n"
        f"seqlaw.sweep(tables, {str(tmp_path / 'out')!r})"
    )
    environment = {**os.environ, "PYTHONPATH": python_path(ROOT / "src", tmp_path)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    made = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert "mine_5.py has changed since it was loaded here: start Python again" in made.stderr


def test_rows_that_are_left_out_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where a module of the user's is not found, too: nothing goes missing in silence."""
    (tmp_path / "proj").mkdir()
    (tmp_path / "proj" / "mine_6.py").write_text(LINEAR)
    own = 'kind = "mine_6:Linear"\nL = 500\n[[schedules]]\nL = 500'
    (tmp_path / "proj" / "grid.toml").write_text(GRID.format(schedule=own))
    made = call(ROOT / "src", "sweep", "proj/grid.toml", "--out", "out", "--jobs", 1, cwd=tmp_path)
    assert "4 done" in made.stdout, made.stderr
    export = call(ROOT / "src", "export", "out", "--to", "rows.csv", cwd=tmp_path)
    assert export.stdout.startswith("2 rows")
    assert "2 tasks of " in export.stderr
    assert "left out, which needs mine_6, not found from here; --software " in export.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def (", "must name a module that can be imported (SyntaxError: "),
        ("raise SystemExit(3)", "must name a module that can be imported (SystemExit: 3)"),
        (LINEAR.replace("def at", "def other"), "must be built from gamma, L (Can't instantiate abstract"),
        (LINEAR.replace("share: float = 1.0", "share: float"), "must be built from gamma, L (mine_7"),
    ],
)
def test_a_broken_module_is_one_line(
    tmp_path: Path, text: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine_7.py").write_text(text)
    made = call(ROOT / "src", "risk", "--schedule", "mine_7:Linear", cwd=tmp_path)
    assert made.returncode == 2
    assert made.stderr.count("\n") == 1
    assert words.partition("(mine_7")[0] in made.stderr


def test_modules_in_folders_without_an_init_file_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python imports such folders too; of one name some may lie among the libraries."""
    for file in ("ours/plain_9/sub/mod.py", "ours/whole_9/__init__.py", "theirs/plain_9/lib.py"):
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text("def g():\n    return 1.0\n")
    for place in ("ours", "theirs"):
        monkeypatch.syspath_prepend(tmp_path / place)
    monkeypatch.setattr(lab_software, "_LIBRARIES", {(tmp_path / "theirs").resolve()})
    (tmp_path / "ours" / "mine_9.py").write_text(
        "def f(task, seed):\n    from plain_9.sub.mod import g\n    import whole_9, plain_9.lib\n"
        "    return [{'y': g()}]\n"
    )
    wanted = {"mine_9.py", "plain_9/sub/mod.py", "whole_9/__init__.py"}
    assert set(dict(lab_software._reached("mine_9"))) == wanted
    assert not {"plain_9", "whole_9"} & set(sys.modules)  # nothing is imported to read it
    import mine_9

    before = software(mine_9.f)
    (tmp_path / "ours" / "plain_9" / "sub" / "mod.py").write_text("def g():\n    return 2.0\n")
    monkeypatch.setattr(lab_software, "_prints", {})  # as in another process
    assert software(mine_9.f) != before


@pytest.mark.parametrize(
    "text",
    [
        "K = None\ntry:\n    import numpy as K\nexcept ImportError:\n    pass\n",
        "os = None\nimport os.path\n",
        "K = 1\nfrom math import *\npi = 3\nfrom cmath import *\n",
        "K = 1\ndef K():\n    pass\n",
        "K = 1\nclass K:\n    pass\n",
        "K = 1\nmatch [2, 3]:\n    case [K, *_]:\n        pass\n",
        "K = 1\ndef change():\n    global K\n    from math import pi as K\nchange()\n",
        "K = 1\nglobals()['K'] = __import__('numpy').ones(2)\n",
    ],
)
def test_a_name_bound_twice_is_no_edit(tmp_path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "mine_11", raising=False)
    (tmp_path / "mine_11.py").write_text(text)
    import mine_11

    path = Path(mine_11.__file__)
    assert lab_software._is_loaded_from(mine_11, text.encode(), path)
    monkeypatch.setattr(lab_software, "_compiled_by_import", lambda module: None)
    vars(mine_11)["M"] = 2  # while a plain number that differs is
    assert lab_software._is_loaded_from(mine_11, f"M = 1\n{text}".encode(), path) == ("import *" in text)


def test_a_module_that_no_longer_parses_is_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    file = tmp_path / "mine_12.py"
    file.write_text("K = 1.0\n")
    out = tmp_path / "out"
    run(lab_tasks.walk, [{"i": 1, "method": "mine_12:Mine"}], folder=out)
    file.write_text("def (")
    for name in ("_prints", "_read"):
        monkeypatch.setattr(lab_software, name, {})  # as in another process
    assert load_any(out).frame.empty
    assert not load_any(out, software="all").frame.empty
    monkeypatch.setitem(sys.modules, "mine_12", ModuleType("mine_12"))
    for name, value in (("__loader__", SourceFileLoader("mine_12", str(file))), ("__file__", str(file))):
        monkeypatch.setattr(sys.modules["mine_12"], name, value, raising=False)
    with pytest.raises(StoreError, match=r"mine_12\.py has changed since it was loaded here"):
        lab_software.require_unchanged()


def test_a_file_that_cannot_be_read_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "data.json"
    file.write_text("1")
    run(lab_tasks.walk, [{"i": 1}], folder=tmp_path / "out", depends=[str(file)])

    usual = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path == file:  # as /proc/self/mem does
            raise OSError(5, "Input/output error", str(path))
        return usual(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(
        StoreError, match=r"data\.json, which the results depend on, cannot be read \(Input/out"
    ):
        lab_software.depends_print([str(file)])
    held = load_any(tmp_path / "out")
    assert held.frame.empty
    assert sum(held.others.values()) == 1
