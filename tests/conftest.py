"""What every test shares."""

import os

import pytest

ELSEWHERE = not hasattr(os, "sched_getaffinity")
"""On another system than Linux, or where `make test-elsewhere` plays one."""


def pytest_collection_modifyitems(items):
    """`linux_only` names what a test needs of Linux; elsewhere it is skipped, and the reason shown."""
    for item in items:
        mark = item.get_closest_marker("linux_only")
        if mark is not None and ELSEWHERE:
            item.add_marker(pytest.mark.skip(reason=f"needs Linux: {mark.args[0]}"))


@pytest.fixture(autouse=True)
def one_width(monkeypatch):
    """Sentences fold to the terminal: here to 100 columns, wherever the tests run."""
    monkeypatch.setenv("COLUMNS", "100")


def python_path(*folders):
    """PYTHONPATH with these folders first, for a Python of its own."""
    return os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])
