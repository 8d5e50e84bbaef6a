"""The finite-sample correction: what a finite number of data changes, added to the frozen filter.

The answer is the frozen filter's plus a correction of order 1/N: the law at N less the law at N = ∞ on the
same nodes, so that contours and sums err by a share of the correction, not of the risk. Beyond `SWITCH`
effective tokens a learned dimension the correction is its value there times the ratio of the tokens.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from seqlaw.methods import accuracy
from seqlaw.methods.accuracy import Accuracy
from seqlaw.methods.expected import Population, pick
from seqlaw.methods.finite_sample.given_sketch import StageLaw, expected_terms, lifted, sketch_nodes
from seqlaw.methods.finite_sample.over_sketches import FixedPoint, frozen_nodes, nodes_at, terms
from seqlaw.methods.finite_sample.positions import Complex, Positions, block_size, positions
from seqlaw.methods.finite_sample.two_point import Terms
from seqlaw.methods.paths import contour, is_long
from seqlaw.model.checks import Array
from seqlaw.model.lengths import Length, averaged, longest, mean_length, parts
from seqlaw.model.schedule import Schedule
from seqlaw.model.sketch import Problem
from seqlaw.model.teacher import Modes

SWITCH = 1e4
"""Effective tokens a learned dimension above which the difference from the frozen filter goes on as 1/N."""
LONGEST_BLOCK, SLOWEST = 64, 0.999
"""Positions of a dense block, and the largest |a| for which its bulk will do in longer trajectories."""
_STEPS = 100
"""Σγ/γ from which ψ is near enough to an exponential for a hyperbola of so few nodes."""
_AMPLE = 1e3
"""Effective tokens a learned dimension from which the change is 1e-3 of the excess or so."""
_LARGEST = 0.9
"""γ times the edge of Ĝ that an ellipse takes."""
_MOST = 1e4
"""Σγ times that edge, some 270 nodes: with momentum an ellipse may be asked for more."""
_BATCH = 2**22  # complex numbers at a time


@dataclass(frozen=True, kw_only=True)
class Question:
    """One answer wanted: the sizes, the schedule after its safeguard, and how much data that is."""

    M: float
    N: float
    P: Length
    eval_length: Length
    schedule: Schedule
    share: float
    """Independent tokens that a token counts for."""
    learned: float
    """Dimensions."""
    edge: float
    """Where the spectrum of Ĝ ends, or beyond."""
    chance: float = 0.0
    """The relative variance of ‖Ĝ‖."""
    boundary: float = 0.0
    """The relative error that a dense block too short for the memory leaves."""
    switch: float = SWITCH
    """Tokens a learned dimension beyond which the change goes on as 1/N; infinite where stages follow."""

    @property
    def all_tokens(self) -> float:
        """NP."""
        return self.N * mean_length(self.P)

    @property
    def tokens_per_dimension(self) -> float:
        """Effective tokens a learned dimension."""
        return self.share * self.all_tokens / max(self.learned, math.ulp(0.0))

    @property
    def beyond(self) -> float:
        """How many times the data at the switch there are; 1 below it."""
        return max(self.tokens_per_dimension / self.switch, 1.0)

    @property
    def tokens(self) -> float:
        """The tokens of N, or those of the switch, to twelve digits: all N beyond share one answer."""
        all_tokens = self.all_tokens
        return all_tokens if self.beyond == 1 else float(f"{all_tokens / self.beyond:.12g}")


@dataclass(frozen=True, kw_only=True, eq=False)
class _Solved:
    """The nodes of one question, with data and without end of them."""

    k: int
    question: Question
    place: Positions
    cells: Array
    z: Complex
    filters: tuple[Complex, Complex]
    base: FixedPoint
    nodes: FixedPoint


def level_of(asked: Question, *, quick: bool = False) -> Accuracy:
    """How closely to look: what many data change is so little that 1e-4 of it is enough."""
    return accuracy.quick if quick or asked.tokens_per_dimension >= _AMPLE else accuracy.fine


def boundary_error(modes: Modes, P: Length) -> float:
    """About what the excess errs by where the memory outlasts the dense block.

    Measured against P × P matrices, both presets with another ρ, P = 150 to 500, N = 1 to 20: at most 0.005 %
    at ρ = 0.97, 0.13 % at 0.99, 0.3 % at 0.995, 3.3 % at 0.999.
    """
    rho = float(np.abs(modes.a).max())
    return 0.0 if longest(P) <= LONGEST_BLOCK else 0.035 * ((1 - SLOWEST) / (1 - rho)) ** 1.4


def refuses(modes: Modes, asked: Question) -> str | None:
    """What keeps the law away: a memory too long for a dense block, or steps no ellipse takes."""
    if longest(asked.P) > LONGEST_BLOCK and float(np.abs(modes.a).max()) > SLOWEST:
        return "memory"
    if is_long(asked.schedule, _STEPS):
        return None
    if asked.schedule.gamma * asked.edge > _LARGEST or asked.schedule.total * asked.edge > _MOST:
        return "steps"
    return None


def changed(shift: Terms, asked: Question, bias: float, variance: float, leading: float) -> dict[str, float]:
    """bias, variance and cross from the frozen ones and the shift; `leading` is the law's frozen variance.

    Beyond the switch the correction of bias and cross falls as 1/N, that of the variance as 1/N².
    """
    seen = shift.loss - shift.bias - shift.cross
    variance += (seen - leading) / asked.beyond
    return {"bias": bias + shift.bias, "variance": variance, "cross": shift.cross}


def correction_over_sketches(
    questions: Sequence[Question], own: Population, modes: Modes, level: Accuracy = accuracy.fine
) -> list[Terms]:
    """What a finite number of data changes in each question's loss, bias and cross, over sketches.

    `own` has a row a question; M = inf stands for no sketch at all. At another test length, and for a student
    as wide as its teacher, only the loss is known.
    """

    def at(solved: Sequence[_Solved], endless: bool) -> Terms:
        [only] = solved
        asked, one = only.question, pick(own, [only.k])
        same = asked.eval_length == asked.P
        test = one.h[0] if same else averaged(modes, asked.eval_length)
        split = math.isinf(asked.M) or (same and bool(one.kappa[0] > 0))
        nodes, tokens = (only.base, math.inf) if endless else (only.nodes, asked.tokens)
        return terms(one, only.place, only.cells, nodes, only.filters, test, tokens, split=split)

    return _differences([[asked] for asked in questions], own, modes, level, at)


def correction_given_sketch(
    stages: Sequence[Sequence[Question]],
    own: Population,
    modes: Modes,
    problems: dict[Length, Problem],
    level: Accuracy = accuracy.fine,
) -> list[Terms]:
    """The same for one sketch, whose problems are by length, for training in stages, each a question.

    `own` has a row a question, one setting's after another's; the split is known at every test length.
    """
    S = next(iter(problems.values())).S
    lifts: dict[int, tuple[Positions, Array]] = {}  # with the positions, lest another's take their place

    def stage(solved: _Solved, endless: bool) -> StageLaw:
        asked, place, cells = solved.question, solved.place, solved.cells
        if id(place) not in lifts:
            lifts[id(place)] = place, lifted(S, place)
        F, tokens = lifts[id(place)][1], math.inf if endless else asked.tokens
        start = (solved.base if endless else solved.nodes).t
        return StageLaw(
            problem=problems[asked.P],
            F=F,
            place=place,
            cells=cells,
            nodes=sketch_nodes(F, place, cells, solved.z, tokens, start),
            filters=solved.filters,
            tokens=tokens,
        )

    def at(solved: Sequence[_Solved], endless: bool) -> Terms:
        return expected_terms(
            [stage(one, endless) for one in solved], problems[solved[0].question.eval_length]
        )

    return _differences(stages, own, modes, level, at)


def _differences(
    stages: Sequence[Sequence[Question]],
    own: Population,
    modes: Modes,
    level: Accuracy,
    at: Callable[[Sequence[_Solved], bool], Terms],
) -> list[Terms]:
    """`at` with data less `at` without end of them, each once."""

    def key(asked: Question) -> tuple[object, ...]:
        return asked.M, asked.P, asked.eval_length, asked.schedule

    flat = [asked for group in stages for asked in group]
    distinct = {(*key(asked), asked.tokens): k for k, asked in enumerate(flat)}
    solved = dict(zip(distinct, _solve(flat, list(distinct.values()), own, modes, level), strict=True))
    bases: dict[object, Terms] = {}
    found: dict[object, Terms] = {}
    answers = []
    for group in stages:
        names = tuple((*key(asked), asked.tokens) for asked in group)
        if names not in found:
            parts = [solved[name] for name in names]
            # An ellipse depends on the data too.
            endless = tuple((*key(one.question), one.z.tobytes()) for one in parts)
            if endless not in bases:
                bases[endless] = at(parts, True)
            found[names] = at(parts, False).minus(bases[endless])
        answers.append(found[names].over(min(asked.beyond for asked in group)))
    return answers


def _solve(
    questions: Sequence[Question], wanted: list[int], own: Population, modes: Modes, level: Accuracy
) -> list[_Solved]:
    """The fixed points of the wanted ones, together where positions and contours are of one shape."""
    found: dict[int, _Solved] = {}
    most_dense = min(block_size(modes, level.correction.tol), LONGEST_BLOCK)
    groups: dict[tuple[tuple[int, ...], bool], list[int]] = {}
    for k in sorted(wanted, key=lambda k: questions[k].tokens / questions[k].M):
        asked = questions[k]
        seen = tuple(
            sorted({min(P, most_dense + 1) for P, _ in parts(asked.P)})
        )  # longer ones share their cells
        groups.setdefault((seen, is_long(asked.schedule, _STEPS)), []).append(k)
    for (lengths, long), group in groups.items():
        place = positions(modes, lengths, level.correction.tol, LONGEST_BLOCK)
        most = max(questions[k].schedule.total * questions[k].edge for k in group)
        half, decay, _ = level.correction
        nodes = half if long else max(half, math.ceil(decay * math.sqrt(most / 12)))
        step = max(1, _BATCH // (nodes * place.f.shape[1] * place.here.shape[1]))
        for first in range(0, len(group), step):
            part = group[first : first + step]
            asked_now = [questions[k] for k in part]
            schedules = [asked.schedule for asked in asked_now]
            path = contour(
                schedules,
                np.array([asked.edge for asked in asked_now]),
                powers=1,
                half=half,
                decay=decay,
                steps=_STEPS,
            )
            z, psi = path.z, path.residuals(schedules)[:, 0]
            near = pick(own, part)
            cells = np.stack([place.weights(asked.P) for asked in asked_now])
            tokens = np.array([asked.tokens for asked in asked_now])
            share = np.array([asked.share for asked in asked_now])
            dense = share * tokens / np.minimum(near.M, own.weights.sum())
            base = frozen_nodes(near, place, cells, z)
            solved = nodes_at(near, place, cells, z, tokens, dense, base)
            for i, k in enumerate(part):
                response = path.omega[i] * psi[i] / -2j
                found[k] = _Solved(
                    k=k,
                    question=questions[k],
                    place=place,
                    cells=cells[i],
                    z=z[i],
                    filters=(response, response * z[i]),
                    base=base.of(i),
                    nodes=solved.of(i),
                )
    return [found[k] for k in wanted]
