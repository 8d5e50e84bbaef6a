"""What every test shares."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DATA = ROOT / "tests" / "data"


@pytest.fixture(autouse=True)
def one_width(monkeypatch):
    """Sentences fold to the terminal: here to 100 columns, wherever the tests run."""
    monkeypatch.setenv("COLUMNS", "100")


def python_path(*folders):
    """PYTHONPATH with these folders first, for a Python of its own."""
    return os.pathsep.join([*map(str, folders), *filter(None, [os.environ.get("PYTHONPATH")])])
