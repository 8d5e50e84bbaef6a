"""The noise of a mini-batch step in each eigendirection of G, given a sketch (docs/one-pass-theory.md, §2).

`Directions` has the coefficients of the recursion (10) in `law`; they are made from `StepNoise`.
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
from seqlaw.methods.score import lag_rows, lag_sums, score
from seqlaw.model.arrays import host, is_host, like, namespace, zeros
from seqlaw.model.checks import Array
from seqlaw.model.filters import Schedule
from seqlaw.model.lengths import Length, averaged, longest, mean_length
from seqlaw.model.sketch import Problem
from seqlaw.model.teacher import Modes

_CLOSE = 1e-14
"""The relative error of a diagonal entry of K that the channels may leave, and of the norm of J."""
_MOST_PRODUCTS = 2**21  # numbers of the channel products of one length
_PROBES = 40  # random directions that find the range of J, whose rank to rounding is 8 to 15
_TILE, _TILE_ELSEWHERE = 2**18, 2**25  # entries of J at a time, on the host and on a card


@dataclass(frozen=True, kw_only=True, eq=False)
class Directions:
    """The coefficients of the variance's recursion in n directions; similar ones are merged."""

    mu: Array
    """The eigenvalue of G, n."""
    w: Array
    """How many directions each stands for, n."""
    R: Array
    """Noise in i per unit of squared error in each k, from the trace term of N[X], n×n."""
    Q: Array
    """The same from the product term of N[X]; not to be multiplied by w_k, n×n."""
    A: Array
    """The noise of one trajectory at B*, n."""
    beta: Array
    """|(B* - B_0) u_i|², n."""
    ell: Array
    """ℓ, the noise that is linear in the mean error, n×n."""
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


def under(nodes: Directions, schedule: Schedule) -> tuple[Directions, Array]:
    """Turn a preconditioner or weight decay into plain descent in changed directions.

    The second is the factor μ^-p by which a variance computed there is multiplied to give v. Gradients times
    G^-p are plain descent on inputs G^{-p/2}u: μ becomes μ^q, q = 1 - p.
    With weight decay λ the mean error is B*(λ + μψ(x))/x, x = μ + λ, and its constant part adds to the noise.
    """
    if schedule.entire:
        return nodes, nodes.w * 0 + 1
    counts, decay = nodes.mu**-schedule.precondition, schedule.weight_decay
    mu, beta = nodes.mu * counts, nodes.beta / counts
    R, Q = (x * (counts[:, None] * counts) for x in (nodes.R, nodes.Q))
    A, ell = nodes.A * counts, nodes.ell * counts[:, None]
    if decay:
        x = mu + decay
        constant, rest = decay / x, mu / x
        linear, square = ell * nodes.w, (R * nodes.w + Q) * beta
        A = A + linear @ constant + square @ constant**2
        ell, beta = rest * (linear + 2 * square * constant) / nodes.w, beta * rest**2
        mu = x
    moved = Directions(
        mu=mu, w=nodes.w, R=R, Q=Q, A=A, beta=beta, ell=ell, norm=float(schedule.speed(nodes.norm))
    )
    return moved, counts


def channels(modes: Modes, P: Length) -> Array:
    """The channels φ (c × d, c about 10) with K/P² = φᵀφ: a pivoted Cholesky decomposition.

    K is first scaled to a unit diagonal: a channel far below the largest entry may be all that the tail has.
    """
    blocks, each = [slice(first, first + 32) for first in range(0, modes.d, 32)], mean_length(P)
    some = (Modes(a=modes.a[at], sigma_xi=modes.sigma_xi[at], sigma_0=modes.sigma_0[at]) for at in blocks)
    diagonal = np.concatenate([np.diag(lag_sums(part, P)[0]) for part in some]) / each
    scale = np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    remaining, phi = (diagonal > 0).astype(np.float64), np.zeros((0, modes.d))
    while remaining.max() > _CLOSE and len(phi) < modes.d:
        j = int(np.argmax(remaining))
        row = lag_sums(modes, P, slice(j, j + 1))[0][0] / each / (scale[j] * scale)
        new = (row - phi[:, j] @ phi) / np.sqrt(remaining[j])
        phi = np.vstack([phi, new])
        remaining = np.maximum(remaining - new**2, 0.0)
        remaining[j] = 0.0
    return phi * scale


def innovation_lags(modes: Modes, P: Length, *, beside: Array | None = None) -> tuple[Array, Array]:
    """X and Y (r × d) with J/P² = XᵀY and r about 10: random directions find the range of the scaled J.

    J_jl is σ_ξ,l a_j h_j times a smooth function of a_j and a_l. The result is on the device of `beside`.
    """
    d, each, beside = modes.d, mean_length(P), modes.a if beside is None else beside
    if longest(P) == 1:
        return zeros(beside, 0, d), zeros(beside, 0, d)
    sizes = (averaged(modes, P) * np.abs(modes.a), modes.sigma_xi)
    height, breadth = (like(beside, np.where(x > 0, x, 1.0)) for x in sizes)
    probes = like(beside, np.random.default_rng(0).standard_normal((d, min(d, _PROBES))))
    step = max(1, (_TILE if is_host(beside) else _TILE_ELSEWHERE) // d)
    tiles = [slice(first, first + step) for first in range(0, d, step)]

    lags = lag_rows(modes, P, beside=beside)

    def scaled(rows: slice) -> Array:
        J = lags(rows)[1]
        smooth: Array = J / each / height[rows, None] / breadth
        return smooth

    image = np.vstack([host(scaled(rows) @ probes) for rows in tiles])
    U, size, _ = np.linalg.svd(image, full_matrices=False)
    U = like(beside, U[:, size > _CLOSE * size[0]] if size[0] > 0 else U[:, :0])
    Y = sum((U[rows].T @ scaled(rows) for rows in tiles), zeros(beside, U.shape[1], d))
    return U.T * height, Y * breadth


Eigensystems = dict[bytes, tuple[Array, Array]]
"""Eigenvalues and eigenvectors of the recursion of one step, by step size and batch."""


class ChannelProducts(NamedTuple):
    """The products of a sketch with each channel and lag, for students that start in many places.

    With c channels φ and r lags (x, y), M×M each: much memory for a wide student.
    """

    f: Array
    """(sφsᵀ)_ii, M × c."""
    Q: Array
    """Σ_c (sφsᵀ)², M × M."""
    lag_trace: Array
    """(sxsᵀ)_ii, M × r."""
    channel: Array
    """sφsᵀ, c × M × M."""
    channel_error: Array
    """sφDᵀ, c × M × M."""
    lag: Array
    """sxsᵀ, r × M × M."""
    lag_student: Array
    """sySᵀ, r × M × M."""
    eigensystems: Eigensystems
    """Those of the steps taken so far."""


class StepNoise(NamedTuple):
    """The noise of a mini-batch step on one sketch, for any student: channels, lags and the noise at B*."""

    s: Array
    """UᵀS, M × d."""
    phi: Array
    """The channels of K, c × d."""
    lags: tuple[Array, Array]
    """X and Y with J/P² = XᵀY, r × d each."""
    A: Array
    """UᵀAU, the noise at B*, M × M."""
    products: ChannelProducts | None = None
    """None: computed channel by channel when they are needed."""


def step_noise(
    problem: Problem,
    channels_and_lags: tuple[Array, tuple[Array, Array]] | None = None,
    covariance: Array | None = None,
    *,
    many_starts: bool = False,
) -> StepNoise:
    """The noise of a step on this sketch; channels, lags and the covariance of the score may be known.

    For `many_starts` the channel products are computed now, if they fit into memory.
    """
    modes, P, S, U = problem.modes, problem.length, problem.S, problem.eigenvectors
    if channels_and_lags is None:
        channels_and_lags = like(S, channels(modes, P)), innovation_lags(modes, P, beside=S)
    phi, lags = channels_and_lags
    covariance = score(problem).covariance if covariance is None else covariance
    noise = StepNoise(U.T @ S, phi, lags, U.T @ (covariance / mean_length(P)) @ U)
    fits = 2 * (len(phi) + len(lags[0])) * problem.M**2 <= _MOST_PRODUCTS
    return noise._replace(products=_channel_products(problem, noise)) if many_starts and fits else noise


def _channel_products(problem: Problem, noise: StepNoise) -> ChannelProducts:
    s, (X, Y) = noise.s, noise.lags

    def each(rows: Array, right: Array) -> Array:
        """s diag(row) right for each row, rows × M × M."""
        found = np.empty((len(rows), problem.M, problem.M))
        for k, row in enumerate(rows):
            found[k] = (s * row) @ right
        return found

    channel = each(noise.phi, s.T)
    return ChannelProducts(
        f=s**2 @ noise.phi.T,
        Q=np.sum(channel**2, axis=0),
        lag_trace=s**2 @ X.T,
        channel=channel,
        channel_error=each(noise.phi, problem.D.T),
        lag=each(X, s.T),
        lag_student=each(Y, problem.S.T),
        eigensystems={},
    )


def sketch_directions(
    problem: Problem, noise: StepNoise | None = None, start: Array | None = None
) -> Directions:
    """The M directions of one sketch (8), (9), for a student that starts at `start`, or at 0."""
    U, mu, xp = problem.eigenvectors, problem.eigenvalues, namespace(problem.S)
    noise = step_noise(problem) if noise is None else noise
    b = (problem.B_star if start is None else problem.B_star - start) @ U  # columns b_k = (B* - B_0) u_k
    if noise.products is None:
        f, Q, ell = _streamed(problem, noise, b)
    else:
        f, Q, ell = _from_products(noise.products, b)
    return Directions(
        mu=mu,
        w=zeros(mu, problem.M) + 1,
        R=f @ f.T,
        Q=Q,
        A=xp.asarray(xp.linalg.diagonal(noise.A), copy=True),
        beta=xp.sum(b**2, axis=0),
        ell=2 * ell,
        norm=float(mu[-1]),
    )


def _streamed(problem: Problem, noise: StepNoise, b: Array) -> tuple[Array, Array, Array]:
    """f, Q and ℓ/2, channel by channel: no more than one M×M product is held.

    The trace part of ℓ_ik/2 is Σ_l s_il² Σ_j [K_lj (Dᵀb_k)_j + J_lj (Sᵀb_k)_j] s_kj, the product part
    Σ_c (sφ_cDᵀb)_ik (sφ_csᵀ)_ik + Σ_(x,y) (sxsᵀ)_ik (sySᵀb)_ik.
    """
    s, phi, (X, Y) = noise.s, noise.phi, noise.lags
    error, student = problem.D.T @ b, problem.S.T @ b  # d×M
    squares = s**2
    Q, f = zeros(s, problem.M, problem.M), squares @ phi.T
    ell = f @ (phi @ (error * s.T)) + (squares @ X.T) @ (Y @ (student * s.T))
    for channel in phi:
        product = (s * channel) @ s.T
        Q += product**2
        ell += ((s * channel) @ error) * product
    for x, y in zip(X, Y, strict=True):
        ell += ((s * x) @ s.T) * ((s * y) @ student)
    return f, Q, ell


def _from_products(known: ChannelProducts, b: Array) -> tuple[Array, Array, Array]:
    """The same from the channel products: nothing has the size d."""
    error, student = known.channel_error @ b, known.lag_student @ b
    ell = known.f @ np.diagonal(error, axis1=1, axis2=2)
    ell = ell + known.lag_trace @ np.diagonal(student, axis1=1, axis2=2)
    ell += np.einsum("cik,cik->ik", error, known.channel) + np.einsum("cik,cik->ik", student, known.lag)
    return known.f, known.Q, ell


def grouped(nodes: Directions, tested: Array) -> tuple[Directions, Array]:
    """Similar directions merged: the largest stay alone, the rest form groups of even width in log i.

    A group has the mean of its members; of Q only the diagonal is kept, with Q_ii = R_ii (10). `tested`
    (n) is averaged in the same way.
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
