"""Which commands there are, and how the options that they share become theirs."""

from __future__ import annotations

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any, get_type_hints

import typer

from seqlaw.cli import (
    explore,
    forecast,
    lab,
    ladder,
    law,
    measure,
    plan,
    rates,
    reproduce,
    risk,
    spectrum,
    tradeoff,
)

COMMANDS: tuple[Callable[..., None], ...] = (
    risk.risk,
    risk.curve,
    spectrum.spectrum,
    rates.rates,
    plan.plan,
    tradeoff.tradeoff,
    ladder.ladder,
    reproduce.reproduce,
    lab.sweep,
    lab.export,
    lab.fit,
    law.law,
    measure.measure,
    forecast.forecast,
    explore.explore,
)


def register(app: typer.Typer) -> None:
    """Add every command once."""
    if not app.registered_commands:
        for command in COMMANDS:
            app.command()(_spread(command, command.takes) if hasattr(command, "takes") else command)


def _spread(command: Callable[..., None], options: type[Any]) -> Callable[..., None]:
    """A command whose first argument is a record, as one that takes each of its fields."""
    own, shared = inspect.signature(command).parameters, dataclasses.fields(options)
    hints = get_type_hints(command, include_extras=True) | get_type_hints(options, include_extras=True)
    defaults = {name: p.default for name, p in list(own.items())[1:]} | {f.name: f.default for f in shared}

    @functools.wraps(command)
    def wrapper(**values: Any) -> None:
        command(options(**{f.name: values.pop(f.name) for f in shared}), **values)

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
        for name, default in defaults.items()
    ]
    wrapper.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # read by typer
    wrapper.__annotations__ = {name: hints[name] for name in defaults}
    del wrapper.__wrapped__  # typer would look through it
    return wrapper
