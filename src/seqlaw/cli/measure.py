"""`seqlaw measure`: exponents, regime and advice from real sequences."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from seqlaw.answers.advice import Advised, advise
from seqlaw.answers.held_out import held_out
from seqlaw.answers.measurement import measure as measure_sequences
from seqlaw.answers.measurement import save_teacher as save
from seqlaw.cli.options import Json, Plot, Seed, size
from seqlaw.cli.output import show
from seqlaw.model.checks import InputError, positive
from seqlaw.model.schedule import GAMMA, STEPS, WSD
from seqlaw.sequences.saving import check_teacher_path


def measure(
    file: Annotated[str, typer.Argument(metavar="FILE", help="N x P x D sequences: .npy, .npz or .zarr.")],
    tokens: Annotated[str | None, typer.Option(help="Tokens T to advise on.", metavar="T")] = None,
    compute: Annotated[str | None, typer.Option(help="Compute N·P·M²·L to advise on.", metavar="C")] = None,
    width: Annotated[
        str | None,
        typer.Option(
            "--width",
            "-M",
            help="Width M to advise on.  [default: a quarter of the features, at most 128]",
            metavar="INT",
        ),
    ] = None,
    steps: Annotated[
        str | None,
        typer.Option("--steps", "-L", help="Steps L to advise on.  [default: 30000]", metavar="INT"),
    ] = None,
    eval_length: Annotated[
        str | None, typer.Option(help="Length P' of the test sequences.", metavar="INT")
    ] = None,
    check: Annotated[
        bool, typer.Option("--held-out", help="Train on subsets and compare the held-out loss.")
    ] = False,
    centre: Annotated[bool, typer.Option(help="Take the mean state away first.")] = True,
    save_teacher: Annotated[
        str | None,
        typer.Option(
            help="Save the measured spectra for the --teacher of plan, tradeoff and risk.",
            metavar="FILE.toml",
        ),
    ] = None,
    seed: Seed = 0,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """Exponents, regime and advice from real sequences.

    Example: seqlaw measure states.npy --tokens 1e8 --eval-length 512
    """
    budgets: dict[str, Any] = {
        "tokens": None if tokens is None else positive("tokens", tokens),
        "compute": None if compute is None else positive("compute", compute),
        "eval_length": None if eval_length is None else int(size("eval_length", eval_length)),
    }
    M = None if width is None else int(size("M", width))
    L = None if steps is None else int(size("L", steps))
    asked = {"compute": compute, "M": width, "L": steps, "eval_length": eval_length}
    for field, value in asked.items():
        if value is not None and tokens is None:
            raise InputError(field, "needs --tokens beside it", value)
    for field, value in (("M", width), ("L", steps)):
        if value is not None and compute is not None:
            raise InputError(field, "cannot be given together with --compute, which chooses it", value)
    if save_teacher is not None:
        check_teacher_path(save_teacher)
    found = measure_sequences(file, centre=centre, seed=seed)
    advice = advise(found, M=M, schedule=WSD(gamma=GAMMA, L=L or STEPS), **budgets)
    compared = held_out(file, seed=seed) if check else None
    refusal = None
    if save_teacher is not None:
        try:
            save(found, save_teacher, source=file)
        except InputError as error:  # said after the measurement, which stands without the file
            refusal = InputError(error.field, f"saved nothing: it {error.rule}", error.value)
    saved = save_teacher if refusal is None else None
    answer = Advised(
        asked={"file": file, **budgets, "M": M, "L": L, "centre": centre, "seed": seed},
        measurement=found,
        advice=advice,
        held_out=compared,
        teacher_file=saved,
    )
    show(answer, as_json=json, plot=plot)
    if saved is not None and not json:
        print(f"{found.modes.d} modes saved: {saved}")
    if refusal is not None:
        sys.stdout.flush()
        raise refusal
