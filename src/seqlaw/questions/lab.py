"""Many runs: a sweep, its rows, and the paper's experiments."""

from __future__ import annotations

from dataclasses import MISSING, dataclass

from seqlaw.methods.ask import METHODS
from seqlaw.model.device import cards
from seqlaw.model.threads import cores
from seqlaw.paper.reproduce import reproduce
from seqlaw.questions.data import Fit
from seqlaw.questions.groups import OfMethod
from seqlaw.questions.options import DATA, METHOD, OUTPUT, RANGE, like, option
from seqlaw.questions.question import Call, Question
from seqlaw.sweeping.run import export, sweep


@dataclass(frozen=True, kw_only=True)
class OfWork(Question):
    """On how many cores, or on a GPU."""

    jobs: int | None = option(None, "Cores to use.", METHOD, unless="all", echo=False)
    device: str | None = option(
        None, "cuda for a GPU (exact, sampled).", METHOD, metavar="cpu|cuda", unless="cpu"
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

    out: str = option(
        "results/paper", "Folder of the results; what it holds is not run again.", OUTPUT, metavar="DIR"
    )
    method: str = option("sampled", "sampled as in the paper, exact or equivalent.", METHOD, metavar="NAME")
    panels: str = option("abcdef", "Letters of the panels.", RANGE, metavar="LETTERS")
    quick: bool = option(False, "A smaller grid, in seconds.", RANGE)
    replicate: int = option(
        1, "Repeat the whole experiment K times for the spread of each slope.", RANGE, metavar="K"
    )
    overlay: tuple[str, ...] = option(
        (), f"Another method to draw in: {', '.join(METHODS)}; repeatable.", METHOD, metavar="NAME",
        repeated=True,
    )  # fmt: skip
    seed: int = like(OfMethod, "seed", 0)

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

    file: str = option(MISSING, "What to run: see docs/sweeps.md.", DATA, names="FILE.toml")
    out: str = like(Reproduce, "out", MISSING)
    engine: str = option("local", "local, or dask for a cluster that you run.", METHOD, metavar="NAME")
    scheduler: str | None = option(
        None, "Address or scheduler file of the cluster.", METHOD, metavar="ADDRESS|FILE"
    )
    timeout: float | None = option(
        None, "End a task that takes longer, and record it as failed.", METHOD, metavar="SECONDS"
    )
    dry_run: bool = option(False, "Check and count only.", OUTPUT)
    retry_failed: bool = option(False, "Try failed tasks again.", OUTPUT)

    def call(self) -> Call:
        return self.passed(sweep)


@dataclass(frozen=True, kw_only=True)
class Export(Question):
    """Write the rows of a sweep as one tidy table.

    An unfinished sweep is exported as far as it is, and the answer says that it is unfinished.
    """

    command = "export"
    example = "seqlaw export results --to rows.parquet"

    folder: str = option(MISSING, "The folder of a sweep.", DATA, names="DIR")
    to: str = option(MISSING, "Where to: .parquet or .csv.", OUTPUT, metavar="FILE")
    software: str | None = like(Fit, "software", None)

    def call(self) -> Call:
        return self.passed(export)
