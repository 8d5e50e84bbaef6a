"""Simulated mini-batch descent, b trajectories a step, with all repetitions of a sketch side by side.

The trajectories are fresh, or the same sequences are used in several `epochs`, shuffled in each.
"""

from __future__ import annotations

import operator
from collections.abc import Iterator, Sequence
from functools import reduce
from typing import Any

import numpy as np

from seqlaw.methods.kernel import kernel
from seqlaw.methods.trajectories import walk
from seqlaw.model.arrays import like, namespace, zeros
from seqlaw.model.checks import Array, InputError
from seqlaw.model.device import Device
from seqlaw.model.lengths import Counted, mean_length
from seqlaw.model.randomness import generator
from seqlaw.model.schedule import Schedule
from seqlaw.model.setting import Setting, Stage

_BLOCK = 2**17  # numbers of the trajectories simulated at a time, for each repetition
_LARGEST = 2**27  # numbers that the trajectories of a step, or of an epoch that is used again, may have
_MOST_STEPS = 10**10  # about a day at 10 µs a step, which the smallest takes
_TOGETHER = 16  # repetitions side by side
_ON_CARD, _ALL_ON_CARD = 2**14, 2**25  # … on a card, and the numbers of all their trajectories at a time


def together(setting: Setting, device: Device | None) -> int:
    """How many repetitions go side by side."""
    return max(1, min(_ON_CARD, _ALL_ON_CARD // setting.M**2)) if device else _TOGETHER


def too_large(setting: Setting) -> InputError | None:
    """The refusal of what takes too much memory or too many steps."""
    if setting.batch is None:
        return None
    if held(setting) > _LARGEST:
        field = "batch" if setting.epochs == 1 else "N"
        rule = "times P times M must be at most 2^27 here: the trajectories are held in memory"
        return InputError(field, rule, setting.batch if setting.epochs == 1 else setting.N)
    if setting.schedule.L > _MOST_STEPS:
        return InputError("L", f"must be at most {_MOST_STEPS:g} steps on this method", setting.schedule.L)
    return None


def held(setting: Setting) -> float:
    """Numbers of the trajectories that must be there at once."""
    if setting.epochs > 1:
        return float(setting.N) * (setting.one_length + 1) * setting.M
    return max(float(sum(b * (P + 1) for P, b in lengths_in_step(one))) * setting.M for one in setting.stages)


def lengths_in_step(stage: Stage) -> tuple[tuple[int, int], ...]:
    """(P, sequences of that length in a step)."""
    P = stage.P
    if isinstance(P, Counted):
        return tuple(zip(P.lengths, P.counts, strict=True))
    return ((int(mean_length(P)), stage.sequences),)


def descended(
    setting: Setting,
    schedule: Schedule,
    S: Array,
    keys: Sequence[tuple[int, int, int]],
    device: Device | None = None,
    *,
    factor: Array | None = None,
) -> Array:
    """B_L of each (seed, sketch, repetition), side by side: B ← B + γ_t/(bP) Σ (y - Bu) uᵀ.

    `factor` is the G^-p of the population that gradients are multiplied by; B decays by γ_tλ.
    """
    S = S if device is None else device.array(S)
    B: Array = zeros(S, len(keys), setting.M, setting.M)
    turned, count, M, t = namespace(S).matrix_transpose, len(keys), setting.M, 0
    with np.errstate(over="ignore", invalid="ignore"):  # without the safeguard a run may leave all bounds
        for seen in batches(setting, S, keys, device):
            steps, tokens = seen[0].shape[1], sum(U.shape[2] * (U.shape[3] - 1) for U in seen)
            sizes = schedule.at(np.arange(t + 1, t + steps + 1)) / float(tokens)
            decay = schedule.weight_decay * float(tokens)
            for k, size in enumerate(sizes.tolist()):
                slopes = []
                for U in seen:
                    u, y = U[:, k, :, :-1].reshape(count, -1, M), U[:, k, :, 1:].reshape(count, -1, M)
                    missed = y - u @ turned(B)
                    slopes.append(turned(missed) @ u)
                slope = reduce(operator.add, slopes)
                slope = slope if factor is None else slope @ factor
                B = (1 - decay * size) * B + size * slope if decay else B + size * slope
            t += steps
    return B


def batches(
    setting: Setting, S: Array, keys: Sequence[tuple[int, int, int]], device: Device | None
) -> Iterator[list[Array]]:
    """Mini-batches of some steps at a time, what the student sees: keys × steps × b × (P+1) × M a length."""
    if setting.epochs == 1:
        start = 0
        for stage in setting.stages:
            yield from _fresh(setting, S, keys, lengths_in_step(stage), start, stage.steps, device)
            start += stage.steps
        return
    b, L = setting.batch or 1, setting.schedule.L
    epoch = setting.N // b  # steps until the data are used again, in another order
    data = _drawn(setting, S, keys, setting.one_length, setting.N, device, 0)
    each = np.arange(len(keys))[:, None]
    for turn in range(setting.epochs):
        orders = np.stack(
            [generator(seed, "one pass", *key, "order", turn).permutation(setting.N) for seed, *key in keys]
        )
        for k in range(min(epoch, L - turn * epoch)):
            at = (like(S, index) for index in (each, orders[:, k * b : k * b + b]))
            yield [data[tuple(at)][:, None]]


def _fresh(
    setting: Setting,
    S: Array,
    keys: Sequence[tuple[int, int, int]],
    parts: tuple[tuple[int, int], ...],
    start: int,
    L: int,
    device: Device | None,
) -> Iterator[list[Array]]:
    """The mini-batches of L steps from number `start` on."""
    a_step = sum(b * (P + 1) for P, b in parts)
    most = _BLOCK if device is None else _ALL_ON_CARD // len(keys)
    steps = max(1, most // (a_step * max(setting.M, setting.modes.d)))
    for first in range(start, start + L, steps):
        count = min(steps, start + L - first)
        seen = []
        for place, (P, b) in enumerate(parts):
            name = (first, "length", place) if place else (first,)
            drawn = _drawn(setting, S, keys, P, count * b, device, *name)
            seen.append(drawn.reshape(len(keys), -1, b, P + 1, setting.M))
        yield seen


def _drawn(
    setting: Setting,
    S: Array,
    keys: Sequence[tuple[int, int, int]],
    P: int,
    rows: int,
    device: Device | None,
    *first: str | int,
) -> Array:
    """Fresh trajectories of each key, of the stream `first`: keys × rows × (P+1) × M.

    A key has a stream of its own, on a device all of them together.
    """
    xp, M, modes = namespace(S), setting.M, setting.modes
    loops = kernel(float(setting.N) * (P + 1) * modes.d)
    sources: Sequence[Any]
    if device is None:
        sources = [generator(seed, "one pass", *names, *first) for seed, *names in keys]
    else:
        (seed, *names), (*_, last) = keys[0], keys[-1]
        sources = [device.stream(seed, "one pass", *names, last, len(keys), *first)]
    out: Array = zeros(S, len(keys) * rows, P + 1, M)
    for part, rng in zip(np.split(np.arange(len(out)), len(sources)), sources, strict=True):
        p, mine = 0, slice(int(part[0]), int(part[-1]) + 1)
        for X in walk(rng, modes, len(part), P, loops):
            seen = (X.reshape(-1, modes.d) @ S.T).reshape(len(X), len(part), M)
            out[mine, p : p + len(X)] = xp.moveaxis(seen, 0, 1)
            p += len(X)
    return out.reshape(len(keys), rows, P + 1, M)
