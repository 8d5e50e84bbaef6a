"""One question: which teacher, which sizes, which schedule, tested where."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, NamedTuple

from seqlaw.model.checks import InputError, whole, whole_or_infinite
from seqlaw.model.lengths import (
    LARGEST,
    Counted,
    Length,
    Lengths,
    Position,
    Test,
    mean_length,
    one_or_many,
    parse,
)
from seqlaw.model.network import Network, as_network
from seqlaw.model.optimizer import Optimizer, as_optimizer
from seqlaw.model.preconditioned import preconditioned, refused
from seqlaw.model.schedule import Schedule, as_schedule
from seqlaw.model.teacher import LONGEST, Modes, Teacher, as_teacher

WIDEST = 10**18
"""The largest M: as far as the sums over modes place their nodes."""


_SAME: Any = object()
"""Marks an argument that was not given: the setting that is changed keeps its value."""


@dataclass(frozen=True)
class FullBatch:
    """All N trajectories in every step."""

    N: int


@dataclass(frozen=True)
class MiniBatches:
    """`batch` trajectories a step, each used in so many epochs, shuffled anew in each."""

    batch: int
    epochs: int = 1
    safeguard: bool = True
    """Whether a step that is too large is cut down."""


class Stage(NamedTuple):
    """Steps on data of one kind."""

    P: Length
    sequences: int
    """In the data set; with mini-batches in a step."""
    steps: int


@dataclass(frozen=True, kw_only=True, init=False)
class Setting:
    """The student of width M, trained on N trajectories of length P, scored at length `eval_length`.

    `teacher` is a power law (with `d` modes; math.inf where a method allows it), the name of a preset, or
    measured `Modes`, which bring their own d. `schedule` is a Schedule or the name of one, which then has
    γ = 0.1 and L = 30000. `eval_length` None means the training length P, as in the paper. With `position` p
    the student is tested on the inputs x_p alone, p = 0, 1, …; the mean over p < P' is the loss at length P'.

    With a `batch` training is one pass: each step takes so many fresh trajectories, and N = batch·L. With
    `epochs` each of N = batch·⌈L/epochs⌉ is used so often, shuffled anew in each epoch. If N is given too the
    steps follow, L = epochs·N/batch whatever the schedule says, and N must be whole batches. `safeguard`
    False, with a batch only, takes a step that is too large as it is given.

    `precondition` p multiplies gradients by Ĝ^-p, and `weight_decay` λ adds λB to them: both become part of
    the schedule, whose γ is then in units of Ĝ^(1-p) + λ. With a batch it is the population's G.

    P may be a mixture of lengths, whose N are whole numbers of each, or phases, each with data of its own
    (`Lengths`): `lengths` has them as they were given, P has the numbers of sequences too.

    `optimizer` is "sgd" (plain descent, kept as None), "adam", "muon", or an Optimizer with its numbers. The
    schedule is then the shape of the steps, and their peak the optimizer's own `step`, tuned if not given.

    `network` is the student: "linear" (kept as None), "lru", "gru", "transformer", or a Network with sizes.

    >>> import seqlaw
    >>> setting = seqlaw.Setting(teacher="regime2", M=64, N=4096, P=32, d=512, schedule="wsd")
    >>> setting.regime, setting.but(P=8).test_length
    ('II', 8)
    """

    teacher: Teacher | Modes
    M: int
    P: Length
    schedule: Schedule
    training: FullBatch | MiniBatches
    d: float | None = None
    eval_length: int | None = None
    position: int | None = None
    optimizer: Optimizer | None = None
    """None for plain descent."""
    network: Network | None = None
    """None for the linear student."""

    # Written by hand: it takes arguments that the record does not store (batch, epochs and N become
    # `training`), and names of things. `dataclasses.replace` passes the stored `training` back in.
    def __init__(
        self,
        *,
        teacher: Teacher | Modes | str,
        M: int,
        N: int | None = None,
        P: Length | str | None = None,
        schedule: Schedule | str,
        d: float | None = None,
        eval_length: int | None = None,
        position: int | None = None,
        batch: int | None = _SAME,
        epochs: int = _SAME,
        safeguard: bool = _SAME,
        lengths: Lengths | str | None = None,
        training: FullBatch | MiniBatches | None = None,
        optimizer: Optimizer | str | None = None,
        network: Network | str | None = None,
        precondition: float = _SAME,
        weight_decay: float = _SAME,
    ) -> None:
        teacher = as_teacher("Setting.teacher", teacher)
        M = whole("M", M, most=WIDEST)
        if lengths is not None:
            if training is None and P is not None:
                raise InputError("lengths", "must be left out where P is given", str(lengths))
            P = lengths
        if P is None:
            raise InputError("P", "must be given", None)
        # `dataclasses.replace` hands back lengths that are counted; they are counted anew.
        P = one_or_many(parse(P) if isinstance(P, str) else P.given if isinstance(P, Counted) else P)
        schedule = as_schedule("Setting.schedule", schedule)
        schedule = preconditioned(
            schedule,
            schedule.precondition if precondition is _SAME else precondition,
            schedule.weight_decay if weight_decay is _SAME else weight_decay,
        )
        training = _trained(training, N, batch, epochs, safeguard, schedule)
        if N is not None and isinstance(training, MiniBatches):
            steps = training.epochs * _whole_batches(N, training.batch)
            schedule = schedule if schedule.L == steps else schedule.with_steps(steps)
        optimizer = as_optimizer("optimizer", optimizer)
        if optimizer is not None and schedule.memory:
            rule = f"must be left out with {optimizer.name}, which has its own"
            raise InputError("momentum", rule, getattr(schedule, "beta", None))
        if optimizer is not None and not schedule.entire:
            raise refused(schedule, f"must be left out with {optimizer.name}, which has its own")
        if optimizer is not None and isinstance(training, MiniBatches) and not training.safeguard:
            raise InputError("safeguard", f"must be left out with {optimizer.name}, which has none", False)
        if isinstance(P, Lengths):
            if P.phases:
                P.steps(schedule.L)
                if schedule.memory:
                    beta = getattr(schedule, "beta", None)
                    raise InputError("momentum", "must be left out with phases", beta)
                if not schedule.entire and isinstance(training, MiniBatches):
                    raise refused(schedule, "must be left out with phases of mini-batches")
            if isinstance(training, FullBatch):
                P = P.counted(training.N)
            elif training.epochs > 1:
                raise InputError("epochs", "must be 1 with several lengths", training.epochs)
            else:
                P = P.batched(training.batch)
        if isinstance(teacher, Modes):
            if d is not None and whole_or_infinite("d", d) != teacher.d:
                raise InputError("d", f"must be {teacher.d}, the number of modes given", d)
            d = teacher.d
        elif d is None:
            raise InputError("d", "must be given for a power-law teacher", None)
        else:
            d = whole_or_infinite("d", d, most=LARGEST)
        if M > d:
            raise InputError("M", f"must be at most d = {d}", M)
        if eval_length is not None:
            eval_length = whole("eval_length", eval_length, most=LONGEST)
        if position is not None:
            position = Position(position).p
            if eval_length is not None:
                raise InputError("position", "cannot be given together with eval_length", position)
        # Past the frozen __setattr__, once.
        vars(self).update(teacher=teacher, M=M, P=P, schedule=schedule, training=training)
        vars(self).update(d=d, eval_length=eval_length, position=position, optimizer=optimizer)
        vars(self).update(network=as_network("network", network))

    def but(self, **changes: Any) -> Setting:
        """The setting with some of what its constructor takes changed: `setting.but(N=64)`."""
        return replace(self, **changes)

    @property
    def lengths(self) -> Lengths | None:
        """A mixture or phases as given; None for one length."""
        return self.P.given if isinstance(self.P, Counted) else None

    @property
    def batch(self) -> int | None:
        """Fresh trajectories a step; None for all N in every step."""
        return self.training.batch if isinstance(self.training, MiniBatches) else None

    @property
    def epochs(self) -> int:
        """How often each sequence is used with mini-batches."""
        return self.training.epochs if isinstance(self.training, MiniBatches) else 1

    @property
    def safeguard(self) -> bool:
        """Whether a step that is too large is cut down."""
        return isinstance(self.training, FullBatch) or self.training.safeguard

    @property
    def N(self) -> int:
        """Trajectories that differ: with mini-batches batch·⌈L/epochs⌉."""
        if isinstance(self.training, FullBatch):
            return self.training.N
        return sum(one.sequences * -(-one.steps // self.epochs) for one in self.stages)

    @property
    def stages(self) -> tuple[Stage, ...]:
        """What is trained on, one after another: one stage, or one a phase."""
        P, L = self.P, self.schedule.L
        if isinstance(P, Counted) and P.phases:
            return tuple(map(Stage, P.lengths, P.counts, P.steps(L)))
        return (
            Stage(P, self.training.N if isinstance(self.training, FullBatch) else self.training.batch, L),
        )

    @property
    def test_length(self) -> Test:
        """The length P' of the test sequences, or a position of them.

        If neither was chosen the length is that of training, of phases that of the last.
        """
        if self.position is not None:
            return Position(self.position)
        if self.eval_length is not None:
            return self.eval_length
        return self.P.lengths[-1] if isinstance(self.P, Lengths) and self.P.phases else self.P

    @property
    def tokens(self) -> int:
        """N·P transitions that differ: in one pass batch·P·L."""
        if not isinstance(self.P, Counted):
            return self.N * self.one_length
        if isinstance(self.training, FullBatch):
            return self.P.tokens
        return sum(_tokens(one) * one.steps for one in self.stages)

    @property
    def step_tokens(self) -> int:
        """Tokens of a step in one pass; of phases in the last."""
        return _tokens(self.stages[-1]) if isinstance(self.training, MiniBatches) else 0

    @property
    def one_length(self) -> int:
        """P where it is one number; else an error."""
        if isinstance(self.P, Lengths):
            field = "phases" if self.P.phases else "lengths"
            raise InputError(field, "must be left out here, for one length", self.P.words)
        return self.P

    @property
    def regime(self) -> str:
        """The teacher's regime; "unknown" for measured modes."""
        return self.teacher.regime if isinstance(self.teacher, Teacher) else "unknown"

    @property
    def modes(self) -> Modes:
        """The teacher as d numbers a mode; needs a finite d."""
        if isinstance(self.teacher, Modes):
            return self.teacher
        if self.d is None or self.d == math.inf:
            raise InputError("d", "must be finite where modes are taken one by one", self.d)
        return self.teacher.modes(int(self.d))


def _tokens(stage: Stage) -> int:
    P = stage.P
    return P.tokens if isinstance(P, Counted) else stage.sequences * int(mean_length(P))


def _trained(
    known: FullBatch | MiniBatches | None,
    N: int | None,
    batch: int | None,
    epochs: int,
    safeguard: bool,
    schedule: Schedule,
) -> FullBatch | MiniBatches:
    """How to train: what is known, changed by what is given."""
    if not isinstance(known, (FullBatch, MiniBatches, NoneType)):
        raise InputError("training", "must be FullBatch or MiniBatches", known)
    old = known if isinstance(known, MiniBatches) and batch is not None else MiniBatches(0)
    batch = (old.batch or None) if batch is _SAME else batch
    epochs = old.epochs if epochs is _SAME else whole("epochs", epochs)
    safeguard = old.safeguard if safeguard is _SAME else safeguard
    if not isinstance(safeguard, bool):
        raise InputError("safeguard", "must be true or false", safeguard)
    if batch is None:
        N = known.N if N is None and isinstance(known, FullBatch) else N
        if N is None:
            raise InputError("N", "must be given without a batch", None)
        if epochs != 1:
            rule = "must be left out without a batch: the full batch is all of it"
            raise InputError("epochs", rule, epochs)
        if not safeguard:
            raise InputError("safeguard", "must stay for the full batch (give a batch to do without)", False)
        return FullBatch(whole("N", N, most=LARGEST))
    batch = whole("batch", batch, most=LARGEST)
    if schedule.memory:
        rule = "must be left out with a batch: there it is plain descent with gamma/(1 - momentum)"
        raise InputError("momentum", rule, getattr(schedule, "beta", None))
    L = schedule.L if N is None else epochs * _whole_batches(N, batch)
    whole("epochs", epochs, most=L)
    whole("batch", batch, most=LARGEST // L)
    return MiniBatches(batch, epochs, safeguard)


def _whole_batches(N: int, batch: int) -> int:
    """The steps of an epoch: of an incomplete batch there is no law."""
    N = whole("N", N, most=LARGEST)
    if N % batch:
        near = f"{N // batch * batch} or {(N // batch + 1) * batch}" if N > batch else f"{batch}"
        raise InputError("N", f"must be whole batches of {batch}, such as {near}", N)
    return N // batch


def as_setting(field: str, value: object) -> Setting:
    """A setting as it is; else an error that says what one is."""
    if isinstance(value, Setting):
        return value
    raise InputError(field, "must be a Setting (a teacher, M, N, P, d and a schedule)", value)
