"""The covariance of the training score in closed form, lagged terms included (beyond the paper).

With e_p = y_p - B* u_p, T = Σ_p e_p u_pᵀ and Q = Ĉ - B*Ĝ = (NP)^-1 Σ_i T_i, Isserlis and C = B*G give
    E[TᵀT] = S [ (DᵀD)∘K + (DᵀS)∘J + ((DᵀS)∘J)ᵀ + diag(t) ] Sᵀ,
    t_l = Σ_j (DᵀD)_jj K_jl + tr(SΣ_ξSᵀ) Σ_p σ_p,l + 2 Σ_j (DᵀS)_jj J_lj,
    K_jl = Σ_p σ_p,j σ_p,l (1 + 2 Σ_{k=1}^{P-1-p} w^k),   w = a_j a_l,
    J_jl = σ_ξ,l a_j Σ_p σ_p,j Σ_{k=0}^{P-2-p} w^k.
Both sums over positions are built by doubling P: every term is positive (for a ≥ 0), so nothing cancels
as a → 1, and the cost is O(log P) at most. The paper's guide keeps p = q only.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from seqlaw.methods.finite_sample.positions import interpolation
from seqlaw.model.arrays import ends, is_host, like, namespace, plus_product, zeros
from seqlaw.model.checks import Array, library
from seqlaw.model.lengths import Length, Lengths
from seqlaw.model.sketch import Problem
from seqlaw.model.teacher import Modes

_TILE = 2**14  # entries of K and J at a time, so that a dozen such arrays stay near the processor
_TILE_ELSEWHERE = 2**25  # on a card, where some thirty such arrays are 8 GiB and products need their rows
_FORGOTTEN = 2.0**-64  # what is left of the start when the rest of the trajectory counts as stationary
_INTERPOLATED = 1e-15  # relative error of K and J between values of a


class Placed(NamedTuple):
    """The numbers of `Modes` that the sums take, on any device."""

    a: Array
    sigma_xi: Array
    sigma_0: Array
    stationary: Array

    @classmethod
    def of(cls, modes: Modes, beside: Array | None = None) -> Placed:
        """Beside an array, or on the host."""
        numbers = (modes.a, modes.sigma_xi, modes.sigma_0, modes.stationary)
        return cls(*(x if beside is None else like(beside, x) for x in numbers))


Result = TypeVar("Result")
Part = Array | float
"""A number for each pair of modes, for each mode of a kind, or for all: what is not there takes no time."""


class _Pair(NamedTuple):
    """A sum over a block of positions as a polynomial in the variances (x_j, y_l) at its start:
    xy·x_j·y_l + x·x_j + y·y_l + one."""

    xy: Part
    x: Part
    y: Part
    one: Part


class _Single(NamedTuple):
    """The same for a sum in which only x_j appears: x·x_j + one."""

    x: Part
    one: Part


def lag_sums(
    modes: Modes, P: Length, rows: slice = slice(None), *, beside: Array | None = None
) -> tuple[Array, Array]:
    """K/P and J/P (rows × d each) for the modes j in `rows` against all l; of a mixture Σ_k w_k of them.

    The result is on the device of `beside`, or on the host.
    """
    return next(lag_sums_at(modes, [P], rows, beside=beside))


def lag_rows(
    modes: Modes, P: Length, *, beside: Array | None = None
) -> Callable[[slice], tuple[Array, Array]]:
    """`lag_sums` for many slices of rows."""
    if (through := _through_few(modes, beside)) is None:
        return lambda rows: lag_sums(modes, P, rows, beside=beside)
    F, few, a = through
    K, J = (x @ F.T for x in next(_summed(few, [P], beside=beside)))
    return lambda rows: (F[rows] @ K, a[rows] * (F[rows] @ J))


def lag_sums_at(
    modes: Modes, lengths: Iterable[Length], rows: slice = slice(None), *, beside: Array | None = None
) -> Iterator[tuple[Array, Array]]:
    """`lag_sums` at many lengths."""
    if (through := _through_few(modes, beside)) is None:
        a = like(modes.a if beside is None else beside, modes.a[rows, None])
        yield from ((K, a * J) for K, J in _summed(modes, lengths, rows, beside=beside))
        return
    F, few, a = through
    for K, J in _summed(few, lengths, beside=beside):
        yield (F[rows] @ K) @ F.T, a[rows] * ((F[rows] @ J) @ F.T)


def _through_few(modes: Modes, beside: Array | None) -> tuple[Array, Modes, Array] | None:
    """F (modes × few), few modes with K = FK'Fᵀ and J/a = F(J/a)'Fᵀ, and a; None where few are not fewer.

    K and J/a are linear in σ_0 and σ_ξ of each of their modes, and else functions of its a.
    """
    nodes, share = interpolation(modes.a, _INTERPOLATED, most=modes.d // 4 + 1)
    if nodes.size > modes.d // 4:
        return None
    F = np.concatenate([modes.sigma_0[:, None] * share, modes.sigma_xi[:, None] * share], axis=1)
    innovation = np.repeat([0.0, 1.0], nodes.size)
    few = Modes(a=np.tile(nodes, 2), sigma_xi=innovation, sigma_0=1 - innovation)
    F, a = (like(modes.a if beside is None else beside, x) for x in (F, modes.a[:, None]))
    return F, few, a


def _summed(
    modes: Modes, lengths: Iterable[Length], rows: slice = slice(None), *, beside: Array | None = None
) -> Iterator[tuple[Array, Array]]:
    """K/P and J/(aP); lengths that outlast the memory of the start share their first part."""
    memory, shared, here = _memory(modes), None, Placed.of(modes, beside)
    for P in lengths:
        if isinstance(P, Lengths):  # each token counts alike: N_k Cov(T_k) over T² is w_k/T of Cov(T_k)/P_k
            K, J = (
                sum(share * x for share, x in zip(P.shares, part, strict=True))
                for part in zip(*_summed(modes, P.lengths, rows, beside=beside), strict=True)
            )
            yield K, J
            continue
        if P < memory:
            K, J = _doubled(here, P, rows)
        else:
            shared = shared or _doubled(here, memory, rows)
            # From here on every position adds the same.
            a, s = here.a, here.stationary
            w = a[rows, None] * a
            gap = (1 - a)[rows, None] + a[rows, None] * (1 - a)  # 1 - w, to the last digit
            K = shared[0] + (P - memory) * (s[rows, None] * s * (1 + w) / gap)
            J = shared[1] + (P - memory) * (s[rows, None] / gap)
        yield K / P, J * (here.sigma_xi / P)


def _doubled(modes: Placed, P: int, rows: slice) -> tuple[Array, Array]:
    """K, and J without its factor σ_ξ,l a_j, by doubling."""
    a, xp = modes.a, namespace(modes.a)
    w = a[rows, None] * a
    n = 1
    geometric: Part = 1.0  # Σ_{k<n} w^k
    plain = _Pair(1.0, 0.0, 0.0, 0.0)  # K over a block of n positions
    tail = plain  # Σ_p σ_p,j σ_p,l w^{n-1-p}
    single = _Single(0.0, 0.0)  # J over a block, without σ_ξ,l a_j
    single_tail = _Single(1.0, 0.0)  # Σ_p σ_p,j w^{n-1-p}
    for bit in bin(P)[3:]:
        kept, gained = _carry(modes, n)
        power = kept[rows, None] * kept  # w^{2n}
        root = xp.pow(a, n)
        root = root[rows, None] * root  # w^n
        start, end = (kept[rows, None], gained[rows, None]), (kept, gained)
        lag = (2 * w) * geometric
        plain = _Pair(*map(_combine, plain, _shift(plain, power, start, end), tail, (lag,) * 4))
        single = _Single(*map(_combine, single, _move(single, start), single_tail, (geometric,) * 2))
        tail = _Pair(*map(_append, tail, _shift(tail, power, start, end), (root,) * 4))
        single_tail = _Single(*map(_append, single_tail, _move(single_tail, start), (root,) * 2))
        geometric = geometric * (1 + root)
        n *= 2
        if bit == "1":  # one more position at the end, where σ = kept·σ_0 + gained
            kept, gained = _carry(modes, n)
            here = _Pair(
                kept[rows, None] * kept,
                kept[rows, None] * gained,
                gained[rows, None] * kept,
                gained[rows, None] * gained,
            )
            plain = _Pair(*map(_combine, plain, here, tail, (2 * w,) * 4))
            single = _Single(*map(operator.add, single, single_tail))
            tail = _Pair(*map(_append, tail, here, (w,) * 4))
            last = _Single(kept[rows, None], gained[rows, None])
            single_tail = _Single(*map(_append, single_tail, last, (w,) * 2))
            geometric = 1 + w * geometric
            n += 1
    x, y = modes.sigma_0[rows, None], modes.sigma_0
    K: Array = (plain.xy * x + plain.y) * y + plain.x * x + plain.one
    J: Array = single.x * x + single.one
    return K, J


def _memory(modes: Modes) -> int:
    """A power of two after which the start is forgotten to far below rounding."""
    rho = float(np.abs(modes.a).max())
    # A mode without innovation only shrinks. The cap is for the far tail of an infinite sum, whose start is
    # 10^15 times its innovations or more and whose weight is nothing.
    ratio = np.divide(modes.sigma_0, modes.stationary, out=np.zeros(modes.d), where=modes.stationary > 0)
    excess = min(max(1.0, float(np.max(ratio))), 1e15) ** 2
    n = 1
    while n * rho ** (2 * n) * excess > _FORGOTTEN:
        n *= 2
    return n


def _carry(modes: Placed, n: int) -> tuple[Array, Array]:
    """σ_{p+n} = kept·σ_p + gained: kept = a^{2n}, gained = σ_ξ (1 - a^{2n})/(1 - a²)."""
    xp = namespace(modes.a)
    with np.errstate(divide="ignore"):
        exponent = 2.0 * n * xp.log(xp.abs(modes.a))
    return xp.exp(exponent), -modes.stationary * xp.expm1(exponent)


_Ends = tuple[Array, Array]


def _shift(f: _Pair, power: Array, start: _Ends, end: _Ends) -> _Pair:
    """The sum over the next block, as a polynomial in the variances at the start of this one."""
    (kept_j, gained_j), (kept_l, gained_l) = start, end
    x = plus_product(f.x, f.xy, gained_l)
    return _Pair(
        f.xy * power,
        kept_j * x,
        kept_l * plus_product(f.y, f.xy, gained_j),
        plus_product(plus_product(f.one, gained_j, x), f.y, gained_l),
    )


def _move(f: _Single, start: _Ends) -> _Single:
    kept, gained = start
    return _Single(f.x * kept, plus_product(f.one, f.x, gained))


def _combine(first: Part, second: Part, tail: Part, lag: Part) -> Part:
    """Two blocks and the products between them."""
    return plus_product(first + second, tail, lag)  # type: ignore[no-any-return]  # NumPy's or torch's


def _append(tail: Part, later: Part, decay: Part) -> Part:
    return plus_product(later, tail, decay)  # type: ignore[no-any-return]  # as above


class Score(NamedTuple):
    """What the exact method knows about the noise of a data set; nothing here depends on N."""

    covariance: Array
    """N·P·E[QᵀQ] = E[TᵀT]/P, M×M."""
    leading: Array
    """Only S diag(t) Sᵀ/P above, without the two elementwise products: what the finite-sample law has."""
    low: float
    """The sandwich of the score lemmas: the largest c with c G ⪯ N·P·E[QᵀQ] …"""
    high: float
    """… and the least C with N·P·E[QᵀQ] ⪯ C G. The paper's guide takes both to be tr Ω_P."""
    effective_share: float
    """Independent tokens in a token, at most 1: what lags and a strong start leave of NP for estimating G.

    M²/(cᵀ(K/P)c), c_j = (SᵀG^-1S)_jj: to leading order in M, E‖G^{-1/2}ĜG^{-1/2} - I‖²_F is
    (NP)^-1 cᵀ(K/P)c, where n independent tokens have M²/n.
    """


def leading_score(problem: Problem, K: Array, J: Array) -> Array:
    """`Score.leading` from the whole lag sums, d×d each: two products with a vector and one of matrices."""
    S, D = problem.S, problem.D
    diagonal = (
        K @ np.sum(D * D, axis=0) + 2 * problem.irreducible * problem.h + 2 * (J @ np.sum(D * S, axis=0))
    )
    return np.asarray((S * diagonal) @ S.T)


def score(problem: Problem, known: tuple[Array, Array] | None = None) -> Score:
    """The covariance of the score, its bounds relative to G, and the effective share of the tokens.

    The lag sums may be `known`, d×d each: they do not depend on the sketch.
    """
    M, d = problem.M, problem.modes.d
    xp, least = namespace(problem.S), 16  # thinner slices would starve the matrix products
    white = problem.eigenvectors / xp.sqrt(problem.eigenvalues)  # white · whiteᵀ = G^-1
    weight = xp.sum((white.T @ problem.S) ** 2, axis=0)
    step = max(least, (_TILE if is_host(problem.S) else _TILE_ELSEWHERE) // d)
    lags = lag_rows(problem.modes, problem.length, beside=problem.S) if known is None else _rows_of(*known)
    half, leading, spread = smaller_blocks(partial(_tiles, problem, weight, lags), weight, step, least)
    covariance = leading + half + half.T
    low, high = ends(white.T @ covariance @ white)
    return Score(covariance, leading, low, high, M * M / spread)


def _rows_of(K: Array, J: Array) -> Callable[[slice], tuple[Array, Array]]:
    return lambda rows: (K[rows], J[rows])


def _tiles(
    problem: Problem, weight: Array, lags: Callable[[slice], tuple[Array, Array]], step: int
) -> tuple[Array, Array, float]:
    """Half of what the elementwise products add, the leading part and cᵀ(K/P)c, in slices of `step` modes."""
    modes, S, D, M = problem.modes, problem.S, problem.D, problem.M
    xp = namespace(S)
    diagonal_DD, diagonal_DS = xp.sum(D * D, axis=0), xp.sum(D * S, axis=0)
    noise = 2 * problem.irreducible  # tr(S Σ_ξ Sᵀ)
    half, leading, spread = zeros(S, M, M), zeros(S, M, M), 0.0
    for first in range(0, modes.d, step):
        rows = slice(first, first + step)
        K, J = lags(rows)
        diagonal = K @ diagonal_DD + noise * problem.h[rows] + 2 * (J @ diagonal_DS)
        leading += (S[:, rows] * diagonal) @ S[:, rows].T
        # Half of the symmetric part: the transpose above adds the other half.
        inner = (D[:, rows].T @ D) * (K / 2) + (D[:, rows].T @ S) * J
        half += S[:, rows] @ (inner @ S.T)
        spread += float(weight[rows] @ (K @ weight))
    return half, leading, spread


def smaller_blocks(function: Callable[[int], Result], array: Any, block: int, least: int) -> Result:
    """function(block), with half the block, and half again, where the device of `array` is full."""
    full = () if is_host(array) else library("torch", "gpu").OutOfMemoryError
    while True:
        try:
            return function(block)
        except full:
            if block <= least:
                raise
        block = max(block // 2, least)  # outside, where the error holds none of the arrays any more
