"""Many fits at once: Huber's loss on logarithms, minimised over all numbers of a law for many row weights.

A bootstrap replicate, a fold of a cross-validation and a start of the search are each one row of weights or
one start; NumPy walks over all of them together. A step is Gauss–Newton with Huber's weights (least squares
reweighted), damped, projected on E, A ≥ 0; coefficients of a start are a non-negative least squares.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from seqlaw.model.checks import Array
from seqlaw.runs.form import Form

HUBER = 1e-3
"""δ of log predicted minus log measured, as the field takes it (Hoffmann et al. 2022)."""
_STAGES = (0.1, 0.01, HUBER)  # a fit that begins far away is first a least squares
_MOST_STEPS = 60  # a stage
_LENGTHS = (1.0, 0.25, 2.5, 6.0)
_TOGETHER = 128  # replicates: their arrays stay in the cache
_TOLERANCE = 1e-9


@dataclass(frozen=True, kw_only=True)
class Points:
    """Rows in units of their middle: `u` (rows, columns) log x, `v` (rows) log loss, of mean zero."""

    u: Array
    v: Array


def predict(form: Form, p: Array, u: Array) -> Array:
    """log loss, shape (fits, rows), of p = (E, A_1 …, φ), shape (fits, numbers).

    u is (rows, columns), or (fits, rows, columns) where every fit has rows of its own.
    """
    return np.asarray(np.log(_parts(form, p, u)[0]))


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
    """Variable projection on a grid of φ, coefficients by non-negative least squares: the best `most`."""
    from scipy.optimize import nnls

    phi = form.starts()
    exponents = form.exponents(phi)
    y = np.exp(points.v)
    found = []
    for number, e in zip(phi, exponents, strict=True):
        columns = np.column_stack([np.ones(y.size), np.exp(-points.u @ e.T)]) / y[:, None]
        scale = np.linalg.norm(columns, axis=0)
        coefficients, rest = nnls(columns / scale, np.ones(y.size), maxiter=200)
        found.append((rest, [*(coefficients / scale), *number]))
    found.sort(key=lambda pair: pair[0])
    best = np.array([p for _, p in found[:most]])
    # A term that a start switches off could not come back: its exponents would have no slope.
    head = best[:, : 1 + len(form.terms)]
    best[:, : 1 + len(form.terms)] = np.maximum(head, 0.02)
    return best


def _parts(form: Form, p: Array, u: Array) -> tuple[Array, Array, Array]:
    """Loss (fits, rows), powers (fits, rows, terms) and e (fits, terms, columns)."""
    count = len(form.terms)
    e = form.exponents(p[:, 1 + count :])
    powers = np.exp(np.clip(-np.matmul(u, e.transpose(0, 2, 1)), -300, 300))
    return p[:, :1] + np.einsum("bnk,bk->bn", powers, p[:, 1 : 1 + count]) + 1e-300, powers, e


def _minimise(
    form: Form, points: Points, weights: Array, starts: Array, stages: tuple[float, ...]
) -> tuple[Array, Array]:
    least, most = form.bounds
    count = 1 + len(form.terms)
    low, high = np.concatenate([np.zeros(count), least]), np.concatenate([np.full(count, np.inf), most])
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
    w = weights / np.maximum(np.abs(rest), delta)
    weighted = jacobian * w[:, :, None]
    gradient = np.einsum("bnj,bn->bj", weighted, rest)
    normal = np.matmul(weighted.transpose(0, 2, 1), jacobian)
    held = ((p <= low) & (gradient > 0)) | ((p >= high) & (gradient < 0))
    gradient = np.where(held, 0.0, gradient)
    normal = np.where(held[:, :, None] | held[:, None, :], 0.0, normal)
    diagonal = np.einsum("bjj->bj", normal)
    floor = 1e-10 * diagonal.max(axis=1, keepdims=True) + 1e-30
    normal = normal + np.eye(p.shape[1]) * (diagonal * damping[:, None] + floor + held)[:, :, None]
    return np.asarray(-np.linalg.solve(normal, gradient[:, :, None])[:, :, 0])


def linearise(form: Form, points: Points, p: Array) -> tuple[Array, Array]:
    """log predicted minus log measured (fits, rows), and its derivatives (fits, rows, numbers)."""
    count = len(form.terms)
    loss, powers, _ = _parts(form, p, points.u)
    shares = powers * (p[:, None, 1 : 1 + count] / loss[:, :, None])
    jacobian = np.empty((*loss.shape, p.shape[1]))
    jacobian[:, :, 0] = 1 / loss
    jacobian[:, :, 1 : 1 + count] = powers / loss[:, :, None]
    phi = p[:, 1 + count :]
    for j in range(phi.shape[1]):
        nudge = np.zeros(phi.shape[1])
        nudge[j] = 1e-5
        slope = (form.exponents(phi + nudge) - form.exponents(phi - nudge)) / 2e-5
        terms = np.flatnonzero(np.any(slope != 0, axis=(0, 2)))  # most exponents have one number each
        moved = np.einsum("nc,bkc->bnk", points.u, slope[:, terms])
        jacobian[:, :, 1 + count + j] = -np.einsum("bnk,bnk->bn", shares[:, :, terms], moved)
    return np.log(loss) - points.v, jacobian
