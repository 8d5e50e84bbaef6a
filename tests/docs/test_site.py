"""The documentation site, built with warnings as errors, and its notebooks as the scripts that they are."""

import os
import re
import subprocess
import sys
from importlib.util import find_spec

import pytest

import seqlaw
from conftest import ROOT, python_path

NOTEBOOKS = sorted((ROOT / "docs" / "notebooks").glob("*.py"))
NEEDED = ("sphinx", "furo", "myst_nb", "jupytext")
MISSING = [name for name in NEEDED if find_spec(name) is None]
LOADED = re.compile(
    r"""<(?:script|img|iframe|source|link(?![^>]*rel="(?:canonical|license)"))\b[^>]*\b(?:src|href)=["'](?:https?:)?//"""
    r"""|@import\s+(?:url\()?["']?(?:https?:)?//|url\(["']?(?:https?:)?//"""
)
"""What a browser would fetch from elsewhere by itself; a link to be clicked is none."""


def run(arguments, folder, seconds):
    environment = {**os.environ, "PYTHONPATH": python_path(ROOT / "src"), "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, *map(str, arguments)],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=seconds,
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done


@pytest.mark.slow
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook(notebook, tmp_path):
    """A minute at most, and no warning."""
    assert run(["-W", "error", notebook], tmp_path, 60).stdout


def test_every_page_and_notebook_is_in_the_map():
    """Each is linked from the front page, once in the map and once in the menu."""
    front = (ROOT / "docs" / "index.md").read_text()
    pages = {f"{page.stem}.md" for page in (ROOT / "docs").glob("*.md")} - {"index.md"}
    pages |= {f"notebooks/{page.name}" for page in NOTEBOOKS}
    assert set(re.findall(r"\]\(([\w/-]+\.(?:md|py))\)", front)) == pages
    menu = re.findall(r"^([\w/-]+(?:\.py)?)$", front, flags=re.MULTILINE)
    assert sorted(menu) == sorted(page.removesuffix(".md") for page in pages)


def test_the_reference_has_every_public_name():
    named = re.findall(
        r"^\.\. (?:auto)?\w+:: (\w+)$", (ROOT / "docs" / "reference.md").read_text(), re.MULTILINE
    )
    assert sorted(set(named) - {"seqlaw"}) == sorted(seqlaw.__all__)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('<script src="https://cdn.example/x.js">', True),
        ('<link rel="stylesheet" href="//fonts.example/x.css">', True),
        ('<img alt="x" src="http://example/x.png">', True),
        ("@font-face {src: url(https://example/x.woff2)}", True),
        ('<a href="https://example.org">', False),
        ('<script src="_static/x.js"></script><a href="https://example.org">', False),
    ],
)
def test_what_counts_as_loaded(text, found):
    assert bool(LOADED.search(text)) == found


@pytest.mark.slow
@pytest.mark.skipif(bool(MISSING), reason=f"pip install 'seqlaw[docs]': {', '.join(MISSING)} not installed")
def test_site(tmp_path):
    """It builds without a warning, runs the notebooks, can be searched, and loads nothing from outside."""
    site = tmp_path / "site"
    run(["-m", "sphinx", "-W", "-q", "-d", tmp_path / "trees", ROOT / "docs", site], tmp_path, 400)
    pages = [*site.rglob("*.html")]
    for wanted in ("index", "tutorial", "reference", "commands", "notation", "notebooks/paper"):
        assert site / f"{wanted}.html" in pages
    for page in [*pages, *site.rglob("*.css")]:
        assert not LOADED.search(page.read_text()), page
    paper = (site / "notebooks" / "paper.html").read_text()
    assert "Least risk, with" in paper  # what a cell printed
    assert 'src="../_images/' in paper  # what one drew
    assert 'id="seqlaw.risk"' in (site / "reference.html").read_text()
    assert "--eval-length" in (site / "commands.html").read_text()
    assert "safeguard" in (site / "searchindex.js").read_text()
