"""A judge that shares no code with the forecast: students trained on subsets of other sequences."""

from __future__ import annotations

import numpy as np

from seqlaw.model import Spectrum


def measured_loss(rest, test, N, P, schedule, mean, *, whole=None, repetitions=24, seed=0):
    """Mean held-out loss of students of N sequences drawn from `rest`, tested at the length of `test`.

    `whole` labels the groups of `rest`: they are then drawn one after another.
    """
    rng, losses = np.random.default_rng(seed), []
    u, y = (test[:, :-1] - mean).reshape(-1, test.shape[2]), (test[:, 1:] - mean).reshape(-1, test.shape[2])
    for _ in range(repetitions):
        order = rng.permutation(len(rest))
        if whole is not None:
            order = order[np.argsort(rng.permutation(whole.max() + 1)[whole[order]], kind="stable")]
        x = rest[order[:N], : P + 1] - mean
        a, b = x[:, :-1].reshape(-1, x.shape[2]), x[:, 1:].reshape(-1, x.shape[2])
        spectrum = Spectrum.of(a.T @ a / len(a))
        B = spectrum.response(b.T @ a / len(a), spectrum.safeguard(schedule))
        losses.append(0.5 * np.mean(np.sum((y - u @ B.T) ** 2, axis=1)))
    return float(np.mean(losses)), float(np.std(losses, ddof=1) / np.sqrt(repetitions))


def report(answer, rest, test, counts, mean, *, whole=None):
    """One line a length and a number of sequences: the forecast of a pilot over what others then measured."""
    print("| P | N | tokens per learned dimension | measured | forecast | ratio |\n|---|---|---|---|---|---|")
    for law in answer.curves:
        for N in counts:
            loss, se = measured_loss(rest, test, N, law.P, law.schedule, mean, whole=whole)
            told = f"{law.at(N):.4g} | {law.at(N) / loss:.4f}" if law.forecast else "none | "
            chance = f"± {se:.2g}" if N < len(rest) else "(all there are)"
            print(f"| {law.P} | {N} | {law.tokens(N):.1f} | {loss:.4g} {chance} | {told} |")
