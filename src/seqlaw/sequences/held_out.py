"""Does it predict? Students trained on subsets of the sequences, against the risk of the measured modes.

All subsets have the same number of tokens N·P, split into fewer longer or more shorter sequences; every
student is tested at one length on sequences that neither the training nor the measurement has seen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError, real, whole
from seqlaw.model.descent import Spectrum
from seqlaw.model.flags import Flag
from seqlaw.model.randomness import generator
from seqlaw.model.schedule import WSD, Schedule
from seqlaw.model.sketch import Problem, sketched_problem
from seqlaw.model.teacher import Modes
from seqlaw.model.threads import one_thread
from seqlaw.rungs.exact import frozen_given
from seqlaw.rungs.expected import Population
from seqlaw.rungs.finite_sample.error import data_error, data_flags
from seqlaw.rungs.finite_sample.law import changed, over_sketches, refuses
from seqlaw.rungs.finite_sample.norm import rises
from seqlaw.rungs.score import score
from seqlaw.rungs.spectral_sum import Rule
from seqlaw.rungs.terms import frozen_filter_flags
from seqlaw.sequences.measure import Measurement, measured
from seqlaw.sequences.source import batches, open_source
from seqlaw.sequences.tally import tally

_LEAST_TRAINING = 16  # sequences
_LARGEST_STEP = 0.4  # γ‖G‖, so that the safeguard stays out of the comparison


@dataclass(frozen=True, kw_only=True)
class HeldOutRow:
    """One split of the tokens."""

    P: int
    N: int
    measured: float
    """Held-out loss ½ E‖y - B u‖², mean over subsets."""
    se: float
    """Standard error over the subsets; the test sequences are the same for every row (see `test_se`)."""
    predicted: float
    """The same from the measured modes, the student seeing all D features (no sketch)."""
    bias: float
    variance: float
    cross: float


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldOut:
    """Measured against predicted loss along P at equal tokens."""

    rows: tuple[HeldOutRow, ...]
    eval_length: int
    tokens: int
    """N·P of every row: what half the training sequences give at the shortest length."""
    available: int
    """Transitions of all training sequences."""
    schedule: Schedule
    null: float
    """Held-out loss of predicting nothing (B = 0)."""
    test_se: float
    """Standard error of a held-out loss over the test sequences, common to all rows."""
    measurement: Measurement
    """Of the training sequences alone."""
    repetitions: int
    share: float
    flags: tuple[Flag, ...]
    """Where the prediction itself is not to be trusted: at the interpolation peak, or the filter frozen."""

    @property
    def best(self) -> tuple[int, int]:
        """The length with the least loss: measured, predicted."""
        return (
            min(self.rows, key=lambda row: row.measured).P,
            min(self.rows, key=lambda row: row.predicted).P,
        )

    @property
    def M(self) -> int:
        """The student's width: it sees every feature."""
        return self.measurement.D

    @property
    def agreement(self) -> float:
        """Correlation of measured and predicted log losses along P."""
        measured, predicted = (
            np.log([getattr(row, name) for row in self.rows]) for name in ("measured", "predicted")
        )
        if np.ptp(measured) == 0 or np.ptp(predicted) == 0:
            return 0.0
        return float(np.corrcoef(measured, predicted)[0, 1])


def held_out(
    X: Any,
    lengths: Sequence[int] | None,
    eval_length: int | None,
    steps: int,
    repetitions: int,
    share: float,
    seed: int,
) -> HeldOut:
    """The record behind `seqlaw.held_out`, which says what the arguments are."""
    source = open_source(X)
    if not hasattr(source, "shape"):
        raise InputError("X", "must be an array N x P x D for the held-out check", type(source).__name__)
    if not 0 < real("share", share) < 1:
        raise InputError("share", "must lie in (0, 1)", share)
    total, states, _ = source.shape
    every = max(2, round(1 / share))
    test = list(range(every - 1, total, every))
    train = [i for i in range(total) if i % every != every - 1]
    if len(train) < _LEAST_TRAINING or not test:
        raise InputError(
            "X", f"must hold at least {2 * _LEAST_TRAINING} sequences for the held-out check", total
        )
    lengths = _lengths(lengths, states - 1)
    eval_length = whole("eval_length", states - 1 if eval_length is None else eval_length, most=states - 1)
    repetitions = whole("repetitions", repetitions, least=2)
    tokens = len(train) // 2 * lengths[0]
    with one_thread():
        measurement = measured(tally(batches(_Rows(source, train))), seed=seed)
        mean = measurement.mean
        schedule = WSD(
            gamma=_LARGEST_STEP / float(measurement.spectra.covariance[0]), L=whole("steps", steps)
        )
        students: list[Array] = []
        for repetition in range(repetitions):
            order = generator(seed, "held-out", repetition).permutation(len(train))
            for P in lengths:
                chosen = sorted(train[k] for k in order[: max(1, tokens // P)])
                students.append(_student(_read(source, chosen, P + 1, mean), schedule))
        losses, null = _losses(source, test, eval_length, mean, students)
        scores = losses.mean(axis=1).reshape(repetitions, len(lengths)).T
        predictions, flags = _predictions(measurement.modes, lengths, tokens, eval_length, schedule)
    return HeldOut(
        rows=tuple(
            HeldOutRow(
                P=P,
                N=max(1, tokens // P),
                measured=float(scores[k].mean()),
                se=float(scores[k].std(ddof=1) / np.sqrt(repetitions)),
                predicted=sum(predictions[k].values()),
                bias=predictions[k]["bias"],
                variance=predictions[k]["variance"],
                cross=predictions[k]["cross"],
            )
            for k, P in enumerate(lengths)
        ),
        eval_length=eval_length,
        tokens=tokens,
        available=len(train) * (states - 1),
        schedule=schedule,
        null=null,
        test_se=float(losses[0].std(ddof=1) / np.sqrt(len(test))) if len(test) > 1 else 0.0,
        measurement=measurement,
        repetitions=repetitions,
        share=share,
        flags=flags,
    )


def _lengths(lengths: Sequence[int] | None, longest: int) -> list[int]:
    if lengths is None:
        powers = [2**k for k in range(1, 20) if 2**k < longest]
        return [*powers, longest][-6:]
    chosen = sorted({whole("lengths", P, most=longest) for P in lengths})
    if not chosen:
        raise InputError("lengths", "must not be empty", list(lengths))
    return chosen


class _Rows:
    """Some trajectories of an array, read as if they were all of one; slices of rows only."""

    def __init__(self, source: Any, rows: list[int]) -> None:
        self.source, self.rows, self.dtype = source, rows, source.dtype
        self.shape = (len(rows), *source.shape[1:])

    def __getitem__(self, part: slice) -> Array:
        return np.stack([np.asarray(self.source[i]) for i in self.rows[part]])


def _read(source: Any, rows: Sequence[int], states: int, mean: Array) -> Array:
    return np.stack([np.asarray(source[i, :states], dtype=np.float64) for i in rows]) - mean


def _student(x: Array, schedule: Schedule) -> Array:
    """B_L of safeguarded gradient descent on the transitions of x (N × (P+1) × D)."""
    D = x.shape[2]
    u, y = x[:, :-1].reshape(-1, D), x[:, 1:].reshape(-1, D)
    spectrum = Spectrum.of(u.T @ u / len(u))
    return spectrum.response(y.T @ u / len(u), spectrum.safeguard(schedule))


def _losses(
    source: Any, rows: list[int], length: int, mean: Array, students: list[Array]
) -> tuple[Array, float]:
    """½‖y - B u‖² a transition for each student and test sequence, and of B = 0 on average."""
    losses = np.empty((len(students), len(rows)))
    null = 0.0
    for k, row in enumerate(rows):
        x = _read(source, [row], length + 1, mean)[0]
        null += float(np.sum(x[1:] ** 2)) / (2 * length)
        for s, B in enumerate(students):
            losses[s, k] = np.sum((x[1:] - x[:-1] @ B.T) ** 2) / (2 * length)
    return losses, null / len(rows)


def _predictions(
    modes: Modes, lengths: Sequence[int], tokens: int, eval_length: int, schedule: Schedule
) -> tuple[list[dict[str, float]], tuple[Flag, ...]]:
    """irreducible, bias, variance and cross at each length, with S = I (so approx is 0), and the flags."""
    variances = modes.averaged(1) + modes.averaged(eval_length)
    kept = variances > 1e-11 * variances.max()  # what is numerically zero has nothing to learn
    modes = Modes(a=modes.a[kept], sigma_xi=modes.sigma_xi[kept], sigma_0=modes.sigma_0[kept])
    rule = Rule(modes=modes, weights=np.ones(modes.d))
    test, rise = _problem(modes, eval_length), rises(rule, lengths)
    out: list[dict[str, float]] = []
    flags: list[Flag] = []
    for P in lengths:
        problem = _problem(modes, P)
        found = frozen_given(problem, test, max(1, tokens // P), schedule, score(problem), rise[P])
        # No sketch is the limit of an endlessly wide one.
        asked = replace(found.question, M=math.inf)
        terms = {"bias": found.bias, "variance": found.variance, "cross": 0.0}
        if refuses(modes, asked) is None:
            own = Population(
                a=modes.a, weights=rule.weights, h=problem.h[None], M=np.array([np.inf]), kappa=np.zeros(1)
            )
            [shift] = over_sketches([asked], own, modes)
            terms = changed(shift, asked, found.bias, found.variance, found.leading)
            saturation = asked.schedule.total * float(problem.eigenvalues[0])
            flags += data_flags(modes.d, asked.N * P, saturation, data_error(found.question, saturation))
        else:
            flags += frozen_filter_flags(asked.tokens_per_dimension)
        out.append({"irreducible": test.irreducible} | terms)
    return out, tuple({flag.code: flag for flag in flags}.values())


def _problem(modes: Modes, P: int) -> Problem:
    return sketched_problem(modes, np.eye(modes.d), P)
