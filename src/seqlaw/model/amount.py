"""The one way a number is written for people."""

from __future__ import annotations

from typing import Any

import numpy as np


def amount(value: Any, digits: int | None = None) -> str:
    """A count whole, what is none to `digits` digits: 352,336, 0.31234; 1.25e12 where nobody reads them."""
    numeric = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    if not numeric:
        return str(value)
    text = f"{value:,.{digits or 3}g}"
    if 1 <= value < 1e9 if digits is None else "e+" in text and abs(value) < 1e6:
        return f"{value:,.0f}"
    return text.replace("e+0", "e").replace("e+", "e")


def rounded(value: float) -> str:
    """A count in a sentence, to two or three digits: 47, 2,020, 1.1 million."""
    for unit, name in ((1e9, " billion"), (1e6, " million")):
        if unit * 0.9995 <= value < 1000 * unit * 0.9995:
            return f"{value / unit:.3g}{name}" if value >= 99.5 * unit else f"{value / unit:.2g}{name}"
    return amount(float(f"{value:.3g}"))


def duration(seconds: float) -> str:
    """About how long, in the unit that suits it."""
    for unit, length in (("days", 86400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{amount(round(seconds / length))} {unit}"
    return f"{amount(seconds, 2)} s"
