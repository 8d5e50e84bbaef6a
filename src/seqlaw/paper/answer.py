"""The reproduction as an answer: the ten slopes beside the paper's, and where everything was written."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import seqlaw
from seqlaw.answers.answer import Answer
from seqlaw.answers.render import Block, Table
from seqlaw.answers.words import Side
from seqlaw.lab.work import versions
from seqlaw.methods.terms import Row
from seqlaw.model.flags import Flag, flag
from seqlaw.paper.experiments.panels import Panel
from seqlaw.paper.experiments.slopes import Agreement, Measured, SlopeRow
from seqlaw.paper.report.figures import HEIGHT, WIDTH, draw_panel
from seqlaw.paper.report.formats import cells, ratio_cells

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction(Answer):
    """The results of one run of the experiments; all but `files` and `seconds` follow from the inputs."""

    out: Path
    method: str
    seed: int
    quick: bool
    panels: list[Panel]
    series: list[Measured]
    smooth: list[Measured]
    """The same series without sampling, for comparison."""
    overlays: list[list[Measured]]
    slopes: list[SlopeRow]
    agreement: dict[str, Agreement]
    clipping: float
    conditions: list[dict[str, Any]]
    replicates: int
    rows: list[Row]
    device: str | None = None
    others: Mapping[str, int] = field(default_factory=dict)
    """Tasks in the folder that other code recorded, and that were not used."""
    files: list[Path] = field(default_factory=list)
    seconds: float = 0.0
    command: ClassVar[str] = "reproduce"

    @property
    def pictures(self) -> tuple[int, float, float]:  # type: ignore[override]  # one a panel
        return len(self.panels), WIDTH / 3 * len(self.panels), HEIGHT

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
            "versions": _versions(),
        } | ({} if self.device is None else {"device": self.device})

    def inputs(self) -> Mapping[str, Any]:
        return {
            "out": str(self.out),
            "method": self.method,
            "panels": "".join(panel.name for panel in self.panels),
            "quick": self.quick,
            "replicate": self.replicates,
            "overlay": [overlay[0].curve.method for overlay in self.overlays],
            "seed": self.seed,
        } | ({} if self.device is None else {"device": self.device})

    def fields(self) -> Mapping[str, Any]:
        return self.document() | {"files": [str(path) for path in self.files], "seconds": self.seconds}

    def blocks(self, side: Side) -> Iterable[Block]:
        lines = [cells(row) for row in self.slopes]
        names = [f"{regime:<3}{name}" for regime, name, *_ in lines]
        yield Table(
            rows=[(name, *line[2:]) for name, line in zip(names, lines, strict=True)],
            header=("slope of", "here", "± se", "guide", "paper", "its guide", "z"),
            title=f"Log–log slopes, {self.method} method, seed {self.seed}",
        )
        if self.replicates > 1:
            yield Table(
                rows=[
                    (
                        name,
                        f"{row.replicate_mean:.4f}",
                        f"{row.replicate_spread:.2g}",
                        f"{row.paper_slope:.3f}",
                    )
                    for name, row in zip(names, self.slopes, strict=True)
                ],
                header=("slope of", "mean", "spread", "paper"),
                title=f"The same over {self.replicates} replicates, seeds {self.seed} to "
                f"{self.seed + self.replicates - 1}",
            )
        if self.agreement:
            yield Table(
                rows=ratio_cells(self.agreement),
                header=("Regime II", "mean [least, largest]", "paper"),
                title="Measured over guide",
            )
        smaller = "; not given on the smaller grid, which has different slopes." if self.quick else "."
        yield f"z: distance from the paper's slope, in standard deviations of such a difference{smaller}"
        clipped = f"in {self.clipping:.1%} of the rows" if self.clipping else "nowhere"
        yield f"The safeguard clipped the step size {clipped} (in the paper nowhere)."
        yield f"Written in {self.seconds:.1f} s:"
        yield from (str(path) for path in self.files)

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """One slope a row."""
        return [asdict(row) | {"method": self.method, "seed": self.seed} for row in self.slopes]

    def flagged(self) -> Sequence[Flag]:
        drawn = [] if self.device is None else [flag("device-stream")]
        return drawn + [flag("software", name=name, tasks=count) for name, count in self.others.items()]

    def draw(self, axes: Sequence[Axes]) -> None:
        """The panels, one axes each."""
        for place, panel in zip(axes, self.panels, strict=True):
            draw_panel(place, panel, self.series, self.overlays)


def _versions() -> dict[str, str]:
    """The software on which the last bits of a number depend."""
    names = ("numpy", "scipy", "numba", "matplotlib")
    found = dict.fromkeys(names, "not installed") | versions(*names)
    return {"seqlaw": seqlaw.__version__, "python": platform.python_version()} | found
