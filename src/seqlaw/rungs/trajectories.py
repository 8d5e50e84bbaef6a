"""Trajectories of the latent RNN: for people who want the data, and streamed into moments.

x_0 ~ N(0, Σ_0), x_{p+1} = A x_p + ξ_{p+1}; a trajectory of length P has P + 1 states, of which
0 … P-1 are inputs and 1 … P targets. Rows are drawn in blocks of a fixed size, each from its own named
stream, so the same seed gives the same bits whatever the memory or the number of workers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from seqlaw.model.checks import Array, InputError, whole
from seqlaw.model.randomness import generator
from seqlaw.model.teacher import Modes
from seqlaw.rungs.kernel import Kernel, kernel

Key = tuple[str | int, ...]


def block_rows(d: int) -> int:
    """Trajectories simulated at a time: about half a megabyte of states, and never too few to multiply."""
    return max(256, min(4096, 2**16 // d))


def blocks(first: int, last: int, d: int) -> Iterator[tuple[int, int]]:
    """(start, rows) of the blocks that make up the trajectories first … last - 1."""
    step = block_rows(d)
    for start in range(first, last, step):
        yield start, min(step, last - start)


def walk(rng: np.random.Generator, modes: Modes, rows: int, P: int, kernel: Kernel) -> Iterator[Array]:
    """The states X_0, X_1, …, X_P (rows × d) of one block, in one buffer that the next state overwrites."""
    X, scratch = np.zeros((rows, modes.d)), np.empty((rows, modes.d))
    scale = np.sqrt(modes.sigma_xi)
    kernel.advance(rng, X, modes.a, np.sqrt(modes.sigma_0), scratch)
    yield X
    for _ in range(P):
        kernel.advance(rng, X, modes.a, scale, scratch)
        yield X


def trajectory_chunks(
    modes: Modes,
    N: int,
    P: int,
    *,
    S: ArrayLike | None = None,
    seed: int = 0,
    key: Key = (),
    positions: int | None = None,
) -> Iterator[tuple[slice, slice, Array]]:
    """The trajectories in chunks (rows, positions, states): `out[rows, positions] = states` collects them.

    States are latent (… × d) or, with a sketch S, what the student sees (… × M). `positions` bounds the
    states of a trajectory in one chunk; the data do not depend on it.
    """
    N, P = whole("N", N), whole("P", P)
    if not isinstance(modes, Modes):
        raise InputError("modes", "must be Modes (of a teacher: teacher.modes(d))", modes)
    window = whole("positions", P + 1 if positions is None else positions)
    sketch = None if S is None else _sketch(S, modes.d).T
    width = modes.d if sketch is None else sketch.shape[1]
    loops = kernel(float(N) * (P + 1) * modes.d)
    for start, rows in blocks(0, N, modes.d):
        rng = generator(seed, "trajectories", *key, start)
        first = 0
        chunk = np.empty((rows, min(window, P + 1), width))
        for p, X in enumerate(walk(rng, modes, rows, P, loops)):
            chunk[:, p - first] = X if sketch is None else X @ sketch
            if p + 1 - first == chunk.shape[1]:
                yield slice(start, start + rows), slice(first, p + 1), chunk
                first = p + 1
                chunk = np.empty((rows, min(window, P + 1 - first), width))


def trajectories(
    modes: Modes, N: int, P: int, *, S: ArrayLike | None = None, seed: int = 0, key: Key = ()
) -> Array:
    """N trajectories of length P: an array N × (P+1) × d of latent states, or N × (P+1) × M with a sketch."""
    N, P = whole("N", N), whole("P", P)
    if not isinstance(modes, Modes):
        raise InputError("modes", "must be Modes (of a teacher: teacher.modes(d))", modes)
    out = np.empty((N, P + 1, modes.d if S is None else len(_sketch(S, modes.d))))
    for rows, positions, states in trajectory_chunks(modes, N, P, S=S, seed=seed, key=key):
        out[rows, positions] = states
    return out


def _sketch(S: ArrayLike, d: int) -> Array:
    S = np.asarray(S, dtype=np.float64)
    if S.ndim != 2 or S.shape[1] != d:
        raise InputError("S", f"must have shape (M, {d})", S.shape)
    return S


@dataclass(kw_only=True, eq=False)
class Sums:
    """Sums over transitions u → y: Σ u uᵀ, Σ y uᵀ and Σ ‖y‖². Sums of disjoint data add."""

    G: Array
    C: Array
    energy: float = 0.0

    @classmethod
    def zero(cls, M: int) -> Sums:
        return cls(G=np.zeros((M, M)), C=np.zeros((M, M)))

    def add(self, u: Array, y: Array) -> None:
        """Take in the transitions u → y, one a row."""
        self.G += u.T @ u
        self.C += y.T @ u
        self.energy += float(np.vdot(y, y))

    def merge(self, other: Sums) -> None:
        self.G += other.G
        self.C += other.C
        self.energy += other.energy

    def copy(self) -> Sums:
        return Sums(G=self.G.copy(), C=self.C.copy(), energy=self.energy)


def direct_sums(
    rng: np.random.Generator, modes: Modes, S: Array, rows: int, lengths: Sequence[int], loops: Kernel
) -> dict[int, Sums]:
    """The sums of one block of simulated trajectories, read off at each of the ascending lengths.

    Nothing is kept but the present state and the running sums.
    """
    sketch = np.ascontiguousarray(S.T)
    running = Sums.zero(len(S))
    wanted, out = set(lengths), dict[int, Sums]()
    states = walk(rng, modes, rows, lengths[-1], loops)
    u = next(states) @ sketch
    for p, X in enumerate(states, 1):
        y = X @ sketch
        running.add(u, y)
        if p in wanted:
            out[p] = running.copy()
        u = y
    return out
