"""What every test shares."""

import pytest


@pytest.fixture(autouse=True)
def one_width(monkeypatch):
    """Sentences fold to the terminal: here to 100 columns, wherever the tests run."""
    monkeypatch.setenv("COLUMNS", "100")
