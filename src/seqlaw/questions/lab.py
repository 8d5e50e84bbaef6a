"""Many runs: a sweep, its rows, and the paper's experiments."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import Any

from seqlaw.methods.ask import METHODS
from seqlaw.model.device import cards
from seqlaw.model.threads import cores
from seqlaw.paper.reproduce import reproduce
from seqlaw.questions.data import software
from seqlaw.questions.groups import seed
from seqlaw.questions.options import DATA, FLAG, METHOD, NUMBER, OUTPUT, RANGE, SIZE, TEXT, option
from seqlaw.questions.question import Call, Question
from seqlaw.sweeping.run import export, sweep


def _folder(default: Any) -> Any:
    help = "Folder of the results; what it holds is not run again."
    return option(default, "--out", help, TEXT, OUTPUT, metavar="DIR")


@dataclass(frozen=True, kw_only=True)
class OfWork(Question):
    """On how many cores, or on a GPU."""

    jobs: int | None = option(None, "--jobs", "Cores to use.", SIZE, METHOD, unless="all", echo=False)
    device: str | None = option(
        None, "--device", "cuda for a GPU (exact, sampled).", TEXT, METHOD, metavar="cpu|cuda", unless="cpu"
    )

    def workers(self, device: str | None) -> int:
        """Those asked for; else the GPUs, or all cores."""
        return self.jobs or (cards() if device == "cuda" else cores())


@dataclass(frozen=True, kw_only=True)
class Reproduce(OfWork):
    """The paper's six panels and ten slopes, with a report.

    After an interruption the same command continues.
    """

    command = "reproduce"
    example = "seqlaw reproduce --out results/paper"
    unit = "tasks"

    out: str = _folder("results/paper")
    method: str = option(
        "sampled", "--method", "sampled as in the paper, exact or equivalent.", TEXT, METHOD,
        metavar="NAME",
    )  # fmt: skip
    panels: str = option("abcdef", "--panels", "Letters of the panels.", TEXT, RANGE, metavar="LETTERS")
    quick: bool = option(False, "--quick", "A smaller grid, in seconds.", FLAG, RANGE)
    replicate: int = option(
        1,
        "--replicate",
        "Repeat the whole experiment K times for the spread of each slope.",
        SIZE,
        RANGE,
        metavar="K",
    )
    overlay: tuple[str, ...] = option(
        (), "--overlay", f"Another method to draw in: {', '.join(METHODS)}; repeatable.", TEXT, METHOD,
        metavar="NAME", repeated=True,
    )  # fmt: skip
    seed: int = seed()

    def call(self) -> Call:
        letters = list(self.panels.replace(",", "").replace(" ", ""))
        return self.passed(reproduce, panels=letters, jobs=self.workers(self.device))


@dataclass(frozen=True, kw_only=True)
class Sweep(OfWork):
    """Run a grid of questions, resumably.

    Running the same command again does only what is missing.
    """

    command = "sweep"
    example = "seqlaw sweep grid.toml --out results --jobs 4"
    unit = "tasks"

    file: str = option(MISSING, "FILE.toml", "What to run: see docs/sweeps.md.", TEXT, DATA)
    out: str = _folder(MISSING)
    engine: str = option(
        "local", "--engine", "local, or dask for a cluster that you run.", TEXT, METHOD, metavar="NAME"
    )
    scheduler: str | None = option(
        None, "--scheduler", "Address or scheduler file of the cluster.", TEXT, METHOD, metavar="ADDRESS|FILE"
    )
    timeout: float | None = option(
        None,
        "--timeout",
        "End a task that takes longer, and record it as failed.",
        NUMBER,
        METHOD,
        metavar="SECONDS",
    )
    dry_run: bool = option(False, "--dry-run", "Check and count only.", FLAG, OUTPUT)
    retry_failed: bool = option(False, "--retry-failed", "Try failed tasks again.", FLAG, OUTPUT)

    def call(self) -> Call:
        return self.passed(sweep)


@dataclass(frozen=True, kw_only=True)
class Export(Question):
    """Write the rows of a sweep as one tidy table.

    An unfinished sweep is exported as far as it is, and the answer says that it is unfinished.
    """

    command = "export"
    example = "seqlaw export results --to rows.parquet"

    folder: str = option(MISSING, "DIR", "The folder of a sweep.", TEXT, DATA)
    to: str = option(MISSING, "--to", "Where to: .parquet or .csv.", TEXT, OUTPUT, metavar="FILE")
    software: str | None = software()

    def call(self) -> Call:
        return self.passed(export)
