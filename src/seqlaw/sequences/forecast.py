"""Longer or more, on the user's own sequences: measured where the pilot reaches, forecast beyond.

The held-out loss of the student of N sequences of length P is
    L(N, P) = L_n + V_P (1/N - 1/n)
with L_n that of the whole pilot of n sequences and V_P from students of random halves
(`sequences.learning_curve`). It assumes independent sequences (or groups), and neither a linear teacher nor a
Gaussian one. Up to n/2 the loss is measured by students of random subsets.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError, positive, whole
from seqlaw.model.flags import Flag, flag
from seqlaw.model.randomness import generator
from seqlaw.model.schedule import WSD, Schedule
from seqlaw.model.signature import checked
from seqlaw.model.threads import cores, in_order, one_thread
from seqlaw.sequences.learning_curve import (
    LEAST_TOKENS,
    Accuracy,
    Best,
    Crossing,
    LearningCurve,
    Needed,
    Overlap,
    Row,
    accuracy,
    bars,
    best,
    crossings,
    needed,
)
from seqlaw.sequences.opening import file_names
from seqlaw.sequences.pilot import (
    Blocks,
    Pilot,
    Progress,
    Start,
    Student,
    best_schedule,
    block_sums,
    held_out_moments,
    look,
    losses_by_group,
    subset,
    train,
)
from seqlaw.sequences.reading import Sequences, equal_lengths, join, sequences, split
from seqlaw.sequences.tables import Columns, Index
from seqlaw.sequences.worth import gains, worth_flags

STUDENTS = ("all", "pca", "sketch")
LEAST_SEQUENCES = 8
SHARE = 0.2
"""Of the groups, for the test."""
FEW_GROUPS = 20
_LEAST_GROUPS = 4
_MOST_LENGTHS, _SUBSETS = 6, 16
_WIDE, _WIDE_LENGTHS, _WIDE_SUBSETS = 512, 4, 8  # wider students cost a second each, and 8 MB a moment
SURE = 0.975
"""One-sided: with which a length must be better to be named."""
_TESTED_HALVES, _WIDE_TESTED_HALVES = 4, 2  # whose losses are kept by test group
_FILLED = 0.95  # of the tokens must fill whole sequences, else lengths are not compared at equal tokens
_OFF = 0.05  # an accuracy worse than this is flagged


@dataclass(frozen=True, kw_only=True, eq=False)
class Forecast:
    """The held-out loss along P at equal tokens: measured where the pilot reaches, forecast beyond."""

    asked: Mapping[str, Any]
    """The arguments; files by name."""
    rows: tuple[Row, ...]
    null_loss: float
    """Of predicting nothing."""
    accuracy: Accuracy | None
    best: Best
    apart: Mapping[int, float]
    """By length P: what its loss must be above the least one for the two to be distinguished."""
    overlap: tuple[Overlap, ...]
    curves: tuple[LearningCurve, ...]
    """One a length."""
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
    steps: int
    gamma: float | None
    """The step of all lengths, if one was given; without one each curve has its own."""
    test_se: float
    """Standard error of a loss over the test sequences, common to all rows."""
    gain: float
    """By how much the best row's loss is below that of predicting nothing, by cross-validation."""
    doubt: float
    """The ± of that, 95 %."""
    start: Start
    flags: tuple[Flag, ...]


@checked
def forecast(
    X: Any,
    *,
    tokens: float | None = None,
    lengths: Sequence[int] | None = None,
    eval_length: int | None = None,
    student: str = "all",
    M: int | None = None,
    steps: int = 500,
    gamma: float | None = None,
    target_loss: float | None = None,
    sequence: str | None = None,
    time: str | None = None,
    groups: Any = None,
    window: int | None = None,
    features: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    test: Any = None,
    standardise: bool = False,
    drop_missing: bool = False,
    seed: int = 0,
    progress: Progress | None = None,
) -> Forecast:
    """The held-out loss of students of `tokens` tokens, split into N sequences of each length P.

    Parameters
    ----------
    X
        An array N × P × D (NumPy, torch, JAX), an iterable of P_i × D sequences, a DataFrame of features,
        a recording S × D, a file (.npy, .npz, .zarr, .mat, .jsonl, .csv or .parquet), several files
        as a list, or a folder.
    tokens
        How many tokens a student has; by default as many as the pilot.
    lengths
        The lengths to compare, in transitions; by default powers of two up to the longest.
    eval_length
        The test length; by default the longest.
    student, M
        The student sees "all" features, M principal directions ("pca"), or a Gaussian "sketch" of M.
    steps, gamma
        The steps of training, and one step size for all lengths. By default each length has its own, the best
        that the safeguard allows.
    target_loss
        The held-out loss to reach: how many tokens does it take?
    sequence, time
        In a table, the column that tells sequences apart, and the one that orders states.
    groups
        Labels of sequences that are not independent: a column, the name of an array in the file, one label a
        sequence, or "file" for several files.
    window
        How many states to cut a recording by.
    features, leave_out
        In a table, the columns that are features, or those that are none.
    test
        Sequences to test on, in any form that X may have; by default a fifth of the groups is held out.
    standardise, drop_missing
        Whether to scale features to unit variance, and whether to leave out states with missing values.
    seed
        The seed of the split and of the draws.
    progress
        Called with what is done and what there is to do.

    Returns
    -------
    Forecast
        `.rows`, the held-out loss of each length with its interval; `.flags` say what limits it.

    Examples
    --------
    >>> from seqlaw import PRESETS, forecast
    >>> from seqlaw.methods import trajectories
    >>> X = trajectories(PRESETS["regime2"].modes(6), 60, 8, seed=1)
    >>> found = forecast(X, lengths=[2, 8], steps=50)
    >>> [row.P for row in found.rows]
    [2, 8]
    """
    asked = {"file": file_names(X)} | {
        name: value for name, value in locals().items() if name not in ("X", "test", "progress")
    }
    if groups is not None and not isinstance(groups, str):
        asked["groups"] = "given"
    columns = Columns(sequence=sequence, time=time, features=features, leave_out=leave_out)
    if student not in STUDENTS:
        raise InputError("student", f"must be one of {', '.join(STUDENTS)}", student)
    seed, steps = whole("seed", seed, least=0), whole("steps", steps, least=3)
    gamma = None if gamma is None else positive("gamma", gamma)
    budget = None if tokens is None else whole("tokens", tokens)
    target = None if target_loss is None else positive("target_loss", target_loss)
    how: dict[str, Any] = {"window": window, "drop_missing": drop_missing}
    data, longest = _long_enough(sequences(X, columns, groups=groups, **how), lengths, eval_length)
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
    compared = _lengths(lengths, longest, _WIDE_LENGTHS if M > _WIDE else _MOST_LENGTHS)
    with one_thread():
        view, constant = look(
            data, rows, held, longest, standardise=standardise, student=student, M=M, seed=seed
        )
        pilot = Pilot(
            data=data,
            rows=rows,
            test=held,
            given=test is not None,
            view=view,
            M=M,
            tick=_Tick(progress, total=5 * rows.size + 4 * held.size),
        )
        n, eval_length = pilot.n, eval_length or longest
        blocks = block_sums(pilot, tuple(sorted({*compared, eval_length})), seed)
        chosen: dict[int, tuple[Schedule, float]] = {
            P: (WSD(gamma=gamma, L=steps), 0.0)
            if gamma is not None
            else best_schedule(pilot, blocks, P, max(1, (budget or n * P) // P), eval_length, steps, seed)
            for P in compared
        }
        schedules = {P: schedule for P, (schedule, _) in chosen.items()}
        room = {P: saved for P, (_, saved) in chosen.items()}
        trainer = _Trainer(pilot, blocks, schedules, room, eval_length, seed)
        curves = trainer.curves()
        budget = _default_tokens(curves) if budget is None else budget
        used = {P: budget // P * P for P in compared}
        splits = {P: used[P] // P for P in compared if used[P] >= _FILLED * max(used.values()) > 0}
        curves = trainer.extended(curves, splits)
        checked_at = [each for each in (n // 8, n // 4, n // 2) if each]
        overlap = tuple(curve.overlap(N) for curve in curves for N in checked_at)
        found = [
            curve.row(splits[curve.P])
            for curve in curves
            if curve.P in splits and (splits[curve.P] <= n // 2 or curve.forecast)
        ]
        nothing, order = gains(pilot, compared[-1], eval_length, schedules[compared[-1]], seed, SURE)
    shown = tuple(row for row, _ in found)
    chances = {row.P: chance for row, chance in found}
    apart = bars(chances, SURE)
    top = min(shown, key=lambda row: row.loss, default=None)
    difference = max(apart[top.P, row.P] for row in shown) / top.loss if top else 0.0
    good = accuracy(curves, shown, overlap, difference)
    worth = worth_flags(nothing, order)
    gain, doubt = nothing.mean, nothing.error
    if top is not None:  # the pilot's gain, and what the row has less than the pilot
        gain += curves[-1].loss - top.loss
        doubt = float(np.hypot(doubt, (chances[top.P] - curves[-1].chance_at(n)).width(SURE)))
    hopeless = top is None or gain <= doubt or any(one.code != "order-unclear" for one in worth)
    flags = [*worth, *data.flags, *_pilot_flags(pilot, curves, shown, good, constant)]
    if unfilled := tuple(P for P in compared if P not in splits):
        flags.append(flag("unfilled", lengths=unfilled, tokens=budget))
    return Forecast(
        asked=asked,
        rows=shown,
        null_loss=trainer.held_out.energy / 2,
        accuracy=good,
        best=Best(P=None, kind=None, tied=tuple(row.P for row in shown)) if hopeless else best(shown, apart),
        apart={row.P: apart[top.P, row.P] for row in shown} if top else {},
        overlap=overlap,
        curves=curves,
        crossings=crossings(curves, top.P if top else None, budget, apart),
        needed=() if target is None else tuple(needed(one, target) for one in curves if one.forecast),
        target_loss=target,
        tokens=budget,
        n=n,
        groups=pilot.groups,
        tested=int(held.size),
        D=data.D,
        M=M,
        student=student,
        eval_length=eval_length,
        steps=steps,
        gamma=gamma,
        test_se=min(curves, key=lambda curve: curve.loss).chance_at(n).tested,
        gain=gain,
        doubt=doubt,
        start=blocks.start,
        flags=tuple(flags),
    )


def _long_enough(
    data: Sequences, lengths: Sequence[int] | None, eval_length: int | None
) -> tuple[Sequences, int]:
    """The sequences that reach the lengths that are asked for, and the longest length."""
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
    return data, longest


def _given(test: Any, columns: Columns, groups: Any, how: Mapping[str, Any]) -> Sequences:
    """The test sequences; errors in them name the option of the test, not FILE."""
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


def _default_tokens(curves: Sequence[LearningCurve]) -> int:
    """Those of the pilot, if two lengths can be forecast there; else what half of it has at the shortest."""
    if sum(curve.forecast for curve in curves) > 1 or (len(curves) == 1 and curves[0].forecast):
        return curves[0].n * curves[-1].P
    return max(1, curves[0].n // 2) * curves[0].P


class _Trainer:
    """Students of the pilot and of its random subsets, tested on the held-out sequences."""

    def __init__(
        self,
        pilot: Pilot,
        blocks: Blocks,
        schedules: Mapping[int, Schedule],
        room: Mapping[int, float],
        eval_length: int,
        seed: int,
    ) -> None:
        self.pilot, self.blocks, self.schedules, self.seed = pilot, blocks, schedules, seed
        self.room = room
        self.eval_length, self.held_out = eval_length, held_out_moments(pilot, eval_length)
        wide = pilot.view.M > _WIDE
        self.kept = _WIDE_TESTED_HALVES if wide else _TESTED_HALVES
        # Of two subsets the second takes the blocks from the other end: two halves are complementary.
        self.orders: list[Index] = []
        for r in range((_WIDE_SUBSETS if wide else _SUBSETS) // 2):
            order = generator(seed, "forecast", "subset", r).permutation(len(blocks.rows))
            self.orders += [order, order[::-1]]

    def curves(self) -> tuple[LearningCurve, ...]:
        """From the student of the whole pilot and those of halves, quarters and eighths, at every length."""
        n, lengths = self.pilot.n, tuple(self.schedules)
        students = [Student.of(self.blocks.moments(P), P, self.schedules[P]) for P in lengths]
        losses, halves = self.losses([(P, N) for P in lengths for N in (n // 8, n // 4, n // 2) if N])
        by_group, count = losses_by_group(self.pilot, self.eval_length, [s.B for s in students] + halves)
        of_halves = by_group[len(lengths) :].reshape(len(lengths), -1, count.size).mean(axis=1)
        return tuple(
            LearningCurve(
                P=student.P,
                n=n,
                loss=self.held_out.loss(student.B),
                subsets={N: found for (P, N), found in losses.items() if P == student.P},
                learned=student.learned,
                schedule=student.schedule,
                largest=student.largest,
                room=self.room[student.P],
                test=by_group[k],
                halves=of_halves[k],
                count=count,
                blocks=len(self.blocks.rows),
            )
            for k, student in enumerate(students)
        )

    def extended(
        self, curves: Sequence[LearningCurve], splits: Mapping[int, int]
    ) -> tuple[LearningCurve, ...]:
        """With students of as many sequences as the splits have, where the pilot has twice as many."""
        wanted = {one.P: splits.get(one.P, 0) for one in curves}
        asked = [
            (one.P, wanted[one.P])
            for one in curves
            if 0 < wanted[one.P] <= one.n // 2 and wanted[one.P] not in one.subsets
        ]
        losses, _ = self.losses(asked)
        return tuple(
            replace(one, subsets={**one.subsets, **{N: x for (P, N), x in losses.items() if P == one.P}})
            for one in curves
        )

    def losses(self, asked: Sequence[tuple[int, int]]) -> tuple[dict[tuple[int, int], Array], list[Array]]:
        """The losses by (P, N), from the same blocks at every length; and some students of halves."""
        count = len(self.orders)

        def result(task: tuple[int, int, int]) -> tuple[float, Array | None]:
            P, N, r = task
            rng = generator(self.seed, "forecast", "part", N, r)
            seen = subset(self.pilot, self.blocks, P, N, self.orders[r], rng)
            B = train(seen.G, seen.C, self.schedules[P])
            return self.held_out.loss(B), B if N == self.pilot.n // 2 and r < self.kept else None

        tasks = [(P, N, r) for P, N in asked for r in range(count)]
        found, halves = [], []
        for loss, B in in_order(result, tasks, cores()):
            found.append(loss)
            halves += [] if B is None else [B]
            self.pilot.tick(2 * self.pilot.n / len(tasks))
        return dict(zip(asked, np.reshape(found, (len(asked), count)), strict=True)), halves


def _pilot_flags(
    pilot: Pilot,
    curves: Sequence[LearningCurve],
    rows: Sequence[Row],
    good: Accuracy | None,
    constant: int,
) -> Iterator[Flag]:
    """Where the pilot is too small for what is asked."""
    shown = {row.P for row in rows}
    missing = [curve for curve in curves if curve.P not in shown]
    thin = [curve for curve in missing if curve.tokens(curve.n) < LEAST_TOKENS]
    steep = [curve for curve in missing if curve not in thin and curve.steep]
    if steep:
        ratio = max(curve.steepness for curve in steep)
        yield flag("steep", lengths=tuple(curve.P for curve in steep), ratio=ratio)
    if thin:
        yield flag(
            "too-few-tokens",
            lengths=tuple(curve.P for curve in thin),
            tokens=min(curve.tokens(curve.n) for curve in thin),
            n=pilot.n,
            sequences=int(np.ceil(max(LEAST_TOKENS * curve.learned / curve.P for curve in thin))),
        )
    if pilot.data.grouped and pilot.groups < FEW_GROUPS:
        yield flag("few-groups", groups=pilot.groups, sequences=pilot.n)
    if constant:
        yield flag("constant", features=constant, of=pilot.data.D)
    if good is not None and max(1 - good.low, good.high - 1) > _OFF:
        yield flag("inaccurate", low=good.low, high=good.high)
