"""The forecast on one's own sequences: fast forms against slow ones, readers, and what trips people."""

import itertools
import json
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from scipy.io import savemat
from scipy.special import stdtrit

from seqlaw import PRESETS, WSD, InputError, forecast
from seqlaw.answers.words import sentence
from seqlaw.cli import main
from seqlaw.methods import trajectories
from seqlaw.model import descend
from seqlaw.model.descent import Moments
from seqlaw.model.flags import flag
from seqlaw.model.randomness import generator
from seqlaw.model.sketch import gaussian_sketch
from seqlaw.sequences.learning_curve import Chance, LearningCurve, crossings
from seqlaw.sequences.pilot import (
    Pilot,
    Student,
    View,
    best_schedule,
    block_sums,
    held_out_moments,
    losses_by_group,
    mean_error,
    subset,
)
from seqlaw.sequences.reading import sequences
from seqlaw.sequences.tables import Columns
from seqlaw.sequences.worth import Gain, gains, worth_flags

STATES = trajectories(PRESETS["regime2"].modes(8), 240, 12, seed=3)
ROUNDING = 1e-10  # sums of a few thousand products in another order


def pilot_of(X, groups=None, *, test=0):
    data = sequences(X, groups=groups)
    rows = np.argsort(data.groups, kind="stable")
    view = View(mean=np.zeros(data.D), scale=np.ones(data.D), S=None)
    return Pilot(
        data=data,
        rows=rows[test:],
        test=rows[:test],
        given=False,
        view=view,
        M=data.D,
        tick=lambda count: None,
    )


# --- each fast form against the slow one ---------------------------------------------------------------


def naive_moments(X, P):
    G, C = np.zeros((2, X.shape[2], X.shape[2]))
    for x in X:
        for p in range(P):
            G += np.outer(x[p], x[p])
            C += np.outer(x[p + 1], x[p])
    return G, C


def test_moments_of_all_lengths_are_prefix_sums():
    X = STATES[:30, :8]
    found = block_sums(pilot_of(X), (1, 3, 7), seed=0)
    assert sorted(np.concatenate(found.rows).tolist()) == list(range(30))
    for k, P in enumerate((1, 3, 7)):
        for b, rows in enumerate(found.rows):
            G, C = naive_moments(X[rows], P)
            assert found.sums[b][k].G == pytest.approx(G, rel=ROUNDING, abs=ROUNDING)
            assert found.sums[b][k].C == pytest.approx(C, rel=ROUNDING, abs=ROUNDING)


@pytest.mark.parametrize("given", [False, True])
def test_gains_are_those_of_students_trained_without_the_fold(given):
    """Each group is tested once, by students of the other folds about their own mean; slowly.

    The student that ignores the order of time has the mean moments over all orders. With given test
    sequences these are the only fold. The loss of each student is that of 30 explicit steps.
    """
    X, label = STATES[:12, :4] + 3.0, np.arange(12) // 2
    pilot = replace(pilot_of(X, label, test=4), given=given)
    schedule = WSD(gamma=0.4 / np.linalg.norm(naive_moments(X - X.mean((0, 1)), 3)[0] / 36, 2), L=30)
    mine = gains(pilot, 3, 3, schedule, 0, 0.975)
    order = generator(0, "forecast", "folds").permutation(6)
    folds = [np.isin(label, [0, 1])] if given else [(order % 5)[label] == f for f in range(5)]
    slow = {name: np.zeros(6) for name in ("student", "blind", "nothing")}
    for held in folds:
        train, mean = X[~held], X[~held].mean((0, 1))
        orders = list(itertools.permutations(range(4)))
        forms = {
            "student": naive_moments(train - mean, 3),
            "blind": [
                sum(m) / len(orders)
                for m in zip(*(naive_moments(train[:, list(o)] - mean, 3) for o in orders), strict=True)
            ],
            "nothing": np.zeros((2, 8, 8)),
        }
        for name, (G, C) in forms.items():
            B = np.zeros((8, 8))
            if name != "nothing":
                B, _ = descend(G / (3 * len(train)), C / (3 * len(train)), schedule)
            for i in np.flatnonzero(held):
                x = X[i] - mean
                slow[name][label[i]] += np.mean([np.sum((x[p + 1] - B @ x[p]) ** 2) / 2 for p in range(3)])
    tested = np.unique(np.concatenate([label[held] for held in folds]))
    for gain, name in zip(mine, ("nothing", "blind"), strict=True):
        means = [slow[each][tested] / 2 for each in ("student", name)]
        assert (gain.loss, gain.other) == pytest.approx([m.mean() for m in means], rel=1e-8)
        error = np.std(means[1] - means[0], ddof=1) / np.sqrt(tested.size)
        assert gain.error == pytest.approx(stdtrit(tested.size - 1, 0.975) * error, rel=1e-6)


@pytest.mark.parametrize("N", [1, 7, 20, 30])
def test_a_subset_is_blocks_and_a_part_of_one(N):
    X, rng = STATES[:30, :6], np.random.default_rng(0)
    pilot = pilot_of(X, groups=np.arange(30) // 3)
    blocks = block_sums(pilot, (2, 5), seed=0)
    order = rng.permutation(len(blocks.rows))
    seen = subset(pilot, blocks, 5, N, order, rng)
    # Which sequences were drawn: the only whole weights 0, 1 that give these moments.
    parts = np.array([np.concatenate([m.ravel() for m in naive_moments(X[i : i + 1], 5)]) for i in range(30)])
    wanted = np.concatenate([seen.G.ravel(), seen.C.ravel()]) * N * 5
    weights, *_ = np.linalg.lstsq(parts.T, wanted, rcond=None)
    assert weights == pytest.approx(weights.round(), abs=1e-6)
    assert set(weights.round()) <= {0.0, 1.0}
    assert weights.round().sum() == N
    per_group = weights.round().reshape(10, 3).sum(axis=1)
    assert np.count_nonzero((per_group > 0) & (per_group < 3)) <= 1  # whole groups, but for the last


def test_halves_from_the_two_ends_of_an_order_are_complementary():
    """Their moments add up to those of the whole pilot: what is linear in the data cancels in the mean."""
    pilot = pilot_of(STATES[:32, :6])
    blocks = block_sums(pilot, (5,), seed=0)
    order, rng = np.random.default_rng(0).permutation(32), np.random.default_rng(1)
    halves = [subset(pilot, blocks, 5, 16, each, rng) for each in (order, order[::-1])]
    for name, whole in zip("GC", naive_moments(STATES[:32], 5), strict=True):
        assert sum(getattr(half, name) for half in halves) * 16 * 5 == pytest.approx(
            whole, rel=ROUNDING, abs=ROUNDING
        )


def test_the_students_filter_is_gradient_descent():
    G, C = (part / (40 * 5) for part in naive_moments(STATES[:40], 5))
    schedule = WSD(gamma=0.4 / np.linalg.norm(G, 2), L=60)
    student = Student.of(Moments(G=G, C=C, energy=0.0), 5, schedule)
    slow, _ = descend(G, C, schedule)
    assert student.B == pytest.approx(slow, rel=1e-8, abs=1e-10)  # 60 steps against one eigendecomposition
    assert student.learned == pytest.approx(
        np.sum(1 - schedule.residual(np.linalg.eigvalsh(G))), rel=ROUNDING
    )


@pytest.mark.parametrize(("noise", "N"), [(0.0, 99), (1.0, 99), (1.0, 7)])
def test_the_step_of_a_length_is_chosen_by_cross_validation(noise, N):
    """By descent itself, step by step, tested on each sequence of the fold; noise wants a smaller step.

    Of 30 blocks of one sequence, N of those that follow the fold are trained on.
    """
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 1, 8)) * 0.9 ** np.arange(7)[:, None]
    X += noise * rng.standard_normal(X.shape)
    pilot, P, L = pilot_of(X), 3, 40
    blocks = block_sums(pilot, (3, 6), seed=0)
    found, _ = best_schedule(pilot, blocks, P, N, 6, L, seed=0)
    largest = 1 / (2 * np.linalg.norm(naive_moments(X, P)[0] / (30 * P), 2))
    steps, loss = largest * np.geomspace(1, 1 / L, 12), np.zeros((5, 12))  # 12 = 1 + ⌈2 log2 40⌉
    for f in range(5):
        held = [blocks.rows[b][0] for b in range(30) if b % 5 == f]
        others = [b for b in range(30) if b % 5 != f]
        rest = [blocks.rows[b][0] for b in (others[6 * f :] + others[: 6 * f])[:N]]
        G, C = (part / (len(rest) * P) for part in naive_moments(X[rest], P))
        for k, gamma in enumerate(steps):
            B, _ = descend(G, C, WSD(gamma=gamma, L=L))
            loss[f, k] = np.mean([np.sum((X[i, p + 1] - B @ X[i, p]) ** 2) for i in held for p in range(6)])
    above = loss - loss[:, [loss.mean(axis=0).argmin()]]
    good = above.mean(axis=0) <= 2 * above.std(axis=0, ddof=1) / np.sqrt(5)
    assert found.gamma == pytest.approx(max(steps[good]))
    assert (found.gamma < 0.9 * largest) == (noise > 0)


def test_each_length_names_its_step_unless_one_is_given(found):
    body, words = found.to_dict(), " ".join(str(found).split())
    gammas = [one["gamma"] for one in body["lengths"]]
    assert len(set(gammas)) == len(gammas)
    assert body["gamma"] is None
    assert f"chosen by cross-validation: {gammas[0]:.3g} at P = 2, " in words
    assert found.to_frame()["gamma"].tolist() == [gammas[[2, 4, 8, 12].index(row.P)] for row in found.rows]
    given = forecast(STATES, tokens=500, gamma=0.3)
    assert {law.schedule.gamma for law in given.curves} == {given.gamma, 0.3}
    assert "Its step size is 0.3 at every length, as asked" in " ".join(str(given).split())
    with pytest.raises(InputError, match="gamma must be positive, got -1"):
        forecast(STATES, gamma=-1)


def test_losses_on_the_test_are_means_over_transitions():
    X = STATES[:20]
    pilot = pilot_of(X, groups=np.arange(20) // 5, test=10)
    B = np.random.default_rng(0).standard_normal((8, 8))
    slow = [np.mean([np.sum((x[p + 1] - B @ x[p]) ** 2) / 2 for p in range(6)]) for x in X[:10]]
    assert held_out_moments(pilot, 6).loss(B) == pytest.approx(np.mean(slow), rel=ROUNDING)
    sums, count = losses_by_group(pilot, 6, [B])
    assert sums[0] == pytest.approx([sum(slow[:5]), sum(slow[5:])], rel=ROUNDING)
    # One sequence a group: the usual standard error of a mean.
    assert mean_error(np.array(slow), np.ones(10)) == pytest.approx(np.std(slow, ddof=1) / np.sqrt(10))
    assert count.tolist() == [5, 5]


def curve_of(P=4, n=100, loss=2.0, seen=None, learned=5.0):
    """Without any chance: all subsets of a size lose the same, and so do all test groups."""
    return LearningCurve(
        P=P,
        n=n,
        loss=loss,
        subsets={N: np.full(16, each) for N, each in (seen or {50: 2.3, 25: 2.9, 12: 4.25}).items()},
        learned=learned,
        schedule=WSD(gamma=0.1, L=500),
        largest=False,
        room=0.0,
        test=np.full(4, loss),
        halves=np.full(4, loss),
        count=np.ones(4),
        blocks=8,
    )


def test_the_law_passes_through_the_pilot_and_its_halves():
    law = curve_of()
    assert law.variance == pytest.approx(0.3 / (1 / 50 - 1 / 100))
    assert [law.at(N) for N in (100, 50, 25)] == pytest.approx([2.0, 2.3, 2.9], rel=1e-12)
    assert law.at(33) == pytest.approx(np.interp(1 / 33, [1 / 50, 1 / 25], [2.3, 2.9]))  # measured
    assert law.limit == pytest.approx(1.7)
    assert law.tokens(100) == 80
    assert law.forecast
    assert not curve_of(learned=21.0).forecast  # 19 tokens per learned dimension
    assert not curve_of(seen={50: 3.1, 25: 4.0}).forecast  # too steep
    assert curve_of(seen={50: 1.9, 25: 1.95}).limit == 2.0  # more data do not hurt


def test_a_second_order_in_the_law_moves_the_interval_to_its_side():
    """L = 1 + 20/N + 300/N²: the true loss beyond lies above the line, inside the interval, at its end."""
    true = lambda N: 1 + 20 / N + 300 / N**2  # noqa: E731
    law = curve_of(loss=true(100), seen={N: true(N) for N in (50, 25, 12)})
    for N in (200.0, 1000.0, np.inf):
        low, high = law.interval(N)
        assert law.at(N) < true(N)
        assert low == pytest.approx(law.at(N))
        assert law.chance_at(N).bend == pytest.approx(true(N) - law.at(N))
        assert high == pytest.approx(law.at(N) * np.exp(true(N) / law.at(N) - 1))


def test_the_pilots_chance_is_that_of_other_pilots():
    """A loss with a linear and a quadratic part, whose variance over pilots is known from 20,000 of them.

    Not below it by more than chance (5 %: 400 pilots of 8 pairs), and at most 1.6 times where all is
    quadratic, since a difference of two noisy variances is not let fall below half the first.
    """
    rng = np.random.default_rng(0)

    def loss(x, linear):  # of a mean: linear in it, and quadratic
        m = x.mean(axis=-2)
        return 5 + linear * m[..., 0] + np.sum(m**2, axis=-1)

    for linear in (0.0, 0.5, 5.0):
        truth = loss(rng.standard_normal((20_000, 40, 6)), linear).var()
        found = []
        for _ in range(400):
            x = rng.standard_normal((40, 6))
            pairs = [np.split(rng.permutation(40), 2) for _ in range(8)]
            first, second = (np.array([loss(x[pair[k]], linear) for pair in pairs]) for k in (0, 1))
            mean = (first + second) / 2
            chance = Chance(
                test=np.zeros(3),
                count=np.ones(3),
                halves=(first - second) / 2,
                spread=mean - mean.mean(),
                carried=np.zeros(8),
                bend=0.0,
                blocks=40,
            )
            found.append(chance.drawn**2)
        assert 0.9 < np.mean(found) / truth < (1.6 if linear == 0 else 1.2)


def test_an_interval_is_positive_and_wider_upwards():
    wide = replace(curve_of().chance_at(100), test=np.array([0.0, 0.0, 0.0, 8.0]))
    low, high = wide.interval(2.0)
    assert 0 < low < 2 < high
    assert high - 2 > 2 - low
    assert low * high == pytest.approx(4.0)


# --- what it says --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    return forecast(STATES, tokens=500, target_loss=0.05)


def test_rows_are_measured_within_half_the_pilot_and_forecast_beyond(found):
    assert [row.P for row in found.rows] == [2, 4, 8, 12][-len(found.rows) :]
    for row in found.rows:
        assert row.N == 500 // row.P
        assert row.kind == ("measured" if row.N <= found.n // 2 else "forecast")
    assert {row.kind for row in found.rows} == {"measured", "forecast"}
    assert (found.n, found.tested) == (192, 48)
    good = found.accuracy
    assert good.low < 1 < good.high
    # 90 %: the test of 48 sequences alone is known to some per cent.
    assert good.high - 1 > 1.6 * found.test_se / found.curves[-1].loss
    known = {law.P for law in found.curves if law.forecast}
    for one in found.overlap:
        assert (one.forecast is None) == (one.P not in known or one.N == 96)  # half of the pilot sets V
    for row in found.rows:
        assert row.low < row.loss < row.high
        assert good.low <= row.loss / row.high or row.kind == "measured"


def test_forecasts_and_limits_have_the_interval_that_is_printed_and_drawn(found, tmp_path):
    body = found.to_dict()
    assert {"P", "N", "loss", "se", "low", "high", "kind"} <= set(body["rows"][0])
    page = str(found)
    for row in found.rows:
        line = next(line for line in page.splitlines() if line.split()[:2] == [str(row.P), str(row.N)])
        assert [float(cell) for cell in line.split()[2:5]] == pytest.approx(
            [row.loss, row.low, row.high], rel=1e-4
        )
    for one, law in zip(body["lengths"], found.curves, strict=True):
        if law.forecast:
            assert one["low"] < one["limit"] == law.at(np.inf) < one["high"]
            assert (one["low"], one["high"]) == law.interval(np.inf)
    axes = found.plot()
    bars = [bar for bar in axes[0].containers if bar.has_yerr]
    drawn = {tuple(x) for bar in bars for segment in bar.lines[2][0].get_segments() for x in segment}
    for row in found.rows:
        for end in (row.low, row.high):
            assert any(x == row.P and y == pytest.approx(end) for x, y in drawn)
    bands = [band.get_paths()[0].vertices for band in axes[1].collections if isinstance(band, PolyCollection)]
    shown = [
        law
        for law in found.curves
        if any(
            law.at(30 * law.n) == pytest.approx(line.get_ydata()[-1])
            for line in axes[1].lines
            if line.get_linestyle() == "--"
        )
    ]
    ends = [end for law in shown for end in law.interval(30 * law.n)]
    seen = np.concatenate(bands)[:, 1]
    assert ends
    assert all(np.isclose(seen, end).any() for end in ends)


def test_the_first_line_has_the_verdict_and_the_loss_of_nothing(found):
    first = str(found).partition(". ")[0].replace("\n", " ")
    assert first.startswith("With 500 tokens,")
    assert f"{found.null_loss:.5g}" in first


def test_how_many_more(found):
    reach = {each.P: each for each in found.needed}
    for law in found.curves:
        if law.P in reach and reach[law.P].N is not None and not reach[law.P].at_most:
            N = reach[law.P].N  # whole, to three digits upwards: 1 % fewer or one fewer do not reach it
            assert law.at(N) <= 0.05 < law.at(min(N - 1, 0.99 * N))
    far = forecast(STATES, target_loss=found.curves[-1].limit / 2)
    assert all(each.N is None for each in far.needed)
    assert "o number of sequences reaches" in " ".join(far.advice)


def test_a_crossing_is_where_two_lengths_are_level():
    """Short sequences are less noisy a token, long ones have the lower limit."""
    short = curve_of(P=1, n=500, loss=1.03, seen={250: 1.036, 125: 1.048}, learned=5.0)
    long = curve_of(P=12, n=500, loss=1.0, seen={250: 1.018, 125: 1.054}, learned=5.0)
    assert (short.variance, long.variance) == pytest.approx((3.0, 9.0))
    apart = dict.fromkeys([(12, 1), (1, 12), (1, 1), (12, 12)], 0.002)
    (found,) = crossings([short, long], 1, 400, apart)
    assert (found.P, found.over, found.N) == (12, 1, found.tokens / 12)
    assert long.line(found.N) == pytest.approx(short.line(found.tokens), rel=1e-12)
    assert long.line(found.N / 2) > short.line(found.tokens / 2)
    assert 400 < found.low < found.tokens < found.high
    assert crossings([short, long], 1, 2 * found.tokens, apart) == ()  # it has won already
    assert crossings([short, long], 1, 400, dict.fromkeys(apart, 0.1)) == ()  # not known well enough


def test_students_see_less(found):
    few = forecast(STATES, student="pca", M=3)
    drawn = forecast(STATES, student="sketch", M=3)
    assert (few.M, drawn.M) == (3, 3)
    assert few.null_loss < found.null_loss
    with pytest.raises(InputError, match="M goes with the students pca and sketch"):
        forecast(STATES, M=3)
    with pytest.raises(InputError, match="M must be at most 8"):
        forecast(STATES, student="pca", M=9)
    with pytest.raises(InputError, match="student must be one of all, pca, sketch"):
        forecast(STATES, student="some")


def test_a_rotation_and_a_shift_of_the_features_change_nothing(found):
    Q, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((8, 8)))
    turned = forecast(STATES @ Q + 5.0, tokens=500, target_loss=0.05)
    for row, other in zip(found.rows, turned.rows, strict=True):
        assert row.loss == pytest.approx(other.loss, rel=1e-8)


def test_standardising_takes_the_scale_away():
    scales = 10.0 ** np.arange(8)
    plain, scaled = (forecast(X, standardise=True) for X in (STATES, STATES * scales))
    assert scaled.null_loss == pytest.approx(plain.null_loss, rel=1e-8)
    white = np.random.default_rng(0).standard_normal((100, 9, 8)) * scales
    assert forecast(white, standardise=True).null_loss == pytest.approx(4.0, rel=0.1)  # eight halves, ± 3 %


# --- as people have them -------------------------------------------------------------------------------


class Tensor:
    """As torch has it: no NumPy type, `__array__` only after `detach`."""

    def __init__(self, values, attached=True):
        self.values, self.attached = values, attached
        self.shape, self.dtype = values.shape, "torch.float64"

    def detach(self):
        return Tensor(self.values, attached=False)

    def __array__(self, dtype=None, copy=None):
        if self.attached:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad.")
        return np.asarray(self.values, dtype=dtype)


def table(X):
    pd = pytest.importorskip("pandas")
    N, P, D = X.shape
    frame = pd.DataFrame(X.reshape(-1, D), columns=[f"x{j}" for j in range(D)])
    frame["trial"], frame["second"] = (
        np.repeat([f"trial {i:03d}" for i in range(N)], P),
        np.tile(np.arange(P), N),
    )
    return frame.sample(frac=1, random_state=0)  # rows in any order


COLUMNS = {"sequence": "trial", "time": "second"}


def in_form(form, X, folder):
    """The same sequences in another form, and the arguments that it needs."""
    path = folder / f"x.{form}"
    if form in ("csv", "parquet"):
        frame = table(X)
        frame.to_csv(path, index=False) if form == "csv" else frame.to_parquet(path)
        return path, COLUMNS
    if form == "zarr":
        pytest.importorskip("zarr").save(str(path), X)
    elif form == "mat":
        savemat(path, {"X": X})
    elif form == "npz":
        np.savez(path, X=X, other=np.zeros(3))
    elif form == "npy":
        np.save(path, X)
    else:
        shapes = {
            "frame": lambda: (table(X), COLUMNS),
            "ragged": lambda: ((x for x in X), {}),
            "tensor": lambda: (Tensor(X), {}),
            "tensors": lambda: ([Tensor(x) for x in X], {}),
        }
        return shapes[form]()
    return path, {}


FORMS = ("npy", "npz", "zarr", "mat", "csv", "parquet", "frame", "ragged", "tensor", "tensors")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_answer(form, tmp_path):
    X = STATES[:60, :6, :4]
    given, how = in_form(form, X, tmp_path)
    mine, wanted = forecast(given, **how), forecast(X)
    # A CSV keeps 17 digits; sums of a list are those of an array but for the size of its chunks.
    assert [row.loss for row in mine.rows] == pytest.approx([row.loss for row in wanted.rows], rel=1e-9)
    assert [row.kind for row in mine.rows] == [row.kind for row in wanted.rows]


@pytest.mark.parametrize("form", ["mat", "npz", "zarr"])
def test_a_single_number_beside_the_array_of_a_file_does_not_count(form, tmp_path, capsys):
    """A sampling rate beside the data; of two arrays the line names the file and what it holds."""
    path, arrays = tmp_path / f"x.{form}", {"data": STATES[:20], "fs": np.array([250.0])}
    write = {"mat": savemat, "npz": lambda path, arrays: np.savez(path, **arrays)}
    if form == "zarr":
        write["zarr"] = lambda path, arrays: pytest.importorskip("zarr").save_group(str(path), **arrays)
    write[form](path, arrays)
    assert np.array_equal(sequences(path).read(np.arange(20), 13), STATES[:20])
    write[form](path, arrays | {"times": np.arange(13.0)})
    with pytest.raises(SystemExit):
        main(["forecast", str(path)])
    said = f"seqlaw: FILE must hold one array, or one named X (x.{form}), got data, fs, times\n"
    assert capsys.readouterr().err == said


def test_cells_of_a_mat_file_are_ragged_sequences(tmp_path):
    cells = np.empty(40, dtype=object)
    for k in range(40):
        cells[k] = STATES[k, : 8 + k % 3]
    savemat(tmp_path / "x.mat", {"trials": cells, "subject": np.arange(40) // 4})
    found = sequences(tmp_path / "x.mat", groups="subject")
    assert (found.N, found.D, found.lengths.max(), found.groups.max()) == (40, 8, 10, 9)


@pytest.mark.parametrize(("X", "got"), [([1, 2, 3], "()"), ([[1, 2], [3]], "(2,)")])
def test_a_list_of_numbers_is_refused_in_one_line(X, got):
    with pytest.raises(InputError) as error:
        forecast(X)
    assert str(error.value) == f"X must hold sequences P x D, got 'sequence 0 of shape {got}'"


def test_sequences_too_short_are_left_out_where_that_keeps_more():
    ragged = [x[:9] for x in STATES[:50]] + [x[:3] for x in STATES[50:60]]
    answer = forecast(ragged)
    assert answer.curves[-1].P == 8
    assert "10 of 60 sequences are shorter than 8 and left out" in " ".join(str(answer).split())
    with pytest.raises(InputError, match="lengths must be at most the longest sequence's, 8, got 20"):
        forecast(ragged, lengths=[2, 20])
    with pytest.raises(InputError, match="eval_length must be at most the longest sequence's, 8, got 9"):
        forecast(ragged, eval_length=9)


def test_an_eval_length_that_few_ragged_sequences_reach_is_refused():
    """The long ones are cut to the length that keeps most of the data."""
    ragged = [x[:6] for x in STATES[:60]] + [x[:12] for x in STATES[60:63]]
    rule = r"eval_length must be at most 5, the length that keeps most of the data \(or give lengths\), got 8"
    with pytest.raises(InputError, match=rule):
        forecast(ragged, eval_length=8)
    assert forecast(ragged, eval_length=5).eval_length == 5


def test_one_recording_is_cut_into_blocks_with_a_gap():
    S = STATES.reshape(-1, 8)
    found = sequences(S, window=10)
    (said,) = found.flags
    blocks, windows = said["blocks"], said["windows"]
    assert (said.code, found.grouped, found.groups.max() + 1) == ("blocks", True, blocks)
    assert np.all(np.bincount(found.groups)[:-1] == windows)
    for k in range(found.N - 1):
        gap = found.starts[k + 1] - found.starts[k] - 10
        assert gap == (10 if found.groups[k + 1] != found.groups[k] else 0)
    assert np.array_equal(found.read(np.array([3, 7]), 10)[1], S[found.starts[7] :][:10])
    # Several recordings are groups themselves.
    several = sequences(STATES, window=4)
    assert several.groups.tolist() == np.repeat(np.arange(240), 3).tolist()
    assert not several.flags


def test_windows_and_groups_of_a_table(tmp_path):
    pytest.importorskip("pandas")
    frame = table(STATES[:60])
    frame["subject"] = [int(name.split()[1]) // 6 for name in frame["trial"]]
    frame.to_csv(tmp_path / "x.csv", index=False)
    whole = sequences(tmp_path / "x.csv", Columns(**COLUMNS), groups="subject")
    assert (whole.N, whole.groups.max() + 1, whole.D, whole.grouped) == (60, 10, 8, True)
    cut = sequences(tmp_path / "x.csv", Columns(**COLUMNS), groups="subject", window=6)
    assert (cut.N, cut.groups.max() + 1) == (120, 10)
    answer = forecast(tmp_path / "x.csv", groups="subject", **COLUMNS)
    assert "few-groups" in [flag.code for flag in answer.flags]
    assert answer.groups + 3 == 10


def test_a_label_among_the_features_is_flagged():
    """A number of the subject never changes within a trial; as a feature it was fitted in silence."""
    pytest.importorskip("pandas")
    frame = table(STATES[:60, :6])
    frame["hand"] = frame["trial"].factorize()[0] % 2
    how = {"sequence": "trial", "time": "second"}
    (said,) = (one for one in forecast(frame, **how).flags if one.code == "labels")
    assert "hand" in said["columns"]
    left = forecast(frame, **how, leave_out=list(said["columns"]))
    assert "labels" not in [one.code for one in left.flags]


def test_a_clock_among_the_features_is_flagged_and_can_be_left_out():
    """Even or uneven clocks; without a sequence column also one that starts anew, and the trials' numbers."""
    pytest.importorskip("pandas")
    frame = table(STATES[:60, :6]).sort_values(["trial", "second"])
    frame["late"] = frame["second"] ** 2 + 0.1
    answer = forecast(frame, sequence="trial")
    (said,) = (one for one in answer.flags if one.code == "clock")
    assert (said["columns"], said["of"], answer.D) == (("second", "late"), 10, 10)
    said = " ".join(str(answer).split())
    assert "warning: of 10 features these rise steadily, as clocks and counters do" in said
    left = forecast(frame, sequence="trial", leave_out=["second", "late"])
    named = forecast(frame, sequence="trial", time="second", leave_out=["late"])
    plain = forecast(STATES[:60, :6])
    assert "clock" not in [one.code for one in (*left.flags, *named.flags)]
    assert [row.loss for row in left.rows] == pytest.approx([row.loss for row in plain.rows], rel=1e-9)
    assert left.rows == named.rows
    frame["trial"] = frame["trial"].str.split().str[1].astype(int)
    (cut,) = (one for one in sequences(frame, window=6).flags if one.code == "clock")
    assert cut["columns"] == ("trial", "second")
    with pytest.raises(InputError, match="leave_out must be a column, one of x0, x1"):
        sequences(frame, Columns(sequence="trial", leave_out=["Q"]))
    with pytest.raises(InputError, match="leave_out goes with tables"):
        sequences(STATES, Columns(leave_out=["x0"]))


def test_a_test_of_ones_own():
    """The loss of the pilot's student on it, by the recursion."""
    pilot, held = STATES[:60], STATES[60:90]
    answer = forecast(pilot, test=held, lengths=[4, 6], eval_length=6)
    assert (answer.n, answer.tested, answer.eval_length) == (60, 30, 6)
    mean = pilot[:, :7].mean(axis=(0, 1))
    G, C = (part / (60 * 6) for part in naive_moments(pilot - mean, 6))
    B, _ = descend(G, C, answer.curves[-1].schedule)
    y = held[:, :7] - mean
    slow = np.mean(np.sum((y[:, 1:] - y[:, :-1] @ B.T) ** 2, axis=2)) / 2
    assert answer.curves[-1].loss == pytest.approx(slow, rel=1e-8)  # 500 steps in rounding
    with pytest.raises(InputError, match="test must have the 8 features of X, got 3"):
        forecast(STATES, test=STATES[:, :, :3])
    with pytest.raises(InputError, match="test must have sequences of 13 states or more, got 9"):
        forecast(STATES, test=STATES[:, :9])


def test_missing_values_are_refused_or_left_out():
    X = STATES[:60].copy()
    X[[3, 17], 2, 1] = np.nan
    with pytest.raises(InputError, match=r"must be finite and below 1e60 \(--drop-missing"):
        forecast(X)
    answer = forecast(X, drop_missing=True)
    assert answer.n + answer.tested == 58
    assert "warning: 2 of 60 sequences" in str(answer)


def test_missing_stretches_are_left_out_before_windows_are_cut():
    """Before, windows were cut first: 10 of them had a missing value, and 100 states were lost for 10."""
    S = STATES.reshape(-1, 8)[:1000].copy()
    S[np.arange(3, 1000, 100), 2] = np.nan
    found = sequences(S, window=10, drop_missing=True)
    (said, _) = found.flags
    assert (said.code, said["states"], said["of"]) == ("missing", 10, 1000)
    starts = [100 * k + 4 + 10 * i for k in range(9) for i in range(9)] + [904 + 10 * i for i in range(9)]
    # Blocks of three windows, one left out between two.
    assert found.starts.tolist() == [start for k, start in enumerate(starts) if k % 4 < 3]
    for k in range(found.N):
        assert np.isfinite(found.read(np.array([k]), 10)).all()
    several = sequences(S.reshape(10, 100, 8), window=30, drop_missing=True)
    assert (several.N, several.groups.max() + 1) == (30, 10)  # 96 states left in each
    assert several.starts.tolist() == [4, 34, 64] * 10
    with pytest.raises(
        InputError, match="window must be at most the longest stretch without gaps, 99 states"
    ):
        sequences(S, window=100, drop_missing=True)
    answer = forecast(S, window=10, drop_missing=True)
    assert "warning: 10 of 1,000 states have missing values" in " ".join(str(answer).split())


# --- fewer states than features ------------------------------------------------------------------------


def naive_loss(pilot, held, P, schedule):
    mean = pilot.mean(axis=(0, 1))
    G, C = (part / (len(pilot) * P) for part in naive_moments(pilot - mean, P))
    B, _ = descend(G, C, schedule)
    y = held - mean
    return np.mean(np.sum((y[:, 1:] - y[:, :-1] @ B.T) ** 2, axis=2)) / 2, np.mean(
        np.sum(y[:, 1:] ** 2, 2)
    ) / 2


@pytest.mark.parametrize("student", ["all", "sketch", "pca"])
def test_more_features_than_states_are_replaced_by_the_span(student):
    """Coordinates in the span of all states: the losses are those of gradient descent in all features."""
    X = trajectories(PRESETS["regime2"].modes(90), 14, 3, seed=0) + 1.0
    pilot, held = X[:10], X[10:]
    M = {"all": None, "sketch": 70, "pca": 5}[student]
    answer = forecast(pilot, test=held, student=student, M=M, lengths=[3])
    assert answer.M == (M or 90)
    if student == "sketch":
        pilot, held = (x @ gaussian_sketch(70, 90, seed=0).T for x in (pilot, held))
    if student == "pca":
        centred = (pilot - pilot.mean(axis=(0, 1))).reshape(-1, 90)
        _, U = np.linalg.eigh(centred.T @ centred)
        pilot, held = (x @ U[:, -5:] for x in (pilot, held))
    loss, nothing = naive_loss(pilot, held, 3, answer.curves[0].schedule)
    assert answer.curves[0].loss == pytest.approx(loss, rel=1e-8)  # 500 steps in rounding
    assert answer.null_loss == pytest.approx(nothing, rel=1e-8)


def test_few_states_of_many_features_are_quick():
    """8 × 4 × 3000 took 362 s and 3.8 GB; 0.1 s now, so ten seconds are a hundred times that."""
    start = time.perf_counter()
    forecast(np.random.default_rng(0).standard_normal((8, 4, 3000)))
    assert time.perf_counter() - start < 10


# --- what trips people ---------------------------------------------------------------------------------


def test_shuffled_time_is_no_dynamics():
    """Alone it is no better than nothing; with an offset a sequence shares, no better than without order."""
    rng = np.random.default_rng(0)
    answer = forecast(rng.standard_normal((240, 13, 8)))
    assert answer.flags[0].code == "no-better-than-nothing"
    assert "better than predicting nothing" in answer.advice[0] or "worse than" in answer.advice[0]
    assert answer.to_dict()["advice"][0].endswith("No length is advised.")
    shared = rng.standard_normal((240, 13, 8)) + 2 * rng.standard_normal((240, 1, 8))
    answer = forecast(shared, tokens=60)
    assert answer.flags[0].code == "no-order"
    assert answer.best.P is None
    assert "ignores the order of time" in answer.advice[0]


def test_a_random_walk_is_not_told_that_its_time_is_shuffled():
    """Nor that it is noise: sizes that differ by factors, so differences drown in their chance.

    Before, all five were: "no gain beyond chance", "a student that ignores the order of time does as
    well (41.4 against 24.2, ± 26)".
    """
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((20, 17, 3)).cumsum(axis=1) * np.exp(1.2 * rng.standard_normal((20, 1, 1)))
        answer = forecast(X)
        assert not {"no-order", "no-better-than-nothing"} & {flag.code for flag in answer.flags}
        assert "does as well" not in " ".join(str(answer).split())


@pytest.mark.parametrize(
    ("other", "error", "said"),
    [
        (41.4, 26.0, "unclear"),  # may be much or nothing
        (24.5, 0.5, "none"),  # at most 3 % of the other's loss
        (24.2, 3.0, "unclear"),
        (41.4, 10.0, None),
        (20.0, 1.0, "none"),
    ],
)
def test_none_is_said_only_where_the_interval_excludes_more(other, error, said):
    clear, gain = Gain(24.2, 90.0, 1.0), Gain(24.2, other, error)
    names = {"unclear": ("nothing-unclear", "order-unclear"), "none": ("no-better-than-nothing", "no-order")}
    for k, pair in enumerate(((gain, clear), (clear, gain))):
        flags = worth_flags(*pair)
        assert [one.code for one in flags] == ([] if said is None else [names[said][k]])
        if said == "unclear":
            assert "these data cannot distinguish" in sentence(flags[0], "cli")


def test_a_short_recording_that_can_be_predicted_is_not_called_noise():
    """20 recordings, three in the old test fifth of a file: each seed has the same dynamics, 0.7 a step."""
    found = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        x = np.zeros((20, 12, 3))
        for p in range(1, 12):
            x[:, p] = 0.7 * x[:, p - 1] + rng.standard_normal((20, 3))
        answer = forecast(x, lengths=[11], tokens=16 * 11)
        found += [flag.code for flag in answer.flags]
        assert "predicting nothing:" in answer.advice[0]  # its loss beside that of the student
    assert not {"no-better-than-nothing", "nothing-unclear", "no-order"} & set(found)


def test_what_cannot_be_distinguished_from_nothing_is_said_so():
    """Eight short sequences: the interval of the gain holds 0 and much more than a twentieth."""
    X = np.random.default_rng(3).standard_normal((8, 3, 2)).cumsum(axis=1)
    answer = forecast(X)
    assert abs(answer.gain) < answer.doubt
    words = " ".join(str(answer).split())
    assert "these data cannot distinguish the best student" in words
    assert answer.best.P is None


@pytest.mark.parametrize("tokens", [None, 1e5])
def test_a_plot_where_nothing_can_be_said(tokens, tmp_path):
    """Before: "Axis limits cannot be NaN or Inf"."""
    X = np.random.default_rng(0).standard_normal((14, 8, 16)).cumsum(axis=1)
    answer = forecast(X, tokens=tokens)
    assert bool(answer.rows) is (tokens is None)
    answer.save_plot(tmp_path / "x.png")
    assert (tmp_path / "x.png").stat().st_size > 5000


def test_sequences_of_different_size_have_a_target():
    """Sizes spread by a factor e: before, 35 of 40 divided by an accuracy of 0."""
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = trajectories(PRESETS["regime2"].modes(6), 40, 8, seed=seed) * np.exp(rng.normal(size=(40, 1, 1)))
        answer = forecast(X, target_loss=0.1, lengths=[4, 8])
        assert all(row.low > 0 for row in answer.rows)
        for each in answer.needed:
            ends = [x or np.inf for x in (each.low, each.N, each.high)]
            assert ends == sorted(ends)


def test_the_tokens_that_are_missing_are_below_those_that_are_needed():
    """19.96 tokens were printed as "as few as 20 … and it takes 20"."""
    said = flag("too-few-tokens", lengths=(2,), tokens=19.96, n=99, sequences=100)
    words = sentence(said, "cli")
    assert "have 19.9 at" in words
    assert "needs 20 tokens" in words


def test_more_features_than_tokens_are_measured_and_not_forecast():
    X = trajectories(PRESETS["regime2"].modes(64), 20, 3, seed=0)
    answer = forecast(X, steps=5000)
    assert answer.accuracy is None
    assert {row.kind for row in answer.rows} == {"measured"}
    assert answer.to_dict()["accuracy"] == {"ratio": None, "low": None, "high": None, "difference": None}
    assert "Nothing is forecast" in str(answer)
    asked = forecast(X, steps=5000, tokens=1e4, target_loss=0.1)
    assert not asked.rows
    assert "too-few-tokens" in [flag.code for flag in asked.flags]
    assert "nothing can be said" in asked.advice[0]
    assert len(asked.to_frame()) == 0


def test_constant_features_are_named():
    X = STATES.copy()
    X[:, :, 2] = 7.0
    for how in ({}, {"standardise": True}):
        answer = forecast(X, **how)
        assert "warning: 1 of 8 features do not vary" in str(answer)
        assert np.isfinite([row.loss for row in answer.rows]).all()


def test_no_length_is_named_where_the_law_is_not_trusted():
    """A loss that few tokens reach: before, "fewest at P = 16" was the least of numbers cut at a floor."""
    easy = forecast(STATES, tokens=500, target_loss=0.9 * forecast(STATES, tokens=500).null_loss)
    reach = [each for each in easy.needed if each.N is not None]
    assert any(each.at_most for each in reach)
    assert all(each.N == each.low == each.trusted == 192 // 8 for each in reach if each.at_most)
    words = " ".join(str(easy).split())
    assert "cannot say which length needs the fewest" in words
    assert "with the fewest tokens" not in words


def test_lengths_are_compared_at_equal_tokens():
    """At 60 tokens one sequence of 31 had half of them, and was called 35 % worse."""
    answer = forecast(STATES, lengths=[2, 10], tokens=59)
    assert [row.P for row in answer.rows] == [2]
    (said,) = (one for one in answer.flags if one.code == "unfilled")
    assert (said["lengths"], said["tokens"]) == ((10,), 59)
    assert "With 59 tokens, only P = 2 can be assessed" in str(answer)
    filled = forecast(STATES, lengths=[2, 10], tokens=60)
    assert [(row.P, row.N) for row in filled.rows] == [(2, 30), (10, 6)]
    assert "unfilled" not in [one.code for one in filled.flags]


def test_no_length_needs_the_fewest_tokens_where_they_cannot_be_told_apart():
    law = forecast(STATES, lengths=[8, 9]).curves[0]
    for N, said in (
        (150, "cannot distinguish which length needs the fewest"),
        (40, "To compare the lengths"),
    ):
        answer = forecast(STATES, lengths=[8, 9], target_loss=law.at(N))
        words = " ".join(answer.advice)
        assert any(each.N is not None and not each.at_most for each in answer.needed)
        assert said in words
        assert "with the fewest tokens" not in words


def test_steps_of_time_longer_than_most_are_flagged():
    """Two states left out of one trial: one step of three. Jitter of a fifth is none."""
    pd = pytest.importorskip("pandas")
    frame = table(STATES[:60]).sort_values(["trial", "second"], ignore_index=True)
    names = list(frame["trial"].unique())
    frame["second"] += 0.1 * np.cos(np.arange(len(frame))) * frame["second"].diff().median()
    assert not [one for one in sequences(frame, Columns(**COLUMNS)).flags if one.code == "gaps"]
    where = frame.index[frame["trial"] == names[7]][4:6]
    for clock in (frame["second"], pd.to_datetime(frame["second"], unit="s")):
        cut = sequences(frame.assign(second=clock).drop(index=where), Columns(**COLUMNS))
        (said,) = (one for one in cut.flags if one.code == "gaps")
        assert (said["steps"], said["of"]) == (1, len(frame) - 60 - 2)
        assert said["largest"] == pytest.approx(3, rel=0.1)
    words = " ".join(str(forecast(frame.drop(index=where), **COLUMNS)).split())
    assert "warning: 1 of" in words


@pytest.mark.parametrize("states", [3, 9])
def test_first_states_are_compared_with_the_later_ones(states):
    """Ten times as large, a hundred times the variance: before, over all inputs, at most P was printed.

    Within 15 %: five standard errors of two variances from 600 × 4 numbers, and more.
    """
    X = np.random.default_rng(0).standard_normal((600, states, 4))
    X[:, 0] *= 10
    answer = forecast(X)
    assert answer.start.ratio == pytest.approx(100, rel=0.15)
    assert answer.start.differ == (False, True)
    assert "their variance by a factor of" in " ".join(str(answer).split())


@pytest.mark.parametrize("P", [2, 8])
def test_means_of_the_first_states_are_compared_too(P):
    """0.4 standard deviations: before, the mean squares were alike and it said "like the later ones".

    The shift within 0.15: three standard errors of a mean of 500, over the largest of 4 features.
    """
    X = np.random.default_rng(0).standard_normal((600, P + 1, 4))
    assert forecast(X).start.differ == (False, False)
    X[:, 0, 1] += 0.4
    X[:, :, 1] -= X[:, :, 1].mean()
    answer = forecast(X)
    assert answer.start.differ == (True, False)
    assert answer.start.shift == pytest.approx(0.4, abs=0.15)
    assert "their means by up to 0." in " ".join(str(answer).split())


def test_students_worse_than_nothing_are_called_so():
    """Three tokens for eight features: before, "cannot be told from predicting nothing", at twice its ±."""
    answer = forecast(STATES, tokens=4, gamma=4.0)
    top = min(answer.rows, key=lambda row: row.loss)
    assert top.loss - answer.null_loss > answer.doubt
    assert answer.gain < -answer.doubt
    assert "every student does worse than predicting nothing" in " ".join(str(answer).split())
    assert answer.best.P is None


def test_the_verdict_says_how_sure_its_percentage_is():
    """Before, "at least 0.23 %" was the estimate itself, which lies below as often as above."""
    answer = forecast(STATES, tokens=400)
    top = min(answer.rows, key=lambda row: row.loss)
    others = [row for row in answer.rows if row.P not in answer.best.tied]
    assert others
    near = min(others, key=lambda row: row.loss)
    by, bar = (100 * x / top.loss for x in (near.loss - top.loss, answer.apart[near.P]))
    assert bar < by  # else it were tied
    words = " ".join(str(answer).split())
    assert f"by {by:.2g} % (± {bar:.2g} %)" in words
    assert "at least" not in words
    assert "Regime" not in words  # different first states are not that


@pytest.mark.parametrize(
    ("make", "how", "words"),
    [
        (lambda: STATES[:3], {}, "X must hold at least 8 sequences to learn from and to test on, got 3"),
        (lambda: STATES, {"groups": np.arange(240) // 100}, "at least 4 groups to learn from .*, got 3"),
        (lambda: STATES, {"groups": [1, 2]}, "groups must have one label a sequence, 240, got 2"),
        (lambda: STATES, {"lengths": [2, 99]}, "lengths must be at most the longest sequence's, 12, got 99"),
        (lambda: STATES, {"time": "t"}, "time goes with tables"),
        (
            lambda: table(STATES[:9])[["trial", "second", "x0", "x0"]],
            {"sequence": "trial"},
            "X must have every column once",
        ),
        (lambda: table(STATES[:9])[:0], {"sequence": "trial"}, "X must hold rows, got 'a table without'"),
        (lambda: STATES, {"window": 99}, "window must be at most the longest recording, 13 states, got 99"),
        (lambda: STATES, {"tokens": 0}, "tokens must be at least 1"),
        (lambda: STATES, {"target_loss": -1}, "target_loss must be positive"),
        (lambda: STATES[0], {}, "X must be an array N x P x D, or one recording S x D with a window"),
        (lambda: np.ones((20, 5, 3)), {}, "X must vary: every feature is constant"),
        (lambda: np.ones((20, 5, 3), dtype=complex), {}, "X must hold real numbers"),
        (lambda: STATES[:, :1], {}, "X must hold sequences of two states or more"),
        (lambda: 3, {}, "X must be an array, a table, a file or an iterable"),
        (lambda: [STATES[0], STATES[1, :, :3]], {}, "X must hold sequences P x 8, got .sequence 1 of shape"),
        (lambda: "x.npy", {}, "file must exist"),
        (lambda: "x.txt", {}, "file must end in one of .npy, .npz, .zarr, .mat, .csv, .parquet, .jsonl"),
        (lambda: table(STATES[:9]), {"time": "second"}, "sequence must name the column that tells"),
        (lambda: table(STATES[:9]), {"sequence": "run"}, "sequence must be a column, one of x0, "),
        (lambda: table(STATES[:9]), {"window": 3}, "X must hold numbers only.*column, got 'trial'"),
        (
            lambda: table(STATES[:9]).drop(columns="trial"),
            {"time": "second", "window": 3},
            "time must have every moment once in a sequence",
        ),
    ],
)
def test_what_is_not_taken_is_refused_in_one_line(make, how, words):
    with pytest.raises(InputError, match=words):
        forecast(make(), **how)


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", X=STATES, subject=np.arange(240) // 8)

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            main(["forecast", *arguments])
        return stop.value.code, *capsys.readouterr()

    code, out, _ = run("x.npz", "--groups", "subject", "--tokens", "500", "--json", "--plot", "x.png")
    body = json.loads(out)
    assert code == 0
    assert {"P", "N", "loss", "se", "kind"} <= set(body["rows"][0])
    assert {"ratio", "low", "high"} <= set(body["accuracy"])
    assert {"P", "kind"} <= set(body["best"])
    assert {"null_loss", "advice", "flags", "flag_records", "inputs", "version"} <= set(body)
    assert body["inputs"]["groups"] == "subject"
    assert Path("x.png").stat().st_size > 10_000
    code, out, err = run("x.npz", "--lengths", "2,40")
    assert (code, out) == (2, "")
    assert err == "seqlaw: --lengths must be at most the longest sequence's, 12, got 40\n"
    np.save("short.npy", STATES[:20, :5])
    np.save("gaps.npy", np.where(np.arange(8) == 3, np.nan, STATES[:20]))
    Path("bad.npy").write_text("no array")
    for file, words in {
        "none.npy": "must exist, got none.npy",
        "bad.npy": "must be a readable .npy file of numbers",
        "short.npy": "must have sequences of 13 states or more, got 5",
        "gaps.npy": "must be finite and below 1e60 (--drop-missing, drop_missing=True, leaves such sequences",
    }.items():
        code, out, err = run("x.npz", "--test", file)
        assert (code, out, err.count("\n")) == (2, "", 1)
        assert err.startswith(f"seqlaw: --test {words}")
    for gamma, words in {"0": "must be positive", "fast": "must be a number"}.items():
        code, out, err = run("x.npz", "--gamma", gamma)
        assert (code, out, err) == (2, "", f"seqlaw: --gamma {words}, got {gamma}\n")
    code, out, err = run("x.npz", "--groups", "person")
    assert (code, out) == (2, "")
    assert err == "seqlaw: --groups must be an array of x.npz, one of X, subject, got person\n"


@pytest.mark.parametrize("seed", range(3))
def test_a_small_step_that_was_chosen_on_few_tokens_does_not_make_a_length_worse(seed):
    """Noisy observations of a slow system: 12,000 sequences of length 2 are as good as 80 of length 299.

    On the pilot's 64 transitions of length 2 a small step is best, because it stops early; with 12,000
    sequences it would lose 2 % against the best step (so it named 299 the best in 8 of 8 pilots).
    """
    D, system, rng = 8, np.random.default_rng(7), np.random.default_rng(seed)
    Q = np.linalg.qr(system.standard_normal((D, D)))[0]
    a = system.uniform(0.8, 0.97, D)
    x, states = rng.standard_normal((40, D)), []
    for _ in range(300):
        states.append(x @ Q.T + 2 * rng.standard_normal((40, D)))
        x = a * x + np.sqrt(1 - a**2) * rng.standard_normal((40, D))
    found = forecast(np.stack(states, axis=1), lengths=[2, 299], tokens=24000)
    assert len(found.rows) == 2
    assert found.best.P is None
    assert found.apart[2] > found.rows[0].loss - found.rows[1].loss
