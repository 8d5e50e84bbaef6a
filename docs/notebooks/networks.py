# %% [markdown]
# # The loss at each position, and networks on the same teacher
#
# A student may be tested at one position of its sequences: position 0 is the first input, x_0. What follows
# sets short training sequences beside long ones, and then a small network beside the law.

# %%
from importlib.util import find_spec

import matplotlib.pyplot as plt

from seqlaw import WSD, Network, Setting, curve, risk

sizes = {"teacher": "regime2", "M": 16, "d": 64, "batch": 64, "schedule": WSD(gamma=0.3, L=300)}
places = [0, 1, 2, 4, 8, 16, 31]
short, long = (curve(Setting(P=P, **sizes), "position", places) for P in (2, 32))

figure, axes = plt.subplots()
for P, found in ((2, short), (32, long)):
    axes.plot(places, [one.reducible for one in found], marker="o", label=f"trained at P = {P}")
axes.set(xscale="symlog", yscale="log", xlabel="position", ylabel="reducible risk")
axes.legend()

# %% [markdown]
# The mean over the positions of a sequence is the loss at its length.

# %%
whole = risk(Setting(P=2, eval_length=4, **sizes)).reducible
each = [risk(Setting(P=2, position=p, **sizes)).reducible for p in range(4)]
assert abs(sum(each) / 4 / whole - 1) < 1e-9

# %% [markdown]
# The `trained` method takes the same settings step by step with torch. Plain descent of a linear student
# follows the law; a recurrent unit trained with Adam has the same data and another architecture.

# %%
if find_spec("torch") is None:
    print("The trained method needs torch: pip install 'seqlaw[gpu]'")
else:
    student = Setting(P=8, eval_length=32, **sizes)
    law = risk(student, method="exact", sketches=2)
    linear = risk(student, method="trained", sketches=2, repetitions=2)
    unit = Network(name="lru", hidden=16)
    network = risk(student.but(network=unit, optimizer="adam"), method="trained", sketches=2, repetitions=2)
    for name, found in {"law": law, "linear, sgd": linear, "recurrent unit, adam": network}.items():
        print(f"{name:>20}: {found.reducible:.3e} ± {found.standard_error['reducible']:.1e}")
