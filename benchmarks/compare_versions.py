"""Ask a git revision and the working tree the same random questions, and print what differs.

    python benchmarks/compare_versions.py REVISION [--count 500] [--seed 0]

For reviewers of a change that should not move an answer. Numbers are compared as tests/recorded.py does.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from recorded import differences  # noqa: E402  # found through the line above

ASK = """
import json, sys
from recorded import answered, in_folder
asked = json.load(sys.stdin)
with in_folder():
    json.dump([answered(name, command) for name, command in asked], sys.stdout)
"""


def random_question(rng: random.Random) -> list[str]:
    """A command with every option drawn."""

    def log(low: float, high: float) -> float:
        return low * (high / low) ** rng.random()

    alpha = rng.uniform(1.1, 2.4)
    numbers = {
        "alpha": alpha,
        "theta": rng.uniform(1.05, 2.6),
        "r": rng.uniform(0.05, 0.49),
        "rho": rng.uniform(0.1, 0.95),
        "c-xi": log(0.01, 1),
        "c-0": log(0.01, 5),
    }
    teacher = [word for name, x in numbers.items() for word in (f"--{name}", f"{x:.4f}")]
    M = round(log(3, 40))
    sizes = ["-M", str(M), "-d", str(round(M * log(1.5, 8)))]
    test = ["--eval-length", str(round(log(1, 200)))]
    steps = ["--schedule", rng.choice(("wsd", "block", "constant", "cosine")), "-L", str(round(log(30, 1e5)))]
    steps += ["--gamma", f"{log(0.01, 3):.3f}"]
    draws = ["--sketches", "2", "--repetitions", "2", "--seed", str(rng.randrange(1000)), "--jobs", "1"]
    P = round(log(1, 60))
    ways = [
        ["-N", str(round(log(1, 1e5))), "-P", str(P)],
        ["-N", "60", "--lengths", f"{P}:0.5,{P + 7}:0.5"],
        ["--batch", str(round(log(1, 20))), "-P", str(P)],
        ["-N", "60", "--phases", f"{P}:0.4,{P + 9}:0.6"],
    ]
    way = rng.choices(ways, (6, 1, 2, 1))[0]
    method = rng.choice(("sampled", "exact", "equivalent"))
    kind = rng.choices(("risk", "curve", "tradeoff", "rates", "spectrum", "plan"), (12, 2, 2, 1, 1, 1))[0]
    if kind == "risk":
        return ["risk", "--method", method, *teacher, *sizes, *way, *test, *steps, *draws]
    if kind == "curve":
        span = ["--along", rng.choice("NPR"), "--from", "2", "--to", "300", "--points", "4"]
        return ["curve", "--method", "equivalent", *span, *teacher, *sizes, *ways[0], *test, *steps, *draws]
    if kind == "tradeoff":
        tokens = ["--tokens", str(round(log(300, 1e8))), "--points", "4", "--eval-length", test[1]]
        return ["tradeoff", *teacher, *sizes, *tokens, *steps]
    if kind == "plan":
        budget = ["--compute", f"{log(1e4, 1e14):.3g}", "--tokens", f"{log(100, 1e8):.3g}"]
        return ["plan", *teacher, *budget, *test, "-d", "inf", "--schedule", "wsd", "--gamma", "0.1"]
    return [kind, *teacher, *sizes, "-P", str(P), *(["-N", "4096"] if kind == "rates" else []), *steps]


def answers(source: Path, asked: list[tuple[str, str]]) -> list[dict[str, object]]:
    """What the package under `source` answers."""
    paths = os.pathsep.join(map(str, (source / "src", ROOT / "tests")))
    done = subprocess.run(
        [sys.executable, "-c", ASK],
        input=json.dumps(asked),
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        check=True,
    )
    found: list[dict[str, object]] = json.loads(done.stdout)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("revision")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    commands = [random_question(rng) for _ in range(given.count)]
    asked = [(shlex.join(command), shlex.join(command)) for command in commands]
    with tempfile.TemporaryDirectory() as folder:
        archive = subprocess.run(
            ["git", "-C", str(ROOT), "archive", given.revision, "src"], capture_output=True, check=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        before = answers(Path(folder), asked)
    after = answers(ROOT, asked)
    apart = 0
    for (name, _), was, now in zip(asked, before, after, strict=True):
        found = differences(name, was, now)
        apart += bool(found)
        print(*found[:3], sep="\n", end="\n" * bool(found))
    refused = sum("refused" in one for one in before)
    print(f"{given.count} questions ({refused} refused by both or one), {apart} differ")


if __name__ == "__main__":
    main()
