"""Longer or more: the same tokens in sequences of each length, all tested at one length.

One line for each number of steps, at the largest step size that the safeguard allows; the paper's step
size, 0.1, is dashed (Regime II only). This is the picture of the README.

python examples/longer_or_more.py longer-or-more.png
"""

import sys

from seqlaw import WSD, BlockDecay, Setting, tradeoff
from seqlaw.answers.style import SERIES, few_ticks, new_figure, save, tidy

TOKENS, TEST, LENGTHS = 2**24, 4096, [2**k for k in range(1, 13)]
LARGEST = 100  # is reduced to what the safeguard allows at each length, 2.3 to 11.5
PAPER = ("30,000 steps of 0.1", BlockDecay(gamma=0.1, L=30_000), {"linestyle": "--", "color": "0.35"})
LINES = [
    (f"{steps:,} steps", WSD(gamma=LARGEST, L=steps), {"color": SERIES[k], "marker": "o^s"[k]})
    for k, steps in enumerate((300, 3_000, 30_000))
]


def relative_risk(preset: str, schedule: WSD | BlockDecay) -> list[float]:
    """The reducible risk at each length over that at the shortest."""
    student = Setting(teacher=preset, M=128, N=1, P=2, d=1024, schedule=schedule)
    rows = tradeoff(student, TOKENS, lengths=LENGTHS, eval_lengths=[TEST]).curve(TEST)
    return [row.reducible / rows[0].reducible for row in rows]


def main(path: str) -> None:
    figure, grid = new_figure(6.4, 4.4)
    axes = grid[0, 0]
    for name, schedule, look in [PAPER, *LINES]:
        risks = relative_risk("regime2", schedule)
        axes.plot(LENGTHS, risks, markersize=4, **look)
        label = f"{name}: {risks[-1]:.2g}×"
        axes.annotate(label, (5200, risks[-1]), va="center", color=look["color"], annotation_clip=False)
        print(f"Regime II, {name}: risk at P = {LENGTHS[-1]} over P = 2: {risks[-1]:.3g}")
    for name, schedule, look in LINES:  # at the paper's step longer wins 1.7 times here: docs/loose.md
        thin = relative_risk("regime1", schedule)
        line = look | {"marker": "", "alpha": 0.6, "linewidth": 0.8}
        axes.plot(LENGTHS, thin, **line)
        print(f"Regime I, {name}: risk at P = {LENGTHS[-1]} over P = 2: {thin[-1]:.3g}")
    axes.annotate(
        "thick: Regime II, thin: Regime I", (4000, 0.68), ha="right", color="0.35", fontsize="small"
    )
    axes.axhline(1.0, color="0.5", linewidth=0.8, linestyle=":")
    tidy(axes, "length P of the training sequences", f"risk relative to P = 2, tested at {TEST:,}")
    axes.set(xlim=(1.8, 4900), ylim=(0.42, 17))
    few_ticks(axes)
    axes.annotate("above 1: shorter wins", (0.02, 0.97), xycoords="axes fraction", va="top", color="0.35")
    axes.annotate("below 1: longer wins", (0.02, 0.03), xycoords="axes fraction", color="0.35")
    figure.suptitle("The same 16.8 million tokens, in shorter or longer sequences", fontsize="large")
    save(figure, path)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "longer-or-more.png")
