"""Vary one exponent and plot: where does "longer" stop winning as θ passes α? At the paper's step size, 0.1.

python examples/vary_exponent.py [picture.png]
"""

import dataclasses
import sys

from seqlaw import PRESETS, WSD, Setting, tradeoff
from seqlaw.answers.style import MARKERS, SERIES, new_figure, save, tidy

LENGTHS = [2**k for k in range(1, 12)]


def main(path: str = "vary_exponent.png") -> None:
    base = PRESETS["regime2"]
    figure, grid = new_figure(8.0, 3.6, 1, 2)
    for theta, colour, marker in zip((1.15, 1.4, 1.6, 1.8, 2.2), SERIES, MARKERS, strict=False):
        teacher = dataclasses.replace(base, theta=theta)
        student = Setting(teacher=teacher, M=128, N=1, P=2, d=1024, schedule=WSD(gamma=0.1, L=30_000))
        answer = tradeoff(student, tokens=2**22, lengths=LENGTHS, eval_lengths=[1024], tune=False)
        for axes, tested in zip(grid[0], ("own", "1024"), strict=True):
            curve = answer.curve(tested)
            relative = [row.reducible / curve[0].reducible for row in curve]
            label = f"θ = {theta} (Regime {teacher.regime})"
            axes.plot(LENGTHS, relative, color=colour, marker=marker, markersize=4, label=label)
        print(
            f"theta = {theta}: Regime {teacher.regime}, best P at the own length {answer.best['own']}, "
            f"tested at 1024 {answer.best['1024']}"
        )
    tidy(grid[0, 0], "length P", "risk relative to P = 2", "tested at the own length")
    tidy(grid[0, 1], "length P", "", "tested at length 1024")
    grid[0, 0].legend(frameon=False, fontsize="x-small")
    save(figure, path)


if __name__ == "__main__":
    main(*sys.argv[1:])
