"""Corrections along a curve: interpolated points against solved ones, within what is stated."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import seqlaw.methods.full_batch as full_batch
import seqlaw.methods.interpolated as module
from seqlaw import PRESETS, WSD, BlockDecay, Setting
from seqlaw.methods import equivalent_risks
from seqlaw.methods.ask import along, spaced

BASE = Setting(teacher=PRESETS["regime2"], M=32, N=300, P=16, d=256, schedule=WSD(gamma=0.1, L=10**4))
CURVES = {
    "M": (BASE, "M", 4, 250),
    "N": (BASE, "N", 1, 10**5),
    "P": (BASE, "P", 2, 10**4),
    "R": (BASE, "R", 5, 10**7),
    "where the safeguard begins": (BASE.but(schedule=BlockDecay(gamma=1.5, L=3000), P=4), "N", 1, 10**4),
    "another test length": (BASE.but(eval_length=99), "N", 1, 10**4),
    "the interpolation peak": (BASE.but(P=1, schedule=WSD(gamma=0.1, L=10**7)), "N", 2, 10**4),
}


@pytest.mark.parametrize("name", CURVES)
def test_interpolated_points_are_within_what_they_state(name, monkeypatch):
    setting, axis, low, high = CURVES[name]
    settings, solved = along(setting, axis, spaced(axis, low, high, 60)), []
    law = full_batch.correction_over_sketches
    monkeypatch.setattr(
        full_batch, "correction_over_sketches", lambda asked, *rest: solved.extend(asked) or law(asked, *rest)
    )
    fast = equivalent_risks(settings)
    few = len(solved)
    monkeypatch.setattr(module, "FEWEST", 10**9)
    slow = equivalent_risks(settings)
    assert few < 0.9 * (len(solved) - few)
    stated = [risk.diagnostics.get("interpolated", 0.0) for risk in fast]
    assert 0 < max(stated) <= 2 * module.CLOSE
    for one, two, error in zip(fast, slow, stated, strict=True):
        excess = two.bias + two.variance + two.cross
        for term in ("approx", "bias", "variance", "cross", "reducible"):
            assert abs(getattr(one, term) - getattr(two, term)) <= (error or 1e-7) * excess, term
        assert [flag.code for flag in one.flags] == [flag.code for flag in two.flags]


def test_a_line_is_halved_where_it_turns():
    """|x| has a kink: nodes gather there, and the rest of a smooth curve needs few."""
    x = np.linspace(-1, 2, 301)
    true = np.array([np.abs(x - 0.003), np.sin(x)]).T
    asked: list[int] = []

    def solve(wanted):
        asked.extend(wanted)
        return [true[k % 301] for k in wanted]

    found = module.interpolated(302, [(list(range(301)), x.tolist())], solve)
    assert np.abs(np.array([value for value, _ in found[:301]]) - true).max() < 3 * module.CLOSE
    assert len(asked) < 80
    assert found[301][1] == 0.0


def test_a_curve_with_a_point_without_values_is_solved_whole():
    order = list(range(50))
    found = module.interpolated(
        50,
        [(order, [float(k) for k in order])],
        lambda wanted: [None if k == 49 else np.ones(1) for k in wanted],
    )
    assert found[49] == (None, 0.0)
    assert all(error == 0 for _, error in found)


def test_only_what_differs_in_one_size_is_a_curve():
    settings = [
        *along(BASE, "N", range(1, 51)),
        *along(BASE, "R", np.geomspace(5, 500, 40)),
        replace(BASE, M=9),
    ]
    curves = module.curves_among(settings, [None] * len(settings))
    assert sorted(len(order) for order, _ in curves) == [40, 50]
    assert module.curves_among(settings, list(range(len(settings)))) == []
