"""The scripts of examples/ run as printed, in an empty folder."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import python_path

ROOT = Path(__file__).parent.parent
SCRIPTS = ("vary_exponent", "add_schedule", "plan_and_confirm")


@pytest.mark.parametrize("name", SCRIPTS)
def test_example(name, tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / f"{name}.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": python_path(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout
    assert "Warning" not in done.stderr
