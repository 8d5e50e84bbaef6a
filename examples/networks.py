"""The law beside trained networks: the table, the losses by position and the ladders of docs/networks.md.

    python examples/networks.py --device cuda --out docs/networks.csv

Every finished row is written at once, and a row that is in the file already is not run again. `--tiny` is a
trial of a few minutes on a CPU; its numbers mean nothing.
"""

from __future__ import annotations

import argparse
import csv
import math
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from seqlaw.methods.ask import risks
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
COLUMNS = ("part", "regime", "steps", "trained", "test", "student", "reducible", "se", "approx", "step")
COLUMNS += ("edge", "diverged", "seconds")


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


class Table:
    """Rows in a file, each written when it is known."""

    def __init__(self, path: Path, planned: int) -> None:
        self.path, self.planned, self.done, self.begun = path, planned, 0, time.monotonic()
        self.known = set()
        if path.exists():
            with path.open(newline="") as file:
                self.known = {self._key(row) for row in csv.DictReader(file)}
        else:
            path.write_text(",".join(COLUMNS) + "\n")

    @staticmethod
    def _key(row) -> tuple[str, ...]:
        return tuple(str(row[name]) for name in COLUMNS[:6])

    def has(self, *key) -> bool:
        return tuple(map(str, key)) in self.known

    def add(self, rows) -> None:
        with self.path.open("a", newline="") as file:
            csv.DictWriter(file, COLUMNS).writerows(rows)

    def tick(self, what: str) -> None:
        self.done += 1
        taken = time.monotonic() - self.begun
        left = taken / self.done * (self.planned - self.done)
        print(
            f"{self.done}/{self.planned} {what}: {taken:.0f} s, about {left:.0f} s left",
            file=sys.stderr,
            flush=True,
        )


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


def best_plain(sizes, regime, steps, P):
    """The schedule at the law's best step; of phases at that of the last length."""
    last = P.lengths[-1] if isinstance(P, Lengths) else P
    plain = setting(sizes, regime, steps, last).but(eval_length=sizes.lengths[-1])
    return tuned([plain])[0].schedule


def row(part, regime, steps, trained, test, student, risk, seconds):
    """One line of the table."""
    numbers = risk.diagnostics
    return {
        "part": part,
        "regime": regime,
        "steps": steps,
        "trained": trained,
        "test": test,
        "student": student,
        "reducible": f"{risk.reducible:.5g}",
        "se": f"{risk.standard_error.get('reducible', float('nan')):.2g}",
        "approx": f"{risk.approx:.5g}",
        "step": f"{numbers.get('gamma', float('nan')):.4g}",
        "edge": int(any(one.code == "optimizer-step" and one["edge"] for one in risk.flags)),
        "diverged": int(any(one.code == "optimizer-diverged" for one in risk.flags)),
        "seconds": f"{seconds:.1f}",
    }


def points(sizes):
    """(part, regime, steps, what is trained on, tests)."""
    test = {"eval_length": sizes.lengths[-1]}
    long, short, last = sizes.steps[-1], sizes.lengths[1], sizes.lengths[-1]
    for steps in sizes.steps:
        for regime in ("regime2", "regime1"):
            for P in sizes.lengths:
                yield "lengths", regime, steps, P, [test]
    places = [0, *(2**k for k in range(20) if 2**k < last), last - 1]
    for steps, P in ((long, short), (long, last)):
        yield "positions", "regime2", steps, P, [{"position": p} for p in places]
    for steps in sizes.steps:
        for first in sizes.lengths[:2]:
            yield "ladders", "regime2", steps, Lengths((first, last), (0.8, 0.2), phases=True), [test]


def run(sizes, path, device):
    """All rows that are not there yet."""
    plan = [(*point, student) for point in points(sizes) for student in ("law", *STUDENTS)]
    table, draws = (
        Table(path, len(plan)),
        Draws(sketches=sizes.sketches, repetitions=sizes.seeds, device=device),
    )
    chosen = {}
    for part, regime, steps, P, tests, student in plan:
        trained = P.words.replace(" ", "") if isinstance(P, Lengths) else P
        names = [next(iter(test.values())) for test in tests]
        if all(table.has(part, regime, steps, trained, name, student) for name in names):
            table.tick("there already")
            continue
        base = setting(sizes, regime, steps, P, "linear sgd" if student == "law" else student)
        if student in ("law", "linear sgd"):
            if (regime, steps, P) not in chosen:
                chosen[regime, steps, P] = best_plain(sizes, regime, steps, P)
            base = base.but(schedule=chosen[regime, steps, P])
        begun = time.monotonic()
        asked = [base.but(**test) for test in tests]
        if student == "law":
            found = risks(asked, method="exact", draws=replace(draws, device=None))
        else:
            found = risks(asked, method="trained", draws=draws)
        seconds = time.monotonic() - begun
        table.add(
            row(part, regime, steps, trained, name, student, one, seconds)
            for name, one in zip(names, found, strict=True)
        )
        table.tick(f"{part}, {regime}, {steps} steps of {trained}, {student}, {found[0].reducible:.4g}")


def speed(sizes, device):
    """Runs a minute, side by side and one by one, at the middle length."""
    P, steps = sizes.lengths[len(sizes.lengths) // 2], max(10, sizes.steps[-1] // 10)
    for student, (_, optimizer) in STUDENTS.items():
        base = setting(sizes, "regime2", steps, P, student)
        if optimizer is not None:
            base = base.but(optimizer=Adam(step=0.003))
        rates = []
        for sketches, seeds in ((1, 1), (1, 1), (sizes.sketches, sizes.seeds)):  # the first warms up
            begun = time.monotonic()
            risks([base], method="trained", draws=Draws(sketches=sketches, repetitions=seeds, device=device))
            rates.append(60 * sketches * seeds / (time.monotonic() - begun))
        print(
            f"{student}, {steps} steps of {sizes.tokens} tokens, P = {P}: {rates[2]:.1f} runs a minute "
            f"side by side, {rates[1]:.1f} one by one"
        )


def draw(path, picture):
    """The lengths of both regimes and both numbers of steps, and the losses by position."""
    from matplotlib.figure import Figure

    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
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
            own = [row for row in here if row["student"] == student]
            own = [row for row in own if math.isfinite(float(row["reducible"]))]
            at, y, error = ([float(row[name]) for row in own] for name in (x, "reducible", "se"))
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
                f"Regime {'I' * int(regime[-1])}, {which} steps, tested at 512",
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
    """The lengths as Markdown, × 10^-5, a table for each regime and number of steps."""
    with path.open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["part"] != "positions"]
    for part, regime, steps in dict.fromkeys((row["part"], row["regime"], row["steps"]) for row in rows):
        here = [row for row in rows if (row["part"], row["regime"], row["steps"]) == (part, regime, steps)]
        trained = list(dict.fromkeys(row["trained"] for row in here))
        print(f"\n| {part}, {regime}, {steps} steps | {' | '.join(trained)} |\n|---|{'---|' * len(trained)}")
        for student in dict.fromkeys(row["student"] for row in here):
            own = {row["trained"]: row for row in here if row["student"] == student}
            cells = [own.get(one) for one in trained]
            texts = [
                "" if one is None else f"{1e5 * float(one['reducible']):.3g} ± {1e5 * float(one['se']):.1g}"
                for one in cells
            ]
            print(f"| {student} | {' | '.join(texts)} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("networks.csv"))
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
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
        speed(sizes, device)
    else:
        run(sizes, given.out, device)


if __name__ == "__main__":
    main()
