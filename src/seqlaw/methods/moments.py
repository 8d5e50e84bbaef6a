"""What a training run sees: the empirical moments Ĝ and Ĉ of N trajectories of length P.

Blocks of trajectories add (nested N) and running sums are read off on the way (nested P), so one pass gives a
whole family. Each block is simulated directly or drawn as a Gram chain, whichever costs less.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from seqlaw.methods.gram import gram_sums
from seqlaw.methods.kernel import NUMPY, kernel
from seqlaw.methods.trajectories import Key, Sums, block_rows, blocks, direct_sums
from seqlaw.model.arrays import host, is_host
from seqlaw.model.checks import Array, InputError, whole
from seqlaw.model.descent import Moments
from seqlaw.model.device import Device
from seqlaw.model.lengths import Counted
from seqlaw.model.randomness import generator
from seqlaw.model.sketch import as_sketch
from seqlaw.model.teacher import Modes
from seqlaw.model.threads import in_order, one_thread

Drawing = Literal["auto", "direct", "gram"]
DRAWINGS = ("auto", "direct", "gram")


def direct_cost(N: int, d: int, M: int, card: bool = False) -> float:
    """Nanoseconds a position of direct simulation: N·d normals, the sketch, the products of M columns.

    On a card (an H200) the states pass through its memory some thirty times.
    """
    if card:
        return N * (0.031 * d + 3.4e-5 * M * (d + 2 * M)) + 1e5
    return N * (10 * d + 0.07 * d * M + 0.12 * M * M) + 2e4 * (1 + N // block_rows(d))


def gram_cost(d: int, card: bool = False) -> float:
    """Nanoseconds a position of the Gram chain, whatever N is: 1.5 d² normals and a few d³ products.

    On a card thirty calls, a Cholesky factor column by column, few products.
    """
    return 1.2e-4 * d**3 + d**2 + 5.5e5 if card else 0.13 * d**3 + 22 * d**2 + 2.5e4


def cheaper_drawing(N: int, d: int, M: int, card: bool = False) -> tuple[str, float]:
    """`gram` or `direct` and its nanoseconds a position, by a fixed model: the choice decides the bits.

    The constants were measured by benchmarks/bench_moments.py, which prints model against clock, and those
    of a card by bench_gpu.py.
    """
    direct, gram = direct_cost(N, d, M, card), gram_cost(d, card)
    return ("gram", gram) if N >= 2 * d and gram < direct else ("direct", direct)


_SOURCES = {"direct": ("trajectories", direct_sums), "gram": ("gram", gram_sums)}


class _Block(NamedTuple):
    """One unit of work: `rows` trajectories from number `start`, read at `lengths`."""

    drawing: str
    start: int
    rows: int
    lengths: tuple[int, ...]


def nested_moments(
    modes: Modes,
    S: ArrayLike,
    points: Iterable[tuple[int, int]],
    *,
    seed: int = 0,
    key: Key = (),
    drawing: Drawing = "auto",
    workers: int = 1,
    memory: int = 2**30,
    device: Device | None = None,
) -> dict[tuple[int, int], Moments]:
    """Ĝ and Ĉ at all (N, P) of `points` from one nested data set, in one pass.

    The first N trajectories serve every larger N, their first P transitions every longer P; no block
    runs longer than its points need. (seed, key, the set of N) decide the data. `workers` threads share
    the blocks, fewer where `memory` (bytes) would not hold so many; neither changes a bit. On a `device`
    the set of P decides too, and one thread is enough; the moments are where S is.
    """
    S = as_sketch(S, modes.d)
    if drawing not in DRAWINGS:
        raise InputError("drawing", f"must be one of {', '.join(DRAWINGS)}", drawing)
    wanted = [(whole("N", N), whole("P", P)) for N, P in points]
    if not wanted:
        raise InputError("points", "must not be empty", wanted)
    M, d = S.shape
    if not np.all(modes.sigma_xi > 0):  # a Gram matrix may then turn singular on the way
        if drawing == "gram":
            raise InputError("drawing", "must not be gram where a mode has no innovation", drawing)
        drawing = "direct"
    plan = list(_plan(wanted, d, M, drawing, device))
    loops = NUMPY if device else kernel(sum(_normals(block, d) for block in plan))
    source: Any = generator if device is None else device.stream
    here = S if device is None else device.array(S)

    def run(block: _Block) -> tuple[_Block, dict[int, Sums]]:
        stream, sums = _SOURCES[block.drawing]
        rng = source(seed, stream, *key, block.start)
        return block, sums(rng, modes, here, block.rows, block.lengths, loops)

    hold = max(8 * (4 * block_rows(d) * d + 2 * (len(wanted) + 1) * M * M), 100 * d * d)
    workers = 1 if device else max(1, min(whole("workers", workers), int(memory) // hold))
    running: dict[int, Sums] = {}
    out: dict[tuple[int, int], Moments] = {}
    with one_thread():
        for block, sums in in_order(run, plan, workers):
            for P in block.lengths:
                running.setdefault(P, Sums.zero(M, here)).merge(sums[P])
            N = block.start + block.rows
            for P in {P for size, P in wanted if size == N}:
                out[N, P] = _normalised(running[P], N * P, S)
    return out


def sample_moments(
    modes: Modes, S: ArrayLike, N: int, P: int, *, seed: int = 0, key: Key = (), drawing: Drawing = "auto"
) -> Moments:
    """Ĝ and Ĉ of N trajectories of length P."""
    return nested_moments(modes, S, [(N, P)], seed=seed, key=key, drawing=drawing)[
        whole("N", N), whole("P", P)
    ]


def mixed_moments(
    modes: Modes,
    S: Array,
    mixture: Counted,
    *,
    seed: int = 0,
    key: Key = (),
    drawing: Drawing = "auto",
    workers: int = 1,
) -> Moments:
    """Ĝ and Ĉ of a mixture, all tokens alike: each length has sequences of its own."""
    G, C, energy = np.zeros((len(S), len(S))), np.zeros((len(S), len(S))), 0.0
    for N, (P, share) in zip(mixture.counts, mixture, strict=True):
        own = (*key, "length", P)
        part = nested_moments(modes, S, [(N, P)], seed=seed, key=own, drawing=drawing, workers=workers)[N, P]
        G, C, energy = G + share * part.G, C + share * part.C, energy + share * part.energy
    return Moments(G=G, C=C, energy=energy)


def _plan(
    points: list[tuple[int, int]], d: int, M: int, drawing: str, device: Device | None = None
) -> Iterator[_Block]:
    """The blocks between successive N, in order; direct ones cut to the fixed block size."""
    first = 0
    for N in sorted({N for N, _ in points}):
        lengths = tuple(sorted({P for size, P in points if size >= N}))
        chosen = cheaper_drawing(N - first, d, M, device is not None)[0] if drawing == "auto" else drawing
        if chosen == "gram":
            if N - first < 2 * d:
                raise InputError("N", f"must grow by at least 2d = {2 * d} for the Gram chain", N - first)
            yield _Block("gram", first, N - first, lengths)
        else:
            for start, rows in blocks(first, N, d, device):
                yield _Block("direct", start, rows, lengths)
        first = N


def _normals(block: _Block, d: int) -> float:
    return block.lengths[-1] * d * (1.5 * d if block.drawing == "gram" else block.rows)


def _normalised(sums: Sums, count: int, near: Array) -> Moments:
    """Means over so many transitions, where `near` is or on the host."""
    G, C = (host(x) if is_host(near) else x for x in (sums.G, sums.C))
    return Moments(G=G / count, C=C / count, energy=float(sums.energy) / count)


@one_thread()
def moments_of(data: ArrayLike | Iterable[ArrayLike], *, S: ArrayLike | None = None) -> Moments:
    """Ĝ and Ĉ of your own sequences: an array N × (P+1) × D, or any iterable of arrays (P_i+1) × D or
    n × (P_i+1) × D, which may differ in length and are read one at a time.

    Every transition weighs the same. With a sketch S (M×D) the states are sketched first.
    """
    sketch = None if S is None else np.asarray(S, dtype=np.float64).T
    sums: Sums | None = None
    count = 0
    for chunk in _chunks(data):
        states = chunk
        if sketch is not None:
            if sketch.ndim != 2 or sketch.shape[0] != states.shape[2]:
                raise InputError("S", f"must have {states.shape[2]} columns", sketch.T.shape)
            states = states @ sketch
        M = states.shape[2]
        if sums is None:
            sums = Sums.zero(M)
        elif sums.G.shape != (M, M):
            raise InputError("data", f"must have {len(sums.G)} features like the first sequence", M)
        sums.add(states[:, :-1].reshape(-1, M), states[:, 1:].reshape(-1, M))
        count += states.shape[0] * (states.shape[1] - 1)
    if sums is None:
        raise InputError("data", "must hold at least one sequence", "none")
    return _normalised(sums, count, sums.G)


def _chunks(data: ArrayLike | Iterable[ArrayLike]) -> Iterator[Array]:
    """Checked three-dimensional pieces of bounded size."""
    whole_array = isinstance(data, np.ndarray) and data.ndim == 3 and data.dtype != object
    items: Any = [data] if whole_array else data
    for item in items:
        try:
            states = np.asarray(item)
            if states.dtype.kind not in "fiu":
                raise ValueError
        except (TypeError, ValueError):
            raise InputError("data", "must be arrays of real numbers", type(item).__name__) from None
        if states.ndim == 2:
            states = states[None]
        if states.ndim != 3 or states.shape[1] < 2 or 0 in states.shape:
            raise InputError("data", "must hold sequences of at least two states", f"shape {states.shape}")
        rows = max(1, 2**20 // (states.shape[1] * states.shape[2]))
        for start in range(0, states.shape[0], rows):
            piece = states[start : start + rows].astype(np.float64)
            if not np.all(np.isfinite(piece)):
                raise InputError("data", "must be finite", float(piece[~np.isfinite(piece)][0]))
            yield piece
