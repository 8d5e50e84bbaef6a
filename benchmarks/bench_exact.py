"""The exact method: free of the length, against a sum over pairs of positions and against sampling."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits
from timing import best_times, report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rows_of import exact_rows, sampled_rows
from seqlaw import PRESETS, BlockDecay, Setting
from seqlaw.methods.score import lag_sums, score
from seqlaw.methods.stage import at_rest, full_batch
from seqlaw.model import gaussian_sketch, sketched_problem

TEACHER = PRESETS["regime2"]
SCHEDULE = BlockDecay(gamma=0.1, L=302909)


def free_of_the_length() -> None:
    for M, d in ((40, 128), (128, 512), (512, 2048)):
        modes, S = TEACHER.modes(d), gaussian_sketch(M, d)

        def variance(P: int, modes=modes, S=S) -> float:
            problem = sketched_problem(modes, S, P)
            noise = score(problem).covariance / (4096 * P)
            return full_batch(at_rest(problem), problem, noise, SCHEDULE).terms(problem)["variance"]

        short, long = best_times(
            *(lambda P=P, variance=variance: variance(P) for P in (10, 10**9)), rounds=3 if d > 1000 else 15
        )
        name = f"exact variance ({M}, {d}; {1e3 * short:.3g} ms), P = 1e9 over P = 10"
        report(name, long / short, "<= 1.5")


def against_pairs_of_positions() -> None:
    modes, P = TEACHER.modes(128), 64
    sigma = modes.covariance(np.arange(P))
    w = np.multiply.outer(modes.a, modes.a)

    def pairs() -> None:
        K = np.zeros_like(w)
        for p in range(P):
            for q in range(P):
                early = sigma[min(p, q)]
                K += np.multiply.outer(early, early) * w ** abs(p - q)

    closed, naive = best_times(lambda: lag_sums(modes, P), pairs, rounds=2)
    report("K by pairs of positions over K and J by doubling, P = 64, d = 128", naive / closed, ">> 1")


def against_sampling() -> None:
    point = Setting(teacher=TEACHER, M=40, N=65536, P=40, d=128, schedule=SCHEDULE)
    exact, sampled = best_times(lambda: exact_rows([point]), lambda: sampled_rows([point]), rounds=5)
    report("one sampled data set over the exact expectation, same sketch", sampled / exact, "> 1")


if __name__ == "__main__":
    with threadpool_limits(1):
        free_of_the_length()
        against_pairs_of_positions()
        against_sampling()
