# %% [markdown]
# # One pass and the critical batch
#
# The paper trains on all of its data in every step. Here each step takes b fresh trajectories and never
# sees them again.

# %%
from dataclasses import replace

import numpy as np

from seqlaw import BlockDecay, Budget, Setting, curve, plan, risk

student = Setting(teacher="regime2", M=64, P=16, d=1024, batch=8, schedule="block")
print(risk(student))

# %% [markdown]
# At a fixed number of tokens a larger batch means fewer steps. As long as the step size can grow with the
# batch, little is lost; beyond the **critical** number of tokens a step it cannot.

# %%
batches = np.unique(np.round(np.geomspace(1, 1024, 9))).tolist()
along = curve(student, "b", batches, tokens=1e6, tune=True)
axes = along.plot()

# %%
for one in along:
    each = one.setting.batch * one.setting.P
    print(f"{each:>6} tokens a step: bias + variance {one.bias + one.variance:.3g}")

# %% [markdown]
# A long sequence is a batch of its own. With a million tokens at every length, the critical number of
# tokens a step falls as sequences grow longer:

# %%
for P in (1, 4, 16, 64):
    steps = BlockDecay(gamma=0.1, L=1_000_000 // (8 * P))
    critical = risk(replace(student, P=P, schedule=steps)).diagnostics["critical_tokens"]
    print(f"P = {P:>2}: about {critical:,.0f} tokens a step are critical, {critical / P:,.0f} sequences")

# %% [markdown]
# **The best pass** for a budget: width, batch, length, steps and step size, all tested at length 64.

# %%
best = plan("regime2", Budget(compute=1e11, tokens=1e6), eval_length=64, one_pass=True)
print(best)

# %%
axes = best.plot()

# %% [markdown]
# The law, its evidence and its limits: [one pass](../one-pass-theory.md).
