"""What a method is: the risk of settings, their rows for the lab, how large they are, what it refuses.

A method of your own is a subclass, given by import path (`--method mymodule:Name`) or as an object.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from seqlaw.methods.terms import TERMS, Risk, Row, columns, with_sums
from seqlaw.model.checks import InputError, whole
from seqlaw.model.device import device_name
from seqlaw.model.network import linear_only
from seqlaw.model.optimizer import plain_only
from seqlaw.model.setting import Setting

Progress = Callable[[int, int], None]
"""What is told (done, total), in what the method counts."""
AXES = ("M", "N", "P", "R", "batch", "epochs", "position")
"""What a curve can run along: sizes, and the position of the test."""
SHORT = {"b": "batch"}
"""The paper's letter of a size, where the field has a word."""


def letters(axes: Sequence[str] = AXES) -> str:
    """Axes as a user writes them: M, N, P, R, b, epochs, position."""
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


class Method(ABC):
    """One way to the risk."""

    name: ClassVar[str]
    draws: ClassVar[tuple[str, ...]] = ()
    """Which of "sketches" and "repetitions" it draws; none where a number is certain."""
    counts: ClassVar[str] = "data sets"
    """What its progress counts."""
    varies: ClassVar[tuple[str, ...]] = AXES
    """The sizes that its curves can run along."""
    one_pass: ClassVar[bool] = False
    """Whether it is for settings with a batch."""
    mixtures: ClassVar[bool] = False
    """Whether it takes a mixture of lengths."""
    phases: ClassVar[bool] = False
    """Whether it is for settings whose lengths change in phases."""
    optimizers: ClassVar[bool] = False
    """Whether it takes optimizers other than plain descent."""
    networks: ClassVar[bool] = False
    """Whether it takes students other than the linear one."""
    lengths_on_card: ClassVar[bool] = False
    """Whether mixtures and phases of lengths run on a GPU, too."""
    library: ClassVar[tuple[str, str] | None] = None
    """A library that it needs, and the extra that has it."""
    infinite: ClassVar[bool] = False
    """Whether it takes d = inf."""
    population: ClassVar[bool] = False
    """Whether approximation and bias are averages over sketches that need no data."""
    expectation: ClassVar[str] = "equivalent"
    """The method that gives its expectation over the data, and with it the finite-filter guide."""

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

    def work(self, settings: Sequence[Setting], draws: Draws) -> float:
        """About how long the settings take, so that sweeps begin with the largest task.

        The unit is roughly a second: 10 ms a setting, and for each sketch d²M products at 10^9 a second.
        """
        products = sum(float(one.d or 0) ** 2 * one.M for one in settings) if self.draws else 0.0
        return 0.01 * len(settings) + draws.count("sketches") * 1e-9 * products

    def refuses(self, setting: Setting) -> InputError | None:
        """Why it cannot answer at a setting; None where it can."""
        if not self.optimizers and (refusal := plain_only(setting.optimizer)) is not None:
            return refusal
        if not self.networks and (refusal := linear_only(setting.network)) is not None:
            return refusal
        if setting.batch is not None and not self.one_pass:
            return InputError(
                "batch", "must be left out on this method, which knows the full batch only", setting.batch
            )
        if setting.lengths is not None and not (self.phases if setting.lengths.phases else self.mixtures):
            what, can = ("phases", "phases") if setting.lengths.phases else ("lengths", "mixtures")
            rule = f"must be left out on this method ({_that_take(can)} take them)"
            return InputError(what, rule, str(setting.lengths))
        if setting.d == math.inf and not self.infinite:
            return finite_only("d")
        return None


def finite_only(field: str) -> InputError:
    """The refusal of d = inf, with the methods that take it."""
    return InputError(field, f"must be finite on this method (for inf: {_that_take('infinite')})", math.inf)


def _that_take(what: str) -> str:
    """The methods with a capability, by name."""
    names = sorted({kind.name for kind in Method.__subclasses__() if getattr(kind, what)})
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
