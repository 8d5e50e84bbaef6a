"""What the numbers are worth: checks with their figures, flags as records, the verdict in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from seqlaw.sequences.exponents import ASYMMETRY, Fit
from seqlaw.sequences.spectra import Spectra
from seqlaw.sequences.tally import Tally
from seqlaw.model.amount import amount

LEAST_PROBABILITY = 0.9
"""Of the regime."""
NOISE_EDGE = 1.5
"""By which the largest transition must pass what noise alone gives."""
LEAST_ORDER = 0.5
"""Rank correlation of variance and transition."""
UNIT_ROOT = 0.98
LEAST_R = 0.02
"""Below it the largest and the hundredth transition differ by less than 10 %."""
TOKENS = 4
"""Transitions that a feature needs."""
HARMLESS = ("negative-transitions", "rank", "initial-mean")
"""Codes that are worth saying and do not make the exponents unreliable."""
_ORDER_Z = 5.0  # standard errors by which the order of time must matter


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


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One flag, and what it does to the theorem and to a prediction."""

    code: str
    words: str
    fails: str | None = None
    """The assumption of the theorem that does not hold, in a few words."""
    void: str | None = None
    """Why nothing can be predicted."""
    cure: str | None = None
    """What would help, other than more sequences."""
    sequences: int | None = None
    """About how many sequences like these it takes; None where more of them do not help or nobody knows."""

    @property
    def flag(self) -> str:
        return f"{self.code}: {self.words}"


def has_dynamics(tally: Tally, spectra: Spectra) -> bool:
    """Whether the order of time matters and the transition stands out of its noise.

    Sequences of two states cannot tell a transition from an offset that a sequence shares.
    """
    largest = float(spectra.transition.raw[0])
    return bool(
        tally.longest > 2 and (tally.N == 1 or ordered(spectra)) and largest > NOISE_EDGE * spectra.noise_edge
    )


def ordered(spectra: Spectra) -> bool:
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
            holds=bool(spectra.transition.raw[0] > NOISE_EDGE * spectra.noise_edge),
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
            value=None if a.initial != a.initial else a.initial,
            holds=None,
            words="first states' squared correlation",
        ),
        Check(
            name="order",
            value=a.order,
            holds=a.order > LEAST_ORDER,
            words="rank correlation of variance and transition",
        ),
        Check(
            name="tokens",
            value=tally.n / tally.D,
            holds=tally.n >= TOKENS * tally.D,
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
            holds=largest < UNIT_ROOT,
            words=f"largest transition (below {UNIT_ROOT:g}: no unit root)",
        ),
        Check(
            name="decay",
            value=law.exponent,
            holds=LEAST_R <= law.exponent < 0.5,
            words=f"r, by which transitions fall ({LEAST_R:g} up to 0.5)",
        ),
    ]


def undecided(regime: Any) -> bool:
    """Whether the draws do not settle on one regime."""
    return regime.probability is not None and regime.probability < LEAST_PROBABILITY


def shares(regime: Any) -> str:
    """The regimes' probabilities in words."""
    return ", ".join(f"{name} {share:.2f}" for name, share in regime.probabilities.items())


def regime_words(regime: Any) -> str:
    """The regime and how sure it is; where the theorem's assumptions fail, none is claimed."""
    if regime.fails:
        like = {
            "I": "; theta >= alpha as in Regime I",
            "II": "; alpha - 2r <= theta < alpha as in Regime II",
        }
        seems = "" if undecided(regime) else like.get(regime.name, "")
        return f"No regime: the theorem's assumptions fail ({', '.join(regime.fails)}){seems}"
    if undecided(regime):
        return f"Regime undecided: {shares(regime)}"
    certainty = "" if regime.probability is None else f" (probability {regime.probability:.2f})"
    return f"Regime {regime.name}{certainty}"


def data_words(found: Any) -> str:
    """What was measured, and whether its numbers can be taken at face value."""
    states = " to ".join(map(amount, sorted(set(found.P))))
    verdict = "reliable" if found.reliable else "NOT reliable, see the flags"
    sequences = "1 sequence" if found.N == 1 else f"{amount(found.N)} sequences"
    return f"{sequences} of {states} states, {amount(found.D)} features: {verdict}"


def is_reliable(found: Sequence[Finding]) -> bool:
    """No flag but harmless ones."""
    return all(finding.code in HARMLESS for finding in found)


def refusal(found: Sequence[Finding], N: int) -> tuple[str, str] | None:
    """Why nothing can be predicted from N sequences, and what would help; None where no flag is so bad."""
    void = [finding for finding in found if finding.void]
    if not void:
        return None
    asked = max(finding.sequences or 0 for finding in void)
    there = f"there {'is' if N == 1 else 'are'} {amount(N)}"
    cures = [f"at least about {amount(asked)} sequences like these ({there})"] if asked else []
    cures += dict.fromkeys(finding.cure for finding in void if finding.cure)
    return "; ".join(finding.void or "" for finding in void), "; ".join(cures)
