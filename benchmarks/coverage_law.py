"""Tables from known laws: how often intervals cover, a length is found, and one is invented.

python benchmarks/coverage_law.py 100          (about six minutes on one core; fewer tables, less)
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from run_tables import THREE, run_table
from seqlaw.runs.compare import compare
from seqlaw.runs.form import make_form
from seqlaw.runs.law import LEVEL, bootstrap, estimate, fit_form
from seqlaw.runs.table import read_runs

TERMS = ["params", "tokens", "length"]


def covered(seeds, *, length, rows=None, bootstraps=200):
    """For each exponent whether its interval covers, shape (tables, exponents)."""
    found = []
    for seed in seeds:
        frame, truth = run_table(seed, length=length, rows=rows)
        form = make_form(TERMS if length else TERMS[:2], None)
        runs = read_runs(frame, "loss", form.columns)
        fitted = fit_form(form, runs)
        draws = fitted.phi(bootstrap(fitted, runs, bootstraps, seed))
        ends = [estimate(0.0, draws[:, j], LEVEL) for j in range(len(form.numbers))]
        found.append([e.low <= truth[name] <= e.high for e, name in zip(ends, form.numbers, strict=True)])
    return np.array(found)


def found_length(seeds, *, length, noise, rows=None):
    """The share of tables in which the length is said to matter; three lengths."""
    form, said = make_form(TERMS, None), []
    for seed in seeds:
        frame, _ = run_table(seed, length=length, lengths=THREE, noise=noise, rows=rows)
        runs = read_runs(frame, "loss", TERMS)
        size = runs.columns["params"] * runs.columns["tokens"]
        found = compare(fit_form(form, runs), runs, "length", size, level=LEVEL, seed=0)
        said.append(found.verdict == "matters")
    return np.mean(said)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    plain = covered(range(count // 2), length=0.0)
    longer = covered(range(count // 2, count), length=0.2)
    for j, name in enumerate(TERMS):
        both = [table[:, j] for table in (plain, longer) if j < table.shape[1]]
        print(f"{LEVEL:.0%} intervals of {name}: cover in {np.mean(np.concatenate(both)):.1%}", flush=True)
    few = covered(range(count), length=0.0, rows=30)
    print(f"tables of 30 runs: {few[:, 0].mean():.1%}, {few[:, 1].mean():.1%}", flush=True)
    for length, noises in ((0.01, (0.003, 0.005)), (0.0, (0.003, 0.01, 0.03))):
        for noise in noises:
            share = found_length(range(1000, 1000 + count), length=length, noise=noise)
            print(f"length effect {length:.0%}, noise {noise:.1%}: said to matter in {share:.0%}", flush=True)
    few = found_length(range(1000, 1000 + 2 * count), length=0.0, noise=0.01, rows=30)
    print(f"no length effect, noise 1 %, tables of 30 runs: said to matter in {few:.1%}")


if __name__ == "__main__":
    main()
