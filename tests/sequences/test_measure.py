"""Measure against naive sums, known spectra and teachers whose exponents are known."""

from __future__ import annotations

import errno
import itertools
import json
import os
import tomllib
from pathlib import Path

import numpy as np
import pytest

from seqlaw import PRESETS, InputError, Modes, Setting, Teacher, forecast, measure, risk
from seqlaw.answers.advice import advise
from seqlaw.answers.measurement_words import CHECKS, what_fails
from seqlaw.answers.style import new_figure
from seqlaw.answers.words import sentence, sentences
from seqlaw.cli import main
from seqlaw.files import load_teacher
from seqlaw.methods.trajectories import trajectories
from seqlaw.model import gaussian_sketch
from seqlaw.model.schedule import WSD
from seqlaw.sequences.exponents import fit_line, windows
from seqlaw.sequences.findings import VOID
from seqlaw.sequences.moments import batches, tally
from seqlaw.sequences.reading import recordings
from seqlaw.sequences.spectra import (
    correct_covariance,
    correct_transition,
    samples_of_covariance,
    samples_of_transition,
    spectra,
)
from seqlaw.sequences.tables import Columns

NUMBERS = ("alpha", "theta", "r", "rho", "c_xi", "c_0")
EXPONENTS = ("alpha", "theta", "r")


def states(name="regime2", D=32, N=800, P=31, seed=3, d=None):
    modes = PRESETS[name].modes(d or D)
    S = gaussian_sketch(D, d, seed=seed) if d else None
    return trajectories(modes, N, P, S=S, seed=seed)


@pytest.fixture(scope="module")
def X():
    return states()


@pytest.fixture(scope="module")
def found(X):
    return measure(X)


def held(X):
    return batches(recordings(X, Columns(), stream=True))


# --- moments -----------------------------------------------------------------------------------------


def naive_moments(sequences):
    """Σ u uᵀ, Σ y uᵀ, Σ y yᵀ about the mean of all states; the first states about their own."""
    mean = np.concatenate(sequences).mean(axis=0)
    G = C = Y = F = 0
    first_mean = np.mean([x[0] for x in sequences], axis=0)
    for x in sequences:
        for u, y in itertools.pairwise(x - mean):
            G, C, Y = G + np.outer(u, u), C + np.outer(y, u), Y + np.outer(y, y)
        F = F + np.outer(x[0] - first_mean, x[0] - first_mean)
    return G, C, Y, F


@pytest.mark.parametrize("ragged", [False, True])
def test_moments_are_the_naive_sums(ragged):
    rng = np.random.default_rng(1)
    lengths = rng.integers(2, 9, 60) if ragged else np.full(60, 6)
    sequences = [rng.standard_normal((T, 5)) + 50 for T in lengths]
    found = tally(held(iter(sequences) if ragged else np.stack(sequences)))
    for mine, naive in zip((found.G, found.C, found.Y, found.first), naive_moments(sequences), strict=True):
        # Rounding of about 300 products of size 1 around a mean of 50, of which the shift takes care.
        np.testing.assert_allclose(sum(mine), naive, atol=1e-9)
    assert found.n == sum(lengths - 1)
    assert found.N == 60
    assert (found.shortest, found.longest) == (min(lengths), max(lengths))


def test_the_contrast_is_lag_one_less_its_mean_over_all_orders():
    x = np.random.default_rng(2).standard_normal((4, 4, 3)) + np.arange(3)
    found = tally(held(x), centre=False)
    lag_one = np.einsum("npd,npd->d", x[:, 1:], x[:, :-1])
    orders = list(itertools.permutations(range(4)))
    shuffled = sum(np.einsum("npd,npd->d", x[:, o][:, 1:], x[:, o][:, :-1]) for o in orders) / len(orders)
    np.testing.assert_allclose(found.contrast.sum(axis=0), lag_one - shuffled, atol=1e-12)


def test_spectra_are_those_of_a_dense_solve(X):
    found = spectra(tally(held(X)))
    x = X - X.mean(axis=(0, 1))
    u, y = x[:, :-1].reshape(-1, 32), x[:, 1:].reshape(-1, 32)
    G, C = u.T @ u / len(u), y.T @ u / len(u)
    B = np.linalg.solve(G, C.T).T
    rest = y - u @ B.T
    values, U = np.linalg.eigh(G)
    root = (U / np.sqrt(values)) @ U.T
    T = root @ C @ root
    rtol = 1e-9  # eigenvalues of two routes to one matrix of condition 1e3
    dense = np.linalg.eigvalsh(rest.T @ rest / (len(u) - 32))[::-1]
    np.testing.assert_allclose(found.innovation.raw, dense, rtol=rtol)
    np.testing.assert_allclose(found.transition.raw, np.linalg.eigvalsh((T + T.T) / 2)[::-1], rtol=rtol)
    np.testing.assert_allclose(found.initial.raw, np.linalg.eigvalsh(np.cov(X[:, 0].T))[::-1], rtol=rtol)


def test_groups_move_the_eigenvalues_as_leaving_them_out_does(X):
    whole, groups = spectra(tally(held(X))), 32
    without = spectra(tally(held(np.delete(X, np.s_[:25], axis=0))))  # the first of 32 groups
    weights = np.ones(groups)
    weights[0] = 0
    for name in ("innovation", "initial", "transition"):
        linear = whole.moving[name].resampled(weights)[:6] - whole.moving[name].resampled(np.ones(groups))[:6]
        exact = without.named(name).raw[:6] - whole.named(name).raw[:6]
        # First order in a group's weight of 1/32: what is left is of order 1/32 of the movement and of noise.
        np.testing.assert_allclose(linear, exact, atol=0.2 * np.abs(exact).max())


# --- power laws --------------------------------------------------------------------------------------


def test_finite_samples_are_taken_off_a_covariance():
    D, n = 128, 800
    truth = np.arange(1, D + 1) ** -1.3
    rng = np.random.default_rng(0)
    draws = []
    for _ in range(8):
        Z = rng.standard_normal((n, D)) * np.sqrt(truth)
        draws.append(correct_covariance(np.linalg.eigvalsh(Z.T @ Z / n)[::-1], n))
    top = min(draw.trusted for draw in draws)
    assert top >= 40
    window = (4, 40)
    raw, fixed = (
        np.mean([fit_line(np.log(getattr(draw, kind)), window).exponent for draw in draws])
        for kind in ("raw", "values")
    )
    assert abs(fixed - 1.3) < 0.012  # 3 standard errors of the mean of 8 slopes, each good to about 0.01
    assert abs(raw - 1.3) > 2 * abs(fixed - 1.3)


def test_the_samples_asked_for_are_those_at_which_the_rule_trusts_enough():
    truth = np.arange(1, 101) ** -1.2
    needed = samples_of_covariance(correct_covariance(truth, 5))
    assert correct_covariance(truth, 1.001 * needed).trusted >= 6
    assert correct_covariance(truth, 0.999 * needed).trusted < 6


def test_noise_is_taken_off_a_symmetric_matrix():
    D, n = 128, 20000
    truth = 0.6 * np.arange(1, D + 1) ** -0.3
    noise = 1 - truth**2
    rng = np.random.default_rng(0)
    slopes = {"raw": [], "values": []}
    for _ in range(8):
        E = rng.standard_normal((D, D)) * np.sqrt(noise[:, None] / n)
        draw = correct_transition(np.linalg.eigvalsh(np.diag(truth) + (E + E.T) / 2)[::-1], noise, n)
        for kind, out in slopes.items():
            out.append(fit_line(np.log(getattr(draw, kind)), (2, 40)).exponent)
    raw, fixed = np.mean(slopes["raw"]), np.mean(slopes["values"])
    assert abs(fixed - 0.3) < 0.015
    assert abs(raw - 0.3) > 2 * abs(fixed - 0.3)


def test_a_line_is_least_squares_and_windows_stay_inside():
    j = np.arange(1, 41)
    line = fit_line(np.log(3.0 * j**-1.7), (2, 30))
    assert line.exponent == pytest.approx(1.7, rel=1e-12)
    assert np.exp(line.intercept) == pytest.approx(3.0, rel=1e-12)
    noisy = np.log(3.0 * j**-1.7) + np.random.default_rng(0).standard_normal(40)
    slope, intercept = np.polyfit(np.log(j[1:30]), noisy[1:30], 1)
    line = fit_line(noisy, (2, 30))
    assert (line.exponent, line.intercept) == pytest.approx((-slope, intercept), rel=1e-10)
    assert windows(5) == []
    assert windows(6) == [(1, 6)]
    assert all(1 <= a < b <= 20 for a, b in windows(20))


# --- recovery ----------------------------------------------------------------------------------------


def covers(found, teacher, names=EXPONENTS):
    return {n: getattr(found, n).low <= getattr(teacher, n) <= getattr(found, n).high for n in names}


@pytest.mark.parametrize("name", ["regime1", "regime2"])
def test_a_known_teacher_is_found(name):
    teacher = PRESETS[name]
    found = measure(states(name, D=64, N=1500, P=31))
    assert found.reliable
    assert found.seen == "direct"
    assert found.regime.name == teacher.regime
    assert found.regime.probability > 0.95
    for number, width in (("alpha", 0.02), ("theta", 0.06), ("r", 0.03)):
        assert abs(getattr(found, number).value - getattr(teacher, number)) < width


def test_a_known_teacher_is_found_through_a_sketch():
    teacher = PRESETS["regime2"]
    found = measure(states(D=128, N=1500, P=31, d=1024))
    assert found.seen == "projected"
    assert found.reliable
    assert found.regime.name == "II"
    assert all(covers(found, teacher).values())


def test_rotation_scale_mean_and_precision_change_nothing(X, found):
    rng = np.random.default_rng(0)
    Q = np.linalg.qr(rng.standard_normal((32, 32)))[0]
    for other, rtol in (((X @ Q) * 1e3 + 1e4 * rng.standard_normal(32), 1e-6), (X.astype(np.float32), 1e-5)):
        moved = measure(other)
        for name in EXPONENTS:
            assert getattr(moved, name).value == pytest.approx(getattr(found, name).value, rel=rtol)


def test_every_source_gives_the_same(X, found, tmp_path):
    zarr = pytest.importorskip("zarr")
    np.save(tmp_path / "x.npy", X)
    np.savez(tmp_path / "x.npz", X=X, other=np.zeros(3))
    zarr.save_array(str(tmp_path / "x.zarr"), X)
    for name in ("x.npy", "x.npz", "x.zarr"):
        assert measure(tmp_path / name).alpha == found.alpha
    ragged = measure(x for x in X)  # other groups, so other intervals
    assert [getattr(ragged, n).value for n in EXPONENTS] == pytest.approx(
        [getattr(found, n).value for n in EXPONENTS], rel=1e-9
    )


def test_measured_modes_run_on_every_method(found):
    truth = PRESETS["regime2"].modes(32)
    modes = found.modes
    np.testing.assert_allclose(modes.sigma_xi, truth.sigma_xi, rtol=0.06)  # √(2/24800) = 0.9 %, sorted noise
    np.testing.assert_allclose(modes.averaged(16)[:16], truth.averaged(16)[:16], rtol=0.15)
    setting = {"M": 8, "N": 1000, "P": 16, "schedule": WSD(gamma=0.1, L=3000)}
    for method in ("exact", "equivalent"):
        mine = risk(Setting(teacher=modes, **setting), method=method)
        true = risk(Setting(teacher=truth, **setting), method=method)
        assert mine.reducible == pytest.approx(true.reducible, rel=0.1)
    assert found.teacher.regime == "II"


@pytest.fixture(scope="module")
def sketched():
    """Seen through a projection, whose bias is a tenth of r."""
    return measure(states(D=64, N=800, P=31, d=512))


def test_the_band_over_windows_holds_the_value(found, sketched):
    assert (found.seen, sketched.seen) == ("direct", "projected")
    for each in (found, sketched):
        for name in EXPONENTS:
            low, high = each.band[name]
            assert low <= getattr(each, name).value <= high
            assert low < high


def test_the_fitted_line_is_least_squares_through_the_eigenvalues(found, sketched):
    for each, projected in ((found, False), (sketched, True)):
        for spectrum, name in zip(("innovation", "initial", "transition"), EXPONENTS, strict=True):
            first, last = each.window[name]
            slope, level = np.polyfit(
                np.log(np.arange(first, last + 1)),
                np.log(each.spectra.named(spectrum).values[first - 1 : last]),
                1,
            )
            exponent, scale = each.fitted[name]
            assert (exponent, scale) == pytest.approx((-slope, np.exp(level)), rel=1e-10)
            assert (exponent == getattr(each, name).value) is not projected


def drawn(found):
    """The lines that `draw` draws with a label, by panel: [(label, x, y)]."""
    _, grid = new_figure(11, 3.6, columns=3)
    found.draw(grid[0])
    return [
        {line.get_label(): (line.get_xdata(), line.get_ydata()) for line in axes.get_lines()}
        for axes in grid[0]
    ]


@pytest.mark.parametrize("kind", ["found", "sketched"])
def test_the_plotted_line_goes_through_the_points(kind, request):
    each = request.getfixturevalue(kind)
    latent = "latent law (projection taken off)"
    for name, lines in zip(EXPONENTS, drawn(each), strict=True):
        j, values = lines["corrected"]
        (first, last), (left, right) = each.window[name], np.log(lines["fitted"][1])
        inside = (j >= first) & (j <= last)
        at = np.log(first), np.log(last)
        misses = np.log(values[inside]) - np.interp(np.log(j[inside]), at, (left, right))
        assert abs(misses.mean()) < 1e-9  # least squares leaves no mean
        assert (latent in lines) is (kind == "sketched")
        if latent in lines:
            x, y = lines[latent]
            assert -np.diff(np.log(y)) / np.diff(np.log(x)) == pytest.approx(getattr(each, name).value)


# --- what it must refuse or flag ---------------------------------------------------------------------


def names(found):
    return {flag.code for flag in found.flags}


def test_shuffled_time_has_no_dynamics(X):
    rng = np.random.default_rng(0)
    shuffled = np.stack([x[rng.permutation(len(x))] for x in X])
    found = measure(shuffled)
    assert "no-dynamics" in names(found)
    assert not found.reliable
    assert found.r.value is None
    assert found.regime.name == "unknown"
    assert not found.modes.a.any()


def test_white_noise_is_no_power_law():
    found = measure(np.random.default_rng(0).standard_normal((500, 20, 16)))
    assert {"no-dynamics", "assumption-2"} <= names(found)
    assert not found.reliable
    assert found.regime.name == "unknown"


def random_walk():
    return np.cumsum(
        np.random.default_rng(0).standard_normal((400, 30, 24)) * np.arange(1, 25) ** -0.8, axis=1
    )


def rotating():
    """x' = A x + ξ with a random A, as far from symmetric as can be."""
    rng = np.random.default_rng(0)
    A = rng.standard_normal((32, 32))
    A *= 0.9 / np.abs(np.linalg.eigvals(A)).max()
    x = [rng.standard_normal((600, 32))]
    for _ in range(20):
        x.append(x[-1] @ A.T + rng.standard_normal((600, 32)) * np.arange(1, 33) ** -0.8)
    return np.stack(x, axis=1)


@pytest.mark.parametrize(
    ("make", "flag"),
    [
        (lambda X: X[:1], "too-few-sequences"),
        (lambda X: X[:5], "too-few-sequences"),
        (lambda X: X[:, :2], "too-short"),
        (lambda X: states(D=256, N=6, P=8), "too-little-data"),
        (lambda X: states(D=256, N=100, P=20), "weak-dynamics"),
        (lambda X: X[:, :, :1], "too-little-data"),
        (lambda X: X[:, :, :4], "too-little-data"),
        (lambda X: random_walk(), "unit-root"),
        (lambda X: rotating(), "non-commuting"),
    ],
)
def test_what_the_theory_does_not_cover_is_flagged(X, make, flag):
    found = measure(make(X))
    assert flag in names(found)
    assert not found.reliable
    assert isinstance(found.modes, Modes)  # computed all the same


def test_constant_features_are_left_out(X, found):
    padded = np.concatenate([X, np.full((*X.shape[:2], 3), 7.0), np.zeros((*X.shape[:2], 2))], axis=2)
    other = measure(padded)
    assert "rank" in names(other)
    assert other.modes.d == 32
    assert [getattr(other, n).value for n in EXPONENTS] == pytest.approx(
        [getattr(found, n).value for n in EXPONENTS], rel=1e-6
    )


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X: np.where(np.arange(32) == 3, np.nan, X), "finite"),
        (lambda X: np.ones((20, 10, 4)), "vary"),
        (lambda X: X[0], "N x P x D"),
        (lambda X: X[:0], "N x P x D"),
        (lambda X: X[:, :1], "two states or more"),
        (lambda X: X * 1j, "real"),
        (lambda X: "missing.npy", "exist"),
        (lambda X: 5, "iterable"),
        (lambda X: [], "two states or more"),
        (lambda X: [X[0], X[1][:5, :3]], "P x 32"),
        (lambda X: iter([X[0], X[1] * np.nan]), "finite"),
        (lambda X: ["a", "b"], "end in"),
        (lambda X: [["a", "b"]], "real"),
    ],
)
def test_bad_input_is_an_error_that_says_why(X, make, message):
    with pytest.raises(InputError, match=message):
        measure(make(X))


def test_files_that_are_not_arrays_are_refused(tmp_path):
    for name, text in (("x.npy", "no array"), ("x.npz", "PK\3\4 cut short"), ("x.txt", "")):
        (tmp_path / name).write_text(text)
        with pytest.raises(InputError, match=r"must (be a readable \.np[yz] file of numbers,|end in)"):
            measure(tmp_path / name)


# --- prediction, advice, command ---------------------------------------------------------------------


def test_advice_says_which_way_and_at_which_test_length(found):
    words = " ".join(found.advise(tokens=1e5, eval_length=512).words)
    assert "The data look like regime II (probability" in words
    assert found.regime.applies
    assert "fewer and longer sequences win" in words  # at the own length, as in the paper
    assert "disagree" not in words  # at width 8 the method cannot tell most lengths apart at 512
    regime2 = " ".join(advise(PRESETS["regime2"], tokens=1e5, eval_length=512, d=256).words)
    assert "Tested at length 512, more and shorter sequences win" in regime2
    assert "disagree" in regime2
    regime1 = " ".join(advise(PRESETS["regime1"], tokens=1e5, eval_length=512, d=256).words)
    # From 48 on the risks fall and rise by less than 2 %: that the longest wins would be wrong.
    assert "Tested at length 512, fewer and longer sequences win up to P = 48 at" in regime1


def test_advice_calls_nothing_a_win_that_the_method_cannot_tell_apart():
    """Regime I near convergence, tested at 64: the splits differ by 2 %, and by less than 1/M at width 16."""
    late = WSD(gamma=0.1, L=10**8)
    for M, d in ((128, 1024), (16, 64)):
        advice = advise(PRESETS["regime1"], tokens=2**24, eval_length=64, schedule=late, M=M, d=d)
        risks = [row.reducible for row in advice.tradeoff.curve("64")]
        ratio = max(risks) / min(risks)
        assert 1 < ratio < 1 + max(0.02, 1 / M)
        told = next(sentence for sentence in advice.words if "Tested at length 64" in sentence)
        assert "the difference is negligible" in told
        assert "win" not in told
        assert f"{ratio:.3f} times" in told
        assert f"accurate to about {100 / M:.2g} %" in told


def test_advice_gives_the_whole_range_that_is_as_good():
    advice = advise(PRESETS["regime2"], tokens=1e6, M=16, d=64)
    curve = advice.tradeoff.curve("own")
    least = min(row.reducible for row in curve)
    near = [row.P for row in curve if row.reducible <= least * (1 + 1 / 16)]
    assert len(near) > 2
    assert f"P from {min(near):,} to {max(near):,}" in advice.words[1]
    assert "best to within 6.2 %" in advice.words[1]


def test_unreliable_data_get_no_confident_advice():
    found = measure(rotating())
    advice = advise(found, tokens=1e5, eval_length=64)
    (words,) = advice.words
    assert "No advice is given: the theory does not cover these data" in words
    assert "`forecast(X)`" in words
    assert "`seqlaw forecast FILE`" in next(iter(advise(found).said("cli")))
    assert advice.tradeoff is None


@pytest.mark.parametrize(
    ("make", "why", "cure"),
    [
        (lambda X: X[:5], "too few sequences", "at least about 30 sequences like these (there are 5)"),
        (lambda X: X[:1], "one sequence gives no intervals", "sequences like these (there is 1)"),
        (lambda X: X[:, :, :4], "only 4 of 4 directions vary", "6 features"),
        (lambda X: states(D=256, N=6, P=8), "48 transitions are too few", "at least about 150 sequences"),
        (lambda X: X[:, :2], "too short", "at least 3 states"),
        (
            lambda X: np.random.default_rng(0).standard_normal((300, 20, 16)),
            "no state predicts",
            "order of time",
        ),
        (lambda X: random_walk(), "hardly changes from state to state", "differences"),
    ],
)
def test_data_that_void_the_prediction_get_a_reason_and_a_cure_instead(X, make, why, cure):
    advice = advise(measure(make(X)), tokens=1e6, eval_length=64)
    assert len(advice.words) == 1
    assert advice.words[0].startswith("No advice is given: ")
    assert why in advice.words[0]
    assert cure in advice.words[0]
    assert "%" not in advice.words[0]
    assert advice.tradeoff is None


def persistent():
    """One slow, stationary direction among quick ones, as in the states of a trained recurrent network."""
    rng, a = np.random.default_rng(3), np.r_[0.99, np.full(11, 0.5)]
    X = np.empty((400, 40, 12))
    X[:, 0] = rng.standard_normal((400, 12))
    for p in range(1, 40):
        X[:, p] = a * X[:, p - 1] + np.sqrt(1 - a**2) * rng.standard_normal((400, 12))
    return X * np.arange(1, 13) ** -0.8


def test_a_slow_direction_is_not_called_a_random_walk_and_leads_to_forecast():
    found = measure(persistent())
    assert "unit-root" in {each.code for each in found.flags}
    (advice,) = advise(found, tokens=1e6).words
    assert "random walk" not in advice
    assert "`forecast(X)` needs no theory of the data" in advice


def long_sequences(N):
    """294 transitions a feature, whatever their number."""
    return states(D=40, N=N, P=40 * 294 // N)


def test_too_few_sequences_for_one_spectrum_are_not_called_too_few_transitions():
    found = measure(long_sequences(12))
    (flag,) = (each for each in found.flags if each.code in VOID)
    asked = flag["sequences"]
    (advice,) = advise(found, tokens=1e6).words
    for words in (advice, sentence(flag, "python")):
        assert "the initial spectrum" in words
        assert "theta needs 6" in words
        assert "samples are the 12 sequences" in words
        assert f"at least about {asked} sequences" in words
        assert "a feature" not in words
        assert "6 features" not in words
    assert measure(long_sequences(asked)).theta.value is not None  # so many do
    assert measure(long_sequences(asked // 2)).theta.value is None  # and half of them do not


def test_a_thin_transition_asks_for_the_sequences_that_its_fit_needs():
    found = measure(states("regime1", D=40, N=12, P=63))
    (asked,) = (
        dict(each.numbers)["sequences"] for each in found.flags if ("of", "transition") in each.numbers
    )
    assert 12 < asked < 48
    assert measure(states("regime1", D=40, N=2 * asked, P=63)).r.value is not None
    spectrum = correct_transition(np.array([0.5, 0.4, 0.1, -0.1, -0.2, -0.3]), np.ones(6), 100)
    assert samples_of_transition(spectrum, 100) is None  # three are positive: who knows


def test_a_weak_transition_says_how_many_sequences_it_needs():
    found = measure(states(D=100, N=30, P=31))
    (asked,) = (each["sequences"] for each in found.flags if each.code == "weak-dynamics")
    assert f"at least about {asked} sequences" in advise(found).words[0]
    assert "weak-dynamics" in names(measure(states(D=100, N=asked // 2, P=31)))
    assert "weak-dynamics" not in names(measure(states(D=100, N=2 * asked, P=31)))


@pytest.mark.parametrize("N", [1, 2, 3])
@pytest.mark.parametrize("kind", ["noise", "teacher", "constant"])
def test_a_few_sequences_give_words_and_no_nan(N, kind, tmp_path, capsys):
    """A NumPy warning is an error here."""
    x = np.random.default_rng(0).standard_normal((N, 64, 40)) if kind == "noise" else states(D=40, N=N, P=63)
    if kind == "constant":
        x[:, :, 5:] = 3.0
    np.save(tmp_path / "x.npy", x)
    code, out, err = called(capsys, "measure", tmp_path / "x.npy", "--tokens", 1e5)
    assert (code, err) == (0, "")
    assert "nan" not in out.split()
    assert "inf" not in out.split()
    assert ("no test of the order of time" in out.replace("\n", " ")) is (N == 1)
    assert "No advice is given" in out
    code, out, _ = called(capsys, "measure", tmp_path / "x.npy", "--json", "--plot", tmp_path / "x.png")
    assert code == 0
    checks = {check["name"]: check["value"] for check in json.loads(out)["checks"]}
    assert (checks["time-order"] is None) is (checks["initial-alignment"] is None) is (N == 1)


def test_one_sequence_does_not_say_that_there_are_no_dynamics(X):
    found = measure(X[:1])
    assert "no-dynamics" not in names(found)
    (flag,) = (flag for flag in found.flags if flag.code == "weak-dynamics")
    assert flag["order_z"] is None
    assert "cannot be known from one sequence" in sentence(flag, "python")


def test_short_sequences_in_between_leave_no_empty_group(X):
    """Those without a transition are left out, and their groups with them."""
    many = [x for one in X[:12] for x in (X[0, :1], one)]
    assert len(tally(held(iter(many))).sequences) == 12
    assert measure(iter(many)).alpha.value == pytest.approx(measure(X[:12]).alpha.value, rel=1e-9)


@pytest.mark.parametrize("start", [0.0, 0.3, 1e3])
def test_one_first_state_for_all_is_no_initial_spectrum(X, start):
    same = X + start
    same[:, 0] = start
    found = measure(same)
    assert found.theta.value is None  # rounding has no exponent
    assert "same-start" in names(found)
    assert "different states" in advise(found).words[0]
    assert [each.code for each in found.regime.fails] == ["same-start"]
    same[:, 0, :3] = X[:, 0, :3] + start
    assert "the first states vary in only 3 of 6 directions" in advise(measure(same)).words[0]


def flat():
    """Dynamics of nearly one strength in every direction: no law falls."""
    rng = np.random.default_rng(0)
    x = [2.0 * rng.standard_normal((400, 24)) * np.arange(1, 25) ** -0.2]
    for _ in range(24):
        x.append(x[-1] * np.linspace(0.9, 0.2, 24) + rng.standard_normal((400, 24)))
    return np.stack(x, axis=1)


def test_no_regime_is_claimed_where_the_assumptions_fail(tmp_path, capsys):
    found = measure(flat())
    assert (found.regime.name, found.regime.applies) == ("I", False)
    assert found.regime.probability > 0.9  # that theta >= alpha: a comparison, not a regime
    assert {"alpha", "theta"} <= {dict(each.numbers).get("of") for each in found.regime.fails}
    np.save(tmp_path / "x.npy", flat())
    code, out, _ = called(capsys, "measure", tmp_path / "x.npy", "--save-teacher", tmp_path / "x.toml")
    headline = " ".join(out.splitlines()[1:3])
    assert headline.startswith("No regime: the theorem's assumptions fail (")
    assert "alpha <= 1, theta <= 1); theta >= alpha as in Regime I;" in headline
    for text in (out, (tmp_path / "x.toml").read_text(), " ".join(advise(found, tokens=1e5).words)):
        assert "Regime I (" not in text
        assert "look like regime" not in text
    regime = json.loads(called(capsys, "measure", tmp_path / "x.npy", "--json")[1])["regime"]
    assert (code, regime["name"], regime["applies"]) == (0, "I", False)
    assert {"alpha <= 1", "theta <= 1"} <= set(regime["fails"])


@pytest.mark.parametrize(
    ("make", "fails"),
    [
        (random_walk, "unit root"),
        (rotating, "transition and covariance do not commute"),
        (lambda: np.random.default_rng(0).standard_normal((300, 20, 16)), "no dynamics"),
        (lambda: steep(theta=1.05), "theta < alpha - 2r"),
    ],
)
def test_every_assumption_that_fails_is_named(make, fails):
    found = measure(make())
    assert fails in map(what_fails, found.regime.fails)
    assert not found.regime.applies


def steep(theta):
    teacher = Teacher(alpha=2.0, theta=theta, r=0.2, rho=0.6, c_xi=0.03, c_0=0.3)
    return trajectories(teacher.modes(32), 800, 31, seed=3)


def test_advice_says_for_which_student_it_is(found):
    default = advise(found, tokens=1e5).words[1]
    assert "M = 8 (a quarter of the 32 directions" in default
    assert "30,000 steps (wsd), at each length with the peak step size of least risk" in default
    asked = advise(found, tokens=1e5, M=16, schedule=WSD(gamma=0.1, L=5000)).words
    assert "M = 16 (as asked) and trains for 5,000 steps" in asked[1]
    assert "width 16" in asked[2]
    with pytest.raises(InputError, match="compute"):
        advise(found, tokens=1e5, compute=1e9, M=4)


def test_counts_are_written_as_plan_writes_them(found):
    words = " ".join(advise(found, tokens=1e9, compute=1e10).words)
    assert "Within 1e10 of compute" in words
    assert "at 1e9 tokens" in words
    assert "e+" not in words
    assert "200,000 steps" in advise(found, tokens=1e3, schedule=WSD(gamma=0.1, L=200_000)).words[1]


def test_a_plan_as_wide_as_the_data_says_so(found):
    rich = advise(found, tokens=1e6, compute=1e14)
    assert rich.plan.finite.best.M == 32
    assert any("M = 32 uses every measured direction" in sentence for sentence in rich.words)
    assert f"trains for {rich.plan.finite.best.L:,} steps" in rich.words[1]
    poor = advise(found, tokens=1e5, compute=1e7)
    assert not any("every measured direction" in sentence for sentence in poor.words)


def test_a_random_walk_has_no_decided_regime_and_fails_its_checks(tmp_path, capsys):
    walk = random_walk()
    found = measure(walk)
    holds = {check.name: check.holds for check in found.checks}
    assert holds["stable"] is False
    assert holds["decay"] is False  # r is 0.006
    assert sum(found.regime.probabilities.values()) == pytest.approx(1)
    assert found.regime.probability == max(found.regime.probabilities.values()) < 0.9
    np.save(tmp_path / "walk.npy", walk)
    with pytest.raises(SystemExit):
        main(["measure", str(tmp_path / "walk.npy")])
    out = capsys.readouterr().out.replace("\n", " ")
    assert (
        "No regime: the theorem's assumptions fail (unit root, no power law for r, r next to 0); the" in out
    )
    assert "regime undecided" not in out  # as a flag  # no regime at all: its assumptions fail
    assert "No advice is given" in out


def test_checks_are_short_enough_for_80_columns(found):
    assert len(found.checks) == 10
    assert max(len(f"{name}: {words}") for name, words in CHECKS.items()) <= 80 - len("-1.2345e-05") - 15


def test_a_known_teacher_passes_the_checks_of_its_transition(found):
    assert {c.name: c.holds for c in found.checks if c.name in ("stable", "decay")} == {
        "stable": True,
        "decay": True,
    }


def test_the_command_prints_json_and_a_table(X, tmp_path, capsys):
    path = tmp_path / "x.npy"
    np.save(path, X)
    arguments = ["measure", str(path), "--tokens", "1e5", "--eval-length", "64"]
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "--json", "--held-out"])
    assert stop.value.code == 0
    body = json.loads(capsys.readouterr().out)
    assert set(body["alpha"]) == {"value", "low", "high"}
    assert {*NUMBERS, "regime", "fit", "checks", "advice", "flags", "held_out"} <= set(body)
    assert set(body["regime"]) == {"name", "probability", "probabilities", "applies", "fails"}
    assert (body["regime"]["applies"], body["regime"]["fails"]) == (True, [])
    assert {"window", "r2", "band", "line"} == set(body["fit"])
    assert body["fit"]["line"]["alpha"]["exponent"] == body["alpha"]["value"]  # no projection here
    assert body["states"] == body["P"] == [32, 32]
    assert {name: body["held_out"][name] for name in ("M", "L", "tokens", "pilot")} == {
        "M": 32,
        "L": 500,
        "tokens": 100_000,  # not the pilot's 640 * 31
        "pilot": 640,
    }
    with pytest.raises(SystemExit):
        main([*arguments, "-M", "16", "-L", "1e4", "--plot", str(tmp_path / "x.png")])
    out = capsys.readouterr().out
    assert "Regime II" in out
    assert "width M = 16 (as asked) and trains for 10,000 steps" in out.replace("\n", " ")
    with pytest.raises(SystemExit) as stop:
        main([*arguments, "-M", "16", "--compute", "1e9"])
    assert stop.value.code == 2
    assert "-M/--width cannot be given together with --compute" in capsys.readouterr().err
    assert "--eval-length needs --tokens too" in called(capsys, *arguments[:2], *arguments[4:])[2]
    assert (tmp_path / "x.png").stat().st_size > 10_000
    with pytest.raises(SystemExit) as stop:
        main(["measure", str(tmp_path / "none.npy")])
    assert stop.value.code == 2
    assert "FILE must exist" in capsys.readouterr().err


def called(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code, *capsys.readouterr()


def test_a_saved_teacher_plans_as_the_advice_does(X, found, tmp_path, capsys):
    sequences, saved = tmp_path / "x.npy", tmp_path / "teacher.toml"
    np.save(sequences, X)
    code, out, _ = called(capsys, "measure", sequences, "--save-teacher", saved)
    assert code == 0
    assert f"32 modes saved: {saved}" in out.splitlines()
    advice = advise(found, compute=1e7, tokens=1e4, eval_length=64)
    mine = advice.plan.finite
    assert mine.best.tokens <= 1e4
    assert mine.best.compute <= 1e7
    assert f"M = {mine.best.M}," in " ".join(advice.words)
    assert not any("given as arrays" in sentence for sentence in advice.words)
    options = ("--compute", 1e7, "--tokens", 1e4, "--eval-length", 64, "--no-confirm")
    told = json.loads(called(capsys, "plan", "--teacher", saved, *options, "--json")[1])["finite"]
    assert [told[s] for s in "MNPL"] == [getattr(mine.best, s) for s in "MNPL"]
    assert told["terms"]["reducible"] == mine.risk.reducible  # every bit of the spectra is in the file
    text = saved.read_text()
    assert "x.npy': 800 sequences of 32 states, 32 features: reliable" in text
    low, value, high = found.alpha.low, found.alpha.value, found.alpha.high
    assert f"# alpha = {value!r}  # {low:.4g} to {high:.4g}\n" in text
    law = "".join(f"{line[2:]}\n" for line in text.splitlines() if line.startswith("# ") and " = " in line)
    assert Teacher(**tomllib.loads(law)) == found.teacher  # the law beside the spectra, to be copied


def test_a_saved_teacher_carries_the_flags(tmp_path):
    found = measure(rotating())
    found.save(tmp_path / "teacher.toml")
    text = (tmp_path / "teacher.toml").read_text()
    assert "NOT reliable" in text
    assert all(f"# ! {words}\n" in text for words in sentences(found.flags, "python"))
    assert np.array_equal(load_teacher(tmp_path / "teacher.toml").sigma_0, found.modes.sigma_0)


def test_no_teacher_is_saved_where_nothing_can_be_predicted(tmp_path, capsys):
    sequences, saved = tmp_path / "walk.npy", tmp_path / "teacher.toml"
    np.save(sequences, random_walk())
    line = "--save-teacher saved nothing: it needs sequences to predict from: one direction hardly changes"
    code, out, err = called(capsys, "measure", sequences, "--save-teacher", saved)
    assert (code, err.count("\n"), saved.exists()) == (2, 1, False)
    assert line in err
    assert out == called(capsys, "measure", sequences)[1]  # the measurement stands
    assert "What would help" in out
    code, out, err = called(capsys, "measure", sequences, "--save-teacher", saved, "--json")
    assert (code, json.loads(out)["teacher_file"]) == (2, None)
    assert line in err
    for path, words in (("x.npz", "must end in .toml"), ("nowhere/x.toml", "must lie in an existing folder")):
        code, out, err = called(capsys, "measure", sequences, "--save-teacher", path)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert f"--save-teacher {words}" in err


@pytest.mark.parametrize("name", ["two\nlines = 1.npy", os.fsdecode(b"bad\xff.npy")])
def test_any_name_of_a_source_can_be_written_down(found, tmp_path, name):
    found.save(tmp_path / "teacher.toml", source=name)
    assert np.array_equal(load_teacher(tmp_path / "teacher.toml").a, found.modes.a)


def test_a_teacher_that_cannot_be_written_leaves_the_old_one(found, tmp_path, monkeypatch):
    saved = tmp_path / "teacher.toml"
    saved.write_text("old")

    def full(path, text, encoding):
        with path.open("w") as file:
            file.write(text[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(InputError, match=r"save_teacher must be writable \(No space left on device\)"):
        found.save(saved)
    assert [path.name for path in tmp_path.iterdir()] == ["teacher.toml"]
    assert saved.read_text() == "old"
    with pytest.raises(InputError, match="File name too long"):
        found.save(tmp_path / f"{'x' * 250}.toml")


# --- answers show themselves --------------------------------------------------------------------------


def command_pages(capsys, path, *options):
    """What `seqlaw measure` prints, and its JSON."""
    page = called(capsys, "measure", path, *options)[1]
    return page, json.loads(called(capsys, "measure", path, *options, "--json")[1])


@pytest.mark.parametrize("make", [lambda X: X, lambda X: rotating(), lambda X: X[:1]])
def test_a_measurement_shows_itself_as_the_command_does(X, make, tmp_path, capsys):
    pytest.importorskip("pandas")
    np.save(tmp_path / "x.npy", make(X))
    page, body = command_pages(capsys, tmp_path / "x.npy")
    found = measure(tmp_path / "x.npy")
    text = str(found)
    tables = text.split("\nwarning: ")[0]
    flags = text[len(tables) :]
    assert page.startswith(tables)
    assert page.rstrip("\n").endswith(flags)  # the advice stands between
    told = found.to_dict()
    assert {name: body[name] for name in told if name != "inputs"} == {
        name: told[name] for name in told if name != "inputs"
    }
    assert [record["code"] for record in body["flag_records"]] == [flag.code for flag in found.flags]
    assert [words.split(": ")[0] for words in body["flags"]] == [flag.code for flag in found.flags]
    frame = found.to_frame()
    assert frame["name"].tolist() == list(NUMBERS)
    assert frame.loc[0, ["N", "P", "D"]].tolist() == [found.N, found.P[1], found.D]
    if found.alpha.value is not None:
        assert frame.loc[0, "value"] == found.alpha.value
        assert frame.loc[0, "window"] == "{}-{}".format(*found.window["alpha"])
        assert (frame.loc[0, "r2"], frame.loc[4, "r2"]) == (found.r2["alpha"], found.r2["alpha"])
    assert "<table>" in found._repr_html_()
    assert len(found.plot()) == 3


def test_every_code_has_words_of_its_own(X):
    """Not the bare numbers that a code without words is said with."""
    seen = set()
    same = X.copy()
    same[:, 0] = 0.3
    for x in (X[:1], X[:5], X[:, :2], X[:, :, :4], states(D=256, N=6, P=8), random_walk(), rotating(), same):
        for flag in measure(x).flags:
            seen.add(flag.code)
            bare = ", ".join(f"{name} = {value}" for name, value in flag.numbers)
            assert sentence(flag, "python") != f"{flag.code}: {bare}"
    assert set(VOID) - {"no-dynamics"} <= seen


def test_advice_shows_itself(found, X, tmp_path, capsys):
    pytest.importorskip("pandas")
    advice = advise(found, tokens=1e5, eval_length=64)
    np.save(tmp_path / "x.npy", X)
    page, body = command_pages(capsys, tmp_path / "x.npy", "--tokens", 1e5, "--eval-length", 64)
    assert body["advice"] == list(advice.words)
    assert {one.code for one in advice.flagged()} <= {one["code"] for one in body["flag_records"]}
    trust, text = str(advice).split("\nwarning: ")[0].split("\n", 1)  # the tradeoff's own flags follow
    assert text in page
    assert "regime II" in trust  # the page of the command has said so
    assert trust not in page
    told = advice.to_dict()
    assert told["words"] == list(advice.words)
    assert told["student"]["chosen"] == "quarter"
    assert [verdict["tested"] for verdict in told["verdicts"]] == ["own", "64"]
    assert {"cross-rest", "saturated"} <= {record["code"] for record in told["flag_records"]}
    assert "regime-unknown" not in {record["code"] for record in told["flag_records"]}
    frame = advice.to_frame()
    assert len(frame) == len(advice.tradeoff.rows)
    assert frame["reducible"].tolist() == [row.reducible for row in advice.tradeoff.rows]
    assert len(advice.plot()) == 2
    assert "regime II" in advice._repr_html_()
    rich = advise(found, tokens=1e5, compute=1e9)
    assert rich.to_dict()["plan"]["finite"]["M"] == rich.plan.finite.best.M == rich.student.M


def test_advice_without_tokens_asks_for_them_in_the_readers_language(found):
    advice = advise(found)
    assert "(tokens=…)" in str(advice).replace("\n", " ")
    assert "(--tokens)" in " ".join(advice.said("cli"))
    assert advice.to_dict()["tradeoff"] is None
    assert advice.tidy_rows() == []
    with pytest.raises(InputError, match="no picture"):
        advice.plot()


def test_the_held_out_check_is_the_forecast(X, tmp_path, capsys):
    np.save(tmp_path / "x.npy", X[:40])
    page, body = command_pages(capsys, tmp_path / "x.npy", "--held-out")
    checked = forecast(tmp_path / "x.npy")
    said = " ".join(page.split())
    assert all(" ".join(sentence.split()) in said for sentence in checked.advice)
    told = checked.to_dict()
    assert body["held_out"] == {name: told[name] for name in body["held_out"]}


# --- coverage ----------------------------------------------------------------------------------------


def random_teachers(count, seed):
    """Both regimes in turn, |θ - α| ≥ 0.2."""
    rng = np.random.default_rng(seed)
    out = []
    while len(out) < count:
        alpha, r = rng.uniform(1.1, 2.2), rng.uniform(0.12, 0.45)
        if len(out) % 2 == 0:
            theta = alpha + rng.uniform(0.2, 1.0)
        else:
            low, high = max(1.05, alpha - 2 * r + 0.1), alpha - 0.2
            if high <= low:
                continue
            theta = rng.uniform(low, high)
        rho, c_xi, c_0 = rng.uniform(0.4, 0.9), 10 ** rng.uniform(-2, 0), 10 ** rng.uniform(-2, 0)
        out.append(Teacher(alpha=alpha, theta=theta, r=r, rho=rho, c_xi=c_xi, c_0=c_0))
    return out


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "N", "P"), [(2, 2000, 31), (3, 800, 23)])
def test_intervals_cover_what_they_claim(seed, N, P):
    """20 teachers, each unsketched and sketched, D from 32 to 256 (d = 8D, at most 1024)."""
    rows = []
    for index, teacher in enumerate(random_teachers(20, seed)):
        D = (32, 64, 128, 256)[index % 4]
        for d in (None, min(8 * D, 1024)):
            S = gaussian_sketch(D, d, seed=index) if d else None
            found = measure(trajectories(teacher.modes(d or D), N, P, S=S, seed=index + 100 * seed))
            if found.reliable:
                rows.append([*covers(found, teacher).values(), found.regime.name == teacher.regime])
    print(f"reliable {len(rows)} of 40; coverage alpha, theta, r, regime: {np.mean(rows, axis=0).round(3)}")
    assert len(rows) >= 0.6 * 40
    alpha, theta, r, regime = np.mean(rows, axis=0)
    assert min(alpha, theta, r) >= 0.8
    assert regime >= 0.95
