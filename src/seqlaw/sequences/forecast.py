"""Longer or more, on the user's own sequences: measured where the pilot reaches, forecast beyond.

With the data's own moments the held-out loss of the student of N sequences of length P is
    L(N, P) = L_∞/(1 - V_P/(N L_∞)),   V_P = ½ tr[g(Ĝ_P) Θ_P g(Ĝ_P) Ĝ_test]/P²,
where Θ_P is the second moment of the sequences' scores and L_∞ follows from the student of the whole pilot
of n sequences, L(n, P) = L_test(B_P). To first order this is L_∞ + V_P/N; the rest is the noise that a
student of few sequences adds to its own residuals (as in generalised cross-validation). It assumes
independent sequences (or groups), and neither a linear teacher nor a Gaussian one. How well it does on
these data is measured: up to n/2 the same loss is that of students trained on random subsets.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError, positive, whole
from seqlaw.model.flags import Flag, flag
from seqlaw.model.randomness import generator
from seqlaw.model.schedule import WSD, Schedule
from seqlaw.model.threads import cores, in_order, one_thread
from seqlaw.sequences.needed import Crossing, Needed, crossings, needed
from seqlaw.sequences.pilot import (
    Moments,
    Pilot,
    Progress,
    Student,
    Test,
    block_moments,
    look,
    losses_by_group,
    mean_error,
    scores,
    subset,
    test_moments,
    train,
)
from seqlaw.sequences.reading import equal_lengths, sequences, split

STUDENTS = ("all", "pca", "sketch")
LEAST_TOKENS = 20.0
"""Tokens per learned dimension below which the filter counts as frozen too early: nothing is forecast."""
LEAST_SEQUENCES = 8
FEW_GROUPS = 20
SHARE = 0.2
"""Of the groups, for the test."""
_LEAST_GROUPS = 4
_LARGEST_STEP = 0.4  # γ‖Ĝ_P‖ at the length where that is largest: one step for all lengths
_MOST_LENGTHS = 6
_SUBSETS = 16
_LEVEL = 1.645  # 90 %
_SURE = 2.0  # standard errors by which a length must win
_OFF = 0.05  # an accuracy worse than this is flagged
_ALIKE = 4.0  # standard errors between the first state and the others


@dataclass(frozen=True, kw_only=True)
class Row:
    """One split of the tokens."""

    P: int
    N: int
    loss: float
    se: float
    """Over subsets (measured), or of the pilot's own student (forecast). Test sequences: `test_se`."""
    kind: str
    """"measured" or "forecast"."""
    tokens: float
    """Per learned dimension."""


@dataclass(frozen=True, kw_only=True)
class Law:
    """The loss at one length against N; `forecast` is False where the pilot has too few tokens for it."""

    P: int
    n: int
    loss: float
    """Of the pilot's student."""
    variance: float
    """V_P: that of one sequence."""
    learned: float
    """Dimensions."""
    forecast: bool

    @property
    def limit(self) -> float:
        """L_∞, what no number of sequences of this length can beat at this schedule."""
        root = max(0.0, 1 - 4 * self.variance / (self.n * self.loss))
        return self.loss * (1 + math.sqrt(root)) / 2

    @property
    def noise(self) -> float:
        """V/L_∞: the sequences whose noise is as large as the limit."""
        return self.variance / self.limit

    def at(self, N: float) -> float:
        return self.limit / (1 - self.noise / N) if N > self.noise else math.inf

    def tokens(self, N: float) -> float:
        """Per learned dimension."""
        return N * self.P / self.learned


@dataclass(frozen=True, kw_only=True)
class Overlap:
    """Where both can be had: the loss of students of N sequences, and its forecast."""

    P: int
    N: int
    measured: float
    se: float
    forecast: float | None
    """None where there are too few tokens for one."""
    tokens: float

    @property
    def ratio(self) -> float:
        """Forecast over measured."""
        return math.nan if self.forecast is None else self.forecast / self.measured


@dataclass(frozen=True, kw_only=True)
class Accuracy:
    """Forecast over truth: 90 % interval, the test sequences' chance included; relative."""

    ratio: float
    """Mean over the lengths at half the pilot."""
    low: float
    high: float
    difference: float
    """By which two lengths must differ to be told apart, the largest of all pairs."""


@dataclass(frozen=True, kw_only=True)
class Best:
    """The length that wins by more than can be doubted, if there is one."""

    P: int | None
    kind: str | None
    tied: tuple[int, ...]
    """Lengths that cannot be told from the best."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Forecast:
    """The held-out loss along P at equal tokens, and what stands behind it."""

    rows: tuple[Row, ...]
    null_loss: float
    """Of predicting nothing."""
    accuracy: Accuracy | None
    best: Best
    overlap: tuple[Overlap, ...]
    laws: tuple[Law, ...]
    crossings: tuple[Crossing, ...]
    needed: tuple[Needed, ...]
    target_loss: float | None
    tokens: int
    n: int
    """Sequences of the pilot."""
    groups: int
    """Groups of the pilot: its sequences, unless they have labels or were cut from recordings."""
    tested: int
    """Sequences held out."""
    D: int
    M: int
    student: str
    eval_length: int
    schedule: Schedule
    test_se: float
    """Standard error of a loss over the test sequences, common to all rows."""
    gain_se: float
    """That of the difference between the best student of the pilot and predicting nothing."""
    start_ratio: float
    start_alike: bool
    """Whether the first state is like the later ones."""
    seed: int
    flags: tuple[Flag, ...]


def forecast(
    X: Any,
    *,
    tokens: float | None,
    lengths: Sequence[int] | None,
    eval_length: int | None,
    student: str,
    M: int | None,
    steps: int,
    target_loss: float | None,
    sequence: str | None,
    time: str | None,
    groups: Any,
    window: int | None,
    standardise: bool,
    drop_missing: bool,
    seed: int,
    progress: Progress | None,
) -> Forecast:
    """The record behind `seqlaw.forecast`, which says what the arguments are."""
    if student not in STUDENTS:
        raise InputError("student", f"must be one of {', '.join(STUDENTS)}", student)
    seed, steps = whole("seed", seed, least=0), whole("steps", steps, least=3)
    wanted = None if tokens is None else whole("tokens", tokens)
    target = None if target_loss is None else positive("target_loss", target_loss)
    data = sequences(
        X, sequence=sequence, time=time, groups=groups, window=window, drop_missing=drop_missing
    )
    asked = [whole("lengths", P) for P in lengths] if lengths is not None else []
    asked += [] if eval_length is None else [whole("eval_length", eval_length)]
    for P in asked:
        if data.N and P >= data.lengths.max():
            field = "eval_length" if P == eval_length else "lengths"
            raise InputError(field, f"must be at most the longest sequence's, {data.lengths.max() - 1}", P)
    data, longest = equal_lengths(data, max(asked) if lengths is not None else None)
    count = int(data.groups.max()) + 1
    least, what = (_LEAST_GROUPS, "groups") if data.grouped else (LEAST_SEQUENCES, "sequences")
    if count < least:
        raise InputError("X", f"must hold at least {least} {what} to learn from and to test on", count)
    M = _width(student, M, data.D)
    with one_thread():
        rows, test = split(data, SHARE, generator(seed, "forecast", "split").permutation(count).tolist())
        view, constant = look(
            data, rows, longest, standardise=standardise, student=student, M=M, seed=seed
        )
        tick = _Tick(progress, total=2 * (rows.size + test.size))
        pilot = Pilot(data=data, rows=rows, test=test, longest=longest, view=view, tick=tick)
        chosen = _lengths(lengths, longest)
        return _forecast(
            pilot, chosen, eval_length or longest, steps, wanted, target, student, seed, constant=constant
        )


class _Tick:
    """Progress over the passes; subsets read a little more, which is not counted."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0

    def __call__(self, count: int) -> None:
        self.done = min(self.total, self.done + count)
        if self.progress is not None:
            self.progress(self.done, self.total)


def _width(student: str, M: int | None, D: int) -> int:
    if student == "all":
        if M is not None:
            raise InputError("M", "goes with the students pca and sketch; this one sees every feature", M)
        return D
    return min(128, max(1, D // 4)) if M is None else whole("M", M, most=D)


def _lengths(lengths: Sequence[int] | None, longest: int) -> tuple[int, ...]:
    """Powers of two and the longest; no more than six, evenly in the logarithm."""
    if lengths is not None:
        return tuple(sorted({int(P) for P in lengths}))
    powers = [2**k for k in range(1, 40) if 2**k < longest]
    if len(powers) >= _MOST_LENGTHS:
        powers = np.unique(np.geomspace(2, longest, _MOST_LENGTHS).round().astype(int)).tolist()[:-1]
    return (*powers, longest)


def _forecast(
    pilot: Pilot,
    lengths: tuple[int, ...],
    eval_length: int,
    steps: int,
    tokens: int | None,
    target: float | None,
    kind: str,
    seed: int,
    *,
    constant: int,
) -> Forecast:
    n, longest = pilot.n, pilot.longest
    moments = block_moments(pilot, lengths, seed)
    sums = [(moments.G[:, k].sum(axis=0), moments.C[:, k].sum(axis=0)) for k in range(len(lengths))]
    means = [(G / (n * P), C / (n * P)) for (G, C), P in zip(sums, lengths, strict=True)]
    norm = max(float(np.linalg.norm(G, 2)) for G, _ in means)
    schedule = WSD(gamma=_LARGEST_STEP / norm, L=steps)
    students = [Student.of(G, C, P, schedule) for (G, C), P in zip(means, lengths, strict=True)]
    blind = train(*(part / (n * lengths[-1]) for part in moments.blind), schedule)
    test = test_moments(pilot, eval_length)
    nothing = np.zeros_like(blind)
    by_group, count = losses_by_group(pilot, eval_length, [s.B for s in students] + [blind, nothing])
    found = scores(pilot, students)
    laws = tuple(
        Law(
            P=s.P,
            n=n,
            loss=test.loss(s.B),
            variance=float(np.sum((s.g @ theta @ s.g) * test.G) / (2 * s.P**2)),
            learned=s.learned,
            forecast=n * s.P >= LEAST_TOKENS * s.learned,
        )
        for s, theta in zip(students, found.theta, strict=True)
    )
    tokens = _tokens(laws) if tokens is None else tokens
    splits = {k: tokens // law.P for k, law in enumerate(laws) if tokens >= law.P}
    measured = {k: N for k, N in splits.items() if N <= n // 2}
    shares = [N for N in (n // 8, n // 4, n // 2) if N >= 1]
    asked = [(k, N) for k in range(len(laws)) for N in shares] + list(measured.items())
    losses = dict(zip(asked, _trained(pilot, moments, asked, schedule, test, seed), strict=True))
    overlap = _overlap(laws, shares, losses)
    rows, chance = [], {}
    for k, N in splits.items():
        law = laws[k]
        if k not in measured and not law.forecast:
            continue
        seen = losses[k, N if k in measured else n // 2]
        # A subset's loss varies like the pilot's own at n/2; means over subsets share the pilot (Hoeffding).
        factor = np.sqrt(N / (n - N) + 1 / _SUBSETS) if k in measured else 1.0
        chance[law.P] = (seen - seen.mean()) * factor
        rows.append(
            Row(
                P=law.P,
                N=N,
                loss=float(seen.mean()) if k in measured else law.at(N),
                se=float(chance[law.P].std(ddof=1)),
                kind="measured" if k in measured else "forecast",
                tokens=law.tokens(N),
            )
        )
    place = {P: k for k, P in enumerate(lengths)}
    bars = {
        (a.P, b.P): _SURE * np.hypot(
            mean_error(by_group[place[a.P]] - by_group[place[b.P]], count),
            (chance[a.P] - chance[b.P]).std(ddof=1),
        )
        + max(_missed(overlap, row) for row in (a, b))
        for a in rows
        for b in rows
        if a.P < b.P
    }
    bars |= {(b, a): bar for (a, b), bar in bars.items()}
    gains = [mean_error(by_group[-1] - one, count) for one in by_group[:-1]]
    leader = int(np.argmin([law.loss for law in laws]))
    test_se = mean_error(by_group[leader], count)
    accuracy = _accuracy(laws, overlap, losses, test_se, bars, rows)
    best = _best(rows, bars)
    null_loss = test.loss(nothing)
    flags = [
        *pilot.data.flags,
        *_flags(pilot, laws, splits, rows, accuracy, constant),
        *_worth(laws[leader].loss, null_loss, gains[leader], test.loss(blind), by_group[[leader, -2]], count),
    ]
    top = min(rows, key=lambda row: row.loss).P if rows else None
    return Forecast(
        rows=tuple(rows),
        null_loss=null_loss,
        accuracy=accuracy,
        best=best,
        overlap=overlap,
        laws=laws,
        crossings=crossings(laws, top, tokens, bars),
        needed=() if target is None else needed(laws, target, accuracy, LEAST_TOKENS),
        target_loss=target,
        tokens=tokens,
        n=n,
        groups=int(np.unique(pilot.data.groups[pilot.rows]).size),
        tested=int(pilot.test.size),
        D=pilot.data.D,
        M=pilot.view.M,
        student=kind,
        eval_length=eval_length,
        schedule=schedule,
        test_se=test_se,
        gain_se=gains[leader],
        start_ratio=found.start_ratio,
        start_alike=longest < 2 or found.start_z < _ALIKE,
        seed=seed,
        flags=tuple(flags),
    )


def _tokens(laws: Sequence[Law]) -> int:
    """Those of the pilot, if two lengths can be forecast there; else what half of it has at the shortest."""
    if sum(law.forecast for law in laws) > 1 or len(laws) == 1 and laws[0].forecast:
        return laws[0].n * laws[-1].P
    return max(1, laws[0].n // 2) * laws[0].P


def _trained(
    pilot: Pilot, moments: Moments, asked: Sequence[tuple[int, int]], schedule: Schedule, test: Test, seed: int
) -> list[Array]:
    """The held-out losses of students of random subsets, the same blocks at every length."""
    orders = [generator(seed, "forecast", "subset", r).permutation(len(moments.blocks)) for r in range(_SUBSETS)]

    def loss(task: tuple[int, int, int]) -> float:
        k, N, r = task
        rng = generator(seed, "forecast", "part", N, r)
        return test.loss(train(*subset(pilot, moments, k, N, orders[r], rng), schedule))

    tasks = [(k, N, r) for k, N in asked for r in range(_SUBSETS)]
    return list(np.reshape(list(in_order(loss, tasks, cores())), (len(asked), _SUBSETS)))


def _overlap(
    laws: Sequence[Law], shares: Sequence[int], losses: dict[tuple[int, int], Array]
) -> tuple[Overlap, ...]:
    """Those with tokens enough count; where a length has none of them, that at half the pilot."""
    found = []
    for k, law in enumerate(laws):
        enough = [N for N in shares if law.tokens(N) >= LEAST_TOKENS] or shares[-1:]
        for N in shares:
            seen, counts = losses[k, N], law.forecast and N in enough
            found.append(
                Overlap(
                    P=law.P,
                    N=N,
                    measured=float(seen.mean()),
                    se=float(seen.std(ddof=1) / np.sqrt(seen.size)),
                    forecast=law.at(N) if counts else None,
                    tokens=law.tokens(N),
                )
            )
    return tuple(found)


def _missed(overlap: Sequence[Overlap], row: Row) -> float:
    """By how much the forecast at half the pilot is off: more than beyond it. Nothing for a measured row."""
    if row.kind == "measured":
        return 0.0
    last = [one for one in overlap if one.P == row.P][-1]
    return abs(last.ratio - 1) * row.loss


def _accuracy(
    laws: Sequence[Law],
    overlap: Sequence[Overlap],
    losses: dict[tuple[int, int], Array],
    test_se: float,
    bars: dict[tuple[int, int], float],
    rows: Sequence[Row],
) -> Accuracy | None:
    """The overlap's ratios, 1 among them since the law gets better with N, and chance on both sides."""
    if not any(law.forecast for law in laws):
        return None
    n = laws[0].n
    ratios = [one.ratio for one in overlap if one.forecast is not None]
    half = [one.ratio for one in overlap if one.forecast is not None and one.N == n // 2]
    chance = max(
        np.hypot(losses[k, n // 2].std(ddof=1), test_se) / law.loss
        for k, law in enumerate(laws)
        if law.forecast
    )
    least = min((row.loss for row in rows), default=1.0)
    return Accuracy(
        ratio=float(np.mean(half)),
        low=float(min(1.0, *ratios) - _LEVEL * chance),
        high=float(max(1.0, *ratios) + _LEVEL * chance),
        difference=float(max(bars.values(), default=0.0) / least),
    )


def _best(rows: Sequence[Row], bars: dict[tuple[int, int], float]) -> Best:
    """Named only where every other length is worse by more than its bar."""
    if not rows:
        return Best(P=None, kind=None, tied=())
    top = min(rows, key=lambda row: row.loss)
    tied = tuple(row.P for row in rows if row is top or row.loss - top.loss <= bars[top.P, row.P])
    alone = len(tied) == 1 < len(rows)
    return Best(P=top.P if alone else None, kind=top.kind if alone else None, tied=tied)


def _worth(
    loss: float, null: float, error: float, blind: float, pair: Array, count: Array
) -> list[Flag]:
    """Whether the pilot's best student knows anything, and anything of the order of time."""
    if null - loss <= _SURE * error:
        return [flag("no-better-than-nothing", loss=loss, null=null, error=error)]
    error = mean_error(pair[1] - pair[0], count)
    return [flag("no-order", loss=loss, blind=blind, error=error)] if blind - loss <= _SURE * error else []


def _flags(
    pilot: Pilot,
    laws: Sequence[Law],
    splits: dict[int, int],
    rows: Sequence[Row],
    accuracy: Accuracy | None,
    constant: int,
) -> list[Flag]:
    flags = []
    shown = {row.P for row in rows}
    missing = [law for law in laws if law.P not in shown]
    thin = [law for law in missing if not law.forecast]
    if thin:
        least = max(LEAST_TOKENS * law.learned / law.P for law in thin)
        flags.append(
            flag(
                "too-few-tokens",
                lengths=tuple(law.P for law in thin),
                tokens=min(law.tokens(law.n) for law in thin),
                n=pilot.n,
                sequences=int(np.ceil(least)),
            )
        )
    groups = np.unique(pilot.data.groups[pilot.rows]).size
    if pilot.data.grouped and groups < FEW_GROUPS:
        flags.append(flag("few-groups", groups=int(groups), sequences=pilot.n))
    if constant:
        flags.append(flag("constant", features=constant, of=pilot.data.D))
    if accuracy is not None and max(1 - accuracy.low, accuracy.high - 1) > _OFF:
        flags.append(flag("inaccurate", low=accuracy.low, high=accuracy.high))
    return flags
