"""The program answers as recorded: a change that is meant records the named answers anew (recorded.py)."""

import json

import pytest

from recorded import FILE, answered, differences, in_folder, questions

ASKED = questions()
KNOWN = json.loads(FILE.read_text())
LONG = ("plan", "ladder", "tradeoff pass", "law", "measure")
"""Questions of more than a second or so."""
QUICK = [name for name in ASKED if not name.startswith(LONG)][::5]
"""A fifth of the rest, spread over commands, methods, schedules and ways of training."""


@pytest.fixture(scope="module")
def folder():
    with in_folder():
        yield


def check(name):
    found = differences(name, KNOWN[name], answered(name, ASKED[name]))
    assert not found, "\n".join(found[:5])


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", QUICK)
def test_a_quick_answer(name):
    check(name)


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", [name for name in ASKED if name not in QUICK])
def test_an_answer(name):
    check(name)


def test_every_question_has_its_answer():
    assert list(KNOWN) == list(ASKED)
    assert len(ASKED) >= 400
    refused = [name for name, one in KNOWN.items() if "refused" in one]
    assert len(refused) < 0.02 * len(KNOWN)
