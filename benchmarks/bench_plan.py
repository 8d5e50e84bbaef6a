"""`plan` against an older checkout, and a curve along R against one of its points; ratios, in one run.

git worktree add --detach ../base 8dbc279
python benchmarks/bench_plan.py --base ../base
"""

from __future__ import annotations

import argparse
import math
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from timing import best_times, report

from seqlaw import WSD, Setting, curve
from seqlaw.methods import equivalent_risks
from seqlaw.methods.ask import along

BUDGETS = {
    "the default": ("regime2", 1e15, 1e9, None),
    "the heaviest, C = 1e22, T = 1e12": ("regime1", 1e22, 1e12, None),
    "a long valley, tested at 2048": ("regime1", 1e18, 1e9, 2048),
}
PLAN = """
import time
from seqlaw import PRESETS, Budget, plan
teacher, compute, tokens, tested = {budget!r}
times = []
for _ in range(4):
    began = time.perf_counter()
    plan(PRESETS[teacher], Budget(compute=compute, tokens=tokens), eval_length=tested)
    times.append(time.perf_counter() - began)
print(min(times))
"""


def seconds(checkout: Path, budget: tuple[object, ...]) -> float:
    """The best of four plans, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    command = [sys.executable, "-c", PLAN.format(budget=budget)]
    return float(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)


def plans(base: Path | None) -> None:
    here = Path(__file__).parent.parent
    for name, budget in BUDGETS.items():
        rounds = [[seconds(place, budget) for place in (here, base) if place] for _ in range(3)]
        times = np.min(rounds, axis=0)
        report(f"a plan, {name}, seconds", times[0], "a few tenths")
        if base:
            asked = "(not asked)" if budget[3] else ">= 10"
            report(f"the same with {base}, times as long", times[1] / times[0], asked)


def horizons() -> None:
    for d, tested in ((math.inf, None), (math.inf, 4096), (1024, None)):
        setting = Setting(
            teacher="regime2", M=128, N=4096, P=64, d=d, eval_length=tested, schedule=WSD(gamma=0.1, L=30_000)
        )
        R = np.geomspace(10, 1e8, 200).tolist()
        points = [along(setting, "R", x) for x in (R[100:101], R)]
        jobs = [lambda p=p: equivalent_risks(p, frozen=True) for p in points]
        one, many, law = best_times(*jobs, lambda s=setting, x=R: curve(s, "R", x), rounds=3)
        told = f"d = {d}, tested at {tested or 'its own length'}, one {1000 * one:.0f} ms"
        report(f"200 horizons over one, the filter frozen, {told}", many / one, "<= 2")
        report("    as a curve with the law at any amount of data, seconds", law, "(not asked)")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", type=Path, help="a checkout to compare with")
    plans(parser.parse_args().base)
    horizons()
