"""How often the errors that the closed laws state hold, on random settings against simulation.

python benchmarks/coverage_stated.py few 200        (exact and equivalent, N at most 9: about 15 minutes)
python benchmarks/coverage_stated.py phases 80      (exact, full batch, in phases: about 5 minutes)
python benchmarks/coverage_stated.py one-pass 60    (the variance, against the whole recursion: one minute)

Other seeds set the stated errors: these settings only check them. A setting is covered where the simulation
lies within the stated error plus twice its own standard error.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from stated import campaign

SEEDS = {"few": 3035, "phases": 5036, "one-pass": 2033}


def table(name, found):
    """One line: coverage with and without the own standard error, and the medians."""
    known = [one for one in found if np.isfinite(one.stated)]
    errors, bounds = (np.array(x) for x in zip(*((abs(o.ratio - 1), o.stated) for o in known), strict=True))
    print(
        f"{name}: {len(known)} of {len(found)} settings state a number\n"
        f"    covered {np.mean([one.covered for one in known]):.1%}, "
        f"without the own sampling error {np.mean(errors <= bounds):.1%}\n"
        f"    median stated {np.median(bounds):.2%}, actual {np.median(errors):.2%}, "
        f"sampling {np.median([one.chance for one in known]):.2%}; actual at most {max(errors):.1%}, "
        f"low in {np.mean([one.ratio > 1 for one in known]):.0%}",
        flush=True,
    )


def main() -> None:
    family, count = sys.argv[1], int(sys.argv[2])
    for name, found in campaign(family, count, SEEDS[family]).items():
        table(name, found)


if __name__ == "__main__":
    main()
