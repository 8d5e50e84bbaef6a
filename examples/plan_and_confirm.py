"""Plan for a budget, then check the plan by training students on sampled trajectories."""

import dataclasses

from seqlaw import PRESETS, Budget, plan, risk


def main() -> None:
    teacher, d, tested = PRESETS["regime2"], 128, 32
    budget = Budget(compute=3e10, tokens=20_000)
    answer = plan(teacher, budget, d=d, eval_length=tested)
    best = answer.best
    print(f"best: M={best.M} N={best.N} P={best.P} L={best.L}, predicted risk {best.reducible:.4g}")
    for note in answer.notes:
        print("-", note)

    # The same tokens in longer and shorter sequences, the rest as planned: sampled, with standard errors.
    lengths = sorted({best.P, 2, 8, 32})
    splits = [dataclasses.replace(answer.setting, P=P, N=best.tokens // P) for P in lengths]
    measured = risk(splits, method="sampled", sketches=8, repetitions=2, seed=1)
    predicted = risk(splits, method="equivalent")
    for P, seen, told in zip(lengths, measured, predicted, strict=True):
        error = seen.standard_error["reducible"]
        print(f"P = {P:>3}: sampled {seen.reducible:.4g} ± {error:.1g}, predicted {told.reducible:.4g}")


if __name__ == "__main__":
    main()
