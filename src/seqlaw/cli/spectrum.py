"""`seqlaw spectrum`: the averaged covariance that a student trains on, mode by mode."""

from __future__ import annotations

from typing import Annotated

import typer

from seqlaw.cli.options import Json, Plot, SettingOptions, size, takes
from seqlaw.cli.output import print_flags, print_json, print_table, print_text
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes
from seqlaw.plot import check_path
from seqlaw.spectrum import FARTHEST, AveragedSpectrum, averaged_spectrum


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

    Initialization, innovations, where they cross and how far training reaches (kappa). N and the test length
    have no part in it: they are taken so that the options of `risk` can be given as they are.

    Example: seqlaw spectrum --teacher regime2 -P 64 -d inf --to 1e4
    """
    if plot is not None:
        check_path(plot)
    setting = options.build()
    answer = averaged_spectrum(setting, points=points, last=None if last is None else int(size("to", last)))
    columns = zip(answer.j.astype(int), answer.initial, answer.innovation, answer.total, strict=True)
    names = ("j", "initial", "innovation", "total")
    rows = [dict(zip(names, values, strict=True)) for values in columns]
    flags = setting_flags(setting)
    if plot is not None:
        from seqlaw.plot import draw_spectrum

        draw_spectrum(answer, setting, plot)
    if json:
        marks = {"crossing": answer.crossing, "kappa": answer.kappa, "M": setting.M}
        print_json("spectrum", {"setting": setting}, {"rows": rows, "marks": marks, "flags": list(flags)})
        return
    title = f"Regime {setting.regime}: averaged covariance h_P at P={setting.P} (exact to rounding)"
    print_table([tuple(row.values()) for row in rows], header=("mode j", *names[1:3], "h_P"), title=title)
    for line in _marks(answer, setting):
        print_text(line)
    print_flags(flags)


def _marks(answer: AveragedSpectrum, setting: Setting) -> list[str]:
    """Where the parts cross and how far training reaches, in words."""
    if isinstance(setting.teacher, Modes):
        return []
    lines = [f"The parts do not cross up to mode {min(setting.d or 1, FARTHEST):g}."]
    if answer.crossing is not None:
        lines = [f"The parts cross at mode {answer.crossing:.4g}; `seqlaw rates` has the order of it, m_P."]
    if answer.kappa is not None:
        R = setting.schedule.horizon
        lines.append(f"Training reaches mode kappa = {answer.kappa:.4g} (the paper's guide, R = {R:g}).")
    return lines
