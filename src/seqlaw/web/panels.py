"""The six panels of the paper's experiments, on the equivalent method or from a reproduce folder."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from seqlaw.answers.methods import caption_of
from seqlaw.files import read
from seqlaw.fit import fit_power_law
from seqlaw.methods.ask import METHODS
from seqlaw.methods.terms import Row
from seqlaw.model.checks import InputError, needs
from seqlaw.paper.experiments.panels import Panel, paper_panels, quick_panels, select
from seqlaw.paper.experiments.run import read_rows, tasks
from seqlaw.paper.experiments.slopes import Measured, measured
from seqlaw.paper.experiments.task import panel_rows
from seqlaw.paper.report.figures import relative_label
from seqlaw.web.schema import METHOD

Curve = dict[str, Any]


def check_results(folder: str, method: str = METHOD) -> Path:
    """A folder of `seqlaw reproduce` that can be read here; `method` is the server's own."""
    if not all((Path(folder) / name).is_file() for name in ("rows.parquet", "table.json")):
        raise InputError(
            "results", "must be a folder of `seqlaw reproduce` with rows.parquet and table.json", folder
        )
    if find_spec("pyarrow") is None:
        raise InputError("results", needs("pyarrow", "lab"), folder)
    _read_run(Path(folder), method)
    return Path(folder)


def panels(folder: str | None = None, method: str = METHOD) -> dict[str, Any]:
    """The panels as the report draws them: curves, guides, x; on the equivalent method or as measured.

    A folder may have been measured on the server's own `method`.
    """
    if folder is None:
        return _panels(None, METHOD)
    try:
        return _panels(folder, method)
    except InputError as error:
        if error.field == "results":
            raise
        why: Exception = error
    except (LookupError, TypeError, ValueError, ArithmeticError, AssertionError) as error:
        why = error
    rule = f"must have rows.parquet as `seqlaw reproduce` wrote it ({type(why).__name__}: {why})"
    raise InputError("results", rule, folder) from None


def _panels(folder: str | None, method: str) -> dict[str, Any]:
    if folder is None:
        chosen = list(paper_panels().values())
        how: dict[str, Any] = {"method": "equivalent"}
        rows = [row for task in tasks(chosen, ["equivalent"]) for row in panel_rows(task, 0)]
        source, folder = caption_of("equivalent").key, "results/equivalent"
    else:
        path = check_results(folder, method)
        chosen, how, rows = _recorded(path, method)
        grid = ", quick grid" if "quick" in how else ""
        source = f"{how['method']} method, seed {how['seed']}{grid}, from {path.name}"
    seed, overlays = how.get("seed", 0), how.get("overlay", [])
    series = {method: measured(rows, chosen, method) for method in (how["method"], *overlays)}
    return {
        "source": source,
        "overlay": {method: _line(method) for method in overlays},
        "panels": [
            {
                "regime": panel.regime,
                "quantity": panel.quantity,
                "title": panel.title,
                "relative": None if panel.reference is None else relative_label(panel).replace("$", ""),
                "curves": [_curve(one, seed) for one in series[how["method"]] if one.panel is panel],
                "overlays": [
                    _shape(one) for method in overlays for one in series[method] if one.panel is panel
                ],
            }
            for panel in chosen
        ],
        "copy": _copies(folder, how),
        "flags": [],
    }


def _line(method: str) -> dict[str, str]:
    """How a method laid over these is drawn, in Plotly's pixels and in words."""
    caption = caption_of(method)
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
        "method": curve.method,
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


@dataclass(frozen=True, kw_only=True)
class _Slope:
    panel: Literal["a", "b", "c", "d", "e", "f"]


@dataclass(frozen=True, kw_only=True)
class _Run:
    """What is read of a table.json."""

    method: str
    seed: Annotated[int, Field(ge=0)]
    grid: Literal["quick", "paper"]
    replicates: Annotated[int, Field(ge=1)]
    overlay: list[str]
    slopes: Annotated[list[_Slope], Field(min_length=1)]


def _read_run(folder: Path, method: str) -> _Run:
    """The run that a folder tells of.

    Whatever it says is data: a method of the user's is taken only if it is the server's own, `method`.
    """
    try:
        found = read(_Run, json.loads((folder / "table.json").read_text(encoding="utf-8")), where="")
    except (OSError, ValueError, RecursionError) as error:
        why = f" ({error.field.lstrip('.')} {error.rule})" if isinstance(error, InputError) else ""
        rule = f"must have the table.json that `seqlaw reproduce` wrote{why}"
        raise InputError("results", rule, str(folder)) from None
    for name in (found.method, *found.overlay):
        if name not in (*METHODS, method):
            rule = f"was made with code that is not seqlaw's, {name}: name it with --method, if you trust it"
            raise InputError("results", rule, str(folder))
    return found


def _recorded(folder: Path, method: str) -> tuple[list[Panel], dict[str, Any], list[Row]]:
    """The panels that the folder holds, the options of the run, and its rows."""
    found = _read_run(folder, method)
    letters = "".join(dict.fromkeys(row.panel for row in found.slopes))
    quick = found.grid == "quick"
    chosen = select(quick_panels() if quick else paper_panels(), letters)
    rows = [row for row in read_rows(folder / "rows.parquet") if row["seed"] == found.seed]
    how: dict[str, Any] = {"method": found.method, "seed": found.seed}
    how |= {"quick": True} if quick else {}
    how |= {"panels": letters} if len(letters) < len(paper_panels()) else {}
    how |= {"replicate": found.replicates} if found.replicates > 1 else {}
    how |= {"overlay": found.overlay} if found.overlay else {}
    return chosen, how, rows
