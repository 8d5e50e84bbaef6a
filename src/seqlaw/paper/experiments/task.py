"""What a task of the reproduction runs, in a worker: its imports are the source of its numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seqlaw.model.setting import Setting
from seqlaw.rungs.equivalent import equivalent_risks
from seqlaw.rungs.exact import exact_rows, population_rows
from seqlaw.rungs.rows import Row, columns, with_sums
from seqlaw.rungs.sampled import sampled_rows
from seqlaw.rungs.terms import TERMS
from seqlaw.sweeping.codec import Task, setting_of


def panel_rows(task: Task, seed: int) -> list[Row]:
    """One task of the lab: the rows of one panel on one rung for one sketch and data set."""
    settings = [setting_of(task | point) for point in task["points"]]
    rows = _ROWS[task["rung"]](settings, task, seed)
    for row in rows:
        row["panel"] = task["panel"]
    return rows


def _equivalent(settings: Sequence[Setting], task: Task, seed: int) -> list[Row]:
    return [
        {"rung": "equivalent", "point": point, "sketch": 0, **columns(setting)}
        | with_sums({name: getattr(risk, name) for name in TERMS})
        | {name: risk.diagnostics[name] for name in ("finite_filter_variance", "clipped")}
        for point, (setting, risk) in enumerate(zip(settings, equivalent_risks(settings), strict=True))
    ]


_ROWS: dict[str, Callable[[Sequence[Setting], Task, int], list[Row]]] = {
    "population": lambda settings, task, seed: population_rows(
        settings, sketches=[task["sketch"]], seed=seed
    ),
    "exact": lambda settings, task, seed: exact_rows(settings, sketches=[task["sketch"]], seed=seed),
    "sampled": lambda settings, task, seed: sampled_rows(
        settings, sketches=[task["sketch"]], repetitions=[task["repetition"]], seed=seed
    ),
    "equivalent": _equivalent,
}
