"""Add a schedule: linear decay to zero, γ_t = γ (1 - (t-1)/L), and compare it with WSD at equal Σγ.

The power sums Σ_t (γ_t/γ)^n of a linear ramp are known in closed form, so the filter costs O(1) in L.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqlaw import PRESETS, WSD, Schedule, Setting, risk
from seqlaw.model import ramp_power_sums, sum_logs


@dataclass(frozen=True, kw_only=True)
class Linear(Schedule):
    """γ_t = γ (L - t + 1)/L; R = γL."""

    gamma: float
    L: int
    name: ClassVar[str] = "linear"

    def at(self, t):
        return self.gamma * (self.L - np.asarray(t) + 1) / self.L

    @property
    def total(self):
        return self.gamma * (self.L + 1) / 2

    def log_psi(self, s):
        return sum_logs(lambda n: ramp_power_sums(self.L, n), self.gamma * s)


def main() -> None:
    wsd = WSD(gamma=0.1, L=30_000)
    linear = Linear(gamma=0.1, L=round(2 * wsd.total / 0.1))
    slow = np.log1p(-Linear(gamma=0.1, L=5000).steps() * 0.7).sum()  # the defining sum, once
    assert np.isclose(Linear(gamma=0.1, L=5000).log_residual(0.7), slow, rtol=1e-12)
    for schedule in (wsd, linear):
        student = Setting(
            teacher=PRESETS["regime2"], M=128, N=4096, P=64, d=1024, schedule=schedule, eval_length=256
        )
        answer = risk(student, method="equivalent")
        print(
            f"{schedule.name:<7} L = {schedule.L:>6}  sum of steps {schedule.total:.4g}  "
            f"bias {answer.bias:.4g}  variance {answer.variance:.4g}"
        )


if __name__ == "__main__":
    main()
