"""What a task of a sweep runs, in a worker: what this module imports is the source of its numbers.

(`lab.software` fingerprints just that, so nothing that computes no number belongs here.)
"""

from __future__ import annotations

from seqlaw.methods import ask
from seqlaw.methods.best_step import Best, tuned
from seqlaw.methods.method import Draws
from seqlaw.methods.terms import TERMS, Row, columns, with_sums
from seqlaw.sweeping.codec import Task, draws_of, setting_of, step_is_best


def risk_rows(task: Task, seed: int) -> list[Row]:
    """What a task asks: for each of its points one row, the terms and what is known of their accuracy."""
    points = [task | point for point in task.get("points", [{}])]
    settings, draws = [setting_of(point) for point in points], Draws(**draws_of(task), seed=seed)
    steps = [
        tuned([one])[0] if step_is_best(point) else Best(one)
        for one, point in zip(settings, points, strict=True)
    ]
    settings = [step.setting for step in steps]
    found = ask.risks(settings, method=task["method"], draws=draws)
    rows = []
    for setting, step, seen in zip(settings, steps, found, strict=True):
        risk = step.told(seen)
        rows.append(
            columns(setting)
            | with_sums({name: getattr(risk, name) for name in TERMS})
            | {f"se_{name}": error for name, error in risk.standard_error.items()}
            | dict(risk.diagnostics)
            | {"accuracy": "; ".join(f"{name}: {text}" for name, text in risk.stated.items())}
            | {"flags": "; ".join(flag.code for flag in risk.flags)}
        )
    return rows
