"""A forecast in sentences: the verdict, how many more, how far to trust it, and its flags."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from seqlaw.answers.words import Side, say
from seqlaw.model.amount import amount, rounded
from seqlaw.model.flags import Flag
from seqlaw.sequences.forecast import SURE, Forecast
from seqlaw.sequences.learning_curve import LEAST_TOKENS, LEVEL, Accuracy, Needed, bars
from seqlaw.sequences.worth import EQUAL

_NONE = "No length is advised."
_UNCLEAR = (
    "(losses {loss:.5g} and {other:.5g}, cross-validated, difference ± {error:.2g}). More sequences or "
    "groups would decide"
)
_SEES = {
    "all": "sees all {D} features",
    "pca": "sees the first {M} principal directions of {D} features",
    "sketch": "sees a Gaussian sketch of {M} of {D} features",
}


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _names(lengths: Sequence[int]) -> str:
    """8, or 8, 16 and 31."""
    names = [amount(P) for P in lengths]
    return f"{', '.join(names[:-1])}{' and ' if len(names) > 1 else ''}{names[-1]}"


def _span(lengths: Sequence[int]) -> str:
    return f"P = {_names(lengths)}"


def verdict(found: Forecast) -> str:
    """Which length is best at these tokens, if the data can tell."""
    at, nothing = f"With {amount(found.tokens)} tokens,", f"predicting nothing: {found.null_loss:.5g}"
    if not found.rows:
        return (
            f"{at} nothing can be said: the pilot has fewer sequences than these tokens need, and it is too "
            f"small to forecast ({nothing})."
        )
    top = min(found.rows, key=lambda row: row.loss)
    if found.gain < -found.doubt:
        return (
            f"{at} every student does worse than predicting nothing, whose loss is {found.null_loss:.5g}: "
            f"the best, P = {amount(top.P)}, has {top.loss:.5g}. {_NONE}"
        )
    if found.gain <= found.doubt:
        most = max(0.0, (found.gain + found.doubt) / found.null_loss)
        if most <= EQUAL:
            return (
                f"{at} no student does better than predicting nothing, whose loss is "
                f"{found.null_loss:.5g}: the gain is at most {_percent(most)}. {_NONE}"
            )
        return (
            f"{at} these data cannot distinguish the best student (P = {amount(top.P)}, loss {top.loss:.5g}) "
            f"from predicting nothing (loss {found.null_loss:.5g}): the gain is {found.gain:.2g} ± "
            f"{found.doubt:.2g}. {_NONE}"
        )
    loss = f"{top.loss:.5g} ({nothing})"
    codes = {flag.code for flag in found.flags}
    if "nothing-unclear" in codes or "no-better-than-nothing" in codes:
        return (
            f"{at} the lowest held-out loss is {loss}, but with all of the pilot these data cannot "
            f"distinguish the student from predicting nothing. {_NONE}"
        )
    if "no-order" in codes:
        return (
            f"{at} the lowest held-out loss is {loss}, but a student that ignores the order of time "
            f"does equally well. {_NONE}"
        )
    ends = f"90 % interval {top.low:.4g} to {top.high:.4g}"
    if len(found.rows) == 1:
        return (
            f"{at} only P = {amount(top.P)} can be assessed: held-out loss {top.loss:.5g}, {ends}, "
            f"{top.kind} ({nothing})."
        )
    others = [row for row in found.rows if row.P not in found.best.tied]
    if not others:
        worst = max(found.rows, key=lambda row: row.loss)
        return (
            f"{at} these data cannot distinguish the lengths {_names(found.best.tied)}: their held-out "
            f"losses are {top.loss:.5g} to {worst.loss:.5g} ({nothing}). {_NONE}"
        )
    near = min(others, key=lambda row: row.loss)
    by = f"{_percent(near.loss / top.loss - 1)} (± {_percent(found.apart[near.P] / top.loss)})"
    worse = f"{_span([row.P for row in others])} {'are' if len(others) > 1 else 'is'} worse"
    worse += f", P = {amount(near.P)} by {by}" if len(others) > 1 else f" by {by}"
    if found.best.P is None:
        return (
            f"{at} these data cannot distinguish the lengths {_names(found.best.tied)}; the lowest held-out "
            f"loss is {loss}. {worse}."
        )
    kind = {
        found.rows[0].P: "more and shorter sequences are best",
        found.rows[-1].P: "fewer and longer sequences are best",
    }
    return (
        f"{at} {kind.get(top.P, 'a middle length is best')}: P = {amount(top.P)} (N = {amount(top.N)}) has a "
        f"held-out loss of {loss}, {top.kind}, {ends}. {worse}."
    )


def more(found: Forecast) -> Iterator[str]:
    """From how many tokens on another length wins, and which reaches the target first."""
    for each in found.crossings:
        yield (
            f"From about {rounded(each.tokens)} tokens on (between {rounded(each.low)} and "
            f"{rounded(each.high)}), P = {amount(each.P)} would be better than P = {amount(each.over)}: "
            f"that is N = {rounded(each.N)} sequences."
        )
    if found.target_loss is None:
        return
    goal = f"a loss of {found.target_loss:.5g}"
    reach = [each for each in found.needed if each.N is not None]
    if found.target_loss >= found.null_loss:
        yield f"Predicting nothing reaches {goal}."
    elif not found.needed:
        yield f"seqlaw cannot say how many sequences reach {goal}: the pilot is too small to forecast."
    elif not reach:
        if all(each.low is None for each in found.needed):
            yield f"No number of sequences reaches {goal} with these steps, at any length that is forecast."
        else:
            yield (
                f"Probably no number of sequences reaches {goal} with these steps; the intervals of "
                f"{_span([each.P for each in found.needed if each.low is not None])} do not exclude it."
            )
    else:
        first = min(reach, key=lambda each: (each.N or 0) * each.P)
        N = first.N or 0
        if any(each.at_most for each in reach):
            yield (
                f"At most about {amount(N * first.P)} tokens reach {goal}. Fewer were not measured, so "
                "seqlaw cannot say which length needs the fewest."
            )
        elif N < found.n // 2:
            yield (
                f"About {amount(N * first.P)} tokens reach {goal}, at P = {amount(first.P)} (intervals "
                "below). To compare the lengths at so few tokens, ask for that number of tokens."
            )
        elif not _told(found, first):
            yield (
                f"About {amount(N * first.P)} tokens reach {goal} (intervals below). These data cannot "
                "distinguish which length needs the fewest."
            )
        else:
            yield (
                f"Length P = {amount(first.P)} reaches {goal} with the fewest tokens: about "
                f"{amount(N * first.P)}, N = {amount(N)} (intervals below)."
            )


def _told(found: Forecast, first: Needed) -> bool:
    """Whether every other length's forecast, at as many tokens, exceeds the target beyond its uncertainty."""
    goal, tokens = found.target_loss or 0.0, (first.N or 0) * first.P
    known = {curve.P: curve for curve in found.curves if curve.forecast}
    apart = bars({P: curve.chance_at(tokens / P) for P, curve in known.items()}, SURE)
    return all(curve.at(tokens / P) - goal > apart[P, first.P] for P, curve in known.items() if P != first.P)


def data(found: Forecast) -> str:
    """What was learned from, and by whom."""
    sees = _SEES[found.student].format(D=amount(found.D), M=amount(found.M))
    groups = f" in {amount(found.groups)} groups" if found.groups < found.n else ""
    return (
        f"The pilot has {amount(found.n)} sequences of length {amount(found.curves[-1].P)}{groups}; "
        f"{amount(found.tested)} more are held out as the test. The student {sees} and trains for "
        f"{amount(found.steps)} steps. {_step_sizes(found)}"
    )


def _step_sizes(found: Forecast) -> str:
    if found.gamma is not None:
        return (
            f"Its step size is {found.gamma:.3g} at every length, as asked, or what the safeguard allows. "
            "One step size for all lengths favours those that it suits."
        )
    sizes = ", ".join(f"{curve.schedule.gamma:.3g} at P = {amount(curve.P)}" for curve in found.curves)
    capped = [curve.P for curve in found.curves if curve.largest]
    allowed = "; this is the largest that the safeguard allows at " if capped else ""
    allowed += "every length" if len(capped) == len(found.curves) else _span(capped) if capped else ""
    return f"Each length has its own step size, chosen by cross-validation: {sizes}{allowed}."


def trust(good: Accuracy | None) -> str:
    """How good forecasts are here."""
    if good is None:
        return (
            f"Nothing is forecast: a forecast needs {LEAST_TOKENS:g} tokens per learned dimension, and at "
            "every length the pilot has fewer or its loss still falls steeply."
        )
    return (
        f"With probability {100 * LEVEL:.0f} % the error of a forecast is between {_signed(good.low - 1)} "
        f"and {_signed(good.high - 1)}."
    )


def _signed(share: float) -> str:
    return f"{100 * share:+.{2 if abs(share) < 1 else 3}g} %"


_ALIKE = 1.25
"""The ratio of two variances that needs no remark."""


def starts(found: Forecast) -> str:
    """Whether a longer sequence shows other states."""
    start = found.start
    if not any(start.differ):
        alike = 1 / _ALIKE < start.ratio < _ALIKE
        chance = "" if alike else f"; their variance is {start.ratio:.2g} times that, which may be chance"
        return f"No sure difference was found between the first states and the later ones{chance}."
    parts = [f"their means by up to {start.shift:.2g} standard deviations"] * start.differ[0]
    parts += [f"their variance by a factor of {start.ratio:.2f}"] * start.differ[1]
    return (
        f"The first states differ from the later ones ({' and '.join(parts)}): a longer sequence shows the "
        "student other states."
    )


def _few_tokens(flag: Flag, side: Side) -> str:
    has = math.floor(10 * flag["tokens"]) / 10  # below the rule, as printed
    return (
        f"nothing is forecast at {_span(flag['lengths'])}: a forecast needs {LEAST_TOKENS:g} tokens per "
        f"learned dimension, and the {amount(flag['n'])} sequences of the pilot have {has:g} at the "
        f"length with the fewest. About {rounded(flag['sequences'])} sequences would do for all lengths"
    )


say(
    {
        "too-few-tokens": _few_tokens,
        "steep": lambda f, s: (
            f"nothing is forecast at {_span(f['lengths'])}: there half of the pilot has a loss "
            f"{f['ratio']:.2g} times that of the whole, which is too steep to extrapolate. More sequences "
            "help"
        ),
        "no-better-than-nothing": "the student of the longest sequences does no better than predicting "
        "nothing (losses {loss:.5g} and {other:.5g}, cross-validated; the gain is at most {most:.2g%})",
        "nothing-unclear": "these data cannot distinguish the student of the longest sequences from "
        f"predicting nothing {_UNCLEAR}",
        "no-order": "a student that ignores the order of time does equally well (losses {other:.5g} and "
        "{loss:.5g}, cross-validated; the order gains at most {most:.2g%}). It learns what the states of a "
        "sequence have in common, not the next state. Check that the states are in order",
        "order-unclear": "these data cannot distinguish the student from one that ignores the order of time "
        f"{_UNCLEAR}",
        "few-groups": "the {sequences:a} sequences of the pilot come from only {groups} groups, so intervals "
        "for new groups are rough",
        "unfilled": lambda f, s: (
            f"{_span(f['lengths'])} left out: {amount(f['tokens'])} tokens do not divide into whole "
            "sequences of that length without losing over 5 % of them"
        ),
        "constant": "{features:a} of {of:a} features do not vary",
        "inaccurate": lambda f, s: (
            f"forecasts are rough here: their error is {_signed(f['low'] - 1)} to {_signed(f['high'] - 1)}. "
            "More test sequences or groups, or a larger pilot, would narrow this"
        ),
    }
)
