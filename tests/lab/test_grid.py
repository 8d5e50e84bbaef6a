"""Axes, combinations and keys of the lab."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seqlaw.lab.grid import axis, canonical, combine, key
from seqlaw.model.checks import InputError


def test_an_axis_is_a_value_a_list_or_a_range() -> None:
    assert axis("M", 12) == [12]
    assert axis("kind", "wsd") == ["wsd"]
    assert axis("M", [12, 24]) == [12, 24]
    assert axis("M", {"lin": [1, 3], "n": 5}) == [1, 1.5, 2, 2.5, 3]
    assert axis("M", {"log": [5, 5], "n": 1}, whole=True) == [5]


@given(
    low=st.floats(1e-6, 1e6),
    factor=st.floats(1.01, 1e6),
    n=st.integers(2, 40),
)
def test_a_log_range_has_equal_ratios_and_exact_ends(low: float, factor: float, n: int) -> None:
    high = low * factor
    values = axis("x", {"log": [low, high], "n": n})
    assert (len(values), values[0], values[-1]) == (n, low, high)
    step = math.log(high / low) / (n - 1)
    for a, b in itertools.pairwise(values):
        assert math.log(b / a) == pytest.approx(step, abs=1e-12)  # a few ulp of logarithms below 30


def test_a_whole_range_is_rounded() -> None:
    assert axis("M", {"log": [12, 128], "n": 8}, whole=True) == [12, 17, 24, 33, 46, 65, 91, 128]
    # Those that coincide stay, so that a zip keeps its partners; a sweep counts and merges them.
    assert axis("M", {"log": [1, 4], "n": 8}, whole=True) == [1, 1, 1, 2, 2, 3, 3, 4]


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], "M must not be empty"),
        ([1, 2, 1], r"M must have distinct values, got \[1, 2, 1\]"),
        ({"log": [-1, 4], "n": 3}, r"M\.log must have positive ends, got \[-1, 4\]"),
        ({"log": [1, 4], "n": -3}, r"M\.n must be a whole number from 1, got -3"),
        ({"log": [1, 4], "n": 2.5}, r"M\.n must be a whole number"),
        ({"log": [1, 4]}, r"M must be a range"),
        ({"n": 4}, r"M must be a range"),
        ({"log": [1, 2, 3], "n": 4}, r"M\.log must be two finite numbers"),
        ({"log": [1, math.inf], "n": 4}, r"M\.log must be two finite numbers"),
        ({"log": [1, 4], "n": 4, "step": 2}, r"M\.step is not a field of a range"),
        ({"log": [1, 4], "n": 1}, r"M\.n must be 1 exactly where both ends of \[1, 4\] are equal, got 1"),
    ],
)
def test_a_bad_axis_is_refused_in_one_line(value: object, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        axis("M", value)
    assert "\n" not in str(caught.value)


def test_product_and_zip() -> None:
    axes = {"a": [1, 2], "b": ["x"], "c": [0.5, 0.25]}
    assert combine(axes) == [
        {"a": 1, "b": "x", "c": 0.5},
        {"a": 1, "b": "x", "c": 0.25},
        {"a": 2, "b": "x", "c": 0.5},
        {"a": 2, "b": "x", "c": 0.25},
    ]
    assert combine(axes, "zip") == [{"a": 1, "b": "x", "c": 0.5}, {"a": 2, "b": "x", "c": 0.25}]
    with pytest.raises(InputError, match=r"zip needs axes of equal length .*, got {'a': 2, 'c': 3}"):
        combine({"a": [1, 2], "c": [1, 2, 3]}, "zip")
    with pytest.raises(InputError, match="combine must be product or zip, got 'outer'"):
        combine(axes, "outer")


def test_a_key_depends_on_the_values_and_not_on_their_order() -> None:
    assert canonical({"b": 1, "a": [1.5, "x"]}) == '{"a":[1.5,"x"],"b":1}'
    assert key({"a": 1, "b": 2}, 0) == key({"b": 2, "a": 1}, 0)
    assert len({key({"a": 1}, 0), key({"a": 2}, 0), key({"a": 1}, 1), key({"b": 1}, 0)}) == 4
    # Fixed once and for all: a key that changed would orphan every recorded result.
    assert key({"M": 12, "gamma": 0.1}, 7) == "b2931e19b6222bd5c28094f1c920fc13"


@given(st.floats(allow_nan=False))
def test_a_float_survives_to_the_last_bit(value: float) -> None:
    assert json.loads(canonical(value)) == value
