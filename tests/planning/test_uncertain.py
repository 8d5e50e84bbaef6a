"""Teachers with intervals: what is read, what is drawn, what a plan says over the draws."""

import copy
import json
import pickle
import re

import numpy as np
import pytest

from seqlaw import (
    PRESETS,
    Budget,
    InputError,
    Setting,
    Teacher,
    Uncertain,
    load_teacher,
    measure,
    plan,
    risk,
)
from seqlaw.cli import main
from seqlaw.files import load_uncertain
from seqlaw.methods import trajectories
from seqlaw.model.amount import rounded
from seqlaw.model.teacher import NUMBERS
from seqlaw.planning.uncertain import regrets
from seqlaw.sequences.exponents import Estimate

BUDGET = Budget(compute=1e13, tokens=1e8)
OPTIONS = ("--compute", "1e13", "--tokens", "1e8", "--eval-length", "64", "--no-confirm", "--draws", "3")
REGIME2 = PRESETS["regime2"]


def uncertain(**intervals):
    return Uncertain(teacher=REGIME2, intervals=intervals)


def called(capsys, *arguments):
    with pytest.raises(SystemExit) as stop:
        main([str(argument) for argument in arguments])
    return stop.value.code, *capsys.readouterr()


@pytest.fixture(scope="module")
def found():
    teacher = uncertain(alpha=(1.7, 1.9), c_0=(0.1, 0.9))
    return plan(teacher, BUDGET, eval_length=64, confirm=False, draws=3)


# --- what is drawn ------------------------------------------------------------------------------------


def test_each_part_of_an_interval_has_one_draw():
    """A Latin hypercube: of n draws one in each n-th of the interval, of its logarithm for a scale."""
    drawn = uncertain(alpha=(1.5, 2.0), c_xi=(0.01, 1.0)).draws(50, seed=3)
    alphas = np.array([teacher.alpha for teacher in drawn])
    scales = np.log([teacher.c_xi for teacher in drawn]) / np.log(100) + 1
    for share in ((alphas - 1.5) / 0.5, scales):
        assert sorted(np.floor(50 * share)) == list(range(50))
    assert abs(np.corrcoef(alphas, scales)[0, 1]) < 0.5  # not paired by their ranks
    assert {(teacher.theta, teacher.r, teacher.rho, teacher.c_0) for teacher in drawn} == {
        (1.25, 0.35, 0.55, 0.3)
    }


def test_draws_are_named_by_the_seed_and_the_number():
    one, both = uncertain(alpha=(1.5, 2.0)), uncertain(alpha=(1.5, 2.0), r=(0.3, 0.4))
    assert one.draws(5) == one.draws(5)
    assert one.draws(5) != one.draws(5, seed=1)
    assert [teacher.alpha for teacher in one.draws(5)] == [teacher.alpha for teacher in both.draws(5)]


def test_an_uncertain_teacher_is_a_value():
    teacher = uncertain(theta=(1.2, 1.3), alpha=(1.7, 1.9))
    assert list(teacher.intervals) == ["alpha", "theta"]  # the order of the six numbers
    assert teacher == Uncertain(teacher="regime2", intervals={"alpha": [1.7, 1.9], "theta": [1.2, 1.3]})
    assert pickle.loads(pickle.dumps(teacher)) == copy.deepcopy(teacher) == teacher
    assert len({teacher, copy.copy(teacher)}) == 1
    with pytest.raises(TypeError):
        teacher.intervals["alpha"] = (0, 1)


@pytest.mark.parametrize(
    ("intervals", "words"),
    [
        ({}, "Uncertain.intervals must have low and high of at least one number, got {}"),
        ({"beta": (1, 2)}, "Uncertain.intervals must be of alpha, theta, r, rho, c_xi, c_0, got 'beta'"),
        ({"alpha": 1.8}, "Uncertain.alpha must be two numbers, low and high, got 1.8"),
        ({"alpha": (1.9, 1.7)}, "Uncertain.alpha must have its low end below its high end, got '1.9:1.7'"),
        ({"alpha": (1.8, 1.8)}, "Uncertain.alpha must have its low end below its high end, got '1.8:1.8'"),
        ({"rho": (0.5, 1.2)}, "Uncertain.rho must lie in (0, 1) at both ends, got 1.2"),
        ({"c_xi": (-1, 1)}, "Uncertain.c_xi must be positive at both ends, got -1.0"),
        ({"r": (0.1, float("nan"))}, "Uncertain.r must be finite, got nan"),
        ({"alpha": (1.0, 1.5)}, "Uncertain.alpha must lie about the teacher's 1.8, got '1:1.5'"),
    ],
)
def test_what_is_no_interval_is_refused(intervals, words):
    with pytest.raises(InputError, match=f"^{re.escape(words)}$"):
        uncertain(**intervals)


def test_arrays_have_no_intervals():
    with pytest.raises(InputError, match=r"^Uncertain.teacher must be a power law"):
        Uncertain(teacher=REGIME2.modes(4), intervals={"alpha": (1.7, 1.9)})


# --- what is read -------------------------------------------------------------------------------------

LAW = "alpha = 1.75\nr = 0.35\nrho = 0.55\nc_xi = 0.03\nc_0 = 0.3\n[intervals]\n"


@pytest.mark.slow
def test_a_file_may_have_intervals(tmp_path, capsys):
    file = tmp_path / "law.toml"
    file.write_text(LAW + "alpha = [1.7, 1.9]\ntheta = [1.2, 1.3]\n")
    teacher = Teacher(alpha=1.75, theta=1.25, r=0.35, rho=0.55, c_xi=0.03, c_0=0.3)
    law = Uncertain(teacher=teacher, intervals={"alpha": (1.7, 1.9), "theta": (1.2, 1.3)})
    assert load_uncertain(file) == law
    assert load_teacher(file) == teacher
    assert load_uncertain("regime2") is REGIME2
    code, out, _ = called(capsys, "risk", "--teacher", file)  # the middle, as from any file
    assert (code, out.split("\n")[1]) == (  # below the answer
        0,
        "Teacher: alpha=1.75 theta=1.25 r=0.35 rho=0.55 c_xi=0.03 c_0=0.3",
    )
    echoed = json.loads(called(capsys, "plan", "--teacher", file, *OPTIONS, "--json")[1])["inputs"]
    assert echoed["intervals"] == {"alpha": [1.7, 1.9], "theta": [1.2, 1.3]}
    assert (echoed["draws"], echoed["teacher"]["alpha"]) == (3, 1.75)
    # A number takes the place of the file's interval, an interval that of its middle too.
    given = ("--alpha", "1.6", "--theta", "1.2:1.5")
    echoed = json.loads(called(capsys, "plan", "--teacher", file, *given, *OPTIONS, "--json")[1])["inputs"]
    assert echoed["intervals"] == {"theta": [1.2, 1.5]}
    assert (echoed["teacher"]["alpha"], echoed["teacher"]["theta"]) == (1.6, 1.35)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("beta = [1, 2]", "law.toml.intervals must be of alpha, theta"),
        ("theta = 1.2", "law.toml.intervals.theta must be two numbers, low and high, got 1.2"),
        ("theta = [1.2, 1.3, 1.4]", "law.toml.intervals.theta must be two numbers"),
        ('theta = ["a", 1.3]', "law.toml.intervals.theta must be a number, got a"),
        ("theta = [1.3, 1.2]", "law.toml.intervals.theta must have its low end below its high end"),
        ("theta = [-1, 2]", "law.toml.intervals.theta must not be negative at both ends, got -1"),
        ("theta = [1, 2]\nalpha = [1, 1.5]", "law.toml.intervals.alpha must lie about the teacher's 1.75"),
        ("alpha = [1.7, 1.8]", "law.toml.theta must be given"),
    ],
)
def test_a_file_with_bad_intervals_is_refused_in_a_line(tmp_path, capsys, lines, words):
    (tmp_path / "law.toml").write_text(LAW + lines)
    code, out, err = called(capsys, "plan", "--teacher", tmp_path / "law.toml")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"seqlaw: {words}" in err


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("plan --alpha 1.9:1.7", "--alpha must have its low end below its high end, got 1.9:1.7"),
        ("plan --alpha 1.7:", "--alpha must be a number, got nothing"),
        ("plan --alpha 1.7:x", "--alpha must be a number, got x"),
        (
            "plan --alpha 1.7:1.8:1.9",
            "--alpha must be a number or an interval such as 1.7:1.9, got 1.7:1.8:1.9",
        ),
        ("plan --rho 0.5:1.5", "--rho must lie in (0, 1)"),
        ("plan --c-xi -1:1", "--c-xi must be positive"),
        ("plan --alpha 1.7:1.9 --draws 1", "--draws must be at least 2, got 1"),
        ("risk --alpha 1.7:1.9", "--alpha must be one number here; plan takes intervals, got 1.7:1.9"),
        ("plan --one-pass --alpha 1.7:1.9", "--alpha must be one number with --one-pass, got 1.7:1.9"),
        ("tradeoff --c-0 0.1:0.9", "--c-0 must be one number here; plan takes intervals, got 0.1:0.9"),
        ("rates --r x", "--r must be a number, got x"),
    ],
)
def test_bad_intervals_are_one_line(capsys, command, words):
    code, out, err = called(capsys, *command.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"seqlaw: {words}" in err


# --- what a measurement saves -------------------------------------------------------------------------


@pytest.mark.slow
def test_a_measured_law_comes_back_and_is_planned_over(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    X = trajectories(REGIME2.modes(32), 800, 31, seed=1)
    np.save("x.npy", X)
    code, out, _ = called(
        capsys, "measure", "x.npy", "--save-law", "law.toml", "--save-teacher", "modes.toml"
    )
    assert code == 0
    assert out.splitlines()[-2:] == [
        "32 modes saved: modes.toml",
        "The law with its intervals saved: law.toml",
    ]
    measured = measure(X)
    assert load_uncertain("law.toml") == measured.law  # to the last bit
    assert load_teacher("law.toml") == measured.teacher
    assert list(measured.law.intervals) == list(NUMBERS)
    assert measured.law.intervals["alpha"] == (measured.alpha.low, measured.alpha.high)
    assert "x.npy': 800 sequences of 32 states" in (tmp_path / "law.toml").read_text()
    answer = json.loads(called(capsys, "plan", "--teacher", "law.toml", *OPTIONS, "--json")[1])
    mine = plan(measured.law, BUDGET, eval_length=64, confirm=False, draws=3)
    assert answer["regret"]["M"] == mine.setting.M
    assert json.loads(called(capsys, "measure", "x.npy", "--save-law", "law.toml", "--json")[1])["law_file"]


def test_no_law_is_saved_where_there_is_none(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    walk = np.cumsum(np.random.default_rng(0).standard_normal((200, 32, 8)), axis=1)
    np.save("walk.npy", walk)
    code, out, err = called(capsys, "measure", "walk.npy", "--save-law", "law.toml")
    assert (code, err.count("\n"), (tmp_path / "law.toml").exists()) == (2, 1, False)
    assert "seqlaw: --save-law saved nothing: it needs sequences to predict from: " in err
    assert out == called(capsys, "measure", "walk.npy")[1]  # the measurement stands
    code, out, err = called(capsys, "measure", "walk.npy", "--save-law", "law.txt")
    assert (code, out, err) == (2, "", "seqlaw: --save-law must end in .toml, got law.txt\n")


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"alpha": (None, None, None), "c_xi": (None, None, None)},
            "these sequences give no alpha, c_xi",
        ),
        ({"rho": (1.2, 1.1, 1.3)}, "rho = 1.2 here, and only 0 < rho < 1 is stable"),
    ],
)
def test_a_law_needs_six_numbers_that_are_stable(tmp_path, changes, words):
    measured = measure(trajectories(REGIME2.modes(32), 800, 31, seed=1))
    for name, (value, low, high) in changes.items():
        object.__setattr__(measured, name, Estimate(value=value, low=low, high=high))
    assert measured.law is None
    with pytest.raises(InputError, match=f"^save_law needs a power law: {words}"):
        measured.save(tmp_path / "law.toml", law=True)


def test_the_intervals_of_a_law_are_cut_to_stable_teachers():
    measured = measure(trajectories(REGIME2.modes(32), 800, 31, seed=1))
    object.__setattr__(measured, "rho", Estimate(value=0.9, low=0.8, high=1.1))
    object.__setattr__(measured, "r", Estimate(value=-0.01, low=-0.1, high=0.1))
    object.__setattr__(measured, "theta", Estimate(value=1.2, low=None, high=None))
    intervals = measured.law.intervals
    assert (intervals["rho"], intervals["r"], measured.law.teacher.r) == ((0.8, 0.999), (0.0, 0.1), 0.0)
    assert "theta" not in intervals


# --- what a plan says ---------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize(
    ("intervals", "centred"),
    [({"alpha": (1.7, 1.9), "c_0": (0.1, 0.9)}, True), ({"r": (0.34, 0.7)}, False)],
)
def test_regret_is_that_of_a_double_loop(intervals, centred):
    """Allocation i under teacher j, one `risk` at a time, over the best of all allocations there.

    Where the middle is one, its optimum is the best single choice here; at an end of an interval it is not.
    """
    found = plan(uncertain(**intervals), BUDGET, eval_length=64, confirm=False, draws=3, tune=False)
    candidates = [found.finite.best, *(draw.best for draw in found.over.draws)]
    losses = []
    for chosen in candidates:
        row = []
        for draw in found.over.draws:

            def reducible(one, teacher=draw.teacher):
                schedule = found.schedule.with_steps(one.L)
                sizes = {"M": one.M, "N": one.N, "P": one.P, "d": found.d}
                return risk(Setting(teacher=teacher, schedule=schedule, eval_length=64, **sizes)).reducible

            row.append(reducible(chosen) / min(map(reducible, candidates)) - 1)
        losses.append(row)
    means = [sum(row) / len(row) for row in losses]
    best = min(range(len(means)), key=means.__getitem__)
    assert (best == 0) == centred
    assert best == 0 or means[0] > means[best] + 6e-4  # or the middle's would count as as good
    # The quick sums of the search are good to 2e-4 of the risk.
    assert found.over.single.mean == pytest.approx(means[best], abs=4e-4)
    assert found.over.single.worst == pytest.approx(max(losses[best]), abs=4e-4)
    assert [draw.regret for draw in found.over.draws] == pytest.approx(losses[best], abs=4e-4)
    assert [draw.regret_of_middle for draw in found.over.draws] == pytest.approx(losses[0], abs=4e-4)
    assert found.over.middle.mean == pytest.approx(means[0], abs=4e-4)
    chosen, expected = found.over.single.allocation, candidates[best]
    assert (chosen.M, chosen.N, chosen.P, chosen.L) == (expected.M, expected.N, expected.P, expected.L)
    assert found.over.single.worst > 0.01  # so that there was something to compare


def test_regret_is_nought_for_the_best_of_a_column():
    lost = regrets(np.array([[1.0, 6.0], [2.0, 3.0]]))
    np.testing.assert_array_equal(lost, [[0, 1], [1, 0]])


def test_each_draw_is_planned_as_if_it_were_alone(found):
    draw = found.over.draws[1]
    alone = plan(draw.teacher, BUDGET, eval_length=64, confirm=False)
    assert draw.best == alone.finite.best
    widths = [one.best.M for one in found.over.draws]
    spread = found.over.spread["M"]
    assert (spread.low, spread.median, spread.high) == pytest.approx(np.quantile(widths, [0.1, 0.5, 0.9]))
    assert found.finite == plan(REGIME2, BUDGET, eval_length=64, confirm=False).finite


def test_an_interval_of_no_width_loses_nothing_and_moves_nothing():
    narrow = plan(uncertain(alpha=(1.8 - 1e-9, 1.8 + 1e-9)), BUDGET, eval_length=64, confirm=False, draws=3)
    for size, spread in narrow.over.spread.items():
        assert spread.high == pytest.approx(spread.low, rel=1e-6), size
    assert narrow.over.single.worst < 1e-6
    assert narrow.over.middle.worst < 1e-6
    assert "loses nothing of the risk on average and nothing at worst;" in " ".join(str(narrow).split())


@pytest.mark.slow
def test_same_seed_same_answer(found):
    teacher = found.uncertain
    again = plan(teacher, BUDGET, eval_length=64, confirm=False, draws=3)
    assert again == found
    other = plan(teacher, BUDGET, eval_length=64, confirm=False, draws=3, seed=1)
    assert [d.teacher for d in other.over.draws] != [d.teacher for d in found.over.draws]


@pytest.mark.slow
def test_what_is_printed_begins_with_the_answer(found, capsys):
    command = ("plan", *OPTIONS, "--alpha", "1.7:1.9", "--c-0", "0.1:0.9")
    code, out, err = called(capsys, *command)
    assert (code, err) == (0, "")
    best = found.setting
    first = " ".join(out.split("\n\n")[0].split())
    assert first.startswith(
        f"Train M = {best.M} on about {rounded(best.N)} sequences of length {best.P:,} for "
        f"{rounded(best.schedule.L)} steps, with a peak step size of {best.schedule.gamma:.3g}. "
        "This choice loses "
    )
    assert re.search(
        r"loses [\d.]+ % of the risk on average and [\d.]+ % at worst; the best M runs from \d+ to \d+ "
        r"for 8 in 10 teachers drawn",
        first,
    )
    assert "3 teachers drawn from alpha 1.7 to 1.9, c_0 0.1 to 0.9" in first
    answer = json.loads(called(capsys, *command, "--json")[1])
    assert answer["regret"]["M"] == best.M
    assert set(answer["regret"]) >= {"M", "N", "P", "L", "mean", "worst"}
    assert set(answer["spread"]) == {"M", "N", "P", "L", "reducible"}
    assert set(answer["spread"]["M"]) == {"low", "median", "high"}
    assert [draw["M"] for draw in answer["draws"]] == [draw.best.M for draw in found.over.draws]
    assert answer["finite"]["M"] == found.finite.best.M  # the fields of the middle's plan are there


def test_progress_is_told_to_the_end():
    seen = []
    teacher = uncertain(rho=(0.5, 0.6))
    made = plan(
        teacher, BUDGET, confirm=False, draws=2, progress=lambda done, total: seen.append((done, total))
    )
    assert made.uncertain is teacher
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


@pytest.mark.slow
def test_regimes_and_flags_of_draws_are_told():
    """Both regimes lie within one interval, and the theorem ends within the other."""
    teacher = Uncertain(teacher="regime2", intervals={"theta": (1.15, 2.6), "c_0": (0.2, 0.4)})
    made = plan(teacher, BUDGET, eval_length=64, confirm=False, draws=4)
    text = " ".join(str(made).split())
    assert re.search(r"The intervals do not settle the regime: I in \d, II in \d of 4 draws", text)
    outside = plan(uncertain(r=(0.3, 0.7)), BUDGET, eval_length=64, confirm=False, draws=4)
    [flag] = [flag for flag in outside.flagged() if flag.code == "assumption-1"]
    beyond = [k for k, draw in enumerate(outside.over.draws, start=1) if draw.teacher.r >= 0.5]
    assert (flag.where.axis, list(flag.where.places)) == ("draw", beyond)
