"""Epochs of mini-batches: the law against a plain loop, its limits, simulated points, and what is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from conftest import DATA
from recursions import epochs_loop
from seqlaw import (
    Constant,
    Cosine,
    Explicit,
    InputError,
    Lengths,
    Setting,
    Teacher,
    curve,
    load,
    risk,
    sweep,
    tradeoff,
)
from seqlaw.methods import exact
from seqlaw.methods.exact import Exact
from seqlaw.methods.finite_sample import law
from seqlaw.methods.method import Draws
from seqlaw.methods.one_pass.epochs import epochs_noise, excess
from seqlaw.methods.one_pass.equivalent import Learners
from seqlaw.methods.one_pass.law import variances
from seqlaw.methods.one_pass.noise import sketch_directions
from seqlaw.methods.one_pass.tuning import tuned, with_tokens
from seqlaw.methods.sampled import Sampled
from seqlaw.methods.workbench import Workbench
from seqlaw.model.schedule import SCHEDULES, WSD, BlockDecay
from seqlaw.model.sketch import gaussian_sketch, sketched_problem
from seqlaw.model.teacher import PRESETS
from seqlaw.model.threads import one_thread


@pytest.fixture(autouse=True)
def _one_thread():
    with one_thread():
        yield


def nodes_of(teacher="regime1", M=12, d=48, P=4):
    return sketch_directions(sketched_problem(PRESETS[teacher].modes(d), gaussian_sketch(M, d, seed=0), P))


def near(found, wanted, rel):
    for got, want in zip(found, wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=rel, atol=rel * np.abs(want).max())


EXACT = [Constant(gamma=2.0, L=120), BlockDecay(gamma=2.0, L=120), WSD(gamma=2.0, L=110)]


@pytest.mark.parametrize("schedule", EXACT, ids=lambda one: one.name)
@pytest.mark.parametrize("epochs", [2, 5, 7])
def test_closed_by_runs_the_law_is_the_plain_loop(schedule, epochs):
    """Runs of equal steps are exact, and so are single steps: what is left is rounding."""
    nodes, n = nodes_of(), -(-schedule.L // epochs)
    found = epochs_noise(nodes, schedule, 2.0, 2 * n, epochs)
    near(found, epochs_loop(nodes, 2.0, 2 * n, schedule.steps(), n), 1e-10)


@pytest.mark.parametrize(
    "schedule", [WSD(gamma=2.0, L=3000), Cosine(gamma=2.0, L=3000)], ids=lambda x: x.name
)
def test_a_long_smooth_schedule_is_cut_in_pieces(schedule):
    """Within 1e-4 of the noise as in one pass: pieces of second order, one Richardson step.

    v has lost what the full batch has of it, so its error is one of v and that together.
    """
    nodes = nodes_of(M=8, d=32)
    found = epochs_noise(nodes, schedule, 2.0, 2000, 3)
    wanted = epochs_loop(nodes, 2.0, 2000, schedule.steps(), 1000)
    assert nodes.mu @ found.v == pytest.approx(nodes.mu @ wanted[0], abs=1e-4 * nodes.mu @ sum(wanted[:2]))
    near(found[1:], wanted[1:], 1e-6)


def test_one_epoch_is_one_pass():
    """v plus the full batch's noise is the variance of one pass, and all of its departure is left out."""
    nodes, schedule = nodes_of(), Explicit(sizes=np.linspace(2.0, 0.1, 40))
    found = epochs_noise(nodes, schedule, 3.0, 120, 1)
    once = variances(nodes, schedule, np.array([3.0]), np.array([schedule.gamma])).v[0]
    assert found.share == pytest.approx(1, abs=1e-15)
    np.testing.assert_allclose(found.v + found.whole, once, rtol=1e-12)


POINTS = json.loads((DATA / "epochs.json").read_text())["points"]


def of_point(point, **more):
    schedule = SCHEDULES[point["schedule"]](gamma=point["gamma"], L=point["L"])
    sizes = {name: point[name] for name in ("M", "d", "P", "eval_length", "batch", "epochs")}
    return Setting(teacher=Teacher(**point["teacher"]), schedule=schedule, **sizes, **more)


@pytest.mark.parametrize(
    "point", [p if p["M"] < 64 else pytest.param(p, marks=pytest.mark.slow) for p in POINTS]
)
def test_the_reference_points(point):
    """To 1e-9 the law of a second implementation, the full batch in it to as much.

    Of its simulation within 1.5 %, and a point with N = 32 and γ = 0.28 γ_max within 3 %: the law's own error
    and two standard errors of 0.6 %.
    """
    setting = of_point(point)
    assert setting.N == point["N"]
    rows = Exact().rows([setting], Draws(sketches=4))
    found, full = (
        np.mean([row["bias"] + row["variance"] for row in rows]),
        np.mean([row["full_batch"] for row in rows]),
    )
    assert found == pytest.approx(point["law"]["excess"], rel=1e-9)
    assert full == pytest.approx(point["law"]["full_batch"], rel=1e-9)
    assert not any(row["clipped"] for row in rows)
    close = 0.03 if point["epochs"] == 32 and point["P"] == 2 else 0.015
    assert found == pytest.approx(point["simulated"]["excess"], rel=close)
    stated = max(row["error"] for row in rows) + 2 * point["simulated"]["standard_error"] / found
    assert abs(point["simulated"]["excess"] / found - 1) <= stated


SMALL = {"teacher": "regime1", "M": 12, "d": 48, "P": 4, "batch": 4}


FEW_STEPS = Setting(
    teacher="regime2", M=8, d=24, P=2, N=12, batch=6, epochs=8, schedule=Constant(gamma=1e9, L=16)
)


def test_few_large_steps_have_a_path_of_their_own(monkeypatch):
    """An edge is an upper bound: one twice as large needs the path of a product, and changes nothing.

    To 1e-6: the law's own accuracy is 1e-7 of the excess (`accuracy.fine`).
    """
    [row] = Exact().rows([FEW_STEPS.but(epochs=1)], Draws(sketches=1))
    half = FEW_STEPS.but(schedule=FEW_STEPS.schedule.scaled(0.8 * row["gamma"]))
    found, largest = [], []
    for factor in (1.0, 2.0):

        def wider(asked, factor=factor):
            wide = law.without_safeguard(replace(asked, edge=factor * asked.edge))
            largest.append(wide.schedule.gamma * wide.edge)
            return wide

        monkeypatch.setattr(exact, "without_safeguard", wider)
        [row] = Exact().rows([half], Draws(sketches=1))
        found.append(row["full_batch"])
    assert largest[0] < 0.9 < 1.2 < largest[1] < 2.0
    assert found[1] == pytest.approx(found[0], rel=1e-6)


@pytest.mark.slow
def test_few_large_steps_against_simulation():
    """At the safeguard γ times the edge is 0.9 to 1: within the stated error and three standard errors."""
    expected, draws = Exact().rows([FEW_STEPS], Draws(sketches=2)), Draws(sketches=2, repetitions=800)
    own = np.mean([row["reducible"] - row["approx"] for row in expected])
    seen = np.array([row["reducible"] - row["approx"] for row in Sampled().rows([FEW_STEPS], draws)])
    error = max(row["error"] for row in expected)
    assert 0 < error < 0.1
    assert abs(seen.mean() / own - 1) <= error + 3 * seen.std() / own / np.sqrt(seen.size)


@pytest.mark.parametrize("method", ["exact", "equivalent"])
def test_small_steps_are_the_full_batch(method):
    """γμn ≪ 1: the order of the mini-batches no longer matters; what is left is of order γμn = 1e-3."""
    asked = Setting(**SMALL, N=32, epochs=50, schedule=Constant(gamma=1e-3, L=1), eval_length=8)
    whole = asked.but(batch=None, N=32)
    few, full = (risk(one, method=method).reducible for one in (asked, whole))
    assert few == pytest.approx(full, rel=1e-5)
    approx = risk(whole, method=method).approx
    once = risk(asked.but(epochs=1, N=32), method=method).reducible
    assert few - approx < 0.9999 * (once - approx)


@pytest.mark.parametrize("method", ["exact", "equivalent"])
@pytest.mark.parametrize("more", [{}, {"weight_decay": 0.02}, {"eval_length": 16}])
def test_one_epoch_is_one_pass_in_the_whole_answer(method, more):
    """All four terms of the law at K = 1, whose full batch drops out, against one pass: to rounding."""
    setting = Setting(**SMALL, schedule=Constant(gamma=1.5, L=16), **more)
    once = risk(setting, method=method, sketches=1)
    problem = Workbench(setting.modes, setting.M, sketch=0, seed=0)
    if method == "exact":
        nodes = problem.nodes(setting.P)
        test = problem.problem(setting.test_length)
        U = problem.problem(setting.P).eigenvectors
        weight = np.einsum("ij,jk,ki->i", U.T, test.G, U)
    else:
        learners = Learners(setting)
        nodes, weight = learners.nodes(setting), learners.tested(setting)
    noise = epochs_noise(nodes, setting.schedule, 4.0, 64.0, 1)
    found = excess(noise, weight, 12345.6, once.bias)  # any full batch: its share is 1
    assert found == pytest.approx(once.bias + once.variance, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"batch": None, "N": 8, "epochs": 2}, "epochs must be left out without a batch"),
        ({"epochs": 0}, "epochs must be at least 1"),
        ({"N": 10, "epochs": 2}, "N must be whole batches of 4, such as 8 or 12"),
        (
            {"P": Lengths((2, 4), (0.5, 0.5), phases=True), "epochs": 2},
            "epochs must be 1 with several lengths",
        ),
        ({"precondition": 0.3, "epochs": 2}, "precondition must be left out with epochs on this method"),
        ({"safeguard": False, "epochs": 2}, r"gamma must be at most .* with epochs on this method"),
    ],
)
@pytest.mark.parametrize("method", ["exact", "equivalent"])
def test_what_is_refused(method, more, words):
    with pytest.raises(InputError, match=words) as stop:
        risk(Setting(**SMALL | {"schedule": Constant(gamma=30.0, L=8)} | more), method=method)
    assert "\n" not in str(stop.value)


def test_sequences_with_a_batch_set_the_steps():
    """L = K N/b, whatever the schedule says; the other way round the steps set the sequences."""
    setting = Setting(**SMALL, N=32, epochs=3, schedule="wsd")
    assert (setting.schedule.L, setting.N) == (24, 32)
    assert setting.but(epochs=1, N=setting.N).schedule.L == 8
    assert setting.but(epochs=6).N == 16  # the steps stay


def test_a_split_of_unique_tokens():
    """`tradeoff` fixes the tokens that differ: a second epoch doubles the steps, not the sequences."""
    setting = Setting(**SMALL, epochs=2, schedule=Constant(gamma=1.0, L=2))
    found = tradeoff(setting, tokens=256, lengths=[2, 8], eval_lengths=[8], tune=True)
    assert [(row.P, row.N) for row in found.curve("own")] == [(2, 128), (8, 32)]
    assert with_tokens(setting, 256).schedule.L == 2 * 256 // 16
    once = tradeoff(setting.but(epochs=1), tokens=256, lengths=[2, 8], eval_lengths=[8], tune=True)
    for twice, row in zip(found.curve("own"), once.curve("own"), strict=True):
        assert twice.reducible < row.reducible


def test_few_sequences_with_large_steps_are_flagged():
    """A few runs that explode rule the mean: N at most 8 and γ above 0.35 γ_max."""
    large = Setting(**SMALL | {"batch": 1}, N=8, epochs=4, schedule="constant")
    large = large.but(schedule=large.schedule.scaled(1e9), safeguard=True)
    for method in ("exact", "equivalent"):
        found = risk(large, method=method)
        tails = "epochs-heavy-tails" in {flag.code for flag in found.flags}
        assert tails == (found.diagnostics["gamma"] > 0.35 * found.diagnostics["gamma_max"])
        calm = risk(large.but(N=16), method=method)
        assert "epochs-heavy-tails" not in {flag.code for flag in calm.flags}


def test_the_curve_along_epochs_says_what_repeating_is_worth():
    setting = Setting(**SMALL, N=64, schedule="wsd", eval_length=16)
    found = curve(setting, "epochs", [1, 2, 8], tune=True)
    worth = [row["E"] for row in found.points]
    assert [one.setting.N for one in found] == [64] * 3
    assert worth[0] == pytest.approx(1, abs=0.02)  # one pass, tuned twice
    assert 1 < worth[1] < 2
    assert worth[1] < worth[2] < 8
    [fresh] = tuned([setting.but(N=4 * round(worth[2] * 16), epochs=1)])
    assert risk(fresh).reducible == pytest.approx(found[2].reducible, rel=0.02)  # whole batches, a cubic
    assert found.sentence.startswith("Used 8 times, 64 sequences are worth")
    plain = curve(setting.but(schedule=WSD(gamma=1e9, L=16)), "epochs", [1, 8, 128])
    assert [row["E"] for row in plain.points] == [None] * 3
    assert "hurts beyond" in plain.sentence
    with pytest.raises(InputError, match="epochs only with a batch"):
        curve(setting.but(batch=None, N=64), "epochs", [1, 2])


@pytest.mark.parametrize("method", ["exact", "equivalent", "sampled"])
def test_a_sweep_runs_along_epochs(tmp_path, method):
    """Each row is the answer at its setting; N follows from the steps."""
    asked = {
        "method": method,
        "teachers": [{"preset": "regime1"}],
        "sizes": {"M": 8, "d": 24, "P": 3, "batch": 2, "epochs": [1, 3]},
        "schedules": [{"kind": "constant", "L": 12, "gamma": 2.0}],
    }
    random = {} if method == "equivalent" else {"sketches": 1}
    random |= {"repetitions": 1} if method == "sampled" else {}
    sweep(asked | random, tmp_path / "out", jobs=1)
    rows = load(tmp_path / "out").frame.to_dict("records")
    setting = Setting(teacher="regime1", M=8, d=24, P=3, batch=2, schedule=Constant(gamma=2.0, L=12))
    assert sorted(row["epochs"] for row in rows) == [1, 3]
    for row in rows:
        one = setting.but(epochs=row["epochs"])
        found = risk(one, method=method, sketches=1, repetitions=1)
        assert row["reducible"] == pytest.approx(found.reducible, rel=1e-12)
    with pytest.raises(InputError, match=r"sizes\.epochs must be left out without a batch"):
        sweep(asked | {"sizes": {"M": 8, "d": 24, "P": 3, "N": 4, "epochs": 2}}, tmp_path / "no", jobs=1)
