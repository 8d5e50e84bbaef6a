"""Tables of training runs made from known laws: noise, outliers, with and without an effect of the length."""

from __future__ import annotations

import numpy as np
import pandas as pd

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
