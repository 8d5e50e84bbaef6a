"""The law at any amount of data: its cost in N, P and L, beside the frozen filter, and through the peak."""

from __future__ import annotations

import math
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits
from timing import best_times, report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rows_of import exact_rows
from seqlaw import PRESETS, WSD, Setting, curve
from seqlaw.methods import equivalent_risks

BASE = Setting(teacher=PRESETS["regime2"], M=64, N=100, P=100, d=math.inf, schedule=WSD(gamma=0.1, L=10**4))


def flat() -> None:
    """A hundred and a million million of each size."""
    for size in ("N", "P", "L"):
        settings = [
            replace(BASE, schedule=BASE.schedule.with_steps(value))
            if size == "L"
            else replace(BASE, **{size: value})
            for value in (10**2, 10**12)
        ]
        few, many = best_times(*(lambda s=s: equivalent_risks([s]) for s in settings), rounds=9)
        report(f"one point at {size} = 1e12 over {size} = 1e2", many / few, "<= 2")


def beside_the_frozen_filter() -> None:
    for d in (1024, math.inf):
        for rho in (0.55, 0.9, 0.97):
            setting = replace(BASE, teacher=replace(PRESETS["regime2"], rho=rho), d=d)
            law, frozen = best_times(
                lambda s=setting: equivalent_risks([s]),
                lambda s=setting: equivalent_risks([s], frozen=True),
                rounds=5,
            )
            asked = "<= 4" if rho == 0.55 else "(not asked)"
            report(
                f"one point over the frozen filter, d = {d}, rho = {rho} ({1e3 * law:.0f} ms)",
                law / frozen,
                asked,
            )


def through_the_peak() -> None:
    for P in (1, 16, 1024):
        values = np.unique(np.geomspace(1 if P > 64 else 2, 1e6, 300).round())[:200].tolist()
        (seconds,) = best_times(lambda P=P, v=values: curve(replace(BASE, P=P), "N", v), rounds=3)
        report(f"a curve of {len(values)} points along N at P = {P}, seconds", seconds, "< 3")


def given_sketches() -> None:
    for M in (16, 48, 64, 96, 256):
        setting = replace(BASE, M=M, d=4 * M)
        (seconds,) = best_times(lambda s=setting: exact_rows([s], sketches=4), rounds=3)
        report(f"the exact method at M = {M}, milliseconds a sketch", 250 * seconds, "(not asked)")


if __name__ == "__main__":
    with threadpool_limits(1):
        flat()
        beside_the_frozen_filter()
        through_the_peak()
        given_sketches()
