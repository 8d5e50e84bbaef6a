"""Tidy rows of the random methods (one measurement a row), and the Risk that summarises them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from seqlaw.methods.terms import TERMS, Promise, Risk
from seqlaw.model.checks import whole
from seqlaw.model.flags import Flag, flag
from seqlaw.model.momentum import Momentum
from seqlaw.model.schedule import kind_name
from seqlaw.model.setting import Setting

Row = dict[str, Any]


def columns(setting: Setting) -> Row:
    """The parameters of a setting as columns; `R` is the horizon of the schedule before any safeguard."""
    schedule = setting.schedule
    return {
        "regime": setting.regime,
        "M": setting.M,
        "N": setting.N,
        "P": None if setting.lengths else setting.P,
        "d": setting.d,
        "schedule": kind_name(schedule),
        "gamma": schedule.gamma,
        "L": schedule.L,
        "R": schedule.horizon,
        **({"beta": schedule.beta, "nesterov": schedule.nesterov} if isinstance(schedule, Momentum) else {}),
        "eval_length": test if isinstance(test := setting.test_length, int) else None,
        "batch": setting.batch,
        "epochs": setting.epochs,
        "safeguard": setting.safeguard,
        "lengths": None if setting.lengths is None else str(setting.lengths),
    }


def with_sums(terms: Mapping[str, float]) -> Row:
    """The five terms with `reducible` = approx + bias + variance + cross and `total`."""
    reducible = terms["approx"] + terms["bias"] + terms["variance"] + terms["cross"]
    return {
        **{name: terms[name] for name in TERMS},
        "reducible": reducible,
        "total": terms["irreducible"] + reducible,
    }


def indices(field: str, which: int | Sequence[int]) -> list[int]:
    """Numbers of sketches or repetitions: n stands for 0 … n-1, a sequence for itself."""
    if isinstance(which, Sequence):
        return [whole(field, index, least=0) for index in which]
    return list(range(whole(field, which)))


def families(settings: Sequence[Setting]) -> list[list[int]]:
    """Indices of the settings that share a teacher and a sketch size, in order of appearance."""
    groups: dict[Any, list[int]] = {}
    for index, setting in enumerate(settings):
        groups.setdefault((setting.teacher, setting.d, setting.M), []).append(index)
    return list(groups.values())


def mean_and_error(rows: Sequence[Row], name: str) -> tuple[float, float | None]:
    """The mean of a column over sketches and repetitions, and its standard error.

    With several sketches the error comes from the sketch-level means (which are independent),
    with one sketch from its repetitions, with one row there is none.
    """
    by_sketch: dict[int, list[float]] = {}
    for row in rows:
        by_sketch.setdefault(row["sketch"], []).append(row[name])
    means = [float(np.mean(values)) for values in by_sketch.values()]
    sample = means if len(means) > 1 else next(iter(by_sketch.values()))
    if len(sample) == 1 or not np.all(np.isfinite(sample)):
        return float(np.mean(sample)), None
    with np.errstate(over="ignore"):  # a run that diverges
        error = float(np.std(sample, ddof=1) / np.sqrt(len(sample)))
    return float(np.mean(sample)), error if np.isfinite(error) else None


def summarise(
    method: str,
    setting: Setting,
    rows: Sequence[Row],
    *,
    diagnostics: Iterable[str] = (),
    flags: Sequence[Flag] = (),
    assumed: Sequence[str] = (),
    accuracy: Mapping[str, Promise] | None = None,
) -> Risk:
    """The Risk of one setting from its rows, with standard errors and the means of the diagnostics.

    Terms in `assumed` were set and not measured: they get no standard error.
    """
    measured = {name: mean_and_error(rows, name) for name in (*TERMS, "reducible", "total")}
    errors = {
        name: error for name, (_, error) in measured.items() if error is not None and name not in assumed
    }
    flags, sketches = list(flags), len({row["sketch"] for row in rows})
    if not errors:
        flags.append(flag("standard-error"))
    return Risk(
        method=method,
        regime=setting.regime,
        **{name: measured[name][0] for name in TERMS},
        steps=setting.schedule.L,
        horizon=setting.schedule.horizon,
        eval_length=setting.test_length,
        standard_error=errors,
        drawn=(sketches if sketches > 1 else len(rows)) if errors else 0,
        accuracy=accuracy or {},
        diagnostics={name: mean_and_error(rows, name)[0] for name in diagnostics},
        flags=tuple(flags),
    )


def summaries(
    settings: Sequence[Setting], rows: Iterable[Row], summary: Callable[[Setting, Sequence[Row]], Risk]
) -> list[Risk]:
    """The `summary` of each setting and of its own rows."""
    own: list[list[Row]] = [[] for _ in settings]
    for row in rows:
        own[row["point"]].append(row)
    return [summary(setting, mine) for setting, mine in zip(settings, own, strict=True)]
