"""The law of one pass: each direction's variance after any number of steps (docs/one-pass-theory.md, §2-§4).

    v_i ← (1-γμ_i)² v_i + (γ²/b) { A_i + Σ_k ℓ_ik w_k ψ_k + Σ_k (R_ik w_k + Q_ik)(v_k + β_k ψ_k²) }      (10)
is linear with a symmetric matrix, in x = √w·v: a run of n equal steps is one eigendecomposition, for any n.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from seqlaw.methods.accuracy import fine
from seqlaw.methods.one_pass.noise import Directions, Eigensystems, under
from seqlaw.model.checks import Array, InputError
from seqlaw.model.filters import LARGEST_STEP, Schedule
from seqlaw.model.pieces import Pieces, is_cut, pieces

_LEAST_LOG = -1e4  # the logarithm that stands for a factor of 0
_TOGETHER = 2**16  # numbers in the largest array of runs that are computed at once


class Sources(NamedTuple):
    """What a step adds to v_i: γ²/b {constant_i + Σ_k linear_ik ψ_k + Σ_k square_ik ψ_k²}."""

    constant: Array
    linear: Array
    square: Array


class Spread(NamedTuple):
    """The variance v of each direction, and its part from the noise at B* alone, (B, n) each."""

    v: Array
    additive: Array


def geometric(n: Array, log_a: Array, log_b: Array) -> Array:
    """Γ_n(a, b) = Σ_{j<n} a^{n-1-j} b^j from the logarithms: the larger base in front, nothing cancels."""
    log_a, log_b = np.maximum(log_a, _LEAST_LOG), np.maximum(log_b, _LEAST_LOG)
    top, x = np.maximum(log_a, log_b), -np.abs(log_a - log_b)
    same = x == 0
    with np.errstate(divide="ignore"):
        ratio = np.expm1(n * x) / np.where(same, -1.0, np.expm1(x))
    return np.asarray(np.exp(np.minimum((n - 1) * top, 700.0)) * np.where(same, n, ratio))


def signed(n: Array, lam: Array, log_lam: Array, p: Array) -> Array:
    """Γ_n(λ, p) for a p of either sign: below zero the quotient, which does not cancel there (n whole)."""
    with np.errstate(divide="ignore"):
        positive = geometric(n, log_lam, np.log(np.abs(p)))
    if np.all(p >= 0):
        return positive
    ends = np.exp(np.minimum(n * log_lam, 700.0)) - power(p, n)
    return np.where(p < 0, ends / np.where(p < 0, lam - p, 1.0), positive)


def power(p: Array, n: Array) -> Array:
    """pⁿ; for p < 0 n is whole."""
    with np.errstate(divide="ignore", over="ignore"):
        size = np.exp(n * np.maximum(np.log(np.abs(p)), _LEAST_LOG))
    return np.asarray(np.where((p < 0) & (np.mod(n, 2) == 1), -size, size))


def at_rest(nodes: Directions) -> Sources:
    """The sources of (10), of a student that starts at rest."""
    return Sources(nodes.A, nodes.ell * nodes.w, (nodes.R * nodes.w + nodes.Q) * nodes.beta)


def spread(
    nodes: Directions,
    batch: Array,
    runs: Pieces,
    scale: Array,
    start: Array | None = None,
    *,
    sources: Sources | None = None,
    eigensystems: Eigensystems | None = None,
) -> Spread:
    """v after runs of equal steps, for each batch and scale of the step sizes: (B,) → (B, n).

    v(0) is `start` (n), or 0, and the sources are those of a student at rest unless others are given; both
    may have an axis of B before their own. Above γ_max exponents are clipped, so v is large but finite.
    `eigensystems` is read and filled: other starts on the same sketch have the same ones.
    """
    mu, w = nodes.mu, nodes.w
    root, per_batch = np.sqrt(w), 1 / np.asarray(batch, dtype=np.float64)[:, None]
    feedback = nodes.R * np.outer(root, root) + nodes.Q
    sources = at_rest(nodes) if sources is None else sources
    along, squared = root[:, None] * sources.linear, root[:, None] * sources.square
    x = np.zeros((len(per_batch), mu.size))
    additive, psi = np.zeros_like(x), np.ones_like(x)
    if start is not None:
        x = x + root * start
    for part in together(runs, len(per_batch) * mu.size**2):
        gamma = (part.sizes[:, None] * scale)[:, :, None]
        p, noise = 1 - gamma * mu, gamma**2 * per_batch
        if part.counts[0] == 1:
            for fall, fresh in zip(p, noise, strict=True):
                added = x @ feedback + root * sources.constant
                added = added + (along @ psi[:, :, None] + squared @ psi[:, :, None] ** 2)[:, :, 0]
                x = fall**2 * x + fresh * added
                additive = fall**2 * additive + fresh * sources.constant
                psi = psi * fall
            continue
        n = part.counts[:, None, None]
        psis = np.cumprod(np.concatenate([psi[None], power(p, n)]), axis=0)
        before, psi = psis[:-1, :, :, None], psis[-1]
        delta, O = _eigensystems(gamma, per_batch, mu, feedback, {} if eigensystems is None else eigensystems)
        step, each = gamma * delta, n[..., None]
        log_lam = np.log1p(-np.minimum(step, 1 - 1e-300))[..., None]
        back = np.swapaxes(O, -1, -2)
        with np.errstate(divide="ignore"):
            log_p = 2 * np.log(np.abs(p))
        source = geometric(each, log_lam, np.zeros(1)) * (back @ (root * sources.constant)[..., None])
        source += (signed(each, 1 - step[..., None], log_lam, p[..., None, :]) * (back @ along)) @ before
        source += (geometric(each, log_lam, log_p[..., None, :]) * (back @ squared)) @ before**2
        source = O @ (noise[..., None] * source)
        kept, fresh = np.exp(np.minimum(each * log_lam, 700.0)), geometric(n, log_p, np.zeros(1))
        calm, fresh = np.exp(np.maximum(n * log_p, -700.0)), noise * sources.constant * fresh
        for k in range(len(part.counts)):
            x = (O[k] @ (kept[k] * (back[k] @ x[:, :, None])) + source[k])[:, :, 0]
            additive = calm[k] * additive + fresh[k]
    return Spread(x / root, additive)


def together(runs: Pieces, numbers: int) -> Iterator[Pieces]:
    """Runs that are computed at once, with so many numbers each; single steps apart from longer runs."""
    most = max(1, _TOGETHER // numbers)
    turns = np.flatnonzero(np.diff(runs.counts == 1)) + 1
    for part in zip(*(np.split(x, turns) for x in runs), strict=True):
        for first in range(0, part[0].size, most):
            yield Pieces(*(x[first : first + most] for x in part))


def _eigensystems(
    gamma: Array, per_batch: Array, mu: Array, feedback: Array, known: Eigensystems
) -> tuple[Array, Array]:
    """Those of step sizes (K, B, 1), each computed once."""
    keys = [one.tobytes() + per_batch.tobytes() for one in gamma]
    new = list({key: k for k, key in enumerate(keys) if key not in known}.values())
    if new:
        Delta = -(gamma[new] * per_batch)[..., None] * feedback
        Delta[..., np.arange(mu.size), np.arange(mu.size)] += 2 * mu - gamma[new] * mu**2
        found = zip(*np.linalg.eigh(Delta), strict=True)
        known.update(zip((keys[k] for k in new), found, strict=True))
    delta, O = zip(*(known[key] for key in keys), strict=True)
    return np.stack(delta), np.stack(O)


def between(A: Array, V: Array, mu: Array, batch: float, runs: Pieces) -> Array:
    """The covariance V (M × M) between different directions after runs of equal steps, without feedback.

    V_ik ← (p_i p_k)ⁿ V_ik + (γ²/b) A_ik Γ_n(p_i p_k, 1), p = 1 - γμ. The diagonal is wrong: `spread` has it.
    """
    for n, gamma in zip(runs.counts, runs.sizes, strict=True):
        both = np.outer(1 - gamma * mu, 1 - gamma * mu)
        V = power(both, n) * V + gamma**2 / batch * A * signed(n, np.ones(1), np.zeros(1), both)
    return V


def variances(
    nodes: Directions, schedule: Schedule, batch: Array, gammas: Array, *, ratio: float = fine.cut
) -> Spread:
    """v of the schedule scaled to each peak step, (B, n); a smooth schedule takes a Richardson step."""
    nodes, counts = under(nodes, schedule)
    scale, norm = gammas / schedule.gamma, float(np.max(gammas)) / schedule.gamma * nodes.norm
    first = spread(nodes, batch, pieces(schedule, ratio, norm), scale)
    if not is_cut(schedule):
        return Spread(*(counts * x for x in first))
    second = spread(nodes, batch, pieces(schedule, ratio**0.5, norm), scale)
    return Spread(*(counts * (4 * fine - coarse) / 3 for fine, coarse in zip(second, first, strict=True)))


def mean_filter(schedule: Schedule, mu: Array) -> Array:
    """ψ(μ) for steps up to γμ = 2; beyond γμ = 0.95 a smooth schedule is refused."""
    speed, decay = schedule.speed(mu), schedule.weight_decay
    if schedule.gamma * float(speed.max()) <= LARGEST_STEP:
        return np.asarray(schedule.residual(mu))
    require_steady(schedule, float(speed.max()))
    runs = schedule.runs()
    assert runs is not None
    psi = residual_of_runs(Pieces(*runs), speed)
    return psi if decay == 0 else (decay + (speed - decay) * psi) / speed


def residual_of_runs(runs: Pieces, mu: Array) -> Array:
    """ψ(μ) = Π (1 - γμ)ⁿ over runs of n equal steps, γμ up to 2."""
    psi = np.ones_like(mu)
    for n, size in zip(runs.counts, runs.sizes, strict=True):
        psi = psi * power(1 - size * mu, n)
    return psi


def diagonal_error(bias: float, variance: float) -> float:
    """The relative error of a variance whose diagonal alone feeds back, in the eigenbasis of G.

    While the bias rules, early in training, the noise of what is not yet learned does too, and with it what
    the diagonal leaves out. Chosen on 80 random settings against the whole recursion
    (docs/one-pass-theory.md, §3, has how often it holds).
    """
    return 0.002 + (0.01 * bias / (bias + variance) if 0 < bias < math.inf else 0.0)


def require_steady(schedule: Schedule, norm: float) -> None:
    """A smooth schedule's pieces have no whole number of steps, so no factor may turn negative."""
    if is_cut(schedule) and schedule.gamma * norm > LARGEST_STEP:
        rule = (
            f"must be at most {LARGEST_STEP / norm:.3g} with {schedule.name} (constant and block go further)"
        )
        raise InputError("gamma", rule, schedule.gamma)
