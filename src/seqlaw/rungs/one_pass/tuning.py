"""The best step of one pass, and the batch beyond which tokens are wasted (docs/one-pass.md, §7)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from seqlaw.model.checks import Array, InputError
from seqlaw.model.setting import Setting
from seqlaw.model.threads import one_thread
from seqlaw.rungs.one_pass.equivalent import Learners, mean_terms
from seqlaw.rungs.one_pass.law import ROUGH, variances
from seqlaw.rungs.one_pass.nodes import COARSE
from seqlaw.rungs.one_pass.step import limit, no_law

WASTED = 1.2
"""The excess at the critical batch, in units of the best over batches."""
_DEEPEST = 2.0**-40  # of the limit: no step is smaller


class Tuned(NamedTuple):
    """A step and the bias + variance at it."""

    gamma: float
    excess: float


def with_tokens(setting: Setting, tokens: float, batch: int | None = None) -> Setting:
    """The setting with the steps that so many tokens allow: L = ⌊tokens/(batch·P)⌋."""
    batch = setting.batch if batch is None else batch
    if batch is None:
        raise InputError("batch", "must be given where steps follow from tokens", None)
    steps = int(tokens // (batch * setting.P))
    if steps < setting.schedule.least_steps():
        rule = (
            f"must be at least {setting.schedule.least_steps() * batch * setting.P} for this batch and length"
        )
        raise InputError("tokens", rule, tokens)
    return replace(setting, batch=batch, schedule=setting.schedule.with_steps(steps))


def excesses(setting: Setting, gammas: Array, learners: Learners) -> Array:
    """bias + variance at each peak step, the schedule's shape as it is."""
    means = mean_terms([setting] * gammas.size, gammas.tolist(), learners)
    batch = np.full(gammas.size, float(setting.batch or 1))
    found = variances(learners.nodes(setting), setting.schedule, batch, gammas, ratio=ROUGH)
    return np.array([one["bias"] for one in means]) + found.v @ learners.tested(setting) / 2


@one_thread()
def best_step(setting: Setting, learners: Learners | None = None) -> Tuned:
    """The peak step with the least bias + variance under the safeguard, within a few percent."""
    if setting.batch is None:
        raise InputError("gamma", "can be best only in one pass (give a batch)", "best")
    if (refusal := no_law(setting)) is not None:
        raise refusal
    learners = Learners(setting, COARSE) if learners is None else learners
    most = limit(learners.nodes(setting), setting.batch)
    tried = most * 2.0 ** -np.arange(9.0)
    found = excesses(setting, tried, learners)
    while np.argmin(found) == tried.size - 1 and tried[-1] > most * _DEEPEST:
        further = tried[-1] * 2.0 ** -np.arange(1.0, 9.0)
        tried, found = np.append(tried, further), np.append(found, excesses(setting, further, learners))
    k = int(np.argmin(found))
    between = np.geomspace(tried[max(k - 1, 0)], tried[min(k + 1, tried.size - 1)], 10)[1:-1]
    tried, found = np.append(tried, between), np.append(found, excesses(setting, between, learners))
    k = int(np.argmin(found))
    return Tuned(float(tried[k]), float(found[k]))


def tuned(setting: Setting) -> Setting:
    """The setting at its best step."""
    return replace(setting, schedule=setting.schedule.scaled(best_step(setting).gamma))


@one_thread()
def critical_tokens(setting: Setting, learners: Learners | None = None) -> float:
    """Tokens a step, batch·P, at which the excess is 1.2 times its best over batches, at batch·P·L tokens.

    The step is tuned for each batch. Infinite where every batch that leaves the schedule its steps is good.
    """
    learners = Learners(setting, COARSE) if learners is None else learners
    total, known = setting.tokens, dict[int, float]()

    def excess(batch: int) -> float:
        if batch not in known:
            known[batch] = best_step(with_tokens(setting, total, batch), learners).excess
        return known[batch]

    most = total // (setting.P * setting.schedule.least_steps())
    low, high = 1, 1
    while excess(high) <= WASTED * min(known.values()):
        if high >= most:
            return math.inf
        low, high = high, min(4 * high, most)
    best = min(known.values())
    while high - low > 1 and high > 1.25 * low:
        middle = round(math.sqrt(low * high))
        middle = min(max(middle, low + 1), high - 1)
        low, high = (middle, high) if excess(middle) <= WASTED * best else (low, middle)
    if high == low:
        return float(low * setting.P)
    # Between two batches as a power law.
    share = math.log(WASTED * best / excess(low)) / math.log(excess(high) / excess(low))
    return setting.P * low * (high / low) ** min(max(share, 0.0), 1.0)
