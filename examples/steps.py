"""Longer or more, as training gets further: two pictures of risk against the length P, at one test length.

python examples/steps.py steps.png steps-budget.png      # ten minutes

steps.png: the same tokens and width at every length; one line for each number of steps. Points are students
with drawn sketches (`exact`) and simulated data (`sampled`).
steps-budget.png: the least risk at each length under a compute budget, with width, sequences and steps chosen
by a search of its own, which `plan` is compared with.
A star is the shortest length within 1 % of its line's best. Lines that vary by less than 15 % have none.
"""

import sys
from itertools import product

import numpy as np

from seqlaw import WSD, Budget, Setting, plan, risk
from seqlaw.answers.style import SERIES, few_ticks, new_figure, save, tidy

TEST, TOKENS, LENGTHS = 4096, 2**24, [2**k for k in range(1, 13)]
STEPS = (30, 100, 300, 3_000, 30_000)
LARGEST = 1000  # is reduced to the largest step that the safeguard allows at each length
TEACHERS = {"regime2": "Regime II: large first states", "regime1": "Regime I: small first states"}
POWERS = {0.0: "plain gradient descent", 0.5: "preconditioned, p = 1/2"}
DRAWN = {"exact": ((8, 64, 1024), "o"), "sampled": ((2,), "D")}
CLEAR = 1.15  # worst over best length: a flatter line gets no star
COMPUTE = (1e12, 1e15, 1e18)


def student(teacher, p, P, steps, M=128, N=None, d=1024):
    schedule = WSD(gamma=LARGEST, L=steps)
    N = N or TOKENS // P
    return Setting(teacher=teacher, M=M, N=N, P=P, d=d, eval_length=TEST, schedule=schedule, precondition=p)


def steps_picture(path):
    figure, grid = new_figure(8.6, 6.6, rows=2, columns=2)
    for (row, teacher), (column, p) in product(enumerate(TEACHERS), enumerate(POWERS)):
        axes = grid[row, column]
        for k, steps in enumerate(STEPS):
            line = [r.reducible for r in risk([student(teacher, p, P, steps) for P in LENGTHS])]
            look = {"color": SERIES[k], "zorder": 3 - k / 10}
            axes.plot(LENGTHS, line, linewidth=1 + 0.7 * k, label=f"{steps:,} steps", **look)
            best = shortest_good(line)
            if max(line) / line[best] > CLEAR:
                axes.plot(LENGTHS[best], line[best], "*", ms=13, mec="white", color=SERIES[k], zorder=6)
            print(f"{teacher} p={p} {steps} steps: best P {LENGTHS[best]},", *(f"{x:.4g}" for x in line))
        for method, (lengths, marker) in DRAWN.items():
            for P in lengths:
                settings = [student(teacher, p, P, steps) for steps in STEPS]
                smooth = risk(settings)
                for k, r in enumerate(risk(settings, method=method, sketches=4, repetitions=1)):
                    error = r.standard_error["reducible"]
                    axes.errorbar(
                        P,
                        r.reducible,
                        error,
                        fmt=marker,
                        ms=4,
                        mfc="white",
                        color=SERIES[k],
                        capsize=2,
                        zorder=7,
                    )
                    ratio = r.reducible / smooth[k].reducible
                    print(
                        f"  {method} P={P} {STEPS[k]} steps: {ratio:.3f} ± {error / smooth[k].reducible:.3f}"
                    )
        title = f"{TEACHERS[teacher]}\n{POWERS[p]}"
        tidy(axes, "length P of the training sequences", f"reducible risk at length {TEST:,}", title)
        few_ticks(axes)
    grid[0, 1].annotate("from 300 steps on: one line", (2, 3.75e-6), color="0.35", fontsize="small")
    for row in grid:
        low, high = (pick(axes.get_ylim()[k] for axes in row) for k, pick in enumerate((min, max)))
        for axes in row:
            axes.set_ylim(0.85 * low, high)
    grid[0, 1].legend(frameon=False, fontsize="small", loc="upper right")
    figure.suptitle("The same 16.8 million tokens in shorter or longer sequences; star: best length")
    save(figure, path)


def shortest_good(line):
    """Where the shortest length within 1 % of the best is."""
    return next(k for k, x in enumerate(line) if x <= 1.01 * min(line))


def cheapest(teacher, p, P, compute):
    """The least risk at length P with M²·N·P·L = compute: a grid in (log M, log L) that closes in."""
    centre, reach, best = np.log([compute**0.2, compute**0.2]), 2.0, None
    while reach > 0.03:
        around = np.exp(centre + reach * np.array(list(product(np.linspace(-1, 1, 5), repeat=2))))
        sizes = [(round(M), round(L)) for M, L in around if M >= 8 and L >= 10]
        sizes = [(M, compute // (P * M * M * L), L) for M, L in sizes if compute >= P * M * M * L]
        settings = [student(teacher, p, P, L, M, int(N), float("inf")) for M, N, L in sizes]
        found = min(risk(settings), key=lambda r: r.reducible)
        if best is None or found.reducible < best.reducible:
            best = found
        moved = np.log([best.setting.M, best.setting.schedule.L]) - centre
        centre += moved
        reach *= 1.0 if np.abs(moved).max() > 0.9 * reach else 0.5
    return best


def budget_picture(path):
    figure, grid = new_figure(8.6, 3.8, columns=2)
    for axes, teacher in zip(grid[0], TEACHERS, strict=True):
        for (k, compute), p in product(enumerate(COMPUTE), POWERS):
            found = [cheapest(teacher, p, P, compute) for P in LENGTHS]
            line = [r.reducible for r in found]
            look = {"color": SERIES[k], "linestyle": "--" if p else "-"}
            axes.plot(LENGTHS, line, **look)
            best = shortest_good(line)
            if max(line) / line[best] > CLEAR:
                axes.plot(
                    LENGTHS[best], line[best], "*", color=SERIES[k], markersize=12, markeredgecolor="white"
                )
            print(f"{teacher} C={compute:.0e} p={p}: best P {LENGTHS[best]},", *(f"{x:.4g}" for x in line))
            for at in (0, best, -1):
                s = found[at].setting
                print(f"  P={s.P}: M={s.M} N={s.N} L={s.schedule.L}")
            only = Budget(compute=compute, tokens=1e30, min_P=64, max_P=64)
            check = plan(teacher, only, eval_length=TEST, precondition=p).finite.risk.reducible
            print(f"  plan at P = 64 over this search: {check / line[LENGTHS.index(64)]:.4f}")
            where = {"xytext": (-4, 5), "textcoords": "offset points", "ha": "right", "color": SERIES[k]}
            power = round(np.log10(compute))
            axes.annotate(f"$10^{{{power}}}$, p = {'1/2' if p else '0'}", (LENGTHS[-1], line[-1]), **where)
        title = TEACHERS[teacher]
        tidy(axes, "length P of the training sequences", f"least risk at length {TEST:,}", title)
        few_ticks(axes)
    figure.suptitle("Least risk under a compute budget; solid: plain, dashed: p = 1/2, star: best length")
    save(figure, path)


if __name__ == "__main__":
    names = sys.argv[1:] or ["steps.png", "steps-budget.png"]
    for name in names:
        (budget_picture if "budget" in name else steps_picture)(name)
