"""The law at any amount of data (docs/finite-sample.md): reference numbers, limits, and other routes."""

from __future__ import annotations

import dataclasses
import json
import math

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import truncnorm

from conftest import DATA
from oracles import FiniteSample, random_settings
from rows_of import exact_risks, exact_rows, sampled_rows
from seqlaw import PRESETS, WSD, BlockDecay, Constant, Cosine, Modes, Setting, Teacher
from seqlaw.methods import exact
from seqlaw.methods.accuracy import Correction, fine, quick
from seqlaw.methods.equivalent import equivalent_risk, equivalent_risks
from seqlaw.methods.expected import Population, population
from seqlaw.methods.finite_sample import law, norm, over_sketches, positions
from seqlaw.methods.finite_sample.law import Question
from seqlaw.methods.finite_sample.norm import empirical_norms
from seqlaw.methods.frozen import frozen_rows
from seqlaw.methods.frozen_sketch import learned_dimensions
from seqlaw.methods.moments import sample_moments
from seqlaw.methods.sampled import sampled_terms
from seqlaw.methods.score import score
from seqlaw.methods.spectral_sum import Rule, sum_rule
from seqlaw.methods.stage import at_rest, full_batch
from seqlaw.model import sketched_problem
from seqlaw.model.descent import operator_norm
from seqlaw.model.threads import one_thread
from stated import campaign, exact_on, trajectories

POINTS = json.loads((DATA / "finite_sample.json").read_text())["points"]


@pytest.fixture(autouse=True)
def _alone():
    """As the methods call it: two tests at once on all threads each are ten times slower."""
    with one_thread():
        yield


FINEST = dataclasses.replace(fine, correction=Correction(13, 20.0, 1e-12))
"""Contours to 1e-12 or so of the excess, for identities that `fine` has to 1e-7; more nodes add rounding."""


def make(teacher="regime2", *, M=16, N=8, P=4, d=64, L=30000, kind=BlockDecay, gamma=0.1, tested=None):
    teacher = PRESETS[teacher] if isinstance(teacher, str) else teacher
    d = None if isinstance(teacher, Modes) else d
    return Setting(teacher=teacher, M=M, N=N, P=P, d=d, schedule=kind(gamma=gamma, L=L), eval_length=tested)


def over(setting, level=fine):
    """approx, bias, variance, cross and excess over sketches, on the fine sum, and what the data change.

    `leading` is the frozen variance; at another test length only the excess is known.
    """
    rule = sum_rule(setting)
    [frozen] = frozen_rows([setting], rule, sum_rule(setting, fine.double))
    row, tokens = frozen.row, setting.N * setting.P
    question = Question(
        M=float(setting.M),
        N=float(setting.N),
        P=setting.P,
        eval_length=setting.test_length,
        schedule=frozen.schedule,
        share=row["effective_share"],
        learned=row["learned_dimensions"],
        edge=empirical_norms(rule, [setting.P])[setting.P].edge(row["edge"], tokens),
    )
    own = population(rule, [setting.P], np.array([float(setting.M)]))
    [shift] = law.correction_over_sketches([question], own, rule.modes, level)
    return _terms(question, shift, row["approx"], row["bias"], row["variance"])


def given(setting, S, level=fine):
    """The same given a sketch, without the elementwise products of the frozen variance."""
    rule = Rule(modes=setting.modes, weights=np.ones(setting.modes.d))
    problems = {P: sketched_problem(setting.modes, S, P) for P in (setting.P, setting.test_length)}
    problem, test = problems[setting.P], problems[setting.test_length]
    rise = empirical_norms(rule, [setting.P])[setting.P]
    noise, tokens = score(problem), setting.N * setting.P
    frozen = full_batch(at_rest(problem), problem, noise.leading / tokens, setting.schedule).terms(test)
    question = Question(
        M=float(setting.M),
        N=float(setting.N),
        P=setting.P,
        eval_length=setting.test_length,
        schedule=setting.schedule,
        share=noise.effective_share,
        learned=learned_dimensions(problem, setting.schedule),
        edge=rise.edge(1.1 * float(problem.eigenvalues[-1]), tokens),
    )
    own = population(rule, [setting.P], np.array([float(setting.M)]))
    [shift] = law.correction_given_sketch([[question]], own, setting.modes, problems, level)
    return _terms(question, shift, test.approx, frozen["bias"], frozen["variance"])


def _terms(question, shift, approx, bias, leading):
    found = law.corrected(shift, question, bias, leading, leading)
    excess = bias + shift.loss
    return found | {
        "approx": approx,
        "excess": excess,
        "total": approx + excess,
        "leading": leading,
        "shift": shift,
        "question": question,
    }


def sketch(M, d, seed=7):
    return np.random.default_rng(seed).standard_normal((M, d)) / math.sqrt(M)


# --- reference numbers -----------------------------------------------------------------------------------


def _name(point):
    teacher = point["teacher"]
    return f"rho{teacher['rho']}-c0{teacher['c_0']}-M{point['M']}-P{point['P']}-N{point['N']}-L{point['L']}"


@pytest.mark.parametrize("point", POINTS, ids=_name)
def test_reference_points(point, monkeypatch):
    """An independent implementation's numbers; its contours have 12 nodes a half and no safeguard."""
    monkeypatch.setattr(norm, "_NEGLIGIBLE", math.inf)
    setting = make(
        Teacher(**point["teacher"]),
        **{name: point[name] for name in ("M", "N", "P", "d", "L", "gamma")},
        tested=point["eval_length"],
    )
    answers = [(over(setting), point["over_sketches"])]
    if "given_sketch" in point:
        seed = point["given_sketch"]["rng_seed"]
        answers.append((given(setting, sketch(setting.M, setting.d, seed)), point["given_sketch"]))
    # Contours of 8 nodes a half: 1e-7 of the excess, 2e-7 seen. Asked: 1e-6; at ρ = 0.9, where the reference
    # was computed with a coarser block, 1e-5.
    tolerance = 1e-5 if point["teacher"]["rho"] > 0.8 else 1e-6
    for found, wanted in answers:
        assert found["question"].schedule is setting.schedule  # the safeguard stays out of it
        for name in set(wanted) - {"rng_seed"}:
            assert abs(found[name] - wanted[name]) < tolerance * found["excess"], name
    # The method, whose sums over modes are coarse: 1e-6 of the variance (docs/equivalent.md).
    risk = equivalent_risk(setting)
    assert abs(risk.reducible - answers[0][1]["total"]) < 3e-6 * answers[0][0]["excess"]


# --- limits ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["over", "given"])
@pytest.mark.parametrize(
    ("teacher", "P", "L"), [("regime1", 1, 30000), ("regime2", 8, 300), ("regime2", 64, 10**6)]
)
def test_endless_data_give_the_frozen_filter(kind, teacher, P, L, monkeypatch):
    """variance/frozen → 1, bias shift and cross → 0, all as 1/N."""
    monkeypatch.setattr(law, "SWITCH", math.inf)

    def at(N):
        setting = make(teacher, N=N, P=P, L=L)
        return over(setting) if kind == "over" else given(setting, sketch(16, 64))

    few, many, endless = at(10**6), at(4 * 10**6), at(10**8)
    # 1/N corrections are of relative size (learned dimensions)/(share·NP) < 16/10^6·(1/share); share > 0.2.
    assert few["variance"] / few["leading"] == pytest.approx(1, abs=1e-4)
    # At N = 10^8 the correction is below 1e-6; contours err by 1e-7, coarse sums of the variance by 1e-6.
    assert endless["variance"] / endless["leading"] == pytest.approx(1, abs=3e-6)
    for name in ("bias", "cross"):
        four = getattr(few["shift"], name) / getattr(many["shift"], name)
        if P == 1 and name == "cross":
            continue  # which is 0: test_one_position_has_no_cross
        # Linear in 1/N up to 1e-4 as above.
        assert four == pytest.approx(4, rel=3e-4)
        assert abs(getattr(endless["shift"], name)) < 1e-5 * endless["excess"] + 10 * endless["leading"]


@pytest.mark.parametrize("kind", ["over", "given"])
def test_no_jump_at_the_switch(kind, monkeypatch):
    def at(N):
        setting = make("regime2", N=N, P=8, L=3000)
        return over(setting) if kind == "over" else given(setting, sketch(16, 64))

    per_sequence = at(10**3)["question"].tokens_per_dimension / 10**3
    N = round(law.SWITCH / per_sequence)
    below, above, far = at(int(0.999 * N)), at(int(1.001 * N)), at(100 * N)
    assert below["question"].times_switch == 1.0 < above["question"].times_switch
    # N·shift varies by its next order, 1e-4·0.002 across the switch; Newton's steps end at 1e-9 of the whole,
    # 1e-9·excess/shift = 1e-5 of the shift at most.
    step = {
        name: below[name] * below["question"].N / (above[name] * above["question"].N)
        for name in ("variance", "cross")
    }
    assert step == pytest.approx({"variance": 1, "cross": 1}, abs=2e-5)
    # Far beyond, 1/N from the switch leaves out the next order there, 1/SWITCH of what the data change; the
    # frozen variance has its own value, and what the law adds to it, 1/SWITCH at the switch, falls as 1/N.
    monkeypatch.setattr(law, "SWITCH", math.inf)
    whole = at(100 * N)
    assert far["cross"] == pytest.approx(whole["cross"], rel=5e-4, abs=0)
    assert far["variance"] == pytest.approx(whole["variance"], rel=1e-6, abs=0)
    assert far["total"] == pytest.approx(whole["total"], rel=1e-8, abs=0)


@pytest.mark.parametrize("teacher", ["regime1", "regime2"])
@pytest.mark.parametrize(("N", "L"), [(8, 3000), (20, 10**6), (400, 300)])
def test_one_position_has_no_cross(teacher, N, L):
    """With P = 1 noise and inputs are independent given the other data: cross vanishes identically."""
    setting = make(teacher, N=N, P=1, L=L)
    for found in (over(setting, FINEST), given(setting, sketch(16, 64), FINEST)):
        # What FINEST leaves, contours and rounding: 1.8e-12 seen with a node more or less.
        assert abs(found["cross"]) < 3e-12 * found["excess"]
    # On the contours in use it vanishes up to their error, 1.3e-8 seen.
    assert abs(over(setting)["cross"]) < 1e-7 * over(setting)["excess"]


@pytest.mark.parametrize("N", [20, 34, 200])
def test_least_squares(N):
    """Saturated, P = 1: the law has ½ tr Ω · M/(N-M), Gaussian least squares ½ tr Ω · M/(N-M-1)."""
    setting = make("regime1", M=16, N=N, P=1, L=10**10, kind=Constant)
    S = sketch(16, 64)
    half_noise = np.trace(sketched_problem(setting.modes, S, 1).residual_covariance) / 2
    for found, level in ((given(setting, S), half_noise), (over(setting), None)):
        if level is None:  # tr Ω = tr Σ_ξ + 2 approx
            level = setting.modes.sigma_xi.sum() / 2 + found["approx"]
        # Contours: 1e-7 of the excess.
        assert found["variance"] == pytest.approx(level * 16 / (N - 16), rel=1e-6)
        assert found["bias"] < 1e-8 * found["variance"]
        least_squares = level * 16 / (N - 16 - 1)
        assert found["variance"] / least_squares == pytest.approx((N - 17) / (N - 16), rel=1e-6)


# --- other routes ------------------------------------------------------------------------------------------


def _force_block(monkeypatch, size):
    """Blocks of so many positions, whatever the tolerance asks for."""
    for module in (positions, law):
        monkeypatch.setattr(module, "block_size", lambda modes, tol: size)


BULK = {  # block sizes, and about twice the largest error of the excess seen at P = 64 and 200, N = 1 and 4
    0.55: {3: 1.5e-3, 10: 5e-7, 25: 1e-12},
    0.9: {10: 1.5e-3, 25: 5e-5, 50: 3e-7},
    0.97: {10: 2e-2, 25: 6e-3, 50: 5e-4},
}


@pytest.mark.parametrize("P", [64, pytest.param(200, marks=pytest.mark.slow)])  # 200² takes seconds
@pytest.mark.parametrize("N", [1, 4])
@pytest.mark.parametrize("rho", [0.55, 0.9, 0.97])
def test_bulk_and_boundary_against_dense(rho, N, P, monkeypatch):
    setting = make(dataclasses.replace(PRESETS["regime2"], rho=rho), N=N, P=P, L=3000)
    # Modes compressed well below the errors asked about.
    level = dataclasses.replace(fine, correction=Correction(5, 6.0, 1e-10 if P == 64 else 1e-8))
    _force_block(monkeypatch, P)
    dense = over(setting, level)
    for size, asked in BULK[rho].items():
        _force_block(monkeypatch, size)
        found = over(setting, level)
        for name in ("bias", "variance", "cross", "excess"):
            assert abs(found[name] - dense[name]) < asked * dense["excess"], (size, name)
    if P == 64 and rho == 0.97:  # the default is all of the trajectory
        return
    monkeypatch.undo()
    for usual in (quick, fine):
        found = over(setting, usual)
        _force_block(monkeypatch, P)
        closer = usual.correction._replace(tol=1e-8)
        dense = over(setting, dataclasses.replace(usual, correction=closer))
        monkeypatch.undo()
        # Block, frequencies and compression together: a sixth of the tolerance was the most seen.
        assert abs(found["excess"] - dense["excess"]) < usual.correction.tol / 3 * dense["excess"]


@pytest.mark.parametrize(
    ("M", "N", "P", "L", "tested"),
    [(4, 3, 4, 40, None), (4, 12, 3, 120, 6), (3, 1, 5, 30, None), (5, 2, 3, 30, 1)],
)
def test_against_plain_equations(M, N, P, L, tested):
    """Full matrices, circles and plain iteration (`oracles.FiniteSample`), on ellipses and the hyperbola."""
    rng = np.random.default_rng(M * N)
    modes = Modes(
        a=rng.uniform(-0.6, 0.8, 8), sigma_xi=rng.uniform(0.02, 0.08, 8), sigma_0=rng.uniform(0, 0.2, 8)
    )
    setting, S = make(modes, M=M, N=N, P=P, L=L, kind=Constant, tested=tested), sketch(M, 8)
    for found, plain in (
        (over(setting), FiniteSample(modes, M, N, P, test=tested)),
        (given(setting, S), FiniteSample(modes, M, N, P, S, test=tested)),
    ):
        question = found["question"]
        assert question.schedule is setting.schedule
        # Left of 0 the circle goes as far as |ψ| = e⁴; with e^-28 for the trapezoid rule 1e-8 is left.
        edge, below = question.edge, 4 / setting.schedule.total
        nodes = 2 * math.ceil(28 / 2 / math.log1p(2 * below / edge))
        wanted = plain.loss(setting.schedule.residual, edge, below, nodes)
        # The fine contours: 1e-7 of the excess, and as much again for the circle.
        assert abs(found["total"] - wanted["loss"]) < 3e-7 * found["excess"]
        if plain.S is not None:
            for name in ("bias", "cross"):
                assert abs(found[name] - wanted[name]) < 3e-7 * found["excess"], name


@pytest.mark.parametrize("tested", [None, 30, 2])
@pytest.mark.parametrize(("N", "L"), [(9, 3000), (1, 60), (200, 10**5)])
def test_without_a_sketch(N, L, tested):
    """An endlessly wide sketch is none at all: S = I, with the split at every test length."""
    modes = PRESETS["regime2"].modes(12)
    setting = make(modes, M=12, N=N, P=6, L=L, kind=WSD, tested=tested)
    found = given(setting, np.eye(12))
    asked = dataclasses.replace(found["question"], M=math.inf)
    own = Population(
        a=modes.a, weights=np.ones(12), h=modes.averaged(6.0)[None], M=np.array([np.inf]), kappa=np.zeros(1)
    )
    [shift] = law.correction_over_sketches([asked], own, modes)
    # The same sums in another order, on the same nodes; they cancel terms of the order of Σa²h.
    names = ("loss", "bias", "cross") if tested is None else ("loss",)
    for name in names:
        assert abs(getattr(shift, name) - getattr(found["shift"], name)) < 1e-10 * found["excess"]


def test_the_branch():
    """The way from the frozen filter in small steps, and from further off, ends at the same nodes."""
    rng = np.random.default_rng(8)
    settings = []
    for _ in range(20):
        M, P = int(np.exp(rng.uniform(np.log(2), np.log(300)))), int(np.exp(rng.uniform(0, np.log(100))))
        N = max(1, int(M / P * np.exp(rng.uniform(np.log(0.02), np.log(3)))))
        L = int(np.exp(rng.uniform(np.log(300), np.log(1e9))))
        settings.append(make(_teacher(rng), M=M, N=N, P=P, d=4 * M, L=L, kind=Constant))
    quick = [risk.reducible for risk in map(equivalent_risk, settings)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(over_sketches, "_STRIDE", 1.25)
        patch.setattr(over_sketches, "_NEAR", 200.0)
        slow = [risk.reducible for risk in map(equivalent_risk, settings)]
    # Newton ends at steps of 1e-9, hence errors of 1e-18: what is left is rounding, magnified by the sums.
    np.testing.assert_allclose(quick, slow, rtol=1e-9)


def _teacher(rng):
    return Teacher(
        alpha=rng.uniform(1.1, 3),
        theta=rng.uniform(1.1, 3),
        r=rng.uniform(0.05, 0.49),
        rho=rng.uniform(0.05, 0.9),
        c_xi=10 ** rng.uniform(-2, 0),
        c_0=10 ** rng.uniform(-2, 0.5),
    )


@pytest.mark.parametrize("kind", ["over", "given"])
@pytest.mark.parametrize(("teacher", "N", "P"), [("regime1", 5, 8), ("regime2", 40, 4), ("regime2", 2, 64)])
def test_ellipse_and_hyperbola_agree(kind, teacher, N, P, monkeypatch):
    """At 100 effective steps, where one takes over from the other."""
    setting = make(teacher, N=N, P=P, L=100, kind=Constant)
    found = {}
    for steps in (99, 101):
        monkeypatch.setattr(law, "_STEPS", steps)
        found[steps] = over(setting) if kind == "over" else given(setting, sketch(16, 64))
    for name in ("bias", "variance", "cross"):
        # The ellipse errs by e^-9 of e^-9 …, the hyperbola by 1e-7; measured together below 1e-6.
        assert abs(found[99][name] - found[101][name]) < 1e-6 * found[99]["excess"], name


def _sampled(setting, S, count, seed=0):
    """Means and standard errors of bias, variance, cross and their sum over data sets on one sketch."""
    problems = {P: sketched_problem(setting.modes, S, P) for P in (setting.P, setting.test_length)}
    rows = []
    for k in range(count):
        moments = sample_moments(setting.modes, S, setting.N, setting.P, seed=seed, key=(k,))
        terms = sampled_terms(problems[setting.P], moments, setting.schedule, problems[setting.test_length])
        three = [terms[name] for name in ("bias", "variance", "cross")]
        rows.append([*three, sum(three)])
    return np.mean(rows, axis=0), np.std(rows, axis=0, ddof=1) / math.sqrt(count)


@pytest.mark.parametrize(
    ("teacher", "N", "P", "L", "tested"),
    [
        ("regime2", 12, 8, 20, None),  # a short schedule, on the ellipse
        ("regime1", 30, 4, 3000, 32),
        ("regime2", 30, 4, 3000, 1),
        ("regime2", 4, 16, 30000, None),
    ],
)
def test_the_split_against_data_sets(teacher, N, P, L, tested):
    """Given a sketch, at its own and at other test lengths."""
    setting = make(teacher, M=12, d=48, N=N, P=P, L=L, kind=Constant, tested=tested)
    S = sketch(12, 48)
    found = given(setting, S)
    mean, error = _sampled(setting, S, 300)
    wanted = np.array([found[name] for name in ("bias", "variance", "cross", "excess")])
    # Five standard errors; and the law's own error at M = 12, 0.01 + 0.3/min(M, NP) of the excess
    # (finite_sample/error.py), that is 3.5 %.
    assert np.all(np.abs(mean - wanted) < 5 * error + 0.035 * found["excess"]), (mean, error, wanted)
    # The bound says something: sampling is known to 10 % of the excess.
    assert error[3] < 0.1 * found["excess"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("teacher", "P", "tested"), [("regime1", 4, 32), ("regime2", 4, 1), ("regime2", 16, 256)]
)
def test_the_split_at_another_length(teacher, P, tested):
    """The same with 4000 data sets and a looser saturation: each term within five standard errors and 3 %."""
    setting = make(teacher, M=12, d=48, N=240 // P, P=P, L=3000, kind=Constant, tested=tested)
    S = sketch(12, 48)
    found = given(setting, S)
    mean, error = _sampled(setting, S, 4000)
    wanted = np.array([found[name] for name in ("bias", "variance", "cross", "excess")])
    # At M = 12 the law errs by 3.5 % of the excess (finite_sample/error.py).
    assert np.all(np.abs(mean - wanted) < 5 * error + 0.035 * found["excess"]), (mean, error, wanted)


def test_wide_students_carry_the_change_over(monkeypatch):
    """Above M = 64 what the data change is the mean over sketches', in proportion to the frozen variance."""
    settings = [
        make("regime1", M=80, d=240, N=40, P=4, L=30000),
        make("regime2", M=80, d=240, N=10, P=32, L=30000),
        make("regime2", M=80, d=240, N=300, P=4, L=3000),
    ]
    carried = exact_rows(settings, sketches=3)
    monkeypatch.setattr(exact, "WIDEST_GIVEN", 10**4)
    solved = exact_rows(settings, sketches=3)
    for one, other in zip(carried, solved, strict=True):
        excess = other["reducible"] - other["approx"]
        # Measured at M = 96: 0.2 to 0.8 % of the excess, root mean square (exact.WIDEST_GIVEN).
        assert abs(one["reducible"] - other["reducible"]) < 0.02 * excess
        assert other["frozen"] == one["frozen"] == 0


@pytest.mark.parametrize("method", [equivalent_risks, exact_risks])
def test_together_as_alone(method):
    """Settings share solutions at N = ∞, positions and batches; nobody else's."""
    settings = [
        make("regime2", M=12, d=48, N=N, P=P, L=L, kind=Constant)
        for L in (50, 3000)
        for P in (1, 2, 3, 4, 5, 6, 7, 8, 9, 14, 30)
        for N in (10, 10**5)
    ]
    for one, risk in zip(settings, method(settings), strict=True):
        [alone] = method([one])
        change = max(alone.variance, abs(alone.cross))
        for name in ("bias", "variance", "cross"):
            # An ellipse takes as many nodes as the widest of its batch needs, and errs by 1.5e-5 of the whole
            # change at most, to which the bias adds four variances.
            # Beyond 1000 tokens a dimension the change is looked at quickly, to 1e-3 of it on an ellipse.
            share = 2e-3 if alone.diagnostics["tokens_per_dimension"] > 1000 else 2e-4
            assert abs(getattr(risk, name) - getattr(alone, name)) < share * change, (one, name)


@pytest.mark.parametrize(("seed", "count"), [(1, 40), pytest.param(2, 500, marks=pytest.mark.slow)])
def test_random_settings(seed, count):
    """All over the box: no failure, no NaN, no negative square."""
    rng = np.random.default_rng(seed)
    settings = []
    for _ in range(count):
        M, P = int(np.exp(rng.uniform(np.log(2), np.log(3000)))), int(np.exp(rng.uniform(0, np.log(1e6))))
        settings.append(
            make(
                _teacher(rng),
                M=M,
                N=int(np.exp(rng.uniform(0, np.log(1e5)))),
                P=P,
                d=math.inf if rng.random() < 0.5 else int(M * rng.uniform(1.05, 8)) + 1,
                L=int(np.exp(rng.uniform(np.log(30), np.log(1e9)))),
                kind=(WSD, BlockDecay, Constant, Cosine)[rng.integers(4)],
                gamma=float(rng.choice([0.01, 0.1, 0.5])),
                tested=None if rng.random() < 0.7 else 64,
            )
        )
    for setting in settings:
        risk = equivalent_risk(setting)
        assert all(math.isfinite(getattr(risk, name)) for name in ("approx", "bias", "variance", "cross"))
        assert risk.bias >= 0
        assert risk.variance >= 0
        # approx + ½‖…‖²: contours leave 1e-6 of it at most.
        assert risk.reducible >= risk.approx * (1 - 1e-6)


@pytest.mark.parametrize(("P", "N"), [(1, 40), (4, 20)])
def test_the_mean_norm(P, N):
    """What the safeguard meets on average over data sets: the mean of ‖Ĝ‖/‖G‖ over sketches."""
    setting = make(dataclasses.replace(PRESETS["regime2"], c_0=3.0), N=N, P=P)
    rise = empirical_norms(Rule(modes=setting.modes, weights=np.ones(64)), [P])[P]
    rises_seen = []
    for k in range(20):
        S = sketch(16, 64, k)
        problem = sketched_problem(setting.modes, S, P)
        top, v = problem.eigenvalues[-1], problem.eigenvectors[:, -1]
        samples = (sample_moments(setting.modes, S, N, P, key=(k, i)).G for i in range(10))
        # vᵀĜv has the mean ‖G‖ and nearly all of the noise.
        rises_seen.append(np.mean([(operator_norm(G) - v @ G @ v) / top for G in samples]))
    # 1.37 and 1.35 times the formula, ± 0.15 over sketches: at M = 16 some of them have a small gap. Asked:
    # that the formula is neither twice nor half of what it is.
    assert 0.85 < np.mean(rises_seen) / (rise.norm(1.0, N * P) - 1) < 1.85


@pytest.mark.slow
def test_forty_of_the_settings_that_the_page_is_about():
    """docs/finite-sample.md measures 300 with many data sets; here the first forty, with few.

    Given the same sketches each within 5 standard errors plus the error that the method states.
    """
    counts = {16: (6, 24), 48: (4, 16), 96: (3, 10)}
    for setting in random_settings(2026, 40):
        sketches, repetitions = counts[setting.M]
        rows = sampled_rows([setting], sketches=sketches, repetitions=repetitions, seed=2026)
        found = np.array([row["reducible"] for row in rows]).reshape(sketches, repetitions)
        error = np.sqrt(np.sum(found.var(axis=1, ddof=1) / repetitions)) / sketches
        [law_risk] = exact_risks([setting], sketches=sketches, seed=2026)
        stated = law_risk.diagnostics["error"] * (law_risk.reducible - law_risk.approx)
        assert abs(found.mean() - law_risk.reducible) <= 5 * error + stated, setting


@pytest.mark.parametrize("start", [-7.0, -1.0, 0.0, 2.0])
def test_two_points_have_three_moments_beyond_the_clipping(start):
    points = norm._beyond(start)
    for power in range(4):
        wanted = truncnorm(start, np.inf).moment(power)  # below -6 all of the normal law is taken
        assert sum(weight * at**power for weight, at in points) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize("gamma", [0.2, 0.42, 0.6, 1.0, 1.9, 5.0])  # 1.9: all but 6 in 10 000 are clipped
def test_the_steps_that_the_safeguard_leaves(gamma):
    """Against 10⁵ quantiles of the norm; two points miss the fourth moment (3e-3), and a share of 1e-3."""
    rise, tokens = norm.EmpiricalNorm(3.0, 2.0), 20.0
    schedule = Constant(gamma=gamma, L=100)
    steps = rise.steps(schedule, 1.0, tokens, 0.1)
    deviation = math.sqrt(math.log1p(2 * 2.0 / tokens))
    quantiles = ndtri((np.arange(10**5) + 0.5) / 10**5)
    norms = (1 + 3.0 / tokens) * np.exp(deviation * quantiles - deviation**2 / 2)
    peaks = np.minimum(gamma, 0.5 / norms)
    assert sum(weight for weight, _ in steps) == pytest.approx(1)
    for power in (-0.5, 0.5, 1.0):
        found = sum(weight * step.gamma**power for weight, step in steps)
        assert found == pytest.approx(np.mean(peaks**power), rel=5e-3)
    clipped = sum(weight for weight, step in steps if step is not schedule)
    assert clipped == pytest.approx(np.mean(gamma > 0.5 / norms), abs=1e-3)


def test_plentiful_data_and_small_steps_have_one_step():
    """Then the answer is that of the schedule itself, or of the mean norm: not a bit of it changes."""
    small, large = Constant(gamma=0.01, L=100), Constant(gamma=3.0, L=100)
    assert norm.EmpiricalNorm(3.0, 2.0).steps(small, 1.0, 20.0, 1.0) == [(1.0, small)]
    assert norm.EmpiricalNorm(3.0, 2.0).steps(large, 1.0, 1e5, 1.0) == [(1.0, large.safeguarded(1 + 3e-5))]


REPRODUCERS = {
    "step": (
        Teacher(alpha=2.2795, theta=3.7264, r=0.0548, rho=0.227, c_xi=0.0243, c_0=2.5519),
        {"M": 50, "d": 117, "N": 9, "P": 3, "schedule": Constant(gamma=1.5, L=1160)},
    ),
    "memory": (
        Teacher(alpha=1.4086, theta=2.5243, r=0.3225, rho=0.9478, c_xi=0.8191, c_0=0.0054),
        {"M": 45, "d": 327, "N": 2, "P": 31, "schedule": Cosine(gamma=0.0387, L=1490)},
    ),
    "start": (
        Teacher(alpha=1.3575, theta=2.513, r=0.3947, rho=0.6462, c_xi=0.0178, c_0=3.8949),
        {"M": 8, "d": 27, "N": 2, "P": 9, "schedule": WSD(gamma=0.0532, L=260), "eval_length": 25},
    ),
}


@pytest.mark.parametrize("name", REPRODUCERS)
def test_very_few_sequences_are_within_the_stated_error(name):
    """An audit found them 6 to 20 % low where 2 to 13 % was stated."""
    teacher, sizes = REPRODUCERS[name]
    found = exact_on(Setting(teacher=teacher, **sizes), 0, 1, 1.5)
    assert found.covered, found
    assert found.stated < 0.4  # and says something


def test_the_norm_s_chance_is_that_of_data_sets():
    """‖Ĝ‖ of 400 data sets of few sequences: its relative variance within 4 standard errors, 30 % here."""
    setting = make(PRESETS["regime2"], M=16, N=6, P=4, d=64)
    S = sketch(16, 64)
    G, _ = trajectories(np.random.default_rng(3), setting.modes, S, 400, 6, 4)
    norms = np.linalg.eigvalsh(G)[:, -1]
    chance = empirical_norms(Rule(modes=setting.modes, weights=np.ones(64)), [4])[4].relative_variance(24)
    assert norms.var() / norms.mean() ** 2 == pytest.approx(chance, rel=0.3)


@pytest.mark.slow
@pytest.mark.parametrize(("family", "count"), [("few", 12), ("phases", 14), ("one-pass", 20)])
def test_stated_errors_hold(family, count):
    """A small version of benchmarks/coverage_stated.py, on settings of neither its seed nor the fit's.

    Of those that state a number, 9 in 10 or more are covered there; of so few one or two more may not be.
    """
    for found in campaign(family, count, 77, 1.0).values():
        known = [one.covered for one in found if math.isfinite(one.stated)]
        assert len(known) >= count / 2
        assert np.mean(known) >= 0.8
