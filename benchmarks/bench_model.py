"""Filters against direct products, and a Problem against the bare time of its linear algebra."""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh
from threadpoolctl import threadpool_limits
from timing import best_times, report

from seqlaw import PRESETS, WSD
from seqlaw.model import gaussian_sketch, sketched_problem


def filters() -> None:
    s = np.geomspace(1e-9, 5.0, 512)
    short, middle, long = (WSD(gamma=0.1, L=L) for L in (2 * 10**3, 2 * 10**6, 2 * 10**9))

    def direct() -> None:
        total = np.zeros_like(s)
        for t in range(1, middle.L + 1, 2**14):
            steps = middle.at(np.arange(t, min(t + 2**14, middle.L + 1)))
            total += np.log1p(-steps[:, None] * s).sum(axis=0)

    t_short, t_long, t_middle = best_times(
        *(lambda x=x: x.response(s) for x in (short, long, middle)), rounds=50
    )
    (t_direct,) = best_times(direct, rounds=1)
    report("WSD filter on 512 eigenvalues, L = 2e9 over L = 2e3", t_long / t_short, "<= 3")
    report("direct product over WSD filter, L = 2e6", t_direct / t_middle, ">= 1000")


def problem() -> None:
    M, d, P = 1024, 2048, 16
    modes, S = PRESETS["regime2"].modes(d), gaussian_sketch(M, d)
    solved = sketched_problem(modes, S, P)
    root = S * np.sqrt(solved.h)
    shifted = root * modes.a

    def bare() -> None:  # G, C, one eigh, B*, D: the products alone
        G = root @ root.T
        C = shifted @ root.T
        _, U = eigh(G, driver="evd", check_finite=False)
        B = (C @ U) @ U.T
        B @ S

    t_problem, t_bare = best_times(lambda: sketched_problem(modes, S, P), bare, rounds=5)
    report("Problem at (M, d) = (1024, 2048) over its products and one eigh", t_problem / t_bare, "<= 1.3")


if __name__ == "__main__":
    with threadpool_limits(1):
        filters()
        problem()
