"""Many fits at once: Huber's loss on logarithms, minimised over all numbers of a law for many row weights.

A bootstrap replicate, a fold of a cross-validation and a start of the search are each one row of weights or
one start; NumPy walks over all of them together. A step is Gauss–Newton with Huber's weights (least squares
reweighted), damped, projected on E, A ≥ 0; coefficients of a start are a non-negative least squares: of the
loss itself for a sum, of (loss - E)^q for a power mean at given E and q, where A_k^q are the coefficients.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product

import numpy as np

from seqlaw.model.checks import Array
from seqlaw.runs.form import LARGEST_Q, Form

HUBER = 1e-3
"""δ of log predicted minus log measured, as the field takes it (Hoffmann et al. 2022)."""
_STAGES = (0.1, 0.01, HUBER)  # a fit that begins far away is first a least squares
_MOST_STEPS = 60  # a stage
_LENGTHS = (1.0, 0.25, 2.5, 6.0)
_TOGETHER = 128  # replicates: their arrays stay in the cache
_TOLERANCE = 1e-9
_START_Q = (1.0, 1.7, 4.0)
_START_FLOORS = (0.0, 0.5, 0.8, 0.95)  # of the smallest loss


@dataclass(frozen=True, kw_only=True)
class Points:
    """Rows in units of their middle: `u` (rows, columns) log x, `v` (rows) log loss, of mean zero."""

    u: Array
    v: Array
    floor: float | None = None
    """E where it is given, in units of the middle loss."""


def predict(form: Form, p: Array, u: Array) -> Array:
    """log loss, shape (fits, rows), of p = (E, A_1 …, φ), and 1/q of a power mean, shape (fits, numbers).

    u is (rows, columns), or (fits, rows, columns) where every fit has rows of its own.
    """
    logs, powers = _powers(form, p, u)
    return np.asarray(np.log(_loss(form, p, logs, powers)[0]))


def objective(rest: Array, weights: Array, delta: float = HUBER) -> Array:
    """Σ_i w_i ρ_δ(r_i) over δ, shape (fits): near Σ w|r|."""
    size = np.abs(rest)
    return np.asarray(np.sum(weights * np.where(size <= delta, size**2 / (2 * delta), size - delta / 2), -1))


def minimise(
    form: Form, points: Points, weights: Array, starts: Array, stages: tuple[float, ...] = _STAGES
) -> tuple[Array, Array]:
    """The fits p (fits, numbers) and their objectives (fits), from starts (fits, numbers)."""
    found = [
        _minimise(form, points, weights[k : k + _TOGETHER], starts[k : k + _TOGETHER], stages)
        for k in range(0, len(starts), _TOGETHER)
    ]
    return np.concatenate([p for p, _ in found]), np.concatenate([value for _, value in found])


def start_points(form: Form, points: Points, most: int) -> Array:
    """Variable projection on a grid of φ, coefficients by non-negative least squares: the best `most`.

    A power mean's grid has E and q too. Rows are divided by the slope of log loss, so that the sum of
    squares is that of logarithms to first order.
    """
    from scipy.optimize import nnls

    phi = form.starts()
    exponents = form.exponents(phi)
    y = np.exp(points.v)
    floors = [points.floor]
    if form.kind != "sum" and points.floor is None:
        floors = [share * float(y.min()) for share in _START_FLOORS]
    found = []
    for (number, e), q, floor in product(
        zip(phi, exponents, strict=True), _START_Q if form.kind != "sum" else (1.0,), floors
    ):
        above = y - (floor or 0.0)
        slope = q * y * above ** (q - 1)
        columns = np.exp(-q * points.u @ e.T)
        if floor is None:
            columns = np.column_stack([np.ones(y.size), columns])
        columns = columns / slope[:, None]
        scale = np.linalg.norm(columns, axis=0)
        solved, rest = nnls(columns / scale, above**q / slope, maxiter=200)
        head = (solved / scale) ** (1 / q)
        given = [] if floor is None else [floor]
        found.append((rest, [*given, *head, *number, *([1 / q] if form.kind != "sum" else [])]))
    found.sort(key=lambda pair: pair[0])
    best = np.array([p for _, p in found[:most]])
    # A term that a start switches off could not come back: its exponents would have no slope.
    head = best[:, : 1 + len(form.terms)]
    best[:, : 1 + len(form.terms)] = np.maximum(head, 0.02)
    return best


def _powers(form: Form, p: Array, u: Array) -> tuple[Array, Array]:
    """Σ_c -e_kc u_c and its exponential, shape (fits, terms, rows)."""
    e = form.exponents(p[:, form.place])
    if u.ndim == 2:  # one product of matrices for all fits
        logs = -(e.reshape(-1, e.shape[-1]) @ u.T).reshape(*e.shape[:2], -1)
    else:
        logs = -np.matmul(e, u.transpose(0, 2, 1))
    logs = np.clip(logs, -300, 300)
    return logs, np.exp(logs)


def _loss(form: Form, p: Array, logs: Array, powers: Array) -> tuple[Array, Array, Array]:
    """Loss and S = loss - E (fits, rows); of a power mean w_k = (t_k/S)^q too, which sum to one."""
    A = p[:, 1 : 1 + len(form.terms), None]
    if form.kind == "sum":
        above = np.sum(powers * A, axis=1)
        return p[:, :1] + above + 1e-300, above, powers
    t, s = logs + np.log(np.maximum(A, 1e-300)), p[:, -1:]
    top = t.max(axis=1)
    w = np.exp((t - top[:, None, :]) / s[:, :, None])
    total = w.sum(axis=1)
    above = np.exp(top + s * np.log(total))
    return p[:, :1] + above + 1e-300, above, w / total[:, None, :]


def _minimise(
    form: Form, points: Points, weights: Array, starts: Array, stages: tuple[float, ...]
) -> tuple[Array, Array]:
    low, high = _bounds(form, points)
    p = np.clip(starts, low, high)
    value: Array = np.empty(len(p))
    for delta in stages:
        damping = np.full(len(p), 1e-3)
        value = objective(predict(form, p, points.u) - points.v, weights, delta)
        going, calm = np.arange(len(p)), np.zeros(len(p), dtype=int)
        last = delta == stages[-1]
        for _ in range(_MOST_STEPS if last else _MOST_STEPS // 4):
            step = _step(form, points, weights[going], p[going], damping[going], delta, low, high)
            before = value[going]
            best, better = before.copy(), p[going]
            for length in _LENGTHS:
                tried = np.clip(p[going] + length * step, low, high)
                worth = objective(predict(form, tried, points.u) - points.v, weights[going], delta)
                lower = worth < best
                best, better = np.where(lower, worth, best), np.where(lower[:, None], tried, better)
            p[going], value[going] = better, best
            gained = before - best
            damping[going] = np.clip(np.where(gained > 0, damping[going] / 3, damping[going] * 8), 1e-9, 1e9)
            small = gained <= _TOLERANCE * np.maximum(before, 1e-12)
            calm[going] = np.where(small, calm[going] + 1, 0)
            going = going[calm[going] < 4]
            if not going.size:
                break
    return p, value


def _bounds(form: Form, points: Points) -> tuple[Array, Array]:
    """The least and the largest p; a floor that is given has no room."""
    least, most = form.bounds
    count, ends = 1 + len(form.terms), ([1 / LARGEST_Q], [1.0]) if form.kind != "sum" else ([], [])
    low = np.concatenate([np.zeros(count), least, ends[0]])
    high = np.concatenate([np.full(count, np.inf), most, ends[1]])
    if points.floor is not None:
        low[0] = high[0] = points.floor
    return low, high


def _step(
    form: Form,
    points: Points,
    weights: Array,
    p: Array,
    damping: Array,
    delta: float,
    low: Array,
    high: Array,
) -> Array:
    """One damped Gauss–Newton step of the reweighted squares, none through a bound that is met."""
    rest, jacobian = linearise(form, points, p)
    weighted = jacobian * (weights / np.maximum(np.abs(rest), delta))[:, None, :]
    gradient = np.matmul(weighted, rest[:, :, None])[:, :, 0]
    normal = np.matmul(weighted, jacobian.transpose(0, 2, 1))
    held = ((p <= low) & (gradient > 0)) | ((p >= high) & (gradient < 0)) | (low == high)
    gradient = np.where(held, 0.0, gradient)
    normal = np.where(held[:, :, None] | held[:, None, :], 0.0, normal)
    diagonal = np.einsum("bjj->bj", normal)
    floor = 1e-10 * diagonal.max(axis=1, keepdims=True) + 1e-30
    normal = normal + np.eye(p.shape[1]) * (diagonal * damping[:, None] + floor + held)[:, :, None]
    return np.asarray(-np.linalg.solve(normal, gradient[:, :, None])[:, :, 0])


def linearise(form: Form, points: Points, p: Array) -> tuple[Array, Array]:
    """log predicted minus log measured (fits, rows), and its derivatives (fits, numbers, rows).

    Of a power mean dS/dA_k = (t_k/S)^{q-1} t_k/A_k, dS/dt_k = w_k S/t_k and d log S/d(1/q) = -Σ w log w.
    """
    count = len(form.terms)
    logs, powers = _powers(form, p, points.u)
    loss, above, w = _loss(form, p, logs, powers)
    A = p[:, 1 : 1 + count, None]
    jacobian = np.empty((len(p), p.shape[1], loss.shape[1]))
    jacobian[:, 0] = 0.0 if points.floor is not None else 1 / loss
    if form.kind == "sum":
        slopes = powers / loss[:, None, :]
        shares = slopes * A
    else:
        below = np.log(np.maximum(A, 1e-300)) + logs - np.log(above)[:, None, :]
        slopes = powers * np.exp((1 / p[:, -1] - 1)[:, None, None] * below) / loss[:, None, :]
        shares = w * (above / loss)[:, None, :]
        jacobian[:, -1] = -np.sum(shares * np.log(np.maximum(w, 1e-300)), axis=1)
    jacobian[:, 1 : 1 + count] = slopes
    phi = p[:, form.place]
    for j in range(phi.shape[1]):
        nudge = np.zeros(phi.shape[1])
        nudge[j] = 1e-5
        slope = (form.exponents(phi + nudge) - form.exponents(phi - nudge)) / 2e-5
        terms = np.flatnonzero(np.any(slope != 0, axis=(0, 2)))  # most exponents have one number each
        moved = np.matmul(slope[:, terms], points.u.T)
        jacobian[:, 1 + count + j] = -np.sum(shares[:, terms] * moved, axis=1)
    return np.log(loss) - points.v, jacobian
