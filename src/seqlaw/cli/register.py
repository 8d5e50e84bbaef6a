"""Which commands there are."""

from __future__ import annotations

import typer

from seqlaw.cli import explore, lab, measure, planning, reproduce, risk, spectrum


def register(app: typer.Typer) -> None:
    """Add every command once."""
    if not app.registered_commands:
        for command in (
            risk.risk,
            risk.curve,
            spectrum.spectrum,
            planning.rates,
            planning.plan,
            planning.tradeoff,
            reproduce.reproduce,
            lab.sweep,
            lab.export,
            lab.fit,
            measure.measure,
            explore.explore,
        ):
            app.command()(command)
