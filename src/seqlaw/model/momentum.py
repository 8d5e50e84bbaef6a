"""Momentum at a constant step, from rest: heavy ball and Nesterov.

    heavy ball  B_t = B_{t-1} + β(B_{t-1} - B_{t-2}) - γ ∇(B_{t-1})
    Nesterov    the same with the gradient at B_{t-1} + β(B_{t-1} - B_{t-2})
The residual of an eigenvalue s solves ψ_{t+1} = 2h ψ_t - p ψ_{t-1}, ψ_0 = 1, ψ_1 = 1 - γs, with
2h = 1 + β - γs and p = β, or 2h = (1+β)(1-γs) and p = β(1-γs). Both have roots r± of r² - 2hr + p with
(1-r₊)(1-r₋) = γs, hence one closed form
    ψ_L = r₊^{L+1} + (1-r₊) r₊^L Σ_{k≤L} (r₋/r₊)^k.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expm1, log1p

from seqlaw.model.checks import InputError, real
from seqlaw.model.filters import MOST_STEPS, fewest, speaking_of, steps_to
from seqlaw.model.schedule import FURTHER, Constant

# L(1-β) from which contours of ψ² err by 1e-13 of F(0) (2e-8 at 50, 7e-5 at 30), of ψ by 3e-8 (1e-13 at 200).
_SMOOTH = 100
_LEAST = 1e-5  # L(1-β) below which g, right to 1e-15/(L(1-β)), would lose more than ten digits


@dataclass(frozen=True, kw_only=True)
class Momentum(Constant):
    """γ_t = γ with momentum β in [0, 1), heavy ball or Nesterov's; R = g(0), γL/(1-β) for many steps.

    >>> import seqlaw
    >>> round(seqlaw.Momentum(gamma=0.1, L=1000, beta=0.9).horizon)
    991
    """

    beta: float
    nesterov: bool = False
    name: ClassVar[str] = "momentum"
    memory: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        beta = real("Momentum.beta", self.beta)
        if not 0 <= beta < 1:
            raise InputError("Momentum.beta", "must lie in [0, 1)", beta)
        if self.L * (1 - beta) < _LEAST:
            raise InputError("Momentum.beta", f"must be at most 1 - {_LEAST:g}/L, L = {self.L}", beta)
        if not isinstance(self.nesterov, (bool, np.bool_)):
            raise InputError("Momentum.nesterov", "must be True or False", self.nesterov)
        object.__setattr__(self, "beta", beta)
        object.__setattr__(self, "nesterov", bool(self.nesterov))

    @property
    def total(self) -> float:
        """g(0) = γ Σ_t (1 - β^t)/(1-β), for both kinds."""
        return self.gamma * _distance(self.L, 1 - self.beta)

    @property
    def horizon(self) -> float:
        return self.total

    def is_smooth(self, steps: float) -> bool:
        """Besides L(1-β) ≥ 100: off the real axis |ψ| < 1 only up to a height of (1-β)/γ."""
        return self.L >= steps and self.L * (1 - self.beta) >= _SMOOTH * (1 - 1e-9)

    @classmethod
    def from_horizon(  # type: ignore[override]  # β has no default
        cls, R: float, gamma: float, *, beta: float, nesterov: bool = False
    ) -> Self:
        """The schedule with the fewest steps whose horizon reaches R."""
        return cls(gamma=gamma, L=MOST_STEPS, beta=beta, nesterov=nesterov).with_horizon(R)

    def with_horizon(self, R: float) -> Self:
        wanted = R / self.gamma * (1 - 1e-12)
        most = steps_to(R, self.gamma)  # what no momentum takes
        with speaking_of(R):
            return self.with_steps(fewest(lambda L: L >= most or _distance(L, 1 - self.beta) >= wanted, R))

    def log_psi(self, s: NDArray[Any]) -> NDArray[Any]:
        """log ψ(s), complex also for real s: ψ turns negative where r± are complex."""
        if self.beta == 0:
            return super().log_psi(s)
        x, beta, rest = self.gamma * s.astype(np.complex128), self.beta, 1 - self.beta
        product: Any
        # h² - p as a product and 1 - r₋ as a sum of like signs: near critical damping h² - p is nothing.
        if self.nesterov:
            half, product = (1 + beta) * (1 - x) / 2, beta * (1 - x)
            square = (1 - x) * (rest**2 - (1 + beta) ** 2 * x) / 4
            below = (rest + (1 + beta) * x) / 2  # 1 - h
        else:
            root = math.sqrt(beta)
            half, product = (1 + beta - x) / 2, beta
            square = ((rest / (1 + root)) ** 2 - x) * ((1 + root) ** 2 - x) / 4
            below = (rest + x) / 2
        apart = np.sqrt(square)
        apart = np.where((np.conj(half) * apart).real < 0, -apart, apart)  # |r₊| ≥ |r₋|
        upper = half + apart
        gap = x / (below + apart)  # 1 - r₊
        near = 2 * apart / upper  # 1 - r₋/r₊
        ratio = np.where(np.abs(near) < 0.5, log1p(-near), np.log(product / upper**2))
        flat = np.abs(ratio) < 1e-18 / self.L
        count = np.where(flat, self.L + 1, expm1((self.L + 1) * ratio) / expm1(np.where(flat, 1, ratio)))
        return np.asarray((self.L + 1) * log1p(-gap) + log1p(gap / (1 - gap) * count))


def _distance(L: int, rest: float) -> float:
    """Σ_{t≤L} (1 - β^t)/(1-β) = [L - β(1 - β^L)/(1-β)]/(1-β) for 1-β = rest.

    Where that cancels, Σ_k (β-1)^k binom(L+1, k+2), which begins with L(L+1)/2.
    """
    if rest == 1:
        return float(L)
    if L * rest > 1:
        return (L + (1 - rest) * math.expm1(L * math.log1p(-rest)) / rest) / rest
    term = total = L * (L + 1) / 2
    for k in range(1, min(L, 25)):  # terms fall faster than 2/(k+2)!
        term *= -rest * (L - k) / (k + 2)
        total += term
    return total


FURTHER[Momentum.name] = Momentum
