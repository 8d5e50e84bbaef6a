"""How often the error that the law of epochs states holds, on random settings against the sampled method.

python benchmarks/coverage_epochs.py            (100 settings of seed 17: 60 of all kinds, 20 with P of 64
                                                 and more, 20 at another test length; minutes on one core)
python benchmarks/coverage_epochs.py 20 8 long  (of one kind: all, long, moved or decay)

Sketches are paired. Seed 1 set the stated error: other seeds check it. Each setting prints one line: sampled
over law, its standard error, the stated error, and what the setting was.
"""

from __future__ import annotations

import math
import sys
from pathlib import Path

import numpy as np

from seqlaw import WSD, BlockDecay, Constant, Cosine, Setting
from seqlaw.methods.exact import Exact
from seqlaw.methods.method import Draws
from seqlaw.methods.sampled import Sampled
from seqlaw.model.threads import one_thread

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from stated import random_teacher

KINDS = (Constant, Cosine, WSD, BlockDecay)
SKETCHES = 2
WORK = 1e8  # numbers that the trajectories of all data sets of a setting may have


def random_setting(rng, kind):
    """Sizes that sample quickly, the step between 5 % and all of what the safeguard allows."""
    M = int(rng.integers(8, 25))
    longest = (64, 128) if kind == "long" else (1, 32)
    P = int(np.exp(rng.uniform(*np.log(longest))))
    batch, epochs = int(2 ** rng.integers(0, 4)), round(float(np.exp(rng.uniform(*np.log((2, 32))))))
    steps = int(np.exp(rng.uniform(*np.log((4, 48)))))
    steps = max(4, min(steps, 768 // epochs))
    moved = kind == "moved" or (kind == "all" and rng.random() < 0.3)
    made = KINDS[rng.integers(4)](gamma=1e9, L=epochs * steps)
    sizes = {"teacher": random_teacher(rng), "M": M, "d": int(rng.integers(2 * M, 3 * M + 1)), "P": P}
    sizes["eval_length"] = int(np.exp(rng.uniform(0, np.log(64)))) if moved else None
    free = Setting(**sizes, schedule=made, batch=batch, epochs=epochs)
    rows = Exact().rows([free.but(epochs=1)], Draws(sketches=SKETCHES))
    largest = min(row["gamma"] for row in rows)
    found = free.but(schedule=made.scaled(largest * 10 ** rng.uniform(-1.3, 0)))
    if kind == "decay":  # of the largest eigenvalue of G, which the largest step is half the inverse of
        found = found.but(weight_decay=float(10 ** rng.uniform(-3.5, -1.5) / (2 * largest)))
    return found


def compared(setting):
    """Sampled over law of the excess, its standard error, the stated error, and the largest γ/γ_max."""
    law = Exact().rows([setting], Draws(sketches=SKETCHES))
    size = setting.N * (setting.P + 1) * max(setting.d, setting.M * setting.epochs / 2)
    count = 16 * int(np.clip(WORK / size / SKETCHES / 16, 6, 60))
    drawn = Sampled().rows([setting], Draws(sketches=SKETCHES, repetitions=count))
    seen = [
        np.array([row["reducible"] - row["approx"] for row in drawn if row["sketch"] == k])
        for k in range(SKETCHES)
    ]
    own = float(np.mean([row["reducible"] - row["approx"] for row in law]))
    chance = math.sqrt(sum(x.var(ddof=1) / x.size for x in seen)) / SKETCHES
    shares = [row["gamma"] / row["gamma_max"] for row in law]
    return (
        float(np.mean([x.mean() for x in seen])) / own,
        chance / own,
        max(row["error"] for row in law),
        max(shares),
        float(np.mean([row["full_batch"] for row in law])) / own,
    )


def measured(count, seed, kind):
    """(sampled over law, its standard error, the stated error) of each setting; each prints a line."""
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        setting = random_setting(rng, kind)
        ratio, chance, stated, share, full = compared(setting)
        found.append((ratio, chance, stated))
        names = {"N": setting.N, "P": setting.P, "K": setting.epochs, "b": setting.batch, "M": setting.M}
        about = " ".join(f"{name}={value}" for name, value in names.items())
        print(
            f"{ratio:.4f} {chance:.4f} {stated:.4f}  {share:.2f} of gamma_max, full batch {full:.3f}, "
            f"{about} {setting.schedule.name} L={setting.schedule.L} tested at {setting.test_length}",
            flush=True,
        )
    return found


def summary(name, found):
    known = np.array([one for one in found if math.isfinite(one[2])])
    error = np.abs(known[:, 0] - 1)
    within, sure = (error <= known[:, 2] + k * known[:, 1] for k in (0, 2))
    print(
        f"{name}: {len(known)} of {len(found)} state a number; error of the excess {np.median(error):.2%} in "
        f"the median, {np.quantile(error, 0.9):.2%} at the 90th percentile; "
        f"sampling {np.median(known[:, 1]):.2%}, stated {np.median(known[:, 2]):.2%}; "
        f"covered {np.mean(within):.0%}, {np.mean(sure):.0%} with two standard errors of the sampling; "
        f"mean of sampled over law {np.mean(known[:, 0]):.4f}"
    )


def main() -> None:
    asked = [(60, 17, "all"), (20, 17, "long"), (20, 17, "moved")]
    if len(sys.argv) > 1:
        asked = [(int(sys.argv[1]), int(sys.argv[2]), (*sys.argv[3:], "all")[0])]
    every = []
    with one_thread():
        for count, seed, kind in asked:
            found = measured(count, seed, kind)
            summary(f"{count} of kind {kind}", found)
            every += found
    if len(asked) > 1:
        summary("together", every)


if __name__ == "__main__":
    main()
