"""One question: which teacher, which sizes, which schedule, tested where."""

from __future__ import annotations

import math
from dataclasses import dataclass

from seqlaw.model.checks import InputError, whole, whole_or_infinite
from seqlaw.model.lengths import LARGEST, Counted, Length, Lengths, one_or_many, parse
from seqlaw.model.schedule import Schedule, as_schedule
from seqlaw.model.teacher import LONGEST, Modes, Teacher, as_teacher

WIDEST = 10**18
"""The largest M: as far as the sums over modes place their nodes."""


class _Derived(int):
    """An N that follows from batch and steps: `dataclasses.replace` hands it back, and it is made anew."""


@dataclass(frozen=True, kw_only=True, init=False)
class Setting:
    """The student of width M, trained on N trajectories of length P, scored at length `eval_length`.

    `teacher` is a power law (with `d` modes; math.inf where a rung allows it), the name of a preset, or
    measured `Modes`, which bring their own d. `schedule` is a Schedule or the name of one, which then has
    γ = 0.1 and L = 30000. `eval_length` None means the training length P, as in the paper.

    With a `batch` training is one pass: each step takes so many fresh trajectories, and N = batch·L. With
    `epochs` each of N = batch·⌈L/epochs⌉ is used so often, shuffled anew in each epoch.

    P may be a mixture of lengths, whose N are whole numbers of each, or phases, each with data of its own
    (`Lengths`): `lengths` keeps them as they were given, P has the numbers of sequences too.
    """

    teacher: Teacher | Modes
    M: int
    N: int
    P: Length
    schedule: Schedule
    d: float | None = None
    eval_length: int | None = None
    batch: int | None = None
    """Fresh trajectories a step; None for all N in every step."""
    epochs: int = 1
    """How often each sequence is used, shuffled anew each time: beyond one no law is known."""
    safeguard: bool = True
    """Whether a step that is too large is cut down; False, in one pass only, takes it as given."""
    lengths: Lengths | None = None
    """A mixture or phases as given; None for one length."""

    # Written out since it takes more than it keeps: a name becomes what it names.
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
        batch: int | None = None,
        epochs: int = 1,
        safeguard: bool = True,
        lengths: Lengths | str | None = None,
    ) -> None:
        teacher = as_teacher("Setting.teacher", teacher)
        M = whole("M", M, most=WIDEST)
        # P as it was given; `dataclasses.replace` hands back the counted one, which is made anew.
        given = lengths if P is None or isinstance(P, Counted) else P
        if given is None:
            raise InputError("P", "must be given", None)
        P = one_or_many(parse(given) if isinstance(given, str) else given)
        lengths = P if isinstance(P, Lengths) else None
        schedule = as_schedule("Setting.schedule", schedule)
        epochs = whole("epochs", epochs)
        if batch is not None:
            batch = whole("batch", batch, most=LARGEST)
            if schedule.memory:
                rule = "must be left out with a batch: there it is plain descent with gamma/(1 - momentum)"
                raise InputError("momentum", rule, getattr(schedule, "beta", None))
            if N is not None and not isinstance(N, _Derived):
                raise InputError("N", "must be left out with a batch: it is batch · L", N)
            epochs = whole("epochs", epochs, most=schedule.L)
            N = _Derived(whole("batch", batch, most=LARGEST // schedule.L) * -(-schedule.L // epochs))
            if lengths is not None:
                if epochs > 1:
                    raise InputError("epochs", "must be 1 with several lengths", epochs)
                P = lengths.batched(batch)
                if P.phases:
                    N = _Derived(sum(b * n for b, n in zip(P.counts, P.steps(schedule.L), strict=True)))
        elif N is None or isinstance(N, _Derived):
            raise InputError("N", "must be given without a batch", None)
        else:
            N = whole("N", N, most=LARGEST)
            if lengths is not None:
                P = lengths.counted(N)
        if lengths is not None and lengths.phases:
            lengths.steps(schedule.L)
            if schedule.memory:
                raise InputError("momentum", "must be left out with phases", getattr(schedule, "beta", None))
        if not isinstance(safeguard, bool):
            raise InputError("safeguard", "must be true or false", safeguard)
        if epochs != 1 and batch is None:
            raise InputError(
                "epochs", "must be left out without a batch: the full batch is all of it", epochs
            )
        if not safeguard and batch is None:
            raise InputError("safeguard", "must stay for the full batch (give a batch to do without)", False)
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
        vars(self).update(teacher=teacher, M=M, N=N, P=P, schedule=schedule, d=d, eval_length=eval_length)
        vars(self).update(batch=batch, epochs=epochs, safeguard=safeguard, lengths=lengths)

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
        if self.batch is None:
            return self.P.tokens
        if not self.P.phases:
            return self.P.tokens * self.schedule.L
        steps = self.P.steps(self.schedule.L)
        return sum(b * n * P for b, n, P in zip(self.P.counts, steps, self.P.lengths, strict=True))

    @property
    def step_tokens(self) -> int:
        """Tokens of a step in one pass; of phases in the last."""
        batch = self.batch or 0
        if not isinstance(self.P, Counted):
            return batch * self.one_length
        return self.P.counts[-1] * self.P.lengths[-1] if self.P.phases else self.P.tokens

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


def as_setting(field: str, value: object) -> Setting:
    """A setting as it is; else an error that says what one is."""
    if isinstance(value, Setting):
        return value
    raise InputError(field, "must be a Setting (a teacher, M, N, P, d and a schedule)", value)
