"""One question, any rung: at one point, at many, or along one size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from seqlaw.model.checks import InputError, whole
from seqlaw.model.setting import Setting
from seqlaw.rungs.equivalent import equivalent_risks
from seqlaw.rungs.exact import exact_risks
from seqlaw.rungs.sampled import sampled_risks
from seqlaw.rungs.terms import Risk

RUNGS = ("sampled", "exact", "equivalent")
DRAWN = ("sampled", "exact")
"""The rungs whose numbers depend on the seed."""
AXES = ("M", "N", "P", "R")
Progress = Callable[[int, int], None]
"""What is told (done, total) data sets."""


def risks(
    settings: Sequence[Setting],
    *,
    rung: str = "equivalent",
    sketches: int = 4,
    repetitions: int = 2,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> list[Risk]:
    """The risk of each setting on a rung; settings that can share work do.

    `sampled` draws sketches and trajectories, on `workers` threads, and tells `progress`; `exact` draws
    sketches only; `equivalent` draws nothing, and the options but `rung` mean nothing to it.
    """
    sketches, repetitions = whole("sketches", sketches), whole("repetitions", repetitions)
    seed = whole("seed", seed, least=0)
    if rung == "sampled":
        return sampled_risks(
            settings,
            sketches=sketches,
            repetitions=repetitions,
            seed=seed,
            workers=workers,
            progress=progress,
        )
    if rung == "exact":
        return exact_risks(settings, sketches=sketches, seed=seed)
    if rung == "equivalent":
        return equivalent_risks(settings)
    theorem = " (the theorem: seqlaw rates)" if rung == "rates" else ""
    raise InputError("rung", f"must be one of {', '.join(RUNGS)}{theorem}", rung)


def risk(
    setting: Setting,
    *,
    rung: str = "equivalent",
    sketches: int = 4,
    repetitions: int = 2,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> Risk:
    """The risk of one setting on a rung, as `risks` has it."""
    return risks(
        [setting],
        rung=rung,
        sketches=sketches,
        repetitions=repetitions,
        seed=seed,
        workers=workers,
        progress=progress,
    )[0]


def error_name(rung: str) -> str:
    """What the standard error of a slope is, on a rung: an error only where something was drawn."""
    return "standard error" if rung in DRAWN else "curvature"


def spaced(axis: str, low: float, high: float, points: int) -> list[float]:
    """Values from low to high, evenly spaced in the logarithm; whole and distinct for M, N and P."""
    whole("points", points, least=2, most=10_000)
    if not 0 < low < high < math.inf:
        raise InputError("from", "must be positive and below --to", f"{low:g}, {high:g}")
    values = np.geomspace(float(low), float(high), points)
    if axis == "R":
        return [float(value) for value in values]
    return [float(value) for value in dict.fromkeys(np.round(values).tolist())]


def along(setting: Setting, axis: str, values: Sequence[float]) -> list[Setting]:
    """The setting with one size varied: M, N, P, or the schedule's horizon R.

    A test length that was chosen stays; one that was not follows P.
    """
    if axis not in AXES:
        raise InputError("along", f"must be one of {', '.join(AXES)}", axis)
    if axis == "R":
        return [replace(setting, schedule=setting.schedule.with_horizon(R)) for R in values]
    changes: list[dict[str, Any]] = [{axis: whole(axis, value)} for value in values]
    return [replace(setting, **change) for change in changes]


def curve(
    setting: Setting,
    axis: str,
    values: Sequence[float],
    *,
    rung: str = "equivalent",
    sketches: int = 4,
    repetitions: int = 2,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> list[Risk]:
    """The risk along one size (`along`: M, N, P or R) on a rung, as `risks` has it."""
    return risks(
        along(setting, axis, values),
        rung=rung,
        sketches=sketches,
        repetitions=repetitions,
        seed=seed,
        workers=workers,
        progress=progress,
    )
