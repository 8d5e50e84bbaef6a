# %% [markdown]
# # Longer or more
#
# The same number of tokens, in more short or fewer long sequences: which is better? We begin with the
# paper's training: block schedule, 30,000 steps, step size γ = 0.1. Other steps follow below.

# %%
from dataclasses import replace

from seqlaw import WSD, BlockDecay, Setting, tradeoff

student = Setting(teacher="regime2", M=128, N=1, P=1, d=1024, schedule=BlockDecay(gamma=0.1, L=30_000))
# N and P of the student do not matter here; its step size does, unless it is tuned.
split = tradeoff(student, tokens=2**24, eval_lengths=[4096], tune=False)
print(split)

# %% [markdown]
# Left, as in the paper: each student is tested at its own training length, and longer wins. The test
# becomes easier along the axis. Right: all students are tested at one length, 4096, and shorter wins.

# %%
axes = split.plot()

# %% [markdown]
# **Regime I**, where the first state is small (θ ≥ α): to leading order only the product N·P matters, and
# the length changes a constant.


# %%
def longest_over_shortest(answer, tested):
    """The reducible risk at the longest length over that at the shortest."""
    rows = answer.curve(tested)
    return rows[-1].reducible / rows[0].reducible


first = tradeoff(replace(student, teacher="regime1"), tokens=2**24, eval_lengths=[4096], tune=False)
for name, answer in {"Regime I": first, "Regime II": split}.items():
    for tested in answer.best:
        ratio = longest_over_shortest(answer, tested)
        print(f"{name}, tested at {tested}: risk at P = 4096 over risk at P = 2: {ratio:.3g}")

# %% [markdown]
# **Train further**, and Regime II turns round at the common test length. By default each length has the step
# size of least risk, 2.3 to 11.5 early in training. The paper's 0.1 needs far more steps.

# %%
for tune, steps in ((True, (300, 3_000, 30_000)), (False, (30_000, 3_000_000, 300_000_000))):
    for L in steps:
        further = replace(student, schedule=WSD(gamma=0.1, L=L))
        far = tradeoff(further, tokens=2**24, lengths=[2, 4096], eval_lengths=[4096], tune=tune)
        ratio = longest_over_shortest(far, "4096")
        size = "the best size" if tune else "size 0.1"
        print(f"{L:>11,} steps of {size}: P = 4096 over P = 2, tested at 4096: {ratio:.3g}")

# %% [markdown]
# **Another test length** changes the answer too. Here is the WSD schedule, each length at its best step:

# %%
other = replace(student, schedule=WSD(gamma=0.1, L=30_000))
for tested, (low, high) in tradeoff(other, tokens=2**24, eval_lengths=[64, 512, 4096]).best.items():
    print(f"wsd, tested at {tested}: best P {low} to {high}")

# %% [markdown]
# More of this: [step size and optimizer](../steps.md), [plan a budget](../plan.md),
# [where the paper is loose](../loose.md).
