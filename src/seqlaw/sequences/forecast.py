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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import stdtrit

from seqlaw.model.checks import Array, InputError, positive, whole
from seqlaw.model.flags import Flag, flag
from seqlaw.model.randomness import generator
from seqlaw.model.schedule import WSD, Schedule
from seqlaw.model.threads import cores, in_order, one_thread
from seqlaw.sequences.law import (
    LEAST_TOKENS,
    Accuracy,
    Best,
    Law,
    Overlap,
    Row,
    accuracy,
    bars,
    best,
    default_tokens,
    overlap,
    rows_at,
)
from seqlaw.sequences.needed import Crossing, Needed, crossings, needed
from seqlaw.sequences.pilot import (
    HeldOut,
    Moments,
    Pilot,
    Progress,
    Student,
    block_moments,
    held_out_moments,
    look,
    losses_by_group,
    mean_error,
    scores,
    subset,
    train,
)
from seqlaw.sequences.reading import equal_lengths, join, sequences, split
from seqlaw.sequences.warnings import pilot_flags, worth_of

STUDENTS = ("all", "pca", "sketch")
LEAST_SEQUENCES = 8
SHARE = 0.2
"""Of the groups, for the test."""
_LEAST_GROUPS = 4
_LARGEST_STEP = 0.4  # γ‖Ĝ_P‖ at the length where that is largest: one step for all lengths
_MOST_LENGTHS, _SUBSETS = 6, 16
_WIDE, _WIDE_LENGTHS, _WIDE_SUBSETS = 512, 4, 8  # wider students cost a second each, and 8 MB a moment
_SURE = 0.975  # one-sided, with which a length must win
LEVEL = 0.9
"""Of the accuracy's interval."""
_FILLED = 0.95  # of the tokens must fill whole sequences, else lengths are not compared at equal tokens
_ALIKE = 4.0  # standard errors between the first state and the others


@dataclass(frozen=True, kw_only=True, eq=False)
class Forecast:
    """The held-out loss along P at equal tokens, and what stands behind it."""

    rows: tuple[Row, ...]
    null_loss: float
    """Of predicting nothing."""
    accuracy: Accuracy | None
    best: Best
    apart: Mapping[int, float]
    """By length P: what its loss must be above the least one for the two to be told apart."""
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
    doubt: float
    """What the best row's loss must be below that of predicting nothing to be told from it."""
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
    leave_out: Sequence[str],
    test: Any,
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
    how: dict[str, Any] = {
        "sequence": sequence,
        "time": time,
        "window": window,
        "leave_out": leave_out,
        "drop_missing": drop_missing,
    }
    data = sequences(X, groups=groups, **how)
    if lengths is not None and len(lengths) == 0:
        raise InputError("lengths", "must hold a length", "none")
    asked = [whole("lengths", P) for P in lengths] if lengths is not None else []
    asked += [] if eval_length is None else [whole("eval_length", eval_length)]
    for P in asked:
        if data.N and P >= data.lengths.max():
            field = "eval_length" if P == eval_length else "lengths"
            raise InputError(field, f"must be at most the longest sequence's, {data.lengths.max() - 1}", P)
    data, longest = equal_lengths(data, max(asked) if lengths is not None else None)
    count = int(data.groups.max()) + 1
    least, what = (_LEAST_GROUPS, "groups") if data.grouped else (LEAST_SEQUENCES, "sequences")
    if how.get("window") is not None and groups is None:
        what += " (blocks of windows; shorter windows make more)"
    if count < least:
        raise InputError("X", f"must hold at least {least} {what} to learn from and to test on", count)
    M = _width(student, M, data.D)
    if test is None:
        rows, held = split(data, SHARE, generator(seed, "forecast", "split").permutation(count))
    else:
        given = sequences(test, groups=groups if isinstance(groups, str) else None, **how)
        data, rows, held = join(data, given, longest)
    with one_thread():
        view, constant = look(data, rows, longest, standardise=standardise, student=student, M=M, seed=seed)
        tick = _Tick(progress, total=4 * rows.size + 2 * held.size)
        pilot = Pilot(data=data, rows=rows, test=held, longest=longest, view=view, tick=tick)
        chosen = _lengths(lengths, longest, _WIDE_LENGTHS if M > _WIDE else _MOST_LENGTHS)
        return _forecast(
            pilot, chosen, eval_length or longest, steps, wanted, target, student, seed, constant=constant
        )


class _Tick:
    """Progress: sequences read, and students trained, which count as two readings of the pilot."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done = progress, total, 0.0

    def __call__(self, count: float) -> None:
        self.done = min(self.total, self.done + count)
        if self.progress is not None:
            self.progress(round(self.done), self.total)


def _width(student: str, M: int | None, D: int) -> int:
    if student == "all":
        if M is not None:
            raise InputError("M", "goes with the students pca and sketch; this one sees every feature", M)
        return D
    return min(128, max(1, D // 4)) if M is None else whole("M", M, most=D)


def _lengths(lengths: Sequence[int] | None, longest: int, most: int) -> tuple[int, ...]:
    """Powers of two and the longest; where these are too many, evenly in the logarithm."""
    if lengths is not None:
        return tuple(sorted({int(P) for P in lengths}))
    powers = [2**k for k in range(1, 40) if 2**k < longest]
    if len(powers) >= most:
        powers = np.unique(np.geomspace(2, longest, most).round().astype(int)).tolist()[:-1]
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
    blind = train(moments.blind[0] / (n * lengths[-1]), moments.blind[1] / (n * lengths[-1]), schedule)
    test = held_out_moments(pilot, eval_length)
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
    tokens = default_tokens(laws) if tokens is None else tokens
    used = {P: tokens // P * P for P in lengths}
    splits = {P: used[P] // P for P in lengths if used[P] >= _FILLED * max(used.values()) > 0}
    shares = [N for N in (n // 8, n // 4, n // 2) if N]
    asked = [(P, N) for P in lengths for N in shares] + [(P, N) for P, N in splits.items() if N <= n // 2]
    losses = _trained(pilot, moments, list(dict.fromkeys(asked)), schedule, test, seed)
    checked = overlap(laws, shares, losses)
    rows, chance = rows_at(laws, splits, losses)
    freedom = min(count.size, len(moments.blocks)) - 1
    sure, likely = (float(stdtrit(freedom, level)) for level in (_SURE, (1 + LEVEL) / 2))
    apart = bars(rows, checked, chance, dict(zip(lengths, by_group, strict=False)), count, sure)
    leader = int(np.argmin([law.loss for law in laws]))
    test_se = mean_error(by_group[leader], count)
    gain_se = mean_error(by_group[-1] - by_group[leader], count)
    blind_se = mean_error(by_group[-2] - by_group[leader], count)
    top = min(rows, key=lambda row: row.loss, default=None)
    difference = max(apart[top.P, row.P] for row in rows) / top.loss if top else 0.0
    good = accuracy(laws, checked, losses, test_se=test_se, likely=likely, difference=difference)
    null_loss = test.loss(nothing)
    worth = worth_of(laws[leader].loss, null_loss, sure * gain_se, test.loss(blind), sure * blind_se)
    doubt = sure * math.hypot(gain_se, top.se) if top else 0.0
    hopeless = bool(worth) or top is None or null_loss - top.loss <= doubt
    flags = [
        *worth,
        *pilot.data.flags,
        *pilot_flags(pilot, laws, rows, good, constant),
    ]
    if unfilled := tuple(P for P in lengths if P not in splits):
        flags.append(flag("unfilled", lengths=unfilled, tokens=tokens))
    return Forecast(
        rows=tuple(rows),
        null_loss=null_loss,
        accuracy=good,
        best=Best(P=None, kind=None, tied=tuple(row.P for row in rows)) if hopeless else best(rows, apart),
        apart={row.P: apart[top.P, row.P] for row in rows} if top else {},
        overlap=checked,
        laws=laws,
        crossings=crossings(laws, top.P if top else None, tokens, apart),
        needed=() if target is None else needed(laws, target, good),
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
        doubt=doubt,
        start_ratio=found.start_ratio,
        start_alike=longest < 2 or found.start_z < _ALIKE,
        seed=seed,
        flags=tuple(flags),
    )


def _trained(
    pilot: Pilot,
    moments: Moments,
    asked: Sequence[tuple[int, int]],
    schedule: Schedule,
    test: HeldOut,
    seed: int,
) -> dict[tuple[int, int], Array]:
    """The held-out losses of students of random subsets, the same blocks at every length."""
    count = _WIDE_SUBSETS if pilot.view.M > _WIDE else _SUBSETS
    orders = [generator(seed, "forecast", "subset", r).permutation(len(moments.blocks)) for r in range(count)]

    def loss(task: tuple[int, int, int]) -> float:
        P, N, r = task
        rng = generator(seed, "forecast", "part", N, r)
        G, C = subset(pilot, moments, moments.lengths.index(P), N, orders[r], rng)
        return test.loss(train(G, C, schedule))

    tasks = [(P, N, r) for P, N in asked for r in range(count)]
    found = []
    for each in in_order(loss, tasks, cores()):
        found.append(each)
        pilot.tick(2 * pilot.n / len(tasks))
    return dict(zip(asked, np.reshape(found, (len(asked), count)), strict=True))
