# %% [markdown]
# # Add a schedule, or a method
#
# A schedule is its step sizes and the filter that they make. A method is one way to answer the question
# "what is the risk?". Both are classes of your own. `risk`, `curve`, sweeps and the command line take
# them; `plan` and `tradeoff` take a schedule, and answer on the equivalent method.

# %%
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from seqlaw import WSD, Explicit, Schedule, Setting, curve, risk
from seqlaw.methods import Method, Risk, population_bias
from seqlaw.model import gaussian_sketch, ramp_power_sums, setting_flags, sketched_problem, sum_logs

# %% [markdown]
# ## A schedule
#
# A linear decay. The power sums of a ramp are known, so its filter costs the same at any number of steps.


# %%
@dataclass(frozen=True, kw_only=True)
class Linear(Schedule):
    """γ_t = γ (L - t + 1)/L."""

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


# %% [markdown]
# Checked against the sum that defines it, step by step:

# %%
mine = Linear(gamma=0.1, L=20_000)
slow = Explicit(sizes=mine.steps())
assert np.allclose(mine.log_residual([0.1, 1.0]), slow.log_residual([0.1, 1.0]))

# %%
wsd = WSD(gamma=0.1, L=20_000)
equal = Linear(gamma=0.1, L=round(2 * wsd.total / 0.1))  # the same sum of steps
for schedule in (wsd, equal):
    student = Setting(teacher="regime2", M=128, N=4096, P=64, d=1024, schedule=schedule, eval_length=256)
    answer = risk(student)
    print(f"{schedule.name:<6} L = {schedule.L:>6}: bias {answer.bias:.4g}, variance {answer.variance:.4g}")

# %% [markdown]
# ## A method
#
# Infinitely many data on given sketches: no variance, no cross.


# %%
class InfiniteData(Method):
    """The risk as N goes to infinity, averaged over sketches."""

    name = "infinite-data"
    draws = ("sketches",)

    def risks(self, settings, draws, *, progress=None):
        return [self.risk(setting, draws) for setting in settings]

    def risk(self, setting, draws):
        terms = []
        for index in range(draws.count("sketches")):
            S = gaussian_sketch(setting.M, setting.d, seed=draws.seed, index=index)
            own, test = (sketched_problem(setting.modes, S, P) for P in (setting.P, setting.test_length))
            schedule = setting.schedule.safeguarded(own.eigenvalues[-1])
            terms.append((test.irreducible, test.approx, population_bias(own, schedule, test)))
        irreducible, approx, bias = np.mean(terms, axis=0)
        return Risk(
            method=self.name,
            regime=setting.regime,
            irreducible=irreducible,
            approx=approx,
            bias=bias,
            variance=0.0,
            cross=0.0,
            steps=setting.schedule.L,
            horizon=setting.schedule.horizon,
            eval_length=setting.test_length,
            flags=setting_flags(setting),
        )


# %%
small = Setting(teacher="regime2", M=32, N=10**9, P=16, d=256, schedule=mine)
along = curve(small, "R", [10, 100, 1000], method=InfiniteData(), sketches=8)
for one, other in zip(along, curve(small, "R", [10, 100, 1000]), strict=True):
    print(f"R = {one.horizon:>5.0f}: bias {one.bias:.4g} on this method, {other.bias:.4g} on the equivalent")

# %% [markdown]
# On the command line a class goes by its import path, `--schedule linear:Linear` and `--method
# infinite:InfiniteData`: [how to extend](../extend.md).
