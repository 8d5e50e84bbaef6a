"""The paper in one call: measure, tabulate, draw, report. The same seed gives the same files."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import seqlaw
from seqlaw.lab.engine import Notice
from seqlaw.lab.run import Progress, Summary
from seqlaw.model.checks import InputError, MissingLibrary, needs, whole
from seqlaw.paper import table as tables
from seqlaw.paper.curves import Row
from seqlaw.paper.figure import draw_panels, save_all
from seqlaw.paper.panels import Panel, paper_panels, quick_panels, select
from seqlaw.paper.report import report
from seqlaw.paper.run import measure, tasks, work_left, workers, write_rows
from seqlaw.paper.table import Agreement, Measured, SlopeRow
from seqlaw.rungs.ask import RUNGS


@dataclass(frozen=True, kw_only=True, eq=False)
class Reproduction:
    """What one run of the experiments gave; everything here is a function of its inputs."""

    rung: str
    seed: int
    quick: bool
    panels: list[Panel]
    series: list[Measured]
    equivalent: list[Measured]
    """The same series with nothing sampled, for comparison."""
    overlays: list[list[Measured]]
    slopes: list[SlopeRow]
    agreement: dict[str, Agreement]
    clipping: float
    conditions: list[dict[str, Any]]
    replicates: int
    rows: list[Row]

    def document(self) -> dict[str, Any]:
        """The numbers as plain types: `table.json`, and what the command prints."""
        return {
            "rung": self.rung,
            "grid": "quick" if self.quick else "paper",
            "seed": self.seed,
            "replicates": self.replicates,
            "overlay": [overlay[0].curve.rung for overlay in self.overlays],
            "slopes": [asdict(row) for row in self.slopes],
            "agreement": {name: asdict(ratio) for name, ratio in self.agreement.items()},
            "clipping_rate": self.clipping,
            "conditions": self.conditions,
            "versions": versions(),
        }


def versions() -> dict[str, str]:
    """The software that the last bits of a number depend on."""
    found = {"seqlaw": seqlaw.__version__, "python": platform.python_version()}
    for name in ("numpy", "scipy", "numba", "matplotlib"):
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = "not installed"
    return found


def reproduce(
    out: Path | str,
    *,
    rung: str = "sampled",
    panels: Sequence[str] | None = None,
    quick: bool = False,
    replicate: int = 1,
    overlay: Sequence[str] = (),
    seed: int = 0,
    jobs: int = 1,
    announce: Callable[[float], None] = lambda seconds: None,
    progress: Progress = lambda summary, share: None,
    step: Notice = lambda text: None,
    notice: Notice = lambda line: None,
) -> tuple[Reproduction, list[Path], float]:
    """Reproduce the paper's experiments in the folder `out`; returns the result, its files and the seconds.

    `rung` replaces the sampled trajectories by their expectation (`exact`) or also the sketches by theirs
    (`equivalent`); `overlay` draws further rungs into the figure. `replicate` K runs the whole experiment
    with seeds seed … seed + K - 1 for the spread of each slope. What `out` has recorded is not run again.
    `announce` gets the estimated seconds, `progress` each record of all the seeds together, `step` what
    comes after them.
    """
    start = time.monotonic()
    for name, value in (("rung", rung), *(("overlay", other) for other in overlay)):
        if value not in RUNGS:
            raise InputError(name, f"must be one of {', '.join(RUNGS)}", value)
    seed, replicate, folder = whole("seed", seed, least=0), whole("replicate", replicate), Path(out)
    chosen = select(quick_panels() if quick else paper_panels(), panels)
    jobs = whole("jobs", jobs)
    _require_libraries()
    rungs = list(dict.fromkeys([rung, *overlay, "equivalent"]))
    runs = [(seed, rungs), *((seed + k, [rung]) for k in range(1, replicate))]
    works = [work_left(chosen, names, folder=folder, seed=one) for one, names in runs]
    counts = [len(tasks(chosen, names)) for _, names in runs]
    announce(sum(work / workers(work, jobs) for work in works))
    found: list[list[Row]] = []
    ended: list[Summary] = []

    def show(summary: Summary, share: float) -> None:
        done = sum(works[: len(ended)]) + share * works[len(ended)]
        progress(_together([*ended, summary], sum(counts)), done / sum(works) if any(works) else 1.0)

    for one, names in runs:
        rows, summary = measure(
            chosen, names, folder=folder, seed=one, jobs=jobs, progress=show, notice=notice
        )
        found.append(rows)
        ended.append(summary)
    step("drawing the figure, writing the report")
    series = {name: tables.measured(found[0], chosen, name) for name in rungs}
    again = [series[rung], *(tables.measured(rows, chosen, rung) for rows in found[1:])]
    rows = [row for rows in found for row in rows]
    result = Reproduction(
        rung=rung,
        seed=seed,
        quick=quick,
        panels=chosen,
        series=series[rung],
        equivalent=series["equivalent"],
        overlays=[series[name] for name in rungs if name in overlay and name != rung],
        slopes=tables.slope_table(series[rung], seed=seed, quick=quick, replicates=again),
        agreement=tables.agreement(series[rung]),
        clipping=tables.clipping_rate(rows),
        conditions=tables.conditions(chosen),
        replicates=replicate,
        rows=rows,
    )
    return result, _write(result, folder), time.monotonic() - start


def _require_libraries() -> None:
    """What the files need is asked for before anything runs, not after the work."""
    for name, file, extra in (("matplotlib", "the figure", "plot"), ("pyarrow", "rows.parquet", "lab")):
        if importlib.util.find_spec(name) is None:
            raise MissingLibrary(f"{file} {needs(name, extra)}")


def _together(parts: Sequence[Summary], tasks: int) -> Summary:
    """Several measurements as one of `tasks` tasks."""
    return Summary(
        tasks=tasks,
        done=sum(part.done for part in parts),
        skipped=sum(part.skipped for part in parts),
        failed=sum(part.failed for part in parts),
        seconds=sum(part.seconds for part in parts),
        others=parts[0].others,
    )


def _write(result: Reproduction, folder: Path) -> list[Path]:
    """All output files; none holds a time or a name of the machine."""
    figure = draw_panels(result.series, result.overlays)
    paths = save_all(figure, folder, "figure")
    texts = {
        "table.md": tables.as_markdown(result.slopes, result.agreement),
        "table.csv": tables.as_csv(result.slopes),
        "table.json": tables.as_json(result.document()),
        "table.tex": tables.as_tex(result.slopes),
        "report.html": report(result, paths[-1]),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    write_rows(result.rows, folder / "rows.parquet")
    return [*paths, *(folder / name for name in texts), folder / "rows.parquet"]
