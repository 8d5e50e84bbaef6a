"""Every command and code block of the README and of docs/ is run, but for those marked with a reason."""

import math
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT, python_path
from seqlaw.answers.glossary import WORDS

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
WRITTEN = [*PAGES, *(ROOT / name for name in ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "SECURITY.md"))]
BLOCK = re.compile(r"(<!-- not run: (?P<reason>.+?) -->\n+)?```(?P<kind>\w+)\n(?P<body>.*?)```", re.DOTALL)


def blocks(page):
    return list(BLOCK.finditer(page.read_text()))


def run(arguments, folder):
    paths = [str(Path(sys.executable).parent), os.environ.get("PATH", "")]
    environment = {**os.environ, "PATH": os.pathsep.join(paths), "PYTHONPATH": python_path(ROOT / "src")}
    done = subprocess.run(
        arguments, cwd=folder, env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, f"{arguments[-1]}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def words(text):
    """Words as they are, numbers with their form: their last digits may differ on another processor."""
    found = []
    for word in text.split():
        try:
            found.append((float(word.replace(",", "")), "," in word, "e" in word.lower()))
        except ValueError:
            found.append(word)
    return found


def same(shown, printed):
    if isinstance(shown, tuple) and isinstance(printed, tuple):
        return math.isclose(shown[0], printed[0], rel_tol=0.02) and shown[1:] == printed[1:]
    return shown == printed


def check_output(shown, printed):
    """What a page shows is what its command prints, in order; a line of … stands for what is left out."""
    left = words(printed)
    for k, part in enumerate(re.split(r"^…$", shown, flags=re.MULTILINE)):
        wanted = words(part)
        starts = range(len(left) - len(wanted) + 1)[: None if k else 1]  # the first part opens the output
        start = next((n for n in starts if all(map(same, wanted, left[n:]))), None)
        assert start is not None, f"not printed:\n{part}\nbut\n{printed}"
        left = left[start + len(wanted) :]
    assert not left or shown.rstrip().endswith("…"), f"printed too: {left}"


LONG = {
    *("README", "epochs", "extend", "forecast", "forecast-theory", "law", "lengths", "loose", "measure"),
    *("methods", "momentum", "networks", "one-pass", "optimizers", "plan", "plan-theory", "published-runs"),
    *("reproduce", "run-logs", "steps", "sweeps", "teacher", "tutorial"),
}
"""Pages of up to half a minute, for the slow suite."""


@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] * (page.stem in LONG), id=page.stem) for page in PAGES],
)
def test_page(page, tmp_path):
    """All blocks of a page in order, in one folder: what a block writes is there for the next."""
    printed = None  # by the commands of the block before
    for block in blocks(page):
        kind, body = block["kind"], block["body"]
        if kind == "text" and printed is not None:
            check_output(body, printed)
        printed = None
        if block["reason"] or kind not in ("python", "console", "toml"):
            continue
        if kind == "toml":  # the first line names the file: `# grid.toml`
            (tmp_path / body.splitlines()[0].removeprefix("# ").strip()).write_text(body)
        elif kind == "python":  # likewise: `# linear.py`, where a later block needs it
            named = re.match(r"# (\w+\.py)\n", body)
            name = named[1] if named else "block.py"
            (tmp_path / name).write_text(body)
            printed = run([sys.executable, name], tmp_path)
        else:
            commands = [line[2:] for line in body.splitlines() if line.startswith("$ ")]
            assert commands, body
            printed = "".join(run(["bash", "-c", command], tmp_path) for command in commands)


def test_the_page_of_words_is_the_table_of_words():
    rows = re.findall(
        r"^\| (.+?) \| (.+) \|$", (ROOT / "docs" / "notation.md").read_text().split("## Words")[1], re.M
    )
    assert dict(rows[1:]) == WORDS


def test_the_page_of_symbols_names_the_files_that_define_them():
    rows = re.findall(
        r"^\| .+? \| (`.+) \| `([^`]+)`.* \| .+ \|$", (ROOT / "docs" / "notation.md").read_text(), re.M
    )
    assert len(rows) > 30
    for names, where in rows:
        path = ROOT / "src" / "seqlaw" / where
        source = "\n".join(file.read_text() for file in ([path] if path.is_file() else path.rglob("*.py")))
        for name in re.findall(r"`(?:seqlaw\.model\.)?([^`(]+)[^`]*`", names):
            for part in name.strip(".").split("."):
                assert re.search(rf"(^ *(def |class )?|self\.){part}\b *[:=(,]", source, re.M), (where, name)


def test_the_tests_that_pages_name_are_there():
    """A file of tests by its name alone, which no other has, or by its path; and what it is said to hold."""
    files = {path.name: path for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(files) == len(list((ROOT / "tests").rglob("test_*.py")))
    for page in [*PAGES, ROOT / "Makefile"]:
        for folder, name, test in re.findall(r"([\w/]*)\b(test_[a-z_]+\.py)(?:::(\w+))?", page.read_text()):
            assert f"def {test}" in files[name].read_text(), (page.name, name, test)
            assert f"{folder}{name}" in (name, files[name].relative_to(ROOT).as_posix()), (page.name, folder)


LINKED = "methods?|safeguard|saturated|reducible|effective tokens|presets?"


@pytest.mark.parametrize(
    "page", [page for page in PAGES if page.stem not in ("design", "notation", "reference")]
)
def test_a_page_says_where_its_words_are_explained(page):
    prose = re.sub(r"```.*?```|`[^`]*`|^#.*$", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    if re.search(rf"(?<![\w-])({LINKED})(?![\w-])", prose):
        assert "notation.md#words" in prose


def test_marks_are_few_and_have_reasons():
    reasons = [block["reason"] for page in PAGES for block in blocks(page) if block["reason"]]
    assert len(reasons) <= 19  # two need published runs that a reader must fetch, four torch or a GPU
    assert all(len(reason) > 10 for reason in reasons)


def prose(page):
    """The lines of a page that can be broken: without code, displayed formulas, tables and links."""
    text = re.sub(r"```.*?```", lambda found: "\n" * found[0].count("\n"), page.read_text(), flags=re.DOTALL)
    for number, line in enumerate(text.splitlines(), 1):
        if not line.startswith(("|", "    ")) and "](" not in line and "http" not in line:
            yield number, line


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: page.stem)
def test_a_line_of_prose_has_at_most_100_characters(page):
    long = [
        f"{page.name}:{number}: {len(line)} characters" for number, line in prose(page) if len(line) > 100
    ]
    assert not long
