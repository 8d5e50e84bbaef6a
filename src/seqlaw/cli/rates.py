"""`seqlaw rates`: the theorem at one point."""

from __future__ import annotations

from seqlaw.answers.rates import rates as theorem
from seqlaw.cli.options import Json, SettingOptions, takes
from seqlaw.cli.output import show


@takes(SettingOptions)
def rates(options: SettingOptions, json: Json = False) -> None:
    """The theorem at one point: exponents, crossovers, conditions.

    Example: seqlaw rates --teacher regime2 -M 512 -N 65536 -P 16 -R 1200
    """
    show(theorem(options.build()), as_json=json)
