"""The record of one run of the experiments: what a report is made of."""

from __future__ import annotations

import importlib.metadata
import platform
from dataclasses import asdict, dataclass
from typing import Any

import seqlaw
from seqlaw.methods.rows import Row
from seqlaw.paper.experiments.panels import Panel
from seqlaw.paper.experiments.slopes import Agreement, Measured, SlopeRow


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """What one run of the experiments gave; everything here is a function of its inputs."""

    method: str
    seed: int
    quick: bool
    panels: list[Panel]
    series: list[Measured]
    smooth: list[Measured]
    """The same series with nothing sampled, for comparison."""
    overlays: list[list[Measured]]
    slopes: list[SlopeRow]
    agreement: dict[str, Agreement]
    clipping: float
    conditions: list[dict[str, Any]]
    replicates: int
    rows: list[Row]
    device: str | None = None

    def document(self) -> dict[str, Any]:
        """The numbers as plain types: `table.json`, and what the command prints."""
        return {
            "method": self.method,
            "grid": "quick" if self.quick else "paper",
            "seed": self.seed,
            "replicates": self.replicates,
            "overlay": [overlay[0].curve.method for overlay in self.overlays],
            "slopes": [asdict(row) for row in self.slopes],
            "agreement": {
                name: {key: value for key, value in vars(one).items() if key != "series"}
                for name, one in self.agreement.items()
            },
            "clipping_rate": self.clipping,
            "conditions": self.conditions,
            "versions": versions(),
        } | ({} if self.device is None else {"device": self.device})


def versions() -> dict[str, str]:
    """The software that the last bits of a number depend on."""
    found = {"seqlaw": seqlaw.__version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "numba", "matplotlib"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found
