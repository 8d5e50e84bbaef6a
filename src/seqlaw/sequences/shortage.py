"""What the data have too little of: the requirement that fails, and about how many sequences would do."""

from __future__ import annotations

import math

import numpy as np

from seqlaw.sequences.exponents import LAWS, LEAST_GROUPS, Fit
from seqlaw.sequences.powerlaw import LEAST_POINTS, samples_of_covariance, samples_of_transition
from seqlaw.sequences.spectra import Spectra
from seqlaw.sequences.tally import Tally
from seqlaw.sequences.verdict import TOKENS, Finding
from seqlaw.model.amount import amount
from seqlaw.model.checks import Array

LEAST_SEQUENCES = 8
_VARIES = 1e-12  # of the largest variance: less is rounding


def short(tally: Tally, spectra: Spectra, fitted: Fit, dynamics: bool) -> list[Finding]:
    """Each requirement that is not met, with what would meet it."""
    return [*_few(tally, spectra), *_thin(tally, spectra, fitted, dynamics)]


def about(sequences: float) -> int:
    """Rounded up to what an estimate is good for: 8, 25, 150."""
    step = max(1, int(10 ** math.floor(math.log10(sequences))) // 2)
    return math.ceil(sequences / step) * step


def _few(tally: Tally, spectra: Spectra) -> list[Finding]:
    """Too few or too short sequences, too few transitions."""
    out = []
    if tally.N < LEAST_SEQUENCES:
        nothing = "one sequence gives no intervals, no initial spectrum and no test of the order of time"
        rough = f"intervals are rough below {LEAST_SEQUENCES} sequences"
        if tally.N < LEAST_GROUPS:
            rough = f"intervals need {LEAST_GROUPS} sequences, and are rough below {LEAST_SEQUENCES}"
        out.append(
            Finding(
                code="too-few-sequences",
                words=f"N = {tally.N}; {nothing if tally.N == 1 else rough}",
                void=nothing if tally.N == 1 else f"there are too few sequences for intervals ({tally.N})",
                sequences=about(samples_of_covariance(spectra.initial) + 1)
                if tally.N == 1
                else LEAST_SEQUENCES,
            )
        )
    if tally.longest < 3:
        out.append(
            Finding(
                code="too-short",
                words="sequences of 2 states cannot tell dynamics from what a sequence shares",
                void="the sequences are too short",
                cure="sequences of at least 3 states",
            )
        )
    if tally.n < TOKENS * tally.D:
        enough = about(TOKENS * tally.D * tally.N / tally.n)
        out.append(
            Finding(
                code="too-little-data",
                words=f"{amount(tally.n)} transitions for D = {amount(tally.D)} features, where {TOKENS} a "
                f"feature are needed (at least about {amount(enough)} sequences); only "
                f"{amount(spectra.rank)} principal directions are used",
                void=f"{amount(tally.n)} transitions are too few for {amount(tally.D)} features "
                f"({TOKENS} a feature are needed)",
                sequences=enough,
            )
        )
    return out


def _thin(tally: Tally, spectra: Spectra, fitted: Fit, dynamics: bool) -> list[Finding]:
    """The spectra that have too few usable eigenvalues for a fit, each with its reason."""
    varying = _positive(spectra.covariance)
    if varying < min(LEAST_POINTS, tally.n) or tally.D < LEAST_POINTS:
        return [
            Finding(
                code="too-little-data",
                words=f"only {varying} of D = {tally.D} directions vary, and a fit needs {LEAST_POINTS}",
                void=f"only {varying} of {tally.D} directions vary, and a fit needs {LEAST_POINTS}",
                cure=f"{LEAST_POINTS} features or more that vary by themselves",
            )
        ]
    out = []
    if "initial" not in fitted.laws and tally.N > 1:
        starts = _positive(spectra.initial.raw)
        if starts < min(LEAST_POINTS, tally.N - 1):
            words = f"the first states vary in only {starts} of {LEAST_POINTS} directions that theta needs"
            if starts == 0:
                words = "all sequences start from one state, so there is no initial spectrum"
            out.append(
                Finding(
                    code="same-start",
                    words=words,
                    fails="no initial spectrum",
                    void=words,
                    cure="sequences that start from different states (leave out the first state of each)",
                )
            )
    return out + [
        _thin_spectrum(tally, spectra, name)
        for name in LAWS
        if name not in fitted.laws
        and (dynamics or name != "transition")
        and not (name == "initial" and (tally.N == 1 or out))  # said already
    ]


def _positive(values: Array) -> int:
    return int(np.count_nonzero(values > _VARIES * values[0]))


def _thin_spectrum(tally: Tally, spectra: Spectra, name: str) -> Finding:
    spectrum, exponent = spectra.named(name), LAWS[name][0]
    needed: float | None
    if name == "initial":
        samples = f"{amount(tally.N)} sequences"
        needed = samples_of_covariance(spectrum) + 1
    else:
        samples = f"{amount(tally.n)} transitions"
        needed = (
            samples_of_covariance(spectrum) + spectra.rank
            if name == "innovation"
            else samples_of_transition(spectrum, tally.n)
        )
        needed = None if needed is None else needed * tally.N / tally.n
    sequences = None if needed is None else max(about(needed), tally.N + 1)
    enough = "too few to say how many would do"
    if sequences is not None:
        enough = f"and at least about {amount(sequences)} sequences would do"
    count = f"{spectrum.trusted} usable eigenvalue{'' if spectrum.trusted == 1 else 's'}"
    return Finding(
        code="too-little-data",
        words=f"the {name} spectrum has {count}, and {exponent} needs {LEAST_POINTS}; its samples are the "
        f"{samples}, {enough}",
        void=f"the {name} spectrum, whose samples are the {samples}, has {count}, and {exponent} needs "
        f"{LEAST_POINTS}",
        cure=None if sequences else "more sequences",
        sequences=sequences,
    )
