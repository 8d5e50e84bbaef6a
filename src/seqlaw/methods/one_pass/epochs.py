"""Mini-batches over the same sequences, shuffled anew in each of K epochs (docs/epochs-theory.md).

The noise that two gradients share is 1/b in the same step, 0 in different steps of one epoch, and 1/N in
different epochs. With the full batch it is always 1/N. So the risk is that of the full batch at N; for each
epoch the noise of its mini-batches is added, and the full batch's noise in that epoch is subtracted.

    Φ_i(a, c) = A_i a_i² + a_i Σ_k ℓ_ik w_k c_ik + Σ_k F_ik β_k c_ik²,  F = Rw + Q,                     (1)
is the noise of the full batch after steps whose sums with and without the filter are c and a.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from seqlaw.methods.accuracy import fine
from seqlaw.methods.one_pass.law import Sources, geometric, power, signed, spread, together
from seqlaw.methods.one_pass.noise import Directions, Eigensystems, under
from seqlaw.model.checks import Array
from seqlaw.model.filters import Schedule
from seqlaw.model.flags import Flag, flag
from seqlaw.model.pieces import Pieces, is_cut, stretches
from seqlaw.model.setting import Setting

_FEW_STEPS, _QUICK = 2048, 256
"""Up to which a smooth schedule is taken step by step."""
_OWN_ERROR = 0.005
"""Beside the error of the full batch's law; with it 37 of 40 random settings lay within the sum."""
_FEW_SEQUENCES, _STEADY = 8, 0.35


class FullBatchRisk(NamedTuple):
    """What the full batch would do on the same sequences, without a safeguard of its own."""

    excess: float
    error: float
    """Relative; infinite where it may be much too low."""


class Epochs(NamedTuple):
    """What mini-batches change in the full batch's risk, at each peak step (G, n) or at one (n)."""

    v: Array
    """The noise of the mini-batches in each direction, less what the full batch has of it."""
    whole: Array
    """The full batch's own noise, Φ of the whole run over N."""
    share: float
    """χ = Σ_epochs (Σγ of the epoch)²/(Σγ)², the share of pairs of steps that lie in one epoch.

    There mini-batches have no sequence in common, so this share of the full batch's excess is left out (6).
    """


def epoch_steps(L: int, epochs: int) -> list[int]:
    """The steps of each epoch; the last may end early."""
    n = -(-L // epochs)
    return [min(n, L - first) for first in range(0, L, n)]


def epochs_noise(
    nodes: Directions, schedule: Schedule, batch: float, N: float, epochs: int, *, ratio: float = fine.cut
) -> Epochs:
    """(1)–(5) for a schedule over the whole run; a long smooth one takes a Richardson step."""
    found = epochs_noises(nodes, schedule, batch, N, epochs, np.array([schedule.gamma]), ratio=ratio)
    return Epochs(found.v[0], found.whole[0], found.share)


def epochs_noises(
    nodes: Directions,
    schedule: Schedule,
    batch: float,
    N: float,
    epochs: int,
    gammas: Array,
    *,
    ratio: float = fine.cut,
    quick: bool = False,
) -> Epochs:
    """The same for the schedule scaled to each peak step; `quick` leaves out the Richardson step."""
    nodes, counts = under(nodes, schedule)
    steps, scale = epoch_steps(schedule.L, epochs), gammas / schedule.gamma
    norm = float(np.max(scale)) * nodes.norm
    if not is_cut(schedule) or schedule.L <= (_QUICK if quick else _FEW_STEPS):
        found = _run(nodes, _listed(schedule, steps, norm, ratio), scale, batch, N)
    else:
        found = _run(nodes, stretches(schedule, steps, ratio**0.5, norm), scale, batch, N)
        if not quick:
            coarse = _run(nodes, stretches(schedule, steps, ratio, norm), scale, batch, N)
            v, whole = ((4 * y - x) / 3 for x, y in zip(coarse[:2], found[:2], strict=True))
            found = Epochs(v, whole, found.share)
    return Epochs(counts * found.v, counts * found.whole, found.share)


def excess(found: Epochs, weight: Array, full_batch: Any, bias: Any) -> Any:
    """(6): the full batch's excess FB, what is within epochs put right, and the noise of the mini-batches.

    `weight` is w g' at the test length, `bias` that of the population's filter; a number for each peak step.
    """
    own = bias + found.whole @ weight / 2
    return full_batch - found.share * (full_batch - own) + found.v @ weight / 2


def heavy_tails(N: float, gamma: float, largest: float) -> bool:
    """Whether a few runs that explode rule the mean: N at most 8, steps above 0.35 γ_max."""
    return N <= _FEW_SEQUENCES and gamma > _STEADY * largest


def epochs_error(full_batch: float) -> float:
    """The relative error of the excess from that of the full batch's law.

    Chosen on random settings; docs/epochs.md has how often it holds on others.
    """
    return _OWN_ERROR + full_batch


def epochs_flags(setting: Setting, rows: Sequence[Mapping[str, float]]) -> list[Flag]:
    """The flag of heavy tails, from the largest step of several sketches."""
    worst = max(rows, key=lambda row: row["gamma"] / row["gamma_max"])
    if not heavy_tails(setting.N, worst["gamma"], worst["gamma_max"]):
        return []
    return [flag("epochs-heavy-tails", N=setting.N, gamma=worst["gamma"], gamma_max=worst["gamma_max"])]


def _listed(schedule: Schedule, steps: Sequence[int], norm: float, ratio: float) -> list[Pieces]:
    """The runs of each epoch, step by step where the schedule is smooth."""
    if not is_cut(schedule):
        return stretches(schedule, steps, ratio, norm)
    sizes = np.split(schedule.steps(), np.cumsum(steps)[:-1])
    return [Pieces(np.ones(one.size), one) for one in sizes]


def _run(nodes: Directions, parts: Sequence[Pieces], scale: Array, batch: float, N: float) -> Epochs:
    """(2)–(5), epoch by epoch: ψ = ψ⁰ r and c = q ψ⁰, with r and q since the epoch's start.

    Over the whole run a and c go on as ā and c̄: each epoch multiplies them by its filter and adds its own.
    `scale` (G) is of the step sizes.
    """
    mu, G, n = nodes.mu, scale.size, nodes.mu.size
    F, linear = nodes.R * nodes.w + nodes.Q, nodes.ell * nodes.w
    a_all, c_all = np.zeros((G, n)), np.zeros((G, n, n))
    v: Array = np.zeros((G, n))
    psi: Array = np.ones((G, n))
    batches, squares, known = np.full(G, batch), 0.0, Eigensystems()
    for part in parts:
        u = _noise(nodes, F, linear, a_all, c_all) / N
        a, q, r = _sums(mu, part, scale)
        fitted = (np.abs(r) * (1 - psi)) @ (F / np.outer(mu, mu)).T / N
        s = (1 + fitted) ** -2
        signal = nodes.beta * psi**2 + u
        each, now = s[:, :, None], psi[:, None, :]
        sources = Sources(s * nodes.A, each * linear * now, each * F * signal[:, None, :])
        v = spread(nodes, batches, part, scale, v, sources=sources, eigensystems=known).v
        had = (
            nodes.A * a**2
            + a * np.sum(linear * q * now, axis=2)
            + np.sum(F * q**2 * signal[:, None, :], axis=2)
        )
        v = v - s / N * had
        a_all, c_all = r * a_all + a, r[:, :, None] * c_all + q * now
        psi = psi * r
        squares += float(part.counts @ part.sizes) ** 2
    total = math.fsum(float(part.counts @ part.sizes) for part in parts)
    return Epochs(v, _noise(nodes, F, linear, a_all, c_all) / N, squares / total**2)


def _noise(nodes: Directions, F: Array, linear: Array, a: Array, c: Array) -> Array:
    """Φ(a, c)."""
    found: Array = nodes.A * a**2 + a * np.sum(linear * c, axis=-1) + (F * c**2) @ nodes.beta
    return found


def _sums(mu: Array, part: Pieces, scale: Array) -> tuple[Array, Array, Array]:
    """a (n), q (n × n) and r (n) of (2) after an epoch, all from its start; for each scale."""
    G, n_mu = scale.size, mu.size
    a, q, r = np.zeros((G, n_mu)), np.zeros((G, n_mu, n_mu)), np.ones((G, n_mu))
    for runs in together(part, G * n_mu**2):
        n, gamma = runs.counts[:, None, None], (runs.sizes[:, None] * scale)[:, :, None]
        p = 1 - gamma * mu
        with np.errstate(divide="ignore"):
            log_p = np.log(np.abs(p))
        ends, own = power(p, n), gamma * signed(n, np.ones(1), np.zeros(1), p)
        mixed = gamma[..., None] * geometric(n[..., None], log_p[..., None], log_p[..., None, :])
        for end, alone, pair in zip(ends, own, mixed, strict=True):
            a, q, r = end * a + alone, end[:, :, None] * q + pair * r[:, None, :], end * r
    return a, q, r
