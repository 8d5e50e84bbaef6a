"""The forecast on one's own sequences: fast forms against slow ones, readers, and what trips people."""

import itertools
import json
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

from seqlaw import PRESETS, WSD, InputError, forecast, trajectories
from seqlaw.cli import main
from seqlaw.model import descend
from seqlaw.sequences.law import Law
from seqlaw.sequences.needed import crossings
from seqlaw.sequences.pilot import (
    Pilot,
    Student,
    View,
    block_moments,
    held_out_moments,
    losses_by_group,
    mean_error,
    scores,
    subset,
)
from seqlaw.sequences.reading import sequences

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
        longest=X.shape[1] - 1,
        view=view,
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
    found = block_moments(pilot_of(X), (1, 3, 7), seed=0)
    assert sorted(np.concatenate(found.blocks).tolist()) == list(range(30))
    for k, P in enumerate((1, 3, 7)):
        for b, rows in enumerate(found.blocks):
            G, C = naive_moments(X[rows], P)
            assert found.G[b, k] == pytest.approx(G, rel=ROUNDING, abs=ROUNDING)
            assert found.C[b, k] == pytest.approx(C, rel=ROUNDING, abs=ROUNDING)


def test_the_blind_moments_are_means_over_every_order_of_time():
    X = STATES[:5, :4]
    found = block_moments(pilot_of(X), (3,), seed=0)
    orders = list(itertools.permutations(range(4)))
    slow = [naive_moments(X[:, list(order)], 3) for order in orders]
    for k in range(2):
        assert found.blind[k] == pytest.approx(
            sum(s[k] for s in slow) / len(orders), rel=ROUNDING, abs=ROUNDING
        )


@pytest.mark.parametrize("N", [1, 7, 20, 30])
def test_a_subset_is_blocks_and_a_part_of_one(N):
    X, rng = STATES[:30, :6], np.random.default_rng(0)
    pilot = pilot_of(X, groups=np.arange(30) // 3)
    moments = block_moments(pilot, (2, 5), seed=0)
    order = rng.permutation(len(moments.blocks))
    G, C = subset(pilot, moments, 1, N, order, rng)
    # Which sequences were drawn: the only whole weights 0, 1 that give these moments.
    parts = np.array([np.concatenate([m.ravel() for m in naive_moments(X[i : i + 1], 5)]) for i in range(30)])
    wanted = np.concatenate([G.ravel(), C.ravel()]) * N * 5
    weights, *_ = np.linalg.lstsq(parts.T, wanted, rcond=None)
    assert weights == pytest.approx(weights.round(), abs=1e-6)
    assert set(weights.round()) <= {0.0, 1.0}
    assert weights.round().sum() == N
    per_group = weights.round().reshape(10, 3).sum(axis=1)
    assert np.count_nonzero((per_group > 0) & (per_group < 3)) <= 1  # whole groups, but for the last


def test_the_students_filter_is_gradient_descent():
    G, C = (part / (40 * 5) for part in naive_moments(STATES[:40], 5))
    schedule = WSD(gamma=0.4 / np.linalg.norm(G, 2), L=60)
    student = Student.of(G, C, 5, schedule)
    slow, _ = descend(G, C, schedule)
    assert student.B == pytest.approx(slow, rel=1e-8, abs=1e-10)  # 60 steps against one eigendecomposition
    assert student.best @ G == pytest.approx(C, abs=ROUNDING)
    assert student.learned == pytest.approx(
        np.sum(1 - schedule.residual(np.linalg.eigvalsh(G))), rel=ROUNDING
    )


@pytest.mark.parametrize("size", [None, 4])
@pytest.mark.parametrize("P", [3, 11])  # shorter and longer than the 8 features: two forms of one sum
def test_scores_are_sums_over_sequences_or_groups(P, size):
    X = STATES[:24]
    groups = None if size is None else np.random.default_rng(0).permutation(24) // size
    pilot = pilot_of(X, groups)
    G, C = (part / (24 * P) for part in naive_moments(X, P))
    student = Student.of(G, C, P, WSD(gamma=0.4 / np.linalg.norm(G, 2), L=50))
    found = scores(pilot, [student])
    slow = np.zeros((8, 8))
    for label in range(24 if size is None else 6):
        T = np.zeros((8, 8))
        for i in range(24):
            if (i if groups is None else groups[i]) == label:
                for p in range(P):
                    T += np.outer(X[i, p + 1] - student.best @ X[i, p], X[i, p])
        slow += T.T @ T / 24
    assert found.theta[0] == pytest.approx(slow, rel=1e-8, abs=1e-12)


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


def test_the_law_passes_through_the_pilot_and_falls_to_its_limit():
    law = Law(P=4, n=100, loss=2.0, variance=30.0, learned=5.0, forecast=True)
    assert law.at(100) == pytest.approx(2.0, rel=1e-12)
    assert law.at(1e12) == pytest.approx(law.limit, rel=1e-9)
    first_order = law.loss + law.variance * (1 / 90 - 1 / 100)
    assert law.at(90) == pytest.approx(first_order, rel=0.02)  # the next order is (V/nL)² = 2 %
    assert law.tokens(100) == 80
    assert law.at(law.noise / 2) == np.inf


# --- what it says --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def found():
    return forecast(STATES, tokens=500, target_loss=0.05)


def test_the_two_errors_of_a_measured_student_are_explained():
    """The same students stand in both tables; the first adds the chance of the pilot, as is said."""
    found = forecast(STATES, tokens=384)  # 96 of length 4: half of the pilot
    [row] = [row for row in found.rows if row.P == 4]
    [same] = [one for one in found.overlap if (one.P, one.N) == (4, row.N)]
    assert row.loss == same.measured
    # sqrt(N/(n - N) + 1/16) against sqrt(1/16) of the scatter, N = n/2.
    assert row.se == pytest.approx(np.sqrt(17) * same.se)
    assert "se: of the subsets alone, since both share the pilot; above, of the pilot too" in str(found)


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
    assert good.high - 1 > 1.6 * found.test_se / found.laws[-1].loss
    for one in found.overlap:
        assert (one.forecast is None) == (one.tokens < 20)


def test_the_first_line_has_the_verdict_and_the_loss_of_nothing(found):
    first = str(found).partition(". ")[0].replace("\n", " ")
    assert first.startswith("At 500 tokens")
    assert f"{found.null_loss:.5g}" in first


def test_how_many_more(found):
    reach = {each.P: each for each in found.needed}
    for law in found.laws:
        if law.P in reach and reach[law.P].N is not None and not reach[law.P].at_most:
            N = reach[law.P].N  # whole, to three digits upwards: 1 % fewer or one fewer do not reach it
            assert law.at(N) <= 0.05 < law.at(min(N - 1, 0.99 * N))
    far = forecast(STATES, target_loss=found.laws[-1].limit / 2)
    assert all(each.N is None for each in far.needed)
    assert "No number of sequences reaches" in " ".join(far.advice)


def test_a_crossing_is_where_two_lengths_are_level():
    """Short sequences are less noisy a token, long ones have the lower limit."""
    common = {"n": 500, "learned": 5.0, "forecast": True}
    short, long = Law(P=1, loss=1.03, variance=3.0, **common), Law(P=12, loss=1.0, variance=9.0, **common)
    apart = dict.fromkeys([(12, 1), (1, 12), (1, 1), (12, 12)], 0.002)
    (found,) = crossings([short, long], 1, 400, apart)
    assert (found.P, found.over, found.N) == (12, 1, found.tokens / 12)
    assert long.at(found.N) == pytest.approx(short.at(found.tokens), rel=1e-12)
    assert long.at(found.N / 2) > short.at(found.tokens / 2)
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
    assert np.array_equal(sequences(path).recordings, STATES[:20])
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
    assert answer.laws[-1].P == 8
    assert "10 of 60 sequences are shorter than 8 and left out" in " ".join(str(answer).split())
    with pytest.raises(InputError, match="lengths must be at most the longest sequence's, 8, got 20"):
        forecast(ragged, lengths=[2, 20])
    with pytest.raises(InputError, match="eval_length must be at most the longest sequence's, 8, got 9"):
        forecast(ragged, eval_length=9)


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
    whole = sequences(tmp_path / "x.csv", groups="subject", **COLUMNS)
    assert (whole.N, whole.groups.max() + 1, whole.D, whole.grouped) == (60, 10, 8, True)
    cut = sequences(tmp_path / "x.csv", groups="subject", window=6, **COLUMNS)
    assert (cut.N, cut.groups.max() + 1) == (120, 10)
    answer = forecast(tmp_path / "x.csv", groups="subject", **COLUMNS)
    assert "few-groups" in [flag.code for flag in answer.flags]
    assert answer.groups + 3 == 10


def test_a_clock_among_the_features_is_flagged_and_can_be_left_out():
    """Even or uneven clocks; without a sequence column also one that starts anew, and the trials' numbers."""
    pytest.importorskip("pandas")
    frame = table(STATES[:60, :6]).sort_values(["trial", "second"])
    frame["late"] = frame["second"] ** 2 + 0.1
    answer = forecast(frame, sequence="trial")
    (said,) = (one for one in answer.flags if one.code == "clock")
    assert (said["columns"], said["of"], answer.D) == (("second", "late"), 10, 10)
    assert "clock: of 10 features these rise as clocks and counters do" in " ".join(str(answer).split())
    left = forecast(frame, sequence="trial", leave_out=["second", "late"])
    named = forecast(frame, sequence="trial", time="second", leave_out="late")
    plain = forecast(STATES[:60, :6])
    assert "clock" not in [one.code for one in (*left.flags, *named.flags)]
    assert [row.loss for row in left.rows] == pytest.approx([row.loss for row in plain.rows], rel=1e-9)
    assert left.rows == named.rows
    frame["trial"] = frame["trial"].str.split().str[1].astype(int)
    (cut,) = (one for one in sequences(frame, window=6).flags if one.code == "clock")
    assert cut["columns"] == ("trial", "second")
    with pytest.raises(InputError, match="leave_out must be a column, one of x0, x1"):
        sequences(frame, sequence="trial", leave_out=["Q"])
    with pytest.raises(InputError, match="leave_out goes with tables"):
        sequences(STATES, leave_out=["x0"])


def test_a_test_of_ones_own():
    """The loss of the pilot's student on it, by the recursion."""
    pilot, held = STATES[:60], STATES[60:90]
    answer = forecast(pilot, test=held, lengths=[4, 6], eval_length=6)
    assert (answer.n, answer.tested, answer.eval_length) == (60, 30, 6)
    mean = pilot[:, :7].mean(axis=(0, 1))
    G, C = (part / (60 * 6) for part in naive_moments(pilot - mean, 6))
    B, _ = descend(G, C, answer.schedule)
    y = held[:, :7] - mean
    slow = np.mean(np.sum((y[:, 1:] - y[:, :-1] @ B.T) ** 2, axis=2)) / 2
    assert answer.laws[-1].loss == pytest.approx(slow, rel=1e-8)  # 500 steps in rounding
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
    assert "dropped: 2 of 60 sequences" in str(answer)


# --- what trips people ---------------------------------------------------------------------------------


def test_shuffled_time_is_no_dynamics():
    """Alone it is no better than nothing; with an offset a sequence shares, no better than without order."""
    rng = np.random.default_rng(0)
    X = rng.permuted(STATES, axis=1)  # every feature in an order of its own
    answer = forecast(X)
    assert "no-better-than-nothing" in [flag.code for flag in answer.flags]
    assert "no student can be told from predicting nothing" in " ".join(answer.advice[0].split())
    assert answer.to_dict()["advice"][0].endswith("No length is advised.")
    shared = rng.standard_normal((240, 13, 8)) + 2 * rng.standard_normal((240, 1, 8))
    answer = forecast(shared, tokens=60)
    assert answer.flags[0].code == "no-order"
    assert answer.best.P is None
    assert "does not know the order of time" in answer.advice[0]


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
        assert "constant: 1 of 8 features do not vary" in str(answer)
        assert np.isfinite([row.loss for row in answer.rows]).all()


def test_no_length_is_named_where_the_law_is_not_trusted():
    """A loss that few tokens reach: before, "fewest at P = 16" was the least of numbers cut at a floor."""
    easy = forecast(STATES, tokens=500, target_loss=0.9 * forecast(STATES, tokens=500).null_loss)
    reach = [each for each in easy.needed if each.N is not None]
    assert any(each.at_most for each in reach)
    learned = {law.P: law.learned for law in easy.laws}
    assert all(each.P * each.N >= 20 * learned[each.P] for each in reach)
    assert all(each.low == 1 for each in reach if each.at_most)
    words = " ".join(str(easy).split())
    assert "Which length needs the fewest cannot be told" in words
    assert "Fewest tokens reach" not in words


def test_lengths_are_compared_at_equal_tokens():
    """At 60 tokens one sequence of 31 had half of them, and was called 35 % worse."""
    answer = forecast(STATES, lengths=[2, 10], tokens=59)
    assert [row.P for row in answer.rows] == [2]
    (said,) = (one for one in answer.flags if one.code == "unfilled")
    assert (said["lengths"], said["tokens"]) == ((10,), 59)
    assert "At 59 tokens only P = 2 can be told" in str(answer)
    filled = forecast(STATES, lengths=[2, 10], tokens=60)
    assert [(row.P, row.N) for row in filled.rows] == [(2, 30), (10, 6)]
    assert "unfilled" not in [one.code for one in filled.flags]


def test_no_length_needs_the_fewest_tokens_where_they_cannot_be_told_apart():
    law = forecast(STATES, lengths=[8, 9]).laws[0]
    # What 30 tokens a dimension reach: more than the 20 from which on the law is trusted.
    answer = forecast(STATES, lengths=[8, 9], target_loss=law.at(30 * law.learned / law.P))
    words = " ".join(answer.advice)
    assert any(each.N is not None and not each.at_most for each in answer.needed)
    assert "which length needs the fewest cannot be told" in words
    assert "Fewest tokens" not in words


def test_steps_of_time_longer_than_most_are_flagged():
    """Two states left out of one trial: one step of three. Jitter of a fifth is none."""
    pd = pytest.importorskip("pandas")
    frame = table(STATES[:60]).sort_values(["trial", "second"], ignore_index=True)
    names = list(frame["trial"].unique())
    frame["second"] += 0.1 * np.cos(np.arange(len(frame))) * frame["second"].diff().median()
    assert not [one for one in sequences(frame, **COLUMNS).flags if one.code == "gaps"]
    where = frame.index[frame["trial"] == names[7]][4:6]
    for clock in (frame["second"], pd.to_datetime(frame["second"], unit="s")):
        cut = sequences(frame.assign(second=clock).drop(index=where), **COLUMNS)
        (said,) = (one for one in cut.flags if one.code == "gaps")
        assert (said["steps"], said["of"]) == (1, len(frame) - 60 - 2)
        assert said["largest"] == pytest.approx(3, rel=0.1)
    words = " ".join(str(forecast(frame.drop(index=where), **COLUMNS)).split())
    assert "gaps: 1 of" in words


@pytest.mark.parametrize("states", [3, 9])
def test_first_states_are_compared_with_the_later_ones(states):
    """Ten times as large, a hundred times the variance: before, over all inputs, at most P was printed.

    Within 15 %: five standard errors of two variances from 600 × 4 numbers, and more.
    """
    X = np.random.default_rng(0).standard_normal((600, states, 4))
    X[:, 0] *= 10
    assert forecast(X).start_ratio == pytest.approx(100, rel=0.15)


def test_students_worse_than_nothing_are_called_so():
    """Three tokens for eight features: before, "cannot be told from predicting nothing", at twice its ±."""
    answer = forecast(STATES, tokens=4)
    top = min(answer.rows, key=lambda row: row.loss)
    worse = top.loss - answer.null_loss > answer.doubt
    words = " ".join(str(answer).split())
    assert ("every student is worse than predicting nothing" in words) is worse
    assert worse
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
        (lambda: "x.txt", {}, "file must end in one of .npy, .npz, .zarr, .mat, .csv, .parquet"),
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
    code, out, err = run("x.npz", "--groups", "person")
    assert (code, out) == (2, "")
    assert err == "seqlaw: --groups must be an array of x.npz, one of X, subject, got person\n"
