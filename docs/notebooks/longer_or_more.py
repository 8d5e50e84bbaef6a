# %% [markdown]
# # Longer or more
#
# The title of the paper, and where it turns. The same number of tokens, split into more short or fewer
# long sequences.

# %%
from dataclasses import replace

from seqlaw import WSD, BlockDecay, Setting, tradeoff

student = Setting(teacher="regime2", M=128, N=1, P=1, d=1024, schedule=BlockDecay(gamma=0.1, L=30_000))
split = tradeoff(student, tokens=2**24, eval_lengths=[4096])  # N and P of the student do not matter here
print(split)

# %% [markdown]
# Left, as in the paper: each student is tested on sequences of its own training length, and longer wins.
# Right: all are tested on sequences of one length, 4096, and more wins. The test of the left picture
# becomes easier along the axis.

# %%
axes = split.plot()

# %% [markdown]
# **Regime I**, where the initial state is light (θ ≥ α): to leading order only the product N·P matters,
# and what the split changes is a constant.


# %%
def longest_over_shortest(answer, tested):
    """The reducible risk at the longest length over that at the shortest."""
    rows = answer.curve(tested)
    return rows[-1].reducible / rows[0].reducible


first = tradeoff(replace(student, teacher="regime1"), tokens=2**24, eval_lengths=[4096])
for name, answer in {"Regime I": first, "Regime II": split}.items():
    for tested in answer.best:
        ratio = longest_over_shortest(answer, tested)
        print(f"{name}, tested at {tested}: risk at P = 4096 over risk at P = 2: {ratio:.3g}")

# %% [markdown]
# **Train for longer**, with data enough, and Regime II turns again at the common test length:

# %%
for L in (30_000, 3_000_000, 300_000_000):
    further = replace(student, schedule=BlockDecay(gamma=0.1, L=L))
    far = tradeoff(further, tokens=1e18, lengths=[2, 4096], eval_lengths=[4096])
    print(f"{L:>11,} steps: P = 4096 over P = 2, tested at 4096: {longest_over_shortest(far, '4096'):.3g}")

# %% [markdown]
# **Another schedule, another test**: the answer belongs to all of it. Ask with your own numbers before you
# quote the title.

# %%
other = replace(student, schedule=WSD(gamma=0.1, L=30_000))
for tested, (low, high) in tradeoff(other, tokens=2**24, eval_lengths=[64, 512, 4096]).best.items():
    print(f"wsd, tested at {tested}: best P {low} to {high}")

# %% [markdown]
# More of this: [plan a budget](../plan.md), [where the paper is loose](../loose.md).
