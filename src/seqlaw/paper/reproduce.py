"""The paper in one call: measure, tabulate, draw, report. The same seed gives the same files."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from pathlib import Path

from seqlaw.answers.answer import fields_of
from seqlaw.lab.engine import Notice
from seqlaw.lab.run import Progress
from seqlaw.methods.ask import method_name, method_of
from seqlaw.methods.method import Method
from seqlaw.model.checks import MissingLibrary, checked, needs, whole
from seqlaw.model.device import cards, device_name
from seqlaw.paper.answer import Reproduction
from seqlaw.paper.experiments.conditions import conditions
from seqlaw.paper.experiments.panels import paper_panels, quick_panels, select
from seqlaw.paper.experiments.reproduction import Reproduction as Record
from seqlaw.paper.experiments.roles import SMOOTH
from seqlaw.paper.experiments.run import measure, plan, write_rows
from seqlaw.paper.experiments.slopes import agreement, clipping_rate, measured, slope_table
from seqlaw.paper.report import formats
from seqlaw.paper.report.figures import draw_panels, save_all
from seqlaw.paper.report.page import page

_LIBRARIES = (
    ("matplotlib", "the figure", "plot"),
    ("jinja2", "the report", "plot"),
    ("pyarrow", "rows.parquet", "lab"),
)


@checked
def reproduce(
    out: Path | str,
    *,
    method: str | Method = "sampled",
    panels: str | Sequence[str] | None = None,
    quick: bool = False,
    replicate: int = 1,
    overlay: Sequence[str | Method] = (),
    seed: int = 0,
    jobs: int = 1,
    device: str | None = None,
    progress: Progress = lambda summary, share: None,
    step: Notice = lambda text: None,
    notice: Notice = lambda line: None,
) -> Reproduction:
    """Reproduce the paper's experiments in the folder `out`: the numbers, and the files that hold them.

    `method` replaces the sampled trajectories by their expectation (`exact`) or also the sketches by theirs
    (`equivalent`); `overlay` draws further methods into the figure. `replicate` K runs the whole experiment
    with seeds seed … seed + K - 1 for the spread of each slope. What `out` has recorded is not run again.
    `device="cuda"` draws on GPUs, `jobs` of them at most: other data than the CPU's, of the same law.
    `progress` gets each record of all the seeds together, `step` what comes after them.
    """
    start = time.monotonic()
    name = method_name(method_of(method))
    over = [method_name(method_of(other, field="overlay")) for other in overlay]
    seed, replicate, folder = whole("seed", seed, least=0), whole("replicate", replicate), Path(out)
    chosen = select(quick_panels() if quick else paper_panels(), panels)
    device = device_name(device)
    jobs = whole("jobs", jobs, most=cards() if device == "cuda" else None)
    _require_libraries()
    methods = list(dict.fromkeys([name, *over, SMOOTH]))
    works = [plan(chosen, methods, folder=folder, seed=seed, device=device)]
    works += [plan(chosen, [name], folder=folder, seed=seed + k, device=device) for k in range(1, replicate)]
    found, others = measure(works, folder=folder, jobs=jobs, progress=progress, notice=notice)
    step("drawing the figure, writing the report")
    series = {one: measured(found[0], chosen, one) for one in methods}
    again = [series[name], *(measured(rows, chosen, name) for rows in found[1:])]
    rows = [row for rows in found for row in rows]
    result = Record(
        method=name,
        seed=seed,
        device=device,
        quick=quick,
        panels=chosen,
        series=series[name],
        smooth=series[SMOOTH],
        overlays=[series[one] for one in methods if one in over and one != name],
        slopes=slope_table(series[name], seed=seed, quick=quick, replicates=again),
        agreement=agreement(series[name]),
        clipping=clipping_rate(rows),
        conditions=conditions(chosen),
        replicates=replicate,
        rows=rows,
    )
    files = _write(result, folder)
    seconds = time.monotonic() - start
    return Reproduction(**fields_of(result, out=folder, files=files, seconds=seconds, others=others))


def _require_libraries() -> None:
    """What the files need is asked for before anything runs, not after the work."""
    for name, file, extra in _LIBRARIES:
        if importlib.util.find_spec(name) is None:
            raise MissingLibrary(f"{file} {needs(name, extra)}")


def _write(result: Record, folder: Path) -> list[Path]:
    """All output files; none holds a time or a name of the machine."""
    paths = save_all(draw_panels(result.series, result.overlays), folder, "figure")
    texts = {
        "table.md": formats.as_markdown(result.slopes, result.agreement),
        "table.csv": formats.as_csv(result.slopes),
        "table.json": formats.as_json(result.document()),
        "table.tex": formats.as_tex(result.slopes),
        "report.html": page(result, paths[-1].read_bytes()),
    }
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    write_rows(result.rows, result.panels, folder / "rows.parquet")
    return [*paths, *(folder / name for name in texts), folder / "rows.parquet"]
