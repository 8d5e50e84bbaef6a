"""Budgets in, plain words out: longer or more sequences, tested where, and how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass

from seqlaw.measuring.measure import Measurement
from seqlaw.measuring.verdict import HARMLESS
from seqlaw.model.checks import positive, whole
from seqlaw.model.schedule import WSD, Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes, Teacher
from seqlaw.planning.budget import Budget
from seqlaw.planning.plan import Plan, plan
from seqlaw.planning.tradeoff import OWN, Tradeoff, split_lengths, tradeoff

_MODES = 1024  # of a power-law teacher, unless told otherwise
_MATTERS = 1.02  # ratio of worst to best risk below which the split is called indifferent


@dataclass(frozen=True, kw_only=True, eq=False)
class Advice:
    """Sentences, and the numbers behind them."""

    words: tuple[str, ...]
    tradeoff: Tradeoff | None
    plan: Plan | None


def advise(
    source: Measurement | Teacher | Modes,
    *,
    tokens: float | None = None,
    compute: float | None = None,
    eval_length: int | None = None,
    M: int | None = None,
    schedule: Schedule | None = None,
    d: int | None = None,
) -> Advice:
    """What to do with `tokens` (and `compute` N·P·M²·L, if it is limited), tested at length `eval_length`.

    A measurement is used through its measured spectra (`Measurement.modes`), not its fitted law. Without
    compute the student has width M (default: a quarter of the modes, at most 128) and the given schedule.
    """
    teacher = source.modes if isinstance(source, Measurement) else source
    words = _trust(source) if isinstance(source, Measurement) else []
    if tokens is None:
        return Advice(
            words=(*words, "Give a number of tokens for advice on how to split them."),
            tradeoff=None,
            plan=None,
        )
    tokens = positive("tokens", tokens)
    size = teacher.d if isinstance(teacher, Modes) else (_MODES if d is None else whole("d", d))
    planned = None
    if compute is not None:
        planned = plan(
            teacher,
            Budget(compute=compute, tokens=tokens),
            schedule=schedule,
            d=size,
            eval_length=eval_length,
            confirm=False,
        )
        best = planned.finite.best
        M, schedule = best.M, WSD(gamma=0.1, L=best.L) if schedule is None else schedule
    schedule = WSD(gamma=0.1, L=30000) if schedule is None else schedule
    M = min(128, max(1, size // 4)) if M is None else whole("M", M, most=size)
    setting = Setting(teacher=teacher, M=M, N=1, P=2, d=size, schedule=schedule)
    curves = tradeoff(
        setting,
        tokens,
        lengths=split_lengths(int(tokens)),
        eval_lengths=() if eval_length is None else (eval_length,),
    )
    words += [_sentence(curves, name, M) for name in curves.best]
    words += _turns(curves)
    if planned is not None:
        best = planned.finite.best
        words.append(
            f"Within {compute:.3g} of compute (N·P·M²·L) the best student has M = {best.M}, trained on "
            f"N = {best.N:,} sequences of length P = {best.P:,} for L = {best.L:,} steps."
        )
        words += planned.notes
    return Advice(words=tuple(words), tradeoff=curves, plan=planned)


def _trust(measurement: Measurement) -> list[str]:
    regime = measurement.regime
    if measurement.reliable:
        probability = 0.0 if regime.probability is None else regime.probability
        return [f"The data look like regime {regime.name} (probability {probability:.2f})."]
    causes = sorted({flag.split(":")[0] for flag in measurement.flags} - set(HARMLESS))
    return [
        f"The theory does not cover these data ({', '.join(causes)}). What follows treats the measured "
        "spectra as if it did: a guess to be checked on held-out data, not a result."
    ]


def _sentence(curves: Tradeoff, name: str, M: int) -> str:
    """One test length: which split wins, by how much."""
    curve = curves.curve(name)
    least = min(row.reducible for row in curve)
    worst = max(curve, key=lambda row: row.reducible)
    low, high = curves.best[name]
    where = (
        "Tested at the training length, as in the paper,"
        if name == OWN
        else f"Tested at length {int(name):,},"
    )
    ratio = worst.reducible / least if least > 0 else 1.0
    tokens = f"{curves.tokens:,} tokens and width {M}"
    if ratio < _MATTERS:
        within = f"{max(100 * (ratio - 1), 0.1):.1f} %"
        return f"{where} the split of {tokens} hardly matters: any P is within {within} of the best."
    span = f"P = {low:,}" if low == high else f"P from {low:,} to {high:,}"
    shortest, longest = min(row.P for row in curve), max(row.P for row in curve)
    if low == shortest and high < longest:
        kind = "more, shorter sequences win"
    elif high == longest and low > shortest:
        kind = "fewer, longer sequences win"
    else:
        kind = "a middle length wins"
    counts = (
        f"N = {curves.tokens // low:,}"
        if low == high
        else f"N = {curves.tokens // high:,} to {curves.tokens // low:,}"
    )
    return (
        f"{where} {kind} at {tokens}: {span} ({counts}) is best, and P = {worst.P:,} has "
        f"{ratio:.3g} times its reducible risk."
    )


def _turns(curves: Tradeoff) -> list[str]:
    """Say so when the two tests disagree."""
    own = curves.best[OWN]
    for name, best in curves.best.items():
        if name != OWN and (best[0] > own[1] or own[0] > best[1]):
            return [
                "The two tests disagree because a longer training length is also an easier test: "
                f"compare lengths at the one you care about ({int(name):,})."
            ]
    return []
