"""Which commands there are."""

from __future__ import annotations

import typer

from seqlaw.cli import lab, reproduce, risk


def register(app: typer.Typer) -> None:
    """Add every command once."""
    if not app.registered_commands:
        for command in (risk.risk, risk.curve, lab.sweep, lab.export, lab.fit, reproduce.reproduce):
            app.command()(command)
