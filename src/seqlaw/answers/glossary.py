"""Words and signs defined once: explorer, report, `--help` and docs/notation.md have them from here."""

from __future__ import annotations

import re

WORDS = {
    "method": (
        "a way to compute the risk: sampled (simulates training), exact (averages over data by a formula, "
        "for sketches that are drawn), equivalent (averages over data and sketches by a formula), trained "
        "(mini-batches with torch, networks too) or rates (the theorem)"
    ),
    "reducible": (
        "the part of the risk that a better student could avoid, approx + bias + variance + cross; the "
        "irreducible rest is the teacher's noise"
    ),
    "cross": (
        "the term of the risk that combines what is not yet learned (bias) with the noise of the data "
        "(variance); it may be negative, and is small where data are plentiful"
    ),
    "cross-rest": (
        "only the sum of bias, variance and cross is accurate: bias and variance are computed as if data "
        "were plentiful, and cross is the remainder"
    ),
    "frozen filter": (
        "an approximation: training as if the data's covariance of the features were its mean, G. It is "
        "right where data are plentiful, and gives too small a risk with about as many tokens as dimensions"
    ),
    "horizon": "R, how long training lasts: γL, or γ⌊L/ln L⌋ for block decay",
    "safeguard": (
        "a limit on the step size: γ is lowered where γ times the largest eigenvalue of the data's "
        "covariance would exceed ½; in one pass also to half of γ_max, beyond which training diverges"
    ),
    "saturated": (
        "trained so long that even the weakest features are learned; the bias then depends on the smallest "
        "eigenvalues, which differ from sketch to sketch"
    ),
    "one pass": (
        "training in which every step takes fresh sequences and none is used twice; in the paper every step "
        "takes all sequences"
    ),
    "preset": "a teacher with a name: regime1 and regime2 are the paper's",
    "sketch": "the random Gaussian map from the d latent directions to the student's M features",
    "guide": "the curve that the paper draws beside its measurements: a rate or a finite formula",
    "deterministic equivalent": "the risk averaged over sketches and data by a formula, nothing sampled",
    "learned dimension": "a direction that training has learned; one that is half learned counts as a half",
    "effective tokens": (
        "how many independent tokens the data are worth: N·P times the share of a token that its neighbours "
        "do not determine"
    ),
}
"""Word → what it means, after a colon."""

_GREEK = {
    **{"alpha": "α", "theta": "θ", "rho": "ρ", "gamma": "γ", "kappa": "κ"},
    **{"tau": "τ", "xi": "ξ", "beta": "β"},
}
SIGNS = {"<=": "≤", ">=": "≥", ">~": "≳", "<~": "≲", "||": "‖"} | _GREEK
"""Plain → sign; a word counts where it stands between letters that are none of it."""
_SIGN = re.compile("|".join(rf"(?<![A-Za-z]){k}(?![A-Za-z])" if k.isalpha() else re.escape(k) for k in SIGNS))


def signs(text: str) -> str:
    """`c_0 M^-alpha <= 1` as `c_0 M^-α ≤ 1`."""
    return _SIGN.sub(lambda found: SIGNS[found[0]], text)
