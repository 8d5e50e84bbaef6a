"""What the numbers are worth: checks with their figures, and flags for what the theory does not cover."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from seqlaw.measuring.exponents import ASYMMETRY, LAWS, Fit
from seqlaw.measuring.spectra import Spectra
from seqlaw.measuring.tally import Tally
from seqlaw.model.amount import amount

WIDEST = {"alpha": 0.25, "theta": 0.25, "r": 0.12}
"""Half an interval wider than this is called uncertain."""
LEAST_PROBABILITY = 0.9
"""Of the regime."""
_ORDER_Z = 5.0  # standard errors by which the order of time must matter
_NOISE_EDGE = 1.5  # the largest transition over what noise alone gives
_LEAST_ORDER = 0.5  # rank correlation of variance and transition
_UNIT_ROOT = 0.98
_LEAST_R = 0.02  # below it the largest and the hundredth transition differ by less than 10 %
_LEAST_R2 = 0.9
HARMLESS = ("negative-transitions", "rank", "initial-mean")
"""Flags that are worth saying and do not make the exponents unreliable."""
VOID = {
    "too-few-sequences": ("there are too few sequences", "at least 8 sequences"),
    "too-short": ("the sequences are too short", "sequences of at least 3 states"),
    "too-little-data": (
        "there is too little data for all three spectra",
        "more sequences (4 transitions a feature at the least) and 6 features or more",
    ),
    "no-dynamics": (
        "no state says anything of the next one",
        "sequences in their order of time, whose states do depend on the last one",
    ),
    "weak-dynamics": (
        "the transition does not stand out of its noise",
        "more sequences, or fewer features (the leading principal directions)",
    ),
    "unit-root": (
        "the states drift like a random walk (unit root), so a transition below 1 would be made up",
        "the differences of neighbouring states, or states without their trend",
    ),
}
"""Flags that leave no spectra to predict from: why no advice is given, and what would help."""


LOOKS = {
    "direct": "the features look like the latent directions themselves",
    "projected": "the features look like a random projection of more latent directions",
    "unknown": "the data cannot tell whether the features are a projection",
    "neither": "the features look neither like latent directions nor like a projection of them",
}
"""`Fit.seen` in words."""


@dataclass(frozen=True, kw_only=True)
class Check:
    """One diagnostic: its figure, and whether it is as the theory needs it (None: nothing is needed)."""

    name: str
    value: float | None
    holds: bool | None
    words: str
    """Short enough for a table of 80 columns, with the name; docs/measure.md says more."""


def has_dynamics(tally: Tally, spectra: Spectra) -> bool:
    """Whether the order of time matters and the transition stands out of its noise.

    Sequences of two states cannot tell a transition from an offset that a sequence shares.
    """
    largest = float(spectra.transition.raw[0])
    return bool(
        tally.longest > 2
        and (tally.N == 1 or _ordered(spectra))
        and largest > _NOISE_EDGE * spectra.noise_edge
    )


def _ordered(spectra: Spectra) -> bool:
    """Whether time has an order: more lag-one covariance than when shuffled, or a rotation."""
    rotates = spectra.alignment.asymmetry > ASYMMETRY and spectra.alignment.rotation_z > _ORDER_Z
    return abs(spectra.order_z) > _ORDER_Z or rotates


def checks(tally: Tally, spectra: Spectra, fitted: Fit) -> tuple[Check, ...]:
    """The diagnostics behind the flags."""
    a, z = spectra.alignment, spectra.order_z
    return (
        Check(
            name="time-order",
            value=None if z != z else z,
            holds=None if z != z else abs(z) > _ORDER_Z,
            words="lag-one covariance above shuffled, in s.e.",
        ),
        Check(
            name="signal",
            value=float(spectra.transition.raw[0]) / spectra.noise_edge,
            holds=bool(spectra.transition.raw[0] > _NOISE_EDGE * spectra.noise_edge),
            words="largest transition over what noise alone gives",
        ),
        Check(
            name="explained",
            value=spectra.explained,
            holds=None,
            words="share of the next state's variance",
        ),
        Check(
            name="symmetry",
            value=a.asymmetry,
            holds=a.asymmetry <= ASYMMETRY,
            words="antisymmetric over symmetric part, squared",
        ),
        Check(
            name="commuting",
            value=a.off_diagonal,
            holds={"direct": True, "projected": None, "unknown": None, "neither": False}[fitted.seen],
            words="transition across directions, squared",
        ),
        Check(
            name="initial-alignment",
            value=a.initial,
            holds=None,
            words="first states' squared correlation",
        ),
        Check(
            name="order",
            value=a.order,
            holds=a.order > _LEAST_ORDER,
            words="rank correlation of variance and transition",
        ),
        Check(
            name="tokens",
            value=tally.n / tally.D,
            holds=tally.n >= 4 * tally.D,
            words="transitions a feature",
        ),
        *_dynamics_checks(spectra, fitted),
    )


def _dynamics_checks(spectra: Spectra, fitted: Fit) -> list[Check]:
    """What the theory needs of the transition, where there is one."""
    law, largest = fitted.laws.get("transition"), float(spectra.transition.values[0])
    if law is None:
        return []
    return [
        Check(
            name="stable",
            value=largest,
            holds=largest < _UNIT_ROOT,
            words=f"largest transition (below {_UNIT_ROOT:g}: no unit root)",
        ),
        Check(
            name="decay",
            value=law.exponent,
            holds=_LEAST_R <= law.exponent < 0.5,
            words=f"r, by which transitions fall ({_LEAST_R:g} up to 0.5)",
        ),
    ]


def flags(
    tally: Tally,
    spectra: Spectra,
    fitted: Fit,
    numbers: Mapping[str, Any],
    regime: Any,
    dynamics: bool,
) -> tuple[str, ...]:
    """Everything that stands between the numbers and the theorem."""
    return (
        *_data_flags(tally, spectra),
        *_dynamics_flags(tally, spectra, fitted, dynamics),
        *_fit_flags(fitted, numbers, regime, dynamics),
    )


def _data_flags(tally: Tally, spectra: Spectra) -> list[str]:
    out = []
    if tally.N < 8:
        out.append(f"too-few-sequences: N = {tally.N}; intervals and the initial spectrum need at least 8")
    if tally.longest < 3:
        out.append("too-short: sequences of 2 states cannot tell dynamics from what a sequence shares")
    if tally.n < 4 * tally.D:
        out.append(
            f"too-little-data: {amount(tally.n)} transitions for D = {amount(tally.D)} features; "
            f"only {amount(spectra.rank)} principal directions are used"
        )
    elif spectra.rank < tally.D:
        out.append(
            f"rank: only {spectra.rank} of D = {tally.D} directions vary (constant or repeated features)"
        )
    if spectra.shift > 0.5 and tally.N > 1:
        out.append(
            f"initial-mean: the first states sit {spectra.shift:.2g} of their variance away from the overall "
            "mean, which a zero-mean initial law does not have"
        )
    return out


def _dynamics_flags(tally: Tally, spectra: Spectra, fitted: Fit, dynamics: bool) -> list[str]:
    out = []
    values = spectra.transition
    if not dynamics and tally.longest > 2:
        name = "weak-dynamics: the order of time matters, but no" if _ordered(spectra) else "no-dynamics: no"
        out.append(
            f"{name} positive transition stands out (time order {spectra.order_z:.1f} standard errors, "
            f"largest transition {values.raw[0] / spectra.noise_edge:.2f} of what noise gives)"
        )
    if dynamics and values.values[0] >= _UNIT_ROOT:
        out.append(f"unit-root: the largest transition is {values.values[0]:.4f}; the theory needs rho < 1")
    negative = int((values.raw <= 0).sum())
    if dynamics and negative:
        out.append(
            f"negative-transitions: {negative} of {values.raw.size} transition eigenvalues are not positive "
            "and are cut"
        )
    a = spectra.alignment
    if dynamics and (fitted.seen == "neither" or a.order < _LEAST_ORDER):
        out.append(
            f"non-commuting: transition and covariance do not share directions (asymmetry {a.asymmetry:.2g}, "
            f"off-diagonal {a.off_diagonal:.2g}, order {a.order:.2f})"
        )
    return out


def _fit_flags(fitted: Fit, numbers: Mapping[str, Any], regime: Any, dynamics: bool) -> list[str]:
    out = []
    for name, (exponent, _) in LAWS.items():
        law = fitted.laws.get(name)
        if law is None:
            if dynamics or name != "transition":
                out.append(
                    f"too-little-data: the {name} spectrum has too few usable eigenvalues for {exponent}"
                )
            continue
        estimate = numbers[exponent]
        if law.r2 < _LEAST_R2:
            out.append(f"not-a-power-law: r2 = {law.r2:.2f} for {exponent} on eigenvalues {law.window}")
        if estimate.low is not None and (estimate.high - estimate.low) / 2 > WIDEST[exponent]:
            out.append(f"uncertain: {exponent} lies in [{estimate.low:.2f}, {estimate.high:.2f}]")
    for exponent in ("alpha", "theta"):
        value = numbers[exponent].value
        if value is not None and value <= 1:
            out.append(f"assumption-2: needs {exponent} > 1, got {value:.3g}")
    r = numbers["r"].value
    if r is not None and not 0 < 2 * r < 1:
        out.append(f"assumption-1: needs 0 < 2r < 1, got r = {r:.3g}")
    elif r is not None and r < _LEAST_R:
        out.append(f"assumption-1: needs r > 0, got r = {r:.2g}: all transitions are nearly the same")
    if undecided(regime):
        out.append(f"uncertain: regime undecided ({shares(regime)})")
    elif regime.name == "outside":
        out.append("assumption-2: needs theta >= alpha - 2r")
    return out


def undecided(regime: Any) -> bool:
    """Whether the draws do not settle on one regime."""
    return regime.probability is not None and regime.probability < LEAST_PROBABILITY


def shares(regime: Any) -> str:
    """The regimes' probabilities in words."""
    return ", ".join(f"{name} {share:.2f}" for name, share in regime.probabilities.items())


def regime_words(regime: Any) -> str:
    """The regime and how sure it is, after the word "Regime"."""
    if undecided(regime):
        return f"undecided: {shares(regime)}"
    certainty = "" if regime.probability is None else f" (probability {regime.probability:.2f})"
    return f"{regime.name}{certainty}"


def data_words(found: Any) -> str:
    """What was measured, and whether its numbers can be taken at face value."""
    states = " to ".join(map(amount, sorted(set(found.P))))
    verdict = "reliable" if found.reliable else "NOT reliable, see the flags"
    return f"{amount(found.N)} sequences of {states} states, {amount(found.D)} features: {verdict}"


def void_causes(warnings: tuple[str, ...]) -> list[str]:
    """The flags that leave nothing to predict from, in the order of `VOID`."""
    raised = {flag.split(":")[0] for flag in warnings}
    return [name for name in VOID if name in raised]


def is_reliable(warnings: tuple[str, ...]) -> bool:
    """No flag but harmless ones."""
    return all(flag.split(":")[0] in HARMLESS for flag in warnings)
