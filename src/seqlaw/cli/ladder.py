"""`seqlaw ladder`: lengths that change, and the phases as a file for a training loop."""

from __future__ import annotations

from seqlaw.answers.ladder import check_export
from seqlaw.cli.output import Output, show
from seqlaw.model.checks import InputError
from seqlaw.questions.planning import Ladder


def ladder(asked: Ladder, output: Output) -> None:
    """Ask, write the phases, print."""
    if asked.export is not None:
        check_export(asked.export)
        if asked.shares is not None:
            raise InputError("export", "goes without --shares, which chooses no ladder", asked.export)
    found = asked.ask()
    if asked.export is not None:
        found.export(asked.export)  # type: ignore[attr-defined]
    show(found, asked, output)
    if asked.export is not None and not output.json:
        print(f"phases: {asked.export}")
