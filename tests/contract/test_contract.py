"""What every method promises, for every way of training and every schedule, through the public API alone.

A new method, way of training or schedule joins by one line in a table below.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from importlib.util import find_spec

import pytest

from conftest import ROOT
from seqlaw import (
    WSD,
    BlockDecay,
    Constant,
    Cosine,
    Explicit,
    InputError,
    Lengths,
    Setting,
    Teacher,
    risk,
)
from seqlaw.methods.ask import METHODS as REGISTERED
from seqlaw.model import schedule
from seqlaw.model.momentum import Momentum

METHODS = ("sampled", "exact", "equivalent", "trained")
WAYS = {
    "full-batch": {"N": 48, "P": 4},
    "mixture": {"N": 48, "P": "2:0.5,8:0.5"},
    "mini-batches": {"batch": 6, "P": 4},
    "epochs": {"batch": 6, "epochs": 3, "P": 4},
    "phases": {"N": 48, "P": Lengths((2, 8), (0.5, 0.5), phases=True)},
    "mini-batches of a mixture": {"batch": 6, "P": "2:0.5,8:0.5"},
    "mini-batches in phases": {"batch": 6, "P": Lengths((2, 8), (0.5, 0.5), phases=True)},
}
BY_BATCHES = [name for name, way in WAYS.items() if "batch" in way]
SCHEDULES = {
    "wsd": WSD(gamma=0.3, L=60),
    "block": BlockDecay(gamma=0.3, L=120),
    "constant": Constant(gamma=0.3, L=40),
    "cosine": Cosine(gamma=0.3, L=60),
    "momentum": Momentum(gamma=0.1, L=40, beta=0.5),
    "explicit": Explicit(sizes=[0.1, 0.3, 0.3, 0.2, 0.1] * 8),
}
REFUSED = {(None, way, "momentum") for way in (*BY_BATCHES, "phases")}
REFUSED |= {("equivalent", way, None) for way in WAYS if "phases" in way}
REFUSED |= {("trained", way, None) for way in WAYS if way not in BY_BATCHES}
"""Which combinations are refused; None stands for every one."""


def test_every_method_and_schedule_has_its_line():
    """Here, and for schedules in the explorer's list."""
    assert set(METHODS) == set(REGISTERED)
    assert set(SCHEDULES) == {*schedule.SCHEDULES, "momentum", "explicit"}
    state = (ROOT / "src/seqlaw/web/static/state.js").read_text()
    assert f"kind: {json.dumps(list(schedule.SCHEDULES))}" in state


TEACHER = Teacher(alpha=1.6, theta=1.3, r=0.3, rho=0.6, c_xi=0.2, c_0=0.5)
SIZES = {"teacher": TEACHER, "M": 12, "d": 40}
TERMS = ("irreducible", "approx", "bias", "variance", "cross")


NEEDS_TORCH = pytest.mark.skipif(find_spec("torch") is None, reason="torch is not installed (the extra gpu)")


def refused(method, way, schedule):
    asked = (method, way, schedule)
    return any(all(want in (None, got) for want, got in zip(one, asked, strict=True)) for one in REFUSED)


def combinations(methods=METHODS, ways=WAYS, schedules=SCHEDULES, *, answered=True):
    return [
        pytest.param(
            method,
            way,
            schedule,
            id=f"{method}-{way}-{schedule}",
            marks=NEEDS_TORCH if answered and method == "trained" else (),
        )
        for method in methods
        for way in ways
        for schedule in schedules
        if refused(method, way, schedule) != answered
    ]


def setting(way, schedule, **more):
    return Setting(**(SIZES | WAYS[way] | {"schedule": SCHEDULES[schedule]} | more))


def ask(method, *settings, sketches=2, repetitions=2, **more):
    return risk(list(settings), method=method, sketches=sketches, repetitions=repetitions, **more)


def terms(answer):
    return [getattr(answer, name) for name in TERMS]


@pytest.mark.parametrize(("method", "way", "schedule"), combinations())
def test_the_terms_add_up(method, way, schedule):
    [found] = ask(method, setting(way, schedule))
    assert all(map(math.isfinite, terms(found)))
    assert min(found.irreducible, found.approx, found.bias) >= 0
    assert found.reducible == pytest.approx(sum(terms(found)[1:]), rel=1e-12)
    assert found.total == pytest.approx(sum(terms(found)), rel=1e-12)
    assert found.to_dict()["reducible"] == found.reducible
    assert found.reducible > 0


@pytest.mark.parametrize(("method", "way", "schedule"), combinations())
def test_many_settings_at_once_are_each_alone(method, way, schedule):
    """Settings that share work share contours, too: these are accurate to 1e-7 of the risk."""
    asked = [setting(way, schedule), setting(way, schedule, eval_length=16), setting(way, schedule, M=8)]
    for found, one in zip(ask(method, *asked), asked, strict=True):
        [alone] = ask(method, one)
        assert terms(found) == pytest.approx(terms(alone), rel=1e-7, abs=1e-15)


@pytest.mark.parametrize(("method", "way", "schedule"), combinations(schedules=["wsd"]))
def test_a_setting_that_is_written_otherwise_is_the_same(method, way, schedule):
    """A mixture of one length and a single phase are that length; the own test length may be named."""
    base = setting(way, schedule, P=4)
    same = [replace(base, P=Lengths((4,), (1.0,), phases=phases)) for phases in (False, True)]
    named = replace(base, eval_length=4)
    plain, *others = ask(method, base, *same, named)
    for found in others:
        assert terms(found) == pytest.approx(terms(plain), rel=1e-9, abs=1e-15)


@pytest.mark.parametrize(
    ("method", "way", "schedule"), combinations(["exact", "equivalent"], schedules=["wsd", "constant"])
)
def test_without_end_of_data_only_approximation_and_bias_are_left(method, way, schedule):
    """The variance falls as 1/N: a hundredfold of plentiful data leaves a hundredth, to leading order."""
    name = "batch" if "batch" in WAYS[way] else "N"
    some, more = (setting(way, schedule, **{name: count}) for count in (10**6, 10**8))
    few, many = ask(method, some, more)
    assert many.variance == pytest.approx(few.variance / 100, rel=1e-3)
    assert many.approx == pytest.approx(few.approx, rel=1e-9)
    assert many.bias == pytest.approx(few.bias, rel=1e-3)
    assert abs(many.cross) <= abs(few.cross) / 50 + 1e-15


@pytest.mark.parametrize(("method", "way", "schedule"), combinations(["exact"]))
def test_sampled_students_agree_with_the_expectation(method, way, schedule):
    """The same sketches: what differs is the data that were drawn, and the stated error of the law."""
    asked = setting(way, schedule)
    [drawn] = ask("sampled", asked, sketches=6, repetitions=24)
    [law] = ask(method, asked, sketches=6)
    data = math.sqrt(max(0.0, drawn.standard_error["variance"] ** 2 + drawn.standard_error["cross"] ** 2))
    stated = law.diagnostics.get("error", 0.05) * law.reducible
    # Sketches are common to both, so their scatter (most of the reducible risk's error) cancels.
    assert abs(drawn.reducible - law.reducible) <= 5 * data + stated


@pytest.mark.parametrize(("method", "way", "schedule"), combinations(["trained"]))
def test_trained_linear_students_agree_with_the_expectation(method, way, schedule):
    """On one sketch: within five standard errors of 24 data sets, and the stated error of the law."""
    asked = setting(way, schedule)
    [drawn], [law] = ask(method, asked, sketches=1, repetitions=24), ask("exact", asked, sketches=1)
    stated = law.diagnostics.get("error", 0.05) * law.reducible
    assert abs(drawn.reducible - law.reducible) <= 5 * drawn.standard_error["reducible"] + stated


@pytest.mark.parametrize(("way", "schedule"), [p.values[1:] for p in combinations(["equivalent"])])
def test_the_equivalent_is_the_mean_over_sketches(way, schedule):
    """Within five standard errors of 24 sketches and the 1/M that the equivalent states."""
    asked = setting(way, schedule)
    [law], [mean] = ask("equivalent", asked), ask("exact", asked, sketches=24)
    error = mean.standard_error["reducible"]
    assert abs(law.reducible - mean.reducible) <= 5 * error + 3 * mean.reducible / asked.M


@pytest.mark.parametrize(
    ("method", "way", "schedule"), combinations(["sampled", "exact", "trained"], schedules=["wsd"])
)
def test_a_seed_gives_the_same_numbers_on_any_number_of_threads(method, way, schedule):
    asked = setting(way, schedule)
    [once], [again] = ask(method, asked, seed=5), ask(method, asked, seed=5, workers=2)
    assert terms(once) == terms(again)
    [other] = ask(method, asked, seed=6)
    assert terms(once) != terms(other)


@pytest.mark.parametrize(("method", "way", "schedule"), combinations(answered=False))
def test_a_refusal_is_one_line_that_names_what_is_wrong(method, way, schedule):
    with pytest.raises(InputError) as stop:
        risk(setting(way, schedule), method=method)
    line = str(stop.value)
    assert "\n" not in line
    assert line.startswith(("phases must", "momentum must", "lengths must", "batch must"))
