"""The Gram chain and direct simulation against each other, bare normals and a plain NumPy loop."""

from __future__ import annotations

import resource
import subprocess
import sys

import numpy as np
from threadpoolctl import threadpool_limits
from timing import best_times, report

from seqlaw import PRESETS
from seqlaw.methods.gram import gram_sums
from seqlaw.methods.kernel import NUMPY, Kernel, compiled
from seqlaw.methods.moments import cheaper_drawing, direct_cost, gram_cost, nested_moments, sample_moments
from seqlaw.methods.trajectories import block_rows, blocks, direct_sums
from seqlaw.model import gaussian_sketch

TEACHER = PRESETS["regime2"]
SIZES = [16384, 24576, 32768, 49152, 65536, 98304, 131072]
LENGTHS = [8, 12, 16, 24, 32, 40]


def chain_is_free_of_N() -> None:
    modes, S = TEACHER.modes(128), gaussian_sketch(20, 128)
    rng = np.random.default_rng(0)
    few, many = best_times(
        *(lambda N=N: gram_sums(rng, modes, S, N, (100,), NUMPY) for N in (10**3, 10**9)), rounds=9
    )
    report("Gram chain (d = 128), N = 1e9 over N = 1e3", many / few, "<= 1.2")


def paper_repetition() -> None:
    """Regime II, M = 40: seven N at P = 40 and six P at N = 65536, as one nested data set."""
    modes, S = TEACHER.modes(128), gaussian_sketch(40, 128)
    points = [(N, 40) for N in SIZES] + [(65536, P) for P in LENGTHS]
    rng = np.random.default_rng(0)

    def plain() -> dict[tuple[int, int], tuple[np.ndarray, np.ndarray]]:
        x = rng.standard_normal((SIZES[-1], 128)) * np.sqrt(modes.sigma_0)
        G, C = np.zeros((2, len(SIZES), 40, 40))
        out = {}
        for p in range(40):
            after = x * modes.a + rng.standard_normal(x.shape) * np.sqrt(modes.sigma_xi)
            u, y = x @ S.T, after @ S.T
            for k, N in enumerate(SIZES):
                G[k] += u[:N].T @ u[:N]
                C[k] += y[:N].T @ u[:N]
                if (N, p + 1) in points:
                    out[N, p + 1] = G[k] / (N * (p + 1)), C[k] / (N * (p + 1))
            x = after
        return out

    (ours,) = best_times(lambda: nested_moments(modes, S, points), rounds=5)
    (loop,) = best_times(plain, rounds=1)
    report(
        f"one Regime II repetition, NumPy loop ({loop:.1f} s) over ours ({ours:.2f} s)", loop / ours, ">= 30"
    )


def direct_against_normals() -> None:
    N, d, P = 4096, 128, 20
    modes, S = TEACHER.modes(d), gaussian_sketch(20, d)
    rng = np.random.default_rng(0)

    def run(loops: Kernel) -> None:
        for _, rows in blocks(0, N, d):
            direct_sums(rng, modes, S, rows, (P,), loops)

    def bare() -> None:
        for _ in range(P + 1):
            rng.standard_normal((N, d))

    fast = compiled()
    jobs = [bare, lambda: run(NUMPY)] + ([lambda: run(fast)] if fast else [])
    drawn, *ours = best_times(*jobs, rounds=7)
    for name, seconds in zip(("NumPy", "Numba"), ours, strict=False):
        report(f"direct sampling ({name}), N = 4096, over its bare normals", seconds / drawn, "<= 1.6")


def cost_model() -> None:
    """The model's constants against the clock, and what the automatic choice loses at most."""
    print(f"{'d':>6} {'M':>5} {'N':>7} {'gram ms':>9} {'model':>9} {'direct ms':>10} {'model':>9}  choice")
    worst = 1.0
    for d, M in ((16, 4), (64, 16), (128, 20), (128, 64), (256, 64), (512, 128)):
        modes, S = TEACHER.modes(d), gaussian_sketch(M, d)
        P = max(2, round(4e7 / (d**3 + 2e5)))
        for N in (2 * d, 4 * d, 16 * d):
            rng = np.random.default_rng(0)

            def direct(N=N, modes=modes, S=S, P=P, rng=rng) -> None:
                for _, rows in blocks(0, N, modes.d):
                    direct_sums(rng, modes, S, rows, (P,), NUMPY)

            def chain(N=N, modes=modes, S=S, P=P, rng=rng) -> None:
                gram_sums(rng, modes, S, N, (P,), NUMPY)

            gram, plain = (seconds / P for seconds in best_times(chain, direct, rounds=3))
            choice, _ = cheaper_drawing(N, d, M)
            worst = max(worst, (gram if choice == "gram" else plain) / min(gram, plain))
            print(
                f"{d:>6} {M:>5} {N:>7} {1e3 * gram:>9.3f} {gram_cost(d) / 1e6:>9.3f} "
                f"{1e3 * plain:>10.3f} {direct_cost(N, d, M) / 1e6:>9.3f}  {choice}"
            )
    report("time of the automatic choice over the better of the two, at worst", worst, "near 1")


def peak_memory() -> None:
    """In a process of its own, because the peak of a process only grows."""
    done = subprocess.run([sys.executable, __file__, "--peak"], capture_output=True, text=True, check=True)
    report("peak memory of direct sampling, N = 1e6, P = 64, d = 128, GiB", float(done.stdout), "< 1")


def run_for_peak() -> None:
    modes, S = TEACHER.modes(128), gaussian_sketch(20, 128)
    sample_moments(modes, S, 10**6, 64, drawing="direct")
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)  # kilobytes on Linux


if __name__ == "__main__":
    if "--peak" in sys.argv:
        run_for_peak()
        raise SystemExit
    print(f"blocks of {block_rows(128)} trajectories at d = 128")
    peak_memory()  # first: a child starts from the peak of its parent
    with threadpool_limits(1):
        chain_is_free_of_N()
        paper_repetition()
        direct_against_normals()
        cost_model()
