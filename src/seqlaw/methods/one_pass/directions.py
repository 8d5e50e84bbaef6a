"""What a student has in each direction that it learns, given a sketch (docs/one-pass.md, §2).

In the eigenbasis G = U diag(μ) Uᵀ, s = UᵀS, with the lag sums K and J of the score divided by P² (of a
mixture w_k/P_k over the mean length):
    N[X] = Σ_c tr(XΓ_c) Γ_c + Γ_c X Γ_c,  Γ_c = S diag(φ_c) Sᵀ,  K = Σ_c φ_c φ_cᵀ   the noise of a step at X,
    R_ik = Σ_c f_ci f_ck,  f_ci = (UᵀΓ_cU)_ii,  Q_ik = Σ_c (UᵀΓ_cU)_ik².
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

import numpy as np

from seqlaw.methods.accuracy import fine
from seqlaw.methods.score import lag_sums, score
from seqlaw.model.arrays import host, is_host, like, namespace, zeros
from seqlaw.model.checks import Array
from seqlaw.model.lengths import Length, averaged, longest, mean_length
from seqlaw.model.sketch import Problem
from seqlaw.model.teacher import Modes

_CLOSE = 1e-14
"""What the channels leave of a diagonal entry of K, and a J of its norm."""
_PROBES = 40  # random directions that find the range of J, whose rank to rounding is 8 to 15
_TILE, _TILE_ELSEWHERE = 2**18, 2**25  # entries of J at a time, on the host and on a card


@dataclass(frozen=True, kw_only=True, eq=False)
class Directions:
    """Directions of the student, n of them; those that are alike share one, with multiplicity w."""

    mu: Array
    w: Array
    R: Array
    """What the error in direction k adds to the noise in i through the trace, n×n."""
    Q: Array
    """… and through the product: of one direction, not times w."""
    A: Array
    """The noise of one trajectory at B*."""
    beta: Array
    """|B* u_i|²."""
    ell: Array
    """The noise that is linear in the mean error, n×n."""
    norm: float
    """‖G‖."""

    def largest_step(self, batch: float) -> float:
        """γ_max = 2/λ_max(diag μ + μ^-½ [√w R √w + Q] μ^-½/b): beyond, the mean square diverges (13)."""
        mu, xp = self.mu, namespace(self.mu)
        root = xp.sqrt(self.w / mu)
        feedback = self.R * (root[:, None] * root) + self.Q / xp.sqrt(mu[:, None] * mu)
        own = xp.eye(mu.shape[0], dtype=mu.dtype, device=mu.device) * mu
        return 2 / float(xp.linalg.eigvalsh(own + feedback / batch)[-1])

    @property
    def inflation(self) -> Array:
        """R_ii/μ_i²: one over the independent tokens that a trajectory counts for in a direction."""
        found: Array = namespace(self.R).linalg.diagonal(self.R) / self.mu**2
        return found

    def on_host(self) -> Directions:
        """The same with NumPy's arrays."""
        return Directions(**{field.name: host(getattr(self, field.name)) for field in fields(self)})


def channels(modes: Modes, P: Length) -> Array:
    """φ with K/P² = φᵀφ (channels × d): pivoted Cholesky of K scaled to a unit diagonal.

    Scaled, since a channel that is nothing next to the largest entry is all that the tail has.
    """
    blocks, each = [slice(first, first + 32) for first in range(0, modes.d, 32)], mean_length(P)
    diagonal = np.concatenate([np.diag(lag_sums(_some(modes, block), P)[0]) for block in blocks]) / each
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    left, found = (diagonal > 0).astype(np.float64), np.zeros((0, modes.d))
    while left.max() > _CLOSE and len(found) < modes.d:
        j = int(np.argmax(left))
        row = lag_sums(modes, P, slice(j, j + 1))[0][0] / each / (scale[j] * scale)
        new = (row - found[:, j] @ found) / np.sqrt(left[j])
        found = np.vstack([found, new])
        left = np.maximum(left - new**2, 0.0)
        left[j] = 0.0
    return found * scale


def _some(modes: Modes, at: slice) -> Modes:
    return Modes(a=modes.a[at], sigma_xi=modes.sigma_xi[at], sigma_0=modes.sigma_0[at])


def innovation_lags(modes: Modes, P: Length, *, near: Array | None = None) -> tuple[Array, Array]:
    """(X, Y) with J/P² = XᵀY, few rows each: the range of the scaled J from random directions.

    J_jl = σ_ξ,l a_j h_j times a smooth function of a_j and a_l. Beside an array `near`, or on the host.
    """
    d, each, near = modes.d, mean_length(P), modes.a if near is None else near
    if longest(P) == 1:
        return zeros(near, 0, d), zeros(near, 0, d)
    sizes = (averaged(modes, P) * np.abs(modes.a), modes.sigma_xi)
    height, breadth = (like(near, np.where(x > 0, x, 1.0)) for x in sizes)
    probes = like(near, np.random.default_rng(0).standard_normal((d, min(d, _PROBES))))
    step = max(1, (_TILE if is_host(near) else _TILE_ELSEWHERE) // d)
    tiles = [slice(first, first + step) for first in range(0, d, step)]

    def scaled(rows: slice) -> Array:
        J = lag_sums(modes, P, rows, near=near)[1]
        smooth: Array = J / each / height[rows, None] / breadth
        return smooth

    image = np.vstack([host(scaled(rows) @ probes) for rows in tiles])
    U, size, _ = np.linalg.svd(image, full_matrices=False)
    U = like(near, U[:, size > _CLOSE * size[0]] if size[0] > 0 else U[:, :0])
    Y = sum((U[rows].T @ scaled(rows) for rows in tiles), zeros(near, U.shape[1], d))
    return U.T * height, Y * breadth


Turned = dict[bytes, tuple[Array, Array]]
"""Eigenvalues and eigenvectors of a step, by its size and batch."""


class Kept(NamedTuple):
    """What of the noise no start changes; a channel's is M×M."""

    f: Array
    R: Array
    Q: Array
    product: Array
    """sφsᵀ of each channel φ."""
    missed: Array
    """sφDᵀ."""
    traced: Array
    """The trace of each lag's x."""
    lagged: Array
    """sxsᵀ."""
    carried: Array
    """sySᵀ."""
    turned: Turned
    """The eigensystems of steps that were taken."""


def keep(problem: Problem, known: Ground) -> Ground:
    """The same with what no start changes: `directions_of` is then a product of M×M a channel."""
    s, phi, (X, Y), *_ = known
    seen = s**2

    def each(rows: Array, with_: Array) -> Array:
        """(s·row) withᵀ for each row, (rows, M, M)."""
        found = np.empty((len(rows), problem.M, problem.M))
        for k, row in enumerate(rows):
            found[k] = (s * row) @ with_
        return found

    product = each(phi, s.T)
    f = seen @ phi.T
    kept = Kept(
        f=f,
        R=f @ f.T,
        Q=np.sum(product**2, axis=0),
        product=product,
        missed=each(phi, problem.D.T),
        traced=seen @ X.T,
        lagged=each(X, s.T),
        carried=each(Y, problem.S.T),
        turned={},
    )
    return known._replace(kept=kept)


class Ground(NamedTuple):
    """What the noise of a step has on one sketch, wherever the student stands."""

    s: Array
    """UᵀS."""
    phi: Array
    """The channels of K."""
    lags: tuple[Array, Array]
    """J as a product."""
    A: Array
    """UᵀAU, the noise at B*, M×M."""
    kept: Kept | None = None
    """For many starts on one sketch; M×M a channel, so not of wide students."""


def ground(problem: Problem) -> Ground:
    """The channels, and the noise at B*."""
    modes, P, S = problem.modes, problem.P, problem.S
    phi, lags = like(S, channels(modes, P)), innovation_lags(modes, P, near=S)
    return grounded(problem, phi, lags, score(problem).covariance)


def grounded(problem: Problem, phi: Array, lags: tuple[Array, Array], covariance: Array) -> Ground:
    """The same from channels that are known, and the covariance of the score."""
    U = problem.eigenvectors
    return Ground(U.T @ problem.S, phi, lags, U.T @ (covariance / mean_length(problem.P)) @ U)


def directions_of(problem: Problem, known: Ground | None = None, start: Array | None = None) -> Directions:
    """The nodes of one sketch: one a direction (8), (9). The student starts at 0 unless told."""
    U, mu, xp = problem.eigenvectors, problem.eigenvalues, namespace(problem.S)
    s, phi, (X, Y), noise, kept = ground(problem) if known is None else known
    b = (problem.B_star if start is None else problem.B_star - start) @ U  # columns b_k = B* u_k
    if kept is not None:
        return _from_kept(kept, b, mu, noise)
    missed, carried = problem.D.T @ b, problem.S.T @ b  # (Dᵀb_k)_j, (Sᵀb_k)_j: d×M
    seen, weighted = s**2, missed * s.T
    Q, f = zeros(s, problem.M, problem.M), seen @ phi.T
    # The trace part: 2 Σ_l s_il² Σ_j [K_lj (Dᵀb_k)_j + J_lj (Sᵀb_k)_j] s_kj.
    ell = f @ (phi @ weighted) + (seen @ X.T) @ (Y @ (carried * s.T))
    for one in phi:  # the product part, channel by channel
        product = (s * one) @ s.T
        Q += product**2
        ell += ((s * one) @ missed) * product
    for x, y in zip(X, Y, strict=True):
        ell += ((s * x) @ s.T) * ((s * y) @ carried)
    return Directions(
        mu=mu,
        w=zeros(s, problem.M) + 1,
        R=f @ f.T,
        Q=Q,
        A=xp.asarray(xp.linalg.diagonal(noise), copy=True),
        beta=xp.sum(b**2, axis=0),
        ell=2 * ell,
        norm=float(mu[-1]),
    )


def _from_kept(kept: Kept, b: Array, mu: Array, noise: Array) -> Directions:
    """The nodes of a start, its b_k as columns."""
    missed, carried = kept.missed @ b, kept.carried @ b
    ell = kept.f @ np.diagonal(missed, axis1=1, axis2=2) + kept.traced @ np.diagonal(
        carried, axis1=1, axis2=2
    )
    ell += np.einsum("cik,cik->ik", missed, kept.product) + np.einsum("cik,cik->ik", carried, kept.lagged)
    return Directions(
        mu=mu,
        w=np.ones(mu.size),
        R=kept.R,
        Q=kept.Q,
        A=np.diag(noise).copy(),
        beta=np.sum(b**2, axis=0),
        ell=2 * ell,
        norm=float(mu[-1]),
    )


def grouped(nodes: Directions, tested: Array) -> tuple[Directions, Array]:
    """Alike directions as one: the largest as they are, the rest in groups of even width in log i.

    Plain means over a group; of the products only the diagonal stays, and Q_ii = R_ii (10). `tested`
    are further numbers a direction.
    """
    n = nodes.mu.size
    alone, a_fold = fine.crowd
    count = int(np.ceil(a_fold * np.log(n / alone))) if n > alone else 0
    edges = np.unique(np.round(np.geomspace(alone, n, count + 1)).astype(int)) if count else np.array([n])
    bounds = np.concatenate([np.arange(min(alone, n)), edges])
    order = np.argsort(-nodes.mu)
    w = np.diff(bounds).astype(np.float64)

    def mean(values: Array, axis: int = 0) -> Array:
        sums = np.add.reduceat(np.take(values, order, axis=axis), bounds[:-1], axis=axis)
        return sums / (w if axis == values.ndim - 1 else w[:, None])

    R = mean(mean(nodes.R), 1)
    own = mean(np.diag(nodes.R))
    Q = np.where(np.outer(w, w) == 1, nodes.Q[np.ix_(order[bounds[:-1]], order[bounds[:-1]])], 0.0)
    np.fill_diagonal(Q, own)
    return Directions(
        mu=mean(nodes.mu),
        w=w,
        R=R,
        Q=Q,
        A=mean(nodes.A),
        beta=mean(nodes.beta),
        ell=mean(mean(nodes.ell), 1),
        norm=nodes.norm,
    ), mean(tested)
