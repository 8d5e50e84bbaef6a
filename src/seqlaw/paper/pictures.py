"""The report's own pictures: longer or more, two schedules, and the variance over its predictions."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from seqlaw.paper.beyond import NoiseCheck, ScheduleCurve
from seqlaw.paper.figure import (
    FONT,
    LABELS,
    panel_grid,
    plain_ticks,
    relative_label,
    relative_ticks,
    relative_x,
)
from seqlaw.planning.tradeoff import OWN, Tradeoff
from seqlaw.plot import MARKERS, SERIES, few_ticks, save, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def draw_tradeoffs(views: Mapping[str, Tradeoff]) -> Figure:
    """The reducible risk along P at a fixed number of tokens: a panel a regime, a line a test length."""
    figure, axes = panel_grid(1, len(views), width=4.3, height=3.1)
    for place, (regime, view) in zip(axes.flat, views.items(), strict=True):
        for k, tested in enumerate(view.best):
            curve = view.curve(tested)
            label = (
                "tested at its own length (the paper)"
                if tested == OWN
                else f"tested at length {int(tested):,}"
            )
            style = "-" if tested == OWN else (0, (4, 1.5))
            x, y = [row.P for row in curve], [row.reducible for row in curve]
            place.plot(x, y, color=SERIES[k], marker=MARKERS[k], markersize=3.4, linestyle=style, label=label)
        title = f"Regime {regime}: {view.tokens:,} tokens"
        _finish(place, "trajectory length $P$", "reducible risk", title)
    return figure


def draw_schedules(curves: Sequence[ScheduleCurve]) -> Figure:
    """The series in R under block decay and under WSD, matched two ways."""
    names = list(dict.fromkeys(curve.panel.name for curve in curves))
    figure, axes = panel_grid(1, len(names), height=3.0)
    for place, name in zip(axes.flat, names, strict=True):
        mine = [curve for curve in curves if curve.panel.name == name]
        for k, one in enumerate(mine):
            label = f"{one.name}: {one.slope:.3f}".replace("-", "−")
            hollow = "white" if k == 2 else SERIES[k]  # it lies on the first
            place.plot(
                one.x,
                one.y,
                color=SERIES[k],
                marker=MARKERS[k],
                markersize=(3.4, 3.4, 5.6)[k],
                markerfacecolor=hollow,
                linestyle=("-", "-", "none")[k],
                label=label,
                zorder=2 - 0.1 * k,
            )
        panel = mine[0].panel
        _finish(place, "horizon $R$ of block decay", LABELS[panel.quantity], panel.title)
        if one.x[-1] < 10 * one.x[0]:
            plain_ticks(place, one.x[::2])
    return figure


def draw_noise(checks: Sequence[NoiseCheck]) -> Figure:
    """Sampled variance over the exact rung and over the paper's guide, of the same sketches."""
    names = list(dict.fromkeys(check.measured.panel.name for check in checks))
    figure, axes = panel_grid(1, len(names), width=4.3, height=3.0, below=0.3)
    for place, name in zip(axes.flat, names, strict=True):
        mine = [check for check in checks if check.measured.panel.name == name]
        place.axhline(1, color="0.6", linewidth=0.8)
        for k, check in enumerate(mine):
            x, against = relative_x(check.measured), check.measured.curve.series.against
            place.errorbar(
                x,
                check.over_exact.mean(axis=0),
                yerr=check.error,
                color=SERIES[k],
                marker=MARKERS[k],
                markersize=3.4,
                capsize=2,
                linewidth=1.2,
                elinewidth=0.7,
                label=f"over the exact rung, along ${against}$",
            )
            guide = check.over_finite_filter.mean(axis=0)
            place.plot(x, guide, color=SERIES[k], linestyle=(0, (4, 2)), linewidth=0.9)
        panel = mine[0].measured.panel
        _finish(place, relative_label(panel), "sampled variance / prediction", panel.title, legend=False)
        place.set_yscale("linear")
        relative_ticks(place)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    labels.append("dashed: over the paper's guide")
    handles.append(axes.flat[0].plot([], [], color="0.2", linestyle=(0, (4, 2)), linewidth=0.9)[0])
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False, fontsize=FONT - 1)
    return figure


def _finish(axes: Axes, x: str, y: str, title: str, *, legend: bool = True) -> None:
    tidy(axes, x, y)
    few_ticks(axes)
    axes.set_title(title, fontsize=FONT + 0.5, loc="left")
    axes.xaxis.label.set_fontsize(FONT)
    axes.yaxis.label.set_fontsize(FONT)
    axes.tick_params(which="both", labelsize=FONT - 1)
    if legend:
        axes.legend(frameon=False, fontsize=FONT - 1, labelspacing=0.25)


def as_svg(figure: Figure) -> bytes:
    """The picture as a file that a page can hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture.svg"
        save(figure, path)
        return path.read_bytes()
