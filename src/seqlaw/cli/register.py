"""Which commands there are."""

from __future__ import annotations

import typer

from seqlaw.cli import explore, lab, planning, risk


def register(app: typer.Typer) -> None:
    """Add every command once."""
    if not app.registered_commands:
        for command in (
            risk.risk,
            risk.curve,
            planning.rates,
            planning.plan,
            planning.tradeoff,
            lab.sweep,
            lab.export,
            lab.fit,
            explore.explore,
        ):
            app.command()(command)
