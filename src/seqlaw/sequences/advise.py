"""Budgets in, plain words out: longer or more sequences, tested where, and how far to trust it."""

from __future__ import annotations

from dataclasses import dataclass

from seqlaw.answers.plan import Plan, finite_notes, plan
from seqlaw.sequences.measure import Measurement
from seqlaw.sequences.verdict import HARMLESS, refusal
from seqlaw.model.amount import amount
from seqlaw.model.checks import InputError, positive, whole
from seqlaw.model.schedule import Schedule, as_schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import MODES, Modes, Teacher, as_teacher
from seqlaw.planning.budget import Budget
from seqlaw.planning.tradeoff import OWN, Tradeoff, split_lengths, tradeoff

_WIDEST = 128  # a wider student changes the accuracy, not the verdict


@dataclass(frozen=True, kw_only=True, eq=False)
class Advice:
    """Sentences, and the numbers behind them."""

    words: tuple[str, ...]
    tradeoff: Tradeoff | None
    plan: Plan | None


def advise(
    source: Measurement | Teacher | Modes | str,
    *,
    tokens: float | None = None,
    compute: float | None = None,
    eval_length: int | None = None,
    M: int | None = None,
    schedule: Schedule | str = "wsd",
    d: int | None = None,
) -> Advice:
    """What to do with `tokens` (and `compute` N·P·M²·L, if it is limited), tested at length `eval_length`.

    A measurement is used through its measured spectra (`Measurement.modes`), not its fitted law. Without
    compute the student has width M (default: a quarter of the modes, at most 128) and the given schedule
    (by name: γ = 0.1, 30000 steps); with it the plan chooses M and L. Where a flag leaves nothing to
    predict from (`refusal`), the only sentence says so.
    """
    if compute is not None and M is not None:
        raise InputError("M", "cannot be given together with compute, which chooses it", M)
    teacher = source.modes if isinstance(source, Measurement) else as_teacher("source", source)
    schedule = as_schedule("schedule", schedule)
    words = _trust(source) if isinstance(source, Measurement) else []
    if isinstance(source, Measurement) and refusal(source.findings, source.N):
        return Advice(words=tuple(words), tradeoff=None, plan=None)
    covered = source.reliable if isinstance(source, Measurement) else True
    if tokens is None:
        return Advice(
            words=(*words, "Give a number of tokens (--tokens) for advice on how to split them."),
            tradeoff=None,
            plan=None,
        )
    tokens = positive("tokens", tokens)
    size = teacher.d if isinstance(teacher, Modes) else (MODES if d is None else whole("d", d))
    planned = None
    if compute is not None:
        budget = Budget(compute=compute, tokens=tokens)
        planned = plan(
            teacher,
            budget,
            schedule=schedule,
            d=size,
            eval_length=eval_length,
            confirm=False,
        )
        best = planned.finite.best
        schedule = schedule.with_steps(best.L)
        M, why = best.M, "the plan's, see below"
    elif M is None:
        M = min(_WIDEST, max(1, size // 4))
        why = f"a quarter of the {size} directions, so that it leaves most of them out as the theory has it"
        if M == _WIDEST:
            why = f"the default where there are {4 * _WIDEST} directions or more"
    else:
        M, why = whole("M", M, most=size), "as asked"
    words.append(
        f"The student compared has width M = {amount(M)} ({why}) and trains for {amount(schedule.L)} steps "
        f"({schedule.name}, horizon R = {_horizon(schedule)}); another width or horizon can favour "
        "another split."
    )
    setting = Setting(teacher=teacher, M=M, N=1, P=2, d=size, schedule=schedule)
    curves = tradeoff(
        setting,
        tokens,
        lengths=split_lengths(int(tokens)),
        eval_lengths=() if eval_length is None else (eval_length,),
    )
    words += [_sentence(curves, name, M, covered) for name in curves.best]
    words += _turns(curves, M)
    if planned is not None:
        best = planned.finite.best
        words.append(
            f"Within {amount(budget.compute)} of compute (N·P·M²·L) the best student has "
            f"M = {amount(best.M)}, trained on N = {amount(best.N)} sequences of length P = {amount(best.P)} "
            f"for L = {amount(best.L)} steps."
        )
        if best.M == size:
            words.append(
                f"M = {size} is every direction there is to learn from: a wider student may be better, and "
                "needs more features to be judged."
            )
        # Measured data have exponents: the plan's note that its arrays have none would confuse.
        measured = isinstance(source, Measurement)
        words += finite_notes(planned) if measured else planned.notes
    return Advice(words=tuple(words), tradeoff=curves, plan=planned)


def _trust(measurement: Measurement) -> list[str]:
    refused = refusal(measurement.findings, measurement.N)
    if refused is not None:
        return ["No advice is given: {}. What would help: {}.".format(*refused)]
    regime = measurement.regime
    if measurement.reliable:
        if not regime.applies or regime.probability is None:
            return ["The data do not tell the regime."]
        return [f"The data look like regime {regime.name} (probability {regime.probability:.2f})."]
    causes = sorted({finding.code for finding in measurement.findings} - set(HARMLESS))
    why = "The theory does not cover these data" if causes != ["uncertain"] else "These data do not settle it"
    return [
        f"{why} ({', '.join(causes)}). What follows is computed from the measured spectra all the same, with "
        "no claim to accuracy. The held-out check (--held-out) trains students on the data themselves and "
        "says how well such a prediction does at few tokens."
    ]


def _horizon(schedule: Schedule) -> str:
    """R for people: whole where it is large, as 0.1 · 30000 need not be."""
    R = schedule.horizon
    return amount(round(R)) if R >= 100 else f"{R:.3g}"


def _margin(M: int) -> float:
    """A relative difference of risks that is not worth having: the rung's stated accuracy, at least 2 %."""
    return max(0.02, 1 / M)


def _best(curves: Tradeoff, name: str, M: int) -> tuple[int, int]:
    """The shortest and the longest P whose risk is the least one, as far as the rung can tell."""
    curve = curves.curve(name)
    level = min(row.reducible for row in curve) * (1 + _margin(M))
    near = [row.P for row in curve if row.reducible <= level]
    return min(near), max(near)


def _sentence(curves: Tradeoff, name: str, M: int, covered: bool) -> str:
    """One test length: which split wins, by how much, and whether that is worth having."""
    curve = curves.curve(name)
    best, worst = (choose(curve, key=lambda row: row.reducible) for choose in (min, max))
    where = (
        "Tested at the training length, as in the paper,"
        if name == OWN
        else f"Tested at length {amount(int(name))},"
    )
    ratio = worst.reducible / best.reducible if best.reducible > 0 else 1.0
    tokens = f"{amount(curves.tokens)} tokens and width {M}"
    if len(curve) == 1:
        return f"{where} {tokens} allow one split only, P = {amount(best.P)}."
    if ratio <= 1 + _margin(M):
        good = f" (such a prediction is good to about {100 / M:.2g} %)" if covered else ""
        return (
            f"{where} there is no difference worth having at {tokens}: the worst split, "
            f"P = {amount(worst.P)}, has {ratio:.3f} times the reducible risk of the best, "
            f"P = {amount(best.P)}{good}."
        )
    low, high = _best(curves, name, M)
    share = f"{100 * _margin(M):.2g} %"
    within = f"best to within {share}" if covered else f"best (risks less than {share} apart count as one)"
    shortest, longest = min(row.P for row in curve), max(row.P for row in curve)
    kinds = {
        (True, False): "more, shorter sequences win",
        (False, True): "fewer, longer sequences win",
        (False, False): "a middle length wins",
    }
    span, counts = f"P = {amount(low)}", f"N = {amount(curves.tokens // low)}"
    if low < high:
        span = f"P from {amount(low)} to {amount(high)}"
        counts = f"N = {amount(curves.tokens // high)} to {amount(curves.tokens // low)}"
    if (low, high) == (shortest, longest):
        return (
            f"{where} both ends win over the middle at {tokens}: P = {amount(low)} and P = {amount(high)} "
            f"are {within}, P = {amount(worst.P)} has {ratio:.3g} times the reducible risk."
        )
    return (
        f"{where} {kinds[low == shortest, high == longest]} at {tokens}: {span} ({counts}) is {within}, "
        f"and P = {amount(worst.P)} has {ratio:.3g} times the reducible risk."
    )


def _turns(curves: Tradeoff, M: int) -> list[str]:
    """Say so when the two tests disagree."""
    own = _best(curves, OWN, M)
    for name in curves.best:
        best = _best(curves, name, M)
        if name != OWN and (best[0] > own[1] or own[0] > best[1]):
            return [
                "The two tests disagree because a longer training length is also an easier test: "
                f"compare lengths at the one you care about ({amount(int(name))})."
            ]
    return []
