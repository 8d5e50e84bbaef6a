"""The sketched regression problem: what a width-M student can see and learn (paper, section 2).

u = S x with a Gaussian sketch S ∈ R^{M×d}, S_lj ~ N(0, 1/M); G = S H Sᵀ, C = S A H Sᵀ, B* = C G^-1.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from seqlaw.model.arrays import eigh, host, is_host, like, namespace
from seqlaw.model.checks import Array, InputError, SeqlawError, matrix, whole
from seqlaw.model.device import WORTH, Device
from seqlaw.model.lengths import Length, Lengths, Position, Test, averaged, words
from seqlaw.model.randomness import generator
from seqlaw.model.teacher import Modes

LARGEST_SKETCH = 2**28
"""Numbers in a sketch, 2 GiB; a problem needs a handful of arrays of that size."""
LARGEST_SHARED = 2**24
"""Numbers of a sketch up to which a device gets the CPU's, drawn in a third of a second: the same answers."""


class SingularProblem(SeqlawError, ValueError):
    """G cannot be inverted in double precision; the message carries its condition number."""


def gaussian_sketch(M: int, d: int, *, seed: int = 0, index: int = 0, device: Device | None = None) -> Array:
    """The sketch number `index` of a seed: S ∈ R^{M×d} with independent N(0, 1/M) entries.

    A device gets the CPU's, from a size on that is worth it, and large ones of its own stream.
    """
    d = whole("d", d)
    M = whole("M", M)
    if M > d:
        raise InputError("M", f"must be at most d = {d}", M)
    if M * d > LARGEST_SHARED and device is not None:
        drawn: Array = device.stream(seed, "sketch", M, d, index).standard_normal((M, d))
        drawn /= M**0.5
        return drawn
    if M * d > LARGEST_SKETCH:
        rule = f"times d = {d} must be at most 2^28 to fit in memory (the equivalent method takes any size)"
        raise InputError("M", rule, M)
    S = np.asarray(generator(seed, "sketch", M, d, index).standard_normal((M, d)) / np.sqrt(M))
    return S if device is None or M * d < WORTH else device.array(S)


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Population quantities of one sketch at one trajectory length P, a mixture of lengths, or a position."""

    modes: Modes
    S: Array
    """The sketch, M×d."""
    P: Test
    h: Array
    """The averaged covariance H_P, its d diagonal entries."""
    G: Array
    """S H Sᵀ, M×M."""
    C: Array
    """S A H Sᵀ, M×M (symmetric, since A and H commute)."""
    eigenvalues: Array
    """μ of G, ascending."""
    eigenvectors: Array
    """U with G = U diag(μ) Uᵀ."""
    B_star: Array
    """C G^-1, the best sketched predictor."""
    D: Array
    """The residual map S A - B* S, M×d: what the best predictor still misses."""
    irreducible: float
    """½ tr(S Σ_ξ Sᵀ)."""
    approx: float
    """½ ‖D H^{1/2}‖²_F: the residual of projecting S A H^{1/2} on the rows of S H^{1/2}."""

    @property
    def M(self) -> int:
        return int(self.S.shape[0])

    @property
    def length(self) -> Length:
        """P of training sequences; a position is for tests alone."""
        if isinstance(self.P, Position):
            raise InputError("position", "is no length of training sequences", self.P.p)
        return self.P

    def power(self, exponent: float) -> Array:
        """G^exponent."""
        found: Array = (self.eigenvectors * self.eigenvalues**exponent) @ self.eigenvectors.T
        return found

    def loss(self, B: ArrayLike, *, P: int | Position | None = None) -> float:
        """L_M(B) = ½ tr(S Σ_ξ Sᵀ) + ½ ‖(B S - S A) H^{1/2}‖²_F on test sequences of length P.

        P may be a position of them; it defaults to the training length, as in the paper.
        """
        B = matrix("B", B, (self.M, self.M))
        h = (
            self.h
            if P is None
            else like(self.S, averaged(self.modes, P if isinstance(P, Position) else whole("P", P)))
        )
        missed = B @ self.S - self.S * like(self.S, self.modes.a)
        return self.irreducible + float((missed**2 @ h).sum() / 2)

    def excess(self, B: ArrayLike) -> float:
        """L_M(B) - L_M(B*) = ½ ‖B - B*‖²_G."""
        return weighted_square(matrix("B", B, (self.M, self.M)) - self.B_star, self.G) / 2

    @property
    def residual_covariance(self) -> Array:
        """Ω_P = S Σ_ξ Sᵀ + D H Dᵀ, the covariance of y - B* u averaged over positions."""
        sigma_xi: Array = like(self.S, self.modes.sigma_xi)
        return (self.S * sigma_xi) @ self.S.T + (self.D * self.h) @ self.D.T

    @cached_property
    def residual_trace(self) -> float:
        """tr Ω_P; elsewhere than on the host, whose last bits stay as they were, without the products."""
        if not is_host(self.S):
            return 2 * (self.irreducible + self.approx)
        return float(np.linalg.trace(self.residual_covariance))

    def on_host(self) -> Problem:
        """The same problem with NumPy's arrays."""
        if is_host(self.S):
            return self
        names = ("S", "h", "G", "C", "eigenvalues", "eigenvectors", "B_star", "D")
        return replace(self, **{name: host(getattr(self, name)) for name in names})


def sketched_problem(modes: Modes, S: ArrayLike, P: Test) -> Problem:
    """Solve the population problem for one sketch and one length, a mixture, or a position.

    The approximation is taken from the residual D and not as a difference of traces, which
    cancels when it is small; an error δ in B* enters it only as ‖δ‖²_G.
    """
    S = as_sketch(S, modes.d)
    M, d = S.shape
    if not 1 <= M <= d:
        raise InputError("M", f"must lie between 1 and d = {d}", M)
    S = matrix("S", S, (M, d))
    P = P if isinstance(P, (Lengths, Position)) else whole("P", P)
    h, a, sigma_xi = (like(S, x) for x in (averaged(modes, P), modes.a, modes.sigma_xi))
    root = S * namespace(S).sqrt(h)
    G = root @ root.T
    C = (root * a) @ root.T
    del root  # as large as S
    C = (C + C.T) / 2
    mu, U = eigh(G)
    least, largest = float(mu[0]), float(mu[-1])
    if least <= M * np.finfo(float).eps * largest:
        condition = largest / least if least > 0 else np.inf
        raise SingularProblem(
            f"G is singular to working precision at M = {M}, P = {words(P)}: condition {condition:.3g}"
        )
    B_star = ((C @ U) / mu) @ U.T
    D = S * a - B_star @ S
    return Problem(
        modes=modes,
        S=S,
        P=P,
        h=h,
        G=G,
        C=C,
        eigenvalues=mu,
        eigenvectors=U,
        B_star=B_star,
        D=D,
        irreducible=float((S**2 @ sigma_xi).sum() / 2),
        approx=float((D**2 @ h).sum() / 2),
    )


def as_sketch(S: ArrayLike, d: int) -> Array:
    """A sketch of d modes as an array of doubles, where it is."""
    try:
        array: Any = np.asarray(S, dtype=np.float64) if is_host(S) else S
    except (TypeError, ValueError, OverflowError):
        raise InputError("S", "must be a real matrix", S) from None
    if array.ndim != 2 or array.shape[1] != d:
        raise InputError("S", f"must have shape (M, {d})", tuple(array.shape))
    return array  # type: ignore[no-any-return]  # NumPy's or torch's


def weighted_square(B: Array, G: Array) -> float:
    """‖B‖²_G = tr(B G Bᵀ)."""
    return float(namespace(B).sum((B @ G) * B))
