import numpy as np
import pytest

from seqlaw import PRESETS, WSD, BlockDecay, Constant, Cosine, Explicit, InputError
from seqlaw.methods.frozen_sketch import population_bias
from seqlaw.model import Moments, Momentum, Spectrum, descend, gaussian_sketch, sketched_problem

SCHEDULES = [
    WSD(gamma=0.1, L=400),
    BlockDecay(gamma=0.1, L=400),
    Constant(gamma=0.1, L=300),
    Cosine(gamma=0.1, L=300),
    Explicit(sizes=0.1 * np.random.default_rng(0).random(200)),
    Momentum(gamma=0.1, L=300, beta=0.9),
    Momentum(gamma=0.1, L=300, beta=0.97, nesterov=True),
]


@pytest.fixture(scope="module")
def problem():
    return sketched_problem(PRESETS["regime2"].modes(40), gaussian_sketch(10, 40), 6)


@pytest.mark.parametrize("scale", [1.0, 300.0], ids=["quiet", "clipped"])
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.name)
def test_recursion_and_spectral_form_agree(problem, schedule, scale):
    G, C = scale * problem.G, scale * problem.C
    spectrum = Spectrum.of(G)
    safe = spectrum.safeguard(schedule)
    assert (safe.gamma < schedule.gamma) == (scale > 1)
    B, _ = descend(G, C, schedule)
    # L roundings in the recursion.
    np.testing.assert_allclose(spectrum.response(C, safe), B, atol=schedule.L * 1e-15)


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda s: s.name)
def test_population_bias_is_the_excess_loss_of_the_recursion(problem, schedule):
    B, _ = descend(problem.G, problem.C, schedule)
    assert population_bias(problem, schedule, problem) == pytest.approx(problem.excess(B), rel=1e-11)
    test = sketched_problem(problem.modes, problem.S, 40)
    wanted = problem.loss(B, P=40) - problem.irreducible
    assert test.approx + population_bias(problem, schedule, test) == pytest.approx(wanted, rel=1e-11)


def test_checkpoints_and_callbacks(problem):
    seen = []
    schedule = WSD(gamma=0.1, L=50)
    B, recorded = descend(
        problem.G,
        problem.C,
        schedule,
        checkpoints=[0, 7, 50],
        callback=lambda t, B: seen.append((t, B.sum())),
    )
    assert [t for t, _ in seen] == list(range(1, 51))
    np.testing.assert_array_equal(recorded[0], 0)
    np.testing.assert_array_equal(recorded[50], B)
    prefix = Explicit(sizes=schedule.steps()[:7])
    np.testing.assert_allclose(recorded[7], descend(problem.G, problem.C, prefix)[0], atol=1e-15)
    assert recorded[7].sum() == seen[6][1]


def test_the_safeguard_keeps_a_wild_step_stable(problem):
    wild = Constant(gamma=100.0, L=200)
    safe, _ = descend(problem.G, problem.C, wild)
    assert problem.excess(safe) < problem.excess(np.zeros_like(safe))
    with np.errstate(over="ignore", invalid="ignore"):
        free, _ = descend(problem.G, problem.C, wild, safeguard=False)
    assert not np.all(np.isfinite(free)) or np.abs(free).max() > 1e100


def test_long_training_reaches_the_minimizer(problem):
    spectrum = Spectrum.of(problem.G)
    schedule = spectrum.safeguard(Constant(gamma=0.1, L=10**12))
    np.testing.assert_allclose(spectrum.response(problem.C, schedule), problem.B_star, atol=1e-10)


def test_empirical_loss():
    rng = np.random.default_rng(5)
    u, y, B = rng.standard_normal((30, 4)), rng.standard_normal((30, 4)), rng.standard_normal((4, 4))
    moments = Moments(G=u.T @ u / 30, C=y.T @ u / 30, energy=np.sum(y**2) / 30)
    assert moments.loss(B) == pytest.approx(np.sum((y - u @ B.T) ** 2) / 60, rel=1e-12)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: descend(np.eye(3), np.eye(2), SCHEDULES[0]), "C must have shape"),
        (lambda: descend(np.full((2, 2), np.nan), np.eye(2), SCHEDULES[0]), "G must be finite"),
        (lambda: descend(np.eye(2), np.eye(2), SCHEDULES[0], checkpoints=[401]), "at most 400"),
        (lambda: Moments(G=np.eye(3), C=np.eye(2), energy=1.0), "Moments.C must have shape"),
        (lambda: Spectrum.of(np.ones((2, 3))), "square"),
    ],
)
def test_bad_input(make, word):
    with pytest.raises(InputError, match=word):
        make()
