"""Where ladders of two lengths gain: the phase diagram over horizons and test lengths (docs/lengths.md).

Draws `phase_diagram.png`: the gain over the best single length against the horizon, a line a test length.
"""

import sys

from matplotlib import pyplot

from seqlaw import PRESETS, Constant, Setting
from seqlaw.planning.ladder_map import HORIZONS, ladder_map

quick = "--quick" in sys.argv
sizes = {"M": 12, "d": 48} if quick else {"M": 96, "d": 768}
schedule = Constant(gamma=0.1, L=30_000)
figure, axes = pyplot.subplots(layout="constrained")
for teacher, line in zip(("regime2",) if quick else PRESETS, ("--", "-"), strict=False):
    setting = Setting(teacher=teacher, N=1, P=2, schedule=schedule, **sizes)
    found = ladder_map(
        setting,
        2**16 if quick else 2**24,
        candidates=(2, 64) if quick else (2, 16, 128, 4096),
        horizons=(1000, 10_000) if quick else HORIZONS,
        tests=(64,) if quick else (16, 128, 4096),
    )
    helped = f"{sum(cell.helps for cell in found.cells)} of {len(found.cells)} cells"
    print(f"Regime {found.regime}: two phases beat the best single length in {helped}")
    for cell in found.cells:
        best = f"{cell.first:,} then {cell.last:,} for the last {cell.share:.0%}"
        print(
            f"{cell.L:>10,} steps, tested at {cell.eval_length:>5,}: P = {cell.single:,}; {best}: "
            f"gain {cell.gain:.2%} ± {cell.error:.1%}"
        )
    for k, test in enumerate(dict.fromkeys(cell.eval_length for cell in found.cells)):
        cells = [cell for cell in found.cells if cell.eval_length == test]
        x, y, error = ([getattr(cell, name) for cell in cells] for name in ("R", "gain", "error"))
        label = f"Regime {found.regime}, tested at {test:,}"
        axes.errorbar(x, y, error, color=f"C{k}", linestyle=line, marker="o", label=label)
axes.set(xscale="log", xlabel="horizon R", ylabel="gain over the best single length")
axes.axhline(0, color="0.6", linewidth=0.8)
axes.legend()
figure.savefig("phase_diagram.png")
