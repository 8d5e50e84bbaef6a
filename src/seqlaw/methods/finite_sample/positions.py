"""The positions of trajectories as a few fixed matrices: T_j = Σ_m f_jm B_m, r of them for all modes.

Modes, compressed: T_j depends on j through a_j and two factors, T = σ0 k kᵀ + σξ N. Chebyshev interpolation
in a makes it finite, and a singular value decomposition of the modes' own T_j/h_j, which are one curve where
the teacher is a power law, makes it small: r ≈ 10 at ρ = 0.55 and 12 at 0.9.

Positions, bulk and boundary: a dense block of the first p₀ positions carries both ends, the other P - p₀ are
stationary and diagonal in frequency. Their functionals add (Szegő), so blocks and frequencies lie side by
side in one list of cells, each with its weight in tr(·)/P. So do the blocks of the lengths of a mixture.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqlaw.methods.resolvent import Complex as Complex
from seqlaw.model.checks import Array
from seqlaw.model.lengths import Length, parts
from seqlaw.model.teacher import Modes


def halves(x: Complex, axis: int = 0) -> Array:
    """Real and imaginary parts, stacked before the nodes: products with them are real ones."""
    return np.stack([x.real, x.imag], axis=axis)


@dataclass(frozen=True, kw_only=True, eq=False)
class Positions:
    """The matrices B_m on the cells: every dense block p₀ × p₀, then the frequencies."""

    f: Array
    """Modes × r."""
    here: Array
    """B_m[p, q], r × cells …"""
    ahead: Array
    """… with the row moved on by one, B_m[p+1, q], …"""
    behind: Array
    """… with the column, B_m[p, q+1], …"""
    both: Array
    """… and with both."""
    sizes: tuple[int, ...]
    """p₀ of each dense block, ascending."""
    waves: Array
    """The weight of each frequency in a mean over all; empty where every position is in a block."""

    def weights(self, P: Length) -> Array:
        """The weight of each cell in tr(·)/P: a block counts once, the bulk P - p₀ times."""
        once, rest = dict.fromkeys(self.sizes, 0.0), 0.0
        for length, share in parts(P):
            size = min(length, self.sizes[-1])
            once[size] += share * (1 / length)
            rest += share * ((length - size) / length)
        blocks = [np.full(size**2, each) for size, each in once.items()]
        return np.concatenate([*blocks, rest * self.waves])

    @property
    def identity(self) -> Array:
        """I on the cells."""
        return np.concatenate([np.eye(size).ravel() for size in self.sizes] + [np.ones(self.waves.size)])

    def inverse(self, X: Complex) -> Complex:
        """X^-1, block by block and frequency by frequency."""
        return self._each(lambda x: np.linalg.inv(x), lambda x: 1 / x, X)

    def product(self, first: Complex, second: Complex) -> Complex:
        """first · second, each (…, cells)."""
        return self._each(lambda a, b: a @ b, lambda a, b: a * b, first, second)

    def times(self, X: Complex) -> Array:
        """B_m X for all m as `halves`, (…, 2, nodes, r, cells) from (…, nodes, cells)."""
        return self._each(lambda b, x: b @ x, lambda b, x: b * x, self.here, halves(X, -3)[..., None, :])

    def after(self, X: Complex) -> Array:
        """X B_m, likewise: (B_m X)ᵀ for a symmetric X, without the cost of turning it."""
        return self._each(lambda b, x: x @ b, lambda b, x: b * x, self.here, halves(X, -3)[..., None, :])

    def _each(self, dense: Any, diagonal: Any, *cells: Complex) -> Complex:
        """A function of matrices on every block, and its diagonal form on the frequencies."""
        found, start = [], 0
        for size in self.sizes:
            part = [x[..., start : start + size**2].reshape(*x.shape[:-1], size, size) for x in cells]
            block = dense(*part)
            found.append(block.reshape(*block.shape[:-2], size**2))
            start += size**2
        if self.waves.size:
            found.append(diagonal(*(x[..., start:] for x in cells)))
        return found[0] if len(found) == 1 else np.concatenate(found, axis=-1)


def block_size(modes: Modes, tol: float) -> int:
    """p₀: positions after which an end of the trajectory is forgotten to `tol` of what it adds."""
    rho = float(np.abs(modes.a).max())
    return math.ceil(0.35 * math.log(1 / tol) / math.log(1 / rho)) + 4 if rho > 0 else 4


def positions(modes: Modes, lengths: Sequence[int], tol: float, most: int) -> Positions:
    """The cells of trajectories of these lengths, or of all beyond p₀ (at most `most`), to `tol`."""
    a = modes.a
    rho = max(float(np.abs(a).max()), 1e-3)
    dense = min(block_size(modes, tol), most)
    # All is even in the frequency: half the circle, whose ends count once and the others twice.
    half = max(math.ceil(1.5 * math.log(1 / tol) / math.log(1 / rho)), 32) if max(lengths) > dense else 0
    waves = np.array([0.5, *[1.0] * (half - 1), 0.5]) / half if half else np.zeros(0)
    sizes = tuple(sorted({min(P, dense) for P in lengths}))
    size = sizes[-1]
    nodes, share = interpolation(a, tol / 10, most=math.inf if half else 2 * size + 1)
    f = np.concatenate([modes.sigma_0[:, None] * share, modes.sigma_xi[:, None] * share], axis=1)
    full = np.concatenate(_covariances(nodes, size + 1))
    omega = np.linspace(0, np.pi, waves.size)
    spectrum = 1 / np.abs(1 - nodes[:, None] * np.exp(1j * omega)) ** 2
    bulk = np.concatenate([np.zeros_like(spectrum), spectrum])
    matrices = np.concatenate([full.reshape(len(full), -1), bulk], axis=1)
    scale = np.sqrt(np.concatenate([np.full(full[0].size, 1 / (size + 1)), waves]))
    f, matrices = _compressed(f, matrices, scale, tol / 10)
    full, bulk = matrices[:, : full[0].size].reshape(-1, size + 1, size + 1), matrices[:, full[0].size :]

    def cells(
        down: int, across: int, frequencies: Array
    ) -> Array:  # a shorter block is a corner of the longest
        blocks = [full[:, down : down + p, across : across + p].reshape(len(full), -1) for p in sizes]
        return np.concatenate([*blocks, frequencies], axis=1)

    return Positions(
        f=f,
        here=cells(0, 0, bulk),
        ahead=cells(1, 0, bulk * np.cos(omega)),
        behind=cells(0, 1, bulk * np.cos(omega)),
        both=cells(1, 1, bulk),
        sizes=sizes,
        waves=waves,
    )


def _compressed(f: Array, matrices: Array, scale: Array, tol: float) -> tuple[Array, Array]:
    """f' and B' of least rank with f'·B' = f·B to `tol` of every mode's own size; cells count by `scale`."""
    basis, triangle = np.linalg.qr((matrices * scale).T)
    image = f @ triangle.T  # of the modes, in an orthonormal basis of what the matrices span
    length = np.linalg.norm(image, axis=1)
    length = np.where(length > 0, length, 1.0)
    left, value, right = np.linalg.svd(image / length[:, None], full_matrices=False)
    rank = max(1, int(np.sum(value > tol * value[0])))
    return length[:, None] * left[:, :rank] * value[:rank], right[:rank] @ basis.T / scale


def interpolation(a: Array, tol: float, most: float) -> tuple[Array, Array]:
    """Chebyshev nodes of the first kind and barycentric coefficients, modes × nodes."""
    low, high = min(0.0, float(a.min())), max(0.0, float(a.max()))
    middle, half = (low + high) / 2, max((high - low) / 2, 1e-12)
    nearest = min(abs((1 - middle) / half), abs((-1 - middle) / half))  # N(a) is singular at a = ±1
    count = math.ceil(math.log(1 / tol) / math.log(nearest + math.sqrt(nearest**2 - 1))) + 1
    count = int(min(count, most))
    angle = (np.arange(count) + 0.5) * np.pi / count
    nodes = middle + half * np.cos(angle)
    gap = a[:, None] - nodes
    exact: Any = np.abs(gap) < 1e-15
    share = (-1.0) ** np.arange(count) * np.sin(angle) / np.where(exact, 1.0, gap)
    share = share / share.sum(axis=1, keepdims=True)
    return nodes, np.where(exact.any(axis=1)[:, None], exact.astype(float), share)


def _covariances(a: Array, size: int) -> tuple[Array, Array]:
    """k kᵀ and N at each a: k_p = a^p, N[p,q] = Σ_{i=1}^{min(p,q)} a^{p+q-2i}; all terms positive."""
    place = np.arange(size)
    powers = a[:, None] ** place
    geometric = np.concatenate([np.zeros((a.size, 1)), np.cumsum(powers[:, :-1] ** 2, axis=1)], axis=1)
    apart, least = np.abs(place[:, None] - place), np.minimum(place[:, None], place)
    return powers[:, :, None] * powers[:, None, :], powers[:, apart] * geometric[:, least]
