"""Trajectories of the latent RNN: for people who want the data, and streamed into moments.

x_0 ~ N(0, Σ_0), x_{p+1} = A x_p + ξ_{p+1}; a trajectory of length P has P + 1 states, of which
0 … P-1 are inputs and 1 … P targets. Rows are drawn in blocks of a fixed size, each from its own named
stream, so the same seed gives the same bits whatever the memory or the number of workers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from seqlaw.methods.kernel import Kernel, kernel
from seqlaw.model.arrays import is_host, namespace, squares, zeros
from seqlaw.model.checks import Array, InputError, whole
from seqlaw.model.device import Device, Stream
from seqlaw.model.randomness import generator
from seqlaw.model.signature import checked
from seqlaw.model.sketch import as_sketch
from seqlaw.model.teacher import Modes

Key = tuple[str | int, ...]
_MOST = 2**31  # of one array, 16 GiB
_STRETCH = 2**23  # numbers of the states that a device makes at a time


def block_rows(d: int, device: Device | None = None) -> int:
    """Trajectories simulated at a time: about half a megabyte of states, and never too few to multiply.

    On a device as many as it makes at a time.
    """
    return max(256, min(4096, 2**16 // d) if device is None else _STRETCH // d)


def blocks(first: int, last: int, d: int, device: Device | None = None) -> Iterator[tuple[int, int]]:
    """(start, rows) of the blocks that make up the trajectories first … last - 1."""
    step = block_rows(d, device)
    for start in range(first, last, step):
        yield start, min(step, last - start)


def walk(
    rng: np.random.Generator | Stream,
    modes: Modes,
    rows: int,
    P: int,
    kernel: Kernel,
    stops: Sequence[int] = (),
) -> Iterator[Array]:
    """The states X_0, then X_1 … X_P of one block in stretches (positions × rows × d), one after the other.

    On the host a stretch is one position, in one buffer that the next state overwrites; on a device it is
    long, and ends at `stops`.
    """
    if isinstance(rng, Stream):
        yield from _stretches(rng, modes, rows, sorted({*stops, P}))
        return
    X, scratch = np.zeros((rows, modes.d)), np.empty((rows, modes.d))
    scale = np.sqrt(modes.sigma_xi)
    kernel.advance(rng, X, modes.a, np.sqrt(modes.sigma_0), scratch)
    yield X[None]
    for _ in range(P):
        kernel.advance(rng, X, modes.a, scale, scratch)
        yield X[None]


def _stretches(rng: Stream, modes: Modes, rows: int, stops: Sequence[int]) -> Iterator[Array]:
    """The same with few calls: X_p = Σ_i aⁱ z_{p-i} over a stretch by doubling, all positions at once."""
    a, scale, first = (rng.device.array(x) for x in (modes.a, modes.sigma_xi**0.5, modes.sigma_0**0.5))
    most = max(1, _STRETCH // (rows * modes.d))
    states = rng.standard_normal((1, rows, modes.d)) * first
    yield states
    done = 0
    for stop in stops:
        while done < stop:
            last, size = states[-1], min(most, stop - done)
            states = rng.standard_normal((size, rows, modes.d)) * scale
            states[0] += a * last
            reach, power = 1, a
            while reach < size:
                states[reach:] += power * states[:-reach]
                reach, power = 2 * reach, power * power
            yield states
            done += size


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
    if not all(isinstance(one, (str, int)) for one in key):
        raise InputError("key", "must hold names and whole numbers", key)
    if not isinstance(modes, Modes):
        raise InputError("modes", "must be Modes (of a teacher: teacher.modes(d))", modes)
    window = whole("positions", P + 1 if positions is None else positions)
    sketch = None if S is None else as_sketch(S, modes.d).T
    width = modes.d if sketch is None else sketch.shape[1]
    loops = kernel(float(N) * (P + 1) * modes.d)
    for start, rows in blocks(0, N, modes.d):
        rng = generator(seed, "trajectories", *key, start)
        first = 0
        chunk = np.empty((rows, min(window, P + 1), width))
        for p, X in enumerate(walk(rng, modes, rows, P, loops)):
            chunk[:, p - first] = X[0] if sketch is None else X[0] @ sketch
            if p + 1 - first == chunk.shape[1]:
                yield slice(start, start + rows), slice(first, p + 1), chunk
                first = p + 1
                chunk = np.empty((rows, min(window, P + 1 - first), width))


@checked
def trajectories(
    modes: Modes, N: int, P: int, *, S: ArrayLike | None = None, seed: int = 0, key: Key = ()
) -> Array:
    """N trajectories of length P: an array N × (P+1) × d of latent states, or N × (P+1) × M with a sketch."""
    N, P = whole("N", N), whole("P", P)
    shape = N, P + 1, modes.d if S is None else len(as_sketch(S, modes.d))
    if math.prod(shape) > _MOST:
        raise InputError("N", f"must make at most {_MOST} numbers (trajectory_chunks takes more)", shape)
    out = np.empty(shape)
    for rows, positions, states in trajectory_chunks(modes, N, P, S=S, seed=seed, key=key):
        out[rows, positions] = states
    return out


@dataclass(kw_only=True, eq=False)
class Sums:
    """Sums over transitions u → y: Σ u uᵀ, Σ y uᵀ and Σ ‖y‖². Sums of disjoint data add."""

    G: Array
    C: Array
    energy: float = 0.0

    @classmethod
    def zero(cls, M: int, near: Array | None = None) -> Sums:
        """No data yet, beside an array or on the host."""
        G, C = (np.zeros((M, M)) if near is None else zeros(near, M, M) for _ in "GC")
        return cls(G=G, C=C)

    def add(self, u: Array, y: Array) -> None:
        """Take in the transitions u → y, one a row."""
        self.G += u.T @ u
        self.C += y.T @ u
        self.energy += squares(y)

    def merge(self, other: Sums) -> None:
        self.G += other.G
        self.C += other.C
        self.energy += other.energy

    def copy(self) -> Sums:
        return Sums(G=self.G + 0.0, C=self.C + 0.0, energy=self.energy + 0.0)


def direct_sums(
    rng: np.random.Generator | Stream,
    modes: Modes,
    S: Array,
    rows: int,
    lengths: Sequence[int],
    loops: Kernel,
) -> dict[int, Sums]:
    """The sums of one block of simulated trajectories, read off at each of the ascending lengths.

    Nothing is kept but the present stretch of states and the running sums. Where `rng` draws, there are S
    and the sums.
    """
    sketch = np.ascontiguousarray(S.T) if is_host(S) else S.T
    running = Sums.zero(len(S), S)
    wanted, out, p = set(lengths), dict[int, Sums](), 0
    states = walk(rng, modes, rows, lengths[-1], loops, lengths)
    last = next(states)[0] @ sketch
    for X in states:
        y = X.reshape(-1, modes.d) @ sketch  # (positions · rows) × M
        u = last if len(X) == 1 else namespace(y).concat([last, y[:-rows]])
        running.add(u, y)
        p += len(X)
        if p in wanted:
            out[p] = running.copy()
        last = y[-rows:]
    return out
