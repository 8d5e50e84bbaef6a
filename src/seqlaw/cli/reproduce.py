"""`seqlaw reproduce`: the paper's six panels and ten slopes."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from seqlaw.cli.options import Device, Jobs, Json, Seed, jobs_or_all
from seqlaw.cli.output import show
from seqlaw.cli.progress import Progress, work_bar
from seqlaw.methods.ask import METHODS
from seqlaw.model.device import cards


def reproduce(
    out: Annotated[
        str, typer.Option(help="Folder of the results; what it holds is not run again.", metavar="DIR")
    ] = "results/paper",
    method: Annotated[
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
        typer.Option(help=f"Another method to draw in: {', '.join(METHODS)}; repeatable.", metavar="NAME"),
    ] = None,
    seed: Seed = 0,
    jobs: Jobs = None,
    progress: Progress = "auto",
    device: Device = None,
    json: Json = False,
) -> None:
    """The paper's six panels and ten slopes, with a report.

    Interrupted, the same command goes on where it was.

    Example: seqlaw reproduce --out results/paper
    """
    from seqlaw.paper.reproduce import reproduce as run

    with work_bar(progress) as bar:
        answer = run(
            out,
            method=method,
            panels=list(panels.replace(",", "").replace(" ", "")),
            quick=quick,
            replicate=replicate,
            overlay=overlay or (),
            seed=seed,
            jobs=cards() if device == "cuda" and jobs is None else jobs_or_all(jobs),
            device=device,
            progress=bar.progress,
            step=bar.step,
            notice=lambda line: print(f"seqlaw: {line}", file=sys.stderr),
        )
    show(answer, as_json=json)
