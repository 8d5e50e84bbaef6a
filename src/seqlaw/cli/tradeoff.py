"""`seqlaw tradeoff`: longer or more at a fixed number of tokens."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from seqlaw.answers.tradeoff import tradeoff as split_tokens
from seqlaw.cli.options import (
    BatchOptions,
    Cost,
    Json,
    Mixture,
    ModeCount,
    Plot,
    ScheduleOptions,
    TeacherOptions,
    Width,
    Window,
    load_mixture,
    modes_or_default,
    size,
    takes,
    width_or_default,
)
from seqlaw.cli.output import show
from seqlaw.model.checks import InputError, positive, whole
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import LONGEST
from seqlaw.planning.budget import PAPER_COST
from seqlaw.planning.tradeoff import split_lengths, usable


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitOptions(BatchOptions, ScheduleOptions, TeacherOptions):
    """A student whose N and P are what the tradeoff varies."""

    width: Width = None
    modes: ModeCount = None


@takes(SplitOptions)
def tradeoff(
    options: SplitOptions,
    tokens: Annotated[str, typer.Option(help="Tokens N·P to split.", metavar="NUMBER")] = "16777216",
    test: Annotated[
        list[str] | None,
        typer.Option(
            "--test",
            "--eval-length",
            help="A common test length; may be repeated.  [default: 16, 4096]",
            metavar="INT",
        ),
    ] = None,
    shortest: Annotated[
        str, typer.Option("--shortest", "--min-P", help="Shortest training length.", metavar="INT")
    ] = "2",
    longest: Annotated[
        str | None,
        typer.Option(
            "--longest",
            "--max-P",
            help="Longest training length.  [default: 4096, or what the tokens allow]",
            metavar="INT",
        ),
    ] = None,
    points: Annotated[int, typer.Option(help="How many lengths.")] = 12,
    compute: Annotated[
        str | None, typer.Option(help="Compute that no run may exceed.  [default: any]", metavar="NUMBER")
    ] = None,
    cost: Cost = PAPER_COST,
    lengths: Mixture = None,
    window: Window = None,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """Longer or more: the risk along P at a fixed number of tokens.

    Each student is tested at its own training length, as in the paper, and at common lengths. With a preset
    as the teacher the picture has the other preset beside it, for comparison. With --lengths a mixture with
    the same tokens stands beside the single lengths.

    Example: seqlaw tradeoff --schedule block -L 30000 --plot longer-or-more.png
    """
    teacher, one_pass = options.build_teacher(), options.one_pass()
    if one_pass["batch"] is None and options.tune:
        raise InputError("gamma", "can be best in one pass only (give --batch)", options.gamma)
    if one_pass["batch"] is not None and (options.steps or options.horizon):
        raise InputError(
            "tokens", "set the steps with --batch: leave out -L/--steps and -R/--horizon", tokens
        )
    d = modes_or_default(options.modes, teacher)
    setting = Setting(
        teacher=teacher,
        M=width_or_default(options.width, teacher, d),
        N=1 if one_pass["batch"] is None else None,
        P=2,
        d=d,
        schedule=options.build_schedule(),
        **one_pass,
    )
    budget = whole("tokens", positive("tokens", tokens), least=2)
    common = [int(size("test", text)) for text in test or ("16", "4096")]
    most = None if longest is None else whole("longest", size("longest", longest), least=2, most=LONGEST)
    if most is None and window is not None:
        most = min(budget, int(size("window", window)))  # no single length is longer than the context
    least = whole("shortest", size("shortest", shortest))
    if most is not None and most > budget:
        raise InputError("longest", f"must be at most the tokens, {budget}", most)
    for limit, words in ((budget, "the tokens"), (most or budget, "--longest")):
        if least > limit:
            raise InputError("shortest", f"must be at most {words}, {limit}", least)
    count = whole("points", points, least=2, most=1000)
    ceiling = None if compute is None else positive("compute", compute)
    singles = split_lengths(setting, usable(setting, budget, ceiling, cost), count, least=least, most=most)
    answer = split_tokens(
        setting,
        budget,
        lengths=singles,
        eval_lengths=common,
        compute=ceiling,
        cost=cost,
        tune=options.tune,
        mixture=load_mixture(lengths, window),
    )
    show(answer, as_json=json, plot=plot)
