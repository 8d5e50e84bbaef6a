"""The best step of one pass, and the batch beyond which tokens are wasted (docs/one-pass-theory.md, §7)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from seqlaw.methods.accuracy import search
from seqlaw.methods.one_pass.epochs import epochs_noises, excess
from seqlaw.methods.one_pass.equivalent import Learners, full_batches, mean_terms
from seqlaw.methods.one_pass.law import variances
from seqlaw.methods.one_pass.noise import under
from seqlaw.methods.one_pass.step import limit
from seqlaw.model.checks import Array, InputError, whole
from seqlaw.model.setting import Setting
from seqlaw.model.threads import one_thread

WASTED = 1.2
"""The excess at the critical batch, in units of the best over batches."""
_DEEPEST = 40  # halvings of the limit: no step is smaller


class Tuned(NamedTuple):
    """A step, the bias + variance at it, and the approximation."""

    gamma: float
    excess: float
    approx: float


def with_tokens(setting: Setting, tokens: float, batch: int | None = None) -> Setting:
    """The setting with the steps that so many different tokens allow: L = epochs·⌊tokens/(batch·P)⌋."""
    batch = setting.batch if batch is None else batch
    if batch is None:
        raise InputError("tokens", "set the steps in one pass only (give a batch)", tokens)
    many = setting.lengths is not None
    each = setting.but(batch=batch).step_tokens if many else batch * setting.one_length
    batches = int(whole("tokens", tokens) // each)
    least = -(-setting.schedule.least_steps() // setting.epochs)
    if batches < least:
        rule = f"must be at least {least * each}, for {least} steps of {each} tokens (batch {batch})"
        raise InputError("tokens", rule, tokens)
    return setting.but(batch=batch, schedule=setting.schedule.with_steps(setting.epochs * batches))


def excesses(setting: Setting, gammas: Array, learners: Learners) -> tuple[Array, float]:
    """bias + variance at each peak step, the schedule's shape as it is; and the approximation."""
    if setting.epochs > 1:
        return _of_epochs(setting, gammas, learners)
    nodes, batch = learners.nodes(setting), np.full(gammas.size, float(setting.batch or 1))
    found = variances(nodes, setting.schedule, batch, gammas, ratio=search.cut)
    if setting.test_length == setting.P:  # a sum over the nodes, which are there
        psi = np.array([setting.schedule.scaled(gamma).residual(nodes.mu) for gamma in gammas.tolist()])
        bias, approx = psi**2 @ (nodes.w * nodes.mu * nodes.beta) / 2, learners.approx(setting)
    else:
        means = mean_terms([setting] * gammas.size, gammas.tolist(), learners)
        bias, approx = np.array([one["bias"] for one in means]), means[0]["approx"]
    return bias + found.v @ learners.tested(setting) / 2, approx


def _of_epochs(setting: Setting, gammas: Array, learners: Learners) -> tuple[Array, float]:
    """The same with the data used again."""
    schedules = [setting.schedule.scaled(gamma) for gamma in gammas.tolist()]
    means = mean_terms([setting] * gammas.size, gammas.tolist(), learners)
    wholes = full_batches([setting] * gammas.size, schedules, learners, quick=True)
    batch, N, nodes = float(setting.batch or 1), float(setting.N), learners.nodes(setting)
    noise = epochs_noises(
        nodes, setting.schedule, batch, N, setting.epochs, gammas, ratio=search.cut, quick=True
    )
    full, bias = np.array([one.excess for one in wholes]), np.array([one["bias"] for one in means])
    return np.asarray(excess(noise, learners.tested(setting), full, bias)), means[0]["approx"]


@one_thread()
def best_step(setting: Setting, learners: Learners | None = None, *, near: float = math.inf) -> Tuned:
    """The peak step with the least bias + variance under the safeguard, within a few percent.

    A guess that lies `near` saves looking elsewhere.
    """
    if setting.batch is None:
        raise InputError("gamma", "can be best only in one pass (give a batch)", "best")
    if setting.lengths is not None and setting.lengths.phases:
        raise InputError("gamma", "must be a number with phases", "best")
    learners = Learners(setting, quick=True) if learners is None else learners
    most = limit(under(learners.nodes(setting), setting.schedule)[0], setting.batch)
    if near < math.inf:
        reach = 0.5 if setting.epochs == 1 else 1.0  # it moves with the epochs
        found = _around(setting, most, math.log2(most / near), learners, reach=reach)
        if found is not None:
            return found
    tried, seen = np.zeros(0), np.zeros(0)
    wanted = np.arange(0.0, 8.0)  # most·2^-k
    while wanted.size:
        more, _ = excesses(setting, most * 2.0**-wanted, learners)
        tried, seen = np.append(tried, wanted), np.append(seen, more)
        order = np.argsort(tried)
        tried, seen = tried[order], seen[order]
        best = float(tried[np.argmin(seen)])
        above = np.arange(max(0, best - 4), best) if best == tried[0] else np.zeros(0)
        below = np.arange(best + 1, best + 5) if best == tried[-1] and best < _DEEPEST else np.zeros(0)
        wanted = np.append(above, below)
    sure = _around(setting, most, best, learners, anyhow=True)
    assert sure is not None
    return sure


def _around(
    setting: Setting,
    most: float,
    depth: float,
    learners: Learners,
    *,
    reach: float = 0.5,
    anyhow: bool = False,
) -> Tuned | None:
    """The best step around most·2^-depth; None where it lies at an end of what is tried, unless `anyhow`.

    Five steps are, over `reach` factors of two to each side; the logarithm of the excess is a parabola
    through three.
    """
    depths = max(depth, reach) + np.linspace(-reach, reach, 5)
    found, approx = excesses(setting, most * 2.0**-depths, learners)
    k = int(np.argmin(found))
    if k in (0, 4) and not (anyhow or depths[k] == 0):  # no step is larger than most
        return None
    middle = min(max(k, 1), 3)
    shift, least = vertex(np.log(found[middle - 1 : middle + 2]).tolist())
    return Tuned(float(most * 2.0 ** -(depths[middle] + shift * reach / 2)), math.exp(least), approx)


def tuned(settings: Sequence[Setting]) -> list[Setting]:
    """Each setting at its best step; those of one teacher and d share what is solved."""
    known: dict[Any, Learners] = {}
    found = []
    for one in settings:
        key = (one.teacher, one.d)
        if key not in known:
            known[key] = Learners(one, quick=True)
        found.append(replace(one, schedule=one.schedule.scaled(best_step(one, known[key]).gamma)))
    return found


def _valley(excess: Callable[[int], float], batch: int, most: int) -> float:
    """The least excess over batches near one: down by factors of two, then a parabola in the logarithms.

    No parabola where a side is steep: through a flat side and a steep one it goes far too low between them.
    """
    while True:
        beside = [max(batch // 2, 1), batch, min(2 * batch, most)]
        low, here, high = map(excess, beside)
        if here <= min(low, high):
            break
        batch = beside[0] if low < high else beside[2]
    if len(set(beside)) < 3 or max(low, high) > WASTED * here:
        return here
    return math.exp(vertex([math.log(x) for x in (low, here, high)])[1])


def vertex(y: Sequence[float]) -> tuple[float, float]:
    """The minimum in [-1, 1] of the parabola through y at -1, 0, 1: its place and its value."""
    fall, bend = (y[2] - y[0]) / 2, y[2] - 2 * y[1] + y[0]
    shift = min(max(-fall / bend, -1.0), 1.0) if bend > 0 else -math.copysign(1.0, fall)
    return shift, y[1] + shift * fall + shift**2 * bend / 2


@one_thread()
def critical_tokens(setting: Setting, learners: Learners | None = None) -> float:
    """Tokens a step, batch·P, at which the excess is 1.2 times its best over batches, at batch·P·L tokens.

    The step is tuned for each batch. Infinite where every batch that leaves the schedule its steps is good.
    """
    learners = Learners(setting, quick=True) if learners is None else learners
    total, known, gammas = setting.tokens, dict[int, float](), dict[int, float]()

    def excess(batch: int) -> float:
        if batch not in known:
            # The best step goes about as the batch, until the largest step bounds it.
            like = min(gammas, key=lambda one: abs(math.log(one / batch)), default=batch)
            near = gammas.get(like, math.inf) * batch / like
            found = best_step(with_tokens(setting, total, batch), learners, near=near)
            known[batch], gammas[batch] = found.excess, found.gamma
        return known[batch]

    P = setting.one_length
    most = total // (P * setting.schedule.least_steps())
    if most < 1:
        return math.inf
    low, high = 1, 1
    while excess(high) <= WASTED * min(known.values()):
        if high >= most:
            return math.inf
        low, high = high, min(4 * high, most)
    best = _valley(excess, min(known, key=lambda batch: known[batch]), most)
    while high - low > 1 and high > 1.25 * low:
        middle = round(math.sqrt(low * high))
        middle = min(max(middle, low + 1), high - 1)
        low, high = (middle, high) if excess(middle) <= WASTED * best else (low, middle)
    if high == low:
        return float(low * P)
    # Between two batches as a power law.
    share = math.log(WASTED * best / excess(low)) / math.log(excess(high) / excess(low))
    return float(P * low * (high / low) ** min(max(share, 0.0), 1.0))
