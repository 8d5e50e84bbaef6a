"""The six panels of the paper's experiments, on the equivalent rung or from a reproduce folder."""

from __future__ import annotations

import shlex
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from seqlaw.fit import fit_power_law
from seqlaw.model.checks import InputError
from seqlaw.paper.panels import Series, paper_panels
from seqlaw.rungs.equivalent import equivalent_risks

Curve = dict[str, Any]
_RUNGS = ("sampled", "population", "exact", "equivalent")
"""The rows of a reproduce folder, the most direct measurement of a panel first."""


def check_results(folder: str) -> Path:
    """The rows of a reproduce folder."""
    rows = Path(folder) / "rows.parquet"
    if not rows.is_file():
        raise InputError("results", "must be a folder of `seqlaw reproduce` with rows.parquet", folder)
    if find_spec("pyarrow") is None:
        raise InputError("results", "needs pyarrow: pip install 'seqlaw[lab]'", folder)
    return rows


def panels(folder: str | None = None) -> dict[str, Any]:
    """The panels' curves with their slopes and the paper's, on the equivalent rung or as measured."""
    if folder is None:
        shown, source = _equivalent(), "equivalent rung"
        command = "seqlaw reproduce --rung equivalent --out results"
    else:
        shown, source = _measured(check_results(folder)), f"measured by seqlaw reproduce, {Path(folder).name}"
        command = shlex.join(["seqlaw", "explore", "--results", folder])
    return {
        "source": source,
        "panels": [
            {"regime": panel.regime, "quantity": panel.quantity, "curves": curves}
            for panel, curves in zip(paper_panels().values(), shown, strict=True)
            if curves
        ],
        "copy": {
            "command": command,
            "python": (
                "from seqlaw.web.panels import panels\n\n"
                f"for panel in panels({'' if folder is None else repr(folder)})['panels']:\n"
                "    for curve in panel['curves']:\n"
                "        print(panel['regime'], panel['quantity'], curve['axis'], curve['slope'])\n"
            ),
        },
        "flags": [],
    }


def _curve(series: Series, x: list[float], y: list[float]) -> Curve:
    fit = fit_power_law(x, y)
    return {
        "axis": series.against,
        "x": x,
        "y": y,
        "error": None,
        "slope": fit.slope,
        "se": fit.se,
        "paper": series.printed.slope,
    }


def _equivalent() -> list[list[Curve]]:
    """All panels in one batch, without a random number."""
    grid = [panel.series for panel in paper_panels().values()]
    answers = iter(equivalent_risks([s for group in grid for series in group for s in series.settings]))
    return [
        [
            _curve(series, series.x, [float(getattr(next(answers), series.quantity)) for _ in series.x])
            for series in group
        ]
        for group in grid
    ]


def _measured(path: Path) -> list[list[Curve]]:
    """Means over sketches with the paper's error bars; no curve where the folder has none.

    Bars: standard deviation over sketches (approximation, bias), standard error of the mean (variance).
    """
    from pyarrow.parquet import read_table

    rows = read_table(path).to_pylist()
    shown: list[list[Curve]] = []
    for letter, panel in paper_panels().items():
        mine = [row for row in rows if row["panel"] == letter]
        rung = next((name for name in _RUNGS if any(row["rung"] == name for row in mine)), None)
        mine = [row for row in mine if row["rung"] == rung]
        # The sweeps of a panel cross in one point: the sizes that most of its points share.
        points = {row["point"]: row for row in mine}.values()
        centre = {axis: Counter(row[axis] for row in points).most_common(1)[0][0] for axis in "MNPL" if mine}
        shown.append([])
        for series in panel.series:
            own = "L" if series.against == "R" else series.against
            along = [row for row in mine if all(row[axis] == centre[axis] for axis in "MNPL" if axis != own)]
            if len({row[own] for row in along}) >= 3:  # fewer have no slope with an error
                shown[-1].append(_measured_curve(along, series))
    return shown


def _measured_curve(rows: list[dict[str, Any]], series: Series) -> Curve:
    values: dict[float, dict[tuple[int, int], list[float]]] = {}
    for row in rows:
        sketches = values.setdefault(float(row[series.against]), {})
        sketches.setdefault((row["seed"], row["sketch"]), []).append(row[series.quantity])
    x = sorted(values)
    means = [[float(np.mean(draws)) for draws in values[at].values()] for at in x]
    curve = _curve(series, x, [float(np.mean(sketches)) for sketches in means])
    if all(len(sketches) > 1 for sketches in means):
        share = [1.0 if series.quantity != "variance" else len(m) ** -0.5 for m in means]
        curve["error"] = [float(np.std(m, ddof=1)) * c for m, c in zip(means, share, strict=True)]
    return curve
