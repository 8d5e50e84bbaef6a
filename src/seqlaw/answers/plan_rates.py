"""The corollary and the programs beside a plan: exponents, sizes, and where they differ and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from seqlaw.answers.render import Block, Table
from seqlaw.model.amount import amount
from seqlaw.model.assumptions import teacher_flags
from seqlaw.model.teacher import Modes
from seqlaw.planning.budget import PAPER_COST
from seqlaw.planning.corollary import SIZES, Exponents
from seqlaw.planning.plan import Plan
from seqlaw.planning.program import SETTINGS, Program

PROGRAMS = {
    "corollary": "corollary, as printed",
    "paper": "paper: spend all, conditions",
    "proved": "proved: ceilings, conditions",
    "free": "free: ceilings, risk alone",
}
"""What each row of the rates assumes."""


def rate_fields(plan: Plan) -> Mapping[str, Any]:
    """The corollary and the programs as `--json` has them."""
    law = plan.corollary
    return {
        "tau_crit": None if law is None else law.tau_crit,
        "corollary": None
        if law is None
        else {**_sizes(plan, law.exponents), "exponents": asdict(law.exponents)},
        "program": {name: _program(plan, plan.programs[name]) for name in SETTINGS},
    }


def _sizes(plan: Plan, exponents: Exponents) -> dict[str, float]:
    """The sizes that exponents mean at this K, with constants of one."""
    powers = {s: float(plan.K ** getattr(exponents, s)) for s in SIZES}
    return {"M": powers["M"], "N": powers["N"], "P": powers["P"], "L": powers["R"] / plan.schedule.gamma}


def _program(plan: Plan, result: Program | None) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        **{s: plan.K ** getattr(result.exponents, s) for s in SIZES},
        "risk": result.exponents.risk,
        "exponents": asdict(result.exponents),
        "ranges": result.ranges,
        "binding": result.binding,
    }


def rate_tables(plan: Plan) -> Iterable[Block]:
    """The corollary and the three programs, as powers of K and as sizes."""
    if plan.corollary is None:
        return
    lines = [(PROGRAMS["corollary"], plan.corollary.exponents)]
    lines += [(PROGRAMS[name], p.exponents) for name, p in plan.programs.items() if p is not None]
    yield Table(
        rows=[(name, *(f"{getattr(e, s):.4f}" for s in (*SIZES, "risk"))) for name, e in lines],
        header=("powers of K", *SIZES, "risk"),
        title=f"Rates in powers of K = gamma C = {amount(plan.K)}; T = K^{plan.tau:.3g}, "
        f"{plan.corollary.phase}",
    )
    yield Table(
        rows=[(name, *(amount(x) for x in _sizes(plan, e).values())) for name, e in lines],
        header=("sizes", "M", "N", "P", "L"),
        title="The same as sizes. Rates have no constants, so every constant is set to 1.",
    )


def rate_notes(plan: Plan) -> list[str]:
    """Where the corollary and the three programs differ, and why."""
    if isinstance(plan.teacher, Modes):
        return ["The teacher is given as arrays: no exponents, so neither corollary nor program applies."]
    law = plan.corollary
    if plan.budget.cost != PAPER_COST:
        return [f"The rates are about the paper's cost, {PAPER_COST}: neither corollary nor program applies."]
    if plan.schedule.plain is not plan.schedule:
        return ["The rates are about plain descent: neither corollary nor program applies."]
    if teacher_flags(plan.teacher):
        return ["Outside the theorem (see the flags), so neither corollary nor program applies."]
    if law is None:
        return [f"K = gamma * C = {plan.K:.3g} is not above 1: rates say nothing at this budget."]
    notes = []
    theta, r, tau, printed = plan.teacher.theta, plan.teacher.r, plan.tau, law.exponents.risk
    paper, proved, free = (plan.programs[name] for name in SETTINGS)
    if paper is None:
        notes.append(
            f"No allocation of T = K^{tau:.3g} tokens can spend all the compute under the theorem's sample "
            "conditions; the corollary assumes that it is spent. Treat compute as a ceiling (`proved`)."
        )
    elif paper.exponents.risk < printed - 1e-9:
        if law.regime == "II" and law.exponents.P < 0:
            cause = f"tau = {tau:.3g} < (theta+1)/(2theta+3), so the corollary's P* is below 1"
        elif law.regime == "II" and theta + 6 * r > 6:
            cause = "theta + 6r > 6: shorter sequences win, the corollary's P* is not optimal"
        else:
            cause = "theta + 3r < 3/2 in the token-limited phase: a longer P than the corollary's wins"
        notes.append(
            f"The corollary's risk exponent {printed:.4g} is not optimal under its own conditions "
            f"({paper.exponents.risk:.4g} is): {cause}."
        )
    if proved is not None and paper is not None and proved.exponents.risk < paper.exponents.risk - 1e-9:
        notes.append(
            f"Budgets are ceilings: not spending all the compute improves the risk exponent from "
            f"{paper.exponents.risk:.4g} to {proved.exponents.risk:.4g}. In the token-limited phase the "
            "corollary's risk gets worse with more compute: its sample condition ties R to the tokens."
        )
    if free is not None and proved is not None and free.exponents.risk < proved.exponents.risk - 1e-9:
        notes.append(
            "Only the proof needs the sample conditions NP >~ RM and N >~ RM: without them the risk "
            f"exponent is {free.exponents.risk:.4g} instead of {proved.exponents.risk:.4g} (M grows as "
            f"K^{free.exponents.M:.3g} instead of K^{proved.exponents.M:.3g})."
        )
    if free is not None and free.ranges["P"][1] - free.ranges["P"][0] > 1e-6:
        low, high = free.ranges["P"]
        notes.append(
            f"The rates do not determine the length: every P from K^{low:.3g} to K^{high:.3g} has the best "
            "exponent. The constants decide, and the allocation above includes them."
        )
    if plan.eval_length is not None:
        notes.append("The rates assume a test at the training length.")
    return notes
