"""How sure the law is of itself: measured against sampled data sets, not derived (docs/finite-sample.md)."""

from __future__ import annotations

import math

from seqlaw.methods.finite_sample.law import Question
from seqlaw.model.flags import Flag, flag

PEAK = 10
"""Tokens more or fewer than the student has dimensions that count as the interpolation peak."""


def data_error(asked: Question, saturation: float, clipped: float) -> float:
    """The relative error of the excess risk that the law over trajectories makes.

    Its shape: quadratic forms in few effective tokens and few learned dimensions scatter, and in saturated
    training real Gaussian least squares has M/(N-M-1) where the law has M/(N-M). With very few sequences the
    scatter of ‖Ĝ‖ counts, of which the law has about half, and more where the safeguard acts, on the share
    `clipped` of the data sets. Its numbers: fitted to 100 random settings, then widened by a quarter to cover
    nine in ten of what is seen; those of the chance chosen on 360 others, with N at most 9.
    """
    tokens = asked.all_tokens
    effective = asked.share * tokens
    scatter = 0.375 / math.sqrt(effective * max(asked.learned, 1.0))
    peak = 1.9 / (abs(tokens - asked.M) + 2) if saturation > 1 else 0.0
    few = (0.22 + 0.2 * clipped + 0.08 * asked.chance) * asked.chance
    return 0.005 + max(scatter, few) + peak + asked.boundary


def data_flags(M: float, tokens: float, saturation: float, error: float) -> list[Flag]:
    """The flag of the interpolation peak: saturated training on about as many tokens as dimensions.

    Tokens, not effective ones: the rank of Ĝ is min(NP, M) whatever the tokens have in common.
    """
    if saturation <= 1 or abs(tokens - M) >= PEAK:
        return []
    return [flag("interpolation-peak", tokens=tokens, M=M, error=error)]
