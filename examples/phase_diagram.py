"""Where ladders of two lengths gain: the phase diagram over horizons and test lengths (docs/lengths.md).

Every ordered pair of candidates at each share of the last phase is tried on some sketches; what is chosen is
compared on others. Draws `phase_diagram.png` (docs/lengths.png): the gain over the best single length against
the horizon, a line a test length; and the share of the last phase, where a ladder that ends longer gains.
"""

import sys
from itertools import permutations

from matplotlib import pyplot

from seqlaw import PRESETS, Constant, Lengths, Setting
from seqlaw.planning.ladder import Sketches, trial_of

quick = "--quick" in sys.argv
sizes = {"M": 12, "d": 48} if quick else {"M": 96, "d": 768}
tokens, candidates = (2**16, (2, 64)) if quick else (2**24, (2, 16, 128, 4096))
tests = (64,) if quick else (16, 128, 4096)
horizons = (10**3, 10**4) if quick else (10**3, 10**4, 3 * 10**4, 10**5, 3 * 10**5, 10**6, 10**7)
shares = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9)
ladders = [Lengths(pair, (1 - last, last), True) for pair in permutations(candidates, 2) for last in shares]
figure, (axes, shared) = pyplot.subplots(1, 2, figsize=(10, 4.6), layout="constrained")
for name, line in zip(("regime2",) if quick else PRESETS, ("--", "-"), strict=False):
    student = Setting(teacher=name, N=1, P=2, schedule="constant", **sizes)
    helped = 0
    for k, test in enumerate(tests):
        found, last_shares = [], []
        for L in horizons:
            setting = student.but(eval_length=test, schedule=Constant(gamma=0.1, L=L))
            sketches = Sketches(setting, trial_of(setting, tokens, max(candidates), 2), 4, 0, tune=False)
            single, best = (min(some, key=sketches.quick) for some in (candidates, ladders))
            known = sketches.compared([single, best], [single])[1][best]
            gain, error = 1 - known["against"], known["against_error"]
            found.append((setting.schedule.horizon, gain, error))
            (first, last), share = best.lengths, best.shares[1]
            gains_here = gain > max(2 * error, 0.001)
            helped += gains_here
            if gains_here and last > first:
                last_shares.append((setting.schedule.horizon, 100 * share))
            print(
                f"{L:>10,} steps, tested at {test:>5,}: P = {single:,}; {first:,} then {last:,} for the last "
                f"{share:.0%}: gain {gain:.2%} ± {error:.1%}"
            )
        label = f"Regime {setting.regime}, tested at {test:,}"
        R, gains, errors = zip(*found, strict=True)
        style = {"color": f"C{k}", "linestyle": line, "marker": "o"}
        axes.errorbar(R, [100 * x for x in gains], [100 * x for x in errors], label=label, **style)
        if last_shares:
            shared.plot(*zip(*last_shares, strict=True), **style)
    cells = len(tests) * len(horizons)
    print(f"Regime {student.regime}: two phases beat the best single length in {helped} of {cells} cells")
axes.set(xscale="log", xlabel="horizon R", ylabel="gain over the best single length, %")
axes.axhline(0, color="0.6", linewidth=0.8)
shared.set(xscale="log", xlim=axes.get_xlim(), xlabel="horizon R", ylabel="last phase, % of steps")
figure.legend(loc="outside lower center", ncols=3)
figure.suptitle("Short first, long last: where it beats every single length")
figure.savefig("phase_diagram.png")
