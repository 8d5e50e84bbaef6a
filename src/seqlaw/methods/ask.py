"""One question, any method: at one point, at many, or along one size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from seqlaw.methods.equivalent import Equivalent
from seqlaw.methods.exact import Exact
from seqlaw.methods.method import AXES, SHORT, Draws, Method, Progress, letters
from seqlaw.methods.one_pass.tuning import with_tokens
from seqlaw.methods.sampled import Sampled
from seqlaw.methods.terms import Risk
from seqlaw.methods.trained import Trained
from seqlaw.model.checks import InputError, whole
from seqlaw.model.extension import IMPORT_PATH, import_object, path_of
from seqlaw.model.setting import Setting, as_setting

METHODS: dict[str, Method] = {one.name: one for one in (Sampled(), Exact(), Equivalent(), Trained())}


def method_of(given: str | Method, *, field: str = "method") -> Method:
    """A method as it is, by name, or the user's own by import path (`mymodule:Name`)."""
    if isinstance(given, Method):
        return given
    if isinstance(given, str) and given in METHODS:
        return METHODS[given]
    if isinstance(given, str) and IMPORT_PATH.fullmatch(given):
        found: Any = import_object(field, given)
        if isinstance(found, type):
            try:
                found = found()
            except TypeError as error:  # abstract methods, arguments without a default
                raise InputError(field, f"must be made without arguments ({error})", given) from None
        if isinstance(found, Method):
            return found
        raise InputError(field, "must name a subclass of seqlaw.methods.method.Method", given)
    theorem = " (the theorem: seqlaw rates)" if isinstance(given, str) and given == "rates" else ""
    raise InputError(field, f"must be one of {', '.join(METHODS)}{theorem}", given)


def method_name(method: Method) -> str:
    """What `method_of` knows a method by: its name, or the import path of one of the user's."""
    return method.name if METHODS.get(method.name) is method else path_of(type(method))


def risks(
    settings: Sequence[Setting],
    *,
    method: str | Method = "equivalent",
    draws: Draws | None = None,
    progress: Progress | None = None,
) -> list[Risk]:
    """The risk of each setting on a method, or the first refusal."""
    asked = method_of(method)
    require_answerable(asked, settings)
    found = asked.risks(settings, Draws() if draws is None else draws, progress=progress)
    if len(found) != len(settings):
        raise InputError("method", f"must give one risk a setting, {len(settings)}", len(found))
    return found


def require_answerable(method: Method, settings: Sequence[Setting]) -> None:
    """Raise the first refusal of a method."""
    if isinstance(settings, Setting):
        raise InputError("settings", "must be a list of settings", settings)
    for setting in settings:
        if (refusal := method.refuses(as_setting("setting", setting))) is not None:
            raise refusal


def spaced(axis: str, low: float, high: float, points: int) -> list[float]:
    """Values from low to high, evenly spaced in the logarithm; whole and distinct but for R.

    Positions begin at 0: they are spaced in the logarithm of p + 1.
    """
    whole("points", points, least=2, most=10_000)
    if axis == "position" and 0 <= low < high:
        return [p - 1 for p in spaced("P", low + 1, high + 1, points)]
    if not 0 < low < high < math.inf:
        raise InputError("from", "must be positive and below the end of the range", f"{low:g}, {high:g}")
    values = np.geomspace(float(low), float(high), points)
    if axis == "R":
        return [float(value) for value in values]
    return [float(value) for value in dict.fromkeys(np.round(values).tolist())]


def along(
    setting: Setting, axis: str, values: Sequence[float], *, tokens: float | None = None
) -> list[Setting]:
    """The setting with one size varied: M, N, P, the schedule's horizon R or, with a batch, b or the epochs.

    Along `position` the test moves and the training stays.
    A test length that was chosen stays; one that was not follows P. In one pass the steps may follow from
    `tokens`, so that batch·P·L stays. Along the epochs the sequences stay, and the steps follow.
    """
    as_setting("setting", setting)
    axis = SHORT.get(axis, axis)
    if axis not in AXES:
        raise InputError("along", f"must be one of {letters()}", axis)
    if isinstance(values, (str, bytes)) or not hasattr(values, "__len__"):
        raise InputError("values", "must be a list of numbers", values)
    if len(values) == 0:
        raise InputError("values", "must be at least one", values)
    if axis == "P" and setting.lengths is not None:
        raise InputError("along", "must not be P with several lengths", axis)
    if axis == "N" and setting.batch is not None:
        raise InputError("along", "must not be N in one pass, where it is batch · L (take R or b)", axis)
    if axis == "batch" and setting.batch is None:
        raise InputError("along", "can be b only in one pass (give a batch)", "b")
    if axis == "epochs":
        if setting.batch is None:
            raise InputError("along", "can be epochs only with a batch", "epochs")
        if tokens is not None:
            raise InputError("tokens", "cannot be given along epochs, which set the steps", tokens)
        N = -(-setting.N // setting.batch) * setting.batch
        return [setting.but(N=N, epochs=whole("epochs", one)) for one in values]
    if axis == "position":
        if tokens is not None:
            raise InputError("tokens", "cannot be given along position, which changes no training", tokens)
        if setting.eval_length is not None:
            raise InputError("eval_length", "must be left out along position", setting.eval_length)
        return [replace(setting, position=whole(axis, value, least=0)) for value in values]
    if axis == "R":
        if tokens is not None:
            raise InputError("tokens", "cannot be given along R, which sets the steps", tokens)
        return [replace(setting, schedule=setting.schedule.with_horizon(R)) for R in values]
    changes: list[dict[str, Any]] = [{axis: whole(axis, value)} for value in values]
    varied = [replace(setting, **change) for change in changes]
    return varied if tokens is None else [with_tokens(one, tokens) for one in varied]
