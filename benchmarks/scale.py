"""The law against exact sketches at any width, and the figure of docs/scale.md.

`python benchmarks/scale.py ROWS.jsonl M:SKETCHES[:FIRST] … [--device cuda]` adds sketches to a file of rows,
`python benchmarks/scale.py ROWS.jsonl [--draw scale.png]` prints the table and draws it.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from rows_of import exact_rows
from seqlaw import PRESETS, BlockDecay, Setting
from seqlaw.methods.ask import risks

TERMS = ("approx", "bias", "variance")
NAMES = {"approx": "approx", "bias": "bias", "variance": "variance / irreducible"}


def point(M: int) -> Setting:
    """Regime II, d = 4M, P = 16, data without end, trained until Σγ κ(0) is near 0.3: alike at every M."""
    start = Setting(
        teacher=PRESETS["regime2"], M=M, N=10**12, P=16, d=4 * M, schedule=BlockDecay(gamma=0.1, L=1000)
    )
    horizon = 0.3 / risks([start])[0].diagnostics["kappa"]
    return replace(start, schedule=start.schedule.with_horizon(horizon))


def measured(M: int, sketches: range, device: str | None) -> Iterator[dict[str, Any]]:
    """Each sketch's terms over the law's; a variance by the noise that the sketch itself lets through."""
    setting = point(M)
    law = risks([setting])[0]
    for sketch in sketches:
        start = time.perf_counter()
        row = exact_rows([setting], sketches=[sketch], device=device)[0]
        seconds = time.perf_counter() - start
        ratios = {name: row[name] / getattr(law, name) for name in (*TERMS, "irreducible")}
        yield {"M": M, "sketch": sketch, "seconds": seconds, "device": device or "cpu", **ratios}


def table(rows: list[dict[str, Any]]) -> dict[int, dict[str, Any]]:
    """For each M the number of sketches, M times the mean and the spread of exact/law - 1, seconds."""
    found = {}
    for M in sorted({row["M"] for row in rows}):
        mine = [row for row in rows if row["M"] == M]
        noise = np.array([row["irreducible"] for row in mine])
        line: dict[str, Any] = {
            "sketches": len(mine),
            "seconds": float(np.median([r["seconds"] for r in mine])),
        }
        for name in TERMS:
            ratio = np.array([row[name] for row in mine]) / (noise if name == "variance" else 1.0)
            error = M * (ratio - 1)
            spread = float(error.std(ddof=1)) if len(mine) > 1 else float("nan")
            line[name] = float(error.mean()), spread / len(mine) ** 0.5, spread
        found[M] = line
    return found


def draw(found: dict[int, dict[str, Any]], path: str) -> None:
    """M times the mean error, and one sketch's |error| on logarithmic axes."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    widths = np.array(list(found))
    for k, name in enumerate(TERMS):
        mean, error, spread = (np.array([found[M][name][i] for M in found]) for i in range(3))
        look: dict[str, Any] = {"color": f"C{k}", "marker": "osD"[k], "markersize": 4}
        left.errorbar(
            widths * 1.04 ** (k - 1), mean, 2 * error, linestyle="none", capsize=2, label=NAMES[name], **look
        )
        right.plot(widths, spread / widths, label=NAMES[name], **look)
    left.set_yscale("symlog", linthresh=1)
    left.axhline(0, color="0.5", linewidth=0.8)
    left.set(
        xscale="log",
        xlabel="M",
        ylabel="M × (exact / equivalent - 1)",
        title="mean over sketches, ± 2 errors",
    )
    right.plot(widths, 1 / widths, color="0.5", linestyle="--", linewidth=0.8, label="1/M")
    right.set(
        xscale="log", yscale="log", xlabel="M", ylabel="spread of exact / equivalent", title="one sketch"
    )
    for place in (left, right):
        place.set_xscale("log", base=2)
        place.legend(frameon=False, fontsize="small")
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows", type=Path)
    parser.add_argument("more", nargs="*", metavar="M:SKETCHES")
    parser.add_argument("--device")
    parser.add_argument("--draw")
    asked = parser.parse_intermixed_args()
    for text in asked.more:
        M, count, *first = (int(part) for part in text.split(":"))
        with asked.rows.open("a") as file:
            for row in measured(M, range(*first, *[count + sum(first)]), asked.device):
                file.write(json.dumps(row) + "\n")
                file.flush()
    found = table([json.loads(line) for line in asked.rows.read_text().splitlines()])
    print(f"{'M':>6} {'sketches':>8} {'s each':>8}" + "".join(f"{NAMES[name]:>26}" for name in TERMS))
    for M, line in found.items():
        cells = "".join(
            f"{mean:>+12.2f} ± {error:4.2f} ({spread:4.1f})" for mean, error, spread in map(line.get, TERMS)
        )
        print(f"{M:>6} {line['sketches']:>8} {line['seconds']:>8.2f}{cells}")
    if asked.draw:
        draw(found, asked.draw)
