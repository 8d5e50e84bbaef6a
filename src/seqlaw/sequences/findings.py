"""Where the data leave the theory: each requirement that fails, as a flag with its numbers.

`sequences` among a flag's numbers is about how many sequences like these it takes; None where nobody knows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from seqlaw.model.checks import Array
from seqlaw.model.flags import ASSUMPTIONS, Flag, flag
from seqlaw.sequences.exponents import ASYMMETRY, LAWS, Estimate, Fit, Regime
from seqlaw.sequences.moments import Tally
from seqlaw.sequences.spectra import LEAST_POINTS, Spectra, samples_of_covariance, samples_of_transition

NOISE_EDGE = 1.5
"""The largest transition must exceed what noise alone gives by this factor."""
LEAST_ORDER = 0.5
"""Rank correlation of variance and transition."""
UNIT_ROOT = 0.98
LEAST_R = 0.02
"""Below it the largest and the hundredth transition differ by less than 10 %."""
TOKENS = 4
"""Transitions that a feature needs."""
LEAST_SEQUENCES = 8
WIDEST = {"alpha": 0.25, "theta": 0.25, "r": 0.12}
"""Half an interval wider than this is called uncertain."""
ORDER_Z = 5.0
"""Standard errors by which the order of time must matter."""
_LEAST_R2 = 0.9
_VARIES = 1e-12  # of the largest variance: less is rounding

HARMLESS = ("negative-transitions", "rank", "initial-mean", "clock", "labels", "gaps", "repeated-numbers")
"""Codes that are worth saying and do not make the exponents unreliable."""
VOID = (
    "too-few-sequences",
    "too-short",
    "too-little-data",
    "same-start",
    "no-dynamics",
    "weak-dynamics",
    "unit-root",
)
"""Codes that leave nothing to predict from."""
FAILS = ("same-start", "no-dynamics", "unit-root", "non-commuting", "not-a-power-law", *ASSUMPTIONS)
"""Codes of assumptions of the theorem that do not hold."""


def is_reliable(flags: Iterable[Flag]) -> bool:
    """No flag but harmless ones."""
    return all(each.code in HARMLESS for each in flags)


def void(flags: Iterable[Flag]) -> tuple[Flag, ...]:
    """The flags for which nothing can be predicted."""
    return tuple(each for each in flags if each.code in VOID)


def outside(flags: Iterable[Flag]) -> tuple[Flag, ...]:
    """The flags for which the theory does not cover the data, however many there are."""
    return tuple(each for each in flags if each.code not in (*HARMLESS, *VOID, "uncertain"))


def failing(flags: Iterable[Flag]) -> tuple[Flag, ...]:
    """The flags of assumptions of the theorem that do not hold."""
    return tuple(each for each in flags if each.code in FAILS)


def has_dynamics(tally: Tally, spectra: Spectra) -> bool:
    """Whether the order of time matters and the transition stands out of its noise.

    Sequences of two states cannot tell a transition from an offset that a sequence shares.
    """
    return tally.longest > 2 and (tally.N == 1 or _ordered(spectra)) and signal(spectra) > NOISE_EDGE


def signal(spectra: Spectra) -> float:
    """The largest transition over what noise alone gives."""
    return float(spectra.transition.raw[0]) / spectra.noise_edge


def _ordered(spectra: Spectra) -> bool:
    """Whether time has an order: more lag-one covariance than when shuffled, or a rotation."""
    rotates = spectra.alignment.asymmetry > ASYMMETRY and spectra.alignment.rotation_z > ORDER_Z
    return abs(spectra.order_z) > ORDER_Z or rotates


def findings(
    tally: Tally,
    spectra: Spectra,
    fitted: Fit,
    numbers: Mapping[str, Estimate],
    regime: Regime,
    dynamics: bool,
) -> tuple[Flag, ...]:
    """All flags; what voids a prediction comes first."""
    return (
        *_few(tally, spectra),
        *_thin(tally, spectra, fitted, dynamics),
        *_dynamics(tally, spectra, fitted, dynamics),
        *_harmless(tally, spectra, dynamics),
        *_fits(fitted, numbers),
        *_assumptions(numbers, regime),
    )


def _about(sequences: float) -> int:
    """Rounded up to what an estimate is good for: 8, 25, 150."""
    step = max(1, int(10 ** math.floor(math.log10(sequences))) // 2)
    return math.ceil(sequences / step) * step


def _few(tally: Tally, spectra: Spectra) -> Iterator[Flag]:
    """Too few or too short sequences, too few transitions."""
    if tally.N < LEAST_SEQUENCES:
        one = tally.N == 1
        enough = _about(samples_of_covariance(spectra.initial) + 1) if one else LEAST_SEQUENCES
        yield flag("too-few-sequences", N=tally.N, sequences=enough)
    if tally.longest < 3:
        yield flag("too-short", states=tally.longest)
    if tally.n < TOKENS * tally.D:
        enough = _about(TOKENS * tally.D * tally.N / tally.n)
        sizes = {"transitions": tally.n, "D": tally.D, "rank": spectra.rank}
        yield flag("too-little-data", of="transitions", **sizes, sequences=enough)


def _thin(tally: Tally, spectra: Spectra, fitted: Fit, dynamics: bool) -> Iterator[Flag]:
    """The spectra that have too few usable eigenvalues for a fit, each with its reason."""
    varying = _positive(spectra.covariance)
    if varying < min(LEAST_POINTS, tally.n) or tally.D < LEAST_POINTS:
        yield flag("too-little-data", of="directions", varying=varying, D=tally.D)
        return
    missing = [name for name in LAWS if name not in fitted.laws and (dynamics or name != "transition")]
    starts = _positive(spectra.initial.raw)
    if "initial" in missing and tally.N == 1:
        missing.remove("initial")  # said already
    elif "initial" in missing and starts < min(LEAST_POINTS, tally.N - 1):
        missing.remove("initial")
        yield flag("same-start", directions=starts)
    for name in missing:
        yield _thin_spectrum(tally, spectra, name)


def _positive(values: Array) -> int:
    return int(np.count_nonzero(values > _VARIES * values[0]))


def _thin_spectrum(tally: Tally, spectra: Spectra, name: str) -> Flag:
    """With the sequences that would do if the spectrum stayed as it is."""
    spectrum = spectra.named(name)
    needed: float | None
    if name == "initial":
        needed = samples_of_covariance(spectrum) + 1
    elif name == "innovation":
        needed = (samples_of_covariance(spectrum) + spectra.rank) * tally.N / tally.n
    else:
        samples = samples_of_transition(spectrum, tally.n)
        needed = None if samples is None else samples * tally.N / tally.n
    return flag(
        "too-little-data",
        of=name,
        exponent=LAWS[name][0],
        usable=spectrum.trusted,
        samples=tally.N if name == "initial" else tally.n,
        sequences=None if needed is None else max(_about(needed), tally.N + 1),
    )


def _dynamics(tally: Tally, spectra: Spectra, fitted: Fit, dynamics: bool) -> Iterator[Flag]:
    largest, a = spectra.largest_transition, spectra.alignment
    if not dynamics and tally.longest > 2:
        yield _no_dynamics(tally, spectra)
    if dynamics and largest >= UNIT_ROOT:
        yield flag("unit-root", largest=largest)
    if dynamics and (fitted.seen == "neither" or a.order < LEAST_ORDER):
        yield flag("non-commuting", asymmetry=a.asymmetry, off_diagonal=a.off_diagonal, order=a.order)


def _no_dynamics(tally: Tally, spectra: Spectra) -> Flag:
    """No transition stands out: there is none (time has no order), or its noise hides it."""
    seen, z = signal(spectra), None if math.isnan(spectra.order_z) else spectra.order_z
    if z is not None and not _ordered(spectra):
        return flag("no-dynamics", signal=seen, order_z=z)
    # Noise falls with the root of the number of transitions.
    enough = _about(tally.N * (NOISE_EDGE / seen) ** 2) if 0 < seen < NOISE_EDGE else None
    return flag("weak-dynamics", signal=seen, order_z=z, N=tally.N, sequences=enough)


def _harmless(tally: Tally, spectra: Spectra, dynamics: bool) -> Iterator[Flag]:
    if LEAST_POINTS <= spectra.rank < tally.D <= tally.n / TOKENS:
        yield flag("rank", rank=spectra.rank, D=tally.D)
    if 0.5 < spectra.shift < math.inf:
        yield flag("initial-mean", shift=spectra.shift)
    raw = spectra.transition.raw
    negative = int((raw <= 0).sum())
    if dynamics and negative:
        yield flag("negative-transitions", negative=negative, all=raw.size)


def _fits(fitted: Fit, numbers: Mapping[str, Estimate]) -> Iterator[Flag]:
    for name, law in fitted.laws.items():
        exponent = LAWS[name][0]
        low, high = numbers[exponent].low, numbers[exponent].high
        if law.r2 < _LEAST_R2:
            yield flag("not-a-power-law", exponent=exponent, r2=law.r2, window=law.window)
        if low is not None and high is not None and (high - low) / 2 > WIDEST[exponent]:
            yield flag("uncertain", of=exponent, low=low, high=high)


def _assumptions(numbers: Mapping[str, Estimate], regime: Regime) -> Iterator[Flag]:
    broken = []
    for exponent in ("alpha", "theta"):
        value = numbers[exponent].value
        if value is not None and value <= 1:
            broken.append(flag("assumption-2", of=exponent, got=value))
    r = numbers["r"].value
    if r is not None and (r < LEAST_R or 2 * r >= 1):
        broken.append(flag("assumption-1", of="r" if r <= 0 or 2 * r >= 1 else "decay", got=r))
    yield from broken
    if regime.undecided and not broken:  # where the theorem fails there is no regime to decide on
        yield flag("uncertain", of="regime", **regime.probabilities)
    elif regime.name == "outside" and not regime.undecided:
        yield flag("assumption-2", of="smoothing")
