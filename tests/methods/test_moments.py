"""Moments: streaming against the Gram chain in law, statsmodels, naive sums, and bits that never change."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc
import warnings
from itertools import pairwise

import numpy as np
import pytest
from statsmodels.tsa.vector_ar.util import varsim
from statsmodels.tsa.vector_ar.var_model import VARProcess

from seqlaw import PRESETS, InputError, Modes
from seqlaw.methods import gram
from seqlaw.methods.gram import gram_sums
from seqlaw.methods.kernel import NUMPY, compiled
from seqlaw.methods.moments import (
    cheaper_drawing,
    direct_cost,
    gram_cost,
    moments_of,
    nested_moments,
    sample_moments,
)
from seqlaw.methods.trajectories import block_rows, direct_sums, trajectories, trajectory_chunks
from seqlaw.model import gaussian_sketch, generator, sketched_problem

STATIONARY = Modes(
    a=[0.8, -0.5, 0.3],
    sigma_xi=[1.0, 0.6, 0.3],
    sigma_0=np.array([1.0, 0.6, 0.3]) / (1 - np.array([0.8, 0.5, 0.3]) ** 2),
)
FAR = Modes(a=[0.8, -0.5, 0.0], sigma_xi=[0.1, 0.6, 0.3], sigma_0=[9.0, 0.0, 2.0])
S = np.array([[1.0, 0.4, -0.7], [0.2, -1.1, 0.5]])


def naive(states):
    """Ĝ, Ĉ and the energy by a loop over every transition of every sequence."""
    G, C, energy, count = 0.0, 0.0, 0.0, 0
    for sequence in states:
        for u, y in pairwise(sequence):
            G, C, energy, count = G + np.outer(u, u), C + np.outer(y, u), energy + y @ y, count + 1
    return G / count, C / count, energy / count


def entries(sums, scale):
    """The distinct entries of Σuuᵀ, all of Σyuᵀ and the energy, at every length: one row of features."""
    upper = np.triu_indices(2)
    return np.concatenate([[*s.G[upper], *s.C.ravel(), s.energy] for s in sums.values()]) / scale


def draw(sampler, modes, N, name, lengths=(1, 3), repetitions=2500):
    rng = generator(11, name, N)
    return np.array([entries(sampler(rng, modes, S, N, lengths, NUMPY), N) for _ in range(repetitions)])


def worst_z(first, second):
    """The largest difference of means, variances and covariances, in standard errors."""

    def statistics(sample):
        centred = sample - sample.mean(axis=0)
        rows, columns = np.triu_indices(sample.shape[1])
        products = centred[:, rows] * centred[:, columns]
        return [(x.mean(axis=0), x.std(axis=0, ddof=1) / np.sqrt(len(x))) for x in (sample, products)]

    return max(
        float(np.max(np.abs(a - b) / np.hypot(da, db)))
        for (a, da), (b, db) in zip(statistics(first), statistics(second), strict=True)
    )


@pytest.mark.parametrize("N", [7, 60])
@pytest.mark.parametrize("modes", [STATIONARY, FAR], ids=["stationary", "far"])
def test_chain_and_simulation_agree_in_law(modes, N):
    direct, chain = draw(direct_sums, modes, N, "direct"), draw(gram_sums, modes, N, "chain")
    assert worst_z(direct, chain) < 5
    for sample in (direct, chain):  # and both have the population's mean
        for at, P in enumerate((1, 3)):
            problem = sketched_problem(modes, S, P)
            expected = P * np.concatenate([problem.G[np.triu_indices(2)], problem.C.ravel()])
            block = sample[:, 8 * at : 8 * at + 7]
            error = block.std(axis=0, ddof=1) / np.sqrt(len(block))
            assert np.all(np.abs(block.mean(axis=0) - expected) < 5 * error)


@pytest.mark.parametrize("shift", [-1, 1, 3])
def test_a_wrong_degree_of_freedom_is_refused(monkeypatch, shift):
    direct = draw(direct_sums, FAR, 7, "direct")
    right = gram.bartlett_diagonal
    monkeypatch.setattr(gram, "bartlett_diagonal", lambda rng, n, d: right(rng, n + shift, d))
    assert worst_z(direct, draw(gram_sums, FAR, 7, "chain")) > 5


def test_second_moments_against_statsmodels():
    """Stationary trajectories against the theory of VARProcess and the sequences of varsim."""
    A, noise = np.diag(STATIONARY.a), np.diag(STATIONARY.sigma_xi)
    theory = VARProcess(A[None], None, noise).acf(1)  # Γ(0), and Γ(1) = E[x_{p+1} x_pᵀ]
    N, P = 3000, 6
    ours = trajectories(STATIONARY, N, P, seed=2)
    with warnings.catch_warnings():  # newer releases call the argument rng
        warnings.simplefilter("ignore", FutureWarning)
        theirs = varsim(A[None], None, noise, steps=P + 41, seed=3, nsimulations=N)[:, -(P + 1) :]

    def per_trajectory(x):
        same = np.einsum("npi,npj->nij", x[:, :-1], x[:, :-1]) / P
        lag = np.einsum("npi,npj->nij", x[:, 1:], x[:, :-1]) / P
        return np.stack([same, lag], axis=1)

    here, there = per_trajectory(ours), per_trajectory(theirs)
    error = here.std(axis=0, ddof=1) / np.sqrt(N)
    assert np.all(np.abs(here.mean(axis=0) - theory) < 5 * error)
    assert np.all(np.abs(here.mean(axis=0) - there.mean(axis=0)) < 5 * np.sqrt(2) * error)
    moments = moments_of(theirs, S=S)
    np.testing.assert_allclose(moments.C, S @ there.mean(axis=0)[1] @ S.T, rtol=1e-10)


def test_positions_of_a_trajectory():
    """Every position's covariance and every lag-one covariance, far from stationarity."""
    N = 20_000
    x = trajectories(FAR, N, 4, seed=5)
    for p in range(5):
        products = x[:, p, :, None] * x[:, p, None, :]
        error = products.std(axis=0, ddof=1) / np.sqrt(N)
        assert np.all(np.abs(products.mean(axis=0) - np.diag(FAR.covariance(p))) <= 5 * error)
    products = x[:, 3, :, None] * x[:, 2, None, :]
    error = products.std(axis=0, ddof=1) / np.sqrt(N)
    assert np.all(np.abs(products.mean(axis=0) - np.diag(FAR.a * FAR.covariance(2))) <= 5 * error)


def test_sampler_gives_the_data_that_streaming_sees():
    modes = PRESETS["regime2"].modes(128)
    sketch = gaussian_sketch(6, 128)
    N, P = block_rows(128) + 77, 5
    latent = trajectories(modes, N, P, seed=4, key=("x", 1))
    assert latent.shape == (N, P + 1, 128)
    seen = trajectories(modes, N, P, S=sketch, seed=4, key=("x", 1))
    np.testing.assert_allclose(seen, latent @ sketch.T, rtol=1e-10, atol=1e-13)
    streamed = sample_moments(modes, sketch, N, P, seed=4, key=("x", 1), drawing="direct")
    mine = moments_of(seen)
    np.testing.assert_allclose(streamed.G, mine.G, rtol=0, atol=1e-13)  # rounding of NP terms of size 1e-1
    np.testing.assert_allclose(streamed.C, mine.C, rtol=0, atol=1e-13)
    assert streamed.energy == pytest.approx(mine.energy, rel=1e-12)
    again = np.empty_like(latent)
    for rows, positions, states in trajectory_chunks(modes, N, P, seed=4, key=("x", 1), positions=4):
        again[rows, positions] = states
    assert np.array_equal(again, latent)


def test_moments_of_your_own_sequences():
    rng = np.random.default_rng(0)
    square = rng.standard_normal((5, 4, 3))
    ragged = [rng.standard_normal((length, 3)) for length in (2, 7, 4)]
    for data, reference in (
        (square, square),
        (list(square), square),
        (iter(ragged), ragged),
        ([square, *ragged], [*square, *ragged]),
    ):
        moments, (G, C, energy) = moments_of(data), naive(reference)
        np.testing.assert_allclose(moments.G, G, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(moments.C, C, rtol=1e-12, atol=1e-14)
        assert moments.energy == pytest.approx(energy, rel=1e-12)
    np.testing.assert_allclose(moments_of(square, S=S).C, S @ naive(square)[1] @ S.T, rtol=1e-12)
    whole_numbers = np.arange(12).reshape(2, 3, 2)
    np.testing.assert_allclose(moments_of(whole_numbers).G, naive(whole_numbers)[0])


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (np.zeros((2, 1, 3)), "two states"),
        ([np.zeros((3, 2)), np.zeros((3, 4))], "features"),
        ([], "at least one"),
        (np.full((1, 3, 2), np.nan), "finite"),
        (["words"], "real numbers"),
        ([np.zeros((2, 2), dtype=complex)], "real numbers"),
    ],
)
def test_bad_sequences_are_refused(data, rule):
    with pytest.raises(InputError, match=rule):
        moments_of(data)


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"points": []}, "empty"),
        ({"points": [(0, 3)]}, "N must"),
        ({"points": [(5, 2.5)]}, "P must"),
        ({"drawing": "magic"}, "drawing"),
        ({"drawing": "gram", "points": [(5, 3)]}, "2d"),
        ({"S": np.ones((2, 5))}, "S must"),
        ({"workers": 0}, "workers"),
    ],
)
def test_bad_requests_are_refused(change, rule):
    request = {"modes": FAR, "S": S, "points": [(20, 3)]} | change
    with pytest.raises(InputError, match=rule):
        nested_moments(**request)


POINTS = [(300, 9), (300, 2), (1000, 4), (1000, 9), (5200, 4)]


def same(first, second):
    return first.keys() == second.keys() and all(
        np.array_equal(first[k].G, second[k].G)
        and np.array_equal(first[k].C, second[k].C)
        and first[k].energy == second[k].energy
        for k in first
    )


@pytest.mark.parametrize("drawing", ["auto", "direct", "gram"])
def test_bits_do_not_depend_on_workers_memory_or_company(drawing):
    modes, sketch = PRESETS["regime2"].modes(96), gaussian_sketch(8, 96)
    once = nested_moments(modes, sketch, POINTS, seed=3, drawing=drawing)
    assert set(once) == set(POINTS)
    for workers, memory in ((2, 2**30), (3, 1), (4, 3 * 2**20)):
        again = nested_moments(modes, sketch, POINTS, seed=3, drawing=drawing, workers=workers, memory=memory)
        assert same(once, again)
    # The first N of a family are a data set by themselves, at any of its lengths.
    alone = nested_moments(modes, sketch, [(300, 2)], seed=3, drawing=drawing)
    assert same(alone, {(300, 2): once[300, 2]})
    other = nested_moments(modes, sketch, POINTS, seed=4, drawing=drawing)
    assert not same(once, other)


def test_bits_do_not_depend_on_blas_threads():
    code = (
        "import hashlib; from seqlaw import PRESETS; from seqlaw.model import gaussian_sketch;"
        "from seqlaw.methods.moments import nested_moments;"
        "m, S = PRESETS['regime2'].modes(192), gaussian_sketch(64, 192);"
        "runs = [nested_moments(m, S, [(700, 3)], drawing=k)[700, 3] for k in ('direct', 'gram')];"
        "print(hashlib.sha256(b''.join(r.G.tobytes() + r.C.tobytes() for r in runs)).hexdigest())"
    )
    seen = set()
    for threads in ("1", "2"):
        env = os.environ | {"OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        env["PYTHONPATH"] = os.pathsep.join(sys.path)
        done = subprocess.run(
            [sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True
        )
        seen.add(done.stdout)
    assert len(seen) == 1


def test_numba_gives_the_bits_of_numpy():
    pytest.importorskip("numba")
    fast = compiled()
    assert fast is not None
    modes, sketch = PRESETS["regime1"].modes(40), gaussian_sketch(5, 40)
    for sums, N in ((direct_sums, 333), (gram_sums, 90)):
        pair = [sums(generator(1, "bits"), modes, sketch, N, (2, 5), loops) for loops in (NUMPY, fast)]
        assert all(
            np.array_equal(pair[0][P].G, pair[1][P].G)
            and np.array_equal(pair[0][P].C, pair[1][P].C)
            and pair[0][P].energy == pair[1][P].energy
            for P in (2, 5)
        )


def test_nested_blocks_add_and_run_no_longer_than_needed():
    """At fixed N·P the wide block is short: the work is the sum, not the product, of the extremes."""
    points = [(4, 2**14), (2**14, 4)]
    moments = nested_moments(FAR, S, points, seed=0, drawing="direct")
    for (_, P), found in moments.items():
        problem = sketched_problem(FAR, S, P)
        np.testing.assert_allclose(found.G, problem.G, rtol=0.2, atol=0.2 * np.abs(problem.G).max())


def test_memory_does_not_grow_with_trajectories():
    modes, sketch = PRESETS["regime2"].modes(8), gaussian_sketch(2, 8)
    peaks = []
    for N in (20_000, 200_000):
        tracemalloc.start()
        sample_moments(modes, sketch, N, 2, drawing="direct")
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.1 * peaks[0]
    assert peaks[1] < 8 * 4 * block_rows(8) * 8 + 2**20


def test_modes_without_innovation_are_simulated():
    quiet = Modes(a=[0.5, 0.0, 0.2], sigma_xi=[0.0, 0.0, 1.0], sigma_0=[1.0, 0.0, 1.0])
    found = sample_moments(quiet, S, 10**4, 30)
    problem = sketched_problem(quiet, S, 30)
    np.testing.assert_allclose(found.G, problem.G, atol=0.02 * np.abs(problem.G).max())
    with pytest.raises(InputError, match="innovation"):
        sample_moments(quiet, S, 10**4, 30, drawing="gram")


def test_cheaper_drawing():
    assert cheaper_drawing(100, 128, 20)[0] == "direct"  # below 2d there is no chain
    assert cheaper_drawing(10**6, 128, 20)[0] == "gram"
    assert cheaper_drawing(4096, 2048, 100)[0] == "direct"
    for d, M in ((16, 4), (128, 20), (512, 64)):
        N = next(N for N in range(2 * d, 10**7) if cheaper_drawing(N, d, M)[0] == "gram")
        assert direct_cost(N, d, M) > gram_cost(d)
        assert N == 2 * d or direct_cost(N - 1, d, M) <= gram_cost(d)
