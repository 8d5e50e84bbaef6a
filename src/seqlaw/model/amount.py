"""How counts are written for people."""

from __future__ import annotations

import math


def amount(value: float) -> str:
    """352,336 in full, whole; 1.25e12 where nobody reads the digits, 0.31 where less than one is meant."""
    if value == math.inf:
        return "inf"
    if 1 <= value < 1e9 or value == 0:
        return f"{value:,.0f}"
    digits, _, power = f"{value:.3g}".partition("e")
    return digits + (f"e{int(power)}" if power else "")
