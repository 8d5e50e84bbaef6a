"""Random settings and a simulation of their own, for the errors that the closed laws state.

The simulation draws trajectories in blocks and takes the spectral filter; it shares
nothing with the sampled method. The error that is checked is the one that is printed.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np
from numpy.polynomial import Chebyshev

from recursions import moment_recursion
from seqlaw import WSD, BlockDecay, Constant, Cosine, Lengths, Setting, Teacher
from seqlaw.methods.ask import risks
from seqlaw.methods.method import Draws
from seqlaw.model.pieces import Part, stretches
from seqlaw.model.sketch import gaussian_sketch, sketched_problem

KINDS = (Constant, Cosine, WSD, BlockDecay)


class Checked(NamedTuple):
    """One answer against its simulation: relative numbers, of the law's."""

    ratio: float
    """The simulated one over the law's."""
    chance: float
    """Its standard error."""
    stated: float
    """The printed error; infinite where the answer says that it may be much too low."""

    @property
    def covered(self) -> bool:
        return abs(self.ratio - 1) <= self.stated + 2 * self.chance


def random_teacher(rng):
    """Power laws far beyond the presets, the start up to a thousand times the innovations or less."""
    return Teacher(
        alpha=rng.uniform(1.1, 2.5),
        theta=rng.uniform(1.1, 4.0),
        r=rng.uniform(0.05, 0.48),
        rho=rng.uniform(0.2, 0.97),
        c_xi=10 ** rng.uniform(-2, 0),
        c_0=10 ** rng.uniform(-2.5, 0.7),
    )


def random_setting(rng, sizes):
    """`sizes(rng, M)` has N, P and the longest test; the step lies between 3 % and 4 times the safeguard."""
    teacher, M = random_teacher(rng), round(float(np.exp(rng.uniform(np.log(8), np.log(64)))))
    d = int(rng.integers(round(1.5 * M), 4 * M + 1))
    N, P, longest = sizes(rng, M)
    tested = None if rng.random() < 0.6 else int(np.exp(rng.uniform(0, np.log(longest))))
    kind, L = KINDS[rng.integers(4)], int(np.exp(rng.uniform(np.log(60), np.log(10**4))))
    plain = Setting(
        teacher=teacher, M=M, N=N, P=P, d=d, schedule=Constant(gamma=0.1, L=L), eval_length=tested
    )
    first = plain.P.lengths[0] if isinstance(plain.P, Lengths) else plain.P
    largest = 0.5 / float(np.max(averaged_variance(plain, first)))
    gamma = largest * 10 ** rng.uniform(-1.5, 0.6)
    return Setting(teacher=teacher, M=M, N=N, P=P, d=d, schedule=kind(gamma=gamma, L=L), eval_length=tested)


def averaged_variance(setting, P):
    return np.mean(setting.modes.covariance(np.arange(P)), axis=0)


def few(rng, M):
    """At most nine sequences, of up to 64."""
    return int(rng.integers(1, 10)), int(np.exp(rng.uniform(0, np.log(64.5)))), 64


def trajectories(rng, modes, S, count, N, P):
    """Ĝ and Ĉ of `count` data sets."""
    M, d = S.shape
    u = np.empty((count, N, P + 1, M))
    x = rng.standard_normal((count, N, d)) * np.sqrt(modes.sigma_0)
    u[:, :, 0] = x @ S.T
    for p in range(P):
        x = modes.a * x + np.sqrt(modes.sigma_xi) * rng.standard_normal((count, N, d))
        u[:, :, p + 1] = x @ S.T
    inputs, outputs = (u[:, :, part].reshape(count, N * P, M) for part in (slice(None, -1), slice(1, None)))
    return np.swapaxes(inputs, 1, 2) @ inputs / (N * P), np.swapaxes(outputs, 1, 2) @ inputs / (N * P)


def filters_of(schedule):
    """ψ and g at γs up to 0.95: log ψ(s)/s through 48 Chebyshev points, as near as rounding."""
    most = 0.95 / schedule.gamma
    nodes = most * (1 - np.cos(np.pi * (np.arange(48) + 0.5) / 48)) / 2
    line = Chebyshev.fit(nodes, schedule.log_residual(nodes) / nodes, 47, domain=[0, most])

    def at(s):
        slope = line(s)
        return np.exp(s * slope), np.where(s > 0, -np.expm1(s * slope) / np.maximum(s, 1e-300), -slope)

    return at


def trained(setting, S, count, rng, steps=None):
    """The excess of `count` students, by the spectral filter; the peaks are `steps(norms)` where given.

    ψ and g depend on γ times the spectrum: one call has all of them.
    """
    modes, schedule = setting.modes, setting.schedule
    test = sketched_problem(modes, S, setting.test_length)
    most = max(1, int(1e6 / (setting.N * (setting.P + 1) * max(setting.M, modes.d // 4))))
    found, filters_at = [], filters_of(schedule)
    for start in range(0, count, most):
        G, C = trajectories(rng, modes, S, min(most, count - start), setting.N, setting.P)
        mu, U = np.linalg.eigh(G)
        mu = np.clip(mu, 0, None)
        peaks = np.minimum(schedule.gamma, 0.5 / mu[:, -1]) if steps is None else steps(mu[:, -1])
        scale = (peaks / schedule.gamma)[:, None]
        B = (C @ U * (scale * filters_at(scale * mu)[1])[:, None]) @ np.swapaxes(U, 1, 2)
        left = B - test.B_star
        found.append(np.sum((left @ test.G) * left, axis=(1, 2)) / 2)
    return np.concatenate(found), test.approx


def stated(risk, name="reducible"):
    """The number that is printed beside a term."""
    found = re.search(r"relative error (?:about|above) (?:[^=]*= )?([0-9.e+-]+)", risk.stated[name])
    return float(found[1]) if found else (0.0 if "exact" in risk.stated[name] else np.inf)


def data_sets(setting, seconds):
    """How many take about so long."""
    M, P = setting.M, setting.P
    pairs = zip(P.counts, P.lengths, strict=True) if isinstance(P, Lengths) else [(setting.N, P)]
    each = sum(1.5e-8 * N * (length + 1) * setting.modes.d + 3e-9 * M**3 + 2e-5 for N, length in pairs)
    return int(np.clip(seconds / each, 100, 4000))


def exact_on(setting, seed, sketches=2, seconds=2.0, simulate=trained):
    """The exact method against data sets on the same sketches."""
    [law] = risks([setting], method="exact", draws=Draws(sketches=sketches, seed=seed))
    rng, means, chances = np.random.default_rng([seed, 1]), [], []
    for k in range(sketches):
        S = gaussian_sketch(setting.M, setting.modes.d, seed=seed, index=k)
        excess, approx = simulate(setting, S, data_sets(setting, seconds / sketches), rng)
        means.append(approx + excess.mean())
        chances.append(excess.std(ddof=1) / np.sqrt(len(excess)))
    chance = np.sqrt(np.sum(np.square(chances))) / sketches
    return Checked(np.mean(means) / law.reducible, chance / law.reducible, stated(law))


def equivalent_on(setting, seed, sketches=100, seconds=2.0):
    """The equivalent method against data sets on many sketches."""
    [law] = risks([setting], method="equivalent")
    rng, means = np.random.default_rng([seed, 2]), []
    each = max(4, data_sets(setting, seconds) // sketches)
    for k in range(sketches):
        S = gaussian_sketch(setting.M, setting.modes.d, seed=seed, index=k)
        excess, approx = trained(setting, S, each, rng)
        means.append(approx + excess.mean())
    chance = np.std(means, ddof=1) / np.sqrt(sketches)
    return Checked(np.mean(means) / law.reducible, chance / law.reducible, stated(law))


def phased(rng, M):
    """Two or three phases of different lengths, 10 to 400 tokens a dimension in all."""
    count = int(rng.integers(2, 4))
    lengths = tuple(rng.choice([1, 2, 3, 5, 8, 16, 32], size=count, replace=False).tolist())
    shares = rng.dirichlet(np.full(count, 3.0)) * 0.85 + 0.15 / count
    phases = Lengths(lengths, tuple(shares.tolist()), phases=True)
    N = max(phases.fewest, round(M * np.exp(rng.uniform(np.log(10), np.log(400))) / phases.mean))
    return N, phases, 64


def trained_in_phases(setting, S, count, rng):
    """The excess of `count` students, each phase on data of its own."""
    modes, schedule, P = setting.modes, setting.schedule, setting.P
    test, M = sketched_problem(modes, S, setting.test_length), setting.M
    spectra, norms = [], []
    most = max(1, int(3e6 / max(n * (length + 1) for n, length in zip(P.counts, P.lengths, strict=True)) / M))
    for n, length in zip(P.counts, P.lengths, strict=True):
        parts = [
            trajectories(rng, modes, S, min(most, count - start), n, length)
            for start in range(0, count, most)
        ]
        G, C = (np.concatenate(part) for part in zip(*parts, strict=True))
        mu, U = np.linalg.eigh(G)
        spectra.append((np.clip(mu, 1e-280, None), U, C))
        norms.append(mu[:, -1])
    peaks = np.minimum(schedule.gamma, 0.5 / np.max(norms, axis=0))
    scale = (peaks / schedule.gamma)[:, None]
    runs = stretches(schedule, P.steps(schedule.L), 1.02, 0.5 / schedule.gamma)
    B = np.zeros((count, M, M))
    for (mu, U, C), run in zip(spectra, runs, strict=True):
        psi, g = (found.reshape(mu.shape) for found in Part(run).both((scale * mu).ravel()))
        B = (B @ U * psi[:, None] + C @ U * (scale * g)[:, None]) @ np.swapaxes(U, 1, 2)
    left = B - test.B_star
    return np.sum((left @ test.G) * left, axis=(1, 2)) / 2, test.approx


def random_pass(rng):
    """One pass short enough for the whole recursion, from far below the safeguard to beyond it."""
    M = int(rng.integers(6, 17))
    kind, L = KINDS[rng.integers(4)], int(np.exp(rng.uniform(np.log(15), np.log(200))))
    return Setting(
        teacher=random_teacher(rng),
        M=M,
        P=int(rng.integers(2, 9)),
        d=int(rng.integers(round(1.5 * M), 4 * M + 1)),
        batch=int(np.exp(rng.uniform(0, np.log(33)))),
        schedule=kind(gamma=10 ** rng.uniform(-2.5, 1.5), L=L),
        eval_length=None if rng.random() < 0.6 else int(np.exp(rng.uniform(0, np.log(32)))),
    )


def one_pass_on(setting, seed):
    """The variance of the exact method in one pass against the whole recursion; no chance in it."""
    [law] = risks([setting], method="exact", draws=Draws(sketches=1, seed=seed))
    S = gaussian_sketch(setting.M, setting.modes.d, seed=seed, index=0)
    problem, test = (sketched_problem(setting.modes, S, P) for P in (setting.P, setting.test_length))
    steps = setting.schedule.scaled(law.diagnostics["gamma"]).steps()
    truth = np.sum(moment_recursion(problem, setting.batch, steps) * test.G) / 2
    return Checked(truth / law.variance, 0.0, stated(law, "variance"))


def campaign(family, count, seed, seconds=2.0):
    """The answers of `count` settings of a family, by name of the method."""
    rng, found = np.random.default_rng(seed), {}
    for k in range(count):
        number = 1000 * seed + k
        if family == "one-pass":
            answers = {"exact, variance of one pass": one_pass_on(random_pass(rng), number)}
        elif family == "phases":
            setting = random_setting(rng, phased)
            answers = {"exact, phases": exact_on(setting, number, 1, seconds, trained_in_phases)}
        else:
            setting = random_setting(rng, few)
            answers = {"exact, N <= 9": exact_on(setting, number, 2, seconds)}
            answers["equivalent, N <= 9"] = equivalent_on(setting, number, 100, seconds)
        for name, one in answers.items():
            found.setdefault(name, []).append(one)
    return found
