"""Every command and code block of the README and of docs/ is run, but for those marked with a reason."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"(?P<mark><!-- not run: (?P<reason>.+?) -->\n+)?```(?P<kind>\w+)\n(?P<body>.*?)```", re.DOTALL
)
RUN = ("python", "console", "toml")


def blocks():
    for page in PAGES:
        for number, match in enumerate(BLOCK.finditer(page.read_text()), 1):
            if match["kind"] in RUN:
                yield pytest.param(page, match, id=f"{page.stem}-{number}-{match['kind']}")


def environment():
    paths = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    return {**os.environ, "PATH": os.pathsep.join(paths), "PYTHONPATH": str(ROOT / "src")}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """One folder for all blocks: a page's files are there for its later commands."""
    return tmp_path_factory.mktemp("docs")


@pytest.mark.parametrize(("page", "block"), blocks())
def test_block(page, block, folder):
    if block["reason"]:
        pytest.skip(block["reason"])
    here = folder / page.stem
    here.mkdir(exist_ok=True)
    if block["kind"] == "toml":  # the first line names the file: `# grid.toml`
        (here / block["body"].splitlines()[0].removeprefix("# ").strip()).write_text(block["body"])
        return
    if block["kind"] == "python":
        done = run([sys.executable, "-c", block["body"]], here)
        assert done.returncode == 0, done.stderr
        return
    commands = [line[2:] for line in block["body"].splitlines() if line.startswith("$ ")]
    assert commands
    for command in commands:
        done = run(["bash", "-c", command], here)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"


def run(arguments, here):
    return subprocess.run(
        arguments, cwd=here, env=environment(), capture_output=True, text=True, check=False, timeout=120
    )


def test_marks_are_few_and_have_reasons():
    marks = [
        match["reason"] for page in PAGES for match in BLOCK.finditer(page.read_text()) if match["reason"]
    ]
    assert len(marks) <= 12
    assert all(len(reason) > 10 for reason in marks)
