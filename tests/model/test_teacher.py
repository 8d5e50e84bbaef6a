import dataclasses

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import solve_discrete_lyapunov

from oracles import averaged_exact, position_covariances
from seqlaw import PRESETS, InputError, Modes, Teacher
from seqlaw.answers.words import sentences
from seqlaw.model import teacher_flags

EPS = np.finfo(float).eps


def modes_of(a, sigma_xi=1.0, sigma_0=1.0):
    a = np.atleast_1d(np.asarray(a, dtype=float))
    return Modes(a=a, sigma_xi=np.full(a.shape, sigma_xi), sigma_0=np.full(a.shape, sigma_0))


def test_presets_are_the_papers():
    one, two = PRESETS["regime1"], PRESETS["regime2"]
    assert (one.regime, one.beta_alpha, one.beta_theta) == ("I", pytest.approx(1.9), pytest.approx(2.9))
    assert (two.regime, two.beta_alpha, two.beta_theta) == ("II", pytest.approx(2.5), pytest.approx(1.95))
    assert dataclasses.astuple(one) == (1.5, 2.5, 0.2, 0.55, 0.05, 0.01)
    assert dataclasses.astuple(two) == (1.8, 1.25, 0.35, 0.55, 0.03, 0.30)


def test_regime_borders():
    base = PRESETS["regime2"]
    at = lambda theta: dataclasses.replace(base, theta=theta).regime  # noqa: E731 (a table reads better)
    assert [at(1.8), at(1.7999), at(1.1), at(1.0999)] == ["I", "II", "II", "outside"]


@pytest.mark.parametrize("P", [1, 2, 3, 17, 200])
@pytest.mark.parametrize("name", PRESETS)
def test_averaged_covariance_is_the_mean_over_positions(name, P):
    modes = PRESETS[name].modes(40)
    positions = position_covariances(modes, P)
    # P additions of positive numbers: rounding of order P eps at most.
    np.testing.assert_allclose(modes.averaged(P), positions[:P].mean(axis=0), rtol=10 * P * EPS)
    np.testing.assert_allclose(modes.covariance(np.arange(P + 1)), positions, rtol=10 * (P + 5) * EPS)


@pytest.mark.parametrize("P", [1, 2, 3, 10, 1000, 10**6, 10**9, 10**15, 10**18])
@pytest.mark.parametrize("distance", [1 - 1e-300, 0.9, 0.5, 0.01, 1e-4, 1e-8, 1e-12, 1e-15])
def test_averaged_covariance_in_high_precision(P, distance):
    a = 1 - distance
    initial, innovation = modes_of(a).averaged_parts(P)
    exact = averaged_exact(a, 1.0, 1.0, P)
    # A handful of roundings; expm1, log and the series lose no more.
    for value, wanted in zip((initial[0], innovation[0]), exact, strict=True):
        assert abs(value - float(wanted)) <= 20 * EPS * abs(float(wanted))


@given(
    a=st.floats(-0.999999, 0.999999),
    P=st.integers(1, 10**18),
    sigma=st.floats(1e-6, 1e6),
)
def test_averaged_covariance_lies_between_its_ends(a, P, sigma):
    modes = modes_of(a, 1.0, sigma)
    h = modes.averaged(P)[0]
    low, high = sorted((sigma, modes.stationary[0]))
    assert low * (1 - 1e-12) <= h <= high * (1 + 1e-12)


def test_averaged_covariance_takes_many_lengths():
    modes = PRESETS["regime2"].modes(7)
    lengths = [1, 5, 10**12]
    np.testing.assert_array_equal(modes.averaged(lengths), [modes.averaged(P) for P in lengths])


def test_stationary_limit_solves_the_lyapunov_equation():
    modes = PRESETS["regime1"].modes(30)
    wanted = solve_discrete_lyapunov(np.diag(modes.a), np.diag(modes.sigma_xi))
    np.testing.assert_allclose(np.diag(modes.stationary), wanted, rtol=1e-12, atol=1e-18)
    np.testing.assert_allclose(modes.averaged(10**18), modes.stationary, rtol=1e-12)


def test_a_stationary_start_makes_the_length_irrelevant():
    power = PRESETS["regime1"].modes(50)
    modes = Modes(a=power.a, sigma_xi=power.sigma_xi, sigma_0=power.stationary)
    for P in (1, 2, 100, 10**12):
        np.testing.assert_allclose(modes.averaged(P), power.stationary, rtol=10 * EPS)


def test_zero_and_negative_transitions():
    modes = Modes(a=[0.0, -0.5, 0.5], sigma_xi=[1, 1, 1], sigma_0=[0.0, 2.0, 2.0])
    np.testing.assert_allclose(modes.averaged(4), position_covariances(modes, 4)[:4].mean(axis=0), rtol=1e-15)
    assert modes.averaged(4)[1] == modes.averaged(4)[2]
    assert modes.averaged(1)[0] == 0.0
    assert any("a_j > 0" in flag for flag in sentences(teacher_flags(modes), "cli"))


def test_a_mode_without_innovation_is_computed_and_flagged():
    modes = Modes(a=[0.5, 0.5], sigma_xi=[0.0, 1.0], sigma_0=[1.0, 0.0])
    np.testing.assert_allclose(modes.averaged(2), [(1 + 0.25) / 2, 0.5])
    assert any("without innovation" in flag for flag in sentences(teacher_flags(modes), "cli"))


def test_constants():
    teacher = PRESETS["regime2"]
    assert teacher.C_rho == pytest.approx(1.55 / 0.45)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rho": 1.2}, "Teacher.rho must lie in (0, 1), got 1.2"),
        ({"rho": 0.0}, "Teacher.rho must lie in (0, 1), got 0.0"),
        ({"r": -0.1}, "Teacher.r must not be negative, got -0.1"),
        ({"c_xi": 0.0}, "Teacher.c_xi must be positive, got 0.0"),
        ({"c_0": -1}, "Teacher.c_0 must be positive, got -1"),
        ({"alpha": float("nan")}, "Teacher.alpha must be finite, got nan"),
        ({"theta": float("inf")}, "Teacher.theta must be finite, got inf"),
        ({"alpha": "much"}, "Teacher.alpha must be a number, got 'much'"),
        ({"alpha": True}, "Teacher.alpha must be a number, got True"),
    ],
)
def test_bad_teachers(change, message):
    with pytest.raises(InputError) as caught:
        dataclasses.replace(PRESETS["regime1"], **change)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("arrays", "word"),
    [
        (([0.5], [1.0, 2.0], [1.0]), "shape"),
        (([[0.5]], [[1.0]], [[1.0]]), "one-dimensional"),
        (([], [], []), "non-empty"),
        (([1.0], [1.0], [1.0]), "unstable"),
        (([0.5], [-1.0], [1.0]), "negative"),
        (([0.5], [1.0], [-1.0]), "negative"),
        (([np.nan], [1.0], [1.0]), "finite"),
        ((["a"], [1.0], [1.0]), "real numbers"),
    ],
)
def test_bad_modes(arrays, word):
    with pytest.raises(InputError, match=word):
        Modes(a=arrays[0], sigma_xi=arrays[1], sigma_0=arrays[2])


@pytest.mark.parametrize("P", [0, -3, 2.5, np.nan, 10**18 + 1, "long"])
def test_bad_lengths(P):
    with pytest.raises(InputError, match="P must"):
        PRESETS["regime1"].modes(3).averaged(P)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"r": 0.0}, "0 < 2r < 1"),
        ({"r": 0.5}, "0 < 2r < 1"),
        ({"alpha": 1.0}, "alpha > 1"),
        ({"theta": 1.0, "alpha": 1.2}, "theta > 1"),
        ({"theta": 1.05}, "theta >= alpha - 2r"),
    ],
)
def test_outside_the_theorem_is_flagged_and_computed(change, word):
    teacher = dataclasses.replace(PRESETS["regime2"], **change)
    assert any(word in flag for flag in sentences(teacher_flags(teacher), "cli"))
    assert np.all(teacher.modes(8).averaged(5) > 0)


def test_inside_the_theorem_there_are_no_flags():
    assert all(teacher_flags(teacher) == () for teacher in PRESETS.values())


def test_the_oracle_itself():
    """60 digits against a plain sum, so that the oracle above is not the same formula trusted twice."""
    total = mpmath.fsum(averaged_exact(0.3, 2.0, 5.0, 4))
    sigma = [5.0]
    for _ in range(3):
        sigma.append(0.09 * sigma[-1] + 2.0)
    assert float(total) == pytest.approx(np.mean(sigma), rel=1e-14)


def test_teacher_is_hashable_and_frozen():
    assert len({PRESETS["regime1"], Teacher(alpha=1.5, theta=2.5, r=0.2, rho=0.55, c_xi=0.05, c_0=0.01)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        PRESETS["regime1"].alpha = 2.0
