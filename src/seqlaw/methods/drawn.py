"""Shared by the methods that draw sketches (sampled, exact): families of settings, device, risk from rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from seqlaw.methods.method import Draws
from seqlaw.methods.terms import SUMS, TERMS, Promise, Risk, Row
from seqlaw.model.checks import InputError, whole
from seqlaw.model.device import Device, device_of, in_memory
from seqlaw.model.flags import Flag, flag
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import LARGEST_SHARED


def indices(field: str, which: int | Sequence[int]) -> list[int]:
    """Numbers of sketches or repetitions: a count n means 0 … n-1, a sequence is taken as given."""
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

    Terms in `assumed` were set and not measured: they get no standard error. Where rows have a `step`, the
    peak step size that the safeguard left, its mean is the diagnostic `gamma`.
    """
    measured = {name: mean_and_error(rows, name) for name in (*TERMS, *SUMS)}
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
        diagnostics={
            **({"gamma": mean_and_error(rows, "step")[0]} if "step" in rows[0] else {}),
            **{name: mean_and_error(rows, name)[0] for name in diagnostics},
        },
        flags=tuple(flags),
    )


def by_setting(settings: Sequence[Setting], rows: Iterable[Row]) -> list[tuple[Setting, list[Row]]]:
    """Each setting with its own rows."""
    own: list[list[Row]] = [[] for _ in settings]
    for row in rows:
        own[row["point"]].append(row)
    return list(zip(settings, own, strict=True))


def lengths_on_cpu(device: str | None) -> InputError:
    """The refusal of a device for mixtures and phases of lengths, which are for the CPU."""
    return InputError("device", "must be cpu (or left out) for mixtures and phases of lengths", device)


@contextmanager
def on_device(settings: Sequence[Setting], name: str | None) -> Iterator[Device | None]:
    """The device of a name, None for the CPU; a device without free memory raises an error of one line."""
    if name is not None and any(one.lengths is not None for one in settings):
        raise lengths_on_cpu(name)  # before torch is asked for
    with in_memory(device := device_of(name)):
        yield device


def stream_flags(setting: Setting, draws: Draws, *, data: bool) -> list[Flag]:
    """The flag of random numbers that are not the CPU's: data, and large sketches."""
    own = draws.device is not None and (data or setting.M * setting.modes.d > LARGEST_SHARED)
    return [flag("device-stream")] if own else []
