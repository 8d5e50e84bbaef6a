"""A law of training runs in words: its sentences, and those of its flags."""

from __future__ import annotations

import math

from seqlaw.answers.words import Side, option, say, words_alone
from seqlaw.model.amount import amount
from seqlaw.runs.allocate import Allocation
from seqlaw.runs.ask import Extrapolation, Law, Numbers
from seqlaw.runs.compare import Comparison, FormChoice
from seqlaw.runs.form import PAPER
from seqlaw.runs.law import Estimate
from seqlaw.runs.length import LengthEffect
from seqlaw.runs.rollout import Drift

_TERMS: dict[Side, str] = {"cli": "term", "python": "terms"}


def interval(one: Estimate, digits: int = 3) -> str:
    """1.82 [1.78, 1.86]."""
    ends = "" if one.low is None else f" [{amount(one.low, digits)}, {amount(one.high, digits)}]"
    return f"{amount(one.value, digits)}{ends}"


def _percent(one: Estimate, least: float = 0.0) -> str:
    """1.2 % [0.8, 1.6]; what is below `least` per cent is 0."""
    value, low, high = (
        None if x is None else f"{100 * x if abs(100 * x) >= least else 0:.2g}"
        for x in (one.value, one.low, one.high)
    )
    return f"{value} %" + ("" if low is None or high is None else f" [{low}, {high}]")


def law_sentences(law: Law, side: Side) -> list[str]:
    """The law, then how its runs were tested, if that may be what its length does."""
    if law.length is not None:
        return [*_law_sentences(law, side), effect_sentence(law.length)]
    own = [words_alone(one, side) for one in law.flags if one.code == "tested-at-own"]
    return [*_law_sentences(law, side), *(f"{text[0].upper()}{text[1:]}." for text in own)]


def _law_sentences(law: Law, side: Side) -> list[str]:
    """The law in sentences; if the runs do not support a term, the law without it comes first."""
    again = f"fit again with the other terms alone ({option(_TERMS[side], side)})"
    if law.nested is not None and law.comparison is not None:
        name = law.comparison.without
        return [
            f"Read the law without {name}. {law.n} runs: {_powers(law.loss, law.nested)}.",
            comparison_sentence(law.comparison),
            f"With {name}, as in all below: {_powers(law.loss, law)}. For an answer without it, {again}.",
        ]
    found = [] if law.comparison is None else [comparison_sentence(law.comparison)]
    idle = [one["term"] for one in law.flags if one.code == "no-floor" and one["refit"]]
    if not idle:
        return [law_sentence(law), *found]
    first = f"Read the law without {_and(idle)}: in these runs it looks like the floor E. To do so, {again}."
    return [first, law_sentence(law), *found]


def _powers(loss: str, law: Numbers) -> str:
    powers = ["·".join(_power(name, e) for name, e in term.exponents.items()) for term in law.terms]
    return f"{loss} goes as {_and(powers)} {_floor(law)}"


def _floor(law: Numbers) -> str:
    """Where the loss goes, and how terms are added if not as a sum."""
    form = law.fitted.form
    given = " (given)" if form.floor is not None else ""
    mean = f", as a power mean with q = {interval(law.q)}" if form.kind != "sum" else ""
    return f"towards {interval(law.E, 4)}{given}{mean}"


def law_sentence(law: Law) -> str:
    """The law in one sentence."""
    if law.fitted.form.preset not in PAPER:
        return f"{law.n} runs: {_powers(law.loss, law)}."
    numbers = [f"{name} = {interval(one)}" for name, one in law.numbers.items()]
    return f"{law.n} runs as {law.fitted.form.preset}: {_and(numbers)}, {law.loss} {_floor(law)}."


def _power(name: str, e: Estimate) -> str:
    """params^-(0.34 [0.32, 0.36]); where more of it hurts, length^+(0.1 [0.05, 0.15])."""
    if e.value >= 0:
        return f"{name}^-({interval(e)})"
    ends = (None, None) if e.low is None or e.high is None else (-e.high, -e.low)
    return f"{name}^+({interval(Estimate(value=-e.value, low=ends[0], high=ends[1]))})"


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def comparison_sentence(found: Comparison) -> str:
    """Does it matter? In one sentence, with its interval."""
    name = found.without
    if found.verdict == "unknown":
        return f"Whether {name} matters cannot be said: it moves with {found.moves_with} in this table."
    least = 0.0 if found.verdict == "matters" else 1e-3  # an end above zero is not said to be zero
    worse = "without it, predictions of runs that were left out of the fit are worse by "
    worse += f"{_percent(found.held_out, least)} of the loss"
    if found.rollout is not None:
        worse += f", and of the largest {found.largest} by {_percent(found.rollout, least)}"
    if found.verdict == "matters":
        return f"{name} matters: {worse}."
    return f"No evidence in these runs that {name} matters: {worse}."


def effect_sentence(found: LengthEffect) -> str:
    """What of the effect of length is the test's, in one or two sentences."""
    at = "one common length" if found.tested is None else amount(found.tested)
    ends = f"From {found.column} {amount(found.low)} to {amount(found.high)} the loss changes by"
    said = f"{ends} {_change(found.own)} with each run tested at its own length, and by "
    said += f"{_change(found.training)} with all tested at {at}."
    test = f"{_change(found.test)} is the test's"
    if found.shown == ("training", "test"):
        return f"{said} Both matter: {_change(found.training)} is the training's, {test}."
    if found.shown == ("test",):
        return f"{said} The test matters: {test}. There is no evidence of an effect of the training."
    if found.shown == ("training",):
        return f"{said} The training matters. There is no evidence of an effect of the test."
    return f"{said} There is no evidence of either, training or test."


def _change(one: Estimate) -> str:
    """A change of the log loss in per cent: -3.1 % [-3.4, -2.8]."""
    value, low, high = (
        None if x is None else f"{100 * math.expm1(x):+.3g}" for x in (one.value, one.low, one.high)
    )
    return f"{value} % [{low}, {high}]"


def forms_sentence(found: FormChoice, side: Side) -> str:
    """Which form predicts the largest runs better, in one sentence."""
    runs, gain = f"the largest {found.largest} runs", found.gain
    if found.better is None:
        return (
            f"Fitted to the other runs, sum and power mean (q = {found.q:.3g}) predict {runs} equally well."
        )
    if found.better == found.other:
        gain = Estimate(value=-gain.value, low=-(gain.high or 0), high=-(gain.low or 0))
    name = f"power mean (q = {found.q:.3g})" if found.better != "sum" else "sum"
    again = f"; fit again with {option('form', side)} {found.better}" if found.better == found.other else ""
    return (
        f"Fitted to the other runs, a {name} predicts {runs} better, by {_percent(gain)} of the loss{again}."
    )


def drift_sentence(found: Drift) -> str:
    """What rollouts found, and what it did to the intervals."""
    how = f"{found.rollouts} rollouts, which predict the larger runs from the smaller ones"
    if found.rate < 1e-5:
        return f"Intervals outside the table are not widened: {how}, show no error beyond chance."
    return (
        f"Intervals outside the table are widened by {100 * found.rate * math.log(10):.2g} % of the loss for "
        f"each factor of ten: the error beyond chance in {how}."
    )


def extrapolation_sentence(found: Extrapolation) -> str:
    """How well the largest runs are predicted from the others."""
    return (
        f"Fitted to the other runs, the law predicts the largest {len(found.rows)} to "
        f"{100 * found.error:.2g} % (median error); the median prediction is {100 * abs(found.lean):.2g} % "
        f"too {'high' if found.lean > 0 else 'low'}."
    )


def allocation_sentence(found: Allocation) -> str:
    """The best sizes at the budget, and how far beyond the table they lie."""
    sizes = [f"{name} = {interval(one)}" for name, one in found.sizes.items()]
    far = "at most" if found.beyond <= 1 else f"{amount(found.beyond, 2)} times"
    return (
        f"At {found.cost.text} = {amount(found.budget)}: {_and(sizes)}, for a loss of "
        f"{interval(found.loss, 4)}. This budget is {far} that of the costliest run."
    )


def allocation_notes(found: Allocation) -> list[str]:
    """How large these sizes are, and what was assumed of the cost."""
    times = [f"{name} {value:.2g} times" for name, value in found.largest.items()]
    notes = [f"Compared with the largest in the table: {_and(times)}."]
    if found.cost.powers is not None:
        powers = " ".join(f"{name}^{power:.3g}" for name, power in found.cost.powers.items())
        notes.append(f"{found.cost.text} goes as {powers} in this table (r2 {found.cost.r2:.3f}).")
    if found.cost.fixed:
        kept = _and([f"{name} = {amount(value)}" for name, value in found.cost.fixed.items()])
        notes.append(f"Held fixed at the middle of the table (the law or the cost lacks it): {kept}.")
    return notes


say(
    {
        "influential": lambda f, s: (
            f"{f['count']} of {f['n']} runs (rows {f['rows']}, from 0) together move the exponent of "
            f"{f['number']} by {-f['shift']:+.3f}; chance explains {f['expected']:.3f}. Look at them, and "
            f"filter {'with --where' if s == 'cli' else 'the frame'} if they are wrong"
        ),
        "few-runs": lambda f, s: (
            f"{f['n']} {'groups of ' * f['grouped']}runs for {f['numbers']} fitted numbers: too few to "
            "check for wrong runs; look at the most influential ones"
        ),
        "collinear": "{column} moves with {other} in this table (the other columns explain {share:.1f%} of "
        "its logarithm): their exponents cannot be told apart",
        "few-sizes": "{column} takes {sizes} values; a power law beside a floor needs {needed} or more, and "
        "its exponent means nothing here",
        "no-floor": lambda f, s: (
            f"these runs cannot distinguish a slow power of {f['term']} from the floor E: "
            f"E may be anything from {amount(f['low'], 3)} to {amount(f['high'], 3)}"
            + f"; fit again with the other terms alone ({option(_TERMS[s], s)})"
            * f["refit"]
        ),
        "at-bound": "{number} = {value:g} is the end of its range: these runs do not determine it",
        "no-term": "{term} has no part in the best fit: these runs do not show it",
        "test-length": "at which length the runs were tested is not known ({--tested_at}): an effect of "
        "{column} may be the test's",
        "tested-at-own": lambda f, s: (
            f"each run was tested at its own {f['column']}"
            + f" ({f['tested_at']})" * (f["tested_at"] != f["column"])
            + f": an effect of {f['column']} may be the test's. Test all at one length and give that table "
            f"({option('common', s)})"
        ),
        "tests-differ": "runs were tested at {tests} different lengths ({tested_at}): compare runs of one "
        "test, or make it a term",
        "extrapolation": "the budget is {beyond:a2} times that of the costliest run: the intervals of the "
        "sizes cover the scatter of these runs, not a law that changes beyond them",
        "no-rollout": "{n} runs are too few to fit the smaller ones and predict the larger: intervals "
        "outside the table do not cover how wrong the law may be there",
        "pattern": lambda f, s: (
            f"residuals have a pattern along {f['column']}: their median goes from {100 * f['low']:+.2g} % "
            f"to {100 * f['high']:+.2g} % over {f['parts']} parts of the table (p = {f['p']:.1g}). The law "
            f"misses something there; try "
            + f"{option('form', s)} power-mean or " * f["coupled"]
            + "another term"
        ),
        "no-optimum": "the law has no best {column} within a million times of the table's",
    }
)
