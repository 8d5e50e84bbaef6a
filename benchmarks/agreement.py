"""Sampled data sets against the law at any amount of data: the table of docs/finite-sample.md.

python benchmarks/agreement.py 300          (about an hour on one core; fewer settings, less)
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from oracles import random_settings
from rows_of import exact_risks, sampled_rows
from seqlaw.methods import equivalent_risks

SEED = 2026
COUNTS = {16: (12, 200), 48: (8, 128), 96: (6, 72)}
"""Sketches, and data sets of each, by M."""


def compared(settings):
    """M, the sampled excess over the exact method's on the same sketches, and the errors; flagged or not."""
    for setting in settings:
        sketches, repetitions = COUNTS[setting.M]
        rows = sampled_rows([setting], sketches=sketches, repetitions=repetitions, seed=SEED)
        seen, approx = (
            np.array([row[name] for row in rows]).reshape(sketches, repetitions)
            for name in ("reducible", "approx")
        )
        [law] = exact_risks([setting], sketches=sketches, seed=SEED)
        [smooth] = equivalent_risks([setting])
        excess = law.reducible - law.approx
        chance = np.sqrt(np.sum(seen.var(axis=1, ddof=1) / repetitions)) / sketches
        flagged = any(flag.code == "interpolation-peak" for flag in law.flags)
        yield (
            setting.M,
            (seen.mean() - approx.mean()) / excess,
            chance / excess,
            law.diagnostics["error"],
            float(flagged),
            seen.mean() / smooth.reducible,
        )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    found = np.array(list(compared(random_settings(SEED, count))))
    for M in COUNTS:
        _, ratio, chance, _, flagged, smooth = found[found[:, 0] == M].T
        for name, values in (("exact method", ratio), ("equivalent method", smooth)):
            shares = [f"{np.mean(np.abs(values - 1) <= share):.2f}" for share in (0.02, 0.05, 0.1, 0.2)]
            print(f"M = {M}, {name}: {len(values)} settings, within 2, 5, 10, 20 %: {', '.join(shares)};")
            most = values[flagged == 0].max()
            print(f"    {values.min():.2f} to {values.max():.2f}, unflagged at most {most:.2f}")
        print(f"    standard errors about {np.median(chance):.1%}")
    error, chance, stated = np.abs(found[:, 1] - 1), found[:, 2], found[:, 3]
    sure, near = np.mean(error <= stated), np.mean(error <= stated + chance)
    print(f"stated error: covers {sure:.0%}, with a standard error {near:.0%};")
    print(f"    median {np.median(stated):.2%}, of the observed one {np.median(error):.2%}")


if __name__ == "__main__":
    main()
