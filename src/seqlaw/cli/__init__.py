"""The command line: parse, call, print. This module itself imports nothing that takes time."""

from __future__ import annotations

import sys


def main(arguments: list[str] | None = None) -> None:
    """Run the command line and exit: 0, 2 for bad input, 130 for Ctrl-C."""
    try:
        from seqlaw.cli.app import run  # NumPy, SciPy and typer: long enough for a Ctrl-C

        run(arguments)
    except KeyboardInterrupt:  # outside a command: inside, typer makes it the exit code 130
        sys.exit(130)
