"""Lorenz-96, a chaotic system that is neither linear nor Gaussian: longer or more, forecast and judged.

Runs anywhere in seconds: the sequences are made on the spot.
    python examples/forecast_lorenz96.py
"""

from __future__ import annotations

import numpy as np
from judging import report

from seqlaw import forecast


def lorenz96(sequences, states, *, D=40, force=8.0, dt=0.05, seed=0):
    """dx_j/dt = (x_{j+1} - x_{j-2}) x_{j-1} - x_j + F, by Runge–Kutta, after 20 units of time."""
    x = force + np.random.default_rng(seed).standard_normal((sequences, D))

    def slope(x):
        return (np.roll(x, -1, 1) - np.roll(x, 2, 1)) * np.roll(x, 1, 1) - x + force

    kept = []
    for step in range(400 + states):
        a = slope(x)
        b = slope(x + dt / 2 * a)
        c = slope(x + dt / 2 * b)
        d = slope(x + dt * c)
        x = x + dt / 6 * (a + 2 * b + 2 * c + d)
        if step >= 400:
            kept.append(x)
    return np.stack(kept, axis=1)


def main() -> None:
    X = lorenz96(1200, 40)
    print(forecast(X, tokens=1600))
    pilot, rest, test = X[:300], X[300:960], X[960:]
    print("\nForecast from 300 sequences, judged on subsets of 660 others (the same test for both):\n")
    answer = forecast(pilot, test=test)
    report(answer, rest, test, (400, 600), pilot.mean(axis=(0, 1)))


if __name__ == "__main__":
    main()
