"""A law of 250 runs beside what everyone writes: BFGS from 162 starts, in one run.

The alternative is Hoffmann et al.'s fit: Huber's loss of the log-sum-exp form, L-BFGS from a grid of starts.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp
from timing import report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from run_tables import run_table
from seqlaw.runs.form import make_form
from seqlaw.runs.law import bootstrap, fit_form
from seqlaw.runs.solve import HUBER
from seqlaw.runs.table import read_runs


def bfgs(frame) -> float:
    """The mean Huber loss of a run at the best of 162 starts over (e, a, b, α, β)."""
    x = np.log(frame[["params", "tokens"]].to_numpy())
    y = np.log(frame["loss"].to_numpy())

    def value_and_slope(p):
        parts = np.stack([np.full(y.size, p[0]), p[1] - p[3] * x[:, 0], p[2] - p[4] * x[:, 1]])
        predicted = logsumexp(parts, axis=0)
        shares = np.exp(parts - predicted)
        rest = predicted - y
        slope = np.clip(rest, -HUBER, HUBER) / y.size
        size = np.abs(rest)
        value = np.where(size <= HUBER, size**2 / 2, HUBER * (size - HUBER / 2)).mean()
        pulls = [*(shares @ slope), -(shares[1] * x[:, 0]) @ slope, -(shares[2] * x[:, 1]) @ slope]
        return value, np.array(pulls)

    grid = [(-1, 0, 1), (0, 10, 20), (0, 10, 20), (0, 0.5, 1), (0, 1)]  # 3·3·3·3·2 = 162
    starts = np.array(np.meshgrid(*grid)).reshape(5, -1).T
    options = {"maxiter": 5000, "ftol": 1e-15, "gtol": 1e-9}
    return min(
        minimize(value_and_slope, start, jac=True, method="L-BFGS-B", options=options).fun for start in starts
    )


def main() -> None:
    frame, _ = run_table(3, rows=250, noise=0.01)
    form = make_form(["params", "tokens"], None)
    runs = read_runs(frame, "loss", form.columns)
    fit_form(form, runs)  # imports
    start = time.perf_counter()
    fitted = fit_form(form, runs)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    usual = bfgs(frame)
    theirs = time.perf_counter() - start
    report("law of 250 runs, two terms: seconds", ours, "< 2")
    report("162 starts of BFGS: seconds over ours", theirs / ours, "> 5")
    report("mean Huber loss over that of BFGS", fitted.objective / usual, "<= 1.0001")
    start = time.perf_counter()
    bootstrap(fitted, runs, 1000, 0)
    report("1000 bootstraps of them: seconds", time.perf_counter() - start, "< 60 on two cores")


if __name__ == "__main__":
    main()
