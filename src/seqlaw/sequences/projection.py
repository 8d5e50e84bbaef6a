"""What seeing the latent state through D random features does to the three fits.

The paper's student sees u = S x with a Gaussian S of D rows. Whoever measures u finds exponents that are off
by a bias (the spectrum bends near j = D) and by a scatter (each |S_j|² is off by √(2/D)) that no resampling
of the sequences shows. Both are read off sketches of the fitted law.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import eigh

from seqlaw.model.checks import Array
from seqlaw.model.randomness import generator
from seqlaw.model.teacher import Teacher

SKETCHES = 24
_HEAD = 512  # modes drawn one by one; the tail acts as its trace over D times the identity
_AMBIENT = 8  # latent modes a feature


@dataclass(frozen=True, kw_only=True, eq=False)
class Projected:
    """Logarithms of the leading eigenvalues seen through each sketch (sketches × J), by spectrum."""

    logs: dict[str, Array]
    off_square: float
    """Mean squared off-diagonal entry of T on the leading block of principal directions."""


def project(
    teacher: Teacher, D: int, P: int, *, block: int, seed: int, sketches: int = SKETCHES
) -> Projected:
    """The spectra of the teacher's population problem seen through random sketches of width D."""
    d = _AMBIENT * D
    head = min(d, max(_HEAD, 2 * block))
    modes = teacher.modes(d)
    a, xi, start, h = modes.a, modes.sigma_xi, modes.sigma_0, modes.averaged(P)
    diagonals = {"xi": xi, "start": start, "G": h, "C": a * h, "moved": a * a * h}
    tails = {name: float(x[head:].sum()) / D for name, x in diagonals.items()}
    follow = min(D, head, 256)
    rows: dict[str, list[Array]] = {"innovation": [], "transition": [], "initial": []}
    squares = []
    for index in range(sketches):
        R = _root(generator(seed, "projection", D, index), D, head)
        seen = {name: (R * x[:head]) @ R.T + tails[name] * np.eye(len(R)) for name, x in diagonals.items()}
        g, U = eigh(seen["G"], driver="evd", check_finite=False)
        W = (U / np.sqrt(np.maximum(g, 1e-14 * g[-1])))[:, ::-1]
        T = W.T @ seen["C"] @ W
        half = seen["C"] @ W
        residual = seen["xi"] + seen["moved"] - half @ half.T
        for name, matrix in (("innovation", residual), ("transition", T), ("initial", seen["start"])):
            values = eigh(matrix, eigvals_only=True, driver="evr", check_finite=False)[::-1]
            rows[name].append(np.log(np.maximum(values[:follow], 1e-300)))
        corner = T[:block, :block]
        squares.append((np.sum(corner**2) - np.sum(np.diagonal(corner) ** 2)) / (block * max(1, block - 1)))
    return Projected(logs={name: np.stack(x) for name, x in rows.items()}, off_square=float(np.mean(squares)))


def _root(rng: np.random.Generator, D: int, head: int) -> Array:
    """S on its first modes, up to a rotation of the features: D × head, or its triangular factor."""
    if head >= D:
        return np.asarray(rng.standard_normal((D, head)) / np.sqrt(D))
    upper = np.triu(rng.standard_normal((head, head)), 1)
    upper[np.diag_indices(head)] = np.sqrt(rng.chisquare(D - np.arange(head)))
    return np.asarray(upper / np.sqrt(D))
