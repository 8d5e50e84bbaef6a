"""A GPU against the bare time of its matrix products, and against one core of the same machine.

`python benchmarks/bench_gpu.py [part …]`: the functions below by name; all of them without.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from timing import report

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rows_of import exact_rows
from seqlaw import PRESETS, WSD, BlockDecay, Setting
from seqlaw.methods.method import Draws
from seqlaw.methods.moments import cheaper_drawing, direct_cost, gram_cost, nested_moments
from seqlaw.methods.sampled import Sampled
from seqlaw.model import gaussian_sketch
from seqlaw.model.checks import InputError, MissingLibrary
from seqlaw.model.device import WORTH, Device, device_of
from seqlaw.paper.experiments.panels import paper_panels
from seqlaw.paper.experiments.run import measure, plan

TEACHER = PRESETS["regime2"]
SCHEDULE = BlockDecay(gamma=0.1, L=302909)


def seconds(device: Device, job: Callable[[], object], rounds: int = 1) -> float:
    """The best of some rounds, with the device done."""
    best = float("inf")
    for _ in range(rounds):
        device.wait()
        start = time.perf_counter()
        job()
        device.wait()
        best = min(best, time.perf_counter() - start)
    return best


def bare(device: Device, M: int, d: int) -> float:
    """The products and decompositions of one exact sketch and nothing else, in torch."""
    S: Any = device.stream(0, "bare").standard_normal((M, d)) / M**0.5
    thin = max(16, 2**25 // d)
    G, rows = S @ S.T, S[:, :thin]

    def once() -> None:
        for _ in range(4):  # G, C, B*S, the whitened S
            S @ S.T
        for _ in range(0, d, thin):
            inner = rows.T @ S
            inner = rows.T @ S
            rows @ (inner @ S.T)
            rows @ rows.T
        device.torch.linalg.eigh(G)
        device.torch.linalg.eigvalsh(G)
        for _ in range(8):
            G @ G

    return seconds(device, once)


def exact(device: Device) -> None:
    """One sketch of the exact method, given the numbers of its sketch."""
    for M, d in ((1024, 4096), (8192, 32768), (16384, 65536)):
        point = Setting(teacher=TEACHER, M=M, N=65536, P=16, d=d, schedule=SCHEDULE)
        drawn = seconds(device, lambda M=M, d=d: gaussian_sketch(M, d, device=device))
        ours = seconds(device, lambda point=point: exact_rows([point], device="cuda"))
        memory = device.torch.cuda.max_memory_allocated() / 2**30
        least = bare(device, M, d)
        name = (
            f"exact ({M}, {d}), {memory:.0f} GiB: {ours:.2f} s, {drawn:.2f} s to draw S; rest over products"
        )
        report(name, (ours - drawn) / least, "<= 1.5")
        if M == 1024:
            core = seconds(device, lambda point=point: exact_rows([point]))
            report(f"  one core ({core:.1f} s) over the card", core / ours, "")


def one_pass_exact(device: Device) -> None:
    """The exact method of one pass."""
    for M, d in ((1024, 4096), (4096, 16384)):
        point = Setting(teacher=TEACHER, M=M, batch=4, P=16, d=d, schedule=WSD(gamma=0.1, L=10**5))
        card = seconds(device, lambda point=point: exact_rows([point], device="cuda"))
        if M == 1024:
            core = seconds(device, lambda point=point: exact_rows([point]))
            report(
                f"one pass exact ({M}, {d}), one core ({core:.1f} s) over card ({card:.2f} s)",
                core / card,
                "",
            )
        else:
            report(f"one pass exact ({M}, {d}), s", card, "")


def paper(device: Device) -> None:
    """Regime II, M = 40: seven N at P = 40 and six P at N = 65536, as one nested data set."""
    modes, S = TEACHER.modes(128), gaussian_sketch(40, 128)
    sizes, lengths = [16384, 24576, 32768, 49152, 65536, 98304, 131072], [8, 12, 16, 24, 32, 40]
    points = [(N, 40) for N in sizes] + [(65536, P) for P in lengths]
    core = seconds(device, lambda: nested_moments(modes, S, points), rounds=2)
    card = seconds(device, lambda: nested_moments(modes, S, points, device=device), rounds=3)
    report(f"a Regime II repetition, one core ({core:.2f} s) over card ({card:.3f} s)", core / card, "")


def one_pass(device: Device) -> None:
    """10⁴ simulations side by side; one core is timed on a hundredth of them."""
    point = Setting(teacher=TEACHER, M=16, batch=2, P=8, d=64, schedule=WSD(gamma=0.1, L=1000))
    method = Sampled()

    def run(repetitions: int, name: str | None) -> Callable[[], object]:
        draws = Draws(sketches=1, repetitions=repetitions, device=name)
        return lambda: method.rows([point], draws)

    run(10, "cuda")()
    card = seconds(device, run(10**4, "cuda"))
    core = 100 * seconds(device, run(100, None))
    report(f"10^4 one-pass simulations, one core ({core:.1f} s) over card ({card:.2f} s)", core / card, "")


def table(device: Device) -> None:
    """The paper's sampled table: all rows of its six panels, and those of the two with data."""
    for letters in ("abde", "cf", "abcdef"):
        panels = [one for name, one in paper_panels().items() if name in letters]

        def run(panels: list[Any] = panels) -> None:
            with tempfile.TemporaryDirectory() as folder:
                where = Path(folder)
                work = plan(panels, ["sampled", "equivalent"], folder=where, seed=0, device="cuda")
                measure([work], folder=where)

        report(f"the paper's sampled table, panels {letters}, s", seconds(device, run), "< 10")


def model(device: Device) -> None:
    """The cost model that chooses between chain and simulation, against the clock."""
    print(f"{'d':>6} {'M':>5} {'N':>8} {'gram us':>9} {'model':>9} {'direct us':>10} {'model':>9}  choice")
    for d, M in ((128, 40), (256, 64), (512, 128), (1024, 256), (2048, 512)):
        modes, S = TEACHER.modes(d), gaussian_sketch(M, d)
        for N in (2 * d, 32 * d, 512 * d):
            P, took = 16, []
            for drawing in ("gram", "direct"):
                run = partial(nested_moments, modes, S, [(N, P)], drawing=drawing, device=device)
                run()
                took.append(seconds(device, run, rounds=2) / P * 1e6)
            gram, direct = gram_cost(d, True) / 1e3, direct_cost(N, d, M, True) / 1e3
            choice, _ = cheaper_drawing(N, d, M, True)
            print(
                f"{d:>6} {M:>5} {N:>8} {took[0]:>9.0f} {gram:>9.0f} {took[1]:>10.0f} {direct:>9.0f}  {choice}"
            )


def worth(device: Device) -> None:
    """From which size on a sketch's matrices gain, `WORTH` numbers."""
    import seqlaw.model.sketch as sketch

    print(f"{'M':>6} {'d':>6} {'M d':>8} {'core ms':>9} {'card ms':>9}   (WORTH = {WORTH})")
    sketch.WORTH = 0
    for M, d in ((66, 128), (66, 256), (66, 512), (128, 512), (128, 1024), (512, 2048)):
        point = Setting(teacher=TEACHER, M=M, N=65536, P=16, d=d, schedule=SCHEDULE)
        took = []
        for name in (None, "cuda"):
            run = partial(exact_rows, [point], device=name)
            run()
            took.append(1e3 * seconds(device, run, rounds=3))
        print(f"{M:>6} {d:>6} {M * d:>8} {took[0]:>9.1f} {took[1]:>9.1f}")
    sketch.WORTH = WORTH


PARTS = (exact, one_pass_exact, paper, one_pass, table, model, worth)

if __name__ == "__main__":
    try:
        device = device_of("cuda")
    except (InputError, MissingLibrary) as error:
        print(f"not run: {error}")
        sys.exit(0)
    assert device is not None
    print(f"{device.card}, torch {device.torch.__version__}, NumPy {np.__version__}")
    asked = sys.argv[1:] or [part.__name__ for part in PARTS]
    exact_rows([Setting(teacher=TEACHER, M=256, N=65536, P=16, d=1024, schedule=SCHEDULE)], device="cuda")
    for part in PARTS:
        if part.__name__ in asked:
            part(device)
