"""`seqlaw measure`: exponents, regime and advice from real sequences."""

from __future__ import annotations

import sys
from typing import Annotated, Any

import typer

from seqlaw.answers.advice import Advised, advise
from seqlaw.answers.forecast import forecast
from seqlaw.answers.measurement import measure as measure_sequences
from seqlaw.answers.measurement import save_law as write_law
from seqlaw.answers.measurement import save_teacher as write_teacher
from seqlaw.cli.options import Json, Plot, Seed, size
from seqlaw.cli.output import show
from seqlaw.cli.reading import Features, Files, LeaveOut, SequenceColumn, TimeColumn, columns_of, source_of
from seqlaw.model.checks import InputError, positive
from seqlaw.model.schedule import GAMMA, STEPS, WSD
from seqlaw.sequences.saving import FIELD, LAW, check_teacher_path


def measure(
    file: Files,
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
        bool, typer.Option("--held-out", help="Add what `seqlaw forecast` says of the same file.")
    ] = False,
    sequence: SequenceColumn = None,
    time: TimeColumn = None,
    features: Features = None,
    leave_out: LeaveOut = None,
    centre: Annotated[bool, typer.Option(help="Take the mean state away first.")] = True,
    save_teacher: Annotated[
        str | None,
        typer.Option(
            help="Save the measured spectra for the --teacher of plan, tradeoff and risk.",
            metavar="FILE.toml",
        ),
    ] = None,
    save_law: Annotated[
        str | None,
        typer.Option(
            help="Save the six fitted numbers and their intervals, for plan --teacher.",
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
    wanted = {FIELD: (save_teacher, write_teacher), LAW: (save_law, write_law)}
    for field, (path, _) in wanted.items():
        if path is not None:
            check_teacher_path(path, field=field)
    source, columns = source_of(file), columns_of(sequence, time, features, leave_out)
    found = measure_sequences(source, **columns, centre=centre, seed=seed)
    advice = advise(found, M=M, schedule=WSD(gamma=GAMMA, L=L or STEPS), **budgets)
    compared = forecast(source, **columns, seed=seed) if check else None
    saved: dict[str, str | None] = {}
    refusals = []
    for field, (path, write) in wanted.items():
        saved[field] = path
        if path is not None:
            try:
                write(found, path, source=", ".join(file))
            except InputError as error:  # said after the measurement, which stands without the file
                refusals.append(InputError(error.field, f"saved nothing: it {error.rule}", error.value))
                saved[field] = None
    answer = Advised(
        asked={**found.inputs(), **budgets, "M": M, "L": L},
        measurement=found,
        advice=advice,
        held_out=compared,
        teacher_file=saved[FIELD],
        law_file=saved[LAW],
    )
    show(answer, as_json=json, plot=plot)
    for field, what in ((FIELD, f"{found.modes.d} modes"), (LAW, "The law with its intervals")):
        if saved[field] is not None and not json:
            print(f"{what} saved: {saved[field]}")
    for refusal in refusals:
        sys.stdout.flush()
        raise refusal
