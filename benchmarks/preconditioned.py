"""Preconditioned descent and weight decay: the equivalent method against sampled data sets, random settings.

    python benchmarks/preconditioned.py precondition 40
    python benchmarks/preconditioned.py weight-decay 20
    python benchmarks/preconditioned.py one-pass 20

Each setting is one line: the excess (bias + variance + cross) of sampled students over the equivalent
method's, its standard error over sketches, and whether the difference is within 1/M (3/M of the variance in
one pass, as the answer says) plus three standard errors. Where training is saturated (Σγκ(0)^q > 1) the
equivalent method flags it and promises less; such settings are counted apart.
"""

from __future__ import annotations

import argparse
import math

import numpy as np

from seqlaw import WSD, BlockDecay, Constant, Cosine, Setting, Teacher
from seqlaw.methods import Draws, risks

SKETCHES, REPETITIONS = 32, 8


def draw(rng: np.random.Generator, kind: str) -> Setting:
    """A random setting; the safeguard cuts the largest steps down."""
    alpha = float(rng.uniform(1.2, 2.2))
    teacher = Teacher(
        alpha=alpha,
        theta=float(rng.uniform(1.1, 2.8)),
        r=float(rng.uniform(0.1, 0.45)),
        rho=float(rng.uniform(0.3, 0.8)),
        c_xi=float(10 ** rng.uniform(-2, -1)),
        c_0=float(10 ** rng.uniform(-2, 0)),
    )
    M, P = int(rng.choice([24, 32, 48, 64])), int(rng.choice([1, 2, 4, 8, 16, 32]))
    tokens = M * 10 ** rng.uniform(0.2, 3)
    schedule = rng.choice([WSD, BlockDecay, Constant, Cosine])
    steps = int(10 ** rng.uniform(1.35, 2.6))
    chosen = Setting(
        teacher=teacher,
        M=M,
        N=max(2, round(tokens / P)),
        P=P,
        d=4 * M,
        schedule=schedule(gamma=float(10 ** rng.uniform(-0.5, 1)), L=steps),
        eval_length=int(rng.choice([P, P, 64])),
    )
    if kind == "weight-decay":
        return chosen.but(weight_decay=float(10 ** rng.uniform(-5, -2)))
    p = float(rng.choice([0.25, 0.5]))
    return chosen.but(
        precondition=p, **({} if kind == "precondition" else {"batch": int(rng.choice([1, 4, 16]))})
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kind", choices=["precondition", "weight-decay", "one-pass"])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=39)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    held: dict[bool, list[bool]] = {False: [], True: []}
    for _ in range(asked.count):
        setting = draw(rng, asked.kind)
        told = risks([setting], method="equivalent")[0]
        seen = risks(
            [setting],
            method="sampled",
            draws=Draws(sketches=SKETCHES, repetitions=REPETITIONS, seed=asked.seed),
        )[0]
        wanted, got = (one.reducible - one.approx for one in (told, seen))
        # Approximation is known apart: its scatter over sketches is in both sums.
        error = math.hypot(*(seen.standard_error[name] for name in ("bias", "variance", "cross")))
        saturated = told.diagnostics["saturation"] > 1
        wide = wanted if setting.batch is None else told.bias + 3 * told.variance
        within = abs(got - wanted) <= wide / setting.M + 3 * error
        held[saturated].append(within)
        schedule, marks = setting.schedule, "saturated  " * saturated + "outside" * (not within)
        print(
            f"M {setting.M:3d}  P {setting.P:3d}  NP/M {setting.tokens / setting.M:7.1f}  L {schedule.L:4d}  "
            f"p {schedule.precondition:.2f}  decay {schedule.weight_decay:.0e}  "
            f"test {setting.test_length:3d}  {got / wanted:.3f} ± {error / wanted:.3f}  {marks}",
            flush=True,
        )
    for saturated, found in held.items():
        print(f"{'saturated' if saturated else 'not saturated'}: {sum(found)} of {len(found)} within")


if __name__ == "__main__":
    main()
