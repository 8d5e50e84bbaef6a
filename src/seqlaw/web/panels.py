"""The six panels of the paper's experiments, on the equivalent rung or from a reproduce folder."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from seqlaw.fit import fit_power_law
from seqlaw.model.checks import InputError, needs
from seqlaw.paper import curves
from seqlaw.paper.panels import Panel, Series, paper_panels, quick_panels, select
from seqlaw.rungs.equivalent import equivalent_risks

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
    """The panels' curves with their slopes and the paper's, on the equivalent rung or as measured."""
    if folder is None:
        chosen, how = paper_panels(), {"rung": "equivalent"}
        shown = _equivalent(list(chosen.values()))
        source, folder = "equivalent rung", "results/equivalent"
    else:
        path = check_results(folder)
        chosen, how, shown = _measured(path)
        source = f"measured by seqlaw reproduce, {path.name}"
    return {
        "source": source,
        "panels": [
            {"regime": panel.regime, "quantity": panel.quantity, "curves": found}
            for panel, found in zip(chosen.values(), shown, strict=True)
        ],
        "copy": _copies(folder, how),
        "flags": [],
    }


def _copies(folder: str, how: dict[str, Any]) -> dict[str, str]:
    """The run that measures these panels; on the folder that holds them it computes nothing anew."""
    options = [f"--{name}" if value is True else f"--{name}={value}" for name, value in how.items()]
    given = ", ".join(f"{name}={value!r}" for name, value in how.items())
    return {
        "command": shlex.join(["seqlaw", "reproduce", "--out", folder, *options]),
        "python": (
            "from seqlaw.paper.reproduce import reproduce\n\n"
            f"result, files, seconds = reproduce({folder!r}, {given})\n"
            "for row in result.slopes:\n"
            "    print(row.regime, row.quantity, row.against, row.slope)\n"
        ),
    }


def _equivalent(chosen: Sequence[Panel]) -> list[list[Curve]]:
    """All panels in one batch, without a random number."""
    grid = [panel.series for panel in chosen]
    answers = iter(equivalent_risks([s for group in grid for series in group for s in series.settings]))
    return [
        [
            _curve(series, [float(getattr(next(answers), series.quantity)) for _ in series.x])
            for series in group
        ]
        for group in grid
    ]


def _curve(series: Series, y: list[float]) -> Curve:
    fit = fit_power_law(series.x, y)
    return {
        "axis": series.against,
        "x": series.x,
        "y": y,
        "error": None,
        "slope": fit.slope,
        "se": fit.se,
        "paper": series.printed.slope,
    }


def _measured(folder: Path) -> tuple[dict[str, Panel], dict[str, Any], list[list[Curve]]]:
    """The panels that the folder holds, the options of the run, and its curves with the table's errors."""
    from pyarrow.parquet import read_table

    try:
        record = json.loads((folder / "table.json").read_text(encoding="utf-8"))
        rung, seed, quick = record["rung"], record["seed"], record["grid"] == "quick"
        letters = "".join(dict.fromkeys(row["panel"] for row in record["slopes"]))
    except (ValueError, KeyError, TypeError):
        rule = "must have the table.json that `seqlaw reproduce` wrote"
        raise InputError("results", rule, str(folder)) from None
    chosen = {panel.name: panel for panel in select(quick_panels() if quick else paper_panels(), letters)}
    rows = [row for row in read_table(folder / "rows.parquet").to_pylist() if row["seed"] == seed]
    shown = []
    for panel in chosen.values():
        found = [curves.curve(rows, panel, series, rung) for series in panel.series]
        shown.append(
            [
                _curve(one.series, one.y.tolist())
                | {"error": None if one.error is None else one.error.tolist()}
                | ({} if (se := one.slope_se(seed)) is None else {"se": se})
                for one in found
            ]
        )
    how: dict[str, Any] = {"rung": rung, "seed": seed}
    how |= {"quick": True} if quick else {}
    how |= {"panels": letters} if len(letters) < len(paper_panels()) else {}
    how |= {"replicate": record["replicates"]} if record["replicates"] > 1 else {}
    return chosen, how, shown
