"""What sequences that are used again are worth: the table and the picture of docs/epochs.md.

python examples/epochs.py epochs.png      # three minutes

Both regimes, the same tokens cut into sequences of several lengths, the best step at each number of epochs.
Open points are students with drawn sketches, data and orders (`sampled`), at the step of the line.
"""

import sys

from seqlaw import Setting, curve, risk
from seqlaw.answers.style import SERIES, few_ticks, new_figure, save, tidy

TEST, STEP_TOKENS = 128, 128
TOKENS = (4096, 32768)
LENGTHS = (2, 16, 128)
EPOCHS = (1, 2, 4, 8, 16, 64)
SAMPLED = (1, 4, 16)
TEACHERS = {"regime1": "Regime I: small first states", "regime2": "Regime II: large first states"}


def student(teacher, P, tokens):
    sizes = {"M": 64, "d": 256, "P": P, "N": tokens // P, "batch": STEP_TOKENS // P}
    return Setting(teacher=teacher, **sizes, schedule="wsd", eval_length=TEST)


def main(path):
    figure, grid = new_figure(8.6, 6.4, rows=2, columns=2)
    for column, (teacher, title) in enumerate(TEACHERS.items()):
        worth, risks = grid[0, column], grid[1, column]
        for k, P in enumerate(LENGTHS):
            line, scarce = (
                curve(student(teacher, P, tokens), "epochs", values, tune=True)
                for tokens, values in zip(TOKENS, (EPOCHS, EPOCHS[-1:]), strict=True)
            )
            low, high = (f"{one.reducible:.2e}" for one in (line[0], line[-1]))
            E = " ".join(f"{one:.2f}" for one in line.reuse[1:])
            print(f"{teacher} P={P}: E {E}, risk {low} to {high}, E(64) with 8 times the tokens", end=" ")
            print(f"{scarce.reuse[0]:.2f}", flush=True)
            look = {"color": SERIES[k], "marker": "o", "ms": 4}
            worth.plot(EPOCHS, line.reuse, label=f"{TOKENS[0] // P:,} sequences of {P}", **look)
            risks.plot(EPOCHS, [one.reducible for one in line], **look)
            for one in line:
                if one.setting.epochs in SAMPLED and P != LENGTHS[1]:
                    seen = risk(one.setting, method="sampled", sketches=4, repetitions=4)
                    error = seen.standard_error["reducible"]
                    risks.errorbar(
                        one.setting.epochs * 1.06,
                        seen.reducible,
                        error,
                        fmt="D",
                        ms=5,
                        mfc="white",
                        color=SERIES[k],
                        zorder=5,
                    )
                    law = risk(one.setting, method="exact", sketches=4)
                    ratio = seen.reducible / law.reducible
                    print(f"    sampled at {one.setting.epochs} epochs: {ratio:.3f} of exact", flush=True)
        tidy(worth, "epochs", "worth E, in fresh tokens", title)
        tidy(risks, "epochs", "reducible risk", "")
        worth.set_ylim(0.9, 7)
        few_ticks(worth)
        few_ticks(risks)
        for axes in (worth, risks):
            axes.set_xticks(EPOCHS, [str(epochs) for epochs in EPOCHS])
            axes.minorticks_off()
        worth.legend(frameon=False, fontsize="small", loc="lower right")
    figure.suptitle("4,096 tokens, used again and again: the worth of repetition, and what it leaves")
    save(figure, path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "epochs.png")
