"""Which preconditioned descent is as good as Adam or Muon? Real optimizers beside the model of them.

python examples/optimizers.py          # three minutes; further arguments are numbers of steps

The model multiplies the slope by G^-p. The effective p is where the model has the optimizer's risk (approx +
bias + variance + cross at the test length). All steps are tuned on the first four sketches and used on the
other eight; ± is the standard error over those. The model's step is at most the safeguard's,
γ‖G‖^(1-p) = 1/2, and in the last column at most twice that.
"""

import sys
from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import numpy as np

from seqlaw import WSD, Adam, Muon, Setting
from seqlaw.methods.optimizers import FACTORS, batch_moments, repeated, trained
from seqlaw.model import Optimizer, gaussian_sketch, sketched_problem

M, D, TEST, LENGTHS = 32, 256, 512, (2, 32)
TUNING, SKETCHES = 4, 12
BATCHES = {"population": 0, "4096 tokens": 4096, "256 tokens": 256}
UNITS = {"adam": 0.4, "muon": 0.6}  # about max|B*| and ‖B*‖, the same for all sketches
POWERS = np.arange(0, 0.91, 0.1)
SHARES = 2.0 ** np.arange(1, -6, -1)  # of the safeguard's step


@dataclass(frozen=True, kw_only=True)
class Preconditioned(Optimizer):
    """D = slope · G^-p, one p a run."""

    powers: np.ndarray
    name: ClassVar[str] = "preconditioned"

    def start(self, B):
        return ()

    def direction(self, slope, state, t):
        return slope @ self.powers, state

    def reach(self, B):
        return 1.0


def preconditioners(problem, p):
    """G^-p, and the step that the safeguard allows."""
    mu, U = problem.eigenvalues, problem.eigenvectors
    return (U * mu**-p) @ U.T, 1 / (2 * mu[-1] ** (1 - p))


def risks(test, students):
    with np.errstate(over="ignore", invalid="ignore"):
        found = np.array(
            [test.approx + np.sum(((B - test.B_star) @ test.G) * (B - test.B_star)) / 2 for B in students]
        )
    return np.where(np.isfinite(found), found, np.inf)


def measured(preset, P, steps, tokens, sketch):
    """The risks on one sketch: of each optimizer by step, of the model by p and by step."""
    schedule = WSD(gamma=1.0, L=max(steps))
    setting = Setting(teacher=preset, M=M, d=D, P=P, batch=max(1, tokens // P), schedule=schedule)
    S = gaussian_sketch(M, D, index=sketch)
    problem, test = (sketched_problem(setting.modes, S, length) for length in (P, TEST))
    drawn = list(batch_moments(setting, S, [(0, sketch, 0)])) if tokens else None
    known = [preconditioners(problem, p) for p in POWERS]
    model = Preconditioned(powers=np.repeat([power for power, _ in known], len(SHARES), axis=0))
    shares = np.concatenate([most * SHARES for _, most in known])
    found = {}
    for L in steps:
        schedule = WSD(gamma=1.0, L=L)

        def run(optimizer, sizes, schedule=schedule, L=L):
            seen = drawn[:L] if drawn else repeated([(problem.G, problem.C, L)])
            return risks(test, trained(optimizer, seen, schedule, sizes))

        for optimizer in (Adam(), Muon()):
            sizes = FACTORS * UNITS[optimizer.name] / schedule.total
            found[L, optimizer.name] = run(optimizer, sizes)
        found[L, "p"] = run(model, shares).reshape(len(POWERS), len(SHARES))
    return found


def effective(risk, by_power):
    """Where the model's risk, falling up to its best p, is the optimizer's; ∓∞ where the optimizer's is
    above that of p = 0 or below that of the best p."""
    falling = by_power[: int(np.argmin(by_power)) + 1]
    if not falling[-1] <= risk <= falling[0]:
        return -np.inf if risk > falling[0] else np.inf
    return float(np.interp(-np.log(risk), -np.log(falling), POWERS[: len(falling)]))


def jackknifed(statistic, *columns):
    """A statistic of means over sketches, and its standard error from leaving out one sketch at a time."""
    n = len(columns[0])
    without = [statistic(*(np.delete(x, k, axis=0).mean(axis=0) for x in columns)) for k in range(n)]
    error = np.sqrt((n - 1) * np.var(without)) if np.isfinite(without).all() else np.nan
    return statistic(*(x.mean(axis=0) for x in columns)), error


def worded(value, error):
    """A number with its standard error, where there is one."""
    if np.isinf(value):
        return "worse than p = 0" if value < 0 else "better than any p"
    return f"{value:.2f} ± {error:.2f}" if np.isfinite(error) else f"{value:.2f}, uncertain"


def main(steps):
    header = ("regime", "P", "steps", "optimizer", "batch", "effective p", "risk over best p", "best p")
    print(" | ".join((*header, "effective p, model at twice the step")))
    for preset, P, (batch, tokens) in product(("regime1", "regime2"), LENGTHS, BATCHES.items()):
        every = [measured(preset, P, steps, tokens, sketch) for sketch in range(SKETCHES)]
        for L in steps:
            table = np.array([one[L, "p"] for one in every])  # sketch × p × share
            model = []
            for first in (1, 0):  # up to the safeguard's step, and up to twice that
                best = first + np.argmin(table[:TUNING, :, first:].mean(axis=0), axis=1)
                model.append(table[TUNING:, np.arange(len(POWERS)), best])
            for name in ("adam", "muon"):
                tried = np.array([one[L, name] for one in every])
                risk = tried[TUNING:, np.argmin(tried[:TUNING].mean(axis=0))]
                p, double = (worded(*jackknifed(effective, risk, one)) for one in model)
                over = worded(*jackknifed(lambda own, one: own / one.min(), risk, model[0]))
                least = POWERS[np.argmin(model[0].mean(axis=0))]
                print(f"{preset} | {P} | {L} | {name} | {batch} | {p} | {over} | {least:.1f} | {double}")


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or (100, 300))
