"""How the plain text of our words is typeset: one table for matplotlib, HTML and the explorer's page."""

from __future__ import annotations

import re

GREEK = {
    **{"alpha": "α", "theta": "θ", "rho": "ρ", "gamma": "γ", "kappa": "κ"},
    **{"tau": "τ", "xi": "ξ", "beta": "β"},
}
SIGNS = {"<=": "≤", ">=": "≥", ">~": "≳", "<~": "≲", "||": "‖"} | GREEK
"""Plain → sign; a word counts where it stands between letters that are none of it."""
_SIGN = re.compile("|".join(rf"(?<![A-Za-z]){k}(?![A-Za-z])" if k.isalpha() else re.escape(k) for k in SIGNS))


def signs(text: str) -> str:
    """`c_0 M^-alpha <= 1` as `c_0 M^-α ≤ 1`."""
    return _SIGN.sub(lambda found: SIGNS[found[0]], text)
