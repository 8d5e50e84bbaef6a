"""The answer on every rung: the five terms of the risk (Proposition 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

TERMS = ("irreducible", "approx", "bias", "variance", "cross")


@dataclass(frozen=True, kw_only=True)
class Risk:
    """irreducible + approx + bias + variance + cross, with what is known about their accuracy."""

    rung: str
    regime: str
    irreducible: float
    approx: float
    bias: float
    variance: float
    cross: float
    steps: int
    horizon: float
    eval_length: int
    standard_error: Mapping[str, float] = field(default_factory=dict)
    accuracy: Mapping[str, str] = field(default_factory=dict)
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    """What the rung measured besides the terms, e.g. the clipping rate."""
    flags: tuple[str, ...] = ()

    @property
    def reducible(self) -> float:
        """approx + bias + variance + cross."""
        return self.approx + self.bias + self.variance + self.cross

    @property
    def total(self) -> float:
        """irreducible + reducible = L_M(B_L)."""
        return self.irreducible + self.reducible
