"""Moments without trajectories: the Gram matrices of N trajectories form a Markov chain (beyond the paper).

With the states of all trajectories at position p in X_p (N×d) and W_p = X_pᵀX_p = RᵀR, the innovations split
into their part in the span of X_p, RᵀZ with Z (d×d) normal, and a Wishart rest with N - d degrees of freedom:
    X_pᵀX_{p+1} = W_p A + RᵀZ,   W_{p+1} = (RA + Z)ᵀ(RA + Z) + BᵀB,   Z, B scaled by Σ_ξ^{1/2}.
Exact in law, at O(d³) a position whatever N is; needs N ≥ 2d.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from seqlaw.methods.kernel import Kernel
from seqlaw.methods.trajectories import Sums
from seqlaw.model.arrays import cholesky, like, namespace, zeros
from seqlaw.model.checks import Array
from seqlaw.model.device import Stream
from seqlaw.model.teacher import Modes


def bartlett_diagonal(rng: np.random.Generator | Stream, n: int, d: int) -> Array:
    """The diagonal of a Bartlett factor: B_ii² ~ χ²_{n-i+1}, i = 1 … d."""
    squared = rng.chisquare(n - np.arange(d, dtype=np.float64))
    root: Array = namespace(squared).sqrt(squared)
    return root


def gram_sums(
    rng: np.random.Generator | Stream, modes: Modes, S: Array, N: int, lengths: Sequence[int], loops: Kernel
) -> dict[int, Sums]:
    """The sums of N ≥ 2d trajectories, drawn as one chain and read off at each of the ascending lengths.

    Where `rng` draws, there are S and the sums.
    """
    d, a, scale, first = modes.d, *(like(S, x) for x in (modes.a, modes.sigma_xi**0.5, modes.sigma_0**0.5))
    above = tuple(like(S, index) for index in np.triu_indices(d, 1))
    diagonal = tuple(like(S, index) for index in np.diag_indices(d))
    normals = zeros(S, d * d + above[0].shape[0])
    R = zeros(S, d, d)
    loops.fill(rng, normals[d * d :])
    R[above] = normals[d * d :]
    R[diagonal] = bartlett_diagonal(rng, N, d)
    R *= first
    stack = zeros(S, 2 * d, d)  # RA + Z above the Bartlett factor B
    upper, lower = stack[:d], stack[d:]
    W = R.T @ R
    start, total, noise = W, zeros(S, d, d), zeros(S, d, d)
    wanted, out = set(lengths), dict[int, Sums]()
    for p in range(1, lengths[-1] + 1):
        loops.fill(rng, normals)
        Z = normals[: d * d].reshape(d, d) * scale
        total += W
        noise += R.T @ Z
        upper[:] = R
        upper *= a
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
                energy=float(((S @ targets) * S).sum()),
            )
        if p < lengths[-1]:
            R = cholesky(W)
    return out
