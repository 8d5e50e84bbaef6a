"""10^8 numbers forecast from a memory-mapped file: seconds and peak memory, at three shapes.

Each shape runs in a process of its own, whose peak memory is its own. The alternative beside it is what
anyone would do first: one student, trained step by step on all of the data (`descend`, 500 steps).
"""

from __future__ import annotations

import resource
import time

import numpy as np
from bench_measure import SHAPES, write
from timing import of_files


def run(path: str) -> tuple[float, float, float]:
    from seqlaw import WSD, forecast
    from seqlaw.model import descend

    start = time.perf_counter()
    answer = forecast(path)
    seconds = time.perf_counter() - start
    assert answer.rows, answer.flags
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    X = np.load(path)
    start = time.perf_counter()
    D = X.shape[2]
    u, y = X[:, :-1].reshape(-1, D).astype(np.float64), X[:, 1:].reshape(-1, D).astype(np.float64)
    descend(u.T @ u / len(u), y.T @ u / len(u), WSD(gamma=answer.curves[-1].schedule.gamma, L=500))
    return seconds, peak, time.perf_counter() - start


if __name__ == "__main__":
    of_files("forecast", SHAPES, write, run, asked="< 120", naive="training one student step by step")
