"""`seqlaw measure`: exponents, regime and advice from real sequences."""

from __future__ import annotations

import sys

from seqlaw.answers.advice import Advised, advise
from seqlaw.answers.answer import named
from seqlaw.cli.output import Output, show
from seqlaw.files import output_path
from seqlaw.model.checks import InputError
from seqlaw.model.schedule import GAMMA, STEPS, WSD
from seqlaw.questions.data import Measure


def measure(asked: Measure, output: Output) -> None:
    """Measure, advise, save what is wanted, print."""
    budgets, sizes = named(asked, "tokens", "compute", "eval_length"), named(asked, "M", "L")
    for field, value in (budgets | sizes).items():
        if value is not None and asked.tokens is None:
            raise InputError(field, "needs --tokens too", value)
    for field, value in sizes.items():
        if value is not None and asked.compute is not None:
            raise InputError(field, "cannot be given together with --compute, which chooses it", value)
    wanted = named(asked, "save_teacher", "save_law")
    for field, path in wanted.items():
        if path is not None:
            output_path(path, field, ".toml")
    found = asked.call()()
    advice = advise(found, M=asked.M, schedule=WSD(gamma=GAMMA, L=asked.L or STEPS), **budgets)
    compared = asked.forecast() if asked.held_out else None
    saved: dict[str, str | None] = {}
    refusals = []
    for field, path in wanted.items():
        saved[field] = path
        if path is not None:
            try:
                found.save(path, law=field == "save_law", source=", ".join(asked.file))
            except InputError as error:  # said after the measurement, which stands without the file
                refusals.append(InputError(error.field, f"saved nothing: it {error.rule}", error.value))
                saved[field] = None
    answer = Advised(
        asked={**found.inputs(), **budgets, **sizes},
        measurement=found,
        advice=advice,
        held_out=compared,
        teacher_file=saved["save_teacher"],
        law_file=saved["save_law"],
    )
    show(answer, asked, output)
    for field, what in (
        ("save_teacher", f"{found.modes.d} modes"),
        ("save_law", "The law with its intervals"),
    ):
        if saved[field] is not None and not output.json:
            print(f"{what} saved: {saved[field]}")
            if not found.reliable:
                print(
                    "warning: the theory does not describe these data, so plans with this file may be wrong"
                )
    for refusal in refusals:
        sys.stdout.flush()
        raise refusal
