"""The house's words, said once: explorer, report, `--help` and docs/notation.md have them from here."""

WORDS = {
    "method": (
        "a way to answer one question: sampled (simulated training), exact (the mean over data, for sketches "
        "that are drawn), equivalent (the mean over both, by a formula) or rates (the theorem)"
    ),
    "reducible": (
        "the risk that a better student could save, approx + bias + variance + cross; the irreducible rest "
        "is the teacher's noise"
    ),
    "cross": (
        "the term of the risk where what is not yet learned (bias) meets what the noise of the data adds "
        "(variance); of either sign, and small where data abound"
    ),
    "cross-rest": (
        "cross is given as what the law at this amount of data has beyond the bias and the variance of the "
        "frozen filter; the sum is the law's, the three parts are not"
    ),
    "frozen filter": (
        "training as if the data's covariance of the features were G, its mean: right where data abound, too "
        "small a risk where tokens are about as few as dimensions"
    ),
    "horizon": "R, how long training lasts: γL, or γ⌊L/ln L⌋ for block decay",
    "safeguard": (
        "γ is lowered where the largest eigenvalue of the data's covariance would make γ‖G‖ exceed ½; in one "
        "pass also to half of γ_max, beyond which it diverges"
    ),
    "saturated": (
        "trained so long that even the weakest features are learned; the smallest eigenvalues, which differ "
        "from sketch to sketch, then rule the bias"
    ),
    "one pass": (
        "every step takes fresh sequences and none is seen twice; the paper takes all of them in every step"
    ),
    "preset": "a teacher with a name: regime1 and regime2 are the paper's",
    "sketch": "the random Gaussian map from the d latent directions to the student's M features",
    "guide": "the curve that the paper draws beside its measurements, a rate or a finite formula",
    "deterministic equivalent": "the risk averaged over sketches and data in closed form, nothing sampled",
    "learned dimension": "a direction that training has learned; one that is half learned counts as a half",
    "effective tokens": (
        "tokens as if all were independent: N·P times the share of a token that its neighbours do not tell "
        "already"
    ),
}
"""Word → what it means, after a colon."""
