"""The stated error of the finite-sample law: fitted to sampled data, not derived (docs/finite-sample.md)."""

from __future__ import annotations

import math

from seqlaw.methods.finite_sample.law import Question
from seqlaw.model.flags import Flag, flag

PEAK = 10
"""|NP - M| below which saturated training counts as at the interpolation peak."""


def data_error(asked: Question, saturation: float, clipped: float) -> float:
    """The relative error of the law's excess risk, the sum of four parts.

    Scatter: quadratic forms in few effective tokens and few learned dimensions vary. Peak: in saturated
    training real least squares has M/(N-M-1), the law M/(N-M). Few sequences: the law has about half of the
    effect of Var ‖Ĝ‖, and less where the safeguard acts, on the share `clipped` of the data sets. Boundary:
    `boundary_error`. The numbers were fitted to 100 random settings, then widened by a quarter to cover nine
    in ten; those of Var ‖Ĝ‖ were chosen on 360 others with N at most 9.
    """
    tokens = asked.all_tokens
    effective = asked.share * tokens
    scatter = 0.375 / math.sqrt(effective * max(asked.learned, 1.0))
    peak = 1.9 / (abs(tokens - asked.M) + 2) if saturation > 1 else 0.0
    few = (0.22 + 0.2 * clipped + 0.08 * asked.norm_variance) * asked.norm_variance
    return 0.005 + max(scatter, few) + peak + asked.boundary


def data_flags(M: float, tokens: float, saturation: float, error: float) -> list[Flag]:
    """The flag of the interpolation peak: saturated training on about as many tokens as dimensions.

    All tokens count, not effective ones: the rank of Ĝ is min(NP, M) also if tokens are correlated.
    """
    if saturation <= 1 or abs(tokens - M) >= PEAK:
        return []
    return [flag("interpolation-peak", tokens=tokens, M=M, error=error)]
