"""Moments without trajectories: the Gram matrices of N trajectories form a Markov chain (beyond the paper).

With the states of all trajectories at position p in X_p (N×d) and W_p = X_pᵀX_p = RᵀR, the innovations split
into their part in the span of X_p, RᵀZ with Z (d×d) normal, and a Wishart rest with N - d degrees of freedom:
    X_pᵀX_{p+1} = W_p A + RᵀZ,   W_{p+1} = (RA + Z)ᵀ(RA + Z) + BᵀB,   Z, B scaled by Σ_ξ^{1/2}.
Exact in law, at O(d³) a position whatever N is; needs N ≥ 2d.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.linalg import cholesky

from seqlaw.model.checks import Array
from seqlaw.model.teacher import Modes
from seqlaw.rungs.kernel import Kernel
from seqlaw.rungs.trajectories import Sums


def bartlett_diagonal(rng: np.random.Generator, n: int, d: int) -> Array:
    """The diagonal of a Bartlett factor: B_ii² ~ χ²_{n-i+1}, i = 1 … d."""
    return np.sqrt(rng.chisquare(n - np.arange(d, dtype=np.float64)))


def gram_sums(
    rng: np.random.Generator, modes: Modes, S: Array, N: int, lengths: Sequence[int], loops: Kernel
) -> dict[int, Sums]:
    """The sums of N ≥ 2d trajectories, drawn as one chain and read off at each of the ascending lengths."""
    d, a, scale = modes.d, modes.a, np.sqrt(modes.sigma_xi)
    above = np.triu_indices(d, 1)
    diagonal = np.diag_indices(d)
    normals = np.empty(d * d + above[0].size)
    R = np.zeros((d, d))
    loops.fill(rng, normals[d * d :])
    R[above] = normals[d * d :]
    R[diagonal] = bartlett_diagonal(rng, N, d)
    R *= np.sqrt(modes.sigma_0)
    stack = np.zeros((2 * d, d))  # RA + Z above the Bartlett factor B
    upper, lower = stack[:d], stack[d:]
    W = R.T @ R
    start, total, noise = W.copy(), np.zeros((d, d)), np.zeros((d, d))
    wanted, out = set(lengths), dict[int, Sums]()
    for p in range(1, lengths[-1] + 1):
        loops.fill(rng, normals)
        Z = normals[: d * d].reshape(d, d) * scale
        total += W
        noise += R.T @ Z
        np.multiply(R, a, out=upper)
        upper += Z
        lower[above] = normals[d * d :]
        lower[diagonal] = bartlett_diagonal(rng, N - d, d)
        lower *= scale
        W = stack.T @ stack
        if p in wanted:
            cross = total * a + noise  # Σ_p X_pᵀX_{p+1}; the targets are its columns
            targets = total - start + W
            out[p] = Sums(
                G=S @ total @ S.T,
                C=S @ cross.T @ S.T,
                energy=float(np.sum((S @ targets) * S)),
            )
        if p < lengths[-1]:
            R = cholesky(W, lower=False, check_finite=False)
    return out
