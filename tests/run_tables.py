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
