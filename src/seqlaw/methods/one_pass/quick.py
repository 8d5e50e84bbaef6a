"""The law of one pass for a search: many steps, batches and schedules at once.

The same law as `law`, integrated piece by piece instead of by eigensystems. Within a piece the noise is
linear in time between its ends, each direction decays exactly, and the feedback acts through the few
channels of R = Σ_c f_c f_cᵀ, so that a piece is one small linear system (an exponential trapezoid rule).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from seqlaw.methods.accuracy import Crowd
from seqlaw.methods.one_pass.noise import Directions, under
from seqlaw.methods.one_pass.over_sketches import directions_at
from seqlaw.methods.rays import surface
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model.checks import Array
from seqlaw.model.filters import Schedule
from seqlaw.model.lengths import averaged

_FOLD = 2.0  # by which Σγ done, or left, may change within a piece
_START, _END = 0.6, 0.02  # Σγ·2‖G‖ before which, and after which, nothing changes much
_GRID = 48  # places from each end among which pieces are cut
_FEW = 64  # steps up to which each is a piece, and the law exact
_CHANNEL = 1e-6  # of the largest eigenvalue of R scaled to a unit diagonal
_X, _W = np.polynomial.legendre.leggauss(6)


class Cut(NamedTuple):
    """A schedule of peak 1 in K pieces: n steps of size γ, and the sizes at a piece's ends over γ; (…, K)."""

    n: Array
    size: Array
    first: Array
    last: Array


def cut(schedule: Schedule) -> Cut:
    """Pieces with the Σγ and Σγ² of the schedule, for γ‖G‖ up to ½."""
    runs = schedule.runs()
    if schedule.L <= _FEW:
        sizes = schedule.steps()
        return Cut(np.ones(sizes.size), sizes, np.ones(sizes.size), np.ones(sizes.size))
    if runs is not None:
        counts, sizes = runs
        done = np.cumsum(counts * sizes) - counts * sizes + _START
        parts = [
            np.diff(low * np.exp(np.linspace(0, math.log(high / low), _pieces(low, high) + 1))) / size
            for low, high, size in zip(done, done + counts * sizes, sizes, strict=True)
        ]
        n, size = np.concatenate(parts), np.repeat(sizes, [len(part) for part in parts])
        return Cut(n, size, np.ones(n.size), np.ones(n.size))
    L = schedule.L
    far = np.geomspace(1, L, _GRID)
    ends = np.unique(np.round(np.concatenate([[0], far, L - far, schedule.corners(), [L]])).clip(0, L))
    low, high = ends[:-1, None] + 0.5, ends[1:, None] + 0.5
    at = np.clip((low + high) / 2 + (high - low) / 2 * _X, 1, L)
    one, two = (((high - low) / 2 * schedule.at(at) ** power) @ _W for power in (1, 2))
    done = np.concatenate([[0.0], np.cumsum(one)])
    place = np.log(done + _START) - np.log(done[-1] - done + _END)  # in folds from both ends
    corner = np.cumsum(np.isin(ends[:-1], schedule.corners()))
    group = np.cumsum(np.diff(np.floor(place[:-1] / math.log(_FOLD)) + 1e6 * corner, prepend=-1e9) != 0)
    starts = np.concatenate([[0], np.flatnonzero(np.diff(group)) + 1])
    one, two = (np.add.reduceat(x, starts) for x in (one, two))
    bounds = np.append(ends[starts], L)
    size = two / one
    first, last = (schedule.at(np.clip(t, 1, L)) / size for t in (bounds[:-1] + 1, bounds[1:]))
    return Cut(one / size, size, first, last)


def _pieces(low: float, high: float) -> int:
    return max(1, math.ceil(math.log(high / low) / math.log(_FOLD) - 1e-9))


def stacked(schedules: Sequence[Schedule]) -> Cut:
    """The pieces of each, (S, K), filled with pieces of no steps."""
    cuts = [cut(schedule) for schedule in schedules]
    most = max(one.n.size for one in cuts)
    filled = (
        [np.pad(x, (0, most - x.size), constant_values=float(k > 0)) for x in column]
        for k, column in enumerate(zip(*cuts, strict=True))
    )
    return Cut(*(np.array(column) for column in filled))


def quick_spread(nodes: Directions, runs: Cut, batch: Array, gamma: Array) -> Array:
    """v after schedules (S, K) of peaks γ (S, G) with batches (S,): (S, G, n)."""
    S, G = gamma.shape
    mu, w, A = nodes.mu, nodes.w, nodes.A
    root = np.sqrt(np.diag(nodes.R))
    value, vector = np.linalg.eigh(nodes.R / np.outer(root, root))
    keep = value > _CHANNEL * value[-1]
    F = (vector[:, keep] * np.sqrt(value[keep])).T * root
    Fw, own, eye = F * w, np.diag(nodes.Q), np.eye(len(F))
    linear, square = (nodes.ell * w).T, ((nodes.R * w + nodes.Q) * nodes.beta).T
    outer = (Fw[:, None] * F).reshape(-1, mu.size).T  # of pairs of channels
    v, psi = np.zeros((S * G, mu.size)), np.ones((S * G, mu.size))
    q = np.zeros((S * G, len(F)))
    peak, each = gamma.reshape(-1, 1), np.repeat(1 / batch, G)[:, None]
    for k in range(runs.n.shape[1]):
        n, size, first, last = (np.repeat(x[:, k], G)[:, None] for x in runs)
        step = size * peak
        x = step * mu
        noise, fall, rate = step**2 * each, -np.expm1(n * np.log1p(-x)), x * (2 - x)
        loss = rate - noise * own
        lost, slow = -np.expm1(n * np.log1p(-loss)), np.abs(n * loss) < 1e-4
        kept, safe = 1 - lost, np.where(slow, 1.0, loss)
        whole = np.where(slow, n * (1 - n * loss / 2), lost / safe)
        early = np.where(
            slow, n / 2 * (1 - n * loss / 3), (whole - n * kept) / (np.maximum(n, 1e-300) * safe)
        )
        middle = 2 * n / (n + 1) * early  # a mean is over the steps, without the last end
        end, many = psi * (1 - fall), np.maximum(n, 1e-300)
        mean, mean_square = psi * fall / (many * x), psi**2 * fall * (2 - fall) / (many * rate)
        at_end, between = A + end @ linear + end**2 @ square, A + mean @ linear + mean_square @ square
        base = kept * v + noise * (
            (whole - middle) * last * at_end + middle * between + early * first * (q @ F)
        )
        back = noise * last * (whole - early)
        matrix = eye - (back @ outer).reshape(-1, *eye.shape)
        q = np.linalg.solve(matrix, (base @ Fw.T)[..., None])[..., 0]
        v, psi = base + back * (q @ F), end
    return v.reshape(S, G, -1)


_CROWD = Crowd(alone=12, a_fold=5.0)
_DEPTHS = np.arange(0.0, 14.5, 0.5)  # halvings of 1/(2‖G‖) at which the bias is known
_TRIED = np.array([0.0, 0.5, 1.0, 1.75, 2.5, 3.25, 4.0, 5.0, 6.5])
"""Halvings of the largest step that is allowed."""
_CLOSE = np.linspace(0.0, 6.5, 261)
_WORTH = 30.0  # times the least risk, beyond which nobody looks
_LEAST_BATCH = 0.02
"""Batches below 1 only let a spline pass smoothly through 1, where the best often is; this far is enough."""


def tuned_surface(
    rule: Rule, M: Array, P: Array, steps: Array, schedule: Schedule, batch: Array, eval_length: int | None
) -> tuple[Array, Array]:
    """The reducible risk at the best step, and that step, at points (M, P) × numbers of steps.

    `batch` (points × steps) is a real number, below 1 too. Where it is very small, the risk of fewer steps is
    taken. Where the approximation and the bias of the largest step are far above the least risk of a batch of
    at least 1, they stand for the risk, which is higher. The step is infinite where none was sought.
    """
    from scipy.interpolate import make_interp_spline  # slow to import

    large = 1e9  # so that the safeguard sets the unit of every point, 1/(2‖G‖)
    shapes = [schedule.with_steps(int(L)) for L in steps]
    asked = [shape.scaled(large * 2.0**-depth) for shape in shapes for depth in _DEPTHS]
    [fixed], _ = surface(rule, M, P.astype(int).tolist(), asked, eval_length)
    logs = np.log(np.maximum(fixed, 1e-300)).reshape(M.size, steps.size, _DEPTHS.size)
    runs = stacked([shape.scaled(1.0) for shape in shapes])
    pieces = np.count_nonzero(runs.n, axis=1)
    feasible, allowed = batch >= 1, batch >= _LEAST_BATCH
    risk, gamma = np.full((2, M.size, steps.size), np.inf)
    bound = np.where(allowed, np.exp(logs[..., 0]), np.inf)
    lengths, groups = np.unique(P, return_inverse=True)
    hopes = np.where(feasible, bound, np.inf)
    promise = [hopes[groups == k].min() for k in range(lengths.size)]
    for k in np.argsort(promise, kind="stable").tolist():
        length, at = int(lengths[k]), np.flatnonzero(groups == k)
        worth = allowed & (bound <= _WORTH * risk.min(where=feasible, initial=np.inf))
        risk[at] = np.where(worth[at], risk[at], bound[at])
        at = at[worth[at].any(axis=1)]
        if not at.size:
            continue
        test = averaged(rule.modes, eval_length or length) * rule.weights
        found = directions_at(rule, length, np.minimum(M[at], rule.weights.sum()).tolist(), _CROWD)
        for point, (plain, sigma) in zip(at, found, strict=True):
            nodes, counts = under(plain, schedule)
            live = np.flatnonzero(worth[point])
            batches, unit = batch[point, live], 1 / (2 * nodes.norm)
            most = np.minimum(unit, largest_steps(nodes, batches) / 2)
            tried = most[:, None] * 2.0**-_TRIED
            part = Cut(*(x[live, : pieces[live].max()] for x in runs))
            variance = quick_spread(nodes, part, batches, tried) @ (nodes.w * counts * (sigma @ test)) / 2
            known = np.exp(_cubic(logs[point, live], np.log2(unit / tried) * 2)) + np.maximum(variance, 0.0)
            close = make_interp_spline(_TRIED, np.log(known), axis=1)(_CLOSE)
            best = np.argmin(close, axis=1)
            risk[point, live] = np.exp(close[np.arange(live.size), best])
            gamma[point, live] = most * 2.0 ** -_CLOSE[best]
    unsought = (batch > 0) & ~allowed
    risk[:, 0] = np.where(unsought[:, 0], np.exp(logs[:, 0, 0]), risk[:, 0])
    for k in range(1, steps.size):
        risk[:, k] = np.where(unsought[:, k], risk[:, k - 1], risk[:, k])
    return risk, gamma


def largest_steps(nodes: Directions, batches: Array) -> Array:
    """γ_max of each batch."""
    root = np.sqrt(nodes.w / nodes.mu)
    feedback = nodes.R * np.outer(root, root) + nodes.Q / np.sqrt(np.outer(nodes.mu, nodes.mu))
    return np.asarray(2 / np.linalg.eigvalsh(np.diag(nodes.mu) + feedback / batches[:, None, None])[:, -1])


def _cubic(values: Array, places: Array) -> Array:
    """Rows (S, K) at real places (S, G) between whole ones, by a cubic through four neighbours."""
    k = np.clip(np.floor(places).astype(int), 1, values.shape[1] - 3)
    t, rows = places - k, np.arange(len(values))[:, None]
    a, b, c, d = (values[rows, k + shift] for shift in (-1, 0, 1, 2))
    return np.asarray(
        -a * t * (t - 1) * (t - 2) / 6
        + b * (t + 1) * (t - 1) * (t - 2) / 2
        - c * (t + 1) * t * (t - 2) / 2
        + d * (t + 1) * t * (t - 1) / 6
    )
