"""The equivalent method: a large point against a small one, curves of 200 points, the paper's table."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits
from timing import best_times, report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rows_of import exact_rows, sampled_rows
from seqlaw import PRESETS, WSD, Setting, curve
from seqlaw.methods import equivalent_risk, equivalent_risks
from seqlaw.paper.experiments.panels import paper_panels


def point(M: int, d: float) -> Setting:
    return Setting(teacher=PRESETS["regime2"], M=M, N=4096, P=64, d=d, schedule=WSD(gamma=0.1, L=30_000))


def points() -> None:
    small, large = point(10**3, 10**4), point(10**6, 10**12)
    t_small, t_large = best_times(lambda: equivalent_risk(small), lambda: equivalent_risk(large), rounds=20)
    report("one point, (M, d) = (1e6, 1e12) over (1e3, 1e4)", t_large / t_small, "<= 5")


def curves() -> None:
    base = point(128, 1024)
    grids = {
        "M": np.unique(np.geomspace(8, 1000, 230).round())[:200],
        "P": np.unique(np.geomspace(2, 1e6, 220).round())[:200],
        "R": np.geomspace(10, 1e8, 200),
        "N": np.unique(np.geomspace(10, 1e9, 200).round()),
    }
    for axis, values in grids.items():
        (t,) = best_times(lambda a=axis, v=values: curve(base, a, v.tolist()), rounds=3)
        report(f"a curve of {len(values)} points along {axis}, seconds", t, "< 3, with the law at any data")
    (t,) = best_times(lambda: curve(point(128, math.inf), "R", grids["R"].tolist()), rounds=2)
    report("a curve of 200 points along R at d = inf, seconds", t, "(not asked)")


def paper_table() -> None:
    """All ten slopes on the equivalent method and the six of the variance on the exact one, against sampling.

    Sampling is measured on one data set of each variance panel, 1/6 and 1/16 of what the paper takes.
    """
    panels = paper_panels()
    start = time.perf_counter()
    for panel in panels.values():
        equivalent_risks(panel.settings)
    closed = time.perf_counter() - start
    for name in "cf":
        exact_rows(panels[name].settings, sketches=panels[name].sketches)
    exact = time.perf_counter() - start
    start, sampled = time.perf_counter(), 0.0
    for name in "cf":
        start = time.perf_counter()
        sampled_rows(panels[name].settings)
        sampled += (time.perf_counter() - start) * panels[name].sketches * panels[name].repetitions
    report(f"ten slopes sampled ({sampled:.0f} s) over closed ({closed:.2f} s)", sampled / closed, ">= 100")
    both = f"the same over closed, and exact on the {sum(panels[name].sketches for name in 'cf')} sketches"
    report(f"{both} ({exact:.2f} s)", sampled / exact, "(not asked)")


if __name__ == "__main__":
    with threadpool_limits(1):
        start = time.perf_counter()
        points()
        curves()
        paper_table()
        print(f"{time.perf_counter() - start:.1f} s in all")
