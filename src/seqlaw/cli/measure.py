"""`seqlaw measure`: exponents, regime and advice from real sequences."""

from __future__ import annotations

import sys

from seqlaw.answers.advice import Advised, advise
from seqlaw.answers.saving import FIELD, LAW, check_teacher_path, save_law, save_teacher
from seqlaw.cli.command import Output
from seqlaw.cli.output import show
from seqlaw.model.checks import InputError
from seqlaw.model.schedule import GAMMA, STEPS, WSD
from seqlaw.questions.data import Measure


def measure(asked: Measure, output: Output) -> None:
    """Measure, advise, save what is wanted, print."""
    budgets = {name: getattr(asked, name) for name in ("tokens", "compute", "eval_length")}
    sizes = {"M": asked.M, "L": asked.L}
    for field, value in (budgets | sizes).items():
        if value is not None and asked.tokens is None:
            raise InputError(field, "needs --tokens too", value)
    for field, value in sizes.items():
        if value is not None and asked.compute is not None:
            raise InputError(field, "cannot be given together with --compute, which chooses it", value)
    wanted = {FIELD: (asked.save_teacher, save_teacher), LAW: (asked.save_law, save_law)}
    for field, (path, _) in wanted.items():
        if path is not None:
            check_teacher_path(path, field=field)
    found = asked.call()()
    advice = advise(found, M=asked.M, schedule=WSD(gamma=GAMMA, L=asked.L or STEPS), **budgets)
    compared = asked.forecast() if asked.held_out else None
    saved: dict[str, str | None] = {}
    refusals = []
    for field, (path, write) in wanted.items():
        saved[field] = path
        if path is not None:
            try:
                write(found, path, source=", ".join(asked.file))
            except InputError as error:  # said after the measurement, which stands without the file
                refusals.append(InputError(error.field, f"saved nothing: it {error.rule}", error.value))
                saved[field] = None
    answer = Advised(
        asked={**found.inputs(), **budgets, **sizes},
        measurement=found,
        advice=advice,
        held_out=compared,
        teacher_file=saved[FIELD],
        law_file=saved[LAW],
    )
    show(answer, asked, as_json=output.json, plot=output.plot, verbose=output.verbose)
    for field, what in ((FIELD, f"{found.modes.d} modes"), (LAW, "The law with its intervals")):
        if saved[field] is not None and not output.json:
            print(f"{what} saved: {saved[field]}")
    for refusal in refusals:
        sys.stdout.flush()
        raise refusal
