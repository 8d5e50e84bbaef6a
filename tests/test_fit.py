"""Slopes against an independent regression, and the offset fit against what made the data."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from seqlaw.fit import fit_power_law
from seqlaw.model.checks import InputError


def noisy(slope: float, offset: float, noise: float, seed: int, n: int = 12) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.geomspace(3, 3000, n)
    return x, (offset + 2.5 * x**slope) * np.exp(noise * rng.standard_normal(n))


def test_the_line_is_the_regression_of_another_library() -> None:
    x, y = noisy(-0.7, 0.0, 0.1, seed=1)
    fit = fit_power_law(x, y, level=0.9)
    other = sm.OLS(np.log(y), sm.add_constant(np.log(x))).fit()
    low, high = other.conf_int(alpha=0.1)[1]
    expected = [other.params[1], other.bse[1], low, high, other.rsquared, np.exp(other.params[0])]
    # Two solvers of a well-conditioned 12 × 2 problem: rounding only.
    np.testing.assert_allclose(
        [fit.slope, fit.se, fit.low, fit.high, fit.r2, fit.scale], expected, rtol=1e-10
    )
    assert (fit.n, fit.offset, fit.offset_se) == (12, 0.0, None)
    assert fit.window == pytest.approx((3, 3000))


def test_a_window_takes_the_points_inside_and_no_others() -> None:
    x, y = noisy(-0.7, 0.0, 0.1, seed=2)
    y[x > 500] = 7.0
    inside = fit_power_law(x, y, window=(3, 500))
    assert inside == fit_power_law(x[x <= 500], y[x <= 500])
    assert inside.window[1] < 500


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    hits = sum(
        fit.low <= -0.7 <= fit.high
        for fit in (fit_power_law(*noisy(-0.7, 0.0, 0.2, seed), level=0.8) for seed in range(400))
    )
    # Binomial(400, 0.8) has standard deviation 8: five of them.
    assert abs(hits - 320) < 40


@pytest.mark.parametrize(("slope", "offset"), [(-0.5, 0.3), (-1.2, 0.01), (-0.25, 1.0), (0.6, 5.0)])
def test_an_offset_is_found_without_noise(slope: float, offset: float) -> None:
    fit = fit_power_law(*noisy(slope, offset, 0.0, seed=0), offset=True)
    # The optimiser stops when steps fall below 1e-14; slope and offset trade off along a narrow valley.
    assert fit.slope == pytest.approx(slope, rel=1e-5)
    assert fit.offset == pytest.approx(offset, rel=1e-5)
    assert fit.scale == pytest.approx(2.5, rel=1e-4)
    assert fit.r2 == pytest.approx(1)


def test_the_errors_of_an_offset_fit_match_its_spread() -> None:
    fits = [fit_power_law(*noisy(-0.6, 0.2, 0.02, seed, n=20), offset=True) for seed in range(100)]
    for name, truth in (("slope", -0.6), ("offset", 0.2)):
        values = np.array([getattr(fit, name) for fit in fits])
        errors = np.array([fit.se if name == "slope" else fit.offset_se for fit in fits])
        spread = values.std(ddof=1)
        assert abs(values.mean() - truth) < 5 * spread / np.sqrt(100)
        # A standard deviation from 100 samples is itself within 7 % (one of its own): five of them.
        assert np.sqrt((errors**2).mean()) == pytest.approx(spread, rel=0.35)


def test_without_an_offset_in_the_data_none_is_made_up() -> None:
    x, y = noisy(-0.6, 0.0, 0.0, seed=0)
    y = y * np.exp(-0.05 * np.log(x / 100) ** 2)  # bends down: only a negative offset would help
    fit, plain = fit_power_law(x, y, offset=True), fit_power_law(x, y)
    assert fit == plain
    assert fit.offset_se is None


def test_a_constant_is_a_law_of_slope_zero() -> None:
    fit = fit_power_law([1, 2, 3], [5, 5, 5])
    assert fit.slope == pytest.approx(0, abs=1e-15)
    assert fit.r2 == 1


@pytest.mark.parametrize(
    ("x", "y", "options", "message"),
    [
        ([1, 2], [1, 2], {}, "x must have at least 3 points in the window, got 2"),
        ([1, 2, 3], [1, 2, 3], {"offset": True}, "x must have at least 4 points in the window, got 3"),
        ([2, 2, 2], [1, 2, 3], {}, "x must take at least 2 different values, got 1"),
        ([1, 2, -3], [1, 2, 3], {}, "x must be positive for a power law, got -3"),
        ([1, 2, 3], [1, 0, 3], {}, "y must be positive for a power law, got 0"),
        ([1, 2, 3], [1, 2], {}, "y must have 3 values like x, got 2"),
        ([1, 2, np.nan], [1, 2, 3], {}, "x must be finite"),
        ([1, 2, 3], [1, 2, 3], {"window": (3, 1)}, "window must be two numbers in rising order"),
        ([1, 2, 3], [1, 2, 3], {"level": 1.5}, r"level must lie in \(0, 1\), got 1.5"),
    ],
)
def test_bad_points_are_refused(x: list[float], y: list[float], options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        fit_power_law(x, y, **options)


def test_a_constant_is_fitted_wholly():
    """Of rounding errors alone r² was -8."""
    x = np.array([2.0, 8, 64, 512, 4096])
    y = 0.0123 * (1 + 1e-16 * np.array([1, -1, 3, 0, -2]))
    assert fit_power_law(x, y).r2 == 1.0
