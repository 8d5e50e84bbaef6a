"""Preconditioned descent and weight decay: a plain loop, reference points, sketches and sampled data."""

from __future__ import annotations

import json

import numpy as np
import pytest

from conftest import DATA
from recursions import preconditioned_recursion
from rows_of import check_means, exact_rows, sampled_rows
from seqlaw import PRESETS, WSD, BlockDecay, Constant, Cosine, InputError, Setting, Teacher
from seqlaw.files import plain
from seqlaw.methods.accuracy import Ray, search
from seqlaw.methods.ask import risks
from seqlaw.methods.contours import loop
from seqlaw.methods.equivalent import equivalent_risk, equivalent_risks
from seqlaw.methods.rates import rates
from seqlaw.methods.rays import surface
from seqlaw.methods.spectral_sum import sum_rule
from seqlaw.methods.terms import columns
from seqlaw.model import gaussian_sketch, sketched_problem
from seqlaw.model.descent import Spectrum, descend
from seqlaw.model.lengths import parse
from seqlaw.model.momentum import Momentum
from seqlaw.model.preconditioned import preconditioned
from seqlaw.model.threads import one_thread
from seqlaw.sweeping.codec import setting_of, task_of

POINTS = json.loads((DATA / "preconditioned.json").read_text())["points"]
KINDS = {kind.name: kind for kind in (WSD, BlockDecay, Cosine, Constant)}
WAYS = [(0.25, 0.0), (0.5, 0.0), (0.75, 0.0), (0.9, 0.0), (0.0, 1e-3), (0.0, 0.1), (0.5, 1e-3)]
"""p and λ."""
TERMS = ("bias", "variance", "cross")


@pytest.fixture(autouse=True)
def _alone():
    with one_thread():
        yield


def make(way, *, teacher="regime1", M=24, N=20, P=4, d=None, L=300, kind=WSD, gamma=50.0, **more):
    """At the safeguard's step, unless γ is given."""
    p, decay = way
    schedule = kind(gamma=gamma, L=L)
    return Setting(teacher=PRESETS[teacher], M=M, N=N, P=P, d=d or 4 * M, schedule=schedule, **more).but(
        precondition=p, weight_decay=decay
    )


def excess(row):
    get = row.get if isinstance(row, dict) else lambda name: getattr(row, name)
    return sum(get(name) for name in ("bias", "variance", "cross"))


# --- the filter ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("tokens", [40, 5])
@pytest.mark.parametrize("way", WAYS)
def test_the_filter_is_a_plain_loop(way, tokens):
    """B ← B - γ_t [(BĜ - Ĉ)Ĝ^-p + λB], with directions without data left alone; rounding alone, 1e-12."""
    p, decay = way
    rng = np.random.default_rng(3)
    U = rng.normal(size=(tokens, 8)) * np.arange(1, 9.0) ** -1
    G, C = U.T @ U / tokens, rng.normal(size=(8, tokens)) @ U / tokens
    given = preconditioned(WSD(gamma=50.0, L=60), p, decay)
    safe = given.safeguarded(np.linalg.norm(G, 2))
    assert safe.gamma * (np.linalg.norm(G, 2) ** (1 - p) + decay) == pytest.approx(0.5, rel=1e-12)
    mu, V = np.linalg.eigh(G)
    live = mu > 1e-12
    factor = (V[:, live] * mu[live] ** -p) @ V[:, live].T if p else np.eye(8)
    B = np.zeros((8, 8))
    for step in safe.steps():
        B = B - step * ((B @ G - C) @ factor + decay * B)
    spectrum = Spectrum.of(G)
    scale = np.abs(B).max()
    assert np.abs(descend(G, C, given)[0] - B).max() <= 1e-12 * scale
    assert np.abs(spectrum.response(C, safe) - B).max() <= 1e-12 * scale
    # The error B* - B of a student that fits B* alone is B* ψ.
    seen = B @ G
    kept = spectrum.residual(B, safe)
    assert np.abs(kept - (B - spectrum.response(seen, safe))).max() <= 1e-12 * scale


@pytest.mark.parametrize("nesterov", [False, True])
def test_the_filter_takes_momentum(nesterov):
    rng = np.random.default_rng(4)
    U = rng.normal(size=(30, 6)) * np.arange(1, 7.0) ** -1
    G, C = U.T @ U / 30, rng.normal(size=(6, 30)) @ U / 30
    given = preconditioned(Momentum(gamma=50.0, L=80, beta=0.8, nesterov=nesterov), 0.5, 0.01)
    spectrum = Spectrum.of(G)
    B = spectrum.response(C, spectrum.safeguard(given))
    assert np.abs(descend(G, C, given)[0] - B).max() <= 1e-11 * np.abs(B).max()


def test_nothing_added_is_the_schedule_itself():
    plain = WSD(gamma=0.1, L=100)
    both = preconditioned(plain, 0.5, 0.01)
    assert preconditioned(plain, 0, 0) is plain
    assert preconditioned(both, 0, 0) is plain
    setting = Setting(teacher="regime1", M=8, N=8, P=2, d=32, schedule=plain, precondition=0.5)
    assert setting.schedule.precondition == 0.5
    assert setting.but(weight_decay=0.1).schedule == preconditioned(plain, 0.5, 0.1)
    assert setting.but(precondition=0).schedule is plain


def test_it_survives_rows_sweeps_and_json():
    setting = make((0.5, 1e-3))
    assert columns(setting)["precondition"] == 0.5
    assert "precondition" not in columns(setting.but(precondition=0, weight_decay=0))
    assert setting_of(task_of(setting)).schedule == setting.schedule
    flat = plain(setting.schedule, "", [])
    assert flat == plain(setting.schedule.plain, "", []) | {"precondition": 0.5, "weight_decay": 1e-3}


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"precondition": 0.95}, "precondition must lie in \\[0, 0.9\\], got 0.95"),
        ({"precondition": -0.1}, "precondition must lie in"),
        ({"precondition": "half"}, "precondition must be"),
        ({"weight_decay": -1}, "weight_decay must not be negative"),
        ({"weight_decay": float("nan")}, "weight_decay must be"),
    ],
)
def test_what_is_no_preconditioner_is_refused(more, words):
    with pytest.raises(InputError, match=words):
        Setting(teacher="regime1", M=8, N=8, P=2, d=32, schedule="wsd", **more)


def test_momentum_is_refused_where_no_path_is_known():
    momentum = Momentum(gamma=0.1, L=10_000, beta=0.9)
    setting = Setting(teacher="regime1", M=8, N=8, P=2, d=32, schedule=momentum, precondition=0.5)
    with pytest.raises(InputError, match="precondition must be left out with momentum on the equivalent"):
        equivalent_risk(setting)
    assert exact_rows([setting], sketches=1)[0]["variance"] > 0


# --- paths ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Constant, Cosine])
@pytest.mark.parametrize("L", [5, 30, 300, 10**5])
@pytest.mark.parametrize("way", WAYS)
def test_a_loop_takes_any_filter(way, L, kind):
    """A sum over eigenvalues. γ‖G‖^q = ½, where a loop closes nearest to the spectrum.

    The steps err by exp(-2πφ/step) on the ray, 3e-9 to 5e-5 of the integral, and by some 1e-5 and 2e-3 at the
    end; a sum of ψ or ψ² below 1e-8 of all is not resolved.
    """
    j = np.arange(1, 300.0)
    mu, c = 0.95 * j**-1.6, j**-2.3
    one = preconditioned(kind(gamma=1e9, L=L), *way).safeguarded(0.95)
    for step, tol in ((0.25, 3e-5), (0.5, 4e-3)):
        path = loop([one], np.array([0.95]), np.array([1e-4 * mu[-1]]), Ray(step, 0.0))
        F = (c / (mu - np.append(0, path.z[0, : path.solved])[:, None])).sum(axis=1)[None]
        psi, exact = path.residuals([one]), one.residual(mu)
        for values, vanishes, told in (
            (psi, False, exact),
            (psi**2, False, exact**2),
            (1 - psi, True, 1 - exact),
            ((1 - psi) ** 2, True, (1 - exact) ** 2),
        ):
            seen = path.weights(values, vanishes=vanishes).of(F)[0, 0]
            wanted = (c / mu * told).sum()
            assert abs(seen - wanted) <= tol * wanted + 1e-8 * (step / 0.25) ** 12 * F[0, 0].real


@pytest.mark.parametrize("way", WAYS)
def test_operators_on_a_loop_leave_directions_without_data_alone(way):
    """φ(s) and ψ(s) from resolvents at the solved nodes, s = 0 and s far below the last node among them."""
    one = preconditioned(WSD(gamma=1e9, L=300), *way).safeguarded(1.0)
    path = loop([one], np.ones(1), np.array([1e-4 * one.total ** (-1 / one.power)]), Ray(0.35, 0.0))
    z, response, residual = (x[0] for x in path.operators(path.residuals([one])))
    s = np.array([0.0, 1e-3, 0.01, 0.1, 0.9])
    R = 1 / (s[:, None] - z)
    # The step of 0.35 leaves 1e-6 on the ray, and up to 1e-3 at its end, where s is next to it.
    assert np.abs(-2 * (R @ residual).real - one.residual(s)).max() <= 2e-3
    assert np.abs(2 * (R @ response).real * s - (1 - one.residual(s)))[1:].max() <= 2e-3


# --- plentiful data ------------------------------------------------------------------------------------


def _setting(point, N):
    teacher = Teacher(**{name: point[name] for name in ("alpha", "theta", "r", "rho", "c_xi", "c_0")})
    return Setting(
        teacher=teacher,
        **{name: point[name] for name in ("M", "d", "P", "eval_length")},
        N=N,
        schedule=KINDS[point["schedule"]](gamma=point["gamma"], L=point["L"]),
        precondition=point["p"],
    )


@pytest.mark.parametrize("point", POINTS, ids=lambda one: f"{one['p']}-{one['schedule']}-{one['P']}")
def test_reference_points(point):
    """Computed apart, on rays of step 0.25 that err by up to 4e-6; seen here: 4e-7 at most."""
    N = 10**9
    found = equivalent_risks([_setting(point, N)], frozen=True)[0]
    assert found.approx == pytest.approx(point["approx"], rel=1e-9)
    assert found.bias == pytest.approx(point["bias"], rel=4e-6)
    assert found.variance * N == pytest.approx(point["variance_per_trajectory"], rel=4e-6)
    assert found.diagnostics["saturation"] == pytest.approx(point["saturation"], rel=1e-9)
    if point["saturation"] <= 1:
        for name in ("approx", "bias", "variance"):
            told = point["variance_per_trajectory"] if name == "variance" else point[name]
            error = 3 * point["sketch_se"][name] + told / point["M"]
            assert abs(point["sketch_mean"][name] - told) <= error


@pytest.mark.parametrize("tested", [None, 64])
@pytest.mark.parametrize("way", [(0.25, 0.0), (0.5, 0.0), (0.0, 1e-3)])
def test_the_surface_of_a_search(way, tested):
    """Each point and schedule as the equivalent method has it, to the search's 1e-3 of the reducible risk."""
    settings = [
        make(way, teacher="regime2", M=M, N=10**9, P=P, d=512, L=L, eval_length=tested)
        for M, P in ((16, 2), (64, 32))
        for L in (30, 1000)
    ]
    for first, second in (settings[:2], settings[2:]):
        rule = sum_rule(first, search.sums)
        [fixed], [variance] = surface(
            rule, np.array([float(first.M)]), [first.P], [first.schedule, second.schedule], tested
        )
        for k, one in enumerate(equivalent_risks([first, second], frozen=True)):
            assert fixed[0, k] == pytest.approx(one.approx + one.bias, rel=2e-3)
            assert variance[0, k] == pytest.approx(one.variance * first.N, rel=2e-3)


# --- few data ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tested", [None, 50])
@pytest.mark.parametrize("N", [4, 20, 400])
def test_almost_nothing_added_is_the_correction_on_contours(N, tested):
    """p = 1e-9 and λ = 1e-12 take a loop, plain descent a contour; both err by 1e-6 of the excess or so."""
    plain, *others = (make(way, N=N, eval_length=tested) for way in ((0, 0), (1e-9, 0), (0, 1e-12)))
    for found in (
        [equivalent_risk(one) for one in (plain, *others)],
        exact_rows([plain, *others], sketches=1),
    ):
        first, *rest = (
            [one[n] if isinstance(one, dict) else getattr(one, n) for n in TERMS] for one in found
        )
        for one in rest:
            assert np.abs(np.subtract(one, first)).max() <= 1e-5 * sum(first)


@pytest.mark.parametrize(
    ("way", "N", "P", "L"),
    [((0.5, 0), 4, 4, 100), ((0.25, 0), 30, 4, 300), ((0.75, 0), 40, 1, 30), ((0, 0.01), 6, 4, 300)],
)
def test_few_data_against_data_sets(way, N, P, L):
    """One sketch, 300 data sets, two test lengths: the mean of each term within 4 standard errors and 3 %.

    The law errs by (1 to 2)/|NP - M| where training is saturated; 3 % is that of the nearest, NP = 40.
    """
    settings = [make(way, N=N, P=P, L=L, eval_length=tested) for tested in (None, 50)]
    rows = sampled_rows(settings, sketches=1, repetitions=300)
    for point, law in enumerate(exact_rows(settings, sketches=1)):
        check_means(law, [row for row in rows if row["point"] == point], errors=4, slack=0.03)


def test_phases_take_a_preconditioner():
    """Two phases with data of their own, each with its own Ĝ^-p: 300 data sets, as above."""
    lengths = parse("2:0.5,8:0.5", phases=True)
    setting = make((0.5, 1e-3), teacher="regime2", M=16, N=200, P=lengths, L=100)
    [law] = exact_rows([setting], sketches=1)
    check_means(law, sampled_rows([setting], sketches=1, repetitions=300), errors=4, slack=0.03)


def test_a_sketch_of_the_mean_over_sketches():
    """Few data, p = ½: the equivalent against the exact method's mean over 30 sketches, 2/M or 4 errors."""
    for N in (8, 60):
        setting = make((0.5, 0), N=N, L=100)
        values = [excess(row) for row in exact_rows([setting], sketches=30)]
        told, error = excess(equivalent_risk(setting)), np.std(values) / np.sqrt(30)
        assert abs(np.mean(values) - told) <= max(2 / setting.M * told, 4 * error)


# --- one pass ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [Constant, BlockDecay, Cosine])
@pytest.mark.parametrize("tested", [None, 20])
@pytest.mark.parametrize("P", [1, 4])
@pytest.mark.parametrize("way", [(0.25, 0.0), (0.5, 0.0), (0.0, 0.02), (0.5, 0.02)])
def test_one_pass_against_the_whole_recursion(way, P, tested, kind):
    """The mean to rounding, and so at P = 1 and the own length the variance; cosine's steps are cut, 2e-3.

    Elsewhere only the diagonal feeds back: 1 % here, as in plain descent (docs/one-pass-theory.md).
    """
    setting = make(way, M=10, N=None, P=P, L=60, kind=kind, batch=2, eval_length=tested, teacher="regime2")
    [row] = exact_rows([setting], sketches=1)
    S = gaussian_sketch(10, 40, index=0)
    problem, test = (sketched_problem(setting.modes, S, length) for length in (P, setting.test_length))
    B, V = preconditioned_recursion(problem, 2, setting.schedule.scaled(row["gamma"]))
    missed = B - test.B_star
    assert row["bias"] == pytest.approx(np.sum((missed @ test.G) * missed) / 2, rel=1e-10)
    exact = P == 1 and tested is None
    assert row["variance"] == pytest.approx(
        np.sum(V * test.G) / 2, rel=(2e-3 if kind is Cosine else 1e-9) if exact else 0.01
    )


@pytest.mark.parametrize("way", [(0.5, 0.0), (0.25, 0.01)])
def test_one_pass_sampled_as_in_law(way):
    """300 runs of one sketch within 4 standard errors; the mean over 40 sketches within 3/M of no sketch."""
    setting = make(way, M=16, N=None, P=4, L=100, batch=2, gamma=1.0, eval_length=30)
    [law] = exact_rows([setting], sketches=1)
    check_means(law, sampled_rows([setting], sketches=1, repetitions=300), ["variance"], errors=4, slack=0)
    means = {n: np.mean([row[n] for row in exact_rows([setting], sketches=40)]) for n in ("bias", "variance")}
    [expected] = risks([setting])
    for name, mean in means.items():
        assert getattr(expected, name) == pytest.approx(mean, rel=3 / setting.M)


def test_phases_of_mini_batches_are_refused():
    with pytest.raises(InputError, match="precondition must be left out with phases of mini-batches"):
        make((0.5, 0), N=None, batch=4, P=parse("2:0.5,8:0.5", phases=True))


# --- rates ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("p", "slope"), [(0, -0.6), (0.25, -0.8), (0.5, -1.2), (0.75, -2.4)])
def test_rates_take_a_preconditioner(p, slope):
    """The equivalent's bias falls as R^slope, to 2 % between two horizons that leave training unsaturated."""
    teacher = Teacher(alpha=1.5, theta=2.5, r=0.2, rho=0.55, c_xi=0.05, c_0=0.01)
    gamma = 2.0 if p <= 0.5 else 0.2  # the largest would saturate the width at p = ¾
    short, long = (
        Setting(teacher=teacher, M=10**7, N=10**9, P=32, d=10**9, schedule=Constant(gamma=gamma, L=L)).but(
            precondition=p
        )
        for L in (100, 200)
    )
    assert rates(short).exponents["bias"]["R"] == pytest.approx(slope, rel=1e-12)
    near, far = equivalent_risks([short, long], frozen=True)
    assert np.log2(far.bias / near.bias) == pytest.approx(slope, rel=0.02)
    seen = rates(short).exponents["variance"]
    if 2 * 1.5 * (1 - p) > 1:
        assert seen["R"] == pytest.approx(1 / 1.5 / (1 - p))
        assert np.log2(far.variance / near.variance) == pytest.approx(seen["R"], rel=0.1)
    else:  # the directions that are hardly learned outweigh the others
        assert (seen["R"], seen["M"]) == (2.0, pytest.approx(1 - 3 * (1 - p)))


def test_rates_have_no_weight_decay():
    with pytest.raises(InputError, match="weight_decay must be left out here"):
        rates(make((0, 0.1)))
