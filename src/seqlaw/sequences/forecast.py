"""Longer or more, on the user's own sequences: measured where the pilot reaches, forecast beyond.

The held-out loss of the student of N sequences of length P is
    L(N, P) = L_n + V_P (1/N - 1/n)
with L_n that of the whole pilot of n sequences and V_P from students of random halves (`sequences.law`). It
assumes independent sequences (or groups), and neither a linear teacher nor a Gaussian one. Up to n/2 the
loss is measured by students of random subsets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError, positive, whole
from seqlaw.model.descent import Moments
from seqlaw.model.flags import Flag, flag
from seqlaw.model.randomness import generator
from seqlaw.model.schedule import WSD, Schedule
from seqlaw.model.threads import cores, in_order, one_thread
from seqlaw.sequences.law import (
    Accuracy,
    Best,
    Law,
    Overlap,
    Row,
    accuracy,
    bars,
    best,
    make_law,
    overlap,
    rows_at,
)
from seqlaw.sequences.needed import Crossing, Needed, crossings, needed
from seqlaw.sequences.pilot import (
    Blocks,
    Pilot,
    Progress,
    Start,
    Student,
    block_sums,
    held_out_moments,
    look,
    losses_by_group,
    subset,
    train,
)
from seqlaw.sequences.reading import Sequences, equal_lengths, join, sequences, split
from seqlaw.sequences.tables import Columns, Index
from seqlaw.sequences.warnings import pilot_flags
from seqlaw.sequences.worth import gains, worth_flags

STUDENTS = ("all", "pca", "sketch")
LEAST_SEQUENCES = 8
SHARE = 0.2
"""Of the groups, for the test."""
_LEAST_GROUPS = 4
_LARGEST_STEP = 0.4  # γ‖Ĝ_P‖ at the length where that is largest: one step for all lengths
_MOST_LENGTHS, _SUBSETS = 6, 16
_WIDE, _WIDE_LENGTHS, _WIDE_SUBSETS = 512, 4, 8  # wider students cost a second each, and 8 MB a moment
SURE = 0.975
"""One-sided: with which a length must be better to be named."""
_TESTED_HALVES, _WIDE_TESTED_HALVES = 4, 2  # whose losses are kept by test group
_FILLED = 0.95  # of the tokens must fill whole sequences, else lengths are not compared at equal tokens


@dataclass(frozen=True, kw_only=True, eq=False)
class Forecast:
    """The held-out loss along P at equal tokens, and what stands behind it."""

    rows: tuple[Row, ...]
    null_loss: float
    """Of predicting nothing."""
    accuracy: Accuracy | None
    best: Best
    apart: Mapping[int, float]
    """By length P: what its loss must be above the least one for the two to be distinguished."""
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
    gain: float
    """By how much the best row's loss is below that of predicting nothing, by cross-validation."""
    doubt: float
    """The ± of that, 95 %."""
    start: Start
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
    columns: Columns,
    groups: Any,
    window: int | None,
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
    how: dict[str, Any] = {"window": window, "drop_missing": drop_missing}
    data = sequences(X, columns, groups=groups, **how)
    if lengths is not None and len(lengths) == 0:
        raise InputError("lengths", "must hold a length", "none")
    asked = [whole("lengths", P) for P in lengths] if lengths is not None else []
    asked += [] if eval_length is None else [whole("eval_length", eval_length)]
    for P in asked:
        if data.N and P >= data.lengths.max():
            field = "eval_length" if P == eval_length else "lengths"
            raise InputError(field, f"must be at most the longest sequence's, {data.lengths.max() - 1}", P)
    data, longest = equal_lengths(data, max(asked) if lengths is not None else None)
    if eval_length is not None and eval_length > longest:
        rule = f"must be at most {longest}, the length that keeps most of the data (or give lengths)"
        raise InputError("eval_length", rule, eval_length)
    count = int(data.groups.max()) + 1
    least, what = (_LEAST_GROUPS, "groups") if data.grouped else (LEAST_SEQUENCES, "sequences")
    if window is not None and groups is None:
        what += " (blocks of windows; shorter windows make more)"
    if count < least:
        raise InputError("X", f"must hold at least {least} {what} to learn from and to test on", count)
    M = _width(student, M, data.D)
    if test is None:
        rows, held = split(data, SHARE, generator(seed, "forecast", "split").permutation(count))
    else:
        data, rows, held = join(data, _given(test, columns, groups, how), longest)
    with one_thread():
        view, constant = look(
            data, rows, held, longest, standardise=standardise, student=student, M=M, seed=seed
        )
        tick = _Tick(progress, total=5 * rows.size + 4 * held.size)
        pilot = Pilot(
            data=data,
            rows=rows,
            test=held,
            given=test is not None,
            longest=longest,
            view=view,
            M=M,
            tick=tick,
        )
        chosen = _lengths(lengths, longest, _WIDE_LENGTHS if M > _WIDE else _MOST_LENGTHS)
        return _forecast(
            pilot, chosen, eval_length or longest, steps, wanted, target, student, seed, constant=constant
        )


def _given(test: Any, columns: Columns, groups: Any, how: Mapping[str, Any]) -> Sequences:
    """The test sequences; what is wrong with them is not said of the others."""
    try:
        return sequences(test, columns, groups=groups if isinstance(groups, str) else None, **how)
    except InputError as error:
        rule = error.rule
        if error.field not in ("X", "file"):
            rule = f"must have the form of the other sequences: {error.field} {rule}"
        raise InputError("test", rule, error.value) from None


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
    n = pilot.n
    blocks = block_sums(pilot, lengths, seed)
    means = [blocks.moments(k) for k in range(len(lengths))]
    norm = max(float(np.linalg.norm(each.G, 2)) for each in means)
    schedule = WSD(gamma=_LARGEST_STEP / norm, L=steps)
    students = [Student.of(each, P, schedule) for each, P in zip(means, lengths, strict=True)]
    test = held_out_moments(pilot, eval_length)
    shares = [N for N in (n // 8, n // 4, n // 2) if N]
    losses, halves = _trained(
        pilot, blocks, [(P, N) for P in lengths for N in shares], schedule, test, seed, keep=n // 2
    )
    by_group, count = losses_by_group(
        pilot, eval_length, [s.B for s in students] + [B for P in lengths for B in halves[P]]
    )
    of_halves = by_group[len(lengths) :].reshape(len(lengths), -1, count.size).mean(axis=1)
    laws = tuple(
        make_law(
            P=student.P,
            n=n,
            loss=test.loss(student.B),
            learned=student.learned,
            losses=losses,
            test=by_group[k],
            count=count,
            halves=of_halves[k],
            blocks=len(blocks.rows),
        )
        for k, student in enumerate(students)
    )
    tokens = _default_tokens(laws) if tokens is None else tokens
    used = {P: tokens // P * P for P in lengths}
    splits = {P: used[P] // P for P in lengths if used[P] >= _FILLED * max(used.values()) > 0}
    more = [(P, N) for P, N in splits.items() if N <= n // 2 and (P, N) not in losses]
    losses |= _trained(pilot, blocks, more, schedule, test, seed)[0]
    checked = overlap(laws, shares, losses)
    rows, chances = rows_at(laws, splits, losses)
    apart = bars(chances, SURE)
    top = min(rows, key=lambda row: row.loss, default=None)
    difference = max(apart[top.P, row.P] for row in rows) / top.loss if top else 0.0
    good = accuracy(laws, rows, checked, difference)
    nothing, order = gains(pilot, lengths[-1], eval_length, schedule, seed, SURE)
    worth = worth_flags(nothing, order)
    gain, doubt = nothing.mean, nothing.error
    if top is not None:  # the pilot's gain, and what the row has less than the pilot
        gain += laws[-1].loss - top.loss
        doubt = float(np.hypot(doubt, (chances[top.P] - laws[-1].chance).width(SURE)))
    hopeless = top is None or gain <= doubt or any(one.code != "order-unclear" for one in worth)
    flags = [
        *worth,
        *pilot.data.flags,
        *pilot_flags(pilot, laws, rows, good, constant),
    ]
    if unfilled := tuple(P for P in lengths if P not in splits):
        flags.append(flag("unfilled", lengths=unfilled, tokens=tokens))
    return Forecast(
        rows=tuple(rows),
        null_loss=test.energy / 2,
        accuracy=good,
        best=Best(P=None, kind=None, tied=tuple(row.P for row in rows)) if hopeless else best(rows, apart),
        apart={row.P: apart[top.P, row.P] for row in rows} if top else {},
        overlap=checked,
        laws=laws,
        crossings=crossings(laws, top.P if top else None, tokens, apart),
        needed=() if target is None else needed(laws, target),
        target_loss=target,
        tokens=tokens,
        n=n,
        groups=int(np.unique(pilot.data.groups[pilot.rows]).size),
        tested=int(pilot.test.size),
        D=pilot.data.D,
        M=pilot.M,
        student=kind,
        eval_length=eval_length,
        schedule=schedule,
        test_se=min(laws, key=lambda law: law.loss).chance.tested,
        gain=gain,
        doubt=doubt,
        start=blocks.start,
        seed=seed,
        flags=tuple(flags),
    )


def _default_tokens(laws: Sequence[Law]) -> int:
    """Those of the pilot, if two lengths can be forecast there; else what half of it has at the shortest."""
    if sum(law.forecast for law in laws) > 1 or (len(laws) == 1 and laws[0].forecast):
        return laws[0].n * laws[-1].P
    return max(1, laws[0].n // 2) * laws[0].P


def _trained(
    pilot: Pilot,
    blocks: Blocks,
    asked: Sequence[tuple[int, int]],
    schedule: Schedule,
    test: Moments,
    seed: int,
    *,
    keep: int = 0,
) -> tuple[dict[tuple[int, int], Array], dict[int, list[Array]]]:
    """The held-out losses of students of random subsets, the same blocks at every length.

    With some of the students of `keep` sequences, by length. Of two subsets the second takes the blocks from
    the other end: two halves are complementary.
    """
    wide = pilot.view.M > _WIDE
    count, tested = (_WIDE_SUBSETS, _WIDE_TESTED_HALVES) if wide else (_SUBSETS, _TESTED_HALVES)
    orders: list[Index] = []
    for r in range(count // 2):
        order = generator(seed, "forecast", "subset", r).permutation(len(blocks.rows))
        orders += [order, order[::-1]]

    def result(task: tuple[int, int, int]) -> tuple[float, Array | None]:
        P, N, r = task
        rng = generator(seed, "forecast", "part", N, r)
        seen = subset(pilot, blocks, blocks.lengths.index(P), N, orders[r], rng)
        B = train(seen.G, seen.C, schedule)
        return test.loss(B), B if N == keep and r < tested else None

    tasks = [(P, N, r) for P, N in asked for r in range(count)]
    found, kept = [], {P: list[Array]() for P in blocks.lengths}
    for task, (loss, B) in zip(tasks, in_order(result, tasks, cores()), strict=True):
        found.append(loss)
        if B is not None:
            kept[task[0]].append(B)
        pilot.tick(2 * pilot.n / len(tasks))
    return dict(zip(asked, np.reshape(found, (len(asked), count)), strict=True)), kept
