"""One question: which teacher, which sizes, which schedule, tested where."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from types import NoneType
from typing import Any, NamedTuple

from seqlaw.model.checks import InputError, whole, whole_or_infinite
from seqlaw.model.lengths import LARGEST, Counted, Length, Lengths, mean_length, one_or_many, parse
from seqlaw.model.schedule import Schedule, as_schedule
from seqlaw.model.teacher import LONGEST, Modes, Teacher, as_teacher

WIDEST = 10**18
"""The largest M: as far as the sums over modes place their nodes."""


_SAME: Any = object()
"""What is not given: as in the setting that is changed, if one is."""


@dataclass(frozen=True)
class FullBatch:
    """All N trajectories in every step."""

    N: int


@dataclass(frozen=True)
class MiniBatches:
    """`batch` trajectories a step, each used in so many epochs, shuffled anew; beyond one no law is known."""

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
    γ = 0.1 and L = 30000. `eval_length` None means the training length P, as in the paper.

    With a `batch` training is one pass: each step takes so many fresh trajectories, and N = batch·L. With
    `epochs` each of N = batch·⌈L/epochs⌉ is used so often, shuffled anew in each epoch. `safeguard` False,
    in one pass only, takes a step that is too large as it is given.

    P may be a mixture of lengths, whose N are whole numbers of each, or phases, each with data of its own
    (`Lengths`): `lengths` keeps them as they were given, P has the numbers of sequences too.
    """

    teacher: Teacher | Modes
    M: int
    P: Length
    schedule: Schedule
    training: FullBatch | MiniBatches
    d: float | None = None
    eval_length: int | None = None
    lengths: Lengths | None = None
    """A mixture or phases as given; None for one length."""

    # Written out since it takes more than it keeps: a name becomes what it names. `dataclasses.replace` hands
    # back `training`, which what is given beside it changes.
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
        batch: int | None = _SAME,
        epochs: int = _SAME,
        safeguard: bool = _SAME,
        lengths: Lengths | str | None = None,
        training: FullBatch | MiniBatches | None = None,
    ) -> None:
        teacher = as_teacher("Setting.teacher", teacher)
        M = whole("M", M, most=WIDEST)
        if training is None and lengths is not None and P is not None:
            raise InputError("lengths", "must be left out where P is given", str(lengths))
        # P as it was given; `dataclasses.replace` hands back the counted one, which is made anew.
        given = lengths if P is None or (isinstance(P, Counted) and lengths is not None) else P
        if given is None:
            raise InputError("P", "must be given", None)
        if isinstance(given, Counted):
            given = Lengths(given.lengths, given.shares, given.phases)
        P = one_or_many(parse(given) if isinstance(given, str) else given)
        lengths = P if isinstance(P, Lengths) else None
        schedule = as_schedule("Setting.schedule", schedule)
        training = _trained(training, N, batch, epochs, safeguard, schedule)
        if lengths is not None:
            if isinstance(training, FullBatch):
                P = lengths.counted(training.N)
            elif training.epochs > 1:
                raise InputError("epochs", "must be 1 with several lengths", training.epochs)
            else:
                P = lengths.batched(training.batch)
            if lengths.phases:
                lengths.steps(schedule.L)
                if schedule.memory:
                    raise InputError(
                        "momentum", "must be left out with phases", getattr(schedule, "beta", None)
                    )
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
        # Past the frozen __setattr__, once.
        vars(self).update(teacher=teacher, M=M, P=P, schedule=schedule, training=training)
        vars(self).update(d=d, eval_length=eval_length, lengths=lengths)

    def but(self, **changes: Any) -> Setting:
        """The setting with some of what its constructor takes changed: `setting.but(N=64)`."""
        if "lengths" in changes:
            changes["P"] = changes.pop("lengths")
        if isinstance(P := changes.get("P"), Counted):
            changes["P"] = Lengths(P.lengths, P.shares, P.phases)
        return replace(self, **changes)

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
    def test_length(self) -> Length:
        """The length P' of the test sequences: if not chosen, as in training, of phases as in the last."""
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
    if N is not None:
        raise InputError("N", "must be left out with a batch: it is batch · L", N)
    whole("epochs", epochs, most=schedule.L)
    whole("batch", batch, most=LARGEST // schedule.L)
    return MiniBatches(batch, epochs, safeguard)


def as_setting(field: str, value: object) -> Setting:
    """A setting as it is; else an error that says what one is."""
    if isinstance(value, Setting):
        return value
    raise InputError(field, "must be a Setting (a teacher, M, N, P, d and a schedule)", value)
