# %% [markdown]
# # Your own sequences
#
# You record trials: N sequences of P + 1 states with D features. Longer trials, or more of them?
# `forecast` trains linear students on what you have and says what they would do with more; it needs none
# of the theory. `measure` asks whether your data look like the theory's.
#
# Here the data are made on the spot: a teacher of known exponents stands in. Put your own array in its
# place.

# %%
import numpy as np

from seqlaw import PRESETS, forecast, measure
from seqlaw.methods import trajectories

states = trajectories(PRESETS["regime2"].modes(32), 800, 31, seed=1)
print(states.shape)  # sequences, states, features: 31 transitions each

# %%
found = forecast(states, tokens=2000)
print(found)

# %% [markdown]
# The first line is the verdict. Measured rows were trained on your data, and forecast rows lie beyond; each
# has its 90 % interval. The second table has the limit that more sequences of a length come down to.

# %%
axes = found.plot()

# %% [markdown]
# **Data in which nothing can be predicted** get no advice. White noise:

# %%
noise = np.random.default_rng(0).standard_normal((400, 16, 8))
print(forecast(noise).advice[0])

# %% [markdown]
# **Do they obey the theory?** Exponents with intervals, the regime with its probability, and checks that
# can fail.

# %%
law = measure(states)
print(law)

# %%
axes = law.plot()

# %% [markdown]
# Where they do, the theory's advice reaches further than the pilot does:

# %%
print(law.advise(tokens=1e6, eval_length=512))

# %% [markdown]
# Tables, recordings to be cut, subjects that belong together: [forecast](../forecast.md). What was found
# in a real model: [measure](../measure-theory.md#a-real-model-on-a-real-text).
