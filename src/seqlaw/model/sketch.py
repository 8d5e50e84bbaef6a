"""The sketched regression problem: what a width-M student can see and learn (paper, section 2).

u = S x with a Gaussian sketch S ∈ R^{M×d}, S_lj ~ N(0, 1/M); G = S H Sᵀ, C = S A H Sᵀ, B* = C G^-1.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from seqlaw.model.arrays import namespace
from seqlaw.model.checks import Array, InputError, matrix, whole
from seqlaw.model.lengths import Length, Lengths, averaged, words
from seqlaw.model.randomness import generator
from seqlaw.model.teacher import Modes

LARGEST_SKETCH = 2**28
"""Numbers in a sketch, 2 GiB; a problem needs a handful of arrays of that size."""


class SingularProblem(ValueError):
    """G cannot be inverted in double precision; the message carries its condition number."""


def gaussian_sketch(M: int, d: int, *, seed: int = 0, index: int = 0) -> Array:
    """The sketch number `index` of a seed: S ∈ R^{M×d} with independent N(0, 1/M) entries."""
    d = whole("d", d)
    M = whole("M", M)
    if M > d:
        raise InputError("M", f"must be at most d = {d}", M)
    if M * d > LARGEST_SKETCH:
        rule = f"times d = {d} must be at most 2^28 to fit in memory (the equivalent rung takes any size)"
        raise InputError("M", rule, M)
    return np.asarray(generator(seed, "sketch", M, d, index).standard_normal((M, d)) / np.sqrt(M))


@dataclass(frozen=True, kw_only=True, eq=False)
class Problem:
    """Population quantities of one sketch at one trajectory length P, or a mixture of lengths."""

    modes: Modes
    S: Array
    """The sketch, M×d."""
    P: Length
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

    def loss(self, B: ArrayLike, *, P: int | None = None) -> float:
        """L_M(B) = ½ tr(S Σ_ξ Sᵀ) + ½ ‖(B S - S A) H^{1/2}‖²_F on test sequences of length P.

        P defaults to the training length, as in the paper.
        """
        B = matrix("B", B, (self.M, self.M))
        h = self.h if P is None else self.modes.averaged(whole("P", P))
        return self.irreducible + float(((B @ self.S - self.S * self.modes.a) ** 2 @ h).sum() / 2)

    def excess(self, B: ArrayLike) -> float:
        """L_M(B) - L_M(B*) = ½ ‖B - B*‖²_G."""
        return weighted_square(matrix("B", B, (self.M, self.M)) - self.B_star, self.G) / 2

    @property
    def residual_covariance(self) -> Array:
        """Ω_P = S Σ_ξ Sᵀ + D H Dᵀ, the covariance of y - B* u averaged over positions."""
        return (self.S * self.modes.sigma_xi) @ self.S.T + (self.D * self.h) @ self.D.T


def sketched_problem(modes: Modes, S: ArrayLike, P: Length) -> Problem:
    """Solve the population problem for one sketch and one length, or a mixture.

    The approximation is taken from the residual D and not as a difference of traces, which
    cancels when it is small; an error δ in B* enters it only as ‖δ‖²_G.
    """
    S = np.asarray(S, dtype=np.float64)
    if S.ndim != 2 or S.shape[1] != modes.d:
        raise InputError("S", f"must have shape (M, {modes.d})", S.shape)
    M, d = S.shape
    if not 1 <= M <= d:
        raise InputError("M", f"must lie between 1 and d = {d}", M)
    if not np.all(np.isfinite(S)):
        raise InputError("S", "must be finite", float(S[~np.isfinite(S)][0]))
    P = P if isinstance(P, Lengths) else whole("P", P)
    h = averaged(modes, P)
    root = S * np.sqrt(h)
    G = root @ root.T
    C = (root * modes.a) @ root.T
    C = (C + C.T) / 2
    mu, U = eigh(G, driver="evd", check_finite=False)
    if mu[0] <= M * np.finfo(float).eps * mu[-1]:
        condition = mu[-1] / mu[0] if mu[0] > 0 else np.inf
        raise SingularProblem(
            f"G is singular to working precision at M = {M}, P = {words(P)}: condition {condition:.3g}"
        )
    B_star = ((C @ U) / mu) @ U.T
    D = S * modes.a - B_star @ S
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
        irreducible=float((S**2 @ modes.sigma_xi).sum() / 2),
        approx=float((D**2 @ h).sum() / 2),
    )


def weighted_square(B: Array, G: Array) -> float:
    """‖B‖²_G = tr(B G Bᵀ)."""
    return float(namespace(B).sum((B @ G) * B))
