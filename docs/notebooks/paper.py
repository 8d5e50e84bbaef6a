# %% [markdown]
# # The paper in ten cells
#
# *Linear RNN Scaling Laws: When Longer Sequences Beat More Sequences*, from the teacher to the ten slopes.
# No cell takes more than some seconds. The file is a plain Python script, `docs/notebooks/paper.py`: run
# it as it is, or open it as a notebook with jupytext.
#
# 1. **A teacher** is six numbers: a linear recurrence x_{p+1} = A x_p + ξ whose spectra are power laws.

# %%
from seqlaw import PRESETS, Budget, Setting, curve, plan, rates, reproduce, risk, spectrum, tradeoff

for name, teacher in PRESETS.items():
    print(name, teacher, "Regime", teacher.regime)

# %% [markdown]
# 2. **A setting** adds the student: it sees M of d dimensions, through a random sketch, and trains on N
#    trajectories of length P. Regime II is the paper's interesting one: the initial state is heavier than
#    the innovations (θ < α).

# %%
point = Setting(teacher="regime2", M=128, N=4096, P=64, d=1024, schedule="block")
print(point.tokens, "tokens, horizon", round(point.schedule.horizon, 1))

# %% [markdown]
# 3. **What a trajectory shows**: the covariance averaged over its positions, h_P, is the sum of two power
#    laws. The longer the trajectory, the less is left of the initial state's.

# %%
averaged = spectrum(point)
axes = averaged.plot()

# %% [markdown]
# 4. **The theorem**: exponents, crossovers and conditions, without constants.

# %%
print(rates(point))

# %% [markdown]
# 5. **The risk** with its constants, without a random number (the [method](../notation.md#words)
#    `equivalent`): five terms, each with its accuracy.

# %%
print(risk(point))

# %% [markdown]
# 6. **The same, sampled**: small students are drawn and trained, and the equivalent stands beside them.

# %%
small = Setting(teacher="regime2", M=16, N=512, P=16, d=128, schedule="block")
sampled = risk(small, method="sampled", sketches=16, repetitions=2)
print(f"sampled    {sampled.reducible:.4g} ± {sampled.standard_error['reducible']:.2g}")
law = risk(small)
print(f"equivalent {law.reducible:.4g}, {law.accuracy['reducible']}")

# %% [markdown]
# 7. **A law is a slope**: the bias along the horizon R at a finite size, and the theorem's exponent beside
#    it.

# %%
wide = Setting(teacher="regime2", M=1024, N=10**9, P=12, d=2048, schedule="block")
bias = curve(wide, "R", [100, 200, 400, 800, 1600])
print(f"slope {bias.slopes['bias']['slope']:.3f}, theorem {rates(wide).exponents['bias']['R']:.3f}")

# %% [markdown]
# 8. **The title**: the same number of tokens, in more short or fewer long sequences, at the paper's step
#    size. At the largest stable step the common test [turns round](../steps.md).

# %%
split = tradeoff(point, tokens=2**24, eval_lengths=[4096], tune=False)
axes = split.plot()

# %% [markdown]
# 9. **The corollary's question** at finite size, constants included: what to do with a budget. On the
#    command line `seqlaw plan --verbose` puts the corollary's own exponents beside it.

# %%
print(plan("regime2", Budget(compute=1e13, tokens=1e7), schedule="block", eval_length=1024))

# %% [markdown]
# 10. **The experiments**: six panels, ten slopes, here on the equivalent method (`make reproduce` samples
#     them).

# %%
found = reproduce("results/equivalent", method="equivalent", quick=True)
found.to_frame()[["regime", "quantity", "against", "slope", "guide", "paper_slope"]]

# %% [markdown]
# The quick grid is smaller than the paper's, so its slopes are not the paper's; without `quick` they are
# ([what it writes](../reproduce.md)). Where the paper is loose has [a page of its own](../loose.md).
