"""What sequences that are used again are worth in fresh ones (docs/epochs.md)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from seqlaw.methods.one_pass.equivalent import one_pass_equivalent
from seqlaw.methods.one_pass.tuning import tuned
from seqlaw.model.checks import InputError
from seqlaw.model.setting import Setting
from seqlaw.model.threads import one_thread

_HALVES = 2
"""Points in a factor of two of the fresh sequences, whose risk is a cubic between them, on log axes."""
_FARTHEST = 2.0**16
"""Fresh sequences over those that are used again, beyond which the worth counts as infinite."""


@one_thread()
def effective_reuse(settings: Sequence[Setting]) -> list[float]:
    """E of settings at their best steps, which differ in their epochs alone: N_fresh/N.

    N_fresh is how many sequences one pass with the same batch needs for the same excess, at its own best
    step; both sides are the equivalent method's, the test length and all else as in the settings.
    """
    wanted = np.array([risk.bias + risk.variance for risk in one_pass_equivalent(settings)])
    first = settings[0]
    if first.batch is None:
        raise InputError("along", "can be epochs with a batch only", "epochs")
    known: dict[int, float] = {}

    def excess(place: int) -> float:
        """log of the excess after one pass through 2^(place/2) N sequences."""
        if place not in known:
            assert first.batch is not None
            batches = max(round(first.N / first.batch * 2 ** (place / _HALVES)), 1)
            [found] = one_pass_equivalent(tuned([first.but(epochs=1, N=batches * first.batch)]))
            known[place] = math.log(found.bias + found.variance)
        return known[place]

    least = first.schedule.least_steps() * (first.batch or 1)
    low = high = 0
    while excess(low) < math.log(wanted.max()) and first.N * 2 ** ((low - 1) / _HALVES) >= least:
        low -= 1
    while excess(high) > math.log(wanted.min()) and 2 ** (high / _HALVES) < _FARTHEST:
        high += 1
    places = np.arange(low, max(high, low + 1) + 1)
    logs = np.array([excess(int(place)) for place in places])
    return [_place(logs, places / _HALVES, math.log(one)) for one in wanted.tolist()]


def _place(logs: np.ndarray, places: np.ndarray, wanted: float) -> float:
    """Where a falling function has a value, as a power of two; infinite beyond its end."""
    from scipy.interpolate import PchipInterpolator  # slow to import

    if wanted < logs[-1]:
        return math.inf
    falling = np.minimum.accumulate(logs)
    distinct = np.concatenate([[True], np.diff(falling) < 0])
    line = PchipInterpolator(falling[distinct][::-1], places[distinct][::-1])
    return float(2 ** line(min(wanted, falling[0])))
