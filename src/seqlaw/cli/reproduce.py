"""`seqlaw reproduce`: the paper's six panels and ten slopes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from seqlaw.cli.lab import others
from seqlaw.cli.options import Jobs, Json, Seed, jobs_or_all
from seqlaw.cli.output import print_flags, print_json, print_table, print_text
from seqlaw.cli.progress import work_bar
from seqlaw.rungs.ask import RUNGS


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
    from seqlaw.paper.report.formats import NAMES, cells, ratio_cells
    from seqlaw.paper.reproduce import reproduce as run

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
    names = [f"{row.regime:<3}{NAMES[row.quantity]} vs. {row.against}" for row in result.slopes]
    print_table(
        [(name, *cells(row)[2:]) for name, row in zip(names, result.slopes, strict=True)],
        header=("slope of", "here", "± se", "guide", "paper", "its guide", "z"),
        title=f"Log–log slopes, {rung} rung, seed {seed}",
    )
    if replicate > 1:
        print_table(
            [
                (name, f"{row.replicate_mean:.4f}", f"{row.replicate_spread:.2g}", f"{row.paper_slope:.3f}")
                for name, row in zip(names, result.slopes, strict=True)
            ],
            header=("slope of", "mean", "spread", "paper"),
            title=f"The same over {replicate} replicates, seeds {seed} to {seed + replicate - 1}",
        )
    if result.agreement:
        print_table(
            ratio_cells(result.agreement),
            header=("Regime II", "mean [least, largest]", "paper"),
            title="Measured over guide",
        )
    print_text(
        "z: distance from the paper's slope, in standard deviations of such a difference"
        + ("; not given on the smaller grid, whose slopes are others." if quick else ".")
    )
    clipped = f"in {result.clipping:.1%} of the rows" if result.clipping else "nowhere"
    print_text(f"The safeguard clipped the step size {clipped} (in the paper nowhere).")
    if bar.others:
        print_flags(others(bar.others))
    print(f"Written in {seconds:.1f} s:")
    for path in files:
        print(path)
