"""What choosing the step costs: `plan`, `tradeoff` and `ladder` with the best step over a given one.

CPU time, interleaved.

python benchmarks/bench_best_step.py        # three minutes
"""

from __future__ import annotations

import time
from collections.abc import Callable

from timing import report

from seqlaw import WSD, Budget, Setting, ladder, plan, tradeoff

PLANS = {
    "regime II, C = 1e15, T = 1e9, tested at 1024": ("regime2", 1e15, 1e9, 1024),
    "regime I, C = 1e18, T = 1e9, tested at 2048": ("regime1", 1e18, 1e9, 2048),
    "regime II, C = 1e12, T = 1e6, own length": ("regime2", 1e12, 1e6, None),
    "regime II, C = 1e8, T = 1e4, tested at 4": ("regime2", 1e8, 1e4, 4),
}
TRADEOFFS = {
    "M = 128, 2^24 tokens, 30,000 steps": (128, 2**24, 30_000),
    "M = 32, 1e4 tokens, 3,000 steps": (32, 1e4, 3_000),
}


def ratio(job: Callable[[bool], object]) -> tuple[float, float]:
    """Seconds at the given step, and the best over it: least CPU time of three interleaved rounds."""
    least = {True: float("inf"), False: float("inf")}
    for _ in range(4):  # the first warms up
        for tune in least:
            start = time.process_time()
            job(tune)
            least[tune] = min(least[tune], time.process_time() - start)
    return least[False], least[True] / least[False]


def main() -> None:
    for name, (teacher, compute, tokens, tested) in PLANS.items():
        budget, schedule = Budget(compute=compute, tokens=tokens), WSD(gamma=0.1, L=1000)
        given, times = ratio(
            lambda tune, t=teacher, b=budget, e=tested, s=schedule: plan(
                t, b, schedule=s, eval_length=e, tune=tune
            )
        )
        report(f"plan, {name} ({given:.2g} s)", times, "<= 1.5")
    for name, (M, tokens, L) in TRADEOFFS.items():
        student = Setting(teacher="regime2", M=M, N=1, P=2, d=8 * M, schedule=WSD(gamma=0.1, L=L))
        given, times = ratio(lambda tune, s=student, T=tokens: tradeoff(s, T, tune=tune))
        report(f"tradeoff, {name} ({given:.2g} s)", times, "<= 1.5")
    student = Setting(
        teacher="regime2", M=64, N=1, P=2, d=512, eval_length=4096, schedule=WSD(gamma=0.1, L=3000)
    )
    given, times = ratio(lambda tune: ladder(student, 2**24, tune=tune))
    report(f"ladder, M = 64, 3,000 steps ({given:.2g} s)", times, "(not asked)")


if __name__ == "__main__":
    main()
