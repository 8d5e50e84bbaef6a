"""What sequences say: exponents with intervals, the regime, checks and flags; and the teacher file of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from seqlaw.answers.answer import Answer, fields_of
from seqlaw.answers.blocks import Block, Sentence, Table
from seqlaw.answers.findings import CHECKS, LOOKS, data_words, regime_words, what_fails, why_void
from seqlaw.answers.style import MARKERS, SERIES, tidy
from seqlaw.answers.symbols import signs
from seqlaw.answers.words import Side, sentences
from seqlaw.model.checks import InputError, checked
from seqlaw.model.teacher import NUMBERS
from seqlaw.sequences import measure as records
from seqlaw.sequences.exponents import LAWS, LEVEL
from seqlaw.sequences.findings import void
from seqlaw.sequences.opening import file_names
from seqlaw.sequences.saving import FIELD, LAW, write_law, write_teacher
from seqlaw.sequences.tables import Columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_EXPONENT = {name: pair[0] for pair in LAWS.values() for name in pair}
_TITLES = {
    "innovation": "innovation (residual covariance)",
    "initial": "initial (first states)",
    "transition": "transition (symmetrised, whitened)",
}


class Check(records.Check):
    """A check that can say what it is."""

    @property
    def words(self) -> str:
        return CHECKS[self.name]


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement(Answer, records.Measurement):
    """What the sequences say; `reliable` is False when a flag forbids to take the numbers at face value."""

    checks: tuple[Check, ...]
    file: str | list[str] | None = None
    """Where the sequences came from, if that was a file or several."""
    columns: Columns
    """What the columns of a table were said to be."""
    command: ClassVar[str] = "measure"
    pictures: ClassVar[tuple[int, float, float]] = (3, 11, 3.6)

    def inputs(self) -> Mapping[str, Any]:
        return {"file": self.file, **self.columns.asked(), "centre": self.centre, "seed": self.seed}

    def fields(self) -> Mapping[str, Any]:
        lines = {name: {"exponent": slope, "scale": scale} for name, (slope, scale) in self.fitted.items()}
        return {
            "N": self.N,
            "P": self.P,
            "states": self.P,
            "D": self.D,
            **{name: getattr(self, name) for name in NUMBERS},
            "regime": {**vars(self.regime), "fails": list(map(what_fails, self.regime.fails))},
            "fit": {"window": self.window, "r2": self.r2, "band": self.band, "line": lines},
            "features": self.seen,
            "reliable": self.reliable,
            "checks": [
                {"name": each.name, "value": each.value, "holds": each.holds, "words": each.words}
                for each in self.checks
            ],
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        yield Sentence(data_words(self))
        yield Sentence(f"{regime_words(self.regime)}; {LOOKS[self.seen]}")
        rows = []
        for name in NUMBERS:
            estimate = getattr(self, name)
            cells = ["-" if x is None else x for x in (estimate.value, estimate.low, estimate.high)]
            fitted = f"{self._window(name)}, r2 {self.r2[name]:.3f}" if name in self.window else ""
            rows.append((name, *cells, fitted))
        yield Table(rows=rows, header=("number", "value", "low", "high", "eigenvalues"))
        yield Sentence(
            f"low to high: {LEVEL:.0%} interval; eigenvalues: those that were fitted, and how well."
        )
        holds = {True: "yes", False: "NO", None: ""}
        yield Table(
            rows=[
                (f"{c.name}: {c.words}", "-" if c.value is None else c.value, holds[c.holds])
                for c in self.checks
            ],
            header=("check", "value", "holds"),
        )

    def _window(self, name: str) -> str | None:
        """The eigenvalues that a number was fitted to."""
        window = self.window.get(_EXPONENT[name])
        return None if window is None else f"{window[0]}-{window[1]}"

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """One row a number; an exponent and its scale share a fit."""
        sizes = {"N": self.N, "P": self.P[1], "P_shortest": self.P[0], "D": self.D}
        return [
            {
                "name": name,
                **{part: getattr(getattr(self, name), part) for part in ("value", "low", "high")},
                "window": self._window(name),
                "r2": self.r2.get(_EXPONENT[name]),
                **sizes,
                "reliable": self.reliable,
            }
            for name in NUMBERS
        ]

    def draw(self, axes: Sequence[Axes]) -> None:
        """Sorted eigenvalues against their index: measured (light), corrected, and the line fitted to these.

        Where the features look like a projection, the law of what lies behind it is a second, dashed line.
        """
        for k, (place, name) in enumerate(zip(axes, LAWS, strict=True)):
            spectrum, title = self.spectra.named(name), _TITLES[name]
            if spectrum.raw[0] <= 0:  # one sequence, or one first state for all
                place.set_title(title, fontsize="medium")
                place.set_axis_off()
                place.text(0.5, 0.5, "no such spectrum in these data", ha="center", transform=place.transAxes)
                continue
            j = np.arange(1, spectrum.raw.size + 1)
            style: dict[str, Any] = {"color": SERIES[k], "marker": MARKERS[k], "linestyle": "none"}
            for values, last, alpha, label in (
                (spectrum.raw, j.size, 0.3, "measured"),
                (spectrum.values, spectrum.trusted, 1.0, "corrected"),
            ):
                shown = (values > 1e-10 * spectrum.raw[0]) & (j <= last)
                place.plot(j[shown], values[shown], alpha=alpha, markersize=2.5, label=label, **style)
            tidy(place, "index j", "eigenvalue", title + self._draw_law(place, name))
            place.legend(frameon=False, fontsize=7, loc="lower left")  # a falling spectrum leaves that empty

    def _draw_law(self, place: Axes, name: str) -> str:
        """The lines of a spectrum; returns the exponent for its title."""
        exponent, scale = LAWS[name]
        law = getattr(self, exponent)
        if law.value is None:
            return ""
        x = np.array(self.window[exponent], dtype=float)
        slope, level = self.fitted[exponent]
        place.plot(x, level * x**-slope, color="#000000", linewidth=1.4, label="fitted")
        if law.value != slope:
            taken = "half a projection" if self.seen == "unknown" else "projection"
            style: dict[str, Any] = {"color": "#000000", "linewidth": 1.2, "linestyle": "--"}
            latent = getattr(self, scale).value * x**-law.value
            place.plot(x, latent, label=f"latent law ({taken} taken off)", **style)
        interval = "" if law.low is None else f" [{law.low:.2f}, {law.high:.2f}]"
        return f"\n{signs(exponent)} = {law.value:.2f}{interval}"


@checked
def measure(
    X: Any,
    *,
    sequence: str | None = None,
    time: str | None = None,
    features: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    centre: bool = True,
    seed: int = 0,
) -> Measurement:
    """The exponents of sequences: an array N × P × D, ragged P_i × D, a table, a file, several or a folder.

    Files are .npy, .npz, .zarr, .mat, .jsonl, .csv or .parquet; several are read as one after another, each a
    recording if it is S × D. Of a table (or DataFrame) `sequence` is the column that tells sequences apart,
    `time` that which orders states, `features` are the features or `leave_out` the columns that are none.

    One pass, a few megabytes at a time; memory is a few D × D matrices for each of at most 32 groups of
    sequences, which the bootstrap resamples. A table is read whole.
    """
    columns = Columns(sequence=sequence, time=time, features=features, leave_out=leave_out)
    return answered(records.measure(X, columns, centre=centre, seed=seed), X, columns)


def answered(found: records.Measurement, X: Any, columns: Columns | None = None) -> Measurement:
    """A measurement of X that shows itself."""
    checks = tuple(Check(name=each.name, value=each.value, holds=each.holds) for each in found.checks)
    more = {"checks": checks, "file": file_names(X), "columns": columns or Columns()}
    return Measurement(**fields_of(found, **more))


@checked
def save_teacher(found: Measurement, path: str | Path, *, source: str = "sequences") -> None:
    """Write `found.modes` to a TOML file that `load_teacher` reads back to the last bit.

    Where the sequences leave nothing to predict from, and `advise` gives no advice, nothing is written. A
    file that is there already is replaced whole or left as it is.
    """
    _require_data(found, FIELD, source)
    write_teacher(found, path, comments=_comments(found, source))


@checked
def save_law(found: Measurement, path: str | Path, *, source: str = "sequences") -> None:
    """Write `found.law`, the six numbers with their intervals, to a TOML file.

    `load_uncertain` reads it back to the last bit, `load_teacher` its middle. Where there is no such law, or
    nothing to predict from, nothing is written.
    """
    _require_data(found, LAW, source)
    if found.law is None:
        missing = [name for name in NUMBERS if getattr(found, name).value is None]
        why = f"these sequences give no {', '.join(missing)}"
        if not missing:
            why = f"rho = {found.rho.value:.4g} here, and only 0 < rho < 1 is stable"
        raise InputError(LAW, f"needs a power law: {why}", source)
    write_law(found.law, path, comments=_comments(found, source))


def _require_data(found: Measurement, field: str, source: str) -> None:
    stop = void(found.flags)
    if stop:
        raise InputError(field, f"needs sequences to predict from: {why_void(stop)}", source)


def _comments(found: Measurement, source: str) -> list[str]:
    """What the numbers of a file are worth."""
    return [
        f"Measured from {source!a}: {data_words(found)}",
        f"{regime_words(found.regime)}; {LOOKS[found.seen]}",
        *(f"! {text}" for text in sentences(found.flags, "python")),
    ]
