"""A forecast in sentences: the verdict, how many more, how far to trust it, and its flags."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from seqlaw.answers.words import Side, option, say
from seqlaw.model.amount import amount, rounded
from seqlaw.model.flags import Flag
from seqlaw.sequences.forecast import Forecast
from seqlaw.sequences.law import LEAST_TOKENS, LEVEL, Accuracy
from seqlaw.sequences.needed import Needed

_SEES = {
    "all": "sees all {D} features",
    "pca": "sees the first {M} principal directions of {D} features",
    "sketch": "sees a Gaussian sketch of {M} of {D} features",
}


def _percent(share: float) -> str:
    return f"{100 * share:.2g} %"


def _span(lengths: Sequence[int]) -> str:
    """P = 8, or P = 8, 16 and 31."""
    names = [amount(P) for P in lengths]
    return f"P = {', '.join(names[:-1])}{' and ' if len(names) > 1 else ''}{names[-1]}"


def verdict(found: Forecast) -> str:
    """Which length wins at these tokens, if the data can tell."""
    at, nothing = f"At {amount(found.tokens)} tokens", f"predicting nothing: {found.null_loss:.5g}"
    if not found.rows:
        return (
            f"{at} nothing can be said: no length is within reach of a subset or of a forecast ({nothing})."
        )
    top = min(found.rows, key=lambda row: row.loss)
    if top.loss - found.null_loss > found.doubt:
        return (
            f"{at} every student is worse than predicting nothing, whose loss is {found.null_loss:.5g}: the "
            f"best, P = {amount(top.P)}, has {top.loss:.5g} (± {found.doubt:.2g} on the difference). No "
            "length is advised."
        )
    if found.null_loss - top.loss <= found.doubt:
        return (
            f"{at} no student can be told from predicting nothing, whose loss is {found.null_loss:.5g}: the "
            f"best, P = {amount(top.P)}, has {top.loss:.5g} (± {found.doubt:.2g} on the difference). No "
            "length is advised."
        )
    loss = f"{top.loss:.5g} ({nothing})"
    if any(flag.code == "no-order" for flag in found.flags):
        return (
            f"{at} the least held-out loss is {loss}, but a student that does not know the order of time "
            "does as well. No length is advised."
        )
    if len(found.rows) == 1:
        return f"{at} only P = {amount(top.P)} can be told: held-out loss {loss}, {top.kind}."
    others = [row for row in found.rows if row.P not in found.best.tied]
    if not others:
        worst = max(found.rows, key=lambda row: row.loss)
        return (
            f"{at} no length wins: {_span([row.P for row in found.rows])} have losses from {loss} to "
            f"{worst.loss:.5g}, less apart than these data can tell. No length is advised."
        )
    near = min(others, key=lambda row: row.loss)
    by = f"{_percent(near.loss / top.loss - 1)} (± {_percent(found.apart[near.P] / top.loss)})"
    worse = f"{_span([row.P for row in others])} {'are' if len(others) > 1 else 'is'} worse"
    worse += f", P = {amount(near.P)} by {by}" if len(others) > 1 else f" by {by}"
    if found.best.P is None:
        return (
            f"{at} {_span(found.best.tied)} are level, at a held-out loss of {loss}; {worse}. Those that are "
            "level cannot be told apart with these data."
        )
    ends = {
        found.rows[0].P: "more, shorter sequences win",
        found.rows[-1].P: "fewer, longer sequences win",
    }
    return (
        f"{at} {ends.get(top.P, 'a middle length wins')}: P = {amount(top.P)} (N = {amount(top.N)}) has a "
        f"held-out loss of {loss}, {top.kind}; {worse}."
    )


def more(found: Forecast) -> Iterator[str]:
    """From how many tokens on another length wins, and which reaches the target first."""
    for each in found.crossings:
        yield (
            f"From about {rounded(each.tokens)} tokens on (between {rounded(each.low)} and "
            f"{rounded(each.high)}), P = {amount(each.P)} would win over P = {amount(each.over)}: that is "
            f"N = {rounded(each.N)} sequences."
        )
    if found.target_loss is None:
        return
    goal = f"a loss of {found.target_loss:.5g}"
    reach = [each for each in found.needed if each.N is not None]
    if found.target_loss >= found.null_loss:
        yield f"Predicting nothing reaches {goal}."
    elif not found.needed:
        yield f"How many sequences reach {goal} cannot be told: nothing is forecast from so few tokens."
    elif not reach:
        yield f"No number of sequences reaches {goal} at this schedule, at any length that is forecast."
    else:
        first = min(reach, key=lambda each: (each.N or 0) * each.P)
        N = first.N or 0
        if any(each.at_most for each in reach):
            yield (
                f"At most about {amount(N * first.P)} tokens reach {goal}. Which length needs the fewest "
                "cannot be told: nothing is forecast from so few."
            )
        elif not _told(found, first):
            yield (
                f"About {amount(N * first.P)} tokens reach {goal} (the table below says how surely); which "
                "length needs the fewest cannot be told."
            )
        else:
            yield (
                f"Fewest tokens reach {goal} at P = {amount(first.P)}: about {amount(N * first.P)}, "
                f"N = {amount(N)} (the table below says how surely)."
            )


def _told(found: Forecast, first: Needed) -> bool:
    """Whether with as many tokens every other length lies above the target by more than can be doubted."""
    goal, tokens = found.target_loss or 0.0, (first.N or 0) * first.P
    bar = goal * (1 + (found.accuracy.difference if found.accuracy else 0.0))
    return all(law.at(tokens / law.P) > bar for law in found.laws if law.forecast and law.P != first.P)


def data(found: Forecast) -> str:
    """What was learned from, and by whom."""
    sees = _SEES[found.student].format(D=amount(found.D), M=amount(found.M))
    groups = f" in {amount(found.groups)} groups" if found.groups < found.n else ""
    return (
        f"A pilot of {amount(found.n)} sequences of length {amount(found.laws[-1].P)}{groups}, "
        f"{amount(found.tested)} more held out; the student {sees} and trains for "
        f"{amount(found.schedule.L)} steps."
    )


def trust(good: Accuracy | None) -> str:
    """How good forecasts are here."""
    if good is None:
        return (
            f"Nothing is forecast: the pilot has fewer than {LEAST_TOKENS:g} tokens per learned dimension at "
            "every length."
        )
    return (
        f"Forecast over truth lies between {100 * (good.low - 1):+.2g} and {100 * (good.high - 1):+.2g} % "
        f"({100 * LEVEL:.0f} %, the test's chance included). On random subsets of the pilot:"
    )


def starts(found: Forecast) -> str:
    """Whether a longer sequence shows other states."""
    if found.start_alike:
        return (
            "The first states are like the later ones, as in windows cut anywhere: the length changes how "
            "alike tokens are, not what is seen."
        )
    return (
        f"The first states differ from the later ones (variance in all: {found.start.ratio:.2f} times "
        "theirs): a longer sequence shows the student other states."
    )


def _few_tokens(flag: Flag, side: Side) -> str:
    return (
        f"nothing is forecast at {_span(flag['lengths'])}: the {amount(flag['n'])} sequences of the pilot "
        f"have as few as {flag['tokens']:.2g} tokens per learned dimension there, and it takes "
        f"{LEAST_TOKENS:g} (about {rounded(flag['sequences'])} sequences for all)"
    )


_WORDS: dict[str, Callable[[Flag, Side], str]] = {
    "too-few-tokens": _few_tokens,
    "no-better-than-nothing": lambda f, s: (
        f"the student of the whole pilot has a loss of {f['loss']:.5g}, predicting nothing {f['null']:.5g}: "
        f"no gain beyond chance (± {f['error']:.2g})"
    ),
    "no-order": lambda f, s: (
        f"a student that does not know the order of time does as well ({f['blind']:.5g} against "
        f"{f['loss']:.5g}, ± {f['error']:.2g}): what is learned is what a sequence has in common, not its "
        "next state. Is time shuffled?"
    ),
    "few-groups": lambda f, s: (
        f"the {amount(f['sequences'])} sequences of the pilot come from {f['groups']} groups only: what "
        "holds for new groups is known as well as so few can tell"
    ),
    "blocks": lambda f, s: (
        f"one recording was cut into windows of {amount(f['states'])} states; {f['blocks']} blocks of "
        f"{f['windows']} windows, with one left out between two, count as independent. If the recording "
        "remembers more than a window, they are not"
    ),
    "clock": lambda f, s: (
        f"of {f['of']} features these rise as clocks and counters do, and the student learns that: "
        f"{', '.join(f['columns'])}. Name what orders states with {option('time', s)}, what tells "
        f"sequences apart with {option('sequence', s)}, and leave out others with {option('leave_out', s)}"
    ),
    "gaps": lambda f, s: (
        f"{amount(f['steps'])} of {amount(f['of'])} steps of time are longer than most, by up to "
        f"{f['largest']:.3g} times, and count as one each: are states missing, or is time uneven? Cut "
        "sequences there, or fill them"
    ),
    "unfilled": lambda f, s: (
        f"left out: {_span(f['lengths'])}; of {amount(f['tokens'])} tokens whole sequences use over 5 % "
        "fewer there than at another length"
    ),
    "shorter": lambda f, s: (
        f"{amount(f['sequences'])} of {amount(f['of'])} sequences are shorter than {amount(f['P'])} and left "
        "out"
    ),
    "dropped": lambda f, s: (
        f"{amount(f['sequences'])} of {amount(f['of'])} sequences have missing values and are left out"
    ),
    "constant": lambda f, s: f"{amount(f['features'])} of {amount(f['of'])} features do not vary",
    "inaccurate": lambda f, s: (
        f"a forecast may be off by {100 * (f['low'] - 1):+.2g} to {100 * (f['high'] - 1):+.2g} % here"
    ),
}
say(_WORDS)
