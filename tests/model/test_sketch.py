import numpy as np
import pytest
from scipy.linalg import lstsq

from oracles import dense_moments, position_covariances
from seqlaw import PRESETS, BlockDecay, InputError, Modes, Setting
from seqlaw.answers.words import sentences
from seqlaw.methods.frozen_sketch import population_bias
from seqlaw.model import gaussian_sketch, setting_flags, sketched_problem
from seqlaw.model.sketch import SingularProblem


@pytest.fixture(params=[*PRESETS])
def problem(request):
    return sketched_problem(PRESETS[request.param].modes(60), gaussian_sketch(15, 60), 7)


def test_moments_are_sums_over_positions(problem):
    modes, S = problem.modes, problem.S
    G, C = dense_moments(np.diag(modes.a), np.diag(modes.sigma_0), np.diag(modes.sigma_xi), S, 7)
    # Sums of d products: rounding of order d eps of the largest entry.
    np.testing.assert_allclose(problem.G, G, atol=60 * 2e-16 * np.abs(G).max())
    np.testing.assert_allclose(problem.C, C, atol=60 * 2e-16 * np.abs(C).max())
    np.testing.assert_allclose(problem.B_star @ G, C, atol=1e-13 * np.abs(C).max())


def test_approximation_is_a_least_squares_residual(problem):
    """inf_B ½‖(BS - SA)H^{1/2}‖² solved by scipy, which never forms G."""
    root = np.sqrt(problem.h)
    design, target = (problem.S * root).T, (problem.S * problem.modes.a * root).T
    B = lstsq(design, target)[0].T
    residual = target - design @ B.T
    # lstsq and the eigensystem differ by the condition number of the design (about 30) times eps.
    assert problem.approx == pytest.approx(np.sum(residual**2) / 2, rel=1e-11)
    np.testing.assert_allclose(problem.B_star, B, atol=1e-11)


def test_a_multiple_of_the_identity_has_nothing_to_approximate():
    modes = PRESETS["regime1"].modes(80)
    flat = Modes(a=np.full(80, 0.55), sigma_xi=modes.sigma_xi, sigma_0=modes.sigma_0)
    problem = sketched_problem(flat, gaussian_sketch(20, 80), 16)
    assert problem.approx < 1e-26
    np.testing.assert_allclose(problem.B_star, 0.55 * np.eye(20), atol=1e-11)


def test_a_rotated_teacher_has_the_same_law():
    """The teacher Q A Qᵀ seen through S is the diagonal teacher seen through S Q."""
    modes = PRESETS["regime2"].modes(40)
    Q, _ = np.linalg.qr(np.random.default_rng(3).standard_normal((40, 40)))
    S = gaussian_sketch(10, 40)
    full = [Q @ np.diag(x) @ Q.T for x in (modes.a, modes.sigma_0, modes.sigma_xi)]
    G, C = dense_moments(*full, S, 5)
    problem = sketched_problem(modes, S @ Q, 5)
    np.testing.assert_allclose(problem.G, G, atol=1e-14)
    np.testing.assert_allclose(problem.C, C, atol=1e-14)


def test_losses(problem):
    rng = np.random.default_rng(1)
    B = rng.standard_normal((15, 15))
    assert problem.loss(problem.B_star) == pytest.approx(problem.irreducible + problem.approx, rel=1e-12)
    assert problem.loss(B) - problem.loss(problem.B_star) == pytest.approx(problem.excess(B), rel=1e-10)
    step = 1e-6
    gradient = B @ problem.G - problem.C
    for i, j in [(0, 0), (3, 7), (14, 2)]:
        E = np.zeros((15, 15))
        E[i, j] = step
        slope = (problem.loss(B + E) - problem.loss(B - E)) / (2 * step)
        assert gradient[i, j] == pytest.approx(slope, rel=1e-5, abs=1e-9)


def test_loss_by_positions_and_at_another_length(problem):
    """L_M(B) = (2P)^-1 Σ_p E‖y - Bu‖² with the covariance of y - Bu written out."""
    modes, S = problem.modes, problem.S
    B = np.random.default_rng(2).standard_normal((15, 15))
    for P in (7, 3, 30):
        total = 0.0
        for sigma in position_covariances(modes, P)[:P]:
            cov_u = S @ np.diag(sigma) @ S.T
            cov_y = S @ np.diag(modes.a**2 * sigma + modes.sigma_xi) @ S.T
            cov_yu = S @ np.diag(modes.a * sigma) @ S.T
            total += np.trace(cov_y - 2 * B @ cov_yu.T + B @ cov_u @ B.T) / (2 * P)
        assert problem.loss(B, P=P) == pytest.approx(total, rel=1e-12)
    assert problem.loss(B, P=7) == problem.loss(B)


def test_residual_covariance(problem):
    modes, S, B = problem.modes, problem.S, problem.B_star
    total = 0.0
    for sigma in position_covariances(modes, 7)[:7]:
        map_ = S * modes.a - B @ S
        total = total + (map_ * sigma @ map_.T + S * modes.sigma_xi @ S.T) / 7
    np.testing.assert_allclose(problem.residual_covariance, total, atol=1e-14)


def test_sketches_are_named():
    np.testing.assert_array_equal(
        gaussian_sketch(5, 20, seed=1, index=2), gaussian_sketch(5, 20, seed=1, index=2)
    )
    assert not np.allclose(gaussian_sketch(5, 20, index=0), gaussian_sketch(5, 20, index=1))
    S = gaussian_sketch(200, 2000)
    assert np.mean(S**2) * 200 == pytest.approx(1, abs=5 * np.sqrt(2 / S.size))


def slope(x, y):
    return np.polyfit(np.log(x), np.log(y), 1)[0]


def test_regime_one_panel_a():
    """The paper's approximation slope: -0.960 ± 0.005 over experiments (MATH §9), asked within 0.02."""
    modes, widths = PRESETS["regime1"].modes(768), [12, 16, 24, 32, 48, 64, 96, 128]
    approx = [
        np.mean([sketched_problem(modes, gaussian_sketch(M, 768, index=k), 4096).approx for k in range(8)])
        for M in widths
    ]
    assert slope(widths, approx) == pytest.approx(-0.960, abs=0.02)


def test_regime_one_panel_b():
    """The paper's bias slope: -0.7187 ± 0.0008 over experiments, asked within 0.004."""
    modes = PRESETS["regime1"].modes(2048)
    problems = [sketched_problem(modes, gaussian_sketch(512, 2048, index=k), 4096) for k in range(3)]
    schedules = [BlockDecay(gamma=0.1, L=4000 * 2**k) for k in range(10)]
    bias = [np.mean([population_bias(p, s, p) for p in problems]) for s in schedules]
    assert slope([s.horizon for s in schedules], bias) == pytest.approx(-0.7187, abs=0.004)


def test_where_do_you_test():
    """MATH §12's table, approx + bias at three test lengths, within 8 % from three sketches."""
    modes, schedule = PRESETS["regime2"].modes(1024), BlockDecay(gamma=0.1, L=30000)
    wanted = {
        None: [5.69e-4, 3.13e-4, 2.12e-4, 1.44e-4],
        16: [8.0e-5, 1.72e-4, 3.44e-4, 5.40e-4],
        4096: [1.04e-5, 3.12e-5, 8.0e-5, 1.44e-4],
    }
    got = {tested: np.zeros(4) for tested in wanted}
    for k in range(3):
        S = gaussian_sketch(128, 1024, index=k)
        problems = {P: sketched_problem(modes, S, P) for P in (2, 8, 16, 32, 4096)}
        for tested, row in got.items():
            for column, P in enumerate((2, 8, 32, 4096)):
                test = problems[tested or P]
                row[column] += (test.approx + population_bias(problems[P], schedule, test)) / 3
    for tested, row in wanted.items():
        np.testing.assert_allclose(got[tested], row, rtol=0.08)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: gaussian_sketch(0, 5), "M must be at least 1"),
        (lambda: gaussian_sketch(6, 5), "M must be at most d = 5"),
        (lambda: sketched_problem(PRESETS["regime1"].modes(5), np.ones((2, 4)), 3), "shape"),
        (lambda: sketched_problem(PRESETS["regime1"].modes(5), np.full((2, 5), np.nan), 3), "finite"),
        (lambda: sketched_problem(PRESETS["regime1"].modes(5), np.ones((6, 5)), 3), "between 1 and d"),
        (
            lambda: sketched_problem(PRESETS["regime1"].modes(5), gaussian_sketch(2, 5), 0),
            "P must be at least",
        ),
    ],
)
def test_bad_problems(make, word):
    with pytest.raises(InputError, match=word):
        make()


def test_bad_predictor(problem):
    for B in (np.eye(3), np.full((15, 15), np.nan)):
        with pytest.raises(InputError, match="B must"):
            problem.loss(B)


def test_a_singular_problem_says_its_condition_number():
    modes = PRESETS["regime1"].modes(20)
    S = np.vstack([gaussian_sketch(3, 20), gaussian_sketch(3, 20)])
    with pytest.raises(SingularProblem, match="condition"):
        sketched_problem(modes, S, 5)


def setting(**change):
    values = {"teacher": PRESETS["regime2"], "M": 8, "N": 64, "P": 16, "d": 64}
    values["schedule"] = BlockDecay(gamma=0.1, L=1000)
    return Setting(**{**values, **change})


def test_setting_defaults_and_flags():
    assert setting().test_length == 16
    assert setting(eval_length=5).test_length == 5
    assert setting_flags(setting()) == ()
    assert any("P >= 2" in flag for flag in sentences(setting_flags(setting(P=1)), "cli"))
    assert any("below 2M" in flag for flag in sentences(setting_flags(setting(d=15)), "cli"))
    assert any(
        "R >~ 1" in flag
        for flag in sentences(setting_flags(setting(schedule=BlockDecay(gamma=0.1, L=2))), "cli")
    )
    modes = PRESETS["regime1"].modes(9)
    assert setting(teacher=modes, d=None).d == 9
    assert setting(teacher=modes, d=None).regime == "unknown"


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"M": 65}, "M must be at most d = 64"),
        ({"M": 0}, "M must be at least 1"),
        ({"P": 0}, "P must be at least 1"),
        ({"N": 0.5}, "N must be a whole number"),
        ({"d": None}, "d must be given"),
        ({"d": float("nan")}, "d must be finite"),
        ({"eval_length": 0}, "eval_length must be at least 1"),
        ({"teacher": PRESETS["regime1"].modes(9), "d": 10}, "d must be 9"),
    ],
)
def test_bad_settings(change, word):
    with pytest.raises(InputError, match=word):
        setting(**change)


def test_an_infinite_teacher_has_no_arrays():
    with pytest.raises(InputError, match="d must be finite"):
        _ = setting(d=float("inf")).modes
