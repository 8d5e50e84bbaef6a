"""What rungs say that a task costs, against the processor time it takes: `python benchmarks/bench_cost.py`.

Prints the ratio taken over said at points drawn at random, and where nine in ten of them lie.
"""

from __future__ import annotations

import time

import numpy as np

from seqlaw import WSD, BlockDecay, Setting
from seqlaw.methods.ask import method_of
from seqlaw.methods.method import Draws
from seqlaw.model.lengths import Lengths

_KINDS = ("full", "full", "mixture", "one pass", "phases")
_RUNGS = ("sampled", "exact", "equivalent")


def drawn(rng: np.random.Generator, kind: str) -> Setting:
    """A setting of moderate size."""
    P = int(2 ** rng.uniform(1, 8))
    both = Lengths((P, 4 * P), (0.7, 0.3), phases=kind == "phases")
    many = int(2 ** rng.uniform(4, 10))
    sizes = {"batch": max(many // 64, 1)} if kind == "one pass" else {"N": many}
    L = int(10 ** rng.uniform(2, 3.5))
    return Setting(
        teacher=("regime1", "regime2")[rng.integers(2)],
        M=int(2 ** rng.uniform(3, 8)),
        P=P if kind in ("full", "one pass") else both,
        d=int(2 ** rng.uniform(8, 10)),
        schedule=(BlockDecay, WSD)[rng.integers(2)](gamma=0.1, L=L),
        eval_length=64 if kind == "phases" else None,
        **sizes,
    )


def main() -> None:
    rng, ratios = np.random.default_rng(0), []
    for index in range(120):
        kind, name = _KINDS[index % len(_KINDS)], _RUNGS[index % len(_RUNGS)]
        setting = drawn(rng, kind)
        rung = method_of(name)
        if rung.refuses(setting) is not None:
            continue
        draws = Draws(sketches=4, repetitions=2)
        said = rung.cost([setting], draws).seconds
        start = time.process_time()
        rung.rows([setting], draws)
        ratios.append((time.process_time() - start) / said)
        print(f"{kind:>8} {name:>10}  said {said:8.3f} s, took {ratios[-1]:5.2f} times that", flush=True)
    low, middle, high = np.quantile(ratios, [0.05, 0.5, 0.95])
    print(f"{len(ratios)} points: nine in ten took {low:.2f} to {high:.2f} times, the middle {middle:.2f}")


if __name__ == "__main__":
    main()
