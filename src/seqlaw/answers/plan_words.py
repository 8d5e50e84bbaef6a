"""A plan in sentences: what to train, what is left over, how other choices compare."""

from __future__ import annotations

import math
from collections.abc import Iterable

from seqlaw.answers.risk import DEARER, two_digits
from seqlaw.answers.words import Side, beaten_words, option
from seqlaw.methods.terms import reach
from seqlaw.model.amount import amount, rounded
from seqlaw.model.lengths import words
from seqlaw.planning.budget import Allocation, Budget
from seqlaw.planning.epochs import Epochs
from seqlaw.planning.one_pass import OnePass
from seqlaw.planning.plan import Plan
from seqlaw.planning.search import FinitePlan
from seqlaw.planning.uncertain import Choice, Over

_LIMITS = {
    "one": "the least",
    "shortest": "the least",
    "schedule": "the schedule's least",
    "tokens": "all tokens",
    "compute": "all compute",
    "d": "d",
    "longest": "the most computed",
}
_WIDE = 1.5  # a range of lengths that is worth its words


def plan_sentence(plan: Plan) -> str:
    """The answer: what to train, and the one thing to know beside it."""
    if isinstance(plan.finite, OnePass):
        once = plan.finite.setting
        each = f"{amount(once.batch or 0)} a step" if once.batch != 1 else "one a step"
        used = "once" if once.epochs == 1 else f"{once.epochs} times"
        step = f"{each}, each used {used}, with a peak step size of {once.schedule.gamma:.3g}"
        beside = (
            [_over_one_pass(plan.finite)]
            if isinstance(plan.finite, Epochs)
            else [_critical(plan.finite), *unused(plan)]
        )
        return " ".join([_train(plan.best, f"length {amount(plan.best.P)}", step), *beside]) + _own_test(plan)
    step = f"with a peak step size of {plan.schedule.gamma:.3g}" if plan.tune else ""
    if (p := plan.schedule.precondition) > 0:
        step += f"{', ' * bool(step)}preconditioned with p = {p:g}"
    if plan.over is not None:
        over = f"{_over_words(plan.over)}{_own_test(plan)}"
        return f"{_train(plan.best, f'length {amount(plan.best.P)}', step)} {over}"
    if plan.single is not None:
        other = ", ".join(f"{size} = {amount(getattr(plan.single.best, size))}" for size in "MNPL")
        single = beaten_words(plan.ratio, plan.ratio_error)
        return f"{_train(plan.best, mixture_words(plan), step)} {single[0].upper()}{single[1:]} ({other})."
    said = [_train(plan.best, f"length {amount(plan.best.P)}", step), *_as_good(plan.finite), *unused(plan)]
    return " ".join(said) + _own_test(plan)


def _own_test(plan: Plan) -> str:
    """That lengths were compared at different tests, if they were."""
    if plan.eval_length is not None:
        return ""
    return (
        " Each length is tested at itself, and long tests are easier. Give a test length to compare fairly."
    )


def mixture_words(plan: Plan) -> str:
    """The mixture as trained on: of a file's lengths the rarest may have no sequence."""
    return words(plan.setting.P)


def _train(best: Allocation, lengths: str, how: str = "") -> str:
    about = "" if amount(best.N) == rounded(best.N) else "about "
    sequences = f"{about}{rounded(best.N)} sequence{'s' * (best.N > 1)} of {lengths}"
    return f"Train M = {amount(best.M)} on {sequences} for {rounded(best.L)} steps{', ' * bool(how)}{how}."


def _over_one_pass(found: Epochs) -> str:
    ratio = found.once.reducible / found.risk.reducible
    if found.setting.epochs == 1 and ratio == 1:
        return "Under these budgets repeating is not worth its compute."
    return f"The best single pass under the same budgets leaves {ratio:.3g} times the reducible risk."


def _critical(once: OnePass) -> str:
    if math.isinf(once.critical_tokens):
        return "No batch that these tokens allow is too large."
    tokens = two_digits(once.critical_tokens)
    return f"Beyond about {tokens} tokens a step, bias + variance are {DEARER}."


def _as_good(finite: FinitePlan) -> list[str]:
    """Other lengths that do as well."""
    low, high = finite.flat["P"]
    if high < _WIDE * low:
        return []
    inside = [point for point in finite.by_length if low <= point.P <= high]
    rough = any(point.reducible > 1.015 * finite.least.reducible for point in inside)
    where = " at which whole sequences fill the tokens" * rough
    return [f"Any P from {rounded(low)} to {rounded(high)}{where} costs about 1 % more at most."]


def _over_words(over: Over) -> str:
    low, high = amount(over.spread["M"].low), amount(over.spread["M"].high)
    runs = f"runs from {low} to {high}" if low != high else f"is {low}"
    return f"This choice {loss_words(over.single)}; the best M {runs} for 8 in 10 teachers drawn."


def loss_words(choice: Choice) -> str:
    """What one choice for all teachers costs."""
    return f"loses {_percent(choice.mean)} of the risk on average and {_percent(choice.worst)} at worst"


def _percent(share: float) -> str:
    """Two digits: a draw more or less moves the second."""
    return "nothing" if share < 5e-5 else f"{100 * share:.2g} %"


def range_words(ends: Iterable[float], limits: Iterable[str | None], side: Side) -> Iterable[str]:
    """The ends of a range; one that is a limit is named."""
    for end, limit in zip(ends, limits, strict=True):
        named = None if limit is None else _LIMITS.get(limit, option(limit, side))
        yield amount(end) if named is None else f"{amount(end)} ({named})"


def unused(plan: Plan) -> list[str]:
    """What of the budgets is left over, and why."""
    best, budget, spent, found = plan.finite.best, plan.budget, _spends(plan), []
    reached = " and ".join(
        # At its ceiling, or so near that whole numbers, which fill the budgets better, are why.
        size
        for size in "MNPL"
        if getattr(best, size) >= 0.98 * getattr(budget, f"max_{size}")
    )
    ceiling = f"the ceiling on {reached} is reached" if reached else ""
    left = budget.tokens - best.tokens
    if left > 0.01 * budget.tokens:
        least = plan.finite.least if isinstance(plan.finite, FinitePlan) else best
        # No more whole sequences fit: tokens limit the plan, though not all are used.
        one = best.N // best.L if isinstance(plan.finite, OnePass) else 1  # in one pass a whole batch
        if (best.N + one) * best.P > budget.tokens and best.N * (best.P + 1) > budget.tokens:
            whole, filled = "sequences" if one == 1 else "batches", amount(best.tokens)
            found.append(f"Whole {whole} fill {filled} of the {amount(budget.tokens)} tokens.")
        elif least.tokens <= 0.99 * budget.tokens:
            why = ceiling or f"{'at this compute budget ' * spent}they would not lower the risk"
            also = "the compute is spent, and " * bool(spent and reached)
            found.append(f"The remaining {rounded(left)} tokens are left unused: {also}{why}.")
    if not spent:
        share = 1 - best.compute / budget.compute
        left_over = "Nearly all" if share > 0.995 else f"{100 * share:.0f} %"
        found.append(
            f"{left_over} of the compute is left over: {ceiling or 'more would not lower the risk'}."
        )
    return found


def _spends(plan: Plan) -> bool:
    """Whether the compute is used up, as far as a whole step goes."""
    best, budget = plan.finite.best, plan.budget
    a_step = best.N // best.L if isinstance(plan.finite, OnePass) else best.N
    more = budget.formula(M=best.M, N=a_step, P=best.P, L=best.L + 1)
    return best.compute >= 0.99 * budget.compute or bool(more > budget.compute)


def finite_notes(plan: Plan) -> list[str]:
    """What a reader of the optimum may act on, then what else is known of it."""
    return [*act_on(plan), *_other_lengths(plan)]


def act_on(plan: Plan) -> list[str]:
    """What was assumed and can be asked for otherwise."""
    if plan.single is not None:
        if plan.eval_length is not None:
            return [f"Both are tested at length {plan.eval_length:,}."]
        return [
            "Each is tested on what it was trained on, so the tests differ: the mixture on the mixture, a "
            "single length at that length. Give a test length to compare them fairly."
        ]
    if isinstance(plan.finite, OnePass):
        return []
    notes = []
    at = "" if plan.tune else f" at a peak step size of {plan.schedule.gamma:.3g}"
    notes.append(
        f"This plan uses full-batch training{at}: every step "
        "sees all sequences. For a single pass over fresh data use `plan --one-pass`."
    )
    return notes


def _other_lengths(plan: Plan) -> list[str]:
    finite, budget = plan.finite, plan.budget
    if isinstance(finite, Epochs):
        return [
            "A doubling of the epochs must lower the risk by at least 1 %. Ranges and other sizes are those "
            "that the search looked at, accurate to 2 % of the risk."
        ]
    if isinstance(finite, OnePass):
        return [
            "If the width or the length changes, the other sizes and the step size are chosen again; if the "
            "batch changes, the length is kept. The best and its ranges are accurate to about 0.3 % of the "
            "risk, other lengths to 2 %."
        ]
    if plan.single is not None:
        return []
    notes, best, least = [], finite.best, finite.least
    if least.P != best.P:
        why = "shortest" if plan.eval_length is None else "closest to the test length"
        notes.append(
            f"Several lengths are within 0.1 % of the least risk (at P = {amount(least.P)}); the planner "
            f"takes the {why}."
        )
    if len(finite.by_length) > 1:  # else there was nothing to choose
        notes += _length_notes(finite, budget)
    return notes


def _length_notes(finite: FinitePlan, budget: Budget) -> list[str]:
    """Longer or more, in a sentence, where one can be said."""
    best, (low, high) = finite.best, finite.flat["P"]
    if high > 4 * low:
        least = min(point.reducible for point in finite.by_length)
        costs = [
            f"P = {amount(point.P)} costs {point.reducible / least:.3g} times the risk"
            for point in (finite.by_length[0], finite.by_length[-1])
            if point.reducible > 1.05 * least
        ]
        outside = f" Outside it does: {', '.join(costs)}." if costs else ""
        return [f"Length hardly matters from P = {amount(low)} to {amount(high)}.{outside}"]
    if best.P <= budget.shortest:
        shortest = "shortest considered" if budget.min_P <= 2 else "shortest allowed"
        return [f"More and shorter sequences win: the best length, {best.P}, is the {shortest}."]
    if best.N == 1 < budget.max_N:
        all_of_them = " takes all the tokens" if best.tokens >= 0.99 * budget.tokens else ""
        return [f"Longer wins: one sequence{all_of_them}."]
    return []


def confirmed(plan: Plan) -> list[str]:
    """What a sample says of the optimum."""
    if not plan.confirm:
        return []
    if plan.confirmation is None:
        return ["Not checked by sampling: the optimum is too large to simulate."]
    seen, told, d = plan.confirmation.risk, plan.confirmation.told, plan.confirmation.d
    error = seen.standard_error["reducible"]
    near = (
        abs(seen.reducible - told.reducible)
        < reach(seen.drawn, 0.99) * error + told.reducible / plan.finite.best.M
    )
    return [
        f"Sampled at these sizes with d = {d}: {seen.reducible:.3g} ± {error:.1g}, which "
        f"{'agrees with' if near else 'DIFFERS from'} the equivalent's {told.reducible:.3g} at that d."
    ]
