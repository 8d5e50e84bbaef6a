"""The experiments through the lab: tasks, one for each sketch and data set, resumable and on all cores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from seqlaw.lab.engine import Notice
from seqlaw.lab.errors import EngineError
from seqlaw.lab.grid import Task, key
from seqlaw.lab.run import Progress, Summary, run
from seqlaw.lab.software import software
from seqlaw.lab.store import read, recorded
from seqlaw.model.setting import Setting
from seqlaw.paper.curves import Row, source
from seqlaw.paper.panels import Panel
from seqlaw.paper.task import panel_rows
from seqlaw.rungs.terms import TERMS
from seqlaw.sweeping.codec import task_of
from seqlaw.sweeping.cost import seconds as rung_seconds

ALONE = 10.0
"""Seconds of estimated work below which worker processes cost more than they save."""


def tasks(panels: Iterable[Panel], rungs: Iterable[str]) -> list[Task]:
    """What the panels need on these rungs, each task once.

    A sampled variance brings the exact rung of the same sketches along: it carries the finite-filter guide.
    """
    wanted: dict[str, Task] = {}
    for panel in panels:
        for rung in rungs:
            sources = [source(rung, panel.quantity)]
            if sources == ["sampled"]:
                sources.append("exact")
            for name in sources:
                for task in _of_panel(panel, name):
                    wanted[key(task, 0)] = task
    return list(wanted.values())


def _of_panel(panel: Panel, rung: str) -> list[Task]:
    shared = {"panel": panel.name, "rung": rung} | _packed(panel.settings)
    if rung == "equivalent":
        return [shared]
    sketches = [shared | {"sketch": sketch} for sketch in range(panel.sketches)]
    if rung != "sampled":
        return sketches
    return [task | {"repetition": k} for task in sketches for k in range(panel.repetitions)]


def _packed(settings: Sequence[Setting]) -> Task:
    """Settings as one task: what they share, and what is left of each as `points`."""
    tables = [task_of(setting) for setting in settings]
    shared = {name: value for name, value in tables[0].items() if all(t[name] == value for t in tables)}
    return shared | {"points": [{k: v for k, v in table.items() if k not in shared} for table in tables]}


def seconds(task: Task) -> float:
    """About how long a task takes on one core."""
    points = [task | point for point in task["points"]]
    if task["rung"] == "population":
        problems = {(point["M"], point["P"]): point["d"] for point in points}
        return float(sum(0.001 + 2e-10 * M**2 * (d + M) for (M, _), d in problems.items()))
    # The points of an equivalent task may differ in M, which its cost does not depend on.
    cost = rung_seconds(points[0] | {"points": points, "sketches": 1, "repetitions": 1})
    # A sampled task draws one chain between any two neighbouring N.
    return cost * (len({point["N"] for point in points}) if task["rung"] == "sampled" else 1)


def work_left(panels: Sequence[Panel], rungs: Sequence[str], *, folder: Path, seed: int) -> float:
    """About how many seconds on one core the tasks take that `folder` has no record of."""
    wanted = {key(task, seed): task for task in tasks(panels, rungs)}
    done, _ = recorded(folder, dict.fromkeys(wanted, software(panel_rows)))
    return sum(seconds(task) for name, task in wanted.items() if name not in done)


def workers(work: float, jobs: int) -> int:
    """How many processes pay for so many seconds of work."""
    return jobs if work > ALONE else 1


def measure(
    panels: Sequence[Panel],
    rungs: Sequence[str],
    *,
    folder: Path,
    seed: int,
    jobs: int = 1,
    progress: Progress = lambda summary, share: None,
    notice: Notice = lambda line: None,
) -> tuple[list[Row], Summary]:
    """Run what `folder` has no record of; the rows of all tasks, in a fixed order.

    What failed before is tried again; a task that fails now ends it with its reason.
    """
    wanted = tasks(panels, rungs)
    work = work_left(panels, rungs, folder=folder, seed=seed)
    summary = run(
        panel_rows,
        wanted,
        folder=folder,
        seed=seed,
        jobs=workers(work, jobs),
        cost=seconds,
        retry_failed=True,
        note="seqlaw reproduce",
        progress=progress,
        notice=notice,
    )
    order = {key(task, seed): place for place, task in enumerate(wanted)}
    own = software(panel_rows)
    found = sorted(
        (record for record in read(folder) if record.key in order and record.version == own),
        key=lambda record: order[record.key],
    )
    for record in found:
        if record.rows is None:
            raise EngineError(f"panel ({record.task['panel']}), {record.task['rung']}: {record.error}")
    return [row | {"seed": seed} for record in found for row in record.rows or []], summary


COLUMNS = {
    **dict.fromkeys(("panel", "rung"), "string"),
    **dict.fromkeys(("seed", "sketch", "repetition", "point"), "int64"),
    "regime": "string",
    **dict.fromkeys(("M", "N", "P", "d"), "int64"),
    "schedule": "string",
    "gamma": "float64",
    "L": "int64",
    "R": "float64",
    "eval_length": "int64",
    **dict.fromkeys((*TERMS, "reducible", "total", "loss"), "float64"),
    **dict.fromkeys(("finite_filter_variance", "clipped", "covariance_event"), "float64"),
}
"""The columns of `rows.parquet` and their types."""
_UNUSED = {"a": ("N", "schedule", "gamma", "L", "R", "bias"), "b": ("N",)}
_UNUSED |= {"d": _UNUSED["a"], "e": _UNUSED["b"]}


def tidy(rows: Iterable[Row]) -> list[dict[str, Any]]:
    """Rows with one set of columns; what plays no part in a panel is left empty."""
    return [
        {
            name: None
            if row["rung"] == "population" and name in _UNUSED[row["panel"]]
            else row.get(name, 0 if name == "repetition" else None)
            for name in COLUMNS
        }
        for row in rows
    ]


def write_rows(rows: Iterable[Row], path: Path) -> None:
    """One measurement a row, as Parquet."""
    import pyarrow
    from pyarrow.parquet import write_table

    schema = pyarrow.schema(list(COLUMNS.items()))
    write_table(pyarrow.Table.from_pylist(tidy(rows), schema=schema), path)
