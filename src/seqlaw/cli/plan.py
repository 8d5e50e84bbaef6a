"""`seqlaw plan`: the best allocation of a budget, beside the paper's corollary."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated

import typer

from seqlaw.answers.one_pass import plan_one_pass
from seqlaw.answers.plan import plan as make_plan
from seqlaw.cli.options import (
    Cost,
    Json,
    KindOptions,
    Mixture,
    Plot,
    Seed,
    TeacherOptions,
    Window,
    jobs_or_all,
    load_mixture,
    size,
    takes,
)
from seqlaw.cli.output import show
from seqlaw.cli.progress import Progress, progress_bar
from seqlaw.model.checks import InputError, positive
from seqlaw.model.schedule import GAMMA
from seqlaw.model.uncertain import Uncertain
from seqlaw.planning.budget import PAPER_COST, Budget
from seqlaw.planning.plan import FLOPS_PER_UNIT
from seqlaw.planning.uncertain import DRAWS


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
        bool, typer.Option("--flops", help=f"--compute is in FLOPs, {FLOPS_PER_UNIT} a unit.")
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
        bool, typer.Option("--confirm/--no-confirm", help="Sample the optimum, in up to minutes.")
    ] = False,
    cost: Cost = PAPER_COST,
    lengths: Mixture = None,
    window: Window = None,
    one_pass: Annotated[
        bool, typer.Option("--one-pass", help="Fresh mini-batches, once: chooses the batch and the step too.")
    ] = False,
    rates: Annotated[
        bool, typer.Option("--rates", help="The paper's exponents and the optimal ones too.")
    ] = False,
    draws: Annotated[
        int, typer.Option(help="Teachers drawn where a number is an interval.", metavar="INT")
    ] = DRAWS,
    seed: Seed = 0,
    progress: Progress = "auto",
    json: Json = False,
    plot: Plot = None,
) -> None:
    """The best allocation of a budget.

    A teacher's number may be an interval, LOW:HIGH: then how far the best moves, and what one choice loses.
    With --lengths a mixture is held fixed and compared with the best single length (of --min-P to --max-P).

    Example: seqlaw plan --compute 1e18 --tokens 1e10 --eval-length 4096 --alpha 1.7:1.9
    """
    if flops and cost != PAPER_COST:
        raise InputError("flops", f"goes with the paper's cost, {PAPER_COST}, only", cost)
    unit = FLOPS_PER_UNIT if flops else 1
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
        cost=cost,
    )
    mixture = load_mixture(lengths, window)
    if one_pass:
        if mixture is not None:
            rule = "cannot be given with --one-pass; risk --batch and tradeoff --batch take a mixture"
            raise InputError("lengths", rule, lengths)
        for name, given in (("confirm", confirm), ("rates", rates), ("flops", flops)):
            if given:
                raise InputError(name, "cannot be given with --one-pass", given)
        if options.gamma not in (str(GAMMA), "best"):
            raise InputError("gamma", "is chosen by --one-pass: leave it out", options.gamma)
        answer_once = plan_one_pass(
            options.build_teacher("must be one number with --one-pass"),
            budget,
            schedule=options.build_kind(),
            d=None if modes is None else size("d", modes, infinite=True),
            eval_length=None if eval_length is None else int(size("eval_length", eval_length)),
        )
        show(answer_once, as_json=json, plot=plot)
        return
    if options.tune:
        raise InputError("gamma", "can be best with --one-pass only", options.gamma)
    if rates and mixture is not None:
        raise InputError("rates", "are about one length: leave it out with --lengths", rates)
    teacher = options.build_uncertain()
    schedule = options.build_kind()
    with progress_bar("teachers" if isinstance(teacher, Uncertain) else "data sets", progress) as bar:
        answer = make_plan(
            teacher,
            budget,
            schedule=schedule,
            d=None if modes is None else size("d", modes, infinite=True),
            eval_length=None if eval_length is None else int(size("eval_length", eval_length)),
            confirm=confirm,
            draws=draws,
            seed=seed,
            workers=jobs_or_all(None),
            progress=bar,
            lengths=mixture,
        )
    show(dataclasses.replace(answer, flops=flops, rates=rates), as_json=json, plot=plot)
