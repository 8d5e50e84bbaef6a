"""The equivalent method: the expectation over trajectories and over the sketch, with no random number drawn.

The filter frozen at G (`frozen`), plus the finite-sample correction (`finite_sample`); O(1) in d, N, P and L.
Exact to leading order as M and the data grow together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from seqlaw.methods import accuracy
from seqlaw.methods.contours import reaches
from seqlaw.methods.finite_sample.error import data_error, data_flags
from seqlaw.methods.frozen import Frozen, frozen_rows
from seqlaw.methods.full_batch import DataCorrection, answered, corrected_terms, is_split
from seqlaw.methods.method import Draws, Method, Progress
from seqlaw.methods.one_pass.equivalent import one_pass_equivalent
from seqlaw.methods.one_pass.step import no_law
from seqlaw.methods.spectral_sum import sum_rule
from seqlaw.methods.terms import (
    Promise,
    Risk,
    frozen_error,
    frozen_filter_flags,
    safeguard_flags,
    saturation_flags,
)
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import InputError
from seqlaw.model.flags import flag
from seqlaw.model.optimizer import plain_only
from seqlaw.model.preconditioned import refused
from seqlaw.model.setting import Setting
from seqlaw.model.threads import one_thread

_OF_SKETCH = 0.5
"""The sum of the terms errs by at most so much of 1/M over sketches: against the exact method's mean over 100
sketches it did in 69 of 70 random settings, allowing two standard errors (0.2/M in the median). This and
the error of the data are independent: they add as squares."""
_LEAST_TRAINING = 1e-4
"""Σγ‖G‖ below which (1-ψ)², of order its square, drowns in the contour's 1e-13."""


def equivalent_risk(setting: Setting) -> Risk:
    """The expected risk at one setting, by the deterministic equivalent."""
    return equivalent_risks([setting])[0]


@one_thread()
def equivalent_risks(
    settings: Sequence[Setting],
    *,
    quick: bool = False,
    frozen: bool = False,
    ample: float = math.inf,
    mean_step: bool = False,
) -> list[Risk]:
    """The expected risk of each setting; settings of one teacher and d are computed together.

    `quick` takes coarser sums, good to 2e-4 of the reducible risk. `frozen` leaves the filter frozen at G,
    the paper's leading order; so does `ample` where there are more effective tokens a learned dimension.
    `mean_step` takes the safeguard's step of the mean ‖Ĝ‖ alone, a third of the work where ‖Ĝ‖ scatters.
    """
    for setting in settings:
        if (refusal := _refusal(setting)) is not None:
            raise refusal
    answers: list[Risk | None] = [None] * len(settings)
    groups: dict[Any, list[int]] = {}
    for index, setting in enumerate(settings):
        groups.setdefault((setting.teacher, setting.d), []).append(index)
    for indices in groups.values():
        members = [settings[k] for k in indices]
        level = accuracy.quick if quick else accuracy.fine
        widest = max(one.M for one in members)
        fine, coarse = (sum_rule(members[0], sums, widest=widest) for sums in (level.sums, level.double))
        found = (
            [(one, None) for one in frozen_rows(members, fine, coarse, infinite_data=True)]
            if frozen
            else answered(members, fine, coarse, quick=quick, ample=ample, mean_step=mean_step)
        )
        for index, setting, (one, correction) in zip(indices, members, found, strict=True):
            answers[index] = _risk(setting, one, correction)
    return [risk for risk in answers if risk is not None]


class Equivalent(Method):
    """The expectation over the sketch too: no random number, O(1) in d, N and P, ln L at most in L."""

    name: ClassVar[str] = "equivalent"
    mixtures: ClassVar[bool] = True
    one_pass: ClassVar[bool] = True
    infinite: ClassVar[bool] = True

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        return _each_its_way(settings, equivalent_risks, one_pass_equivalent)

    def quick(self, settings: Sequence[Setting]) -> list[Risk]:
        return _each_its_way(
            settings,
            lambda full: equivalent_risks(full, quick=True),
            lambda passes: one_pass_equivalent(passes, quick=True),
        )

    def refuses(self, setting: Setting) -> InputError | None:
        own = _refusal if setting.batch is None else no_law
        return super().refuses(setting) or own(setting)


def _each_its_way(
    settings: Sequence[Setting],
    full_batch: Callable[[list[Setting]], list[Risk]],
    one_pass: Callable[[list[Setting]], list[Risk]],
) -> list[Risk]:
    """The full-batch answer for settings without a batch, the one-pass answer for the others."""
    found: dict[int, Risk] = {}
    for way, passes in ((full_batch, False), (one_pass, True)):
        part = [k for k, one in enumerate(settings) if (one.batch is not None) == passes]
        if part:
            found |= dict(zip(part, way([settings[k] for k in part]), strict=True))
    return [found[k] for k in range(len(settings))]


def _refusal(setting: Setting) -> InputError | None:
    """Momentum too near 1 for these steps, or with a preconditioner: no path of few nodes is known."""
    if (refusal := plain_only(setting.optimizer)) is not None:
        return refusal
    schedule = setting.schedule
    if reaches(schedule):
        return None
    if not schedule.entire:
        rule = "must be left out with momentum on the equivalent method (the exact method takes both)"
        return refused(schedule, rule)
    beta, L = getattr(setting.schedule, "beta", None), setting.schedule.L
    rule = f"must be at most 1 - 100/L, L = {L}, on the equivalent method (the exact method takes any)"
    return InputError("beta", rule, beta)


def _risk(setting: Setting, frozen: Frozen, correction: DataCorrection | None) -> Risk:
    schedule, row = frozen.schedule, frozen.row
    flags = list(setting_flags(setting))
    flags += safeguard_flags(frozen.clipped, gamma=schedule.gamma)
    learned = max(row["learned_dimensions"], math.ulp(0.0))
    tokens = row["effective_share"] * setting.tokens / learned
    terms = corrected_terms(setting, row, correction)
    trained = schedule.progress(row["edge"])
    if trained < _LEAST_TRAINING:
        flags.append(flag("untrained", trained=trained))
        terms["variance"] = max(terms["variance"], 0.0)
    saturation = schedule.progress(row["kappa"])
    flags += saturation_flags(setting, saturation)
    if terms["bias"] < frozen.floor * row["source_energy"]:
        flags.append(flag("bias", floor=frozen.floor))
        terms["bias"] = 0.0
    if correction is None:
        few = frozen_filter_flags(tokens)
        flags += [flag("cross"), *few]
        error = math.inf if few else frozen_error(tokens, row.get("norm_variance", 0.0))
    else:
        error = data_error(correction.question, saturation, frozen.clipped) + correction.interpolated
        flags += data_flags(setting.M, setting.tokens, saturation, error)
        if not is_split(setting, row):
            flags.append(flag("cross-rest"))
    stated, reducible_error = _accuracy(setting, row, terms, error, saturation)
    names = ("finite_filter_variance", "effective_dimension", "learned_dimensions", "source_energy", "kappa")
    return Risk(
        method="equivalent",
        regime=setting.regime,
        irreducible=row["irreducible"],
        approx=row["approx"],
        bias=terms["bias"],
        variance=terms["variance"],
        cross=terms["cross"],
        steps=setting.schedule.L,
        horizon=setting.schedule.horizon,
        eval_length=setting.test_length,
        accuracy=stated,
        diagnostics={
            **{name: row[name] for name in names},
            "saturation": saturation,
            "gamma": schedule.gamma,
            "clipped": frozen.clipped,
            "tokens_per_dimension": tokens,
            "error": reducible_error,
            **({"interpolated": correction.interpolated} if correction and correction.interpolated else {}),
        },
        flags=tuple(flags),
    )


def _accuracy(
    setting: Setting, row: dict[str, float], terms: dict[str, float], error: float, saturation: float
) -> tuple[dict[str, Promise], float]:
    """The stated accuracy of each number, and the relative error of the reducible risk.

    `error` is that of the excess, from the data; over sketches 1/M comes to each term (docs/equivalent.md).
    """
    M, approx = setting.M, row["approx"]
    of_sketch = Promise("about", 1 / M, "1/M = ")
    if math.isinf(error):
        low = dict.fromkeys(("bias", "variance", "reducible"), Promise("low"))
        return low | {"approx": of_sketch, "cross": Promise("unknown")}, error
    # Measured: while less than a dimension is learned, the scatter of one column's norm shows.
    wide = (3 if row["learned_dimensions"] <= 1 else 1) / M
    excess = abs(sum(terms.values()))
    share = excess / max(approx + excess, math.ulp(0.0))
    reducible = math.hypot(_OF_SKETCH * ((1 - share) / M + share * wide), share * error)
    sum_of_terms = Promise("about", reducible)
    if not is_split(setting, row) and terms["cross"]:
        frozen = dict.fromkeys(("bias", "variance"), Promise("frozen"))
        return frozen | {"approx": of_sketch, "cross": Promise("rest"), "reducible": sum_of_terms}, reducible
    return {
        "approx": of_sketch,
        "bias": Promise("above" if saturation > 1 else "about", 1 / M + error),
        "variance": Promise("about", wide + error),
        "cross": Promise("size", (wide + error) * excess),
        "reducible": sum_of_terms,
    }, reducible
