"""Recorded rows as tables: a pandas DataFrame (tidy), an xarray Dataset (a grid), Parquet or CSV."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from seqlaw.lab.errors import StoreError
from seqlaw.lab.grid import Task
from seqlaw.lab.software import depends_print, fingerprint, named_modules, software_of, with_named
from seqlaw.lab.store import Contents, Standing, contents
from seqlaw.model.checks import library
from seqlaw.model.stored import replaced

if TYPE_CHECKING:
    import pandas as pd
    import xarray as xr

SPARSE = 4
"""A grid with this many times more cells than rows is no grid: the rows then lie along one dimension."""

OPTION = "software={!r}"
"""How a reader in Python asks for the rows of other software."""


@dataclass(frozen=True, kw_only=True)
class Table:
    """The rows of one software (by default of the code that asks), and what else the folder holds."""

    frame: pd.DataFrame
    """One measurement a row: parameters, results, then `seconds`, `version` (the software) and `key`."""
    parameters: tuple[str, ...]
    """The columns that define a task, and those derived from them."""
    failures: pd.DataFrame
    """The tasks that failed: their parameters and the `error`."""
    others: dict[str, int]
    """Tasks that other software recorded here, left out of the above."""
    lost: tuple[str, ...]
    """Modules of the user's that tasks name, and files that they depend on, not found from here."""
    standing: Standing | None
    """How much is done of what was asked for last; None if that is not known, or of other software."""
    damage: str
    """What of the file is damaged and left out, for people; empty if nothing is."""

    @property
    def missing(self) -> str:
        """What has no rows yet and how to go on, for people; empty if all has, or it is not known."""
        asked = self.standing
        if asked is None or asked.finished == asked.tasks:
            return ""
        failed = f", {asked.failed} failed" if asked.failed else ""
        again = f"with: {asked.resume}" if asked.resume else "by the same call"
        how = f"resume {again}"
        if asked.finished + asked.failed == asked.tasks:
            how = f"try them again {again}{' --retry-failed' if asked.resume else ' with retry_failed=True'}"
        return f"{asked.finished} of {asked.tasks} tasks finished{failed}; {how}"

    def require_rows(self, option: str = OPTION) -> None:
        """Refuse a table without rows: say what else there is, or how to get some."""
        if not self.frame.empty:
            return
        if self.others:
            raise StoreError(f"no rows of this code: {self.left_out(option)}")
        why = self.damage or self.missing or "run the sweep again to get some"
        raise StoreError(f"no rows yet: {why}")

    def left_out(self, option: str = OPTION) -> str:
        """What the folder holds of other software and how to take it, for people; empty if nothing."""
        if not self.others:
            return ""
        names = ", ".join(f"{count} task{'s' * (count > 1)} of {name}" for name, count in self.others.items())
        lost = f", which need{'s' * (len(self.lost) == 1)} {' and '.join(self.lost)}, not found from here"
        first, every = (option.format(name) for name in (next(iter(self.others)), "all"))
        return (
            f"{names} {'is' if sum(self.others.values()) == 1 else 'are'} left out"
            f"{lost if self.lost else ''}; {first} takes those, {every} takes all"
        )

    @property
    def dataset(self) -> xr.Dataset:
        """The rows as a grid: one dimension for each parameter that varies by itself.

        A parameter that another one determines (the partner in a zip, a test length equal to P) becomes a
        coordinate along it, one that never varies a scalar coordinate. Cells without a row hold NaN.
        Rows that make no grid (scattered, or lacking a parameter) lie along one dimension, `point`.
        """
        return to_dataset(self.frame, self.parameters)

    def export(self, to: Path | str) -> int:
        """Write the rows to a .parquet or .csv file, whole or not at all; returns how many, never zero."""
        check_format(to)
        self.require_rows()
        write_frame(self.frame, to)
        return len(self.frame)


def load(folder: Path | str, *, software: str | None = None, derived: Sequence[str] = ()) -> Table:
    """The rows recorded in a folder: those of the code that asks, of another `software`, or of `"all"`.

    `derived` names columns of the rows that follow from the parameters and are no measurements.
    """
    pd = library("pandas")
    held = contents(Path(folder))
    records, asked = held.records, held.standing
    counts = Counter(record.version for record in records)
    if software is None:
        now = _software_now(held)
        chosen = [record for record in records if record.version == now(record.function, record.task)]
        asked = asked if asked is not None and asked.version == now(asked.function, {}) else None
    elif software == "all":
        chosen = records
    else:
        chosen = [record for record in records if record.version == software]
        asked = asked if asked is not None and asked.version == software else None
        if not chosen:
            known = ", ".join(counts) or "none"
            raise StoreError(f"{folder} has no rows of software {software}, only of {known}")
    others = counts - Counter(record.version for record in chosen)
    tasks = [_parameters(record.task) | {"seed": record.seed} for record in chosen]
    names = _in_order(tasks)
    rows, failures = [], []
    for record, task in zip(chosen, tasks, strict=True):
        stamp = {"seconds": record.seconds, "version": record.version, "key": record.key}
        if record.rows is None:
            failures.append(task | {"error": record.error} | stamp)
        else:
            rows += [task | row | stamp for row in record.rows]
    try:
        frame = pd.DataFrame.from_records(rows)
        names = tuple(name for name in (*names, *derived) if not rows or name in frame)
        if rows:
            frame = frame.sort_values(list(names), kind="stable", ignore_index=True)
    except (TypeError, ValueError) as error:  # of a file that no driver wrote
        raise StoreError(f"the records in {folder} make no table: {error}") from None
    return Table(
        frame=frame,
        parameters=names,
        failures=pd.DataFrame.from_records(failures),
        others=dict(others),
        lost=_lost(held),
        standing=asked,
        damage=held.damage.words,
    )


def _lost(held: Contents) -> tuple[str, ...]:
    named = {module for record in held.records for module in named_modules(record.task)}
    files = [] if held.last is None else [name for name in held.last.depends if not os.path.isfile(name)]
    return (*sorted(module for module in named if not fingerprint(module)), *files)


def _software_now(held: Contents) -> Callable[[str, Task], str]:
    """What would run a task of a function now; of code without a file (a notebook's) it is what ran last."""
    last = {record.function: record.version for record in held.records}
    depends = {}
    if held.last is not None:
        try:
            depends[held.last.function] = depends_print(held.last.depends)
        except StoreError:
            depends[held.last.function] = "+depends:nothing"  # a file is gone: no rows are of it

    own: dict[str, str] = {}  # of each function once, not of each record

    def software(function: str, task: Task) -> str:
        if function not in own:
            own[function] = software_of(function)
        if not own[function]:
            return last.get(function, "")
        return with_named(own[function] + depends.get(function, ""), task)

    return software


def _parameters(task: Task) -> Task:
    """A task's scalars; the points of a nested family come back in its rows."""
    points: list[Task] = task.get("points", [{}])
    return {name: value for name, value in task.items() if name != "points"} | points[0]


def _in_order(tasks: Iterable[Task]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for task in tasks for name in task))


def to_dataset(frame: pd.DataFrame, parameters: Sequence[str]) -> xr.Dataset:
    """Tidy rows as a grid over the parameters that vary."""
    Dataset: type[xr.Dataset] = library("xarray").Dataset
    if frame.empty:
        return Dataset()
    present = [name for name in (*parameters, "version") if name in frame]
    fixed = [name for name in present if frame[name].nunique(dropna=False) == 1]
    partners = _partners(frame, [name for name in present if name not in fixed])
    dimensions = [name for name, leader in partners.items() if name == leader]
    followers = {name: leader for name, leader in partners.items() if name != leader}
    measured = frame.drop(columns=[*fixed, *followers, "key"])
    cells = 1
    for name in dimensions:
        cells *= frame[name].nunique()
    whole = not frame[dimensions].isna().any(axis=None) and not frame.duplicated(dimensions).any()
    if dimensions and whole and cells <= SPARSE * len(frame):
        grid = Dataset.from_dataframe(measured.set_index(dimensions))
        for name, leader in followers.items():
            values = frame.drop_duplicates(leader).set_index(leader)[name]
            grid = grid.assign_coords({name: (leader, values.loc[grid[leader].to_numpy()].to_numpy())})
    else:
        grid = Dataset.from_dataframe(measured.rename_axis("point"))
        grid = grid.set_coords(dimensions)
        grid = grid.assign_coords({name: ("point", frame[name].to_numpy()) for name in followers})
    return grid.assign_coords({name: frame[name].iloc[0] for name in fixed})


def _partners(frame: pd.DataFrame, names: Sequence[str]) -> dict[str, str]:
    """Each parameter with one that determines it: itself, or the first that does without the reverse."""
    leaders: dict[str, str] = {}
    for name in names:
        now = [other for other, leader in leaders.items() if other == leader]
        leader = next((other for other in now if _determines(frame, other, name)), name)
        leaders[name] = leader
        if leader == name:
            below = {other for other in now if _determines(frame, name, other)}
            leaders |= {other: name for other, above in leaders.items() if above in below}
    return leaders


def _determines(frame: pd.DataFrame, leader: str, name: str) -> bool:
    return bool(frame.groupby(leader, dropna=False)[name].nunique(dropna=False).max() == 1)


_WRITERS: dict[str, Any] = {
    ".parquet": lambda frame, path: frame.to_parquet(path, index=False),
    ".csv": lambda frame, path: frame.to_csv(path, index=False),
}
FORMATS = tuple(_WRITERS)


def check_format(to: Path | str) -> None:
    """Refuse a file that `write_frame` cannot write by its name."""
    to = Path(to)
    if to.suffix not in _WRITERS:
        raise StoreError(f"{to} must end in {' or '.join(FORMATS)}")
    if to.suffix == ".parquet":
        library("pyarrow")


def write_frame(frame: pd.DataFrame, to: Path | str) -> None:
    """A table as a .parquet or .csv file, whole or not at all."""
    to = Path(to)
    try:
        with replaced(to) as draft:
            _WRITERS[to.suffix](frame, draft)
    except OSError as error:
        raise StoreError(f"{to}: {str(error.strerror or error).lower()}") from error
