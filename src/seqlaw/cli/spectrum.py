"""`seqlaw spectrum`: the averaged covariance that a student trains on, mode by mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from seqlaw.cli.options import Json, Plot, SettingOptions, size, takes
from seqlaw.cli.output import print_flags, print_json, print_table, print_text
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes
from seqlaw.plot import check_path
from seqlaw.rungs.equivalent import equivalent_risk
from seqlaw.rungs.rates import rates
from seqlaw.spectrum import FARTHEST, averaged_spectrum


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
    if plot is not None:
        check_path(plot)
    setting = options.build()
    answer = averaged_spectrum(setting, points=points, last=None if last is None else int(size("to", last)))
    columns = zip(answer.j.astype(int), answer.initial, answer.innovation, answer.total, strict=True)
    names = ("j", "initial", "innovation", "total")
    rows = [dict(zip(names, values, strict=True)) for values in columns]
    flags = setting_flags(setting)
    marks = {"crossing": answer.crossing, "kappa": answer.kappa, "M": setting.M} | _beyond(setting)
    if plot is not None:
        from seqlaw.plot import draw_spectrum

        draw_spectrum(answer, setting, plot)
    if json:
        print_json("spectrum", {"setting": setting}, {"rows": rows, "marks": marks, "flags": list(flags)})
        return
    print_text(options.describe(setting.teacher))
    title = f"Regime {setting.regime}: averaged covariance h_P at P={setting.P} (exact to rounding)"
    print_table([tuple(row.values()) for row in rows], header=("mode j", *names[1:3], "h_P"), title=title)
    for line in _words(marks, setting):
        print_text(line)
    print_flags(flags)


def _beyond(setting: Setting) -> dict[str, Any]:
    """The dimensions learned and the theorem's orders, where the exponents allow them."""
    learned = _or_none(lambda: equivalent_risk(setting).diagnostics["learned_dimensions"])
    return {"learned_dimensions": learned, "orders": _or_none(lambda: rates(setting).crossovers) or {}}


def _or_none(compute: Callable[[], Any]) -> Any:
    """None where a trace diverges, a power overflows or modes are arrays: the spectrum needs neither."""
    try:
        return compute()
    except (ArithmeticError, ValueError, RuntimeError):
        return None


def _words(marks: dict[str, Any], setting: Setting) -> list[str]:
    """Where the parts cross, how far training reaches, and the theorem's orders of both."""
    orders, R = marks["orders"], setting.schedule.horizon
    lines = []
    if marks["crossing"] is not None:
        lines.append(f"The parts cross at mode {marks['crossing']:.4g}{_order(orders, 'm_P')}.")
    elif not isinstance(setting.teacher, Modes):
        lines.append(f"The parts do not cross up to mode {min(setting.d or 1, FARTHEST):g}.")
    if marks["kappa"] is not None:
        words = f"Training reaches mode kappa = {marks['kappa']:.4g} (the paper's guide, R = {R:g})"
        lines.append(words + _order(orders, "kappa") + ".")
    if marks["learned_dimensions"] is not None:
        lines.append(f"It learns {marks['learned_dimensions']:.4g} dimensions (relative error about 1/M).")
    if "P_M" in orders:
        lines.append(
            f"By order, approx stops falling with P at P_M = {orders['P_M']:.4g}, and bias stops depending "
            f"on P at P_R = {orders['P_R']:.4g}."
        )
    return lines


def _order(orders: dict[str, float], name: str) -> str:
    return f"; the theorem's order, constants dropped: {name} = {orders[name]:.4g}" if name in orders else ""
