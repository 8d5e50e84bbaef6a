"""The figure of the paper: two regimes by three quantities, measured solid, guides dashed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from seqlaw.model.checks import Array
from seqlaw.paper.panels import Panel, size
from seqlaw.paper.table import Measured
from seqlaw.plot import COLOURS, MARKERS, SERIES, few_ticks, new_figure, save, tidy

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FONT = 8.0
"""Points; the figure is as wide as a page, so that they are points in print."""
GUIDE = "0.15"
WIDTH, HEIGHT = 8.6, 2.85  # inches: of the page, and of one row of panels
LABELS = {
    "M": "width $M$",
    "P": "trajectory length $P$",
    "R": r"horizon $R=\gamma L_{\mathrm{eff}}$",
    "approx": "approximation",
    "bias": "bias",
    "variance": "variance",
}
DASHES = (0, (3, 1.8))
"""The guides', short and black."""
STYLES = {"sampled": (0, (1, 1)), "exact": (0, (9, 2.5)), "equivalent": (0, (5, 1.5, 1, 1.5))}
"""Of rungs laid over the figure: dots, long dashes, dash and dot, in the colour of the curve."""


def draw_panels(series: Sequence[Measured], overlays: Sequence[Sequence[Measured]] = ()) -> Figure:
    """One panel for each of the paper's, in its order; `overlays` are the same series on other rungs."""
    panels = list({one.panel.name: one.panel for one in series}.values())
    columns = min(3, len(panels))
    figure, axes = panel_grid(-(-len(panels) // columns), columns, below=0.3)
    for empty in axes.flat[len(panels) :]:
        empty.set_axis_off()
    for panel, place in zip(panels, axes.flat, strict=False):
        _panel(place, panel, [one for one in series if one.panel is panel])
        for overlay in overlays:
            for k, one in enumerate(o for o in overlay if o.panel.name == panel.name):
                colour = _colour(panel, k)
                style = STYLES[one.curve.rung]
                place.plot(
                    relative_x(one), one.curve.y, color=colour, linestyle=style, linewidth=1.0, zorder=1
                )
        entries = sorted(
            zip(*place.get_legend_handles_labels(), strict=True),
            key=lambda entry: entry[1].startswith("guide"),
        )
        place.legend(
            *zip(*entries, strict=True),
            frameon=False,
            fontsize=FONT - 0.5,
            handlelength=2.4,
            labelspacing=0.25,
            borderaxespad=0.2,
            loc="lower left" if panel.reference is None else "upper right",
        )
    _key(figure, series[0].curve.rung, [overlay[0].curve.rung for overlay in overlays])
    return figure


def panel_grid(
    rows: int, columns: int, *, width: float = WIDTH / 3, height: float = HEIGHT, below: float = 0.0
) -> tuple[Figure, Any]:
    """Axes with fixed margins, `width` by `height` inches each with its labels, and room `below` for a key.

    Margins that are known need none of the drawing that an automatic layout takes to find them.
    """
    wide, high = max(columns * width, 4.2), rows * height + below
    figure, axes = new_figure(wide, high, rows, columns)
    figure.set_layout_engine(None)
    left, right, top, bottom = 0.72, 0.1, 0.26, 0.44  # inches round each axes: labels, title
    width = wide / columns
    figure.subplots_adjust(
        left=left / wide,
        right=1 - right / wide,
        top=1 - top / high,
        bottom=(bottom + below) / high,
        wspace=(left + right) / (width - left - right),
        hspace=(top + bottom) / (height - top - bottom),
    )
    return figure, axes


def _panel(axes: Axes, panel: Panel, series: Sequence[Measured]) -> None:
    together = panel.reference is not None
    for k, one in enumerate(series):
        colour, x, y = _colour(panel, k), relative_x(one), one.curve.y
        slopes = f"{one.curve.slope:.3f}", f"{one.guide.slope:.3f}"
        label = "slope {}".format(*slopes)
        if together:
            label = f"${one.curve.series.against}$: {slopes[0]} (guide {slopes[1]})"
        axes.errorbar(
            x,
            y,
            yerr=_bars(y, one.curve.error),
            color=colour,
            marker=MARKERS[k],
            markersize=5.2 if k == 1 else 3.2,  # N and P lie on each other in Regime I: both must be seen
            markerfacecolor="white" if k == 1 else colour,
            linewidth=1.3,
            elinewidth=0.9,
            capsize=2,
            label=_minus(label),
            zorder=2.2 if k == 1 else 2.4,
        )
        axes.plot(
            x,
            one.guide.y,
            color=GUIDE,
            linestyle=DASHES,
            linewidth=0.9,
            label=None if together else _minus(f"guide {slopes[1]}"),
            zorder=2.6,  # above the measurement, which it often lies on
        )
    against = series[0].curve.series.against
    label = relative_label(panel) if together else LABELS[against]
    tidy(axes, label, LABELS[panel.quantity])
    axes.set_title(panel.title, fontsize=FONT + 0.5, loc="left")
    axes.xaxis.label.set_fontsize(FONT)
    axes.yaxis.label.set_fontsize(FONT)
    axes.tick_params(labelsize=FONT - 0.5)
    low, high = axes.get_ylim()
    if together:
        axes.set_ylim(low, high * (high / low) ** 0.42)  # room above for three lines of legend
    else:
        axes.set_ylim(low / (high / low) ** 0.12, high)
    few_ticks(axes)
    if against in ("M", "P") and not together:
        plain_ticks(axes, series[0].curve.x)
    elif together:
        relative_ticks(axes)


def relative_ticks(axes: Axes) -> None:
    """Ticks for sizes relative to a reference."""
    low, high = axes.get_xlim()
    plain_ticks(axes, np.array([v for v in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2) if low <= v <= high]))


def plain_ticks(axes: Axes, values: Array) -> None:
    """Ticks at these values of x and nowhere else, written out."""
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.set_xticks([], minor=True)


def _colour(panel: Panel, k: int) -> str:
    return SERIES[k] if panel.reference is not None else COLOURS[panel.quantity]


def relative_x(one: Measured) -> Array:
    """The size itself, or in a variance panel the size relative to the point where its sweeps meet."""
    reference = one.panel.reference
    return one.curve.x if reference is None else one.curve.x / size(reference, one.curve.series.against)


def relative_label(panel: Panel) -> str:
    """What `relative_x` shows."""
    assert panel.reference is not None
    N, P, R = (size(panel.reference, name) for name in "NPR")
    return f"$N$/{N:,.0f};  $P$/{P:,.0f};  $R$/{R:,.0f}"


def _bars(y: Array, error: Array | None) -> Any:
    """Error bars that stay positive on a logarithmic axis."""
    return None if error is None else np.array([np.minimum(error, 0.9 * y), error])


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _key(figure: Figure, rung: str, overlays: Sequence[str]) -> None:
    """What solid, dashed and dotted mean, once for all panels."""
    from matplotlib.lines import Line2D

    solid = {
        "sampled": "measured, mean over sketches",
        "exact": "exact rung, mean over sketches",
        "equivalent": "equivalent rung, nothing sampled",
    }[rung]
    lines = [
        Line2D([], [], color="0.2", marker="o", markersize=3.4, linewidth=1.3, label=solid),
        Line2D([], [], color="0.2", linestyle=DASHES, linewidth=1.0, label="the paper's guide"),
        *(
            Line2D([], [], color="0.2", linestyle=STYLES[name], linewidth=1.0, label=f"{name} rung")
            for name in overlays
        ),
    ]
    figure.legend(
        handles=lines, loc="lower center", ncols=len(lines), handlelength=4, frameon=False, fontsize=FONT
    )


def save_all(figure: Figure, folder: Path, name: str) -> list[Path]:
    """The figure as PNG, PDF and SVG."""
    paths = [folder / f"{name}{suffix}" for suffix in (".png", ".pdf", ".svg")]
    for path in paths:
        save(figure, path)
    return paths
