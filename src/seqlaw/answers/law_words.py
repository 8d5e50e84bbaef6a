"""A law of training runs in words: its sentences, and those of its flags."""

from __future__ import annotations

import math

from seqlaw.answers.words import Side, option, say
from seqlaw.model.amount import amount
from seqlaw.model.flags import Flag
from seqlaw.runs.allocate import Allocation
from seqlaw.runs.ask import Law, Nested
from seqlaw.runs.compare import Comparison, FormChoice
from seqlaw.runs.form import PAPER
from seqlaw.runs.law import Estimate
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
    """The law, first of all that which should be read: without a term that these runs do not speak for."""
    again = f"fit again with the other terms alone, {option(_TERMS[side], side)}"
    if law.nested is not None and law.comparison is not None:
        name = law.comparison.without
        return [
            f"Read the law without {name}. {law.n} runs: {_powers(law.loss, law.nested)}.",
            comparison_sentence(law.comparison),
            f"With {name}, as in all below ({again}, for a page without it): {_powers(law.loss, law)}.",
        ]
    found = [] if law.comparison is None else [comparison_sentence(law.comparison)]
    idle = [one["term"] for one in law.flags if one.code == "no-floor" and one["refit"]]
    if not idle:
        return [law_sentence(law), *found]
    first = f"Read the law without {_and(idle)} ({again}): in these runs it looks like the floor E."
    return [first, law_sentence(law), *found]


def _powers(loss: str, law: Law | Nested) -> str:
    powers = ["·".join(_power(name, e) for name, e in term.exponents.items()) for term in law.terms]
    return f"{loss} goes as {_and(powers)} {_floor(law)}"


def _floor(law: Law | Nested) -> str:
    """Where the loss goes, and how terms are added if not as a sum."""
    form = law.fitted.form if isinstance(law, Law) else law.form
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
    costs = f"{_percent(found.held_out, least)} of the loss in runs left out of the fit"
    if found.rollout is not None:
        costs += f", {_percent(found.rollout, least)} in the largest {found.largest}"
    if found.verdict == "matters":
        return f"{name} matters: leaving it out costs {costs}."
    return f"No evidence in these runs that {name} matters: leaving it out costs {costs}."


def forms_sentence(found: FormChoice, side: Side) -> str:
    """Which form predicts the largest runs better, in one sentence."""
    runs, gain = f"the largest {found.largest} runs", found.gain
    if found.better is None:
        return f"Fitted to the others, sum and power mean (q = {found.q:.3g}) predict {runs} equally well."
    if found.better == found.other:
        gain = Estimate(value=-gain.value, low=-(gain.high or 0), high=-(gain.low or 0))
    name = f"power mean (q = {found.q:.3g})" if found.better != "sum" else "sum"
    again = f"; fit again with {option('form', side)} {found.better}" if found.better == found.other else ""
    return f"Fitted to the others, a {name} predicts {runs} better, by {_percent(gain)} of the loss{again}."


def drift_sentence(found: Drift) -> str:
    """What rollouts found, and what it did to the intervals."""
    how = (
        f"{found.rollouts} rollouts, which fit the smaller runs (by {_and(list(found.axes))}) and predict "
        "the larger ones"
    )
    if found.rate < 1e-5:
        return f"Intervals outside the table are not widened: {how}, show no error beyond chance."
    return (
        f"Intervals outside the table are widened by {100 * found.rate * math.log(10):.2g} % of the loss "
        f"(one standard deviation) for each factor of ten in distance: the error beyond chance of {how}."
    )


def allocation_sentence(found: Allocation) -> str:
    """The best sizes at the budget, and how far beyond the table they lie."""
    sizes = [f"{name} = {interval(one)}" for name, one in found.sizes.items()]
    far = "no more than" if found.beyond <= 1 else f"{amount(found.beyond, 2)} times"
    return (
        f"At {found.cost.text} = {amount(found.budget)}: {_and(sizes)}, for a loss of "
        f"{interval(found.loss, 4)}; that is {far} the dearest run."
    )


def _influential(flag: Flag, side: Side) -> str:
    where = "filter with --where" if side == "cli" else "filter the frame"
    return (
        f"{flag['count']} of {flag['n']} runs (rows {flag['rows']}, from 0) move the exponent of "
        f"{flag['number']} by {-flag['shift']:+.3f} together, where {flag['expected']:.3f} is what chance in "
        f"the others explains; look at them, and {where} if they are wrong"
    )


say(
    {
        "influential": _influential,
        "few-runs": lambda f, s: (
            f"{f['n']} {'groups of ' * f['grouped']}runs for {f['numbers']} numbers: too few to tell a run "
            "that is wrong from chance; look at those that weigh most"
        ),
        "collinear": lambda f, s: (
            f"{f['column']} moves with {f['other']} in this table (the other columns explain "
            f"{100 * f['share']:.1f} % of its logarithm): their exponents cannot be told apart"
        ),
        "few-sizes": lambda f, s: (
            f"{f['column']} takes {f['sizes']} values; a power law beside a floor needs {f['needed']} or "
            "more, and its exponent means nothing here"
        ),
        "no-floor": lambda f, s: (
            f"a slow power of {f['term']} and the floor E look alike, and these runs do not tell them apart: "
            f"here E may be anything from {amount(f['low'], 3)} to {amount(f['high'], 3)}"
            + f"; fit again with the other terms alone ({option(_TERMS[s], s)})"
            * f["refit"]
        ),
        "at-bound": lambda f, s: (
            f"{f['number']} = {f['value']:g} is the end of its range: these runs do not determine it"
        ),
        "no-term": lambda f, s: f"{f['term']} has no part in the best fit: these runs do not show it",
        "test-length": lambda f, s: (
            f"at which length the runs were tested is not known ({option('tested_at', s)}): an effect of "
            f"{f['column']} may be the test's"
        ),
        "tested-at-own": lambda f, s: (
            f"every run was tested at its own {f['column']}"
            + f" ({f['tested_at']})" * (f["tested_at"] != f["column"])
            + f": an effect of {f['column']} may be the test's"
        ),
        "tests-differ": lambda f, s: (
            f"runs were tested at {f['tests']} different lengths ({f['tested_at']}): compare runs of one "
            "test, or make it a term"
        ),
        "extrapolation": lambda f, s: (
            f"the budget is {amount(f['beyond'], 2)} times the dearest run: the sizes' intervals know the "
            "scatter of these runs, not whether the law goes on"
        ),
        "no-rollout": lambda f, s: (
            f"{f['n']} runs are too few to fit the smaller ones and predict the larger: intervals outside "
            "the table do not know how wrong the law may be there"
        ),
        "pattern": lambda f, s: (
            f"residuals have a pattern along {f['column']}: their median goes from {100 * f['low']:+.2g} % "
            f"to {100 * f['high']:+.2g} % over {f['parts']} parts of the table (p = {f['p']:.1g}). The law "
            "misses something there; try "
            + f"{option('form', s)} power-mean or " * f["coupled"]
            + "another term"
        ),
        "no-optimum": lambda f, s: f"the law has no best {f['column']} within a million times of the table's",
    }
)
