"""A sweep run, and its rows read back."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from seqlaw.lab import table
from seqlaw.lab.engine import Notice
from seqlaw.lab.grid import Task
from seqlaw.lab.progress import WorkBar, drawn_bar
from seqlaw.lab.run import Progress, Summary, Watch, run
from seqlaw.lab.table import Table
from seqlaw.model.checks import InputError, checked, positive, whole
from seqlaw.model.device import cards
from seqlaw.sweeping.cost import Estimate, estimate, work
from seqlaw.sweeping.file import Sweep, load_sweep
from seqlaw.sweeping.task import risk_rows

ENGINES = ("local", "dask")


@checked
def sweep(
    source: Sweep | Mapping[str, Any] | str | Path,
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
) -> Summary:
    """Run what a sweep (a file, its tables or a `Sweep`) has not recorded in the folder `out` yet.

    `jobs` processes here, or with `engine="dask"` the cluster at `scheduler`: the rows are the same. On
    GPUs (`device`) as many as there are at most.
    A task that takes longer than `timeout` seconds is ended and recorded as failed; tasks then run in a
    process of their own, whatever `jobs` is.
    `progress=True` draws a bar, in a terminal and in a notebook; a function gets the summary and the share,
    and `watch`, once, a function that names the longest running task.
    `announce` gets the estimate before the work begins, which with `dry_run` it does not; `resume` is the
    command that goes on, for those who find the folder unfinished.
    In a script, `jobs` above 1 needs `if __name__ == "__main__":`, since workers import the script.
    """
    jobs = whole("jobs", jobs)
    timeout = None if timeout is None else positive("timeout", timeout)
    if engine not in ENGINES:
        raise InputError("engine", f"must be one of {', '.join(ENGINES)}", engine)
    if (engine == "dask") != (scheduler is not None):
        raise InputError("scheduler", "goes with engine dask, which needs one", scheduler)
    asked = load_sweep(source)
    if asked.device == "cuda" and scheduler is None and not dry_run:
        whole("jobs", jobs, most=cards())  # one worker a card
    with contextlib.ExitStack() as drawn:
        bar = drawn.enter_context(drawn_bar()) if progress is True else WorkBar()

        def ahead(tasks: int, left: list[Task]) -> None:
            announce(estimate(tasks, left, jobs, asked.merged))

        return run(
            risk_rows,
            asked.tasks,
            folder=out,
            seed=asked.seed,
            jobs=jobs,
            scheduler=scheduler,
            cost=work,
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


@checked
def load(folder: Path | str, *, software: str | None = None) -> Table:
    """The rows of a sweep's folder as a DataFrame (`.frame`) and a Dataset (`.dataset`).

    They are those of the code that asks. `software` takes others: a name from `.others`, or `"all"`, told
    apart by the column `version`. Damaged records are left out, with a warning.
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
    return table.export(load(folder, software=software), to)
