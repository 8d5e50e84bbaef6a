"""The six panels of the paper's experiments, on the equivalent rung or from a reproduce folder."""

from __future__ import annotations

import json
import shlex
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from seqlaw.answers.rungs import caption_of
from seqlaw.fit import fit_power_law
from seqlaw.model.checks import InputError, needs
from seqlaw.paper.experiments.panels import Panel, paper_panels, quick_panels, select
from seqlaw.paper.experiments.run import tasks
from seqlaw.paper.experiments.slopes import Measured, measured
from seqlaw.paper.experiments.task import panel_rows
from seqlaw.paper.report.figures import relative_label
from seqlaw.rungs.rows import Row

Curve = dict[str, Any]


def check_results(folder: str) -> Path:
    """A folder of `seqlaw reproduce` that can be read here."""
    if not all((Path(folder) / name).is_file() for name in ("rows.parquet", "table.json")):
        raise InputError(
            "results", "must be a folder of `seqlaw reproduce` with rows.parquet and table.json", folder
        )
    if find_spec("pyarrow") is None:
        raise InputError("results", needs("pyarrow", "lab"), folder)
    return Path(folder)


def panels(folder: str | None = None) -> dict[str, Any]:
    """The panels as the report draws them: curves, guides, x; on the equivalent rung or as measured."""
    if folder is None:
        chosen = list(paper_panels().values())
        how: dict[str, Any] = {"rung": "equivalent"}
        rows = [row for task in tasks(chosen, ["equivalent"]) for row in panel_rows(task, 0)]
        source, folder = caption_of("equivalent").key, "results/equivalent"
    else:
        path = check_results(folder)
        chosen, how, rows = _recorded(path)
        grid = ", quick grid" if "quick" in how else ""
        source = f"{how['rung']} rung, seed {how['seed']}{grid}, from {path.name}"
    seed, overlays = how.get("seed", 0), how.get("overlay", [])
    series = {rung: measured(rows, chosen, rung) for rung in (how["rung"], *overlays)}
    return {
        "source": source,
        "overlay": {rung: _line(rung) for rung in overlays},
        "panels": [
            {
                "regime": panel.regime,
                "quantity": panel.quantity,
                "title": panel.title,
                "relative": None if panel.reference is None else relative_label(panel).replace("$", ""),
                "curves": [_curve(one, seed) for one in series[how["rung"]] if one.panel is panel],
                "overlays": [_shape(one) for rung in overlays for one in series[rung] if one.panel is panel],
            }
            for panel in chosen
        ],
        "copy": _copies(folder, how),
        "flags": [],
    }


def _line(rung: str) -> dict[str, str]:
    """How a rung laid over these is drawn, in Plotly's pixels and in words."""
    caption = caption_of(rung)
    return {"dash": ",".join(f"{1.6 * one:g}px" for one in caption.dashes), "words": caption.dashed}


def _copies(folder: str, how: dict[str, Any]) -> dict[str, str]:
    """The run that draws these panels; on the folder that holds them it computes nothing anew."""
    options = [
        f"--{name}" if value is True else f"--{name}={value}"
        for name, given in how.items()
        for value in (given if isinstance(given, list) else [given])
    ]
    given = ", ".join(f"{name}={value!r}" for name, value in how.items())
    return {
        "command": shlex.join(["seqlaw", "reproduce", "--out", folder, *options]),
        "python": (
            "from seqlaw import reproduce\n\n"
            f"result = reproduce({folder!r}, {given})\n"
            "for row in result.slopes:\n"
            "    print(row.regime, row.quantity, row.against, row.slope)\n"
        ),
    }


def _shape(one: Measured) -> Curve:
    """A series as a line: `x` is the size, `shown` where the report puts it."""
    curve = one.curve
    return {
        "axis": curve.series.against,
        "rung": curve.rung,
        "x": curve.x,
        "shown": one.relative_x,
        "y": curve.y,
    }


def _curve(one: Measured, seed: int) -> Curve:
    """A series with its error bars, its guide, and the slopes of both beside the paper's."""
    curve = one.curve
    fit, se = fit_power_law(curve.x, curve.y), curve.slope_se(seed)
    return _shape(one) | {
        "error": curve.error,
        "slope": fit.slope,
        "se": fit.se if se is None else se,
        # Without several sketches to resample, what is left beside the line is its curvature.
        "se_is": "curvature" if se is None else "standard error",
        "paper": curve.series.printed.slope,
        "guide": one.guide.y,
        "guide_slope": one.guide.slope,
    }


def _recorded(folder: Path) -> tuple[list[Panel], dict[str, Any], list[Row]]:
    """The panels that the folder holds, the options of the run, and its rows."""
    from pyarrow.parquet import read_table

    try:
        record = json.loads((folder / "table.json").read_text(encoding="utf-8"))
        rung, seed, quick = record["rung"], record["seed"], record["grid"] == "quick"
        replicates, overlay = record["replicates"], record["overlay"]
        letters = "".join(dict.fromkeys(row["panel"] for row in record["slopes"]))
    except (ValueError, KeyError, TypeError):
        rule = "must have the table.json that `seqlaw reproduce` wrote"
        raise InputError("results", rule, str(folder)) from None
    chosen = select(quick_panels() if quick else paper_panels(), letters)
    rows = [row for row in read_table(folder / "rows.parquet").to_pylist() if row["seed"] == seed]
    how: dict[str, Any] = {"rung": rung, "seed": seed}
    how |= {"quick": True} if quick else {}
    how |= {"panels": letters} if len(letters) < len(paper_panels()) else {}
    how |= {"replicate": replicates} if replicates > 1 else {}
    how |= {"overlay": overlay} if overlay else {}
    return chosen, how, rows
