"""Pattern search: down a risk by steps along given directions, many starts at once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from seqlaw.model.checks import Array

_MOST = 400  # rounds


def pattern_search(
    risk: Callable[[NDArray[np.intp], Array], Array],
    starts: Array,
    moves: Array,
    *,
    step: float = 1.0,
    finest: float = 1e-6,
    low: Any = -math.inf,
    high: Any = math.inf,
) -> tuple[Array, Array]:
    """Places (rows, axes) that no move of `finest` makes better, and the risk there.

    Each row goes to the best of its moves (moves, axes), times a step of its own, and halves the step where
    none is better. `risk` takes the numbers of the rows and places (rows, tries, axes) within low … high.
    """
    z, rows = starts.copy(), np.arange(len(starts))
    value, steps = risk(rows, z[:, None, :])[:, 0], np.full(len(z), step)
    for _ in range(_MOST if starts.shape[1] else 0):
        rows = np.flatnonzero(steps >= finest)
        if not rows.size:
            break
        tried = np.clip(z[rows, None, :] + steps[rows, None, None] * moves, low, high)
        worth = risk(rows, tried)
        at = np.argmin(worth, axis=1)
        found = worth[np.arange(rows.size), at]
        better = found < value[rows]
        z[rows[better]], value[rows[better]] = tried[better, at[better]], found[better]
        steps[rows[~better]] /= 2
    return z, value
