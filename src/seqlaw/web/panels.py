"""The six panels of the paper's experiments: the grids, on the equivalent rung or from a reproduce folder."""

from __future__ import annotations

import shlex
from collections import Counter
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from seqlaw.fit import fit_power_law
from seqlaw.model.checks import InputError
from seqlaw.model.schedule import BlockDecay
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import PRESETS
from seqlaw.rungs.ask import along
from seqlaw.rungs.equivalent import equivalent_risks

_GAMMA = 0.1


@dataclass(frozen=True, kw_only=True)
class Sweep:
    """One curve of a panel: a term along one size."""

    axis: str
    """M, N, P, or L (drawn against the horizon R)."""
    values: tuple[int, ...]
    M: int
    d: int
    P: int
    N: int = 4096
    L: int = 64000
    paper: float
    """The slope that the paper prints."""

    def settings(self, regime: str) -> list[Setting]:
        teacher = PRESETS["regime1" if regime == "I" else "regime2"]
        base = Setting(
            teacher=teacher, M=self.M, N=self.N, P=self.P, d=self.d,
            schedule=BlockDecay(gamma=_GAMMA, L=self.L),
        )  # fmt: skip
        if self.axis == "L":
            return [replace(base, schedule=BlockDecay(gamma=_GAMMA, L=L)) for L in self.values]
        return along(base, self.axis, self.values)


_HUNDREDS = (1024, 1536, 2048, 3072, 4096)
_I, _II = {"M": 20, "d": 128, "P": 4096}, {"M": 40, "d": 128, "P": 40, "N": 65536, "L": 302909}
GRIDS: dict[tuple[str, str], tuple[Sweep, ...]] = {
    ("I", "approx"): (
        Sweep(axis="M", values=(12, 16, 24, 32, 48, 64, 96, 128), M=12, d=768, P=4096, paper=-0.962),
    ),
    ("I", "bias"): (
        Sweep(
            axis="L", values=tuple(4000 * 2**k for k in range(10)), M=512, d=2048, P=4096, paper=-0.718
        ),
    ),
    ("I", "variance"): (
        Sweep(axis="N", values=_HUNDREDS, paper=-1.008, **_I),
        Sweep(axis="P", values=_HUNDREDS, paper=-1.066, **_I),
        Sweep(
            axis="L", values=(500, 1000, 2000, 3000, 4000, 6000, 8000, 16000, 32000, 64000),
            paper=0.733, **_I,
        ),
    ),
    ("II", "approx"): (
        Sweep(axis="P", values=(4, 6, 8, 12, 16, 24, 32, 48), M=512, d=2048, P=4, paper=-0.949),
    ),
    ("II", "bias"): (
        Sweep(axis="P", values=(4, 6, 8, 12, 16, 24), M=1024, d=2048, P=4, L=142397, paper=-0.200),
    ),
    ("II", "variance"): (
        Sweep(
            axis="N", values=(16384, 24576, 32768, 49152, 65536, 98304, 131072), paper=-0.986, **_II
        ),
        Sweep(axis="P", values=(8, 12, 16, 24, 32, 40), paper=-1.253, **_II),
        Sweep(
            axis="L", values=(168485, 248461, 358079, 498539, 670813, 875698, 1113868),
            paper=0.388, **_II,
        ),
    ),
}  # fmt: skip
"""The grids of the paper's last appendix."""


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
        shown, source = _measured(check_results(folder)), f"measured by seqlaw reproduce in {folder}"
        command = shlex.join(["seqlaw", "explore", "--results", folder])
    return {
        "source": source,
        "panels": [{"regime": r, "quantity": q, "curves": curves} for (r, q), curves in shown.items()],
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


def _curve(axis: str, x: list[float], y: list[float], paper: float) -> Curve:
    fit = fit_power_law(x, y)
    return {"axis": axis, "x": x, "y": y, "slope": fit.slope, "se": fit.se, "paper": paper, "error": None}


def _equivalent() -> dict[tuple[str, str], list[Curve]]:
    sweeps = [(key, sweep) for key, group in GRIDS.items() for sweep in group]
    settings = [sweep.settings(regime) for (regime, _), sweep in sweeps]
    answers = iter(equivalent_risks([setting for group in settings for setting in group]))
    shown: dict[tuple[str, str], list[Curve]] = {key: [] for key in GRIDS}
    for ((regime, quantity), sweep), group in zip(sweeps, settings, strict=True):
        axis = "R" if sweep.axis == "L" else sweep.axis
        x = [s.schedule.horizon if axis == "R" else float(getattr(s, axis)) for s in group]
        y = [float(getattr(next(answers), quantity)) for _ in group]
        shown[regime, quantity].append(_curve(axis, x, y, sweep.paper))
    return shown


def _measured(path: Path) -> dict[tuple[str, str], list[Curve]]:
    """Means over sketches with the paper's error bars, of the panels (a … f) that the folder has.

    Bars: standard deviation over sketches (approximation, bias), standard error of the mean (variance).
    """
    from pyarrow.parquet import read_table

    rows = read_table(path).to_pylist()
    shown: dict[tuple[str, str], list[Curve]] = {}
    for letter, (key, sweeps) in zip("abcdef", GRIDS.items(), strict=True):
        mine = [row for row in rows if row["panel"] == letter]
        rung = next((name for name in _RUNGS if any(row["rung"] == name for row in mine)), None)
        mine = [row for row in mine if row["rung"] == rung]
        if not mine:
            continue
        # The sweeps of a panel cross in one point: the sizes that most of its points share.
        points = {row["point"]: row for row in mine}.values()
        centre = {axis: Counter(row[axis] for row in points).most_common(1)[0][0] for axis in "MNPL"}
        for sweep in sweeps:
            others = [axis for axis in "MNPL" if axis != sweep.axis]
            along = [row for row in mine if all(row[axis] == centre[axis] for axis in others)]
            if len({row[sweep.axis] for row in along}) >= 3:  # fewer have no slope with an error
                shown.setdefault(key, []).append(_measured_curve(along, sweep, key[1]))
    return shown


def _measured_curve(rows: list[dict[str, Any]], sweep: Sweep, quantity: str) -> Curve:
    axis = "R" if sweep.axis == "L" else sweep.axis
    values: dict[float, dict[int, list[float]]] = {}
    for row in rows:
        values.setdefault(float(row[axis]), {}).setdefault(row["sketch"], []).append(row[quantity])
    x = sorted(values)
    means = [[float(np.mean(draws)) for draws in values[at].values()] for at in x]
    curve = _curve(axis, x, [float(np.mean(sketches)) for sketches in means], sweep.paper)
    if all(len(sketches) > 1 for sketches in means):
        share = [1.0 if quantity != "variance" else len(sketches) ** -0.5 for sketches in means]
        curve["error"] = [float(np.std(m, ddof=1)) * c for m, c in zip(means, share, strict=True)]
    return curve
