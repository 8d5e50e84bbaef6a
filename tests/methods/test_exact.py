"""The exact method against double sums over positions, sampled data sets and exact arithmetic."""

from __future__ import annotations

import dataclasses
import math

import mpmath
import numpy as np
import pytest

from rows_of import exact_risk, exact_risks, exact_rows
from seqlaw import PRESETS, WSD, BlockDecay, Constant, InputError, Lengths, Modes, Setting
from seqlaw.methods.frozen_sketch import finite_filter_variance, population_bias
from seqlaw.methods.moments import sample_moments
from seqlaw.methods.score import lag_rows, lag_sums, score
from seqlaw.methods.stage import at_rest, full_batch
from seqlaw.model import gaussian_sketch, sketched_problem


def random_modes(seed, d=6):
    """Modes with zero, negative and slow transitions, far from stationarity."""
    rng = np.random.default_rng(seed)
    a = rng.uniform(-0.95, 0.95, d)
    a[0] = 0.0
    sigma_0 = rng.uniform(0, 5, d)
    sigma_0[1] = 0.0
    return Modes(a=a, sigma_xi=rng.uniform(0.1, 1, d), sigma_0=sigma_0)


def score_by_double_sum(problem):
    """N·P·E[QᵀQ] from Isserlis on dense covariances, one pair of positions at a time.

    e_p = D x_p + S ξ_{p+1}; Cov(x_p, x_q), Cov(e_p, x_q), Cov(e_p, e_q) from the recursion only.
    """
    m, S, D, P = problem.modes, problem.S, problem.D, problem.P
    A, X = np.diag(m.a), np.diag(m.sigma_xi)
    states = [np.diag(m.sigma_0)]
    for _ in range(P):
        states.append(A @ states[-1] @ A.T + X)

    def x_x(p, q):  # E[x_p x_qᵀ]
        early = states[min(p, q)]
        power = np.linalg.matrix_power(A, abs(p - q))
        return power @ early if p >= q else early @ power.T

    def e_x(p, q):  # E[e_p x_qᵀ]; the innovation ξ_{p+1} is in x_q from q = p + 1 on
        noise = X @ np.linalg.matrix_power(A, q - p - 1).T if q > p else 0 * X
        return D @ x_x(p, q) + S @ noise

    def e_e(p, q):
        if p == q:
            return D @ states[p] @ D.T + S @ X @ S.T
        if p > q:
            return e_e(q, p).T
        noise = X @ np.linalg.matrix_power(A, q - p - 1).T
        return D @ x_x(p, q) @ D.T + S @ noise @ D.T

    total = np.zeros((problem.M, problem.M))
    for p in range(P):
        for q in range(P):
            # E[(e_p·e_q) u_p u_qᵀ], all three pairings; the second is not dropped here.
            total += np.trace(e_e(p, q)) * (S @ x_x(p, q) @ S.T)
            total += S @ e_x(p, p).T @ e_x(q, q) @ S.T
            total += S @ e_x(q, p).T @ e_x(p, q) @ S.T
    return total / P


@pytest.mark.parametrize("P", [1, 2, 3, 7, 16, 25])
@pytest.mark.parametrize("seed", [0, 1])
def test_score_covariance_equals_the_double_sum(seed, P):
    modes = random_modes(seed)
    problem = sketched_problem(modes, gaussian_sketch(3, modes.d, seed=seed), P)
    naive = score_by_double_sum(problem)
    # Rounding of P² dense products: far below 1e-12 of the largest entry.
    np.testing.assert_allclose(score(problem).covariance, naive, rtol=0, atol=1e-12 * np.abs(naive).max())


def lag_sums_in_exact_arithmetic(modes, P):
    with mpmath.workdps(40):
        a, xi, sigma = ([mpmath.mpf(float(v)) for v in x] for x in (modes.a, modes.sigma_xi, modes.sigma_0))
        path = [sigma]
        for _ in range(P):
            path.append([x * x * s + n for x, s, n in zip(a, path[-1], xi, strict=True)])
        K, J = np.zeros((2, modes.d, modes.d))
        for j in range(modes.d):
            for l in range(modes.d):
                w = a[j] * a[l]
                powers = [mpmath.mpf(1)]
                for _ in range(P):
                    powers.append(powers[-1] * w)
                K[j, l] = sum(
                    path[p][j] * path[p][l] * (1 + 2 * mpmath.fsum(powers[1 : P - p])) for p in range(P)
                )
                J[j, l] = (
                    xi[l] * a[j] * sum(path[p][j] * mpmath.fsum(powers[: P - 1 - p]) for p in range(P - 1))
                )
    return K / P, J / P


@pytest.mark.parametrize(
    "a", [[0.5, 0.3, 0.1], [0.0, -0.5, 0.7], [1 - 1e-8, 0.999, 0.5], [-0.999999, 0.9, 1 - 1e-12]]
)
def test_lag_sums_keep_all_digits_at_any_transition(a):
    modes = Modes(a=a, sigma_xi=[0.6, 0.3, 0.04], sigma_0=[0.0, 0.1, 30.0])
    for P in (1, 2, 8, 21, 70):
        for fast, naive in zip(lag_sums(modes, P), lag_sums_in_exact_arithmetic(modes, P), strict=True):
            np.testing.assert_allclose(fast, naive, rtol=5e-15, atol=0)  # a few roundings per doubling


def test_lag_sums_of_long_trajectories():
    """The start forgotten (a = 0.93, 0.99) and not (1 - a = 1e-5), against running sums."""
    for slow, P in ((0.93, 1000), (0.99, 30_000), (1 - 1e-5, 30_000)):
        modes = Modes(a=[slow, 0.4, -0.7], sigma_xi=[1.0, 0.3, 0.1], sigma_0=[3.0, 0.0, 0.15])
        a, xi, sigma = (x.astype(np.longdouble) for x in (modes.a, modes.sigma_xi, modes.sigma_0))
        w = np.multiply.outer(a, a)
        K, J, tail, single = np.zeros((4, 3, 3), np.longdouble)
        for _ in range(P):  # tail = Σ_{q<p} σ_q σ_q w^{p-q}, single = Σ_{q<p} σ_q w^{p-1-q}
            K += np.multiply.outer(sigma, sigma) + 2 * tail
            J += single
            tail = w * (tail + np.multiply.outer(sigma, sigma))
            single = w * single + sigma[:, None]
            sigma = a * a * sigma + xi
        fast_K, fast_J = lag_sums(modes, P)
        # P roundings of 80-bit arithmetic stay below 1e-13.
        np.testing.assert_allclose(fast_K, (K / P).astype(float), rtol=1e-13)
        np.testing.assert_allclose(fast_J, (J / P * a[:, None] * xi).astype(float), rtol=1e-13)


@pytest.mark.parametrize(
    "a", [0.7 * np.arange(1, 301) ** -0.4, np.linspace(-0.6, 0.8, 300)], ids=["law", "signs"]
)
def test_lag_sums_interpolated_between_few_transitions(a):
    """Eight modes alone are summed as they are."""
    j = np.arange(1, 301)
    modes = Modes(a=a, sigma_xi=0.1 * j**-1.8, sigma_0=3 * j**-1.2)
    some = np.array([0, 1, 2, 10, 100, 214, 298, 299])
    few = Modes(a=a[some], sigma_xi=modes.sigma_xi[some], sigma_0=modes.sigma_0[some])
    for P in (1, 3, 40, 10**5, Lengths((2, 70), (0.3, 0.7))):
        rows = lag_rows(modes, P)(slice(2, 11))
        for fast, part, slow in zip(lag_sums(modes, P), rows, lag_sums(few, P), strict=True):
            np.testing.assert_allclose(fast[np.ix_(some, some)], slow, rtol=1e-12)
            np.testing.assert_allclose(part, fast[2:11], rtol=1e-12)


def test_score_covariance_against_sampled_data_sets():
    """2000 data sets, every entry of E[QᵀQ] within five standard errors."""
    modes = Modes(a=[0.95, -0.9, 0.8, 0.1], sigma_xi=[0.1, 0.2, 0.1, 0.2], sigma_0=[9.0, 8.0, 2.0, 6.0])
    N, P, sets = 5, 9, 2000
    problem = sketched_problem(modes, gaussian_sketch(2, modes.d, seed=3), P)
    rng = np.random.default_rng(5)
    x = rng.standard_normal((sets, N, modes.d)) * np.sqrt(modes.sigma_0)
    Q = np.zeros((sets, 2, 2))
    for _ in range(P):
        after = x * modes.a + rng.standard_normal(x.shape) * np.sqrt(modes.sigma_xi)
        u, y = x @ problem.S.T, after @ problem.S.T
        Q += np.einsum("sni,snj->sij", y - u @ problem.B_star.T, u) / (N * P)
        x = after
    squares = np.einsum("ski,skj->sij", Q, Q) * (N * P)
    error = squares.std(axis=0, ddof=1) / math.sqrt(sets)
    assert np.all(np.abs(squares.mean(axis=0) - score(problem).covariance) < 5 * error)
    # The lags matter here: the paper's tr(Ω) G would be refused by the same test.
    guide = np.trace(problem.residual_covariance) * problem.G
    assert np.any(np.abs(squares.mean(axis=0) - guide) > 5 * error)


def test_variance_from_the_matrix_filter():
    """½ tr(g(G) E[QᵀQ] g(G) G') with g(G) from the explicit recursion, own and other test length."""
    modes = PRESETS["regime2"].modes(24)
    S, N, P = gaussian_sketch(6, 24), 100, 5
    problem, schedule = sketched_problem(modes, S, P), WSD(gamma=0.3, L=60)
    g = np.zeros((6, 6))
    for step in schedule.steps():
        g = g @ (np.eye(6) - step * problem.G) + step * np.eye(6)
    noise = score(problem)
    for length in (P, 1, 64):
        test = sketched_problem(modes, S, length)
        expected = np.trace(g.T @ noise.covariance @ g @ test.G) / (2 * N * P)
        state = full_batch(at_rest(problem), problem, noise.covariance / (N * P), schedule)
        assert state.terms(test)["variance"] == pytest.approx(expected, rel=1e-12)
        guide = np.trace(problem.residual_covariance) * np.trace(g @ problem.G @ g @ test.G) / (2 * N * P)
        assert finite_filter_variance(problem, N, schedule, test) == pytest.approx(guide, rel=1e-12)
    mu_g = problem.eigenvalues * schedule.response(problem.eigenvalues)
    paper = np.trace(problem.residual_covariance) * np.sum(mu_g**2) / (2 * N * P)
    assert finite_filter_variance(problem, N, schedule, problem) == pytest.approx(paper, rel=1e-12)


def test_bias_from_the_recursion_at_any_test_length():
    modes = PRESETS["regime1"].modes(30)
    S = gaussian_sketch(5, 30, seed=2)
    problem, schedule = sketched_problem(modes, S, 4), BlockDecay(gamma=0.2, L=90)
    B = np.zeros((5, 5))
    for step in schedule.steps():
        B = B - step * (B @ problem.G - problem.C)
    for length in (4, 1, 500):
        test = sketched_problem(modes, S, length)
        assert population_bias(problem, schedule, test) == pytest.approx(test.excess(B), rel=1e-9)


def test_sandwich_brackets_the_score():
    """low·G ⪯ N·P·E[QᵀQ] ⪯ high·G, touched at both ends; at P = 1 both are tr Ω."""
    modes = PRESETS["regime2"].modes(40)
    S = gaussian_sketch(8, 40)
    for P in (1, 6, 10**9):
        problem = sketched_problem(modes, S, P)
        covariance, _, low, high, _ = score(problem)
        scale = np.abs(covariance).max()
        assert np.linalg.eigvalsh(covariance - low * problem.G)[0] == pytest.approx(0, abs=1e-12 * scale)
        assert np.linalg.eigvalsh(high * problem.G - covariance)[0] == pytest.approx(0, abs=1e-12 * scale)
        if P == 1:
            assert low == pytest.approx(np.trace(problem.residual_covariance), rel=1e-10)
            assert high == pytest.approx(low, rel=1e-10)


def setting(**changes):
    return dataclasses.replace(
        Setting(
            teacher=PRESETS["regime2"], M=20, N=4096, P=40, d=64, schedule=BlockDecay(gamma=0.1, L=10**5)
        ),
        **changes,
    )


def test_any_length_and_any_number_of_steps():
    """Var·N·P settles as P grows, and 10^12 is as good as any length."""
    lengths = [10**6, 10**9, 10**12]
    risks = exact_risks([setting(P=P, eval_length=P) for P in lengths], seed=1)
    scaled = [risk.variance * P for risk, P in zip(risks, lengths, strict=True)]
    np.testing.assert_allclose(scaled, scaled[-1], rtol=1e-4)  # the start still weighs 1/P
    long = exact_risk(setting(schedule=WSD(gamma=0.1, L=10**15)))
    assert math.isfinite(long.total)
    assert long.bias >= 0


def test_strong_initialization_defeats_the_paper_guide():
    """c_0 = 3, P = 8, M = 40, d = 128: the guide is 28 % off (MATH §4)."""
    teacher = dataclasses.replace(PRESETS["regime2"], c_0=3.0)
    risk = exact_risk(
        setting(teacher=teacher, P=8, eval_length=8, M=40, d=128, schedule=BlockDecay(gamma=0.1, L=302909)),
        sketches=4,
    )
    assert abs(risk.diagnostics["finite_filter_variance"] / risk.variance - 1) > 0.15


def test_rows_share_sketches_and_summarise():
    points = [setting(), setting(N=10**9), setting(P=3, eval_length=3), setting(eval_length=4096)]
    rows = exact_rows(points, sketches=3, seed=7)
    assert [(row["point"], row["sketch"]) for row in rows] == [(i, k) for i in range(4) for k in range(3)]
    # To leading order in the data: the law goes on in M over the effective tokens, here 2e-3.
    assert rows[0]["variance"] * 4096 == pytest.approx(rows[3]["variance"] * 1e9, rel=5e-3)
    assert rows[0]["bias"] == pytest.approx(rows[3]["bias"], rel=5e-3)
    risk = exact_risk(points[0], sketches=3, seed=7)
    values = [row["bias"] for row in rows[:3]]
    assert risk.bias == pytest.approx(np.mean(values), rel=1e-12)  # solved alone and together
    assert risk.standard_error["bias"] == pytest.approx(np.std(values, ddof=1) / math.sqrt(3))
    assert risk.cross == pytest.approx(np.mean([row["cross"] for row in rows[:3]]), rel=1e-9) != 0
    assert risk.standard_error["cross"] > 0
    assert not any(flag.code == "cross" for flag in risk.flags)
    for row in rows:
        assert row["total"] == pytest.approx(row["irreducible"] + row["reducible"], rel=1e-15)


def test_safeguard_is_applied_and_flagged():
    fast = setting(N=10**12, schedule=Constant(gamma=50.0, L=10))
    risk = exact_risk(fast, seed=3)
    assert any(flag.code == "safeguard" for flag in risk.flags)
    assert risk.diagnostics["clipped"] == 1
    problem = sketched_problem(fast.modes, gaussian_sketch(20, 64, seed=3), 40)
    limit = Constant(gamma=1 / (2 * problem.eigenvalues[-1]), L=10)
    # With endless data; fewer have a larger ‖Ĝ‖ on average, by `mean`/NP.
    assert risk.bias == pytest.approx(population_bias(problem, limit, problem), rel=1e-9)
    few = exact_risk(dataclasses.replace(fast, N=50), seed=3)
    assert few.bias > 1.001 * risk.bias
    assert not any(flag.code == "safeguard" for flag in exact_risk(setting()).flags)


def test_effective_tokens():
    """One independent token at P = 1; E‖G^{-1/2}ĜG^{-1/2} - I‖²_F to leading order otherwise."""
    modes = dataclasses.replace(PRESETS["regime2"], c_0=3.0).modes(128)
    S = gaussian_sketch(32, 128)
    assert score(sketched_problem(modes, S, 1)).effective_share == pytest.approx(1, rel=1e-10)
    problem = sketched_problem(modes, S, 16)
    white = problem.eigenvectors / np.sqrt(problem.eigenvalues)
    N = 64
    squares = [
        np.sum((white.T @ sample_moments(modes, S, N, 16, seed=k).G @ white - np.eye(32)) ** 2)
        for k in range(40)
    ]
    share = 32**2 / (np.mean(squares) * N * 16)
    assert share < 0.3  # the start dominates: far from one
    # n independent tokens have (M² + M)/n in place of M²/n, hence 1/M besides the noise of 40 data sets.
    assert score(problem).effective_share == pytest.approx(share, rel=2 / 32)


def test_the_frozen_filter_is_flagged_where_the_law_does_not_reach():
    """A memory too long for a dense block, and few data: the filter stays frozen, and the method says so."""
    slow = dataclasses.replace(PRESETS["regime2"], rho=0.9999)
    few = setting(teacher=slow, N=1, P=300, eval_length=300, schedule=BlockDecay(gamma=0.1, L=10**7))
    codes = {flag.code for flag in exact_risk(few).flags}
    assert codes >= {"frozen-filter", "cross"}
    reached = setting(N=2, P=16, eval_length=16, schedule=BlockDecay(gamma=0.1, L=10**7))
    assert not {"frozen-filter", "cross"} & {flag.code for flag in exact_risk(reached).flags}


def test_bad_input_is_refused():
    with pytest.raises(InputError, match="sketches"):
        exact_risk(setting(), sketches=0)
    with pytest.raises(InputError, match="finite"):
        exact_risk(setting(d=math.inf))
