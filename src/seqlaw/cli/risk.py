"""`seqlaw risk`: the five terms at one point."""

from __future__ import annotations

from typing import Annotated

import typer

from seqlaw.cli.options import SettingOptions, takes
from seqlaw.cli.output import print_flags, print_json, print_table
from seqlaw.model.checks import whole
from seqlaw.rungs import ask
from seqlaw.rungs.terms import TERMS

Rung = Annotated[str, typer.Option(help=f"One of {', '.join(ask.RUNGS)}.")]
Sketches = Annotated[int, typer.Option(help="Sketches to average over (random rungs).")]
Repetitions = Annotated[int, typer.Option(help="Data sets a sketch (sampled rung).")]
Seed = Annotated[int, typer.Option(help="Seed of every random number.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]


@takes(SettingOptions)
def risk(
    options: SettingOptions,
    rung: Rung = "exact",
    sketches: Sketches = 4,
    repetitions: Repetitions = 2,
    seed: Seed = 0,
    json: Json = False,
) -> None:
    """The five terms of the student's risk at one point.

    Example: seqlaw risk --teacher regime2 -M 64 -P 32 --eval-length 256
    """
    setting = options.build()
    whole("seed", seed, least=0)
    answer = ask.risk(setting, rung=rung, sketches=sketches, repetitions=repetitions, seed=seed)
    if json:
        fields = {name: getattr(answer, name) for name in (*TERMS, "reducible", "total")}
        rest = ("steps", "horizon", "eval_length", "standard_error", "accuracy", "diagnostics", "flags")
        print_json(
            "risk",
            {"setting": setting, "sketches": sketches, "repetitions": repetitions, "seed": seed},
            {
                "rung": answer.rung,
                "regime": answer.regime,
                **fields,
                **{name: getattr(answer, name) for name in rest},
            },
        )
        return
    rows = []
    for name in (*TERMS, "reducible", "total"):
        error = answer.standard_error.get(name)
        rows.append((name, getattr(answer, name), "" if error is None else f"± {error:.2g}"))
    title = (
        f"Regime {answer.regime}, rung {answer.rung}: M={setting.M} N={setting.N} P={setting.P} "
        f"d={setting.d:g}, {answer.steps} steps (R={answer.horizon:g}), tested at length {answer.eval_length}"
    )
    print_table(rows, header=("term", "value", "standard error"), title=title)
    for name, text in answer.accuracy.items():
        print(f"{name}: {text}")
    print_flags(answer.flags)
