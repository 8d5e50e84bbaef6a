"""`seqlaw reproduce`: the paper's six panels and ten slopes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from seqlaw.cli.options import Jobs, Json, Seed, jobs_or_all
from seqlaw.cli.output import print_json, print_table
from seqlaw.cli.progress import work_bar
from seqlaw.rungs.ask import RUNGS

_SHORT = {"Paper's guide": "its guide", "Replicates' mean": "replicates"}
"""Headers of the report that are wider than what stands under them."""


def reproduce(
    out: Annotated[
        str, typer.Option(help="Folder of the results; what it holds is not run again.", metavar="DIR")
    ] = "results/paper",
    rung: Annotated[
        str,
        typer.Option(
            help="sampled as in the paper; exact and equivalent sample no trajectories.", metavar="NAME"
        ),
    ] = "sampled",
    panels: Annotated[str, typer.Option(help="Letters of the panels.", metavar="LETTERS")] = "abcdef",
    quick: Annotated[bool, typer.Option("--quick", help="A smaller grid, in seconds.")] = False,
    replicate: Annotated[
        int,
        typer.Option(help="Repeat the whole experiment K times for the spread of each slope.", metavar="K"),
    ] = 1,
    overlay: Annotated[
        list[str] | None,
        typer.Option(help=f"Another rung to draw in: {', '.join(RUNGS)}; repeatable.", metavar="NAME"),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """The paper's six panels and ten slopes, with a report.

    Interrupted, the same command goes on where it was.

    Example: seqlaw reproduce --out results/paper
    """
    from seqlaw.paper.reproduce import reproduce as run
    from seqlaw.paper.table import grid, ratio_cells

    letters = panels.replace(",", "").replace(" ", "")
    with work_bar() as bar:
        result, files, seconds = run(
            out,
            rung=rung,
            panels=list(letters),
            quick=quick,
            replicate=replicate,
            overlay=overlay or (),
            seed=seed,
            jobs=jobs_or_all(jobs),
            announce=bar.expect,
            progress=bar.progress,
            step=bar.step,
            notice=lambda line: print(f"seqlaw: {line}", file=sys.stderr),
        )
    if json:
        inputs = {
            "out": out,
            "rung": rung,
            "panels": letters,
            "quick": quick,
            "replicate": replicate,
            "overlay": overlay or [],
            "seed": seed,
        }
        rest = {"files": [str(path) for path in files], "seconds": seconds}
        print_json("reproduce", inputs, result.document() | rest)
        return
    header, body = grid(result.slopes)
    header = ["Slope of", *(_SHORT.get(name, name) for name in header[2:])]
    body = [[f"{line[0]:<3}{line[1]}", *line[2:]] for line in body]
    print_table(body, header=header, title=f"Log–log slopes, {rung} rung, seed {seed}")
    if result.agreement:
        print_table(
            ratio_cells(result.agreement),
            header=("Regime II, over guide", "mean [least, largest]", "paper"),
        )
    print(f"clipping rate {result.clipping:g}; {seconds:.1f} s")
    for path in files:
        print(path)
