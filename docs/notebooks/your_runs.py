# %% [markdown]
# # Your own runs
#
# You have a table of training runs, one row a run: parameters, tokens, sequence length, loss. `fit_law`
# fits a law with an interval for every number, says whether the length matters, and shares a budget.
#
# Here the table is made on the spot from a known law, 1.8 + 300 params^-0.33 + 900 tokens^-0.34 + 6
# length^-0.5 with 0.4 % of noise. Put your own DataFrame, or the name of a .csv file, in its place.

# %%
import numpy as np
import pandas as pd

from seqlaw import fit_law

rng = np.random.default_rng(2)
n = 120
runs = pd.DataFrame(
    {
        "params": np.exp(rng.uniform(np.log(3e7), np.log(3e9), n)),
        "tokens": np.exp(rng.uniform(np.log(1e9), np.log(1e11), n)),
        "length": rng.choice([512, 2048, 8192], n),
        "tested": 2048,
    }
)
truth = 1.8 + 300 * runs.params**-0.33 + 900 * runs.tokens**-0.34 + 6 * runs.length**-0.5
runs["loss"] = truth * np.exp(0.004 * rng.standard_normal(n))
runs.head()

# %%
law = fit_law(
    runs,
    loss="loss",
    terms=["params", "tokens", "length"],
    without="length",
    tested_at="tested",
    budget=1e22,
    bootstraps=200,
)
print(law)

# %% [markdown]
# Curves of equal cost, the residuals, and the largest runs predicted from the rest:

# %%
axes = law.plot()

# %% [markdown]
# **Which runs decide?** Every run has its share in each exponent.

# %%
law.to_frame().head()

# %% [markdown]
# **A column that does nothing.** Shuffle the lengths, and the answer changes:

# %%
shuffled = runs.assign(length=rng.permutation(runs.length))
again = fit_law(
    shuffled,
    loss="loss",
    terms=["params", "tokens", "length"],
    without="length",
    tested_at="tested",
    bootstraps=200,
)
print("with the lengths as they were: ", law.comparison.verdict)
print("with the lengths shuffled:     ", again.comparison.verdict)

# %% [markdown]
# How far to trust it, measured costs, groups of runs: [a law from your runs](../law.md).
