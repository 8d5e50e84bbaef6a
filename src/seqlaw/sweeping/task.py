"""What a task of a sweep runs, in a worker: what this module imports is the source of its numbers.

(`lab.software` fingerprints just that, so nothing that computes no number belongs here.)
"""

from __future__ import annotations

from seqlaw.methods import ask
from seqlaw.methods.method import Draws
from seqlaw.methods.rows import Row, columns, with_sums
from seqlaw.methods.terms import TERMS
from seqlaw.sweeping.codec import Task, draws_of, setting_of


def risk_rows(task: Task, seed: int) -> list[Row]:
    """What a task asks: for each of its points one row, the terms and what is known of their accuracy."""
    settings = [setting_of(task | point) for point in task.get("points", [{}])]
    draws = Draws(**draws_of(task), seed=seed)
    rows = []
    for setting, risk in zip(settings, ask.risks(settings, method=task["method"], draws=draws), strict=True):
        rows.append(
            columns(setting)
            | with_sums({name: getattr(risk, name) for name in TERMS})
            | {f"se_{name}": error for name, error in risk.standard_error.items()}
            | dict(risk.diagnostics)
            | {"accuracy": "; ".join(f"{name}: {text}" for name, text in risk.stated.items())}
            | {"flags": "; ".join(flag.code for flag in risk.flags)}
        )
    return rows
