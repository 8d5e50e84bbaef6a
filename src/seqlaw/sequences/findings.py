"""Where the data leave the theory: everything that stands between the numbers and the theorem."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from seqlaw.sequences.exponents import LAWS, Fit
from seqlaw.sequences.powerlaw import LEAST_POINTS
from seqlaw.sequences.shortage import about, short
from seqlaw.sequences.spectra import Spectra
from seqlaw.sequences.tally import Tally
from seqlaw.sequences.verdict import (
    LEAST_ORDER,
    LEAST_R,
    NOISE_EDGE,
    TOKENS,
    UNIT_ROOT,
    Finding,
    ordered,
    shares,
    undecided,
)

WIDEST = {"alpha": 0.25, "theta": 0.25, "r": 0.12}
"""Half an interval wider than this is called uncertain."""
_LEAST_R2 = 0.9


def findings(
    tally: Tally,
    spectra: Spectra,
    fitted: Fit,
    numbers: Mapping[str, Any],
    regime: Any,
    dynamics: bool,
) -> tuple[Finding, ...]:
    """All flags; what voids a prediction comes first."""
    return (
        *short(tally, spectra, fitted, dynamics),
        *_dynamics(tally, spectra, fitted, dynamics),
        *_harmless(tally, spectra, dynamics),
        *_fits(fitted, numbers),
        *_assumptions(numbers, regime),
    )


def _dynamics(tally: Tally, spectra: Spectra, fitted: Fit, dynamics: bool) -> list[Finding]:
    out = []
    values, a = spectra.transition, spectra.alignment
    if not dynamics and tally.longest > 2:
        out.append(_no_dynamics(tally, spectra))
    if dynamics and values.values[0] >= UNIT_ROOT:
        out.append(
            Finding(
                code="unit-root",
                words=f"the largest transition is {values.values[0]:.4f}; the theory needs rho < 1",
                fails="unit root",
                void="the states drift like a random walk (unit root), so a transition below 1 would be "
                "made up",
                cure="the differences of neighbouring states, or states without their trend",
            )
        )
    if dynamics and (fitted.seen == "neither" or a.order < LEAST_ORDER):
        out.append(
            Finding(
                code="non-commuting",
                words="transition and covariance do not share directions "
                f"(asymmetry {a.asymmetry:.2g}, off-diagonal {a.off_diagonal:.2g}, order {a.order:.2f})",
                fails="transition and covariance do not commute",
            )
        )
    return out


def _no_dynamics(tally: Tally, spectra: Spectra) -> Finding:
    """No transition stands out: there is none (time has no order), or its noise hides it."""
    known = not math.isnan(spectra.order_z)
    signal = float(spectra.transition.raw[0]) / spectra.noise_edge
    stands = f"no positive transition stands out (largest transition {signal:.2f} of what noise gives"
    if known and not ordered(spectra):
        return Finding(
            code="no-dynamics",
            words=f"{stands}, time order {spectra.order_z:.1f} standard errors)",
            fails="no dynamics",
            void="no state says anything of the next one",
            cure="sequences in their order of time, whose states do depend on the last one",
        )
    words = f"the order of time matters ({spectra.order_z:.1f} standard errors), but {stands})"
    if not known:
        few = "one sequence" if tally.N == 1 else "so few sequences"
        words = f"{stands}), and whether the order of time matters cannot be known from {few}"
    return Finding(
        code="weak-dynamics",
        words=words,
        void="the transition does not stand out of its noise",
        cure="fewer features (the leading principal directions)",
        # Noise falls with the root of the number of transitions.
        sequences=about(tally.N * (NOISE_EDGE / signal) ** 2) if 0 < signal < NOISE_EDGE else None,
    )


def _harmless(tally: Tally, spectra: Spectra, dynamics: bool) -> list[Finding]:
    out = []
    if LEAST_POINTS <= spectra.rank < tally.D <= tally.n / TOKENS:
        words = f"only {spectra.rank} of D = {tally.D} directions vary (constant or repeated features)"
        out.append(Finding(code="rank", words=words))
    if 0.5 < spectra.shift < math.inf:
        words = (
            f"the first states sit {spectra.shift:.2g} of their variance away from the overall mean, which a "
            "zero-mean initial law does not have"
        )
        out.append(Finding(code="initial-mean", words=words))
    raw = spectra.transition.raw
    negative = int((raw <= 0).sum())
    if dynamics and negative:
        words = f"{negative} of {raw.size} transition eigenvalues are not positive and are cut"
        out.append(Finding(code="negative-transitions", words=words))
    return out


def _fits(fitted: Fit, numbers: Mapping[str, Any]) -> list[Finding]:
    out = []
    for name, law in fitted.laws.items():
        exponent = LAWS[name][0]
        estimate = numbers[exponent]
        if law.r2 < _LEAST_R2:
            words = f"r2 = {law.r2:.2f} for {exponent} on eigenvalues {law.window}"
            out.append(Finding(code="not-a-power-law", words=words, fails=f"no power law for {exponent}"))
        if estimate.low is not None and (estimate.high - estimate.low) / 2 > WIDEST[exponent]:
            words = f"{exponent} lies in [{estimate.low:.2f}, {estimate.high:.2f}]"
            out.append(Finding(code="uncertain", words=words))
    return out


def _assumptions(numbers: Mapping[str, Any], regime: Any) -> list[Finding]:
    out = []
    for exponent in ("alpha", "theta"):
        value = numbers[exponent].value
        if value is not None and value <= 1:
            words = f"needs {exponent} > 1, got {value:.3g}"
            out.append(Finding(code="assumption-2", words=words, fails=f"{exponent} <= 1"))
    r = numbers["r"].value
    if r is not None and not 0 < 2 * r < 1:
        words = f"needs 0 < 2r < 1, got r = {r:.3g}"
        out.append(Finding(code="assumption-1", words=words, fails="r <= 0" if r <= 0 else "2r >= 1"))
    elif r is not None and r < LEAST_R:
        words = f"needs r > 0, got r = {r:.2g}: all transitions are nearly the same"
        out.append(Finding(code="assumption-1", words=words, fails="r next to 0"))
    if undecided(regime):
        out.append(Finding(code="uncertain", words=f"regime undecided ({shares(regime)})"))
    elif regime.name == "outside":
        words = "needs theta >= alpha - 2r"
        out.append(Finding(code="assumption-2", words=words, fails="theta < alpha - 2r"))
    return out
