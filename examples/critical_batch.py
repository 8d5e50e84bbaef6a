"""The critical batch: bias + variance against tokens a step at fixed tokens, the step tuned at each.

python examples/critical_batch.py critical-batch.png
"""

import sys

import matplotlib.pyplot as plt
import numpy as np

from seqlaw import Setting, curve

TOKENS, LENGTHS = 1_000_000, (1, 16, 256)


def main(path: str) -> None:
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="constrained", sharex=True)
    for place, preset in zip(axes, ("regime1", "regime2"), strict=True):
        for P, marker in zip(LENGTHS, "os^", strict=True):
            setting = Setting(teacher=preset, M=64, P=P, d=1024, batch=1, schedule="block")
            most = TOKENS // (8 * P)  # at least eight steps
            batches = np.unique(np.round(np.geomspace(1, min(most, 65_536 // P), 9))).tolist()
            found = curve(setting, "b", batches, tokens=TOKENS, tune=True)
            x = [b * P for b in batches]
            place.loglog(x, [one.bias + one.variance for one in found], marker=marker, ms=4, label=f"P = {P}")
        place.set_xlabel("tokens a step, batch · P")
        place.set_title(
            f"Regime {'I' if preset == 'regime1' else 'II'}, {TOKENS:,} tokens, M = 64", fontsize=10
        )
        place.grid(alpha=0.3)
    axes[0].set_ylabel("bias + variance, the step tuned")
    axes[0].legend(frameon=False)
    figure.savefig(path, dpi=130)


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "critical-batch.png")
