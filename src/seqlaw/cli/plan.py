"""`seqlaw plan`: the best allocation of a budget, beside the paper's corollary."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Any

import typer

from seqlaw.cli.options import (
    Json,
    KindOptions,
    Plot,
    Seed,
    TeacherOptions,
    jobs_or_all,
    size,
    takes,
)
from seqlaw.cli.output import (
    print_flags,
    print_json,
    print_table,
    print_text,
    progress_bar,
)
from seqlaw.model.amount import amount
from seqlaw.model.checks import InputError, positive
from seqlaw.planning import plan as planning
from seqlaw.planning.budget import Budget
from seqlaw.planning.corollary import SIZES, Exponents
from seqlaw.planning.program import SETTINGS, Program
from seqlaw.plot import check_path
from seqlaw.rungs.terms import SUMS, TERMS


@dataclasses.dataclass(frozen=True, kw_only=True)
class PlanOptions(KindOptions, TeacherOptions):
    """A teacher and the kind of schedule; its length is what the plan chooses."""


def _ceiling(field: str, text: str | None) -> float:
    return math.inf if text is None else size(field, text)


@takes(PlanOptions)
def plan(
    options: PlanOptions,
    compute: Annotated[str, typer.Option(help="Compute C = N·P·M²·L.", metavar="NUMBER")] = "1e15",
    tokens: Annotated[str, typer.Option(help="Tokens T that may be used.", metavar="NUMBER")] = "1e9",
    flops: Annotated[
        bool, typer.Option("--flops", help=f"--compute is in FLOPs, {planning.FLOPS_PER_UNIT} a unit.")
    ] = False,
    eval_length: Annotated[
        str | None,
        typer.Option(help="Length of the test sequences.  [default: the training length]", metavar="INT"),
    ] = None,
    modes: Annotated[
        str | None,
        typer.Option(
            "--modes",
            "-d",
            help="Latent dimensions d.  [default: inf, so that d never limits M]",
            metavar="INT|inf",
        ),
    ] = None,
    max_M: Annotated[str | None, typer.Option("--max-M", help="Widest student.", metavar="INT")] = None,
    max_N: Annotated[str | None, typer.Option("--max-N", help="Most trajectories.", metavar="INT")] = None,
    max_P: Annotated[str | None, typer.Option("--max-P", help="Longest trajectory.", metavar="INT")] = None,
    max_L: Annotated[str | None, typer.Option("--max-L", help="Most steps.", metavar="INT")] = None,
    min_P: Annotated[
        str, typer.Option("--min-P", help="Shortest trajectory (below 2 means 2).", metavar="INT")
    ] = "1",
    confirm: Annotated[
        bool | None,
        typer.Option(
            "--confirm/--no-confirm",
            help="Sample the optimum, in up to minutes.  [default: where data are few]",
        ),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """The best allocation of a budget, beside the paper's corollary.

    Example: seqlaw plan --compute 1e18 --tokens 1e10 --eval-length 4096
    """
    if plot is not None:
        check_path(plot)
    unit = planning.FLOPS_PER_UNIT if flops else 1
    shortest, longest = size("min_P", min_P), _ceiling("max_P", max_P)
    if shortest > longest:
        raise InputError("min_P", f"must be at most --max-P = {longest}", shortest)
    budget = Budget(
        compute=positive("compute", compute) / unit,
        tokens=positive("tokens", tokens),
        max_M=_ceiling("max_M", max_M),
        max_N=_ceiling("max_N", max_N),
        max_P=longest,
        max_L=_ceiling("max_L", max_L),
        min_P=shortest,
    )
    teacher = options.build_teacher()
    schedule = options.build_kind()
    with progress_bar("data sets") as progress:
        answer = planning.plan(
            teacher,
            budget,
            schedule=schedule,
            d=None if modes is None else size("d", modes, infinite=True),
            eval_length=None if eval_length is None else int(size("eval_length", eval_length)),
            confirm=confirm,
            seed=seed,
            workers=jobs_or_all(None),
            progress=progress,
        )
    if plot is not None:
        from seqlaw.plot import draw_plan

        draw_plan(answer, plot)
    fields = plan_fields(answer)
    if json:
        fields["flops"] = {"factor": planning.FLOPS_PER_UNIT, "given_in_flops": flops}
        inputs = {
            "teacher": teacher,
            "budget": budget,
            "schedule": {"kind": schedule.name, "gamma": schedule.gamma},
            # Of wsd only: the fractions that were used, given or not.
            "warmup": getattr(schedule, "warmup", None),
            "decay": getattr(schedule, "decay", None),
            "d": "inf" if answer.d == math.inf else int(answer.d),
            "eval_length": answer.eval_length,
            "confirm": confirm,
            "seed": seed,
        }
        print_json("plan", inputs, fields)
        return
    print_text(options.describe(teacher))
    why = " (the default: d never limits M)" if modes is None and answer.d == math.inf else ""
    _print_plan(answer, unit, "FLOPs" if flops else "compute", why)


def plan_fields(answer: planning.Plan) -> dict[str, Any]:
    """The JSON fields of a plan."""
    law, best, risk = answer.corollary, answer.finite.best, answer.finite.risk
    return {
        "regime": answer.regime,
        "phase": answer.phase,
        "K": answer.K,
        "tau": answer.tau,
        "corollary": None
        if law is None
        else {
            **_sizes(law.exponents, answer),
            "exponents": dataclasses.asdict(law.exponents),
        },
        "program": {name: _program_fields(answer.programs[name], answer.K) for name in SETTINGS},
        "finite": {
            **{s: getattr(best, s) for s in ("M", "N", "P", "L", "compute", "tokens")},
            "terms": {name: getattr(risk, name) for name in (*TERMS, *SUMS)},
            "accuracy": dict(risk.accuracy),
            "eval_length": risk.eval_length,
            "flat": answer.finite.flat,
            "isoflop": [dataclasses.asdict(point) for point in answer.finite.isoflop],
            "by_length": [dataclasses.asdict(point) for point in answer.finite.by_length],
        },
        "confirmation": None
        if answer.confirmation is None
        else {
            "reducible": answer.confirmation.reducible,
            "standard_error": answer.confirmation.standard_error.get("reducible"),
            "d": answer.confirmation_d,
        },
        "notes": answer.notes,
        "flags": answer.flags,
    }


def _sizes(exponents: Exponents, answer: planning.Plan) -> dict[str, float]:
    """The sizes that exponents mean at this K, with constants of one."""
    powers = {s: float(answer.K ** getattr(exponents, s)) for s in SIZES}
    return {"M": powers["M"], "N": powers["N"], "P": powers["P"], "L": powers["R"] / answer.gamma}


def _program_fields(result: Program | None, K: float) -> dict[str, Any] | None:
    if result is None:
        return None
    return {
        **{s: K ** getattr(result.exponents, s) for s in SIZES},
        "risk": result.exponents.risk,
        "exponents": dataclasses.asdict(result.exponents),
        "ranges": result.ranges,
        "binding": result.binding,
    }


PROGRAMS = {
    "corollary": "corollary, as printed",
    "paper": "paper: spend all, conditions",
    "proved": "proved: ceilings, conditions",
    "free": "free: ceilings, risk alone",
}
"""What each row of the rates assumes."""


def _print_plan(answer: planning.Plan, unit: int, compute: str, why: str) -> None:
    """`why` says how the plan came to its d."""
    best, risk = answer.finite.best, answer.finite.risk
    tested = "its own length" if answer.eval_length is None else f"length {amount(answer.eval_length)}"
    print(f"Regime {answer.regime}, d = {amount(answer.d)}{why}, tested at {tested}")
    print_table(
        [
            (
                s,
                f"{getattr(best, s):,}",
                *map(amount, answer.finite.flat[s]),
            )
            for s in ("M", "N", "P", "L")
        ],
        header=("size", "best", "1 % from", "to"),
        title=f"Least risk with {amount(best.tokens)} of {amount(answer.budget.tokens)} tokens "
        f"and {amount(best.compute * unit)} of {amount(answer.budget.compute * unit)} {compute}",
    )
    least = min(p.reducible for p in answer.finite.by_length)  # of the same, quicker sums
    others = [
        (amount(p.P), f"{p.reducible / least:.2f}", *map(amount, (p.M, p.N, p.L)))
        for p in answer.finite.by_length
    ]
    print_table(others, header=("if P were", "risk over the best", "M", "N", "L"))
    rows = [(name, getattr(risk, name), risk.accuracy.get(name, "")) for name in (*TERMS, *SUMS)]
    if answer.confirmation is not None:
        error = answer.confirmation.standard_error.get("reducible", math.nan)
        sampled = f"± {error:.2g}, at d = {answer.confirmation_d}"
        rows.insert(-1, ("reducible, sampled", answer.confirmation.reducible, sampled))
    print_table(rows, header=("term", "value", "uncertainty"))
    if answer.corollary is not None:
        lines = [(PROGRAMS["corollary"], answer.corollary.exponents)]
        lines += [(PROGRAMS[name], p.exponents) for name, p in answer.programs.items() if p is not None]
        print_table(
            [(name, *(f"{getattr(e, s):.4f}" for s in (*SIZES, "risk"))) for name, e in lines],
            header=("powers of K", *SIZES, "risk"),
            title=f"Rates in powers of K = gamma C = {amount(answer.K)}; "
            f"T = K^{answer.tau:.3g}, {answer.phase}",
        )
        print_table(
            [(name, *(amount(x) for x in _sizes(e, answer).values())) for name, e in lines],
            header=("sizes", "M", "N", "P", "L"),
            title="The same as sizes, with every constant one: rates do not know the constants.",
        )
    for note in answer.notes:
        print_text(note, lead="- ")
    print_flags(answer.flags)
