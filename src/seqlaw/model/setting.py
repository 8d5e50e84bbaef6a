"""One question: which teacher, which sizes, which schedule, tested where."""

from __future__ import annotations

import math
from dataclasses import dataclass

from seqlaw.model.checks import InputError, whole
from seqlaw.model.schedule import Schedule
from seqlaw.model.teacher import LONGEST, Modes, Teacher

LARGEST = 10**36
"""The largest N and finite d that are taken: beyond any use, and far from the end of floating point."""
WIDEST = 10**18
"""The largest M: as far as the sums over modes place their nodes."""


@dataclass(frozen=True, kw_only=True)
class Setting:
    """The student of width M, trained on N trajectories of length P, scored at length `eval_length`.

    `teacher` is a power law (with `d` modes; math.inf where a rung allows it) or measured `Modes`,
    which bring their own d. `eval_length` None means the training length P, as in the paper.
    """

    teacher: Teacher | Modes
    M: int
    N: int
    P: int
    schedule: Schedule
    d: float | None = None
    eval_length: int | None = None

    def __post_init__(self) -> None:
        for name, most in (("M", WIDEST), ("N", LARGEST), ("P", LONGEST)):
            object.__setattr__(self, name, whole(name, getattr(self, name), most=most))
        if isinstance(self.teacher, Modes):
            if self.d is not None and self.d != self.teacher.d:
                raise InputError("d", f"must be {self.teacher.d}, the number of modes given", self.d)
            object.__setattr__(self, "d", self.teacher.d)
        elif self.d is None:
            raise InputError("d", "must be given for a power-law teacher", None)
        elif self.d != math.inf:
            object.__setattr__(self, "d", whole("d", self.d, most=LARGEST))
        if self.d is not None and self.M > self.d:
            raise InputError("M", f"must be at most d = {self.d}", self.M)
        if self.eval_length is not None:
            object.__setattr__(self, "eval_length", whole("eval_length", self.eval_length, most=LONGEST))

    @property
    def test_length(self) -> int:
        """The length P' of the test sequences."""
        return self.P if self.eval_length is None else self.eval_length

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
            raise InputError("d", "must be finite on this rung (only `equivalent` takes inf)", self.d)
        return self.teacher.modes(int(self.d))
