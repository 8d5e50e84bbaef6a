"""The six panels of the paper's experiments: the grids, on the equivalent rung or from a reproduce folder."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

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


def check_results(folder: str) -> Path:
    """The rows of a reproduce folder."""
    rows = Path(folder) / "rows.parquet"
    if not rows.is_file():
        raise InputError("results", "must be a folder of `seqlaw reproduce` with rows.parquet", folder)
    return rows


def panels(folder: str | None) -> dict[str, Any]:
    """Six panels of curves with their slopes and the paper's."""
    sweeps = [(key, sweep) for key, group in GRIDS.items() for sweep in group]
    settings = [sweep.settings(regime) for (regime, _), sweep in sweeps]
    answers = iter(equivalent_risks([setting for group in settings for setting in group]))
    shown: dict[tuple[str, str], list[dict[str, Any]]] = {key: [] for key in GRIDS}
    for ((regime, quantity), sweep), group in zip(sweeps, settings, strict=True):
        axis = "R" if sweep.axis == "L" else sweep.axis
        x = [s.schedule.horizon if axis == "R" else float(getattr(s, axis)) for s in group]
        y = [float(getattr(next(answers), quantity)) for _ in group]
        fit = fit_power_law(x, y)
        shown[regime, quantity].append(
            {"axis": axis, "x": x, "y": y, "slope": fit.slope, "se": fit.se, "paper": sweep.paper}
        )
    return {
        "source": "equivalent rung",
        "panels": [{"regime": r, "quantity": q, "curves": curves} for (r, q), curves in shown.items()],
        "copy": {
            "command": "seqlaw reproduce --rung equivalent --out results",
            "python": (
                "from seqlaw.web.panels import panels\n\n"
                "for panel in panels(None)['panels']:\n"
                "    for curve in panel['curves']:\n"
                "        print(panel['regime'], panel['quantity'], curve['axis'], curve['slope'])\n"
            ),
        },
        "flags": [],
    }
