"""`seqlaw reproduce` against a plain NumPy script of the same grids, and against the clock.

The plain script does what the paper's appendix says, one data set after the other, with NumPy's own threads.
It is measured on a stated share of each panel and scaled up; ours runs in full, figure and report included.
"""

from __future__ import annotations

import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable

import numpy as np
from timing import report

GAMMA = 0.1
TEACHERS = {"I": (1.5, 2.5, 0.2, 0.55, 0.05, 0.01), "II": (1.8, 1.25, 0.35, 0.55, 0.03, 0.30)}


def modes(regime: str, d: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    alpha, theta, r, rho, c_xi, c_0 = TEACHERS[regime]
    j = np.arange(1, d + 1)
    return rho * j**-r, c_xi * j**-alpha, c_0 * j**-theta


def averaged(regime: str, d: int, P: int) -> np.ndarray:
    a, sx, s0 = modes(regime, d)
    m = (1 - a ** (2 * P)) / (P * (1 - a**2))
    return s0 * m + sx / (1 - a**2) * (1 - m)


def block_filters(mu: np.ndarray, L: int) -> tuple[np.ndarray, np.ndarray]:
    """ψ and g of the block schedule, block by block."""
    L_eff = int(L / math.log(L))
    psi = np.ones_like(mu)
    for block in range(-(-L // L_eff)):
        steps = min(L_eff, L - block * L_eff)
        psi *= (1 - GAMMA / 2**block * mu) ** steps
    return psi, (1 - psi) / mu


def population(
    regime: str, S: np.ndarray, P: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, float]:
    d = S.shape[1]
    a, h = modes(regime, d)[0], averaged(regime, d, P)
    G, C = (S * h) @ S.T, (S * (a * h)) @ S.T
    B = np.linalg.solve(G + 1e-14 * np.trace(G) / len(G) * np.eye(len(G)), C.T).T
    Q = S * np.sqrt(h)
    residual = S * a * np.sqrt(h) - B @ Q
    mu, U = np.linalg.eigh(G)
    return G, B, mu, U, 0.5 * float(np.sum(residual**2))


def sketch(rng: np.random.Generator, M: int, d: int) -> np.ndarray:
    return rng.standard_normal((M, d)) / np.sqrt(M)


def approximation(regime: str, M: list[int], d: int, P: list[int], rng: np.random.Generator) -> None:
    for width in M:
        S = sketch(rng, width, d)
        for length in P:
            population(regime, S, length)


def bias(regime: str, M: int, d: int, P: list[int], L: list[int], rng: np.random.Generator) -> None:
    S = sketch(rng, M, d)
    for length in P:
        G, B, mu, U, _ = population(regime, S, length)
        for steps in L:
            left = (B @ U) * block_filters(mu, steps)[0] @ U.T
            0.5 * np.sum((left @ G) * left)


def variance(
    regime: str,
    M: int,
    d: int,
    N: list[int],
    P: list[int],
    L: list[int],
    positions: int,
    rng: np.random.Generator,
) -> None:
    """One nested data set, `positions` of its transitions."""
    S = sketch(rng, M, d)
    a, sx, s0 = modes(regime, d)
    x = rng.standard_normal((N[-1], d)) * np.sqrt(s0)
    G, C = np.zeros((2, len(N), M, M))
    for _ in range(positions):
        after = a * x + rng.standard_normal(x.shape) * np.sqrt(sx)
        u, y = x @ S.T, after @ S.T
        for k, n in enumerate(N):
            G[k] += u[:n].T @ u[:n]
            C[k] += y[:n].T @ u[:n]
        x = after
    _, B, _, _, _ = population(regime, S, P[-1])
    for k in range(len(N) + len(P)):
        k = min(k, len(N) - 1)
        mu, U = np.linalg.eigh(G[k] / (N[k] * positions))
        for steps in L:
            noise = ((C[k] - B @ G[k]) @ U) * block_filters(np.maximum(mu, 1e-12), steps)[1] @ U.T
            0.5 * np.sum((noise @ G[k]) * noise)


def plain_seconds() -> np.ndarray:
    """The whole of the paper's grids, from a share of each panel: by the clock, and of processor time."""
    rng = np.random.default_rng(0)
    P_d, P_e, P_f = [4, 6, 8, 12, 16, 24, 32, 48], [4, 6, 8, 12, 16, 24], [8, 12, 16, 24, 32, 40]
    N_c, N_f = [1024, 1536, 2048, 3072, 4096], [16384, 24576, 32768, 49152, 65536, 98304, 131072]
    # Panels c and f: the start counts as a position, since its states are drawn like all the others.
    jobs: list[tuple[str, float, Callable[[], None]]] = [
        ("a", 1 / 8, lambda: approximation("I", [12, 16, 24, 32, 48, 64, 96, 128], 768, [4096], rng)),
        ("b", 1 / 3, lambda: bias("I", 512, 2048, [4096], [4000 * 2**k for k in range(10)], rng)),
        ("c", 65 / 4097 / 6, lambda: variance("I", 20, 128, N_c, N_c, [64000], 64, rng)),
        ("d", 2 / 64, lambda: approximation("II", [512], 2048, P_d[:2], rng)),
        ("e", 2 / 30, lambda: bias("II", 1024, 2048, P_e[:2], [142397], rng)),
        ("f", 5 / 41 / 16, lambda: variance("II", 40, 128, N_f, P_f, [302909], 4, rng)),
    ]
    total = np.zeros(2)
    for name, share, job in jobs:
        start = np.array([time.perf_counter(), time.process_time()])
        job()
        seconds = (np.array([time.perf_counter(), time.process_time()]) - start) / share
        total += seconds
        wall, busy = seconds
        print(f"plain NumPy, panel ({name}): {wall:7.1f} s ({busy:.1f} of processor), from {share:.2%} of it")
    return total


def ours(*options: str) -> tuple[float, float]:
    """Wall-clock and processor seconds of the command in a process of its own, in a new folder."""
    with tempfile.TemporaryDirectory() as out:
        line = [sys.executable, "-c", "import sys; from seqlaw.cli import main; main(sys.argv[1:])"]
        before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run([*line, "reproduce", "--out", out, *options], check=True, stdout=subprocess.DEVNULL)
        wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    return wall, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    print(f"{cores} cores, load {load:.1f}: on a busy machine read processor time and ratios")
    wall, busy = ours("--method", "equivalent")
    report(f"--method equivalent, s ({busy:.1f} s of processor)", wall, "< 6")
    wall, busy = ours("--quick")
    report(f"--quick, s ({busy:.1f} s of processor)", wall, "< 15")
    before = plain_seconds()
    wall, busy = ours()
    after = plain_seconds()  # again after ours, so that a change of load shows
    plain = (before + after) / 2
    report(f"sampled run, s ({busy:.0f} s of processor)", wall, "<= 150")
    clock = f"{before[0]:.0f} and {after[0]:.0f}"
    report(f"plain NumPy ({clock} s) over ours ({wall:.0f} s), by the clock", plain[0] / wall, ">= 6")
    report(f"processor time, plain ({plain[1]:.0f} s) over ours ({busy:.0f} s)", plain[1] / busy, "")
