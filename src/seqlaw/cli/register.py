"""Which commands there are."""

from __future__ import annotations

import typer

from seqlaw.cli import explore, risk


def register(app: typer.Typer) -> None:
    """Add every command once."""
    if not app.registered_commands:
        for command in (risk.risk, risk.curve, explore.explore):
            app.command()(command)
