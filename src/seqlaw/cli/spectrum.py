"""`seqlaw spectrum`: the averaged covariance that a student trains on, mode by mode."""

from __future__ import annotations

from typing import Annotated

import typer

from seqlaw.answers.spectrum import averaged_spectrum
from seqlaw.cli.options import Json, Plot, SettingOptions, size, takes
from seqlaw.cli.output import show


@takes(SettingOptions)
def spectrum(
    options: SettingOptions,
    last: Annotated[
        str | None,
        typer.Option(
            "--to", help="Last mode.  [default: 30 times beyond M, the crossing and kappa]", metavar="INT"
        ),
    ] = None,
    points: Annotated[int, typer.Option(help="How many modes, evenly spaced in the logarithm.")] = 24,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """The averaged spectrum h_P and its two parts, mode by mode.

    Initialization, innovations, where they cross, how far training reaches (kappa) and how many dimensions
    it learns. N and the test length have no part in it: they are taken so that the options of `risk` can be
    given as they are.

    Example: seqlaw spectrum --teacher regime2 -P 64 -d inf --to 1e4
    """
    answer = averaged_spectrum(
        options.build(), points=points, last=None if last is None else int(size("to", last))
    )
    show(answer, as_json=json, plot=plot)
