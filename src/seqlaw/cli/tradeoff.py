"""`seqlaw tradeoff`: longer or more at a fixed number of tokens."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from seqlaw.cli.options import (
    Json,
    ModeCount,
    Plot,
    ScheduleOptions,
    TeacherOptions,
    Width,
    modes_or_default,
    size,
    takes,
    width_or_default,
)
from seqlaw.cli.output import (
    merge_flags,
    print_flags,
    print_json,
    print_table,
    print_text,
)
from seqlaw.cli.risk import regime_words
from seqlaw.model.amount import amount
from seqlaw.model.checks import InputError, positive, whole
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import LONGEST, PRESETS
from seqlaw.planning.tradeoff import OWN, split_lengths
from seqlaw.planning.tradeoff import tradeoff as split_tokens
from seqlaw.plot import check_path


@dataclasses.dataclass(frozen=True, kw_only=True)
class SplitOptions(ScheduleOptions, TeacherOptions):
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
        str, typer.Option("--longest", "--max-P", help="Longest training length.", metavar="INT")
    ] = "4096",
    points: Annotated[int, typer.Option(help="How many lengths.")] = 12,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """Longer or more: the risk along P at a fixed number of tokens.

    Each student is tested at its own training length, as in the paper, and at common lengths. With a preset
    as the teacher the picture has the other preset beside it, for comparison.

    Example: seqlaw tradeoff --schedule block -L 30000 --plot longer-or-more.png
    """
    if plot is not None:
        check_path(plot)
    teacher = options.build_teacher()
    setting = Setting(
        teacher=teacher,
        M=width_or_default(options.width, teacher),
        N=1,
        P=2,
        d=modes_or_default(options.modes, teacher),
        schedule=options.build_schedule(),
    )
    budget = whole("tokens", positive("tokens", tokens), least=2)
    common = [int(size("test", text)) for text in test or ("16", "4096")]
    most = whole("longest", size("longest", longest), least=2, most=LONGEST)
    least = whole("shortest", size("shortest", shortest))
    for limit, words in ((most, "--longest"), (budget, "the tokens")):
        if least > limit:
            raise InputError("shortest", f"must be at most {words}, {limit}", least)
    lengths = split_lengths(budget, whole("points", points, least=2, most=1000), least=least, most=most)
    answer = split_tokens(setting, budget, lengths=lengths, eval_lengths=common)
    flags = merge_flags(answer.flags, "P", [row.P for row in answer.rows])
    if plot is not None:
        from seqlaw.plot import draw_tradeoff

        answers = [answer]
        if teacher in PRESETS.values():  # a preset as it is: show the other beside it
            others = [dataclasses.replace(setting, teacher=t) for t in PRESETS.values() if t != teacher]
            answers += [split_tokens(other, budget, lengths=lengths, eval_lengths=common) for other in others]
        draw_tradeoff(answers, plot)
    if json:
        rows = [
            {
                k: getattr(row, k)
                for k in ("P", "N", "tested", "eval_length", "approx", "bias", "variance", "reducible")
            }
            for row in answer.rows
        ]
        print_json(
            "tradeoff",
            {
                "teacher": teacher,
                "M": setting.M,
                "d": setting.d,
                "schedule": setting.schedule,
                "tokens": budget,
                "lengths": lengths,
                "tests": common,
            },
            {"regime": answer.regime, "rows": rows, "best": answer.best, "flags": flags},
        )
        return
    print_text(options.describe(teacher))
    names = [OWN, *(str(P) for P in common)]
    table = []
    for k, P in enumerate(lengths):
        table.append((amount(P), amount(budget // P), *(answer.curve(name)[k].reducible for name in names)))
    print_table(
        table,
        header=("P", "N", "at own length", *(f"at {P}" for P in common)),
        title=f"{regime_words(setting)}: reducible risk at {amount(budget)} tokens, "
        f"M={amount(setting.M)}, d={amount(setting.d or 0)}, {amount(setting.schedule.L)} steps",
    )
    for name in names:
        low, high = answer.best[name]
        where = "its own length" if name == OWN else f"length {amount(int(name))}"
        print(f"tested at {where}: best P {amount(low)}{'' if low == high else f' to {amount(high)}'}")
    print_flags(flags)
