"""The experiments through the lab: tasks, one for each sketch and data set, resumable and on all cores."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from seqlaw.lab.engine import Notice
from seqlaw.lab.errors import EngineError
from seqlaw.lab.grid import Task, key
from seqlaw.lab.run import Progress, Together, run
from seqlaw.lab.software import software
from seqlaw.lab.store import read, recorded
from seqlaw.methods.terms import TERMS, Row
from seqlaw.model.setting import Setting
from seqlaw.paper.experiments.panels import QUANTITIES, Panel
from seqlaw.paper.experiments.roles import POPULATION, Role, role
from seqlaw.paper.experiments.task import panel_rows, size
from seqlaw.sweeping.codec import task_of

KIND = "reproduce"


def tasks(panels: Iterable[Panel], methods: Iterable[str], device: str | None = None) -> list[Task]:
    """What the panels need on these methods, each task once; what is drawn, on a device."""
    methods = list(methods)
    return [
        task | ({"device": device} if "sketch" in task else {})
        for panel in panels
        for name in dict.fromkeys(rows for method in methods for rows in role(method).needs(panel.quantity))
        for task in _of_panel(panel, role(name))
    ]


def _of_panel(panel: Panel, role: Role) -> list[Task]:
    """A task for each sketch and data set that the method draws."""
    tasks: list[Task] = [{"panel": panel.name, "method": role.name} | _packed(panel.settings)]
    if role.sketches:
        tasks = [task | {"sketch": sketch} for task in tasks for sketch in range(panel.sketches)]
    if role.repetitions:
        tasks = [task | {"repetition": k} for task in tasks for k in range(panel.repetitions)]
    return tasks


def _packed(settings: Sequence[Setting]) -> Task:
    """Settings as one task: what they share, and what is left of each as `points`."""
    tables = [task_of(setting) for setting in settings]
    shared = {name: value for name, value in tables[0].items() if all(t[name] == value for t in tables)}
    return shared | {"points": [{k: v for k, v in table.items() if k not in shared} for table in tables]}


@dataclass(frozen=True, kw_only=True)
class Work:
    """What the panels need under one seed."""

    seed: int
    tasks: dict[str, Task]
    """By their key."""
    left: int
    """Tasks that the folder has no record of."""
    drawn: bool
    """Whether some of these draw a sketch: the others take less time than starting processes for them."""


def plan(
    panels: Sequence[Panel], methods: Sequence[str], *, folder: Path, seed: int, device: str | None = None
) -> Work:
    """The tasks of the panels, each once, and what is left of them; nothing runs."""
    wanted = {key(task, seed): task for task in tasks(panels, methods, device)}
    planned = {name: software(panel_rows, task) for name, task in wanted.items()}
    done, _ = recorded(folder, planned, kind=KIND)
    left = [task for name, task in wanted.items() if name not in done]
    return Work(seed=seed, tasks=wanted, left=len(left), drawn=any("sketch" in task for task in left))


def measure(
    works: Sequence[Work],
    *,
    folder: Path,
    jobs: int = 1,
    progress: Progress = lambda summary, share: None,
    notice: Notice = lambda line: None,
) -> tuple[list[list[Row]], dict[str, int]]:
    """Run what `folder` has no record of; for each work the rows of all its tasks, in a fixed order.

    And how many tasks other code has recorded there.

    `progress` is of all of it. What failed before is tried again; a task that fails now ends it with its
    reason.
    """
    together = Together(progress, [work.left for work in works], sum(len(work.tasks) for work in works))
    for work in works:
        summary = run(
            panel_rows,
            work.tasks.values(),
            folder=folder,
            seed=work.seed,
            jobs=jobs if work.drawn else 1,
            size=size,
            retry_failed=True,
            kind=KIND,
            progress=together.show,
            notice=notice,
        )
        together.ended.append(summary)
        if summary.failed:
            break
    wanted = {name: software(panel_rows, task) for work in works for name, task in work.tasks.items()}
    records = {one.key: one for one in read(folder) if wanted.get(one.key) == one.version}
    for one in records.values():
        if one.rows is None:
            raise EngineError(f"panel ({one.task['panel']}), {one.task['method']}: {one.error}")
    rows = [
        [row | {"seed": work.seed} for name in work.tasks for row in records[name].rows or ()]
        for work in works
    ]
    return rows, together.ended[0].others


COLUMNS = {
    **dict.fromkeys(("panel", "method"), "string"),
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
MOST_ROWS = 10**7


def write_rows(rows: Iterable[Row], panels: Iterable[Panel], path: Path) -> None:
    """One measurement a row, as Parquet; what plays no part in a panel is left empty."""
    import pyarrow
    from pyarrow.parquet import write_table

    idle = {(panel.name, POPULATION): QUANTITIES[panel.quantity].idle for panel in panels}
    tidy = [
        {"repetition": 0} | row | dict.fromkeys(idle.get((row["panel"], row["method"]), ())) for row in rows
    ]
    schema = pyarrow.schema(list(COLUMNS.items()))
    write_table(pyarrow.Table.from_pylist(tidy, schema=schema), path)


def read_rows(path: Path) -> list[Row]:
    """The rows of such a file; ValueError where it is none."""
    import pyarrow
    from pyarrow.parquet import ParquetFile

    try:
        file = ParquetFile(path)
        if not file.schema_arrow.equals(pyarrow.schema(list(COLUMNS.items()))):
            raise ValueError("other columns")
        if file.metadata.num_rows > MOST_ROWS:
            raise ValueError(f"more than {MOST_ROWS} rows")
        rows: list[Row] = file.read().to_pylist()
    except (OSError, pyarrow.ArrowException) as error:
        raise ValueError(str(error).partition("\n")[0]) from None
    return rows
