"""The paper in one call: measure, tabulate, draw, report. The same seed gives the same files."""

from __future__ import annotations

import importlib.util
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from seqlaw.lab.engine import Notice
from seqlaw.lab.run import Progress
from seqlaw.methods.ask import method_name, method_of
from seqlaw.methods.method import Method
from seqlaw.model.checks import MissingLibrary, needs, whole
from seqlaw.model.device import cards, device_name
from seqlaw.model.signature import checked
from seqlaw.paper.answer import Reproduction
from seqlaw.paper.experiments.conditions import conditions
from seqlaw.paper.experiments.panels import paper_panels, quick_panels, select
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

    Parameters
    ----------
    out
        The folder of the results. What it has recorded is not run again.
    method
        "sampled" as in the paper; "exact" replaces the trajectories by their expectation, "equivalent" also
        the sketches by theirs.
    panels
        Letters of the panels, by default all six.
    quick
        Whether to take a smaller grid, in seconds.
    replicate
        How often to run the whole experiment, with seeds seed, seed + 1, …, for the spread of each slope.
    overlay
        Further methods to draw into the figure.
    seed
        The first seed.
    jobs, device
        How many processes. `device="cuda"` draws on as many GPUs: other data than the CPU's, of the same law.
    progress, step, notice
        Called with each record of all seeds, with what comes after them, and with a line for people.

    Returns
    -------
    Reproduction
        `.slopes`, each with the paper's beside it, `.agreement`, and `.files`, the paths that were written.

    Examples
    --------
    >>> from seqlaw import reproduce
    >>> found = reproduce("paper", method="equivalent", panels="a", quick=True)
    >>> [path.name for path in found.files if path.suffix == ".html"]
    ['report.html']
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
    result = Reproduction(
        out=folder,
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
        others=others,
    )
    files = _write(result, folder)
    return replace(result, files=files, seconds=time.monotonic() - start)


def _require_libraries() -> None:
    """What the files need is asked for before anything runs, not after the work."""
    for name, file, extra in _LIBRARIES:
        if importlib.util.find_spec(name) is None:
            raise MissingLibrary(f"{file} {needs(name, extra)}")


def _write(result: Reproduction, folder: Path) -> list[Path]:
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
