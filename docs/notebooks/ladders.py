# %% [markdown]
# # Ladders: short first, long last
#
# Sequences may have several lengths at once (a mixture) or one after another (phases). Which is best
# depends on the regime, on how long is trained, and on the length of the test.

# %%
from dataclasses import replace

from seqlaw import Constant, Setting, ladder, risk

mixed = Setting(teacher="regime2", M=64, N=4096, P="16:0.7,1024:0.3", d=512, schedule="block")
print(risk(mixed))

# %% [markdown]
# The best single length, the best mixture and the best ladder for so many tokens, tested at one length.
# Shares are chosen on some sketches and compared on others. The step size is chosen too: each length takes
# the largest that the safeguard allows, times a factor that all phases share.

# %%
student = replace(mixed, P=2, eval_length=1024, schedule=Constant(gamma=0.1, L=3_000))
found = ladder(student, 1e8, candidates=(2, 64, 1024), sketches=4)
print(found)

# %%
axes = found.plot()

# %% [markdown]
# What was published, and where this theory agrees: [lengths](../lengths-theory.md#published-findings).
