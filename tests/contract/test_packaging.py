"""The wheel as a stranger gets it: built, installed into an empty environment, used without the source."""

import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from types import ModuleType

import pytest

import seqlaw
from conftest import ROOT
from oldest import pins
from seqlaw.cli import main


def run(*arguments, cwd, code=0, **options):
    done = subprocess.run(
        [str(a) for a in arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        **options,
    )
    assert done.returncode == code, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done


def test_one_version_everywhere():
    cited = (ROOT / "CITATION.cff").read_text().splitlines()
    (date,) = (line.removeprefix("date-released: ") for line in cited if line.startswith("date-released: "))
    assert f"version: {seqlaw.__version__}" in cited
    assert f"## {seqlaw.__version__} ({date})" in (ROOT / "CHANGELOG.md").read_text().splitlines()


def test_the_oldest_versions_are_all_the_lower_bounds():
    """Nothing that an installed package needs lacks one, and a pin is the bound."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = dict(pin.split("==") for pin in pins(project))
    assert found["numpy"] == "2.0"
    assert {"numba", "dask", "zarr", "fastapi", "jinja2"} < found.keys()
    assert not {"torch", "pytest", "sphinx"} & found.keys()


@pytest.mark.parametrize(
    ("shell", "typed"),
    [
        ("bash", {"COMP_WORDS": "seqlaw {}", "COMP_CWORD": "{}"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "seqlaw {}"}),
        ("fish", {"_TYPER_COMPLETE_ARGS": "seqlaw {}", "_TYPER_COMPLETE_FISH_ACTION": "get-args"}),
    ],
)
@pytest.mark.parametrize(("words", "completed"), [("pl", ["plan"]), ("plan --max-", ["--max-M", "--max-P"])])
def test_a_shell_completes(shell, typed, words, completed, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["seqlaw"])
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))  # not `python -m pytest`
    monkeypatch.setenv("_SEQLAW_COMPLETE", f"complete_{shell}")
    for name, value in typed.items():
        monkeypatch.setenv(name, value.format(len(words.split()) if name == "COMP_CWORD" else words))
    with pytest.raises(SystemExit) as stop:
        main([])
    assert stop.value.code == 0
    shown = capsys.readouterr().out
    assert all(word in shown for word in completed)
    assert "tradeoff" not in shown
    assert "--tokens" not in shown


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    return next(folder.glob("seqlaw-*.whl"))


@pytest.mark.slow
def test_the_wheel_holds_what_it_needs(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    source = ROOT / "src/seqlaw"
    beside = [p for p in source.rglob("*") if p.is_file() and p.suffix not in (".py", ".pyc")]
    assert {"py.typed", "index.html", "page.html.j2"} < {path.name for path in beside}
    for path in beside:
        assert f"seqlaw/{path.relative_to(source).as_posix()}" in names
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)


@pytest.mark.slow
def test_the_tests_run_from_the_source_archive(tmp_path):
    """All are collected (examples, pages and notebooks are there), and those of the house pass."""
    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    run(tmp_path / "env/bin/python", "-m", "pip", "install", "--quiet", "hatchling", cwd=tmp_path)
    run(tmp_path / "env/bin/python", "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path, cwd=ROOT)
    (archive,) = tmp_path.glob("seqlaw-*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path, filter="data")
    tree = tmp_path / archive.name.removesuffix(".tar.gz")
    for folder in ("tests/data", "examples", "benchmarks", "docs", "docs/notebooks"):
        here = {path.name for path in (ROOT / folder).iterdir() if path.is_file()}
        assert here <= {path.name for path in (tree / folder).iterdir()}, folder
    environment = os.environ | {"PYTHONPATH": str(tree / "src")}
    pytest_there = (sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider")
    run(*pytest_there, "--collect-only", cwd=tree, env=environment)
    run(*pytest_there, "tests/contract/test_layers.py", "-m", "not slow", cwd=tree, env=environment)


@pytest.mark.slow
def test_an_empty_environment(wheel, tmp_path):
    """Core only: everything light works, and each missing extra is one line with the pip command."""
    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    python, seqlaw = tmp_path / "env/bin/python", tmp_path / "env/bin/seqlaw"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    answer = json.loads(run(seqlaw, "risk", "--json", cwd=tmp_path).stdout)
    assert answer["method"] == "equivalent"
    run(seqlaw, "risk", "--method", "sampled", "-M", 8, "-d", 32, "-N", 50, "-P", 5, cwd=tmp_path)
    run(seqlaw, "tradeoff", cwd=tmp_path)
    run(seqlaw, "rates", cwd=tmp_path)
    grid = (
        'method = "equivalent"\n[sizes]\nM = 8\nN = 8\nP = 8\nd = 32\n[[schedules]]\nkind = "wsd"\nL = 100\n'
    )
    (tmp_path / "grid.toml").write_text(grid)
    for extra, command in {
        "plot": ["tradeoff", "--plot", "x.png"],
        "web": ["explore", "--no-open"],
        "lab": ["sweep", "grid.toml", "--out", "results", "--jobs", "2"],
    }.items():
        done = run(seqlaw, *command, cwd=tmp_path, code=2)
        assert done.stderr.count("\n") == 1, done.stderr
        assert f"pip install 'seqlaw[{extra}]'" in done.stderr
