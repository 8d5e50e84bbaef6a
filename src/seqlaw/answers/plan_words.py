"""What a reader of a plan should know, in sentences: what limits it, what is left over, longer or more."""

from __future__ import annotations

from collections.abc import Iterable

from seqlaw.answers.words import Side, option
from seqlaw.methods.terms import reach
from seqlaw.model.amount import amount, rounded
from seqlaw.planning import plan as planning
from seqlaw.planning.budget import Budget
from seqlaw.planning.search import FinitePlan

_LIMITS = {
    "one": "the least",
    "shortest": "the least",
    "schedule": "the schedule's least",
    "tokens": "all tokens",
    "compute": "all compute",
    "d": "d",
    "longest": "the most computed",
}


def range_words(ends: Iterable[float], limits: Iterable[str | None], side: Side) -> Iterable[str]:
    """The ends of a range; one that is a limit is named."""
    for end, limit in zip(ends, limits, strict=True):
        named = None if limit is None else _LIMITS.get(limit, option(limit, side))
        yield amount(end) if named is None else f"{amount(end)} ({named})"


def unused(plan: planning.Plan) -> list[str]:
    """What of the budgets is left over, and why."""
    best, budget, spent, words = plan.finite.best, plan.budget, _spends(plan), []
    reached = " and ".join(_reached(plan))
    ceiling = f"the ceiling on {reached} is reached" if reached else ""
    left = budget.tokens - best.tokens
    if left > 0.01 * budget.tokens:
        if _whole_sequences_fill(plan):  # tokens limit the plan, though not all are used
            words.append(f"Whole sequences fill {amount(best.tokens)} of the {amount(budget.tokens)} tokens.")
        elif plan.finite.least.tokens <= 0.99 * budget.tokens:
            why = ceiling or f"{'at this compute budget ' * spent}they would not lower the risk"
            also = "the compute is spent, and " * bool(spent and reached)
            words.append(f"The remaining {rounded(left)} tokens are left unused: {also}{why}.")
    if not spent:
        share = 1 - best.compute / budget.compute
        left_over = "Nearly all" if share > 0.995 else f"{100 * share:.0f} %"
        why = ceiling or "more would not lower the risk"
        words.append(f"{left_over} of the compute is left over: {why}.")
    return words


def _reached(plan: planning.Plan) -> list[str]:
    """The sizes at their ceilings, or so near that whole numbers, which fill the budgets better, are why."""
    best, budget = plan.finite.best, plan.budget
    return [size for size in "MNPL" if getattr(best, size) >= 0.98 * getattr(budget, f"max_{size}")]


def _spends(plan: planning.Plan) -> bool:
    """Whether the compute is used up, as far as a whole step goes."""
    best, budget = plan.finite.best, plan.budget
    more = budget.formula(M=best.M, N=best.N, P=best.P, L=best.L + 1)
    return best.compute >= 0.99 * budget.compute or bool(more > budget.compute)


def _whole_sequences_fill(plan: planning.Plan) -> bool:
    """Whether no more whole sequences fit into the tokens: these limit the plan, though not all are used."""
    best, tokens = plan.finite.best, plan.budget.tokens
    return (best.N + 1) * best.P > tokens and best.N * (best.P + 1) > tokens


def finite_notes(plan: planning.Plan) -> list[str]:
    """What a reader of the finite optimum should know."""
    best, budget = plan.finite.best, plan.budget
    notes = []
    if plan.eval_length is None:
        notes.append(
            "Every allocation is tested at its own training length, as in the paper, so P is chosen partly "
            "for an easier test. Give a test length to compare lengths fairly."
        )
    least = plan.finite.least
    if least.P != best.P:
        why = "shortest" if plan.eval_length is None else "closest to the test length"
        notes.append(
            f"Several lengths are within 0.1 % of the least risk (at P = {amount(least.P)}); the planner "
            f"takes the {why}."
        )
    if len(plan.finite.by_length) > 1:  # else there was nothing to choose
        notes += _length_notes(plan.finite, budget)
    notes.append(
        f"This plan uses full-batch training at a peak step size of {plan.schedule.gamma:.3g}: every step "
        "sees all sequences. For a single pass over fresh data use `plan --one-pass`."
    )
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
        return [f"More, shorter sequences win: the best length, {best.P}, is the {shortest}."]
    if best.N == 1 < budget.max_N:
        all_of_them = " takes all the tokens" if best.tokens >= 0.99 * budget.tokens else ""
        return [f"Longer wins: one sequence{all_of_them}."]
    return []


def confirmed(plan: planning.Plan) -> list[str]:
    """What a sample says of the optimum."""
    if plan.unconfirmed:
        return ["Not checked by sampling: the optimum is too large to simulate."]
    if plan.confirmation is None:
        return []
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
