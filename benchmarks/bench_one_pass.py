"""One pass: the law against simulating it, and its cost in the number of steps."""

from __future__ import annotations

from dataclasses import replace

from timing import best_times, report

from seqlaw import PRESETS, BlockDecay, Setting
from seqlaw.methods.ask import METHODS
from seqlaw.methods.method import Draws
from seqlaw.methods.one_pass.equivalent import one_pass_equivalent

BASE = Setting(teacher=PRESETS["regime2"], M=48, P=8, d=96, batch=4, schedule=BlockDecay(gamma=0.2, L=10**5))


def beside_simulation() -> None:
    """100 replicates of 10^5 steps are simulated as 4 of 10^4 and scaled: every step costs the same."""
    few = replace(BASE, schedule=BASE.schedule.with_steps(10**4))
    law, simulated = best_times(
        lambda: METHODS["exact"].risks([BASE], Draws(sketches=1)),
        lambda: METHODS["sampled"].risks([few], Draws(sketches=1, repetitions=4)),
        rounds=2,
    )
    report(
        "simulating 100 replicates of 1e5 steps over the law, set-up included",
        250 * simulated / law,
        ">= 1000",
    )


def in_the_steps() -> None:
    for name, ask in (
        ("exact", lambda s: METHODS["exact"].risks([s], Draws(sketches=1))),
        ("equivalent", lambda s: one_pass_equivalent([s])),
    ):
        runs = [replace(BASE, schedule=BASE.schedule.with_steps(L)) for L in (10**3, 10**9)]
        few, many = best_times(*(lambda s=s, ask=ask: ask(s) for s in runs), rounds=7)
        report(f"{name}, block: L = 1e9 over L = 1e3", many / few, "<= 3")


if __name__ == "__main__":
    beside_simulation()
    in_the_steps()
