"""Break one formula at a time, in a copy, and see a named test of the fast suite fail.

    python tests/mutations.py [WORD…]     # all, or those whose description contains a word

Prints a table in Markdown, as docs/design.md has it. A line that says "NOT CAUGHT" needs a test.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
COMMAND = [sys.executable, "-m", "pytest", "-q", "-x", "-m", "not slow", "-p", "no:cacheprovider"]


class Mutation(NamedTuple):
    what: str
    file: str
    old: str
    new: str
    test: str
    """A file of tests, and what pytest's -k selects in it."""


MUTATIONS = (
    Mutation(
        "Σ_p: sign of the innovation",
        "model/teacher.py",
        "- self.stationary * np.expm1(exponent)",
        "+ self.stationary * np.expm1(exponent)",
        "test_teacher.py",
    ),
    Mutation("sketch: 1/√d for 1/√M", "model/sketch.py", "/ np.sqrt(M))", "/ np.sqrt(d))", "test_sketch.py"),
    Mutation(
        "C = SAHSᵀ with A²", "model/sketch.py", "C = (root * a) @", "C = (root * a**2) @", "test_sketch.py"
    ),
    Mutation(
        "Nesterov's gradient at the wrong point",
        "model/descent.py",
        "(ahead if nesterov else B) @ G",
        "(B if nesterov else ahead) @ G",
        "test_descent.py",
    ),
    Mutation(
        "block decay: thirds for halves",
        "model/schedule.py",
        "return lengths, self.gamma * 0.5 ** np.arange(count)",
        "return lengths, self.gamma * 0.33 ** np.arange(count)",
        "test_schedule.py",
    ),
    Mutation(
        "score: a lag counted once", "methods/score.py", "lag = (2 * w) *", "lag = w *", "test_exact.py"
    ),
    Mutation(
        "score: stationary lags",
        "methods/score.py",
        "s * (1 + w) / gap)",
        "s * (1 - w) / gap)",
        "test_exact.py",
    ),
    Mutation(
        "Gram chain: degrees of freedom",
        "methods/gram.py",
        "bartlett_diagonal(rng, N - d, d)",
        "bartlett_diagonal(rng, N, d)",
        "test_moments.py",
    ),
    Mutation(
        "κ: Σ h/(h+κ) without 1/M",
        "methods/resolvent.py",
        "(kappa * (1 - share @ weights / M) + z)",
        "(kappa * (1 - share @ weights / (M + 1)) + z)",
        "test_equivalent.py",
    ),
    Mutation(
        "two-point trace: h for h²",
        "methods/functional.py",
        "rest = 1 - pairs(seen, weights, seen) / M",
        "rest = 1 - pairs(seen, weights, D) / M",
        "test_equivalent.py",
    ),
    Mutation(
        "frozen variance: ψ² with a plus",
        "methods/functional.py",
        "constant + psi * (psi - 2)",
        "constant - psi * (psi + 2)",
        "test_equivalent.py",
    ),
    Mutation(
        "finite sample (10): sign in v",
        "methods/functional.py",
        "bD - e * tau * D)",
        "bD + e * tau * D)",
        "test_finite_sample.py",
    ),
    Mutation(
        "finite sample (13): a + β in g₁",
        "methods/finite_sample/over_sketches.py",
        "(1 - c) * a * (a - beta)",
        "(1 - c) * a * (a + beta)",
        "test_finite_sample.py",
    ),
    Mutation(
        "one pass (11): no γμ² in the drift",
        "methods/one_pass/law.py",
        "+= 2 * mu - gamma * mu**2",
        "+= 2 * mu",
        "test_one_pass.py",
    ),
    Mutation(
        "one pass: the safeguard at γ_max",
        "methods/one_pass/step.py",
        "nodes.largest_step(batch) / 2)",
        "nodes.largest_step(batch))",
        "test_one_pass.py",
    ),
    Mutation(
        "epochs (5): the full batch's noise added",
        "methods/one_pass/epochs.py",
        "v = v - s / N",
        "v = v + s / N",
        "test_epochs.py",
    ),
    Mutation(
        "phases: the covariance filtered once",
        "methods/stage.py",
        "inner = psi[:, None] * (U.T @ state.covariance @ U) * psi",
        "inner = psi[:, None] * (U.T @ state.covariance @ U)",
        "test_lengths.py",
    ),
    Mutation(
        "rates: the variance's power of P",
        "methods/rates.py",
        '"P": -1 - 1 / theta, "R": 1 / theta}',
        '"P": -1 + 1 / theta, "R": 1 / theta}',
        "test_rates.py",
    ),
    Mutation(
        "corollary: critical τ of Regime II",
        "planning/corollary.py",
        "critical = (2 * alpha - theta + 1) / bottom",
        "critical = (2 * alpha - theta) / bottom",
        "test_planning.py -k corollary",
    ),
    Mutation(
        "slope: an error without degrees of freedom",
        "fit.py",
        "* float(rest @ rest) / freedom",
        "* float(rest @ rest) / x.size",
        "test_fit.py",
    ),
    Mutation(
        "trajectories: x_{p+1} = A²x_p + ξ",
        "methods/trajectories.py",
        "        kernel.advance(rng, X, modes.a, scale, scratch)\n        yield",
        "        kernel.advance(rng, X, modes.a**2, scale, scratch)\n        yield",
        "test_moments.py",
    ),
)


def caught(one: Mutation, folder: Path) -> str | None:
    """The first test that fails on the broken copy."""
    source = folder / "src" / "seqlaw" / one.file
    text = source.read_text()
    if text.count(one.old) != 1:
        raise SystemExit(f"{one.file} has {text.count(one.old)} times: {one.old}")
    source.write_text(text.replace(one.old, one.new))
    name, *select = one.test.split(" ", 1)
    file = next((folder / "tests").rglob(name)).relative_to(folder).as_posix()
    try:
        done = subprocess.run(
            [*COMMAND, file, *(select[0].split(" ", 1) if select else [])],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": f"{folder / 'src'}{os.pathsep}{folder / 'tests'}"},
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        source.write_text(text)
    failed = [line.split()[1] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].removeprefix(file.removesuffix(name)) if failed else None


def main(words: list[str]) -> int:
    chosen = [one for one in MUTATIONS if not words or any(word in one.what for word in words)]
    missed = 0
    print("| broken | in | caught by |\n|---|---|---|")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in ("src", "tests", "pyproject.toml"):
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, folder / part)
        for one in chosen:
            test = caught(one, folder)
            missed += test is None
            print(f"| {one.what} | `{one.file}` | {f'`{test}`' if test else 'NOT CAUGHT'} |", flush=True)
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
