"""A sweep run, and its rows read back."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqlaw.lab import table
from seqlaw.lab.engine import Notice
from seqlaw.lab.grid import Task
from seqlaw.lab.progress import WorkBar, drawn_bar
from seqlaw.lab.run import Progress, Summary, Watch, run
from seqlaw.lab.table import Table
from seqlaw.methods.ask import method_of
from seqlaw.methods.method import Draws
from seqlaw.model.checks import InputError, library, positive, whole
from seqlaw.model.device import cards
from seqlaw.model.signature import checked
from seqlaw.sweeping.codec import draws_of, setting_of
from seqlaw.sweeping.file import Sweep as Asked
from seqlaw.sweeping.file import load_sweep
from seqlaw.sweeping.task import risk_rows

if TYPE_CHECKING:
    import pandas as pd

ENGINES = ("local", "dask")


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """What lies ahead of a sweep."""

    tasks: int
    left: int
    """Tasks without a record yet."""
    merged: int
    """Points of the grid that are the same as others, and are run once with them."""
    largest: str | None
    """The largest task of what is left: it runs first."""


@dataclass(frozen=True, kw_only=True)
class Sweep(Summary):
    """How a sweep stands, and its rows."""

    folder: Path

    def frame(self) -> pd.DataFrame:
        """The rows, one measurement each; `load(folder)` has more."""
        return load(self.folder).frame

    def export(self, to: Path | str) -> int:
        """Write the rows to a .parquet or .csv file; returns their number."""
        return load(self.folder).export(to)


@checked
def sweep(
    source: Asked | Mapping[str, Any] | str | Path,
    out: Path | str,
    *,
    jobs: int = 1,
    engine: str = "local",
    scheduler: str | None = None,
    timeout: float | None = None,
    dry_run: bool = False,
    retry_failed: bool = False,
    resume: str = "",
    announce: Callable[[Estimate], None] = lambda ahead: None,
    progress: bool | Progress = False,
    watch: Watch | None = None,
    notice: Notice = lambda line: None,
) -> Sweep:
    """Run the questions of a grid that the folder `out` has not recorded yet.

    In a script, `jobs` above 1 needs `if __name__ == "__main__":`, since workers import the script.

    Parameters
    ----------
    source
        The grid: a TOML file, or its tables as a dict.
    out
        The folder of the results.
    jobs
        How many processes; with `device = "cuda"` in the grid at most as many as there are GPUs.
    engine, scheduler
        `engine="dask"` runs on the cluster at the address `scheduler`; the rows are the same.
    timeout
        Seconds after which a task is ended and recorded as failed; each task then has its own process.
    dry_run
        Whether to stop after the estimate.
    retry_failed
        Whether to run failed tasks again.
    resume
        The command that goes on, for those who find the folder unfinished.
    announce
        Called with the estimate before the work begins.
    progress
        True draws a bar, in a terminal and in a notebook; a function gets the summary and the share done.
    watch, notice
        Called once with a function that names the longest running task, and with lines for people.

    Returns
    -------
    Sweep
        `.done`, `.skipped` and `.failed` count tasks; `.frame()` is the table of rows, `.export(path)` writes
        it.

    Examples
    --------
    >>> from seqlaw import sweep
    >>> found = sweep({"sizes": {"M": [4, 8], "N": 9, "P": 4, "d": 16}}, "results")
    >>> found.done, list(found.frame()["M"])
    (2, [4, 8])
    >>> found.export("rows.csv")
    2
    """
    jobs = whole("jobs", jobs)
    timeout = None if timeout is None else positive("timeout", timeout)
    if engine not in ENGINES:
        raise InputError("engine", f"must be one of {', '.join(ENGINES)}", engine)
    if (engine == "dask") != (scheduler is not None):
        raise InputError("scheduler", "goes with engine dask, which needs one", scheduler)
    asked = load_sweep(source)
    needed = method_of(asked.method).library
    if needed is not None and scheduler is None and not dry_run:
        library(*needed)
    if asked.device == "cuda" and scheduler is None and not dry_run:
        whole("jobs", jobs, most=cards())  # one worker a card
    with contextlib.ExitStack() as drawn:
        bar = drawn.enter_context(drawn_bar()) if progress is True else WorkBar()

        def ahead(tasks: int, left: list[Task]) -> None:
            largest = words(left[0]) if left else None
            announce(Estimate(tasks=tasks, left=len(left), merged=asked.merged, largest=largest))

        found = run(
            risk_rows,
            asked.tasks,
            folder=out,
            seed=asked.seed,
            jobs=jobs,
            scheduler=scheduler,
            size=size,
            timeout=timeout,
            depends=asked.depends,
            watch=bar.watch if watch is None else watch,
            dry_run=dry_run,
            retry_failed=retry_failed,
            kind="sweep",
            note=repr(asked),
            resume=resume,
            announce=ahead,
            progress=bar.progress if isinstance(progress, bool) else progress,
            notice=notice,
        )
    return Sweep(**vars(found), folder=Path(out))


def size(task: Task) -> float:
    """How large a task is beside others."""
    settings = [setting_of(task | point) for point in task.get("points", [{}])]
    return method_of(task["method"]).work(settings, Draws(**draws_of(task)))


def words(task: Task) -> str:
    """A task by its method and sizes."""
    known = ("M", "N", "batch", "P", "L", "d")
    return ", ".join([task["method"], *(f"{name} = {task[name]}" for name in known if task.get(name))])


@checked
def load(folder: Path | str, *, software: str | None = None) -> Table:
    """The rows of a sweep's folder as a DataFrame (`.frame`) and a Dataset (`.dataset`).

    Damaged records are left out, with a warning.

    Parameters
    ----------
    folder
        Where a sweep, or `reproduce`, has written.
    software
        Whose rows: by default those of the code that asks. Others are a name from `.others`, or `"all"`, told
        apart by the column `version`.

    Returns
    -------
    Table
        `.frame`, `.dataset`, the `.failures` and what is `.missing`; `.export(path)` writes the rows.

    Examples
    --------
    >>> from seqlaw import load, sweep
    >>> _ = sweep({"sizes": {"M": [4, 8], "N": 9, "P": 4, "d": 16}}, "results")
    >>> load("results").frame.shape[0]
    2
    """
    found = rows_of(folder, software)
    if found.damage:
        warnings.warn(found.damage, stacklevel=2)
    return found


def rows_of(folder: Path | str, software: str | None) -> Table:
    """The same without the warning, for a command, which says it in its own way."""
    return table.load(folder, software=software, derived=("regime", "R"))


@checked
def export(folder: Path | str, to: Path | str, *, software: str | None = None) -> int:
    """Write a sweep's tidy rows to a .parquet or .csv file, whole or not at all; returns their number.

    Without rows nothing is written: `StoreError` says how to get some.
    """
    return load(folder, software=software).export(to)
