"""10^8 numbers measured from a memory-mapped file: seconds and peak memory, at three shapes.

Each shape runs in a process of its own, whose peak memory is its own. The alternative beside it is what
anyone would write first: load the array, one matrix product for G and one for C.
"""

from __future__ import annotations

import resource
import time
from pathlib import Path

import numpy as np
from timing import of_files

SHAPES = ((24_414, 64, 64), (6_104, 64, 256), (1_526, 64, 1024))


def write(path: Path, shape: tuple[int, int, int]) -> None:
    """Autoregressive sequences with falling spectra, a block at a time."""
    N, P, D = shape
    rng = np.random.default_rng(0)
    out = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    scale, a = np.arange(1, D + 1) ** -0.75, 0.6 * np.arange(1, D + 1) ** -0.25
    for start in range(0, N, 1024):
        noise = rng.standard_normal((min(1024, N - start), P, D), dtype=np.float32)
        noise *= scale
        for p in range(1, P):
            noise[:, p] += a * noise[:, p - 1]
        out[start : start + 1024] = noise
    out.flush()


def run(path: str) -> tuple[float, float, float]:
    from seqlaw import measure

    start = time.perf_counter()
    measure(path)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    X = np.load(path)
    start = time.perf_counter()
    D = X.shape[2]
    u, y = X[:, :-1].reshape(-1, D).astype(np.float64), X[:, 1:].reshape(-1, D).astype(np.float64)
    _ = u.T @ u, y.T @ u
    return seconds, peak, time.perf_counter() - start


if __name__ == "__main__":
    of_files("measure", SHAPES, write, run, asked="< 60", naive="loading all and two products")
