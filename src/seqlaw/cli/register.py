"""Which commands there are."""

from __future__ import annotations

import typer

from seqlaw.cli import explore, lab, measure, plan, rates, reproduce, risk, spectrum, tradeoff


def register(app: typer.Typer) -> None:
    """Add every command once."""
    if not app.registered_commands:
        for command in (
            risk.risk,
            risk.curve,
            spectrum.spectrum,
            rates.rates,
            plan.plan,
            tradeoff.tradeoff,
            reproduce.reproduce,
            lab.sweep,
            lab.export,
            lab.fit,
            measure.measure,
            explore.explore,
        ):
            app.command()(command)
