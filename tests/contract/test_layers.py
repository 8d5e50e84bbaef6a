"""The house rules, held: who may import whom, what is light, what stands alone."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import seqlaw
from conftest import ROOT, python_path

SOURCE = Path(seqlaw.__file__).parent

# room → the rooms it may import; a room is the first name below seqlaw (or the two names given here).
ALLOWED = {
    "model": set(),
    "methods.rates": {"model"},
    "methods.spectrum": {"model", "methods.rates"},
    "methods": {"model"},
    "planning": {"model", "methods"},
    "fit": {"model"},
    "sequences": {"model", "methods", "planning"},
    "runs": {"model", "files"},
    "lab": {"model"},
    "files": {"model"},
    "answers": {"model", "methods", "planning", "sequences", "runs", "fit", "files"},
    "sweeping": {"lab", "methods", "model", "files", "renamed"},
    "paper": {"model", "methods", "planning", "fit", "lab", "sweeping", "answers"},
    "questions": {"model", "methods", "planning", "runs", "fit", "files", "answers", "sweeping", "paper"},
    "renamed": set(),
    "cli": {
        "questions",
        "renamed",
        "model",
        "methods",
        "planning",
        "sequences",
        "runs",
        "fit",
        "answers",
        "lab",
        "files",
        "sweeping",
        "paper",
        "web",
    },
    "web": {"model", "methods", "planning", "answers", "files", "paper", "fit", "questions"},
}


TOP = (("__init__",), ("__main__",), ("public",))  # above all rooms


def room(parts):
    name = ".".join(parts[:2])
    return name if name in ALLOWED else parts[0]


def imports():
    for path in SOURCE.rglob("*.py"):
        parts = path.relative_to(SOURCE).with_suffix("").parts
        if parts in TOP:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{path}: relative import"
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            elif isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                continue
            for name in names:
                yield parts, name


def test_every_import_goes_up():
    wrong = []
    for parts, name in imports():
        if not name.startswith("seqlaw."):
            continue
        here, there = room(parts), room(name.split(".")[1:])
        if there not in ALLOWED:
            continue  # a public name of seqlaw/__init__ itself
        # `rates` stands alone inside its room: agreement is evidence only if no code is shared.
        if here != there and not {there, there.split(".")[0]} & ALLOWED[here]:
            wrong.append(f"{'.'.join(parts)} imports {name}")
    assert not wrong


def test_every_room_is_known():
    rooms = {room(path.relative_to(SOURCE).with_suffix("").parts) for path in SOURCE.rglob("*.py")}
    assert rooms <= set(ALLOWED) | {name for (name,) in TOP}


def test_no_room_shares_its_name_with_a_public_name():
    rooms = {path.relative_to(SOURCE).with_suffix("").parts[0] for path in SOURCE.rglob("*.py")}
    assert rooms & set(seqlaw.__all__) == set()


def test_importing_seqlaw_loads_numpy_and_scipy_at_most():
    code = (
        "import sys, seqlaw; seqlaw.risk; "
        "print(sorted({m.split('.')[0] for m in sys.modules} & "
        "{'pandas','dask','distributed','numba','matplotlib','fastapi','plotly','pydantic','typer','rich','zarr'}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("word", ["shared/", "/work/", "/tmp/", "https://cdn"])
def test_the_project_stands_alone(word):
    for path in SOURCE.rglob("*.py"):
        assert word not in path.read_text(), path


def test_the_graph_in_the_design_notes_is_the_graph():
    graph = {}
    for parts, name in imports():
        if name.startswith("seqlaw."):
            here, there = room(parts), room(name.split(".")[1:])
            if there in ALLOWED and here != there:
                graph.setdefault(here, set()).add(there)
    lines = [f"{here} <- {', '.join(sorted(rooms))}" for here, rooms in sorted(graph.items())]
    page = (ROOT / "docs" / "design.md").read_text()
    assert page.split("```text\n")[1].split("```")[0].splitlines() == lines


def test_a_plain_command_needs_no_name_that_only_linux_has():
    """`make test-elsewhere` runs the rooms with processes and files so; no Mac and no Windows was tried."""
    code = (
        "import os; assert not hasattr(os, 'sched_getaffinity')\n"
        "import seqlaw, seqlaw.lab.store\n"
        "from seqlaw.cli import main; main(['risk', '--json'])"
    )
    path = python_path(ROOT / "tests" / "elsewhere", ROOT / "src")
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    assert (done.returncode, done.stderr) == (0, "")
