"""The forecast against what it forecasts, at size: a chaotic system, and teachers that do not commute."""

import sys
from pathlib import Path

import numpy as np
import pytest

from seqlaw import PRESETS, forecast

sys.path.insert(0, str(Path(__file__).parent.parent / "examples"))
from forecast_lorenz96 import lorenz96
from judging import measured_loss

pytestmark = pytest.mark.slow


class Turned:
    """A teacher of a regime with a transition that is not symmetric, seen in a random rotation."""

    def __init__(self, regime, D, rng):
        modes = PRESETS[regime].modes(D)
        odd = rng.standard_normal((D, D))
        odd = (odd - odd.T) / np.sqrt(2 * D)
        self.A = np.diag(modes.a) + 0.3 * odd * np.sqrt(np.outer(modes.a, modes.a))
        self.noise, self.start = np.sqrt(modes.sigma_xi), np.sqrt(modes.sigma_0)
        self.Q, _ = np.linalg.qr(rng.standard_normal((D, D)))

    def draw(self, N, states, rng):
        x = rng.standard_normal((N, self.start.size)) * self.start
        kept = [x]
        for _ in range(states - 1):
            x = x @ self.A.T + rng.standard_normal(x.shape) * self.noise
            kept.append(x)
        return np.stack(kept, axis=1) @ self.Q.T


def turned(regime):
    rng = np.random.default_rng(7)
    return Turned(regime, 48, rng).draw(1500, 33, rng)


DATA = {
    "lorenz96": lambda: lorenz96(1200, 40),
    "regime1": lambda: turned("regime1"),
    "regime2": lambda: turned("regime2"),
}


@pytest.mark.parametrize("steps", [500, 5000])
@pytest.mark.parametrize("name", DATA)
def test_within_two_per_cent_from_twenty_tokens_on(name, steps):
    """At every (N, P) of the overlap, and beyond the pilot on fresh sequences with the same test."""
    X = DATA[name]()
    answer = forecast(X, steps=steps)
    seen = [one for one in answer.overlap if one.tokens >= 20]
    assert len(seen) >= 12
    for one in seen:
        assert one.ratio == pytest.approx(1, abs=0.02), one
    third = len(X) // 3
    pilot, rest, test = X[:third], X[third : 2 * third + 100], X[2 * third + 100 :]
    small, mean = forecast(pilot, test=test, steps=steps), pilot.mean(axis=(0, 1))
    compared = 0
    for law in small.laws:
        if law.forecast:
            N = third + 60
            loss, _ = measured_loss(rest, test, N, law.P, small.schedule, mean, repetitions=8)
            # The pilot's own chance, some 0.5 % at P = 2, is in this ratio.
            assert law.at(N) / loss == pytest.approx(1, abs=0.02), (law.P, N)
            compared += 1
    assert compared >= 3


def test_accuracy_covers_and_a_length_that_is_named_is_best():
    """40 teachers: forecast over truth lies in the 90 % interval; named lengths are those of least truth."""
    covered, named, right = [], 0, 0
    for case in range(40):
        rng = np.random.default_rng(1000 + case)
        D, N, P = (int(rng.integers(low, high)) for low, high in ((10, 33), (150, 700), (8, 33)))
        teacher = Turned(("regime1", "regime2")[case % 2], D, rng)
        X, steps = teacher.draw(N, P + 1, rng), int(rng.choice([500, 5000]))
        test = teacher.draw(4000, P + 1, rng)

        def truth(answer, row, repetitions):
            fresh = teacher.draw(4 * row.N, row.P + 1, rng)  # noqa: B023  # called in this turn of the loop
            how = {"repetitions": repetitions, "seed": 0}
            return measured_loss(fresh, test, row.N, row.P, answer.schedule, 0.0, **how)[0]  # noqa: B023

        for share in (1, 8, 32):
            answer = forecast(X, steps=steps, seed=case, tokens=int(0.8 * N) * P // share)
            if share == 1 and answer.rows:
                row = min(answer.rows, key=lambda row: row.loss)
                ratio = row.loss / truth(answer, row, 4)
                covered.append(answer.accuracy.low <= ratio <= answer.accuracy.high)
            elif answer.best.P:
                losses = {row.P: truth(answer, row, 12) for row in answer.rows}
                named += 1
                right += min(losses, key=losses.get) == answer.best.P
    print(f"{sum(covered)} of {len(covered)} covered; {named} lengths named, {right} of them right")
    assert len(covered) >= 38
    assert np.mean(covered) >= 0.85
    assert named >= 8
    assert right >= 0.95 * named
