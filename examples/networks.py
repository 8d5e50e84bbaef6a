"""The law beside trained networks: the table, the losses by position and the ladders of docs/networks.csv.

    python examples/networks.py --device cuda --jobs 6 --out docs/networks.csv

A row is one sketch, the mean over its seeds. All students share the sketches, so differences between them
have errors of their own. Finished rows are written at once, and what is in the file is not run again.
`--tiny` is a trial of half a minute on a CPU; its numbers mean nothing.
"""

from __future__ import annotations

import argparse
import csv
import math
import multiprocessing
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

from seqlaw.methods.ask import METHODS, risks
from seqlaw.methods.method import Draws
from seqlaw.methods.one_pass.tuning import tuned
from seqlaw.model.lengths import Lengths
from seqlaw.model.network import Network
from seqlaw.model.optimizer import Adam
from seqlaw.model.schedule import WSD
from seqlaw.model.setting import Setting

STUDENTS = {
    "linear sgd": (None, None),
    "linear adam": (None, "adam"),
    "lru adam": ("lru", "adam"),
    "gru adam": ("gru", "adam"),
    "transformer adam": ("transformer", "adam"),
}
KEY = ("part", "regime", "steps", "trained", "test", "student")
COLUMNS = (*KEY, "sketch", "reducible", "approx", "step", "edge", "diverged", "seconds")


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """How large everything is."""

    M: int = 32
    d: int = 256
    tokens: int = 16384
    steps: tuple[int, ...] = (60, 1500)
    lengths: tuple[int, ...] = (2, 8, 32, 128, 512)
    sketches: int = 3
    seeds: int = 2
    hidden: int | None = None


TINY = Sizes(M=4, d=16, tokens=128, steps=(10, 20), lengths=(2, 8, 16), sketches=2, seeds=1, hidden=8)


class Point(NamedTuple):
    """One student, trained once and tested as `tests` say."""

    part: str
    regime: str
    steps: int
    P: int | Lengths
    tests: Sequence[dict[str, int]]
    student: str

    @property
    def trained(self) -> str:
        return self.P.words.replace(" ", "") if isinstance(self.P, Lengths) else str(self.P)

    @property
    def keys(self) -> list[tuple[str, ...]]:
        """What names its rows in the table, one for each test."""
        named = (self.part, self.regime, str(self.steps), self.trained)
        return [(*named, str(place), self.student) for test in self.tests for place in test.values()]


def setting(sizes, regime, steps, P, student="linear sgd"):
    """The training of a point; its step is the law's best where it is plain descent of a linear student."""
    name, optimizer = STUDENTS[student]
    network = None if name is None else Network(name=name, hidden=sizes.hidden)
    longest = P.longest if isinstance(P, Lengths) else P
    return Setting(
        teacher=regime,
        M=sizes.M,
        d=sizes.d,
        P=P,
        batch=sizes.tokens // longest,
        schedule=WSD(gamma=0.1, L=steps),
        network=network,
        optimizer=optimizer,
    )


@cache
def best_plain(sizes, regime, steps, P):
    """The schedule at the law's best step; of phases at that of the last length."""
    last = P.lengths[-1] if isinstance(P, Lengths) else P
    plain = setting(sizes, regime, steps, last).but(eval_length=sizes.lengths[-1])
    return tuned([plain])[0].schedule


def points(sizes):
    """All of the table, the longest trainings first, so that no process is left alone with one at the end."""
    test = [{"eval_length": sizes.lengths[-1]}]
    long, short, last = sizes.steps[-1], sizes.lengths[1], sizes.lengths[-1]
    found = [
        ("lengths", regime, steps, P, test)
        for steps in sizes.steps
        for regime in ("regime2", "regime1")
        for P in sizes.lengths
    ]
    places = [{"position": p} for p in (0, *(2**k for k in range(20) if 2**k < last), last - 1)]
    found += [("positions", "regime2", long, P, places) for P in (short, last)]
    found += [
        ("ladders", "regime2", steps, Lengths((first, last), (0.8, 0.2), phases=True), test)
        for steps in sizes.steps
        for first in sizes.lengths[:2]
    ]
    every = [Point(*one, student) for one in found for student in ("law", *STUDENTS)]
    cost = list(reversed(("law", *STUDENTS)))
    return sorted(every, key=lambda one: (-one.steps, cost.index(one.student), one.part == "ladders"))


def rows_of(sizes, device, point):
    """The rows of one point: for each test and sketch the mean over seeds."""
    begun = time.monotonic()
    base = setting(
        sizes, point.regime, point.steps, point.P, "linear sgd" if point.student == "law" else point.student
    )
    if point.student in ("law", "linear sgd"):
        base = base.but(schedule=best_plain(sizes, point.regime, point.steps, point.P))
    asked = [base.but(**test) for test in point.tests]
    if point.student == "law":
        found = METHODS["exact"].rows(asked, Draws(sketches=sizes.sketches))
    else:
        draws = Draws(sketches=sizes.sketches, repetitions=sizes.seeds, device=device)
        found = METHODS["trained"].rows(asked, draws)
    seconds = time.monotonic() - begun
    rows = []
    for (which, sketch), own in grouped(found, "point", "sketch").items():
        rows.append(
            dict(zip(KEY, point.keys[which], strict=True))
            | {
                "sketch": sketch,
                "reducible": f"{np.mean([row['reducible'] for row in own]):.6g}",
                "approx": f"{own[0]['approx']:.6g}",
                "step": f"{own[0]['gamma']:.4g}",
                "edge": int(own[0].get("edge", 0)),
                "diverged": int(sum(row.get("diverged", 0) for row in own)),
                "seconds": f"{seconds:.1f}",
            }
        )
    return rows


def grouped(rows, *names):
    """Rows by what they have in these columns, in order of appearance."""
    found = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def run(sizes, path, device, jobs):
    """All rows that are not there yet, several points at a time; each is written when it is known."""
    known = set()
    if path.exists():
        known = {tuple(row[name] for name in KEY) for row in read(path)}
    else:
        path.write_text(",".join(COLUMNS) + "\n")
    left = [point for point in points(sizes) if not known.issuperset(point.keys)]
    print(f"{len(points(sizes)) - len(left)} points are there, {len(left)} are not", file=sys.stderr)
    begun, context = time.monotonic(), multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(jobs, mp_context=context) as pool:
        working = {pool.submit(rows_of, sizes, device, point): point for point in left}
        try:
            for done, future in enumerate(as_completed(working), 1):
                with path.open("a", newline="") as file:
                    csv.DictWriter(file, COLUMNS).writerows(rows := future.result())
                what, value = " ".join(working[future].keys[0]), rows[0]["reducible"]
                print(
                    f"{done}/{len(left)} {what}: {value}, {time.monotonic() - begun:.0f} s so far",
                    file=sys.stderr,
                    flush=True,
                )
        except KeyboardInterrupt:
            pool.shutdown(cancel_futures=True)
            raise
    ordered = read(path)
    with path.open("w", newline="") as file:
        table = csv.DictWriter(file, COLUMNS)
        table.writeheader()
        table.writerows(ordered)


def read(path):
    """The rows of a table, in the order of the plan."""
    with path.open(newline="") as file:
        found = list(csv.DictReader(file))
    parts, names = ["lengths", "positions", "ladders"], ["law", *STUDENTS]

    def place(row):
        sizes = [int(part.split(":")[0].split(">")[0]) for part in (row["trained"], row["test"])]
        where = (parts.index(row["part"]), row["regime"] != "regime2", int(row["steps"]))
        return *where, sizes[0], sizes[1], names.index(row["student"]), int(row["sketch"])

    return sorted(found, key=place)


def speed(sizes, device, jobs):
    """Runs a minute at the middle length: one by one, and side by side in `jobs` processes."""
    context = multiprocessing.get_context("spawn")
    for student in STUDENTS:
        rates = []
        for sketches, seeds, processes in ((1, 1, 1), (sizes.sketches, sizes.seeds, jobs)):
            with ProcessPoolExecutor(processes, mp_context=context) as pool:
                for _ in range(2):  # the first warms up
                    begun = time.monotonic()
                    works = [
                        pool.submit(train, sizes, device, student, sketches, seeds) for _ in range(processes)
                    ]
                    for work in works:
                        work.result()
                    seconds = time.monotonic() - begun
            rates.append(60 * sketches * seeds * processes / seconds)
        print(
            f"{student}: {rates[0]:.1f} runs a minute one by one, {rates[1]:.1f} as in the table, "
            f"{rates[1] / rates[0]:.1f} times as many",
            flush=True,
        )


def train(sizes, device, student, sketches, seeds):
    """A training at the middle length, with a given step."""
    steps, P = max(10, sizes.steps[-1] // 10), sizes.lengths[len(sizes.lengths) // 2]
    base = setting(sizes, "regime2", steps, P, student)
    if STUDENTS[student][1] is not None:
        base = base.but(optimizer=Adam(step=0.003))
    risks([base], method="trained", draws=Draws(sketches=sketches, repetitions=seeds, device=device))


def averaged(rows, beside=()):
    """Mean over the sketches and its error; beside others, the ratio of the means and its paired error."""
    values = np.array([float(row["reducible"]) for row in rows])
    others = np.array([float(row["reducible"]) for row in beside]) if beside else np.ones(1)
    ratio = values.mean() / others.mean()
    if not math.isfinite(ratio):
        return ratio, math.nan
    rest = (values - ratio * others) / others.mean()
    return ratio, math.sqrt(rest.var(ddof=1) / len(rest)) if len(rest) > 1 else math.nan


def draw(path, picture):
    """The lengths of both regimes and both numbers of steps, and the losses by position."""
    from matplotlib.figure import Figure

    rows = read(path)
    panels = [
        ("lengths", regime, steps)
        for regime in ("regime1", "regime2")
        for steps in sorted({row["steps"] for row in rows if row["part"] == "lengths"}, key=int)
    ]
    panels += [
        ("positions", "regime2", P)
        for P in dict.fromkeys(x["trained"] for x in rows if x["part"] == "positions")
    ]
    figure = Figure(figsize=(13, 7.8), layout="constrained")
    for axes, (part, regime, which) in zip(figure.subplots(2, 3).T.flat, panels, strict=True):
        x, chosen = ("trained", "steps") if part == "lengths" else ("test", "trained")
        here = [row for row in rows if (row["part"], row["regime"], row[chosen]) == (part, regime, which)]
        for student, marker in zip(("law", *STUDENTS), "-os^Dv", strict=True):
            own = grouped((row for row in here if row["student"] == student), x)
            at, (y, error) = [float(one) for (one,) in own], zip(*map(averaged, own.values()), strict=True)
            look = (
                {"color": "black", "linewidth": 2}
                if student == "law"
                else {"marker": marker, "markersize": 4}
            )
            axes.errorbar(at, y, yerr=None if student == "law" else error, label=student, capsize=2, **look)
        axes.set_yscale("log")
        if part == "lengths":
            axes.set_xscale("log", base=2)
            title, x_label = (
                f"Regime {'I' * int(regime[-1])}, {int(which):,} steps, tested at 512",
                "training length P",
            )
        else:
            axes.set_xscale("symlog", base=2, linthresh=1)
            axes.set_xlim(left=-0.3)
            title, x_label = f"Regime II, 1,500 steps, trained at P = {which}", "position of the test"
        axes.set(title=title, xlabel=x_label, ylabel="reducible risk")
    handles = figure.axes[0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=6, frameon=False)
    figure.savefig(picture, dpi=110)


def draw_positions(picture):
    """The law by position, of students trained on short and on long sequences, early and late."""
    from matplotlib.figure import Figure

    from seqlaw import curve

    sizes = Sizes()
    short, long = sizes.lengths[0], sizes.lengths[-1]
    places = [0, *(2**k for k in range(20) if 2**k < long), long - 1]
    figure = Figure(figsize=(9, 3.8), layout="constrained")
    for axes, regime in zip(figure.subplots(1, 2), ("regime1", "regime2"), strict=True):
        for steps, style in zip(sizes.steps, ("--", "-"), strict=True):
            for P, colour in ((short, "C0"), (long, "C1")):
                student = setting(sizes, regime, steps, P).but(schedule=best_plain(sizes, regime, steps, P))
                risks = [one.reducible for one in curve(student, "position", places)]
                axes.plot(places, risks, style, color=colour, label=f"P = {P}, {steps:,} steps")
        axes.set_xscale("symlog", base=2, linthresh=1)
        axes.set_yscale("log")
        title = f"Regime {'I' * int(regime[-1])}, the law, M = {sizes.M}"
        axes.set(title=title, xlabel="position of the test", ylabel="reducible risk", xlim=(-0.1, long))
    axes.legend(frameon=False)
    figure.savefig(picture, dpi=110)


def table(path):
    """The lengths and ladders as Markdown, × 10^-5, and each student's ratio to the law."""
    rows = [row for row in read(path) if row["part"] != "positions"]
    for (part, regime, steps), here in grouped(rows, *KEY[:3]).items():
        trained = list(dict.fromkeys(row["trained"] for row in here))
        print(f"\n| {part}, {regime}, {steps} steps | {' | '.join(trained)} |\n|---|{'---|' * len(trained)}")
        for student in ("law", *STUDENTS):
            cells = []
            for one in trained:
                own, law = (
                    [row for row in here if row["trained"] == one and row["student"] == name]
                    for name in (student, "law")
                )
                (mean, error), (ratio, paired) = averaged(own), averaged(own, law)
                edge = " edge" if own[0]["edge"] == "1" else ""
                cells.append(f"{1e5 * mean:.3g} ± {1e5 * error:.1g} ({ratio:.3f} ± {paired:.1g}{edge})")
            print(f"| {student} | {' | '.join(cells)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("networks.csv"))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--jobs", type=int, default=1, help="points at a time, each in a process of its own")
    parser.add_argument("--tiny", action="store_true")
    parser.add_argument("--speed", action="store_true", help="runs a minute in place of the table")
    parser.add_argument("--plot", type=Path, help="draw the rows that --out has into this file")
    parser.add_argument("--positions", type=Path, help="draw the law by position into this file")
    parser.add_argument("--table", action="store_true", help="print the rows that --out has as Markdown")
    given = parser.parse_args()
    sizes, device = TINY if given.tiny else Sizes(), None if given.device == "cpu" else given.device
    if given.plot is not None:
        draw(given.out, given.plot)
    elif given.positions is not None:
        draw_positions(given.positions)
    elif given.table:
        table(given.out)
    elif given.speed:
        speed(sizes, device, given.jobs)
    else:
        run(sizes, given.out, device, given.jobs)


if __name__ == "__main__":
    main()
