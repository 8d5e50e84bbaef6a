"""What is drawn: the paper's figure, and the report's pictures of what lies beyond it."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from seqlaw.answers.methods import caption_of
from seqlaw.answers.style import COLOURS, MARKERS, SERIES, Axes, Figure, few_ticks, new_figure, save, tidy
from seqlaw.model.checks import Array
from seqlaw.paper.experiments.checks import NoiseCheck, ScheduleCurve
from seqlaw.paper.experiments.panels import QUANTITIES, Panel, size
from seqlaw.paper.experiments.slopes import Measured
from seqlaw.planning.tradeoff import OWN, Tradeoff

FONT = 8.0
"""Points; the figure is as wide as a page, so that they are points in print."""
GUIDE = "0.15"
WIDTH, HEIGHT = 8.6, 2.85  # inches: of the page, and of one row of panels
LABELS = {"M": "width $M$", "P": "trajectory length $P$", "R": r"horizon $R=\gamma L_{\mathrm{eff}}$"}
DASHES = (0, (3, 1.8))
"""The guides', short and black."""


def draw_panels(series: Sequence[Measured], overlays: Sequence[Sequence[Measured]] = ()) -> Figure:
    """One panel for each of the paper's, in its order; `overlays` are the same series on other methods."""
    panels = list({one.panel.name: one.panel for one in series}.values())
    columns = min(3, len(panels))
    figure, axes = _panel_grid(-(-len(panels) // columns), columns, below=0.3)
    for empty in axes.flat[len(panels) :]:
        empty.set_axis_off()
    for panel, place in zip(panels, axes.flat, strict=False):
        draw_panel(place, panel, series, overlays)
    _key(figure, series[0].curve.method, [overlay[0].curve.method for overlay in overlays])
    return figure


def draw_panel(
    place: Axes, panel: Panel, series: Sequence[Measured], overlays: Sequence[Sequence[Measured]] = ()
) -> None:
    """One panel with its legend."""
    _panel(place, panel, [one for one in series if one.panel is panel])
    for overlay in overlays:
        for k, one in enumerate(o for o in overlay if o.panel.name == panel.name):
            colour, dashes = _colour(panel, k), _dashes(one.curve.method)
            place.plot(one.relative_x, one.curve.y, color=colour, linestyle=dashes, linewidth=1, zorder=1)
    entries = sorted(
        zip(*place.get_legend_handles_labels(), strict=True), key=lambda entry: entry[1].startswith("guide")
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


def _panel_grid(
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
        colour, x, y = _colour(panel, k), one.relative_x, one.curve.y
        slope, guide = f"{one.curve.slope:.3f}", f"guide {one.guide.slope:.3f}"
        label = f"${one.curve.series.against}$: {slope} ({guide})" if together else f"slope {slope}"
        look: dict[str, Any] = {"color": colour, "marker": MARKERS[k], "markersize": 3.2, "zorder": 2.4}
        if k == 1:  # N and P lie on each other in Regime I: both must be seen
            look |= {"markersize": 5.2, "markerfacecolor": "white", "zorder": 2.2}
        bars = {"yerr": _bars(y, one.curve.error), "elinewidth": 0.9, "capsize": 2}
        axes.errorbar(x, y, **bars, **look, linewidth=1.3, label=_minus(label))
        look = {"color": GUIDE, "linestyle": DASHES, "linewidth": 0.9}
        # Above the measurement, which it often lies on.
        axes.plot(x, one.guide.y, **look, label=None if together else _minus(guide), zorder=2.6)
    against = series[0].curve.series.against
    label = relative_label(panel) if together else LABELS[against]
    _frame(axes, label, QUANTITIES[panel.quantity].word, panel.title)
    axes.tick_params(labelsize=FONT - 0.5)
    low, high = axes.get_ylim()
    if together:
        axes.set_ylim(low, high * (high / low) ** 0.42)  # room above for three lines of legend
    else:
        axes.set_ylim(low / (high / low) ** 0.12, high)
    few_ticks(axes)
    if against in ("M", "P") and not together:
        _plain_ticks(axes, series[0].curve.x)
    elif together:
        _relative_ticks(axes)


def _frame(axes: Axes, x: str, y: str, title: str) -> None:
    tidy(axes, x, y)
    axes.set_title(title, fontsize=FONT + 0.5, loc="left")
    axes.xaxis.label.set_fontsize(FONT)
    axes.yaxis.label.set_fontsize(FONT)


def _finish(axes: Axes, x: str, y: str, title: str, *, legend: bool = True) -> None:
    """What all pictures but the paper's figure have in common."""
    _frame(axes, x, y, title)
    few_ticks(axes)
    axes.tick_params(which="both", labelsize=FONT - 1)
    if legend:
        axes.legend(frameon=False, fontsize=FONT - 1, labelspacing=0.25)


def _look(k: int) -> dict[str, Any]:
    """The line of the k-th series of a picture."""
    return {"color": SERIES[k], "marker": MARKERS[k], "markersize": 3.4}


def _relative_ticks(axes: Axes) -> None:
    """Ticks for sizes relative to a reference."""
    low, high = axes.get_xlim()
    _plain_ticks(axes, np.array([v for v in (0.02, 0.05, 0.1, 0.2, 0.5, 1, 2) if low <= v <= high]))


def _plain_ticks(axes: Axes, values: Array) -> None:
    """Ticks at these values of x and nowhere else, written out."""
    axes.set_xticks(values, [f"{value:g}" for value in values])
    axes.set_xticks([], minor=True)


def _colour(panel: Panel, k: int) -> str:
    return SERIES[k] if panel.reference is not None else COLOURS[panel.quantity]


def relative_label(panel: Panel) -> str:
    """What `Measured.relative_x` is in a variance panel."""
    assert panel.reference is not None
    N, P, R = (size(panel.reference, name) for name in "NPR")
    return f"$N$/{N:,.0f};  $P$/{P:,.0f};  $R$/{R:,.0f}"


def _bars(y: Array, error: Array | None) -> Any:
    """Error bars that stay positive on a logarithmic axis."""
    return None if error is None else np.array([np.minimum(error, 0.9 * y), error])


def _minus(text: str) -> str:
    return text.replace("-", "−")


def _key(figure: Figure, method: str, overlays: Sequence[str]) -> None:
    """What solid, dashed and dotted mean, once for all panels."""
    from matplotlib.lines import Line2D

    lines = [
        Line2D([], [], color="0.2", marker="o", markersize=3.4, linewidth=1.3, label=caption_of(method).key),
        Line2D([], [], color="0.2", linestyle=DASHES, linewidth=1.0, label="the paper's guide"),
        *(
            Line2D([], [], color="0.2", linestyle=_dashes(name), linewidth=1.0, label=f"{name} method")
            for name in overlays
        ),
    ]
    figure.legend(
        handles=lines, loc="lower center", ncols=len(lines), handlelength=4, frameon=False, fontsize=FONT
    )


def _dashes(method: str) -> tuple[int, tuple[float, ...]]:
    return 0, caption_of(method).dashes


def save_all(figure: Figure, folder: Path, name: str) -> list[Path]:
    """The figure as PNG, PDF and SVG."""
    paths = [folder / f"{name}{suffix}" for suffix in (".png", ".pdf", ".svg")]
    for path in paths:
        save(figure, path)
    return paths


def draw_tradeoffs(views: Mapping[str, Tradeoff]) -> Figure:
    """The reducible risk along P at a fixed number of tokens: a panel a regime, a line a test length."""
    figure, axes = _panel_grid(1, len(views), width=4.3, height=3.1)
    for place, (regime, view) in zip(axes.flat, views.items(), strict=True):
        for k, tested in enumerate(view.best):
            curve = view.curve(tested)
            own = tested == OWN
            label = "tested at its own length (the paper)" if own else f"tested at length {int(tested):,}"
            x, y = [row.P for row in curve], [row.reducible for row in curve]
            place.plot(x, y, **_look(k), linestyle="-" if own else (0, (4, 1.5)), label=label)
        _finish(place, LABELS["P"], "reducible risk", f"Regime {regime}: {view.tokens:,} tokens")
    return figure


def draw_schedules(curves: Sequence[ScheduleCurve]) -> Figure:
    """The series in R under block decay and under WSD, matched two ways."""
    names = list(dict.fromkeys(curve.panel.name for curve in curves))
    figure, axes = _panel_grid(1, len(names), height=3.0)
    for place, name in zip(axes.flat, names, strict=True):
        mine = [curve for curve in curves if curve.panel.name == name]
        for k, one in enumerate(mine):
            look = _look(k)
            if k == 2:  # it lies on the first
                look |= {"markersize": 5.6, "markerfacecolor": "white", "linestyle": "none"}
            label = _minus(f"{one.name}: {one.slope:.3f}")
            place.plot(one.x, one.y, **look, label=label, zorder=2 - 0.1 * k)
        panel = mine[0].panel
        _finish(place, "horizon $R$ of block decay", QUANTITIES[panel.quantity].word, panel.title)
        if one.x[-1] < 10 * one.x[0]:
            _plain_ticks(place, one.x[::2])
    return figure


def draw_noise(checks: Sequence[NoiseCheck]) -> Figure:
    """Sampled variance over the exact method and over the paper's guide, of the same sketches."""
    names = list(dict.fromkeys(check.measured.panel.name for check in checks))
    figure, axes = _panel_grid(1, len(names), width=4.3, height=3.0, below=0.3)
    dashed: dict[str, Any] = {"linestyle": (0, (4, 2)), "linewidth": 0.9}
    for place, name in zip(axes.flat, names, strict=True):
        mine = [check for check in checks if check.measured.panel.name == name]
        place.axhline(1, color="0.6", linewidth=0.8)
        for k, check in enumerate(mine):
            x, against = check.measured.relative_x, check.measured.curve.series.against
            y, label = check.over_exact.mean(axis=0), f"over the exact method, along ${against}$"
            look = _look(k) | {"capsize": 2, "linewidth": 1.2, "elinewidth": 0.7}
            place.errorbar(x, y, yerr=check.error, **look, label=label)
            place.plot(x, check.over_finite_filter.mean(axis=0), color=SERIES[k], **dashed)
        panel = mine[0].measured.panel
        _finish(place, relative_label(panel), "sampled variance / prediction", panel.title, legend=False)
        place.set_yscale("linear")
        _relative_ticks(place)
    handles, labels = axes.flat[0].get_legend_handles_labels()
    labels.append("dashed: over the paper's guide")
    handles.append(axes.flat[0].plot([], [], color="0.2", **dashed)[0])
    figure.legend(handles, labels, loc="lower center", ncols=4, frameon=False, fontsize=FONT - 1)
    return figure


def as_svg(figure: Figure) -> bytes:
    """The picture as a file that a page can hold."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "picture.svg"
        save(figure, path)
        return path.read_bytes()
