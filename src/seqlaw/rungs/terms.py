"""The answer on every rung: the five terms of the risk (Proposition 1)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

TERMS = ("irreducible", "approx", "bias", "variance", "cross")
SUMS = ("reducible", "total")

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


def merge_flags(flag_lists: Sequence[Iterable[str]], axis: str, values: Sequence[float]) -> list[str]:
    """The flags of many points, one line a kind: the first text, and at which values of the axis.

    Assumptions are of the same kind only if they are the same text; other flags carry the point's numbers.
    """
    first: dict[str, str] = {}
    places: dict[str, list[float]] = {}
    for value, flags in zip(values, flag_lists, strict=True):
        texts = {flag if flag.startswith("assumption") else flag.partition(":")[0]: flag for flag in flags}
        for kind, text in texts.items():
            first.setdefault(kind, text)
            places.setdefault(kind, []).append(value)
    return [text + _where(axis, places[kind], values) for kind, text in first.items()]


def _where(axis: str, places: Sequence[float], values: Sequence[float]) -> str:
    """Nothing where a flag is everywhere, else the values of the axis: a run of them by its ends.

    Several points may share a value, as the tests of a tradeoff do.
    """
    if len(places) == len(values):
        return ""
    every, runs = sorted(set(values)), list[list[float]]()
    for before, value in zip([None, *every], every, strict=False):
        if value in places:
            if before in places:
                runs[-1].append(value)
            else:
                runs.append([value])
    texts = [f"{run[0]:g}" + (f" to {run[-1]:g}" if len(run) > 1 else "") for run in runs]
    return f" (at {axis} = {', '.join(texts)}: {len(places)} of {len(values)} points)"


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
