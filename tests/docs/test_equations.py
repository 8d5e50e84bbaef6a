"""An equation or a section that is cited by its number stands on the page that is meant."""

import ast
import re
from pathlib import Path

import pytest

from conftest import ROOT

SOURCE = ROOT / "src" / "seqlaw"
FILES = [*sorted(SOURCE.rglob("*.py")), ROOT / "tests" / "oracles.py", ROOT / "tests" / "recursions.py"]
PAGE = re.compile(r"docs/([\w-]+\.md)")
NUMBER = re.compile(
    r"(?<![\w)\]}.'²³])(?:\((?P<first>\d+'?)\)(?: ?(?:–|-|to) ?\((?P<last>\d+)\))?"
    r"|§(?P<part>\d+)(?:[–-]§?(?P<until>\d+))?)"
)
"""(3), (3) to (5), (3)–(5), §3 or §3-§5."""
LINKED = [  # on pages: [the equivalent](equivalent.md), §5; (15) of [one pass](one-pass-theory.md)
    re.compile(r"\]\((?P<page>[\w-]+\.md)\), (?P<number>\(\d+'?\)|§\d+)"),
    re.compile(r"(?P<number>\(\d+'?\)|§\d+) of\s+\[[^]]+\]\((?P<page>[\w-]+\.md)\)"),
    re.compile(r"\[[^]]+, (?P<number>§\d+)\]\((?P<page>[\w-]+\.md)\)"),
]


def signs(found):
    """What a citation means: "(3)", "(4)", … or "§3", …"""
    form, first, last = (
        ("({})", found["first"], found["last"]) if found["first"] else ("§{}", found["part"], found["until"])
    )
    if not last:
        return [form.format(first)]
    return [form.format(k) for k in range(int(first), int(last) + 1)]


def texts(module):
    """The docstrings of a module and of all that is in it, its own first."""
    nodes = [node for node in ast.walk(module) if isinstance(node, ast.Expr)]
    found = [node.value.value for node in nodes if isinstance(node.value, ast.Constant)]
    own = ast.get_docstring(module, clean=False) or ""
    return [own, *(one for one in found if isinstance(one, str) and one != own)]


def citations(source):
    """(page, sign) of a module: the page named last before the number, or else the module docstring's."""
    own, *others = texts(ast.parse(source))
    usual = PAGE.search(own)
    found = set()
    for text in (own, *others):
        for number in NUMBER.finditer(text):
            before = PAGE.findall(text[: number.start()])
            page = before[-1] if before else usual[1] if usual else None
            found |= {(page, sign) for sign in signs(number)}
    return found


def displayed(text):
    """The numbers at the right of displayed formulas, in fences or indented, and of the headings."""
    fence = re.compile(r"^```(\w*)\n(.*?)^```", re.DOTALL | re.MULTILINE)
    lines = [line for kind, block in fence.findall(text) if kind == "text" for line in block.splitlines()]
    lines += [line for line in fence.sub("", text).splitlines() if line.startswith("    ")]
    ends = [re.search(r"\S +(\(\d+'?\))\.?$", line) for line in lines]
    sections = re.findall(r"^## (\d+)\. ", text, re.MULTILINE)
    return [end[1] for end in ends if end] + [f"§{section}" for section in sections]


SHOWN = {page.name: displayed(page.read_text()) for page in (ROOT / "docs").glob("*.md")}


def missing(cited):
    """The citations whose page is not named, not there or without that number."""
    return sorted(f"{page} {sign}" for page, sign in cited if sign not in SHOWN.get(page, []))


CITED = {path: found for path in FILES if (found := citations(path.read_text()))}


@pytest.mark.parametrize("path", CITED, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_a_number_that_the_code_cites_is_on_the_page_that_it_names(path):
    assert not missing(CITED[path])


def test_citations_are_found():
    """By room: a form that `NUMBER` no longer sees would leave the test above with nothing to say."""
    pages = {page for found in CITED.values() for page, _ in found}
    assert pages >= {"equivalent.md", "finite-sample.md", "one-pass-theory.md", "epochs-theory.md"}
    assert sum(map(len, CITED.values())) > 60


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('"""Of docs/a.md, (2) and (7\')."""', {("a.md", "(2)"), ("a.md", "(7')")}),
        ('"""docs/a.md"""\nx = 1\n"""(2)–(4) at f(0)."""', {("a.md", f"({k})") for k in (2, 3, 4)}),
        ('"""docs/a.md"""\nx = 1\n"""docs/b.md, §2-§3."""', {("b.md", "§2"), ("b.md", "§3")}),
        ('"""A law (3)."""', {(None, "(3)")}),
    ],
)
def test_what_counts_as_a_citation(text, found):
    assert citations(text) == found


@pytest.mark.parametrize("page", sorted(SHOWN))
def test_a_page_has_each_number_once(page):
    assert len(SHOWN[page]) == len(set(SHOWN[page]))


@pytest.mark.parametrize("page", sorted(SHOWN))
def test_a_number_that_a_page_cites_of_another_is_there(page):
    text = (ROOT / "docs" / page).read_text()
    assert not missing((one["page"], one["number"]) for form in LINKED for one in form.finditer(text))


LAWS = {"finite sample": "finite-sample.md", "one pass": "one-pass-theory.md", "epochs": "epochs-theory.md"}


@pytest.mark.parametrize("path", [Path("docs/design.md"), Path("tests/mutations.py")], ids=str)
def test_a_broken_formula_has_the_number_of_its_page(path):
    found = re.findall(rf"({'|'.join(LAWS)}) (\(\d+\)):", (ROOT / path).read_text())
    assert len(found) >= 4
    assert not missing((LAWS[law], number) for law, number in found)
