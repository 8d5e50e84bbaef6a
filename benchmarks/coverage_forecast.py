"""How often the 90 % intervals of `forecast` hold the truth, and how often a length that is named is best.

Pilots of five kinds of data, forecast at twice and at ten times the pilot. The truth is the mean loss of 20
students, each trained on fresh sequences and centred with their own mean, on 48,000 fresh test sequences. No
code of the forecast is used for it but the filter of gradient descent.

python benchmarks/coverage_forecast.py 40 1000     (pilots of each kind, first seed; 40 take some minutes)
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, fields

import numpy as np
from scipy.signal import lfilter

from seqlaw import forecast
from seqlaw.model import Spectrum

P, SHORT, STUDENTS, SEQUENCES = 16, 8, 20, 80
FAR = (2, 10)
"""Times the pilot."""


class Noisy:
    """Noisy states: a network of tanh units with noise in every step, from stationarity."""

    def __init__(self, seed, D=24):
        self.D, self.W = D, np.random.default_rng(seed).standard_normal((D, D)) * 1.1 / np.sqrt(D)

    def draw(self, N, rng):
        x, kept = rng.standard_normal((N, self.D)), []
        for step in range(20 + P + 1):
            x = np.tanh(x @ self.W.T) + 0.5 * rng.standard_normal(x.shape)
            if step >= 20:
                kept.append(x)
        return np.stack(kept, axis=1)


class Smooth:
    """A smooth, nearly deterministic system: Lorenz-96 in small steps of time, by Runge-Kutta."""

    def __init__(self, seed, D=12, dt=0.02):
        self.D, self.dt, self.force = D, dt, np.random.default_rng(seed).uniform(7, 9)

    def slope(self, x):
        return (np.roll(x, -1, 1) - np.roll(x, 2, 1)) * np.roll(x, 1, 1) - x + self.force

    def draw(self, N, rng):
        x, kept = 2 + 3 * rng.standard_normal((N, self.D)), []
        for step in range(60 + P + 1):
            dt = self.dt if step >= 60 else 0.05
            a = self.slope(x)
            b = self.slope(x + dt / 2 * a)
            c = self.slope(x + dt / 2 * b)
            x = x + dt / 6 * (a + 2 * b + 2 * c + self.slope(x + dt * c))
            if step >= 60:
                kept.append(x)
        return np.stack(kept, axis=1)


class Oscillators:
    """Many smooth features of two oscillators: the variance of the noise alone is a tenth of V here."""

    def __init__(self, seed, D=48, oscillators=2):
        rng = np.random.default_rng(seed)
        self.D, self.speed = D, rng.uniform(0.1, 0.6, oscillators)
        self.A = 0.7 * rng.standard_normal((D, 2 * oscillators))

    def draw(self, N, rng):
        shape = (N, 1, self.speed.size)
        size, phase = rng.lognormal(0, 0.3, shape), rng.uniform(0, 2 * np.pi, shape)
        speed = self.speed * (1 + 0.1 * rng.standard_normal(shape))
        angle = phase + speed * np.arange(P + 1)[None, :, None]
        z = np.concatenate([size * np.cos(angle), size * np.sin(angle)], axis=2)
        return np.tanh(z @ self.A.T) + 0.003 * rng.standard_normal((N, P + 1, self.D))


class Recording:
    """One long recording: slow and fast linear modes, half of them remembered for some ten states."""

    D = 12

    def __init__(self, seed):
        rng = np.random.default_rng(seed)
        self.a, self.Q = (
            rng.uniform(0.2, 0.93, self.D),
            np.linalg.qr(rng.standard_normal((self.D, self.D)))[0],
        )

    def record(self, states, rng):
        noise = rng.standard_normal((states + 200, self.D)) + 0.7 * rng.standard_exponential(
            (states + 200, 1)
        )
        modes = [lfilter([1.0], [1.0, -a], noise[:, j]) for j, a in enumerate(self.a)]
        return np.stack(modes, axis=1)[200:] @ self.Q.T

    def draw(self, N, rng):
        """Windows in blocks of three with one left out, as the forecast cuts them."""
        cut = self.record((N + N // 3 + 1) * (P + 1), rng).reshape(-1, P + 1, self.D)
        return cut[np.arange(len(cut)) % 4 < 3][:N]


class Teacher:
    """A linear teacher whose transition is not symmetric; the first states are larger than the later ones."""

    def __init__(self, seed, D=20):
        rng = np.random.default_rng(seed)
        self.D, odd = D, rng.standard_normal((D, D)) / np.sqrt(D)
        self.A = np.diag(np.linspace(0.9, 0.1, D)) + 0.2 * (odd - odd.T)
        self.noise, self.Q = np.arange(1, D + 1) ** -0.6, np.linalg.qr(rng.standard_normal((D, D)))[0]

    def draw(self, N, rng):
        x = 2 * rng.standard_normal((N, self.D)) * self.noise
        kept = [x]
        for _ in range(P):
            x = x @ self.A.T + rng.standard_normal(x.shape) * self.noise
            kept.append(x)
        return np.stack(kept, axis=1) @ self.Q.T


KINDS = {
    "noisy states": Noisy,
    "smooth system": Smooth,
    "smooth features": Oscillators,
    "one recording": Recording,
    "linear teacher": Teacher,
}


@dataclass
class Sums:
    """Means of u, y, u uᵀ, y uᵀ and ‖y‖² over the first transitions of sequences."""

    u: np.ndarray
    y: np.ndarray
    G: np.ndarray
    C: np.ndarray
    energy: float

    @classmethod
    def of(cls, x, length):
        D = x.shape[2]
        u, y = x[:, :length].reshape(-1, D), x[:, 1 : length + 1].reshape(-1, D)
        return cls(u.mean(0), y.mean(0), u.T @ u / len(u), y.T @ u / len(u), float(np.mean(np.sum(y * y, 1))))

    def about(self, m):
        """G, C and energy about a centre."""
        G = self.G - np.outer(self.u, m) - np.outer(m, self.u) + np.outer(m, m)
        C = self.C - np.outer(self.y, m) - np.outer(m, self.u) + np.outer(m, m)
        return G, C, self.energy - 2 * m @ self.y + m @ m


class Truth:
    """The mean loss of students of fresh sequences of one system, at any step size."""

    def __init__(self, system, seed):
        self.system, self.rng, self.students = system, np.random.default_rng(seed), {}
        parts = [Sums.of(system.draw(6000, self.rng), P) for _ in range(8)]
        self.test = Sums(*(np.mean([getattr(part, f.name) for part in parts], axis=0) for f in fields(Sums)))

    def loss(self, N, length, schedule):
        if (N, length) not in self.students:
            made = []
            for _ in range(STUDENTS):
                x = self.system.draw(N, self.rng)
                made.append((x[:, : length + 1].mean(axis=(0, 1)), Sums.of(x, length)))
            self.students[N, length] = made
        losses = []
        for mean, sums in self.students[N, length]:
            G, C, _ = sums.about(mean)
            spectrum = Spectrum.of(G)
            B = spectrum.response(C, spectrum.safeguard(schedule))
            G, C, energy = self.test.about(mean)
            losses.append((energy - 2 * np.sum(B * C) + np.sum((B @ G) * B)) / 2)
        return float(np.mean(losses))

    def least(self, N, length, schedule):
        """At the best of many steps, which need not be the one that the forecast chose on its pilot."""
        steps = schedule.gamma * 2.0 ** np.arange(-6, 9)
        return min(self.loss(N, length, schedule.scaled(gamma)) for gamma in steps.tolist())


def campaign(kind, pilots, first, tested, *, say=lambda line: None):
    """Of one kind: (forecast, low, high, truth) by distance, and (named length, best length) of each naming.

    `tested`: fresh test sequences that are given; 0: the forecast holds out a fifth.
    """
    system = KINDS[kind](first)
    truth, found, named = Truth(system, first + 1), {far: [] for far in FAR}, []
    for k in range(pilots):
        rng = np.random.default_rng([first, k])
        if kind == "one recording":
            X, how = system.record(SEQUENCES * (P + 1), rng), {"window": P + 1}
        else:
            X, how = system.draw(SEQUENCES, rng), {}
        if tested:
            how["test"] = system.record(tested * (P + 1), rng) if how else system.draw(tested, rng)
        n = forecast(X, lengths=[P], steps=100, **how).n
        for times in (1 / 8, *FAR):
            answer = forecast(X, lengths=[SHORT, P], tokens=int(times * n) * P, seed=k, **how)
            schedules = {law.P: law.schedule for law in answer.curves}
            if times in FAR:
                (row,) = (row for row in answer.rows if row.P == P)
                found[times].append((row.loss, row.low, row.high, truth.loss(row.N, P, schedules[P])))
                say(f"{kind} {k} x{times}: " + " ".join(f"{x:.5g}" for x in found[times][-1]))
            if answer.best.P:
                losses = {row.P: truth.least(row.N, row.P, schedules[row.P]) for row in answer.rows}
                named.append((answer.best.P, min(losses, key=losses.get)))
    return found, named


def covered(found):
    """Of each forecast, whether its interval holds the truth."""
    return [low <= truth <= high for _, low, high, truth in found]


def main() -> None:
    pilots, first = (int(x) for x in (*sys.argv[1:], *("40", "1000")[len(sys.argv) - 1 :]))
    for tested in (0, 1000):
        print(f"\n{'A fifth is held out' if not tested else f'Tested on {tested} sequences of their own'}\n")
        print("| data | covered at 2n | at 10n | forecast/truth at 10n | half-width | named | wrong |")
        print("|---|---|---|---|---|---|---|")
        total, said = dict.fromkeys(FAR, 0), []
        for kind in KINDS:
            found, named = campaign(kind, pilots, first, tested)
            counts = {far: sum(covered(found[far])) for far in FAR}
            total = {far: total[far] + counts[far] for far in FAR}
            said += named
            table = np.array(found[10])
            ratio, width = table[:, 0] / table[:, 3], np.median((table[:, 2] - table[:, 1]) / 2 / table[:, 0])
            print(
                f"| {kind} | {counts[2]} of {pilots} | {counts[10]} of {pilots} | {ratio.mean():.3f} "
                f"± {ratio.std():.3f} | {width:.1%} | {len(named)} | {sum(a != b for a, b in named)} |",
                flush=True,
            )
        count = pilots * len(KINDS)
        shares = f"{total[2] / count:.1%} | {total[10] / count:.1%}"
        print(f"| all | {shares} | | | {len(said)} | {sum(a != b for a, b in said)} |")


if __name__ == "__main__":
    main()
