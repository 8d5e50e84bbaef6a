"""What sequences are worth, in words: flags, checks, why nothing can be predicted, what would help."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from seqlaw.answers.words import Side, say
from seqlaw.model.amount import amount
from seqlaw.model.flags import Flag
from seqlaw.sequences.exponents import LEAST_GROUPS, Regime
from seqlaw.sequences.findings import LEAST_R, LEAST_SEQUENCES, TOKENS, UNIT_ROOT
from seqlaw.sequences.measure import Measurement
from seqlaw.sequences.spectra import LEAST_POINTS

LOOKS = {
    "direct": "the features look like the latent directions themselves",
    "projected": "the features look like a random projection of more latent directions",
    "unknown": "the data cannot tell whether the features are a projection",
    "neither": "the features look neither like latent directions nor like a projection of them",
}
"""`Measurement.seen` in words."""
CHECKS = {
    "time-order": "lag-one covariance above shuffled, in s.e.",
    "signal": "largest transition over what noise alone gives",
    "explained": "share of the next state's variance",
    "symmetry": "antisymmetric over symmetric part, squared",
    "commuting": "transition across directions, squared",
    "initial-alignment": "first states' squared correlation",
    "order": "rank correlation of variance and transition",
    "tokens": "transitions a feature",
    "stable": f"largest transition (below {UNIT_ROOT:g}: no unit root)",
    "decay": f"r, by which transitions fall ({LEAST_R:g} up to 0.5)",
}
"""Short enough for a table of 80 columns, with the name; docs/measure-theory.md says more."""
_ONE = "one sequence gives no intervals, no initial spectrum and no test of the order of time"


def data_words(found: Measurement) -> str:
    """What was measured, and whether its numbers can be taken at face value."""
    states = " to ".join(map(amount, sorted(set(found.P))))
    verdict = "reliable" if found.reliable else "NOT reliable, see the warnings"
    sequences = "1 sequence" if found.N == 1 else f"{amount(found.N)} sequences"
    return f"{sequences} of {states} states, {amount(found.D)} features: {verdict}"


def regime_words(regime: Regime) -> str:
    """The regime and how sure it is; where the theorem's assumptions fail, none is claimed."""
    if regime.fails:
        like = {"I": "; theta >= alpha as in Regime I", "II": "; alpha - 2r <= theta < alpha as in Regime II"}
        seems = "" if regime.undecided else like.get(regime.name, "")
        return (
            f"No regime: the theorem's assumptions fail ({', '.join(map(what_fails, regime.fails))}){seems}"
        )
    if regime.undecided:
        return f"Regime undecided: {_shares(regime.probabilities)}"
    certainty = "" if regime.probability is None else f" (probability {regime.probability:.2f})"
    return f"Regime {regime.name}{certainty}"


def what_fails(f: Flag) -> str:
    """The assumption of the theorem that does not hold, in a few words."""
    if f.code in _FAILS:
        return _FAILS[f.code]
    if f.code == "not-a-power-law":
        return f"no power law for {f['exponent']}"
    if f["of"] == "r":
        return "r <= 0" if f["got"] <= 0 else "2r >= 1"
    return {"decay": "r next to 0", "smoothing": "theta < alpha - 2r"}.get(f["of"], f"{f['of']} <= 1")


_FAILS = {
    "same-start": "no initial spectrum",
    "no-dynamics": "no dynamics",
    "unit-root": "unit root",
    "non-commuting": "transition and covariance do not commute",
}


def _shares(probabilities: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {share:.2f}" for name, share in probabilities.items())


def why_void(flags: Sequence[Flag]) -> str:
    """Why nothing can be predicted."""
    return "; ".join(_VOID[flag.code](flag) for flag in flags)


def what_would_help(flags: Sequence[Flag], N: int) -> str:
    """More sequences than N, and what else."""
    asked = max(_sequences(flag) or 0 for flag in flags)
    there = f"there {'is' if N == 1 else 'are'} {amount(N)}"
    cures = [f"at least about {amount(asked)} sequences like these ({there})"] if asked else []
    cures += dict.fromkeys(cure for cure in map(_cure, flags) if cure)
    return "; ".join(cures)


def _sequences(flag: Flag) -> int | None:
    found: int | None = dict(flag.numbers).get("sequences")
    return found


def _cure(flag: Flag) -> str | None:
    if flag.code != "too-little-data":
        return _CURES.get(flag.code)
    if flag["of"] == "directions":
        return f"{LEAST_POINTS} features or more that vary by themselves"
    return None if _sequences(flag) else "more sequences"


_CURES = {
    "too-short": "sequences of at least 3 states",
    "same-start": "sequences that start from different states (leave out the first state of each)",
    "no-dynamics": "sequences in their order of time, whose states do depend on the last one",
    "weak-dynamics": "fewer features (the leading principal directions)",
    "unit-root": "states without their slow direction or trend, such as differences of neighbours",
}
"""What would help, other than more sequences."""


def _few(f: Flag, side: Side) -> str:
    if f["N"] == 1:
        return f"N = 1; {_ONE}"
    if f["N"] < LEAST_GROUPS:
        return f"N = {f['N']}; intervals need {LEAST_GROUPS} sequences, and are rough below {LEAST_SEQUENCES}"
    return f"N = {f['N']}; intervals are rough below {LEAST_SEQUENCES} sequences"


def _little(f: Flag, side: Side) -> str:
    if f["of"] == "directions":
        return f"only {f['varying']} of D = {f['D']} directions vary, and a fit needs {LEAST_POINTS}"
    enough = "too few to say how many would do"
    if f["of"] == "transitions":
        return (
            f"{amount(f['transitions'])} transitions for D = {amount(f['D'])} features, where {TOKENS} a "
            f"feature are needed (at least about {amount(f['sequences'])} sequences); only "
            f"{amount(f['rank'])} principal directions are used"
        )
    if f["sequences"] is not None:
        enough = f"and at least about {amount(f['sequences'])} sequences would do"
    needs = f"{f['exponent']} needs {LEAST_POINTS}; its samples are the {_samples(f)}"
    return f"the {f['of']} spectrum has {_usable(f)}, and {needs}, {enough}"


def _little_void(f: Flag) -> str:
    if f["of"] == "directions":
        return f"only {f['varying']} of {f['D']} directions vary, and a fit needs {LEAST_POINTS}"
    if f["of"] == "transitions":
        return (
            f"{amount(f['transitions'])} transitions are too few for {amount(f['D'])} features "
            f"({TOKENS} a feature are needed)"
        )
    needs = f"and {f['exponent']} needs {LEAST_POINTS}"
    return f"the {f['of']} spectrum, whose samples are the {_samples(f)}, has {_usable(f)}, {needs}"


def _samples(f: Flag) -> str:
    return f"{amount(f['samples'])} {'sequences' if f['of'] == 'initial' else 'transitions'}"


def _usable(f: Flag) -> str:
    return f"{f['usable']} usable eigenvalue{'' if f['usable'] == 1 else 's'}"


def _same_start(f: Flag) -> str:
    if f["directions"] == 0:
        return "all sequences start from one state, so there is no initial spectrum"
    return f"the first states vary in only {f['directions']} of {LEAST_POINTS} directions that theta needs"


def _stands(f: Flag) -> str:
    return f"no positive transition stands out (largest transition {f['signal']:.2f} of what noise gives"


def _weak(f: Flag, side: Side) -> str:
    if f["order_z"] is None:
        few = "one sequence" if f["N"] == 1 else "so few sequences"
        return f"{_stands(f)}), and whether the order of time matters cannot be known from {few}"
    return f"the order of time matters ({f['order_z']:.1f} standard errors), but {_stands(f)})"


def _uncertain(f: Flag, side: Side) -> str:
    numbers = dict(f.numbers)
    of = numbers.pop("of")
    if of == "regime":
        return f"regime undecided ({_shares(numbers)})"
    return f"{of} is uncertain: its interval is [{f['low']:.2f}, {f['high']:.2f}]"


_VOID: dict[str, Callable[[Flag], str]] = {
    "too-few-sequences": lambda f: (
        _ONE if f["N"] == 1 else f"there are too few sequences for intervals ({f['N']})"
    ),
    "too-short": lambda f: "the sequences are too short",
    "too-little-data": _little_void,
    "same-start": _same_start,
    "no-dynamics": lambda f: "no state predicts the next one",
    "weak-dynamics": lambda f: "the transition cannot be distinguished from noise",
    "unit-root": lambda f: (
        f"one direction hardly changes from state to state (transition {f['largest']:.3f}; the theory needs "
        f"less than {UNIT_ROOT:g})"
    ),
}

say(
    {
        "too-few-sequences": _few,
        "too-short": "with 2 states a sequence, dynamics cannot be distinguished from what its states have "
        "in common",
        "too-little-data": _little,
        "same-start": lambda f, s: _same_start(f),
        "no-dynamics": lambda f, s: f"{_stands(f)}, time order {f['order_z']:.1f} standard errors)",
        "weak-dynamics": _weak,
        "unit-root": f"the largest transition is {{largest:.4f}}; from {UNIT_ROOT:g} on it cannot be "
        "distinguished from 1, and the theory needs rho < 1",
        "non-commuting": "transition and covariance do not share directions (asymmetry {asymmetry:.2g}, "
        "off-diagonal {off_diagonal:.2g}, order {order:.2f})",
        "rank": "only {rank} of D = {D} directions vary (constant or repeated features)",
        "initial-mean": "the mean of the first states differs from the overall mean by {shift:.2g} of their "
        "variance; the theory assumes no difference",
        "negative-transitions": "{negative} of {all} transition eigenvalues are not positive and are cut",
        "not-a-power-law": "no power law fits well for {exponent}: r2 = {r2:.2f} on eigenvalues {window}",
        "uncertain": _uncertain,
    }
)
