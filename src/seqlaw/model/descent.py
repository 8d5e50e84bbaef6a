"""Safeguarded full-batch gradient descent, twice: the recursion and its closed spectral form.

B_t = B_{t-1} - γ̄_t (B_{t-1} Ĝ - Ĉ), B_0 = 0, or with momentum from rest (`model.momentum`), a preconditioner
or weight decay (`model.preconditioned`). Both take the moments of a data set or, with G and C in their place,
of the population.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh

from seqlaw.model import arrays
from seqlaw.model.arrays import is_host, on_host
from seqlaw.model.checks import Array, InputError, matrix, whole
from seqlaw.model.momentum import Momentum
from seqlaw.model.schedule import Schedule, as_schedule


@dataclass(frozen=True, kw_only=True, eq=False)
class Moments:
    """What full-batch training sees of a data set of NP transitions u → y."""

    G: Array
    """Ĝ = (NP)^-1 Σ u uᵀ, M×M."""
    C: Array
    """Ĉ = (NP)^-1 Σ y uᵀ, M×M."""
    energy: float
    """(NP)^-1 Σ ‖y‖², which only the value of the empirical loss needs."""

    def __post_init__(self) -> None:
        shape = np.shape(self.G)
        M = shape[0] if len(shape) == 2 else 0
        object.__setattr__(self, "G", matrix("Moments.G", self.G, (M, M)))
        object.__setattr__(self, "C", matrix("Moments.C", self.C, (M, M)))

    def loss(self, B: ArrayLike) -> float:
        """L̂_M(B) = (2NP)^-1 Σ ‖y - B u‖²."""
        B = matrix("B", B, self.G.shape)
        return float((self.energy - 2 * np.sum(B * self.C) + np.sum((B @ self.G) * B)) / 2)


def operator_norm(G: Array) -> float:
    """‖G‖ of a positive semidefinite matrix."""
    M = G.shape[0]
    return float(eigh(G, eigvals_only=True, subset_by_index=[M - 1, M - 1], check_finite=False)[0])


def descend(
    G: ArrayLike,
    C: ArrayLike,
    schedule: Schedule | str,
    *,
    safeguard: bool = True,
    checkpoints: Iterable[int] = (),
    callback: Callable[[int, Array], None] | None = None,
) -> tuple[Array, dict[int, Array]]:
    """Run the recursion; returns B_L and the iterates B_t at the asked checkpoints t = 0 … L.

    A schedule's name stands for γ = 0.1 and L = 30000.

    `callback(t, B_t)` is called after every step and must not change B_t. Without the safeguard
    the steps are taken as they are, however unstable.
    """
    G = np.asarray(G, dtype=np.float64)
    G = matrix("G", G, (G.shape[0], G.shape[0]) if G.ndim == 2 else (0, 0))
    C = matrix("C", C, G.shape)
    schedule = as_schedule("schedule", schedule)
    wanted = {whole("checkpoints", t, least=0, most=schedule.L) for t in checkpoints}
    if safeguard:
        schedule = schedule.safeguarded(operator_norm(G))
    plain, decay = schedule.plain, schedule.weight_decay
    beta, nesterov = (plain.beta, plain.nesterov) if isinstance(plain, Momentum) else (0.0, False)
    factor = Spectrum.of(G).power(-schedule.precondition) if schedule.precondition else None
    before = B = np.zeros_like(C)
    recorded = {0: B.copy()} if 0 in wanted else {}
    block = 2**16  # step sizes at a time: L may be long
    for start in range(1, schedule.L + 1, block):
        stop = min(start + block, schedule.L + 1)
        for t, step in enumerate(schedule.at(np.arange(start, stop)).tolist(), start):
            ahead = B + beta * (B - before) if beta else B
            here = ahead if nesterov else B
            slope = here @ G - C
            slope = slope if factor is None else slope @ factor
            before, B = B, ahead - step * (slope + decay * here if decay else slope)
            if t in wanted:
                recorded[t] = B.copy()
            if callback is not None:
                callback(t, B)
    return B, recorded


@dataclass(frozen=True, kw_only=True, eq=False)
class Spectrum:
    """An eigensystem G = U diag(μ) Uᵀ, ready for any number of schedules."""

    mu: Array
    U: Array

    @classmethod
    def of(cls, G: ArrayLike) -> Spectrum:
        """The eigensystem of a symmetric positive semidefinite matrix."""
        given: Any = np.asarray(G, dtype=np.float64) if is_host(G) else G
        shape = tuple(given.shape)
        if len(shape) != 2 or shape[0] != shape[1] or shape[0] == 0:
            raise InputError("G", "must be a square matrix", f"shape {shape}")
        mu, U = arrays.eigh(matrix("G", given, (shape[0], shape[0])))
        # Rounding leaves directions without data at 1e-16 of ‖G‖, and a negative power makes that large.
        nothing = shape[0] * np.finfo(np.float64).eps * float(mu[-1])
        return cls(mu=mu * (mu > nothing), U=U)

    def power(self, exponent: float) -> Array:
        """G^exponent, on the directions that have data."""
        live = self.mu > 0
        found: Array = (self.U[:, live] * self.mu[live] ** exponent) @ self.U[:, live].T
        return found

    def safeguard(self, schedule: Schedule) -> Schedule:
        """The schedule with γ̄ = min(γ, 1/(2‖G‖))."""
        return schedule.safeguarded(float(self.mu[-1]))

    def residual(self, B: Array, schedule: Schedule) -> Array:
        """B ψ(G) = B U ψ(μ) Uᵀ; without momentum B Π_t (I - γ_t G)."""
        left: Array = ((B @ self.U) * on_host(schedule.residual, self.mu)) @ self.U.T
        return left

    def response(self, E: Array, schedule: Schedule) -> Array:
        """E g(G) = E U g(μ) Uᵀ; with E = C this is the iterate B_L."""
        learned: Array = ((E @ self.U) * on_host(schedule.response, self.mu)) @ self.U.T
        return learned
