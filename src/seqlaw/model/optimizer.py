"""The optimizers that people use in place of plain descent: Adam and Muon, as pure update rules.

From the slope ∇_t of the loss at B_{t-1} an optimizer makes a direction D_t whose size does not depend on the
size of the slope:
    B_t = B_{t-1} - η_t D_t,   η_t = step · γ_t/γ.
The schedule gives the shape of the steps, the optimizer their peak. No filter of the spectrum describes this
training, so only the sampled method and the trained one take it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqlaw.model.arrays import frobenius, root
from seqlaw.model.checks import Array, InputError, positive, real

State = tuple[Array, ...]
"""What an optimizer remembers, one array of the student's shape each."""

_QUINTIC = (3.4445, -4.7750, 2.0315)
"""Muon's polynomial (K. Jordan, 2024): small singular values grow 3.4-fold, others end in 0.7 … 1.2."""
_TURNS = 5
"""How often it is applied, as in Muon: singular values below 1/500 of the largest stay below 1."""


@dataclass(frozen=True, kw_only=True)
class Optimizer(ABC):
    """An update rule for students B of any shape … × M × M; slopes of many runs go side by side."""

    step: float | None = None
    """The peak step; None to tune it on the risk."""
    name: ClassVar[str]

    def __post_init__(self) -> None:
        if self.step is not None:
            self._set("step", positive(self._field("step"), self.step))

    @abstractmethod
    def start(self, B: Array) -> State:
        """The memory before the first step."""

    @abstractmethod
    def direction(self, slope: Array, state: State, t: int) -> tuple[Array, State]:
        """D_t and the memory after step t = 1 … L."""

    @abstractmethod
    def reach(self, B: Array) -> float:
        """The least sum of steps that leads from zero to B: the unit of the steps that are tried."""

    def _field(self, name: str) -> str:
        return f"{type(self).__name__}.{name}"

    def _set(self, name: str, value: float) -> None:
        object.__setattr__(self, name, value)

    def _share(self, name: str) -> None:
        """A weight of the past, in [0, 1)."""
        value = real(self._field(name), getattr(self, name))
        if not 0 <= value < 1:
            raise InputError(self._field(name), "must lie in [0, 1)", value)
        self._set(name, value)


@dataclass(frozen=True, kw_only=True)
class Adam(Optimizer):
    """m ← β₁m + (1-β₁)∇, v ← β₂v + (1-β₂)∇², D = m̂/(√v̂ + ε), with m̂ = m/(1-β₁ᵗ), v̂ = v/(1-β₂ᵗ).

    Entry by entry, without weight decay; an entry moves by about the step.

    >>> import seqlaw
    >>> seqlaw.Setting(teacher="regime2", M=8, N=64, P=4, d=32, schedule="wsd",
    ...                optimizer=seqlaw.Adam(step=0.01)).optimizer.step
    0.01
    """

    beta1: float = 0.9
    beta2: float = 0.99
    eps: float = 1e-8
    name: ClassVar[str] = "adam"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._share("beta1")
        self._share("beta2")
        self._set("eps", positive(self._field("eps"), self.eps))

    def start(self, B: Array) -> State:
        return B * 0.0, B * 0.0

    def direction(self, slope: Array, state: State, t: int) -> tuple[Array, State]:
        mean, square = state
        mean = self.beta1 * mean + (1 - self.beta1) * slope
        square = self.beta2 * square + (1 - self.beta2) * slope**2
        spread = root(square / (1 - self.beta2**t))
        return mean / (1 - self.beta1**t) / (spread + self.eps), (mean, square)

    def reach(self, B: Array) -> float:
        return float(np.abs(B).max())


@dataclass(frozen=True, kw_only=True)
class Muon(Optimizer):
    """m ← βm + (1-β)∇, D = the polar factor of (1-β)∇ + βm (Nesterov), nearly: `orthogonalised`.

    D has singular values near 1, so a step moves B by about `step` in the operator norm. Muon's factor
    √max(1, rows/columns) is 1 for a square student.

    >>> import seqlaw
    >>> seqlaw.Muon(beta=0.9).step is None  # tuned on the risk
    True
    """

    beta: float = 0.95
    name: ClassVar[str] = "muon"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._share("beta")

    def start(self, B: Array) -> State:
        return (B * 0.0,)

    def direction(self, slope: Array, state: State, t: int) -> tuple[Array, State]:
        (mean,) = state
        mean = self.beta * mean + (1 - self.beta) * slope
        return orthogonalised((1 - self.beta) * slope + self.beta * mean), (mean,)

    def reach(self, B: Array) -> float:
        return float(np.linalg.norm(B, 2))


def orthogonalised(X: Array) -> Array:
    """X with its singular values moved near 1, by five Newton–Schulz steps: X ← aX + (bXXᵀ + c(XXᵀ)²)X.

    From X/‖X‖_F, as Muon has it. Zero stays zero.
    """
    a, b, c = _QUINTIC
    X = X / frobenius(X)
    for _ in range(_TURNS):
        square = X @ X.swapaxes(-1, -2)
        X = a * X + (b * square + c * (square @ square)) @ X
    return X


OPTIMIZERS: dict[str, type[Optimizer]] = {kind.name: kind for kind in (Adam, Muon)}
"""Those with a name, beside `sgd`, which is plain descent."""


def plain_only(optimizer: Optimizer | None) -> InputError | None:
    """The refusal of a method that knows plain descent only; None for that."""
    if optimizer is None:
        return None
    rule = "must be sgd here, plain descent (the sampled method takes the others)"
    return InputError("optimizer", rule, optimizer.name)


def as_optimizer(field: str, value: object) -> Optimizer | None:
    """An optimizer as it is or by its name; None for plain descent, which is also called sgd."""
    if value is None or value == "sgd":
        return None
    if isinstance(value, Optimizer):
        return value
    if isinstance(value, str) and value in OPTIMIZERS:
        return OPTIMIZERS[value]()
    raise InputError(field, f"must be one of sgd, {', '.join(OPTIMIZERS)}, or an Optimizer", value)
