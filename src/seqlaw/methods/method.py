"""What a method is: the risk of settings, their rows for the lab, what they cost, and what it cannot do.

A method of your own is a subclass, given by import path (`--method mymodule:Name`) or as an object.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from seqlaw.methods.rows import Row, columns, with_sums
from seqlaw.methods.terms import TERMS, Risk
from seqlaw.model.checks import InputError, whole
from seqlaw.model.device import Device, device_name, device_of
from seqlaw.model.setting import Setting

Progress = Callable[[int, int], None]
"""What is told (done, total) data sets."""
AXES = ("M", "N", "P", "R", "batch")
"""The sizes that a curve can run along."""
SHORT = {"b": "batch"}
"""The paper's letter of a size, where the field has a word."""


def letters(axes: Sequence[str] = AXES) -> str:
    """Sizes as a user writes them: M, N, P, R, b."""
    short = {word: letter for letter, word in SHORT.items()}
    return ", ".join(short.get(axis, axis) for axis in axes)


@dataclass(frozen=True, kw_only=True)
class Draws:
    """What the random methods draw, and on how many threads; counts, or the numbers of those wanted."""

    sketches: int | Sequence[int] = 4
    repetitions: int | Sequence[int] = 2
    seed: int = 0
    workers: int = 1
    device: str | None = None
    """`cuda` for a GPU; None for the CPU."""

    def __post_init__(self) -> None:
        for name in ("sketches", "repetitions"):
            given = getattr(self, name)
            if not isinstance(given, Sequence):
                object.__setattr__(self, name, whole(name, given, most=10**9))
            elif isinstance(given, (str, bytes)) or not given or len(set(given)) < len(given):
                raise InputError(name, "must be a count, or different numbers of those wanted", given)
        object.__setattr__(self, "seed", whole("seed", self.seed, least=0))
        object.__setattr__(self, "workers", whole("workers", self.workers))
        object.__setattr__(self, "device", device_name(self.device))

    def inputs(self) -> dict[str, Any]:
        """What a number depends on."""
        device = {} if self.device is None else {"device": self.device}
        return {"sketches": self.sketches, "repetitions": self.repetitions, "seed": self.seed} | device

    def count(self, name: str) -> int:
        """How many sketches or repetitions."""
        given = getattr(self, name)
        return len(given) if isinstance(given, Sequence) else given


def one_length_only(settings: Sequence[Setting], device: str | None) -> None:
    """Refuse a device for mixtures and phases of lengths, which are for the CPU."""
    if device_name(device) is not None and any(one.lengths is not None for one in settings):
        raise lengths_on_cpu(device)


def lengths_on_cpu(device: str | None) -> InputError:
    """The refusal of a device with several lengths."""
    return InputError("device", "must be cpu (or left out) for mixtures and phases of lengths", device)


def device_for(settings: Sequence[Setting], name: str | None) -> Device | None:
    """The device of a name, for settings of one length each."""
    one_length_only(settings, name)
    return device_of(name)


BLOCK = 3.2e7
"""Bytes of the arrays that every method works on."""


def sketch_memory(M: int, d: float, points: int) -> float:
    """Bytes of a sketch, its problems and the decompositions of so many points."""
    return BLOCK + 8.0 * (6 * M * d + (4 + 4 * points) * M**2)


@dataclass(frozen=True, kw_only=True)
class Cost:
    """About what a task takes: seconds on a core or card of its own, bytes of memory beside the process."""

    seconds: float
    memory: float


def card_cost(M: int, d: float, lengths: int, *, score: bool = True) -> Cost:
    """`Cost` of one sketch at so many lengths on a card (an H200): products, decompositions, the lag sums."""
    tiles = d**2 * (6.0 * M + 1400) if score else 0.0
    products = 2.0 * d * M**2 * (6 if score else 3) + 40.0 * M**3
    memory = BLOCK + 8.0 * (7 * M * d + 9 * M**2 + (30 * min(d**2, 2.0**25) if score else 0))
    return Cost(seconds=0.03 + lengths * (0.02 + (tiles + products) / 5e13), memory=memory)


class Method(ABC):
    """One way to the risk."""

    name: ClassVar[str]
    draws: ClassVar[tuple[str, ...]] = ()
    """Which of "sketches" and "repetitions" it draws; none where a number is certain."""
    varies: ClassVar[tuple[str, ...]] = AXES
    """The sizes that its curves can run along."""
    one_pass: ClassVar[bool] = False
    """Whether it is for settings with a batch."""
    mixtures: ClassVar[bool] = False
    """Whether it takes a mixture of lengths."""
    phases: ClassVar[bool] = False
    """Whether it is for settings whose lengths change in phases."""
    infinite: ClassVar[bool] = False
    """Whether it takes d = inf."""
    population: ClassVar[bool] = False
    """Whether approximation and bias are averages over sketches that need no data."""
    expectation: ClassVar[str] = "equivalent"
    """The method that has its expectation over the data: where the finite-filter guide comes from."""

    @abstractmethod
    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        """The risk of each setting; settings that can share work do."""

    def quick(self, settings: Sequence[Setting]) -> list[Risk]:
        """The same with coarser sums where the method has them, for a slider that is moving."""
        return self.risks(settings, Draws(sketches=1, repetitions=1))

    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        """One measurement a row, with the settings' numbers as `point`; by default one row a setting."""
        return [
            {"method": self.name, "point": point, "sketch": 0, **columns(setting)}
            | with_sums({name: getattr(risk, name) for name in TERMS})
            | {name: risk.diagnostics.get(name, 0.0) for name in ("finite_filter_variance", "clipped")}
            for point, (setting, risk) in enumerate(zip(settings, self.risks(settings, draws), strict=True))
        ]

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        """About what the settings cost together."""
        return Cost(seconds=0.01 + 0.001 * len(settings), memory=BLOCK)

    def refuses(self, setting: Setting) -> InputError | None:
        """Why it cannot answer at a setting; None where it can."""
        if setting.batch is not None and not self.one_pass:
            return InputError(
                "batch", "must be left out on this method, which knows the full batch only", setting.batch
            )
        if setting.lengths is not None and not (self.phases if setting.lengths.phases else self.mixtures):
            what = "phases" if setting.lengths.phases else "lengths"
            takes = (
                "exact and sampled take" if setting.lengths.phases else "sampled, exact and equivalent take"
            )
            rule = f"must be left out on this method ({takes} them)"
            return InputError(what, rule, str(setting.lengths))
        if setting.d == math.inf and not self.infinite:
            return finite_only("d")
        return None


def finite_only(field: str) -> InputError:
    """The refusal of d = inf, with the methods that take it."""
    takes = " and ".join({kind.name: None for kind in Method.__subclasses__() if kind.infinite})
    return InputError(field, f"must be finite on this method (for inf: {takes})", math.inf)
