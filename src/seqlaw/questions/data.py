"""What a user's own data say: measured exponents, a forecast of the loss, a law of training runs, a slope."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import Any

from seqlaw.answers.forecast import forecast
from seqlaw.answers.law import fit_law
from seqlaw.answers.measurement import measure
from seqlaw.fit import fit_power_law
from seqlaw.model.checks import InputError
from seqlaw.questions.groups import seed, test_length
from seqlaw.questions.options import (
    BUDGET,
    DATA,
    FLAG,
    METHOD,
    NUMBER,
    OUTPUT,
    POSITIVE,
    RANGE,
    SIZE,
    SIZES,
    STUDENT,
    TEXT,
    TEXTS,
    TRAINING,
    option,
)
from seqlaw.questions.question import Call, Question
from seqlaw.runs.allocate import DEFAULT_COST
from seqlaw.runs.form import PRESETS
from seqlaw.runs.law import BOOTSTRAPS, LEVEL
from seqlaw.runs.logs import TAKES


def _column(name: str, help: str, **more: Any) -> Any:
    """An option that names a column."""
    return option(None, name, help, TEXT, DATA, metavar="COLUMN", **more)


@dataclass(frozen=True, kw_only=True)
class OfSequences(Question):
    """Where a user's sequences are, and how they are read."""

    file: tuple[str, ...] = option(
        MISSING, "FILE...", "Sequences: .npy, .npz, .zarr, .mat, .jsonl, .csv, .parquet; files or a folder.",
        TEXT, DATA, repeated=True,
    )  # fmt: skip
    sequence: str | None = _column("--sequence", "Column that tells sequences apart.")
    time: str | None = _column("--time", "Column that orders states.")
    features: tuple[str, ...] = option(
        (),
        "--features",
        "Columns of features, such as x,y,z.",
        TEXTS,
        DATA,
        metavar="LIST",
        unless="the rest",
    )
    leave_out: tuple[str, ...] = option(
        (),
        "--leave-out",
        "Column that is no feature; may be repeated.",
        TEXT,
        DATA,
        metavar="COLUMN",
        repeated=True,
    )

    @property
    def source(self) -> Any:
        """One file or folder as it is, several as a list."""
        return self.file[0] if len(self.file) == 1 else list(self.file)


@dataclass(frozen=True, kw_only=True)
class Measure(OfSequences):
    """Exponents, regime and advice from real sequences."""

    command = "measure"
    example = "seqlaw measure states.npy --tokens 1e8 --eval-length 512"
    pictured = True
    verbose = True

    centre: bool = option(True, "--centre/--no-centre", "Subtract the mean state first.", FLAG, DATA)
    tokens: float | None = option(None, "--tokens", "Tokens T to advise on.", POSITIVE, BUDGET)
    compute: float | None = option(None, "--compute", "Compute N·P·M²·L to advise on.", POSITIVE, BUDGET)
    M: int | None = option(
        None, "-M/--width", "Width M to advise on.", SIZE, STUDENT,
        unless="a quarter of the features, at most 128",
    )  # fmt: skip
    L: int | None = option(None, "-L/--steps", "Steps L to advise on.", SIZE, TRAINING, unless="30000")
    eval_length: int | None = test_length("")
    seed: int = seed()
    held_out: bool = option(
        False, "--held-out", "Add what `seqlaw forecast` says of the same file.", FLAG, OUTPUT
    )
    save_teacher: str | None = option(
        None, "--save-teacher", "Save the measured spectra, a --teacher of other commands.", TEXT, OUTPUT,
        metavar="FILE.toml",
    )  # fmt: skip
    save_law: str | None = option(
        None, "--save-law", "Save the six fitted numbers with intervals, for plan --teacher.", TEXT, OUTPUT,
        metavar="FILE.toml",
    )  # fmt: skip

    def call(self) -> Call:
        return self.passed(measure, X=self.source)

    def forecast(self) -> Any:
        """What the forecast of the same file says."""
        return self.passed(forecast, X=self.source, eval_length=None, tokens=None, M=None)()


@dataclass(frozen=True, kw_only=True)
class Forecast(OfSequences):
    """Longer or more of your own sequences: the held-out loss."""

    command = "forecast"
    example = "seqlaw forecast states.npy --tokens 1e5 --plot forecast.png"
    unit = "sequences read"
    pictured = True
    verbose = True

    groups: str | None = _column(
        "--groups", "Column or array of labels: subjects, recordings. With several files also: file."
    )
    window: int | None = option(
        None, "--window", "Cut recordings into windows of so many states.", SIZE, DATA
    )
    test: str | None = option(
        None, "--test", "Sequences to test on.", TEXT, DATA, metavar="FILE", unless="a fifth of FILE"
    )
    standardise: bool = option(False, "--standardise", "Scale features to variance one.", FLAG, DATA)
    drop_missing: bool = option(
        False, "--drop-missing", "Leave out sequences with missing values.", FLAG, DATA
    )
    tokens: int | None = option(
        None, "--tokens", "Tokens N·P to split.", SIZE, BUDGET, unless="what the pilot has"
    )
    target_loss: float | None = option(
        None, "--target-loss", "Also say how many sequences reach this loss.", POSITIVE, BUDGET
    )
    lengths: tuple[int, ...] | None = option(
        None,
        "--lengths",
        "Lengths P, such as 2,8,31.",
        SIZES,
        STUDENT,
        metavar="LIST",
        unless="powers of two",
    )
    eval_length: int | None = test_length("the longest")
    student: str = option(
        "all", "--student", "What it sees: all, pca or sketch.", TEXT, STUDENT, metavar="NAME"
    )
    M: int | None = option(
        None, "-M/--width", "Directions that pca or sketch sees.", SIZE, STUDENT,
        unless="a quarter of the features, at most 128",
    )  # fmt: skip
    steps: int = option(500, "-L/--steps", "Steps L.", SIZE, TRAINING)
    gamma: float | None = option(
        None, "--gamma", "One step size for all lengths.", POSITIVE, TRAINING, unless="the best of each"
    )
    seed: int = seed()

    def call(self) -> Call:
        lengths = None if self.lengths is None else list(self.lengths)
        return self.passed(forecast, X=self.source, lengths=lengths)


def _where() -> Any:
    return option(
        (), "--where", "Only rows with this value, or with < <= > >= in place of =; repeatable.", TEXT, DATA,
        metavar="COLUMN=VALUE", repeated=True,
    )  # fmt: skip


def software() -> Any:
    """The option of the software whose rows are taken."""
    help = "Rows that other software recorded: its name in the folder, or `all`."
    return option(None, "--software", help, TEXT, DATA, metavar="NAME")


@dataclass(frozen=True, kw_only=True)
class Law(Question):
    """A law fitted to a table of training runs.

    loss = E + a power law for each term, with intervals; whether a column matters; the best sizes at a cost.
    """

    command = "law"
    example = "seqlaw law runs.csv --loss loss --term params --term tokens --term length --without length"
    pictured = True
    verbose = True

    file: str = option(
        MISSING,
        "FILE",
        "A .csv or .parquet file, one row a run; a log of runs; a sweep.",
        TEXT,
        DATA,
    )
    loss: str | None = _column("--loss", "Column of the loss.")
    take: str = option(
        TAKES[0], "--take", "Of a log: last values of a run, or those at its best loss.", TEXT, DATA,
        metavar="|".join(TAKES),
    )  # fmt: skip
    terms: tuple[str, ...] = option(
        (), "--term", "A term: a column, or columns joined by *; repeatable.", TEXT, DATA,
        metavar="COLUMN", repeated=True,
    )  # fmt: skip
    preset: str | None = option(
        None, "--preset", f"In place of terms: {', '.join(PRESETS)}.", TEXT, DATA, metavar="NAME"
    )
    tested_at: str | None = _column("--tested-at", "Column of the length that a run was tested at.")
    common: str | None = option(
        None, "--common", "The same runs tested at one length: what of an effect of length is the test's?",
        TEXT, DATA, metavar="FILE",
    )  # fmt: skip
    groups: str | None = _column("--groups", "Column whose values are redrawn together.")
    where: tuple[str, ...] = _where()
    let: tuple[str, ...] = option(
        (), "--let", "A new column, arithmetic in the others; repeatable.", TEXT, DATA,
        metavar="NAME=FORMULA", repeated=True,
    )  # fmt: skip
    budget: float | None = option(None, "--budget", "The best sizes at this cost.", POSITIVE, BUDGET)
    cost: str | None = option(
        None, "--cost", "Cost of a run: arithmetic in columns, a measured column, transformer or linear.",
        TEXT, BUDGET, metavar="FORMULA|COLUMN", unless=DEFAULT_COST,
    )  # fmt: skip
    without: str | None = option(
        None, "--without", "Test whether this term or column matters.", TEXT, METHOD, metavar="TERM"
    )
    form: str = option(
        "sum",
        "--form",
        "How terms are added: sum, or power-mean with q fitted.",
        TEXT,
        METHOD,
        metavar="FORM",
    )
    floor: float | None = option(
        None, "--floor", "The floor E, where you know it.", NUMBER, METHOD, metavar="VALUE"
    )
    bootstraps: int = option(BOOTSTRAPS, "--bootstraps", "Redrawn tables for the intervals.", SIZE, METHOD)
    level: float = option(LEVEL, "--level", "Confidence of the intervals.", NUMBER, METHOD)
    seed: int = seed()
    predict: str | None = option(
        None, "--predict", "A table of runs without a loss, to predict.", TEXT, OUTPUT, metavar="FILE"
    )
    to: str | None = option(
        None, "--to", "Write the predictions as a table: .parquet or .csv.", TEXT, OUTPUT, metavar="FILE"
    )

    columns: bool = option(
        False, "--columns", "Show the columns that were found, and fit nothing.", FLAG, OUTPUT, echo=False
    )

    def call(self) -> Call:
        if self.loss is None:
            raise InputError("loss", "must be given (--columns shows what there is)", None)
        return self.passed(fit_law, terms=list(self.terms) or None)


@dataclass(frozen=True, kw_only=True)
class Fit(Question):
    """The log–log slope between two columns, with its interval."""

    command = "fit"
    example = "seqlaw fit rows.parquet --x M --y approx --where regime=I"

    file: str = option(MISSING, "FILE", "A .parquet or .csv file, or a sweep's folder.", TEXT, DATA)
    x: str = option(MISSING, "--x", "Column of the abscissa.", TEXT, DATA, metavar="COLUMN")
    y: str = option(MISSING, "--y", "Column of the ordinate.", TEXT, DATA, metavar="COLUMN")
    where: tuple[str, ...] = _where()
    software: str | None = software()
    window: str | None = option(None, "--window", "Only x from A to B.", TEXT, RANGE, metavar="A:B")
    offset: bool = option(False, "--offset", "Fit y = e + a x^-c instead of a x^-c.", FLAG, METHOD)
    level: float = option(0.95, "--level", "Confidence of the interval.", NUMBER, METHOD)

    def call(self) -> Call:
        return self.passed(fit_power_law)
