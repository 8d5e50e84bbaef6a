"""The loss at one position: σ_p as the test spectrum, beside averages over positions and simulated data."""

import math

import numpy as np
import pytest

from oracles import position_covariances
from rows_of import sampled_rows
from seqlaw import WSD, Adam, Constant, InputError, Modes, Setting, Teacher, curve, risk, sweep
from seqlaw.methods.trajectories import trajectories
from seqlaw.methods.workbench import Workbench
from seqlaw.model.lengths import Lengths, Position, averaged
from seqlaw.model.sketch import sketched_problem
from seqlaw.sweeping.codec import setting_of, task_of

TEACHER = Teacher(alpha=1.6, theta=1.3, r=0.3, rho=0.6, c_xi=0.2, c_0=0.5)
SIZES = {"teacher": TEACHER, "M": 12, "d": 40}
WAYS = {
    "full-batch": {"N": 48, "P": 4, "schedule": WSD(gamma=0.3, L=60)},
    "scarce": {"N": 4, "P": 3, "schedule": WSD(gamma=0.3, L=3000)},
    "plentiful": {"N": 10**7, "P": 16, "schedule": Constant(gamma=0.1, L=500)},
    "mixture": {"N": 48, "P": "2:0.5,8:0.5", "schedule": WSD(gamma=0.3, L=60)},
    "mini-batches": {"batch": 6, "P": 4, "schedule": Constant(gamma=0.3, L=60)},
    "phases": {"N": 48, "P": Lengths((2, 8), (0.5, 0.5), phases=True), "schedule": Constant(gamma=0.3, L=60)},
    "adam": {"N": 48, "P": 4, "schedule": Constant(gamma=0.3, L=60), "optimizer": Adam(step=0.01)},
}
REFUSED = {("equivalent", "phases"), ("equivalent", "adam"), ("exact", "adam")}
LENGTH = 6
PAIRS = [(m, w) for m in ("sampled", "exact", "equivalent") for w in WAYS if (m, w) not in REFUSED]


def test_the_spectrum_of_a_position_is_the_covariance_of_its_input():
    """Against the recursion of the teacher; 1e-13 is rounding."""
    modes = TEACHER.modes(40)
    for p, sigma in enumerate(position_covariances(modes, 9)):
        np.testing.assert_allclose(averaged(modes, Position(p)), sigma, rtol=1e-13)
    found = [
        sketched_problem(modes, Workbench(modes, 6, sketch=0, seed=0).S, Position(p)).G for p in range(5)
    ]
    whole = sketched_problem(modes, Workbench(modes, 6, sketch=0, seed=0).S, 5).G
    np.testing.assert_allclose(np.mean(found, axis=0), whole, rtol=1e-12)


@pytest.mark.parametrize(("method", "way"), PAIRS)
def test_the_mean_over_positions_is_the_loss_at_that_length(method, way):
    """Of each sketch to rounding, over sketches to the 1e-9 of the contours.

    The best student of a position knows it: approx is below that of the length, and bias has what is missing.
    """
    length = Setting(**SIZES, **WAYS[way], eval_length=LENGTH)
    each = [Setting(**SIZES, **WAYS[way], position=p) for p in range(LENGTH)]
    whole, *parts = risk([length, *each], method=method, sketches=2, repetitions=2)
    for name in ("reducible", "total", "irreducible", "variance"):
        mean = np.mean([getattr(one, name) for one in parts])
        assert mean == pytest.approx(getattr(whole, name), rel=1e-9), name
    assert np.mean([one.approx for one in parts]) < whole.approx


@pytest.mark.parametrize("method", ["sampled", "exact", "equivalent"])
def test_the_first_position_is_a_test_of_length_one(method):
    """Σ_0 is H of length 1; at P > 1 both are tests at another length, with the same sums."""
    for way in ("full-batch", "mini-batches"):
        asked = [Setting(**SIZES, **WAYS[way], **test) for test in ({"position": 0}, {"eval_length": 1})]
        first, one = risk(asked, method=method, sketches=2, repetitions=1)
        for name in ("approx", "bias", "variance", "cross", "total"):
            assert getattr(first, name) == pytest.approx(getattr(one, name), rel=1e-10, abs=1e-16), name


def test_far_positions_without_end_of_modes_are_stationary():
    """At d = inf the sums over modes hold for σ_p too: far out it is the stationary variance, as H is."""
    more = {"teacher": "regime2", "M": 24, "N": 10**6, "P": 8, "d": math.inf, "schedule": "wsd"}
    far, long = risk([Setting(**more, position=10**6), Setting(**more, eval_length=10**12)])
    assert far.reducible == pytest.approx(long.reducible, rel=1e-6)
    length, *each = risk([Setting(**more, **test) for test in [{"eval_length": 4}, *map(_at, range(4))]])
    assert np.mean([one.reducible for one in each]) == pytest.approx(length.reducible, rel=1e-9)


def _at(p):
    return {"position": p}


@pytest.mark.slow
@pytest.mark.parametrize("p", [0, 1, 7, 1000])
@pytest.mark.parametrize("way", [{"N": 200}, {"N": 10**9}, {"batch": 8}])
def test_sums_by_nodes_are_those_mode_by_mode(p, way):
    """The rule of a power law's sums beside the modes one by one; 1e-6 is what the rule promises."""
    more = {"M": 24, "P": 8, "schedule": WSD(gamma=0.1, L=3000), "position": p} | way
    rule, alone = risk([Setting(teacher=one, d=1500, **more) for one in (TEACHER, TEACHER.modes(1500))])
    assert rule.reducible == pytest.approx(alone.reducible, rel=1e-6)
    assert rule.approx == pytest.approx(alone.approx, rel=1e-6)


def test_a_curve_along_positions():
    asked = Setting(**SIZES, **WAYS["full-batch"])
    found = curve(asked, "position", [0, 1, 5])
    assert [row["position"] for row in found.points] == [0, 1, 5]
    alone = risk(asked.but(position=5))  # a group of settings shares its sums, to rounding
    assert found[2].reducible == pytest.approx(alone.reducible, rel=1e-12)
    assert found[2].to_dict()["position"] == 5
    assert "tested at each position" in str(found)
    assert "tested at position 5" in str(found[2])
    assert curve(asked, "position", [1, 2, 5, 9]).slopes["reducible"]["slope"] < 0
    with pytest.raises(InputError, match="eval_length must be left out along position"):
        curve(asked.but(eval_length=4), "position", [0, 1])


@pytest.mark.parametrize("position", [-1, 0.5, "x"])
def test_a_position_is_a_whole_number(position):
    with pytest.raises(InputError, match="position must be"):
        Setting(**SIZES, **WAYS["full-batch"], position=position)


def test_a_position_stands_in_place_of_a_length():
    with pytest.raises(InputError, match="position cannot be given together with eval_length"):
        Setting(**SIZES, **WAYS["full-batch"], position=1, eval_length=4)


@pytest.mark.parametrize("way", ["full-batch", "mixture", "mini-batches"])
def test_a_sweep_has_positions(way, tmp_path):
    asked = Setting(**SIZES, **WAYS[way], position=3)
    assert setting_of(task_of(asked)) == asked
    found = sweep(
        {"sizes": {"M": 4, "N": 16, "P": 2, "d": 16}, "schedules": [{"L": 50}], "positions": [0, 3]},
        out=tmp_path,
    ).frame()
    assert sorted(found["position"]) == [0, 3]
    assert found.set_index("position")["reducible"][3] == pytest.approx(
        risk(
            Setting(teacher="regime2", M=4, N=16, P=2, d=16, schedule=WSD(gamma=0.1, L=50), position=3)
        ).reducible
    )


@pytest.mark.slow
@pytest.mark.parametrize("number", range(20))
def test_positions_against_simulation(number):
    """The excess over the best prediction at one position, over simulated test sequences, within 5 errors."""
    rng = np.random.default_rng(number)
    d, M, p = int(rng.integers(10, 60)), int(rng.integers(2, 10)), int(rng.integers(0, 12))
    j = np.arange(1, d + 1.0)
    a = rng.uniform(0.2, 0.95) * j ** -rng.uniform(0, 0.4)
    modes = Modes(a=a, sigma_xi=0.1 * j ** -rng.uniform(1.1, 2.5), sigma_0=j ** -rng.uniform(1.1, 2.5))
    way = [{"N": 30}, {"batch": 4}][number % 2]
    steps = Constant(gamma=0.2, L=100)
    asked = Setting(teacher=modes, M=M, P=int(rng.integers(1, 9)), schedule=steps, position=p, **way)
    rows = 20_000
    seen = []
    for sketch in range(2):
        S = Workbench(modes, M, sketch=sketch, seed=number).S
        [found] = sampled_rows([asked], sketches=[sketch], seed=number)
        B = _student(asked, sketch, number)
        X = trajectories(modes, rows, p + 1, seed=number, key=("test", sketch))
        excess = ((X[:, p] @ (B @ S - S * a).T) ** 2).sum(axis=1) / 2
        loss = ((X[:, p] @ (B @ S).T - X[:, p + 1] @ S.T) ** 2).sum(axis=1) / 2
        for one, value in ((excess, found["reducible"]), (loss, found["total"])):
            error = one.std(ddof=1) / math.sqrt(rows)
            seen.append((one.mean() - value) / error)
    assert np.abs(seen).max() < 5


def _student(asked, sketch, seed):
    """The trained student itself, from the moments or mini-batches that the sampled method sees."""
    from seqlaw.methods.one_pass import descent
    from seqlaw.methods.one_pass.step import stepped
    from seqlaw.methods.sampled import _data
    from seqlaw.model.descent import Spectrum

    bench = Workbench(asked.modes, asked.M, sketch=sketch, seed=seed)
    key = (seed, sketch, 0)
    if asked.batch is not None:
        step = stepped(asked, [bench.nodes(asked.P)])
        return descent.descended(asked, step.schedule, bench.S, [key])[0]
    [moments] = _data([asked], bench, key)[asked.N, asked.P]
    spectrum = Spectrum.of(moments.G)
    return spectrum.response(moments.C, spectrum.safeguard(asked.schedule))
