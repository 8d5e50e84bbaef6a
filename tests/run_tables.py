"""Tables of training runs made from known laws: noise, outliers, with and without an effect of the length."""

from __future__ import annotations

import numpy as np
import pandas as pd

from seqlaw.runs.form import make_form
from seqlaw.runs.law import LEVEL, bootstrap, fit_form
from seqlaw.runs.length import length_effect, length_flags
from seqlaw.runs.table import read_runs

LENGTHS = 2.0 ** np.array([7, 8.5, 10, 11.5, 13])
THREE = np.array([512.0, 2048.0, 8192.0])


def run_table(seed, *, length=0.0, lengths=LENGTHS, noise=None, outliers=True, rows=None):
    """A DataFrame and the truth: E + A/params^a + B/tokens^b, and a length term.

    `length` is its share of the middle loss, the fall from the shortest to the longest. Noise is 0.3 to 3 %
    if not given; 3 % of the runs are three to ten times that off, two in three of them upwards.
    """
    rng = np.random.default_rng([2026, seed])
    n = int(rng.integers(60, 250)) if rows is None else rows
    noise = float(np.exp(rng.uniform(np.log(0.003), np.log(0.03)))) if noise is None else noise
    truth = {
        name: rng.uniform(*ends) for name, ends in {"params": (0.25, 0.5), "tokens": (0.25, 0.5)}.items()
    }
    truth["length"], E = rng.uniform(0.3, 0.8), rng.uniform(1.2, 2.2)
    frame = pd.DataFrame(
        {
            "params": np.exp(rng.uniform(np.log(3e7), np.log(1e10), n)),
            "tokens": np.exp(rng.uniform(np.log(5e8), np.log(3e11), n)),
            "length": rng.choice(lengths, n),
        }
    )
    loss = E + rng.uniform(0.3, 0.8) * (frame.params / 5e8) ** -truth["params"]
    loss = loss + rng.uniform(0.3, 0.8) * (frame.tokens / 1e10) ** -truth["tokens"]
    fall = 1 - (lengths[-1] / lengths[0]) ** -truth["length"]
    loss = loss + length * np.median(loss) / fall * (frame.length / lengths[0]) ** -truth["length"]
    off = (rng.random(n) < 0.03) * rng.uniform(3, 10, n) * rng.choice([1, 1, -1], n) if outliers else 0.0
    frame["loss"] = loss * np.exp(noise * (rng.standard_normal(n) + off))
    return frame, truth


def beyond_table(seed, law, *, times=10.0, new=20):
    """A table, `new` further runs inside its range, and `new` runs `times` as dear as the dearest of it.

    The law of two terms is a "sum", a "power-mean" with q from 1.5 to 4, or has a "break": the exponent of
    one column changes by a factor within the table, to 0.4–0.75 or 1.3–2 times. Columns span 1.5 to 2.8
    decades, noise is 0.3 to 3 %, and 3 % of the runs, new ones too, are three to ten times that off.
    """
    rng = np.random.default_rng([2027, seed])
    n = int(rng.integers(60, 250))
    noise = float(np.exp(rng.uniform(np.log(0.003), np.log(0.03))))
    span = rng.uniform(1.5, 2.8, 2) * np.log(10)
    e, A, E = rng.uniform(0.25, 0.5, 2), rng.uniform(0.3, 0.8, 2), rng.uniform(1.2, 2.2)
    q = rng.uniform(1.5, 4.0) if law == "power-mean" else 1.0
    where, turn = rng.uniform(-0.3, 0.3), rng.choice([rng.uniform(0.4, 0.75), rng.uniform(1.3, 2.0)])
    broken = int(rng.integers(2))
    u = rng.uniform(-0.5, 0.5, (n + new, 2)) * span
    cost = u.sum(axis=1)
    dear = u[rng.choice(np.argsort(cost[:n])[n // 2 :], new)]
    dear = dear + (cost[:n].max() + np.log(times) - dear.sum(axis=1, keepdims=True)) / 2
    u = np.concatenate([u, dear])
    fall = -e * u
    if law == "break":
        at = where * span[broken]
        fall[:, broken] -= (turn - 1) * e[broken] * np.maximum(u[:, broken] - at, 0)
    loss = E + np.sum((A * np.exp(fall)) ** q, axis=1) ** (1 / q)
    off = (rng.random(len(u)) < 0.03) * rng.uniform(3, 10, len(u)) * rng.choice([1, 1, -1], len(u))
    loss = loss * np.exp(noise * (rng.standard_normal(len(u)) + off))
    frame = pd.DataFrame({"params": 5e8 * np.exp(u[:, 0]), "tokens": 1e10 * np.exp(u[:, 1]), "loss": loss})
    return frame[:n], frame[n : n + new], frame[n + new :]


COMMON = 2048.0
"""The common test length of `own_and_common`."""


def own_and_common(seed, *, training, test, noise=0.005, rows=None):
    """The same runs tested at their own length and at 2048: two tables.

    loss = base(params, tokens) + T(length) + D(tested) - D(2048): T and D are power laws that fall by shares
    `training` and `test` of the base's median from the shortest length to the longest (below zero: rise).
    Noise is of the run, a fifth of it of the single test; 3 % of the runs are off as in `run_table`.
    """
    frame, _ = run_table(seed, noise=0.0, outliers=False, rows=rows)
    rng = np.random.default_rng([2028, seed])
    n, scale = len(frame), float(np.median(frame.loss))
    low, high = frame.length.min(), frame.length.max()
    powers = rng.uniform(0.3, 0.8, 2)

    def fall(share, power, x):
        """A power law of this size and direction, zero at the shortest length."""
        sign = 1 if share >= 0 else -1  # a rise is a growing power
        return -scale * share * (1 - (x / low) ** (-sign * power)) / (1 - (high / low) ** (-sign * power))

    def loss(x, tested):
        change = fall(test, powers[1], tested) - fall(test, powers[1], COMMON)
        return frame.loss + fall(training, powers[0], x) + change

    off = (rng.random(n) < 0.03) * rng.uniform(3, 10, n) * rng.choice([1, 1, -1], n)
    of_run = noise * (rng.standard_normal(n) + off)
    return tuple(
        frame.assign(
            tested=tested,
            loss=loss(frame.length, tested) * np.exp(of_run + noise / 5 * rng.standard_normal(n)),
        )
        for tested in (frame.length, COMMON)
    )


EFFECTS = {
    "neither": (0.0, 0.0),
    "test": (0.0, 0.03),
    "training": (0.03, 0.0),
    "both": (0.02, 0.03),
    "against": (-0.015, 0.04),
}
"""Kinds of tables: the shares of the loss that training and test take off, from shortest to longest."""


def effect(own, common, *, bootstraps=300):
    """What `law --common` finds in a pair of tables, without the rest of its answer."""
    names = ["params", "tokens", "length"]
    runs = read_runs(own, "loss", names)
    fitted = fit_form(make_form(names, None), runs)
    draws, (flag,) = bootstrap(fitted, runs, bootstraps, 0), length_flags(own, runs, "tested")
    return length_effect(fitted, draws, runs, common, flag, {"loss": "loss"}, LEVEL, 0)


def sentence_is_right(found, kind):
    """Whether the parts that are said to matter are those that do, each in its direction."""
    true = dict(zip(("training", "test"), EFFECTS[kind], strict=True))
    said = {name: -np.sign(getattr(found, name).value) if name in found.shown else 0 for name in true}
    return said == {name: np.sign(share) for name, share in true.items()}
