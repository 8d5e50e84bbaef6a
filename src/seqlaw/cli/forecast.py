"""`seqlaw forecast`: longer or more, on the user's own sequences."""

from __future__ import annotations

from typing import Annotated

import typer

from seqlaw.answers.forecast import forecast as forecast_loss
from seqlaw.cli.options import Json, Plot, Seed, size
from seqlaw.cli.output import show
from seqlaw.cli.progress import Progress, progress_bar
from seqlaw.cli.reading import Features, Files, LeaveOut, SequenceColumn, TimeColumn, columns_of, source_of
from seqlaw.model.checks import positive


def forecast(
    file: Files,
    tokens: Annotated[
        str | None, typer.Option(help="Tokens N·P to split.  [default: what the pilot has]", metavar="T")
    ] = None,
    lengths: Annotated[
        str | None,
        typer.Option(help="Lengths P, such as 2,8,31.  [default: powers of two]", metavar="LIST"),
    ] = None,
    eval_length: Annotated[
        str | None, typer.Option(help="Length P' of the test.  [default: the longest]", metavar="INT")
    ] = None,
    student: Annotated[str, typer.Option(help="What it sees: all, pca or sketch.", metavar="NAME")] = "all",
    width: Annotated[
        str | None,
        typer.Option(
            "--width",
            "-M",
            help="Directions that pca or sketch sees.  [default: a quarter of the features, at most 128]",
            metavar="INT",
        ),
    ] = None,
    steps: Annotated[str, typer.Option("--steps", "-L", help="Steps L.", metavar="INT")] = "500",
    target_loss: Annotated[
        str | None, typer.Option(help="A loss: how many sequences reach it?", metavar="NUMBER")
    ] = None,
    window: Annotated[
        str | None, typer.Option(help="Cut recordings into windows of so many states.", metavar="INT")
    ] = None,
    groups: Annotated[
        str | None,
        typer.Option(
            help="Column or array of labels: subjects, recordings. With several files also: file.",
            metavar="COLUMN",
        ),
    ] = None,
    sequence: SequenceColumn = None,
    time: TimeColumn = None,
    features: Features = None,
    leave_out: LeaveOut = None,
    test: Annotated[
        str | None, typer.Option(help="Sequences to test on.  [default: a fifth of FILE]", metavar="FILE")
    ] = None,
    standardise: Annotated[bool, typer.Option("--standardise", help="Features to variance one.")] = False,
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out sequences with missing values.")
    ] = False,
    seed: Seed = 0,
    progress: Progress = "auto",
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Longer or more of your own sequences: the held-out loss.

    Example: seqlaw forecast states.npy --tokens 1e5 --plot forecast.png
    """
    with progress_bar("sequences read", progress) as bar:
        answer = forecast_loss(
            source_of(file),
            tokens=None if tokens is None else size("tokens", tokens),
            lengths=None if lengths is None else [int(size("lengths", text)) for text in lengths.split(",")],
            eval_length=None if eval_length is None else int(size("eval_length", eval_length)),
            student=student,
            M=None if width is None else int(size("M", width)),
            steps=int(size("L", steps)),
            target_loss=None if target_loss is None else positive("target_loss", target_loss),
            **columns_of(sequence, time, features, leave_out),
            groups=groups,
            window=None if window is None else int(size("window", window)),
            test=test,
            standardise=standardise,
            drop_missing=drop_missing,
            seed=seed,
            progress=bar,
        )
    show(answer, as_json=json, plot=plot)
