"""Every figure that a command can draw. The same input gives the same bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqlaw.model.checks import InputError, MissingLibrary, needs

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from seqlaw.model.setting import Setting
    from seqlaw.planning.plan import Plan
    from seqlaw.planning.tradeoff import Tradeoff
    from seqlaw.rungs.terms import Risk
    from seqlaw.spectrum import AveragedSpectrum

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
        raise MissingLibrary(f"--plot {needs('matplotlib', 'plot')}") from None
    figure = figures.Figure(figsize=(width, height), layout="constrained", dpi=160)
    FigureCanvasAgg(figure)
    return figure, figure.subplots(rows, columns, squeeze=False)


def check_path(path: str | Path) -> Path:
    """A path whose ending is a picture format."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise InputError("plot", f"must end in one of {', '.join(FORMATS)}", str(path))
    if not path.parent.is_dir():
        raise InputError("plot", "must lie in an existing folder", str(path))
    return path


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


def draw_curve(rows: Sequence[dict[str, Any]], along: str, answers: Sequence[Risk], path: str | Path) -> None:
    """The reducible terms along one size, with error bars where the rung has them."""
    check_path(path)
    figure, grid = new_figure(5.2, 3.8)
    axes = grid[0, 0]
    x = [row[along] for row in rows]
    for marker, (name, colour) in zip(MARKERS, COLOURS.items(), strict=False):
        y = [row[name] for row in rows]
        errors = [answer.standard_error.get(name, 0.0) for answer in answers]
        label = "approx + bias + variance" if name == "reducible" else name
        if any(errors):
            axes.errorbar(
                x, y, yerr=errors, color=colour, marker=marker, markersize=3.5, capsize=2, label=label
            )
        else:
            axes.plot(x, y, color=colour, marker=marker, markersize=3.5, label=label)
    first, last = answers[0], answers[-1]
    tested = f"{first.eval_length}" if first.eval_length == last.eval_length else "its own length"
    tidy(axes, along, "risk", f"Regime {first.regime}, {first.rung} rung, tested at length {tested}")
    axes.legend(frameon=False, fontsize="small")
    save(figure, path)


def draw_spectrum(answer: AveragedSpectrum, setting: Setting, path: str | Path) -> None:
    """h_P and its two parts, with the crossing (the paper's m_P), the cutoff κ and the width M marked."""
    check_path(path)
    figure, grid = new_figure(5.2, 3.8)
    axes = grid[0, 0]
    axes.plot(answer.j, answer.initial, color=COLOURS["bias"], linestyle="--", label="initialization")
    axes.plot(answer.j, answer.innovation, color=COLOURS["approx"], linestyle="-.", label="innovations")
    axes.plot(answer.j, answer.total, color=COLOURS["reducible"], label="$h_P$, their sum")
    top = float(answer.total.max())
    axes.set_ylim(max(float(answer.total.min()) / 30, top * 1e-14), top * 3)
    for name, place in (("$m_P$", answer.crossing), ("κ", answer.kappa), ("$M$", float(setting.M))):
        if place is not None and 1 <= place <= answer.j[-1]:
            axes.axvline(place, color="0.6", linewidth=0.8, linestyle=":")
            axes.annotate(
                name, (place, 0.02), xycoords=("data", "axes fraction"), ha="left", fontsize="small"
            )
    tidy(axes, "mode j", "variance", f"Regime {setting.regime}: averaged covariance at P = {setting.P}")
    axes.legend(frameon=False, fontsize="small")
    save(figure, path)


def share_range(axes: Sequence[Axes], *, below: float = 0.12, above: float = 0.12) -> None:
    """One logarithmic y range for axes in a row, with room as a share of what is drawn, labelled once."""
    low, high = (pick(place.dataLim.intervaly[k] for place in axes) for k, pick in ((0, min), (1, max)))
    span = max(math.log(high / low), math.log(1.05))  # a flat line is not blown up to a mountain
    for place in axes:
        place.set_ylim(low * math.exp(-below * span), high * math.exp(above * span))
        few_ticks(place)
        place.tick_params(which="both", labelleft=place is axes[0])


def draw_tradeoff(answers: Sequence[Tradeoff], path: str | Path) -> None:
    """Longer or more: one panel a test, one curve a regime, each relative to its shortest sequences.

    The first answer is what was asked for; others stand beside it, thin and dashed.
    """
    check_path(path)
    tests, asked = list(answers[0].best), answers[0]
    figure, grid = new_figure(3.3 * len(tests) + 0.4, 3.8, 1, len(tests))
    for axes, tested in zip(grid[0], tests, strict=True):
        for answer in answers:
            curve = answer.curve(tested)
            x, y = [row.P for row in curve], [row.reducible / curve[0].reducible for row in curve]
            k = answer.regime == "II"
            style: dict[str, Any] = {"label": f"Regime {answer.regime}"}
            if answer is not asked:
                style = {
                    "label": f"Regime {answer.regime}, for comparison",
                    "linestyle": "--",
                    "linewidth": 1,
                }
            axes.plot(x, y, color=SERIES[k], marker=MARKERS[k], markersize=4, **style)
            verdict = "longer wins" if y[-1] < 0.95 else "more wins" if y[-1] > 1.05 else "no difference"
            above, times = y[-1] > 1, max(y[-1], 1 / y[-1])
            axes.annotate(
                f"{verdict}, {times:.{3 if times < 2 else 2}g}×",
                (x[-1], y[-1]),
                textcoords="offset points",
                xytext=(0, 6 if above else -12),
                ha="right",
                fontsize="small",
                color=SERIES[k],
            )
        axes.axhline(1.0, color="0.6", linewidth=0.8, linestyle=":")
        own = tested == "own"
        tidy(
            axes,
            "length P of the training sequences",
            f"reducible risk relative to P = {curve[0].P:,}" if axes is grid[0, 0] else "",
            "tested at the training length\n(the paper's view)"
            if own
            else f"all tested at length {int(tested):,}",
        )
    share_range(grid[0], below=0.2, above=0.2)
    handles, labels = grid[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, fontsize="small"
    )
    figure.suptitle(
        f"Longer sequences or more of them? The same {asked.tokens:,} tokens, split", fontsize="medium"
    )
    save(figure, path)


def draw_plan(answer: Plan, path: str | Path) -> None:
    """The least risk under the budgets at each width (the isoFLOP curve) and at each length."""
    check_path(path)
    figure, grid = new_figure(8.8, 3.8, columns=2)
    best = answer.finite.best
    for axes, size, name, points in (
        (grid[0, 0], "M", "width M", answer.finite.isoflop),
        (grid[0, 1], "P", "length P", answer.finite.by_length),
    ):
        x = [getattr(point, size) for point in points]
        axes.plot(x, [point.reducible for point in points], color=SERIES[0], marker="o", markersize=4)
        here = getattr(best, size)
        axes.plot([here], [best.reducible], color=SERIES[1], marker="*", markersize=13, linestyle="none")
        tidy(axes, f"{name}, the other sizes chosen anew", "", f"{size} = {here:,}")
    share_range(grid[0])  # or a fall of 5 % along P would look as steep as one to a fifth along M
    grid[0, 0].set_ylabel("least reducible risk at this budget")
    tested = "the training length" if answer.eval_length is None else f"length {answer.eval_length}"
    figure.suptitle(
        f"Regime {answer.regime}, tested at {tested}: M={best.M:,}  N={best.N:,}  P={best.P:,}  L={best.L:,}",
        fontsize="medium",
    )
    save(figure, path)
