"""Every command beside an older checkout: seconds and peak memory, as a table of Markdown.

git worktree add --detach ../base 4776e46        # 0.2
python benchmarks/beside.py ../base              # a quarter of an hour; --rows plan for some of them

Each run is a process of its own, which asks a small question first to load what it needs. The two checkouts
take turns, and each number is the median of the rounds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ASK = """
import contextlib, io, resource, sys, time
import numpy as np
from seqlaw import PRESETS
from seqlaw.cli import main
{prepare}
def ask(words):
    with contextlib.redirect_stdout(io.StringIO()) as said, contextlib.suppress(SystemExit):
        main(words.split())
    return said.getvalue()
for words in {warm!r}:
    ask(words)
began = time.perf_counter()
said = ask({words!r})
print(time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, len(said))
"""
RUNS = """
rng = np.random.default_rng(0)
params, tokens = np.exp(rng.uniform(17, 22, 80)), np.exp(rng.uniform(21, 26, 80))
length = rng.choice([512, 2048, 8192], 80)
loss = 1.8 + 300 * params**-0.33 + 900 * tokens**-0.34 + 3 * length**-0.5
rows = zip(params, tokens, length, loss * np.exp(0.004 * rng.standard_normal(80)))
with open("runs.csv", "w") as file:
    file.write("params,tokens,length,loss\\n" + "\\n".join(",".join(map(str, row)) for row in rows))
"""
STATES = """
from seqlaw.{methods} import trajectories
np.save("states.npy", trajectories(PRESETS["regime2"].modes(64), 1500, 31, seed=1))
"""
POINT = "-M 64 -P 100 -N 100 --schedule wsd -L 10000"
LONG = "--rho 0.97"
CURVES = {
    "M": "-P 100 -N 100 -L 10000 --along M --from 8 --to 512",
    "N": "-M 64 -P 100 -L 10000 --along N --from 2 --to 1e6",
    "P": "-M 64 -N 100 -L 10000 --along P --from 1 --to 1e6",
    "R": "-M 64 -P 100 -N 100 --along R --from 10 --to 1e6",
}
ROWS: list[tuple[str, str, str]] = [
    ("one point", f"risk {POINT}", ""),
    ("one point, ρ = 0.97", f"risk {POINT} {LONG}", ""),
    *(
        (f"200 points along {size}, d = {d}", f"curve {words} -d {d} --points 200", "0.3 s")
        for size, words in CURVES.items()
        for d in ("1024", "inf")
        if size != "M" or d == "inf"
    ),
    *(
        (f"200 points along {size}, ρ = 0.97", f"curve {words} -d 1024 --points 200 {LONG}", "1 s")
        for size, words in CURVES.items()
        if size != "M"
    ),
    ("plan, γ = 0.1", "plan --compute 1e15 --tokens 1e9 --eval-length 1024 --gamma 0.1", ""),
    ("plan, best step (0.2: γ = 0.1)", "plan --compute 1e15 --tokens 1e9 --eval-length 1024", ""),
    ("plan, few data", "plan --compute 1e8 --tokens 1e4 --eval-length 4", "1 s"),
    ("plan, intervals", "plan --compute 1e12 --tokens 1e6 --alpha 1.7:1.9 --theta 1.2:1.4 --draws 12", ""),
    ("plan, one pass", "plan --one-pass --compute 1e15 --tokens 1e9 --eval-length 1024", "3 s"),
    ("plan, one pass, scarce tokens", "plan --one-pass --compute 1e12 --tokens 1e5 --eval-length 256", "3 s"),
    ("plan, epochs (not in 0.2)", "plan --compute 1e12 --tokens 1e5 --eval-length 256 --epochs best", "3 s"),
    ("tradeoff, best step (0.2: γ = 0.1)", "tradeoff --tokens 1e6 -M 64 --eval-length 64", ""),
    ("ladder, best step (0.2: γ = 0.1)", "ladder", "3 s"),
    ("exact, four sketches", f"risk --method exact {POINT} -d 256 --sketches 4 --jobs 1", ""),
    (
        "sampled, 16 students",
        "risk --method sampled -M 16 -d 128 -N 512 -P 16 -L 3000 --sketches 4 --jobs 1",
        "",
    ),
    (
        "law, 80 runs",
        "law runs.csv --loss loss --term params --term tokens --term length --without length",
        "",
    ),
    ("measure", "measure states.npy", ""),
    ("forecast", "forecast states.npy --tokens 2000", ""),
]
"""A name, the question, and what 0.3 was asked for."""
TINY = "-M 8 -d 16 -P 4 -N 16 -L 100"
SPLIT = "tradeoff --tokens 1000 -M 4 -d 16 --eval-length 4"
WARM = {
    "risk": f"risk {TINY}",
    "curve": f"curve {TINY} --along N --from 4 --to 16 --points 3",
} | dict.fromkeys(("tradeoff", "ladder", "plan"), SPLIT)
"""A small question that loads what the large one needs; of `law` and the readers of files none is needed."""


def asked(checkout: Path, words: str, folder: Path) -> tuple[float, float]:
    """Seconds and MiB of a question."""
    source = checkout / "src"
    old = (source / "seqlaw" / "rungs").exists()
    if old:
        words = words.replace("--method", "--rung")
    prepare = (
        RUNS + STATES.format(methods="rungs" if old else "methods")
        if ".csv" in words or ".npy" in words
        else ""
    )
    command = words.split()[0]
    warm = [WARM.get(command, WARM["risk"])]
    code = ASK.format(prepare=prepare, warm=warm, words=words)
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "OMP_NUM_THREADS": "1",
        "OPENBLAS_NUM_THREADS": "1",
    }
    run = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=folder, capture_output=True, text=True, check=True
    )
    seconds, memory, said = map(float, run.stdout.split()[-3:])
    if not said:
        raise SystemExit(f"{words}: no answer: {run.stderr}")
    return seconds, memory


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("base", type=Path, help="a checkout to compare with")
    parser.add_argument("--rows", default="", help="only rows whose name has this in it")
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    here = Path(__file__).resolve().parents[1]
    print("| question | asked | seconds | 0.2 | ratio | MiB | 0.2 |")
    print("|---|---|---|---|---|---|---|", flush=True)
    for name, words, wanted in ROWS:
        if given.rows not in name:
            continue
        places = [here] if "not in 0.2" in name else [here, given.base.resolve()]
        with tempfile.TemporaryDirectory() as folder:
            rounds = [[asked(place, words, Path(folder)) for place in places] for _ in range(given.rounds)]
        (now, *before), (size, *sizes) = (
            [statistics.median(one[k][part] for one in rounds) for k in range(len(places))] for part in (0, 1)
        )
        missed = " (missed)" if wanted and now > float(wanted.removesuffix(" s")) else ""
        was = f"{before[0]:.2g} | {before[0] / now:.2g}" if before else "– | –"
        memory = f"{size:.0f} | {sizes[0]:.0f}" if sizes else f"{size:.0f} | –"
        print(f"| {name} | {wanted or '–'} | {now:.2g}{missed} | {was} | {memory} |", flush=True)


if __name__ == "__main__":
    main()
