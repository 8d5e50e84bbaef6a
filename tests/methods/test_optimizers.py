"""Adam and Muon: against loops written apart, their step, their terms, and where they are refused."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest

from rows_of import sampled_risk, sampled_rows
from seqlaw import (
    PRESETS,
    WSD,
    Constant,
    Cosine,
    Explicit,
    InputError,
    Lengths,
    Setting,
    curve,
    ladder,
    rates,
    risk,
    tradeoff,
)
from seqlaw.methods import METHODS, equivalent_risk, sample_moments
from seqlaw.methods.one_pass.descent import batches
from seqlaw.methods.optimizers import FACTORS, best_step, repeated, trained
from seqlaw.model import Adam, Momentum, Muon, Optimizer, gaussian_sketch, sketched_problem
from seqlaw.model.optimizer import as_optimizer, orthogonalised
from seqlaw.sweeping.codec import setting_of, task_of

BASE = {"teacher": "regime2", "M": 8, "d": 32, "schedule": WSD(gamma=0.1, L=40)}
WAYS = {
    "full-batch": {"N": 64, "P": 4},
    "mini-batches": {"batch": 8, "P": 4},
    "epochs": {"batch": 4, "P": 4, "epochs": 4},
    "mixture": {"N": 64, "P": "2:0.5,8:0.5"},
    "phases": {"N": 64, "P": Lengths((2, 8), (0.5, 0.5), phases=True)},
    "mini-batches-of-phases": {"batch": 8, "P": Lengths((2, 8), (0.5, 0.5), phases=True)},
}


def naive_adam(slope, B, steps, beta1, beta2, eps):
    """One number after another, as the paper of Adam has it."""
    M = len(B)
    m, v = [[0.0] * M for _ in range(M)], [[0.0] * M for _ in range(M)]
    for t, step in enumerate(steps, 1):
        g = slope(t, B)
        B = B.copy()
        for i in range(M):
            for j in range(M):
                m[i][j] = beta1 * m[i][j] + (1 - beta1) * g[i, j]
                v[i][j] = beta2 * v[i][j] + (1 - beta2) * g[i, j] * g[i, j]
                hat_m, hat_v = m[i][j] / (1 - beta1**t), v[i][j] / (1 - beta2**t)
                B[i, j] -= step * hat_m / (math.sqrt(hat_v) + eps)
    return B


def naive_muon(slope, B, steps, beta):
    """The polynomial on the singular values, not on the matrix."""
    buffer = np.zeros_like(B)
    for t, step in enumerate(steps, 1):
        g = slope(t, B)
        buffer = buffer + (1 - beta) * (g - buffer)
        U, s, V = np.linalg.svd(g + beta * (buffer - g))
        s = s / math.sqrt(sum(s**2))
        for _ in range(5):
            s = 3.4445 * s - 4.7750 * s**3 + 2.0315 * s**5
        B = B - step * (U * s) @ V
    return B


def naive(optimizer, slope, M, steps):
    start = np.zeros((M, M))
    if isinstance(optimizer, Adam):
        return naive_adam(slope, start, steps, optimizer.beta1, optimizer.beta2, optimizer.eps)
    return naive_muon(slope, start, steps, optimizer.beta)


OPTIMIZERS = [Adam(), Adam(beta1=0.5, beta2=0.95, eps=1e-5), Muon(), Muon(beta=0.8)]
SETTINGS = [
    ("regime1", 6, 3, WSD(gamma=1.0, L=60)),
    ("regime2", 10, 8, Cosine(gamma=0.3, L=45)),
    ("regime2", 7, 1, Explicit(sizes=[0.2, 0.5, 0.0, 0.1] * 8)),
]


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=str)
@pytest.mark.parametrize(("regime", "M", "P", "schedule"), SETTINGS, ids=["one", "two", "three"])
def test_a_run_is_that_of_a_naive_loop(regime, M, P, schedule, optimizer):
    modes = PRESETS[regime].modes(24)
    S = gaussian_sketch(M, 24, seed=3)
    data = sample_moments(modes, S, 40, P, seed=1)
    steps = [0.003, 0.01]
    found = trained(optimizer, repeated([(data.G, data.C, schedule.L)]), schedule, steps)
    for B, step in zip(found, steps, strict=True):
        sizes = step * schedule.steps() / schedule.gamma
        want = naive(optimizer, lambda t, B: B @ data.G - data.C, M, sizes)
        # At larger steps Muon overshoots, and rounding grows as it does on any chaotic path.
        assert np.abs(B - want).max() <= 1e-13 * np.abs(want).max()


@pytest.mark.parametrize("optimizer", [Adam(step=0.01), Muon(step=0.01)], ids=lambda one: one.name)
@pytest.mark.parametrize("way", ["mini-batches", "epochs"])
def test_mini_batches_are_those_of_a_naive_loop(way, optimizer):
    """One trajectory after another, from the batches that plain descent takes."""
    setting = Setting(**BASE | WAYS[way] | {"optimizer": optimizer})
    row = sampled_rows([setting], sketches=[2], repetitions=[1], seed=5)[0]
    S = gaussian_sketch(8, 32, seed=5, index=2)
    drawn = np.concatenate([U[0] for [U] in batches(setting, S, [(5, 2, 1)], None)])

    def slope(t, B):
        total = np.zeros((8, 8))
        for states in drawn[t - 1]:
            for u, y in pairwise(states):
                total += np.outer(B @ u - y, u)
        return total / (setting.batch * 4)

    B = naive(optimizer, slope, 8, 0.01 * setting.schedule.steps() / setting.schedule.gamma)
    test = sketched_problem(setting.modes, S, 4)
    assert row["loss"] == pytest.approx(test.loss(B), rel=1e-10)
    assert row["reducible"] == pytest.approx(test.approx + test.excess(B), rel=1e-8)


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
@pytest.mark.parametrize("way", WAYS)
def test_the_terms_add_up(way, optimizer):
    """bias + variance + cross is the risk of the student, whatever the split is about."""
    setting = Setting(**BASE | WAYS[way] | {"optimizer": optimizer, "eval_length": 16})
    for row in sampled_rows([setting], sketches=2, repetitions=2):
        assert row["total"] == pytest.approx(row["loss"], rel=1e-12)
        assert row["reducible"] == pytest.approx(row["loss"] - row["irreducible"], rel=1e-9)
        assert row["optimizer"] == optimizer


def test_the_bias_is_that_of_the_population():
    """It does not depend on the data; with plenty of data in a step nothing else is left."""
    few, many = (Setting(**BASE | {"N": N, "P": 4, "optimizer": Adam(step=0.01)}) for N in (32, 10**9))
    a, b = (sampled_rows([one], sketches=1, repetitions=1)[0] for one in (few, many))
    assert a["bias"] == b["bias"]
    assert b["variance"] < 1e-4 * a["variance"]


def test_sgd_is_plain_descent():
    plain, named = (Setting(**BASE, N=64, P=4, **more) for more in ({}, {"optimizer": "sgd"}))
    assert plain == named
    assert named.optimizer is None


def test_a_family_shares_its_data_whatever_the_optimizer():
    plain = Setting(**BASE, N=64, P=4)
    adam = plain.but(optimizer=Adam(step=0.01))
    together = sampled_rows([plain, adam], sketches=1, repetitions=1)
    assert together == [
        *sampled_rows([plain], sketches=1, repetitions=1),
        {**sampled_rows([adam], sketches=1, repetitions=1)[0], "point": 1},
    ]


@pytest.mark.parametrize("optimizer", ["adam", "muon"])
@pytest.mark.parametrize("way", ["full-batch", "mini-batches"])
def test_the_step_is_the_best_of_the_grid_on_a_sketch_apart(way, optimizer):
    """It does not change with the sketches drawn, and no other step of the grid does much better."""
    wide = {"M": 24, "d": 96, "schedule": WSD(gamma=0.1, L=100), "optimizer": optimizer}
    setting = Setting(**BASE | WAYS[way] | wide)
    found = sampled_risk(setting, sketches=4, repetitions=2)
    step = found.diagnostics["gamma"]
    [said] = [one for one in found.flags if one.code == "optimizer-step"]
    assert (said["gamma"], said["optimizer"], said["tuned"], said["edge"]) == (step, optimizer, True, False)
    assert {row["gamma"] for row in sampled_rows([setting], sketches=[3], repetitions=[0])} == {step}
    kind = type(setting.optimizer)
    others = [
        sampled_risk(setting.but(optimizer=kind(step=step * factor)), sketches=4, repetitions=2).reducible
        for factor in (0.25, 0.5, 1, 2, 4)
    ]
    assert others[2] == found.reducible
    assert found.reducible <= 1.1 * min(others)


def test_the_grid_reports_its_end():
    """Without data to learn from, no step is best."""
    problem = sketched_problem(PRESETS["regime1"].modes(16), gaussian_sketch(4, 16), 4)
    nothing = repeated([(problem.G, 0 * problem.C, 20)])
    found = best_step(Adam(), Constant(gamma=1.0, L=20), [(nothing, problem)])
    assert found.edge
    assert found.size == FACTORS[0] * np.abs(problem.B_star).max() / 20


@dataclass(frozen=True, kw_only=True)
class Plain(Optimizer):
    """An optimizer of the user's: plain descent, whose steps have no bound."""

    name: ClassVar[str] = "plain"

    def start(self, B):
        return ()

    def direction(self, slope, state, t):
        return slope, state

    def reach(self, B):
        return 1.0


def test_an_optimizer_of_the_users_own():
    """Plain descent as an optimizer has the risk that the filter has; another split, the same sum."""
    plain = Setting(**BASE, N=64, P=4)
    own = sampled_risk(plain.but(optimizer=Plain(step=0.1)), sketches=2, repetitions=2)
    assert own.total == pytest.approx(sampled_risk(plain, sketches=2, repetitions=2).total, rel=1e-12)
    with pytest.raises(InputError, match="optimizer must be one of sgd, adam, muon"):
        task_of(plain.but(optimizer=Plain()))


@pytest.mark.parametrize("way", ["full-batch", "mini-batches"])
def test_a_run_that_leaves_all_bounds_has_an_infinite_risk(way):
    """Adam and Muon take steps of bounded size; another optimizer need not."""
    setting = Setting(**BASE | WAYS[way] | {"optimizer": Plain(step=1e20)})
    found = sampled_risk(setting, sketches=2, repetitions=2)
    assert found.total == math.inf
    assert [one["diverged"] for one in found.flags if one.code == "optimizer-diverged"] == [4]


def test_a_step_that_is_too_large_is_flagged():
    found = sampled_risk(Setting(**BASE, N=64, P=4, optimizer=Adam(step=50.0)), sketches=2, repetitions=1)
    assert math.isfinite(found.total)
    assert "optimizer-diverged" in [one.code for one in found.flags]
    assert "smaller step" in str(
        risk(Setting(**BASE, N=64, P=4, optimizer=Adam(step=50.0)), method="sampled")
    )


def test_the_answer_names_the_step():
    text = str(risk(Setting(**BASE, batch=8, P=4, optimizer="muon"), method="sampled", sketches=2))
    assert "note: muon took a peak step of " in text
    assert "best of a grid" in text
    assert "critical" not in text


def test_orthogonalised_has_singular_values_near_one():
    X = np.random.default_rng(0).standard_normal((3, 12, 12))
    s = np.linalg.svd(orthogonalised(X), compute_uv=False)
    assert np.all((s[:, :-2] > 0.6) & (s[:, :-2] < 1.3))
    assert not orthogonalised(np.zeros((4, 4))).any()


@pytest.mark.parametrize("method", [name for name, one in METHODS.items() if not one.optimizers])
def test_other_methods_refuse_an_optimizer(method):
    setting = Setting(**BASE, N=64, P=4, optimizer="adam")
    with pytest.raises(InputError, match="optimizer must be sgd here"):
        risk(setting, method=method)


@pytest.mark.parametrize(
    "ask",
    [
        rates,
        equivalent_risk,
        lambda one: tradeoff(one, tokens=10_000),
        lambda one: ladder(one, tokens=10_000),
        lambda one: curve(one, "N", [64, 128], sampled=2),
    ],
    ids=["rates", "equivalent_risk", "tradeoff", "ladder", "curve"],
)
def test_what_rests_on_plain_descent_refuses_an_optimizer(ask):
    setting = Setting(**BASE, N=64, P=4, eval_length=16, optimizer="muon")
    with pytest.raises(InputError, match="optimizer must be sgd here"):
        ask(setting)


def test_a_curve_names_the_range_of_the_steps():
    setting = Setting(**BASE, N=64, P=4, optimizer="adam")
    found = curve(setting, "P", [1, 64], method="sampled", sketches=2, repetitions=1)
    low, high = sorted(one.diagnostics["gamma"] for one in found)
    assert low < high
    assert f"adam took a peak step of {low:.3g} to {high:.3g}, " in " ".join(str(found).split())


@pytest.mark.parametrize(
    ("field", "make"),
    [
        ("optimizer", lambda: Setting(**BASE, N=64, P=4, optimizer="lion")),
        ("optimizer", lambda: Setting(**BASE, N=64, P=4, optimizer=3)),
        (
            "momentum",
            lambda: Setting(
                **BASE | {"schedule": Momentum(gamma=0.1, L=40, beta=0.5)}, N=64, P=4, optimizer="adam"
            ),
        ),
        ("precondition", lambda: Setting(**BASE, N=64, P=4, precondition=0.5, optimizer="adam")),
        ("weight_decay", lambda: Setting(**BASE, N=64, P=4, weight_decay=0.1, optimizer="muon")),
        ("safeguard", lambda: Setting(**BASE, batch=4, P=4, safeguard=False, optimizer="adam")),
        (
            "L",
            lambda: sampled_risk(
                Setting(**BASE | {"schedule": WSD(gamma=0.1, L=10**12)}, N=64, P=4, optimizer="adam")
            ),
        ),
        ("Adam.beta1", lambda: Adam(beta1=1.0)),
        ("Adam.beta2", lambda: Adam(beta2=-0.1)),
        ("Adam.eps", lambda: Adam(eps=0.0)),
        ("Adam.step", lambda: Adam(step=0.0)),
        ("Muon.beta", lambda: Muon(beta=math.nan)),
    ],
)
def test_refusals_are_one_line(field, make):
    with pytest.raises(InputError) as caught:
        make()
    assert caught.value.field == field
    assert "\n" not in str(caught.value)


def test_a_task_keeps_the_optimizer():
    for optimizer in (None, Adam(beta2=0.95, step=0.1), Muon()):
        setting = Setting(**BASE, N=64, P=4, optimizer=optimizer)
        assert setting_of(task_of(setting)).optimizer == optimizer
    assert as_optimizer("optimizer", "muon") == Muon()
