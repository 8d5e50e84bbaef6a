"""The answer on every rung: the five terms of the risk (Proposition 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

TERMS = ("irreducible", "approx", "bias", "variance", "cross")


FEWEST_TOKENS = 8.0
"""Effective tokens per learned dimension below which the frozen filter is flagged.

Measured on 504 settings (both regimes and c_0 = 3; M = 16, 48; P = 1, 4, 32; NP/M from 1 to 128; L from
300 to 10^8; 72 data sets each): sampled bias + variance + cross over this rung's bias + variance was at
most 1.02 above 256, 1.15 above 16, 1.20 above 8, 1.38 above 4, 2.2 above 2, and up to 700 below.
"""


def frozen_filter_flags(tokens_per_dimension: float) -> list[str]:
    """The flag of the rungs that freeze the filter at G, where data are too few for that."""
    if tokens_per_dimension >= FEWEST_TOKENS:
        return []
    return [
        f"frozen-filter: {tokens_per_dimension:.3g} effective tokens per learned dimension, below "
        f"{FEWEST_TOKENS:g}: too few data for this rung, which may understate the risk by 20 % to many times"
    ]


def merge_flags(flag_lists: Sequence[Iterable[str]]) -> list[str]:
    """The flags of many points, one line a kind: the first text, and at how many points.

    Assumptions are of the same kind only if they are the same text; other flags carry the point's numbers.
    """
    first: dict[str, str] = {}
    points: dict[str, int] = {}
    for flags in flag_lists:
        texts = {flag if flag.startswith("assumption") else flag.partition(":")[0]: flag for flag in flags}
        for kind, text in texts.items():
            first.setdefault(kind, text)
            points[kind] = points.get(kind, 0) + 1
    total = len(flag_lists)
    return [
        text if points[kind] == total else f"{text} (at {points[kind]} of {total} points)"
        for kind, text in first.items()
    ]


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
