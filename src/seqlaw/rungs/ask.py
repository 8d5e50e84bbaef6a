"""One question, any rung."""

from __future__ import annotations

from seqlaw.model.checks import InputError, whole
from seqlaw.model.setting import Setting
from seqlaw.rungs.terms import Risk

RUNGS = ("sampled", "exact", "equivalent")


def risk(
    setting: Setting, *, rung: str = "equivalent", sketches: int = 4, repetitions: int = 2, seed: int = 0
) -> Risk:
    """The risk of a setting on a rung.

    `sampled` draws sketches and trajectories, `exact` draws sketches only, `equivalent` draws nothing.
    """
    sketches, repetitions = whole("sketches", sketches), whole("repetitions", repetitions)
    if rung == "sampled":
        from seqlaw.rungs.sampled import sampled_risk

        return sampled_risk(setting, sketches=sketches, repetitions=repetitions, seed=seed)
    if rung == "exact":
        from seqlaw.rungs.exact import exact_risk

        return exact_risk(setting, sketches=sketches, seed=seed)
    if rung == "equivalent":
        from seqlaw.rungs.equivalent import equivalent_risk

        return equivalent_risk(setting)
    raise InputError("rung", f"must be one of {', '.join(RUNGS)}", rung)
