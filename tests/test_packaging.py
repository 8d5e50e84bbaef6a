"""The wheel as a stranger gets it: built, installed into an empty environment, used without the source."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def run(*arguments, cwd, code=0):
    done = subprocess.run(
        [str(a) for a in arguments], cwd=cwd, capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == code, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT, cwd=folder)
    return next(folder.glob("seqlaw-*.whl"))


@pytest.mark.slow
def test_the_wheel_holds_what_it_needs(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    for wanted in ("py.typed", "web/static/index.html", "web/static/app.js", "paper/report/page.html.j2"):
        assert f"seqlaw/{wanted}" in names
    assert not any(name.startswith(("tests/", "benchmarks/")) for name in names)


@pytest.mark.slow
def test_an_empty_environment(wheel, tmp_path):
    """Core only: everything light works, and each missing extra is one line with the pip command."""
    run(sys.executable, "-m", "venv", "env", cwd=tmp_path)
    python, seqlaw = tmp_path / "env/bin/python", tmp_path / "env/bin/seqlaw"
    run(python, "-m", "pip", "install", "--quiet", wheel, cwd=tmp_path)
    answer = json.loads(run(seqlaw, "risk", "--json", cwd=tmp_path).stdout)
    assert answer["rung"] == "equivalent"
    run(seqlaw, "risk", "--rung", "sampled", "-M", 8, "-d", 32, "-N", 50, "-P", 5, cwd=tmp_path)
    run(seqlaw, "tradeoff", cwd=tmp_path)
    run(seqlaw, "rates", cwd=tmp_path)
    grid = 'rung = "equivalent"\n[sizes]\nM = 8\nN = 8\nP = 8\nd = 32\n[[schedules]]\nkind = "wsd"\nL = 100\n'
    (tmp_path / "grid.toml").write_text(grid)
    for extra, command in {
        "plot": ["tradeoff", "--plot", "x.png"],
        "web": ["explore", "--no-open"],
        "lab": ["sweep", "grid.toml", "--out", "results", "--jobs", "2"],
    }.items():
        done = run(seqlaw, *command, cwd=tmp_path, code=2)
        assert done.stderr.count("\n") == 1, done.stderr
        assert f"pip install 'seqlaw[{extra}]'" in done.stderr
