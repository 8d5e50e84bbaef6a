"""Tables from known laws: how often intervals cover, a length is found, and one is invented.

python benchmarks/coverage_law.py 100            (about six minutes on one core; fewer tables, less)
python benchmarks/coverage_law.py 100 beyond     (predictions alone: about ten minutes)
python benchmarks/coverage_law.py 100 tests      (own and common test lengths alone: about two minutes)
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from run_tables import (
    EFFECTS,
    THREE,
    beyond_table,
    effect,
    own_and_common,
    run_table,
    sentence_is_right,
)
from seqlaw.runs.ask import fit_law
from seqlaw.runs.compare import compare
from seqlaw.runs.form import make_form
from seqlaw.runs.law import LEVEL, bootstrap, estimate, fit_form
from seqlaw.runs.table import read_runs

TERMS = ["params", "tokens", "length"]


def covered(seeds, *, length, rows=None, bootstraps=200):
    """For each exponent whether its interval covers, shape (tables, exponents)."""
    found = []
    for seed in seeds:
        frame, truth = run_table(seed, length=length, rows=rows)
        form = make_form(TERMS if length else TERMS[:2], None)
        runs = read_runs(frame, "loss", form.columns)
        fitted = fit_form(form, runs)
        draws = fitted.phi(bootstrap(fitted, runs, bootstraps, seed))
        ends = [estimate(0.0, draws[:, j], LEVEL) for j in range(len(form.numbers))]
        found.append([e.low <= truth[name] <= e.high for e, name in zip(ends, form.numbers, strict=True)])
    return np.array(found)


def found_length(seeds, *, length, noise, rows=None):
    """The share of tables in which the length is said to matter; three lengths."""
    form, said = make_form(TERMS, None), []
    for seed in seeds:
        frame, _ = run_table(seed, length=length, lengths=THREE, noise=noise, rows=rows)
        runs = read_runs(frame, "loss", TERMS)
        size = runs.columns["params"] * runs.columns["tokens"]
        found = compare(fit_form(form, runs), runs, "length", size, level=LEVEL, seed=0)
        said.append(found.verdict == "matters")
    return np.mean(said)


BEYOND = [
    ("sum", "sum"),
    ("power-mean", "power-mean"),
    ("power-mean", "sum"),
    ("break", "sum"),
    ("break", "power-mean"),
]
"""The law of the tables, and the form that is fitted to them: the first two rows are of the fitted form."""


def predicted(seeds, *, law, form, bootstraps=200):
    """For each table the shares of runs covered and mean widths: inside and ten times dearer.

    Columns: covered inside, its width; covered beyond, its width; covered beyond without the widening;
    whether the pattern flag is raised; 1 if the rollout prefers a power mean, -1 a sum, 0 neither.
    """
    found = []
    for seed in seeds:
        table, inside, dear = beyond_table(seed, law)
        how = {"loss": "loss", "terms": TERMS[:2], "form": form, "bootstraps": bootstraps}
        one = fit_law(table, predict=pd.concat([inside, dear]), **how)
        low, high = (np.array([getattr(p.loss, end) for p in one.predictions]) for end in ("low", "high"))
        row = []
        for new, here in ((inside, slice(len(inside))), (dear, slice(len(inside), None))):
            row.append(np.mean((low[here] <= new.loss) & (new.loss <= high[here])))
            row.append(np.mean((high[here] - low[here]) / new.loss))
        drawn = one.fitted.log_loss({name: dear[name] for name in TERMS[:2]}, one.draws)
        rest = one.fitted.rest(one.runs)
        drawn = np.exp(drawn + np.random.default_rng(seed).choice(rest, drawn.shape))
        low, high = np.quantile(drawn, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
        choice = {"power-mean": 1, "sum": -1}.get(one.forms.better or "", 0)
        pattern = any(flag.code == "pattern" for flag in one.flags)
        found.append([*row, np.mean((low <= dear.loss) & (dear.loss <= high)), pattern, choice])
    return np.array(found)


def beyond(count) -> None:
    """Predictions of runs in the range of the table and ten times dearer than its dearest."""
    print("law of the tables, form fitted: cover inside (width), ten times dearer (width), the same without")
    print("widening; residual pattern said; power mean and sum said to predict better")
    for law, form in BEYOND:
        found = predicted(range(count), law=law, form=form)
        near, near_width, far, far_width, narrow, pattern = found[:, :6].mean(axis=0)
        said = [np.mean(found[:, 6] == sign) for sign in (1, -1)]
        error = found[:, 2].std() / np.sqrt(count)
        print(
            f"{law:10s} {form:10s} {near:.1%} ({near_width:.3f})  {far:.1%} ± {error:.1%} ({far_width:.3f})"
            f"  {narrow:.1%}  {pattern:.0%}  {said[0]:.0%} {said[1]:.0%}",
            flush=True,
        )


def own_tests(count) -> None:
    """Runs tested at their own length and at a common one: is the sentence right, and what else it says.

    As many tables of each kind, `count` in all.
    """
    for k, (kind, (training, test)) in enumerate(EFFECTS.items()):
        right, wrong, seeds = 0, set(), range(1000 + k, 1000 + count, len(EFFECTS))
        for seed in seeds:
            noise = float(np.exp(np.random.default_rng([2029, seed]).uniform(np.log(0.003), np.log(0.01))))
            found = effect(*own_and_common(seed, training=training, test=test, noise=noise))
            if sentence_is_right(found, kind):
                right += 1
            else:
                wrong.add(" and ".join(found.shown) or "neither")
        print(f"{kind:8s}: right in {right} of {len(seeds)}; else said: {sorted(wrong)}", flush=True)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    if sys.argv[2:] == ["tests"]:
        own_tests(count)
        return
    beyond(count)
    if sys.argv[2:] == ["beyond"]:
        return
    plain = covered(range(count // 2), length=0.0)
    longer = covered(range(count // 2, count), length=0.2)
    for j, name in enumerate(TERMS):
        both = [table[:, j] for table in (plain, longer) if j < table.shape[1]]
        print(f"{LEVEL:.0%} intervals of {name}: cover in {np.mean(np.concatenate(both)):.1%}", flush=True)
    few = covered(range(count), length=0.0, rows=30)
    print(f"tables of 30 runs: {few[:, 0].mean():.1%}, {few[:, 1].mean():.1%}", flush=True)
    for length, noises in ((0.01, (0.003, 0.005)), (0.0, (0.003, 0.01, 0.03))):
        for noise in noises:
            share = found_length(range(1000, 1000 + count), length=length, noise=noise)
            print(f"length effect {length:.0%}, noise {noise:.1%}: said to matter in {share:.0%}", flush=True)
    few = found_length(range(1000, 1000 + 2 * count), length=0.0, noise=0.01, rows=30)
    print(f"no length effect, noise 1 %, tables of 30 runs: said to matter in {few:.1%}")


if __name__ == "__main__":
    main()
