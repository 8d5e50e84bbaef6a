"""How figures look: colours, axes, ticks, files. The same input gives the same bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from seqlaw.files import output_path
from seqlaw.model.checks import InputError, MissingLibrary, needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes  # also for those that draw
    from matplotlib.figure import Figure as Figure
else:  # matplotlib is loaded where a picture is drawn
    Axes = Figure = Any

# Okabe and Ito's palette: told apart by every kind of colour vision, and in grey by the markers.
COLOURS = {"approx": "#0072B2", "bias": "#D55E00", "variance": "#009E73", "reducible": "#000000"}
SERIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
FORMATS = (".png", ".pdf", ".svg")


def new_figure(width: float, height: float, rows: int = 1, columns: int = 1) -> tuple[Figure, Any]:
    """A figure without any global state; axes as an array of shape (rows, columns)."""
    try:
        from matplotlib import figure as figures
        from matplotlib.backends.backend_agg import FigureCanvasAgg
    except ImportError:
        raise MissingLibrary(f"a picture {needs('matplotlib', 'plot')}") from None
    figure = figures.Figure(figsize=(width, height), layout="constrained", dpi=160)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def check_path(path: str | Path) -> Path:
    """A path whose ending is a picture format."""
    return output_path(path, "plot", *FORMATS)


def save(figure: Figure, path: str | Path) -> None:
    """Write the figure without dates and random names, so that equal figures are equal files."""
    from matplotlib import rc_context

    path = check_path(path)
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix.lower(), {})
    try:
        # The ids in an SVG are salted, by a global setting: with ours for as long as the file is written.
        with rc_context({"svg.hashsalt": "seqlaw"}):
            figure.savefig(path, metadata=metadata)
    except OSError as error:
        raise InputError("plot", f"must be writable ({error.strerror})", str(path)) from None


def tidy(axes: Axes, x: str, y: str, title: str = "") -> None:
    """Logarithmic axes with light grid lines."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if title:
        axes.set_title(title, fontsize="medium")
    axes.grid(True, which="major", color="0.9", linewidth=0.8)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    _room_between(axes)


def _room_between(axes: Axes) -> None:
    """Labels at 1, 2 and 5 where x spans a decade or so, where Matplotlib's own run into each other."""
    from matplotlib import ticker

    powers = ticker.LogFormatterSciNotation(labelOnlyBase=False, minor_thresholds=(math.inf, math.inf))

    def label(x: float, position: int | None = None) -> str:
        low, high = axes.get_xlim()
        shown = "1" if high > 30 * low else "125" if high > 5 * low else "123456789"
        if f"{x:e}"[0] not in shown:
            return ""
        plain = high <= 30 * low and low >= 1e-3 and high < 1e5
        powers.set_axis(axes.xaxis)
        return f"{x:g}" if plain else powers(x, position)

    axes.xaxis.set_major_formatter(ticker.FuncFormatter(label))
    axes.xaxis.set_minor_formatter(ticker.FuncFormatter(label))


def mark(axes: Axes, x: float, words: str, side: Literal["left", "right"] = "left") -> None:
    """A thin line across the picture, with its name at the foot; `side` of the name is on the line."""
    axes.axvline(x, color="0.6", linewidth=0.8, linestyle=":")
    axes.annotate(
        words,
        (x, 0.02),
        xycoords=("data", "axes fraction"),
        xytext=(3 if side == "left" else -3, 0),
        textcoords="offset points",
        ha=side,
        fontsize="small",
    )


def few_ticks(axes: Axes) -> None:
    """Labels at 1, 2 and 5 of each decade where there are few, at every digit where there is less than one.

    A range without two digits in it (1 to 1.2) is divided evenly.
    """
    from matplotlib import ticker

    low, high = axes.get_ylim()
    decades = math.log10(high / low)
    digits = (1.0, 2.0, 5.0) if decades > 0.6 else tuple(float(k) for k in range(1, 10))
    if high < 2 * low:
        axes.yaxis.set_major_locator(ticker.MaxNLocator(5, steps=[1, 2, 2.5, 5, 10]))
        axes.yaxis.set_minor_locator(ticker.NullLocator())
    elif decades < 3:
        axes.yaxis.set_major_locator(ticker.LogLocator(subs=digits))
        axes.yaxis.set_major_formatter(
            ticker.LogFormatterSciNotation(labelOnlyBase=False, minor_thresholds=(9, 9))
        )
    if decades < 3 and low > 1e-3 and high < 1e4:
        axes.yaxis.set_major_formatter(ticker.FormatStrFormatter("%.4g"))
    axes.yaxis.set_minor_formatter(ticker.NullFormatter())


def share_range(axes: Sequence[Axes], *, below: float = 0.12, above: float = 0.12) -> None:
    """One logarithmic y range for axes in a row, with room as a share of what is drawn, labelled once."""
    low, high = (pick(place.dataLim.intervaly[k] for place in axes) for k, pick in ((0, min), (1, max)))
    span = max(math.log(high / low), math.log(1.05))  # a flat line is not blown up to a mountain
    for place in axes:
        place.set_ylim(low * math.exp(-below * span), high * math.exp(above * span))
        few_ticks(place)
        place.tick_params(which="both", labelleft=place is axes[0])
