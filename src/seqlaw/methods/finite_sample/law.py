"""The finite-sample correction: the law at N sequences less the law at N = ∞, added to the frozen filter.

Both are computed on the same nodes, so numerical errors are relative to the correction (of order 1/N), not to
the risk. Above `SWITCH` effective tokens per learned dimension the correction is extrapolated as 1/N.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from seqlaw.methods import accuracy
from seqlaw.methods.accuracy import Accuracy, Ray
from seqlaw.methods.contours import Path, contour, is_long, loop, reaches
from seqlaw.methods.expected import Population, pick
from seqlaw.methods.finite_sample.given_sketch import StageLaw, expected_terms, lifted, sketch_nodes
from seqlaw.methods.finite_sample.over_sketches import FixedPoint, frozen_nodes, nodes_at, terms
from seqlaw.methods.finite_sample.positions import Complex, Positions, block_size, positions
from seqlaw.methods.finite_sample.two_point import Terms
from seqlaw.model.checks import Array
from seqlaw.model.filters import RAY_TOP, runs_of
from seqlaw.model.lengths import Length, Test, averages, longest, mean_length, parts
from seqlaw.model.pieces import Part, Pieces
from seqlaw.model.schedule import Schedule
from seqlaw.model.sketch import Problem
from seqlaw.model.teacher import Modes

SWITCH = 1e4
"""Effective tokens per learned dimension above which the correction is extrapolated as 1/N."""
LONGEST_BLOCK, SLOWEST = 64, 0.999
"""The most positions of a dense block, and the largest |a| for which longer trajectories are treated."""
_STEPS = 100
"""Σγ/γ from which ψ is close enough to an exponential for the few nodes of this hyperbola."""
_AMPLE = 1e3
"""Effective tokens per learned dimension from which the correction is about 1e-3 of the excess."""
_LARGEST, LARGEST_PRODUCT = 0.9, 2.0
"""The largest γ times the edge of Ĝ's spectrum for an ellipse; the second for a product of few steps, which
is known everywhere and grows on no part of the spectrum."""
_MOST = 1e4
"""The largest Σγ times that edge for an ellipse, about 270 nodes; momentum may need more."""
_DEEP, _LITTLE = 1e-3, 1e-4
"""How deep a loop goes: to _DEEP times the scale where ψ begins to fall or the spectrum begins, or to where 1
- ψ is _LITTLE. Compared with contours at p → 0 this leaves 1e-7 of the excess (1e-2 left 4e-4 at NP < M)."""
_BATCH = 2**17
"""Complex numbers in the largest array at a time: more leave the cache, and take twice as long."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """One stage of training whose correction is wanted; the schedule is that after its safeguard."""

    M: float
    N: float
    P: Length
    eval_length: Test
    schedule: Schedule
    share: float
    """Effective tokens per token, at most 1."""
    learned: float
    """Learned dimensions."""
    edge: float
    """An upper bound of the spectrum of Ĝ."""
    norm_variance: float = 0.0
    """The relative variance of ‖Ĝ‖."""
    boundary: float = 0.0
    """The relative error from a dense block that is shorter than the teacher's memory."""
    switch: float = SWITCH
    """See `SWITCH`; infinite for training in several stages."""
    largest: float = _LARGEST
    """The largest γ times the edge."""

    @property
    def all_tokens(self) -> float:
        """NP."""
        return self.N * mean_length(self.P)

    @property
    def tokens_per_dimension(self) -> float:
        """Effective tokens per learned dimension."""
        return self.share * self.all_tokens / max(self.learned, math.ulp(0.0))

    @property
    def times_switch(self) -> float:
        """Tokens over tokens at the switch, at least 1: the correction is divided by it."""
        return max(self.tokens_per_dimension / self.switch, 1.0)

    @property
    def tokens(self) -> float:
        """NP, at most that of the switch: rounded to twelve digits there, so that all larger N share it."""
        all_tokens = self.all_tokens
        return all_tokens if self.times_switch == 1 else float(f"{all_tokens / self.times_switch:.12g}")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Solved:
    """The fixed points of one question at the nodes of its path, with its data and with infinite data."""

    row: int
    """Of the population."""
    question: Question
    place: Positions
    cells: Array
    z: Complex
    filters: tuple[Complex, Complex]
    infinite: FixedPoint
    finite: FixedPoint


def accuracy_for(asked: Question, *, quick: bool = False) -> Accuracy:
    """The accuracy for this question: with many data the correction is small, and 1e-4 of it is enough."""
    return accuracy.quick if quick or asked.tokens_per_dimension >= _AMPLE else accuracy.fine


def without_safeguard(asked: Question) -> Question:
    """The question for mini-batches, which have no safeguard: their steps may exceed 1/(2‖Ĝ‖).

    A short schedule with larger steps than `_LARGEST` is replaced by the product over all its steps.
    """
    schedule = asked.schedule
    if not schedule.entire or is_long(schedule, _STEPS) or schedule.gamma * asked.edge <= _LARGEST:
        return asked
    product = Part(Pieces(*runs_of(schedule.steps())))
    return replace(asked, schedule=product, largest=LARGEST_PRODUCT)


def boundary_error(modes: Modes, P: Length) -> float:
    """The relative error of the excess if the teacher's memory is longer than the dense block.

    Measured against P × P matrices for both presets, with P = 150 to 500 and N = 1 to 20: at most 0.005 %
    at ρ = 0.97, 0.13 % at 0.99, 0.3 % at 0.995, 3.3 % at 0.999.
    """
    rho = float(np.abs(modes.a).max())
    return 0.0 if longest(P) <= LONGEST_BLOCK else 0.035 * ((1 - SLOWEST) / (1 - rho)) ** 1.4


def no_correction(modes: Modes, asked: Question) -> str | None:
    """Why this question has no correction: "memory" too long for a dense block, or "steps" without a path."""
    if longest(asked.P) > LONGEST_BLOCK and float(np.abs(modes.a).max()) > SLOWEST:
        return "memory"
    schedule = asked.schedule
    if is_long(schedule, _STEPS):
        return None
    few = schedule.entire or bool(schedule.plain.felt(RAY_TOP / schedule.gamma))
    if few and schedule.gamma * schedule.speed(asked.edge) > asked.largest:
        return "steps"
    if (schedule.entire and schedule.total * asked.edge > _MOST) or not reaches(schedule):
        return "steps"
    return None


def corrected(
    correction: Terms, asked: Question, bias: float, variance: float, leading: float
) -> dict[str, float]:
    """Bias, variance and cross of the frozen filter with the correction added.

    `leading` is the law's variance to leading order, which the frozen variance already has. Above the switch
    the correction of bias and cross falls as 1/N, that of the variance as 1/N².
    """
    law_variance = correction.loss - correction.bias - correction.cross
    variance += (law_variance - leading) / asked.times_switch
    return {"bias": bias + correction.bias, "variance": variance, "cross": correction.cross}


def correction_over_sketches(
    questions: Sequence[Question], own: Population, modes: Modes, level: Accuracy = accuracy.fine
) -> list[Terms]:
    """The correction of each question's loss, bias and cross, averaged over sketches.

    `own` has one row per question; M = inf means no sketch. At another test length, and for a student as
    wide as its teacher, only the loss is known.
    """

    def law_terms(stages: Sequence[Sequence[_Solved]], infinite: bool) -> list[Terms]:
        groups: dict[tuple[int, tuple[int, ...], bool], list[int]] = {}
        for k, [one] in enumerate(stages):
            asked = one.question
            same = asked.eval_length == asked.P
            split = math.isinf(asked.M) or (same and bool(own.kappa[one.row] > 0))
            groups.setdefault((id(one.place), one.z.shape, split), []).append(k)
        found: dict[int, Terms] = {}
        for (_, _, split), group in groups.items():
            solved = [stages[k][0] for k in group]
            place = solved[0].place
            # Products of f, h' and D at every node; several such arrays are in use at once.
            step = max(1, _BATCH // (8 * solved[0].z.size * (place.f.shape[1] + 1) * own.h.shape[1]))
            for first in range(0, len(group), step):
                part = solved[first : first + step]
                asked_now = [one.question for one in part]
                answers = terms(
                    pick(own, [one.row for one in part]),
                    place,
                    np.stack([one.cells for one in part]),
                    FixedPoint.stacked([one.infinite if infinite else one.finite for one in part]),
                    (np.stack([one.filters[0] for one in part]), np.stack([one.filters[1] for one in part])),
                    averages(modes, [asked.eval_length for asked in asked_now]),
                    None if infinite else np.array([asked.tokens for asked in asked_now]),
                    split=split,
                )
                found |= dict(zip(group[first : first + step], answers, strict=True))
        return [found[k] for k in range(len(stages))]

    return _corrections([[asked] for asked in questions], own, modes, level, law_terms)


def correction_given_sketch(
    stages: Sequence[Sequence[Question]],
    own: Population,
    modes: Modes,
    problems: dict[Test, Problem],
    level: Accuracy = accuracy.fine,
) -> list[Terms]:
    """The correction given one sketch, for training in stages, each of which is a question.

    `problems` are those of the sketch at each length. `own` has one row per question, in order of the stages.
    Bias and cross are known at every test length.
    """
    S = next(iter(problems.values())).S
    lifts: dict[int, tuple[Positions, Array]] = {}  # by id; the positions are held so that no id is reused

    def stage(solved: _Solved, infinite: bool) -> StageLaw:
        asked, place, cells = solved.question, solved.place, solved.cells
        if id(place) not in lifts:
            lifts[id(place)] = place, lifted(S, place)
        F, tokens = lifts[id(place)][1], math.inf if infinite else asked.tokens
        start = (solved.infinite if infinite else solved.finite).t
        return StageLaw(
            problem=problems[asked.P],
            F=F,
            place=place,
            cells=cells,
            nodes=sketch_nodes(F, place, cells, solved.z, tokens, start),
            filters=solved.filters,
            tokens=tokens,
        )

    def law_terms(groups: Sequence[Sequence[_Solved]], infinite: bool) -> list[Terms]:
        return [
            expected_terms([stage(one, infinite) for one in solved], problems[solved[0].question.eval_length])
            for solved in groups
        ]

    return _corrections(stages, own, modes, level, law_terms)


def _corrections(
    stages: Sequence[Sequence[Question]],
    own: Population,
    modes: Modes,
    level: Accuracy,
    law_terms: Callable[[Sequence[Sequence[_Solved]], bool], list[Terms]],
) -> list[Terms]:
    """`law_terms` with finite less with infinite data, for each list of stages, equal ones once.

    `law_terms` takes lists of solved stages, and whether the data are infinite.
    """

    def key(asked: Question) -> tuple[object, ...]:
        return asked.M, asked.P, asked.eval_length, asked.schedule

    flat = [asked for group in stages for asked in group]
    distinct = {(*key(asked), asked.tokens): k for k, asked in enumerate(flat)}
    solved = dict(zip(distinct, _solve(flat, list(distinct.values()), own, modes, level), strict=True))
    names = [tuple((*key(asked), asked.tokens) for asked in group) for group in stages]
    finite = {name: [solved[one] for one in name] for name in names}
    # The nodes are part of the key: those of an ellipse depend on N.
    shared = {
        name: tuple((*key(one.question), one.z.tobytes()) for one in parts) for name, parts in finite.items()
    }
    infinite = {shared[name]: parts for name, parts in finite.items()}
    at_infinity = dict(zip(infinite, law_terms(list(infinite.values()), True), strict=True))
    differences = {
        name: found.minus(at_infinity[shared[name]])
        for name, found in zip(finite, law_terms(list(finite.values()), False), strict=True)
    }
    return [
        differences[name].over(min(asked.times_switch for asked in group))
        for name, group in zip(names, stages, strict=True)
    ]


def _solve(
    questions: Sequence[Question], wanted: list[int], own: Population, modes: Modes, level: Accuracy
) -> list[_Solved]:
    """The fixed points of questions[k] for k in `wanted`; those of equal shape are solved together."""
    answers: dict[int, _Solved] = {}
    most_dense = min(block_size(modes, level.correction.tol), LONGEST_BLOCK)
    groups: dict[tuple[tuple[int, ...], bool, bool], list[int]] = {}
    for k in sorted(wanted, key=lambda k: questions[k].tokens / questions[k].M):
        asked = questions[k]
        # All lengths beyond the dense block share their cells.
        lengths = tuple(sorted({min(P, most_dense + 1) for P, _ in parts(asked.P)}))
        kind = (lengths, asked.schedule.entire, is_long(asked.schedule, _STEPS))
        groups.setdefault(kind, []).append(k)
    for (lengths, *_), group in groups.items():
        place = positions(modes, lengths, level.correction.tol, LONGEST_BLOCK)
        path = _path([questions[k] for k in group], pick(own, group), level)
        step = max(1, _BATCH // (path.solved * place.f.shape[1] * place.here.shape[1]))
        for first in range(0, len(group), step):
            part = group[first : first + step]
            asked_now, points = [questions[k] for k in part], pick(own, part)
            path = _path(asked_now, points, level)
            psi = path.residuals([asked.schedule for asked in asked_now])
            z, response, residual = path.operators(psi.reshape(len(part), 1, -1))
            cells = np.stack([place.weights(asked.P) for asked in asked_now])
            tokens = np.array([asked.tokens for asked in asked_now])
            share = np.array([asked.share for asked in asked_now])
            per_dimension = share * tokens / np.minimum(points.M, own.weights.sum())
            infinite = frozen_nodes(points, place, cells, z)
            finite = nodes_at(points, place, cells, z, tokens, per_dimension, infinite)
            for i, k in enumerate(part):
                answers[k] = _Solved(
                    row=k,
                    question=questions[k],
                    place=place,
                    cells=cells[i],
                    z=z[i],
                    filters=(response[i], residual[i]),
                    infinite=infinite.of(i),
                    finite=finite.of(i),
                )
    return [answers[k] for k in wanted]


def _path(questions: Sequence[Question], own: Population, level: Accuracy) -> Path:
    """One path per question, all of one kind: contours, or loops if a filter has a cut or a pole."""
    filters, edge = [one.schedule for one in questions], np.array([one.edge for one in questions])
    half, decay, _, step = level.correction
    if filters[0].entire:
        return contour(filters, edge, powers=1, half=half, decay=decay, steps=_STEPS)
    # Down to where 1 - ψ is small or the spectrum of G ends. That of Ĝ may end far below.
    powers = np.array([one.power for one in filters])
    onset = np.array([one.total for one in filters]) ** (-1 / powers)
    deepest = np.minimum(_DEEP * onset, np.maximum(_DEEP * own.lower_edge, _LITTLE ** (1 / powers) * onset))
    return loop(filters, edge, deepest, Ray(step, 0.0))
