"""What a user's own data say: measured exponents, a forecast of the loss, a law of training runs, a slope."""

from __future__ import annotations

from dataclasses import MISSING, dataclass
from typing import Any

from seqlaw.answers.forecast import forecast
from seqlaw.answers.law import fit_law
from seqlaw.answers.measurement import measure
from seqlaw.fit import fit_power_law
from seqlaw.model.checks import InputError
from seqlaw.questions.groups import OfMethod, OfSetting
from seqlaw.questions.options import (
    BUDGET,
    DATA,
    METHOD,
    OUTPUT,
    POSITIVE,
    RANGE,
    STUDENT,
    TRAINING,
    like,
    option,
)
from seqlaw.questions.question import Call, Question
from seqlaw.runs.allocate import DEFAULT_COST
from seqlaw.runs.form import PRESETS
from seqlaw.runs.law import BOOTSTRAPS, LEVEL
from seqlaw.runs.logs import TAKES


def _column(help: str, **more: Any) -> Any:
    """An option that names a column."""
    return option(None, help, DATA, metavar="COLUMN", **more)


@dataclass(frozen=True, kw_only=True)
class OfSequences(Question):
    """Where a user's sequences are, and how they are read."""

    file: tuple[str, ...] = option(
        MISSING, "Sequences: .npy, .npz, .zarr, .mat, .jsonl, .csv, .parquet; files or a folder.", DATA,
        names="FILE...", repeated=True,
    )  # fmt: skip
    sequence: str | None = _column("Column that tells sequences apart.")
    time: str | None = _column("Column that orders states.")
    features: tuple[str, ...] = option(
        (), "Columns of features, such as x,y,z.", DATA, metavar="LIST", unless="the rest"
    )
    leave_out: tuple[str, ...] = option(
        (), "Column that is no feature; may be repeated.", DATA, metavar="COLUMN", repeated=True
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

    centre: bool = option(True, "Subtract the mean state first.", DATA, names="--centre/--no-centre")
    tokens: float | None = option(None, "Tokens T to advise on.", BUDGET, kind=POSITIVE)
    compute: float | None = option(None, "Compute N·P·M²·L to advise on.", BUDGET, kind=POSITIVE)
    M: int | None = option(
        None, "Width M to advise on.", STUDENT, names="-M/--width",
        unless="a quarter of the features, at most 128",
    )  # fmt: skip
    L: int | None = option(None, "Steps L to advise on.", TRAINING, names="-L/--steps", unless="30000")
    eval_length: int | None = like(OfSetting, "eval_length", None, unless="")
    seed: int = like(OfMethod, "seed", 0)
    held_out: bool = option(False, "Add what `seqlaw forecast` says of the same file and tokens.", OUTPUT)
    save_teacher: str | None = option(
        None, "Save the measured spectra, a --teacher of other commands.", OUTPUT, metavar="FILE.toml"
    )
    save_law: str | None = option(
        None, "Save the six fitted numbers with intervals, for plan --teacher.", OUTPUT, metavar="FILE.toml"
    )

    def call(self) -> Call:
        return self.passed(measure, X=self.source)

    def forecast(self) -> Any:
        """What the forecast of the same file says of the same tokens, at the longest length recorded."""
        return self.passed(forecast, X=self.source, eval_length=None, M=None)()


@dataclass(frozen=True, kw_only=True)
class Forecast(OfSequences):
    """Longer or more of your own sequences: the held-out loss."""

    command = "forecast"
    example = "seqlaw forecast states.npy --tokens 1e5 --plot forecast.png"
    unit = "sequences read"
    pictured = True
    verbose = True

    groups: str | None = _column(
        "Column or array of labels: subjects, recordings. With several files also: file."
    )
    window: int | None = option(None, "Cut recordings into windows of so many states.", DATA)
    test: str | None = option(None, "Sequences to test on.", DATA, metavar="FILE", unless="a fifth of FILE")
    standardise: bool = option(False, "Scale features to variance one.", DATA)
    drop_missing: bool = option(False, "Leave out sequences with missing values.", DATA)
    tokens: int | None = option(None, "Tokens N·P to split.", BUDGET, unless="what the pilot has")
    target_loss: float | None = option(
        None, "Also say how many sequences reach this loss.", BUDGET, kind=POSITIVE
    )
    lengths: tuple[int, ...] | None = option(
        None, "Lengths P, such as 2,8,31.", STUDENT, metavar="LIST", unless="powers of two"
    )
    eval_length: int | None = like(OfSetting, "eval_length", None, unless="the longest")
    student: str = option("all", "What it sees: all, pca or sketch.", STUDENT, metavar="NAME")
    M: int | None = option(
        None, "Directions that pca or sketch sees.", STUDENT, names="-M/--width",
        unless="a quarter of the features, at most 128",
    )  # fmt: skip
    steps: int = option(500, "Steps L.", TRAINING, names="-L/--steps")
    gamma: float | None = option(
        None, "One step size for all lengths.", TRAINING, kind=POSITIVE, unless="the best of each"
    )
    seed: int = like(OfMethod, "seed", 0)

    def call(self) -> Call:
        lengths = None if self.lengths is None else list(self.lengths)
        return self.passed(forecast, X=self.source, lengths=lengths)


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
        MISSING, "A .csv or .parquet file, one row a run; a log of runs; a sweep.", DATA, names="FILE"
    )
    loss: str | None = _column("Column of the loss.")
    take: str = option(
        TAKES[0], "Of a log: last values of a run, or those at its best loss.", DATA, metavar="|".join(TAKES)
    )
    terms: tuple[str, ...] = option(
        (), "A term: a column, or columns joined by *; repeatable.", DATA, names="--term", metavar="COLUMN",
        repeated=True,
    )  # fmt: skip
    preset: str | None = option(None, f"In place of terms: {', '.join(PRESETS)}.", DATA, metavar="NAME")
    tested_at: str | None = _column("Column of the length that a run was tested at.")
    common: str | None = option(
        None, "The same runs tested at one length: what of an effect of length is the test's?", DATA,
        metavar="FILE",
    )  # fmt: skip
    groups: str | None = _column("Column whose values are redrawn together.")
    where: tuple[str, ...] = option(
        (), "Only rows with this value, or with < <= > >= in place of =; repeatable.", DATA,
        metavar="COLUMN=VALUE", repeated=True,
    )  # fmt: skip
    let: tuple[str, ...] = option(
        (), "A new column, arithmetic in the others; repeatable.", DATA, metavar="NAME=FORMULA", repeated=True
    )
    budget: float | None = option(None, "The best sizes at this cost.", BUDGET, kind=POSITIVE)
    cost: str | None = option(
        None, "Cost of a run: arithmetic in columns, a measured column, transformer or linear.", BUDGET,
        metavar="FORMULA|COLUMN", unless=DEFAULT_COST,
    )  # fmt: skip
    without: str | None = option(None, "Test whether this term or column matters.", METHOD, metavar="TERM")
    form: str = option(
        "sum", "How terms are added: sum, or power-mean with q fitted.", METHOD, metavar="FORM"
    )
    floor: float | None = option(None, "The floor E, where you know it.", METHOD, metavar="VALUE")
    bootstraps: int = option(BOOTSTRAPS, "Redrawn tables for the intervals.", METHOD)
    level: float = option(LEVEL, "Confidence of the intervals.", METHOD)
    seed: int = like(OfMethod, "seed", 0)
    predict: str | None = option(None, "A table of runs without a loss, to predict.", OUTPUT, metavar="FILE")
    to: str | None = option(
        None, "Write the predictions as a table: .parquet or .csv.", OUTPUT, metavar="FILE"
    )

    columns: bool = option(False, "Show the columns that were found, and fit nothing.", OUTPUT, echo=False)

    def call(self) -> Call:
        if self.loss is None:
            raise InputError("loss", "must be given (--columns shows what there is)", None)
        return self.passed(fit_law, terms=list(self.terms) or None)


@dataclass(frozen=True, kw_only=True)
class Fit(Question):
    """The log–log slope between two columns, with its interval."""

    command = "fit"
    example = "seqlaw fit rows.parquet --x M --y approx --where regime=I"

    file: str = option(MISSING, "A .parquet or .csv file, or a sweep's folder.", DATA, names="FILE")
    x: str = option(MISSING, "Column of the abscissa.", DATA, metavar="COLUMN")
    y: str = option(MISSING, "Column of the ordinate.", DATA, metavar="COLUMN")
    where: tuple[str, ...] = like(Law, "where", ())
    software: str | None = option(
        None, "Rows that other software recorded: its name in the folder, or `all`.", DATA, metavar="NAME"
    )
    window: str | None = option(None, "Only x from A to B.", RANGE, metavar="A:B")
    offset: bool = option(False, "Fit y = e + a x^-c instead of a x^-c.", METHOD)
    level: float = option(0.95, "Confidence of the interval.", METHOD)

    def call(self) -> Call:
        return self.passed(fit_power_law)
