"""The best step of the full batch: never beaten by a grid, named, and without a warning of the safeguard."""

import math

import numpy as np
import pytest

from seqlaw import (
    PRESETS,
    WSD,
    BlockDecay,
    Budget,
    Constant,
    Cosine,
    Setting,
    Teacher,
    Uncertain,
    curve,
    ladder,
    plan,
    risk,
    sweep,
    tradeoff,
)
from seqlaw.cli import main
from seqlaw.methods.best_step import best_steps
from seqlaw.methods.equivalent import equivalent_risks
from seqlaw.methods.stage import at_rest
from seqlaw.methods.workbench import LagSums
from seqlaw.model.lengths import parse
from seqlaw.planning.trials import Bench, Runs, Trial
from seqlaw.sweeping.run import load


def settings(seed, count):
    """Random students, from a token and a half a dimension to a thousand, plain and preconditioned."""
    rng = np.random.default_rng(seed)
    for k in range(count):
        M, P = int(rng.choice([16, 32, 64, 128])), int(2 ** rng.integers(0, 9))
        kind = [WSD, BlockDecay, Cosine, Constant][int(rng.integers(4))]
        yield Setting(
            teacher=["regime1", "regime2"][k % 2],
            M=M,
            N=max(2, int(M * 2 ** rng.uniform(0.5, 10) / P)),
            P=P,
            d=8 * M,
            schedule=kind(gamma=0.1, L=int(10 ** rng.uniform(1.5, 5))),
            eval_length=[None, 64][int(rng.integers(2))],
            precondition=float(rng.choice([0, 0, 0.25, 0.5])),
        )


def beaten(one):
    """How far the best of 50 steps below the largest lies under the one that was found."""
    [best] = best_steps([one])
    largest = equivalent_risks([one.but(schedule=one.schedule.scaled(1e9))])[0].diagnostics["gamma"]
    assert best.setting.schedule.gamma <= largest * 1.001  # the coarser sums' norm
    assert best.largest == (best.setting.schedule.gamma > 0.999 * largest)
    grid = [one.but(schedule=one.schedule.scaled(gamma)) for gamma in largest * np.geomspace(1e-5, 1, 50)]
    least = min(found.reducible for found in equivalent_risks(grid))
    return equivalent_risks([best.setting])[0].reducible / least - 1


@pytest.mark.parametrize("one", settings(11, 1), ids=range(1))
def test_never_beaten_by_a_grid(one):
    """0.1 %: the search stops a sixteenth of a factor two from the bottom of a flat valley."""
    assert beaten(one) < 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("one", settings(12, 40), ids=range(40))
def test_never_beaten_by_a_grid_in_many_settings(one):
    assert beaten(one) < 1e-3


def test_the_search_ends_where_its_parabolas_disagree():
    """Two sequences for a width of four: each depth's parabola has its least value at the other's end."""
    teacher = Teacher(alpha=1.589, theta=2.508, r=0.2784, rho=0.3732, c_xi=0.4266, c_0=0.03276)
    one = Setting(teacher=teacher, M=4, N=2, P=1, d=16, eval_length=64, schedule=WSD(gamma=0.1, L=65633))
    assert beaten(one) < 1e-3


def test_together_as_one_by_one():
    several = list(settings(13, 5))
    for one, [alone] in zip(best_steps(several), map(best_steps, [[one] for one in several]), strict=True):
        assert one.setting.schedule.gamma == pytest.approx(alone.setting.schedule.gamma, rel=1e-6)
        assert one.half == pytest.approx(alone.half, rel=1e-3, abs=1e-6)


def test_the_answer_names_the_step_and_warns_of_no_safeguard():
    student = Setting(teacher="regime2", M=64, N=4096, P=32, d=512, schedule=WSD(gamma=0.1, L=300))
    found = risk(student, tune=True)
    [named] = [one for one in found.flags if one.code == "best-step"]
    assert named["largest"]
    assert named["twice"] is None
    assert named["half"] > 0
    assert found.setting.schedule.gamma == named["gamma"]
    assert not any(one.code == "safeguard" for one in found.flags)
    assert "the largest that the safeguard allows" in str(found)
    half = student.but(schedule=student.schedule.scaled(named["gamma"] / 2))
    assert risk(half).reducible / found.reducible - 1 == pytest.approx(named["half"], rel=0.02)


def test_the_other_methods_take_the_same_step():
    student = Setting(teacher="regime2", M=16, N=256, P=8, d=64, schedule=WSD(gamma=0.1, L=1000))
    found = {name: risk(student, method=name, tune=True, sketches=2) for name in ("exact", "sampled")}
    gamma = risk(student, tune=True).setting.schedule.gamma
    assert all(one.setting.schedule.gamma == gamma for one in found.values())


def test_each_length_has_its_own_step():
    """Longer sequences allow larger steps in Regime II: first states are large."""
    student = Setting(teacher="regime2", M=32, N=1, P=2, d=256, schedule=WSD(gamma=0.1, L=300))
    rows = [
        row for row in tradeoff(student, 2**20, lengths=[2, 16, 128], tune=True).rows if row.tested == "own"
    ]
    assert rows[0].gamma < rows[1].gamma < rows[2].gamma
    along = curve(student.but(N=2**14), "P", [2, 16, 128], tune=True)
    assert len({one.setting.schedule.gamma for one in along.risks}) == 3
    assert "each point has its best step size" in str(along)


def test_a_plan_takes_the_largest_step():
    """4.28e-6 at the step 0.1, 1.91e-6 with the largest, found by a search of another author."""
    budget = Budget(compute=1e15, tokens=1e9)
    found = plan("regime2", budget, eval_length=1024)
    assert found.finite.risk.reducible == pytest.approx(1.913e-6, rel=1e-3)
    assert (found.best.M, found.best.L) == (pytest.approx(1122, rel=0.02), pytest.approx(2595, rel=0.03))
    [named] = [one for one in found.flags if one.code == "best-step"]
    assert named["largest"]
    assert found.schedule.gamma == named["gamma"]
    assert found.K == named["gamma"] * 1e15
    assert f"with a peak step size of {named['gamma']:.3g}" in " ".join(str(found).split())
    again = risk(found.setting)
    assert again.reducible == pytest.approx(found.finite.risk.reducible, rel=1e-6)
    slower = found.setting.schedule.scaled(named["gamma"] / 2)
    half = risk(found.setting.but(schedule=slower))
    assert half.reducible / again.reducible - 1 == pytest.approx(named["half"], rel=1e-4)
    given = plan("regime2", budget, eval_length=1024, schedule=WSD(gamma=0.1, L=100), tune=False)
    assert given.finite.risk.reducible == pytest.approx(4.28e-6, rel=2e-3)
    assert given.schedule.gamma == 0.1


@pytest.mark.parametrize(("compute", "tokens"), [pytest.param(1e4, 300, marks=pytest.mark.slow), (1e7, 1e3)])
def test_no_given_step_makes_a_better_plan(compute, tokens):
    """Small budgets, the first with the fewest steps that a schedule has; 0.1 % is what ties are worth."""
    budget, same = Budget(compute=compute, tokens=tokens), {"d": 64, "eval_length": 16}
    found = plan("regime2", budget, **same)
    for gamma in found.schedule.gamma * 2.0 ** -np.arange(0.5, 4):
        given = plan("regime2", budget, schedule=WSD(gamma=gamma, L=100), tune=False, **same)
        assert found.finite.risk.reducible < 1.001 * given.finite.risk.reducible


def test_the_step_of_a_plan_over_intervals_is_that_of_the_choice():
    teacher = Uncertain(
        teacher=Teacher(alpha=1.8, theta=1.25, r=0.35, rho=0.55, c_xi=0.03, c_0=0.3),
        intervals={"alpha": (1.6, 2.0)},
    )
    found = plan(teacher, Budget(compute=1e7, tokens=1e4), d=64, eval_length=16, draws=2)
    assert not any(one.code == "safeguard" for one in risk(found.setting).flags)


def test_each_phase_of_a_ladder_has_its_own_step():
    """Against steps one by one on the same sketch, at a factor below 1: to rounding."""
    P = parse("2:0.6 then 32:0.4")
    bench = Bench(LagSums(PRESETS["regime2"].modes(48)), 12, sketch=0, seed=0)
    trial = Trial(Constant(gamma=0.3, L=200), math.inf, None, depth=0.5)
    trained = bench.trained(P, trial, Runs(trial.schedule))
    B = at_rest(bench.problem(2)).mean
    for length, steps in zip((2, 32), P.steps(200), strict=True):
        problem = bench.problem(length)
        gamma = 2**-0.5 / (2 * np.linalg.norm(problem.G, 2))
        for _ in range(steps):
            B = B - gamma * (B @ problem.G - problem.C)
    assert trained.mean == pytest.approx(B, abs=1e-12)


def test_a_ladder_chooses_its_step():
    """Plentiful data: the largest at each length. Few tokens: a factor below 1, which all phases share."""
    student = Setting(
        teacher="regime2", M=24, N=1, P=2, d=96, eval_length=256, schedule=WSD(gamma=0.1, L=3000)
    )
    same = {"candidates": [2, 256], "sketches": 2}
    found = ladder(student, 2**24, **same)
    assert found.step.factor == 1
    assert found.ladder.gammas[0] < found.ladder.gammas[-1]
    assert found.ladder.reducible < ladder(student, 2**24, **same, tune=False).ladder.reducible
    assert "the largest that the safeguard allows" in " ".join(str(found).split())
    few = ladder(student, 1000, **same)
    assert few.step.factor < 1
    assert few.step.half > 0


def test_a_sweep_tunes_each_point(tmp_path):
    sizes = {"M": 8, "N": 64, "P": [2, 16], "d": 32}
    asked = {"sizes": sizes, "schedules": [{"L": 300, "gamma": ["best", 0.1]}]}
    assert sweep(asked, tmp_path).tasks == 4
    frame = load(tmp_path).frame.set_index("P")
    for P in (2, 16):
        student = Setting(teacher="regime2", M=8, N=64, P=P, d=32, schedule=WSD(gamma=0.1, L=300))
        told = risk(student, tune=True)
        rows = frame.loc[P].sort_values("gamma")
        assert rows["gamma"].tolist() == [0.1, told.setting.schedule.gamma]
        assert rows["reducible"].tolist() == [risk(student).reducible, told.reducible]
        assert "best-step" in rows["flags"].tolist()[1]


def test_a_preconditioned_plan_is_that_of_another_search():
    """`examples/steps.py` found 2,084 and 191 with a grid of its own; both are in the flat range."""
    found = plan("regime2", Budget(compute=1e15, tokens=1e9), eval_length=4096, precondition=0.5)
    assert found.best.P == 2
    low, high = found.finite.flat["M"]
    assert low < 2084 < high
    assert found.best.L == pytest.approx(191, rel=0.05)
    assert found.setting.schedule.precondition == 0.5
    assert risk(found.setting).reducible == pytest.approx(found.finite.risk.reducible, rel=1e-6)
    assert "preconditioned with p = 0.5" in " ".join(str(found).split())
    assert found.corollary is None


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["plan", "--precondition", "1"], "--precondition must lie in [0, 0.9]"),
        (["plan", "--one-pass", "--precondition", "0.5"], "--precondition"),
        (["tradeoff", "--precondition", "0.5", "--momentum", "0.9", "--schedule", "constant"], "momentum"),
        (["risk", "--optimizer", "adam", "--method", "exact"], "--optimizer"),
        (["risk", "--gamma", "best", "-R", "100"], "--horizon"),
        (["tradeoff", "-R", "100"], "--horizon"),
        (["ladder", "-R", "100"], "--horizon"),
        (["plan", "--one-pass", "--gamma", "0.2"], "--one-pass"),
        (["risk", "--gamma", "best", "--optimizer", "adam", "--method", "sampled"], "adam"),
        (["risk", "--gamma", "best", "--method", "exact", "--phases", "2:0.5,64:0.5"], "phases"),
        (["risk", "--gamma", "beste"], "best"),
    ],
)
def test_refusals_are_one_line(options, says, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(options)
    assert stopped.value.code == 2
    error = capsys.readouterr().err.strip()
    assert says in error
    assert "\n" not in error
