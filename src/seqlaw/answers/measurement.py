"""What sequences say: exponents with intervals, the regime, checks and flags."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from seqlaw.answers.answer import Answer, named, shown
from seqlaw.answers.glossary import signs
from seqlaw.answers.measurement_words import CHECKS, LOOKS, data_words, regime_words, what_fails, why_void
from seqlaw.answers.render import Block, Table
from seqlaw.answers.style import MARKERS, SERIES, Axes, tidy
from seqlaw.answers.words import Side, sentences
from seqlaw.files import output_path
from seqlaw.model.checks import InputError
from seqlaw.model.schedule import Schedule
from seqlaw.model.signature import checked
from seqlaw.model.stored import replaced
from seqlaw.model.teacher import NUMBERS
from seqlaw.sequences import measure as records
from seqlaw.sequences.exponents import LAWS, LEVEL
from seqlaw.sequences.findings import void

if TYPE_CHECKING:
    from seqlaw.answers.advice import Advice

_EXPONENT = {name: pair[0] for pair in LAWS.values() for name in pair}
_TITLES = {
    "innovation": "innovation (residual covariance)",
    "initial": "initial (first states)",
    "transition": "transition (symmetrised, whitened)",
}


@dataclass(frozen=True, kw_only=True, eq=False)
class Measurement(Answer, records.Measurement):
    """What the sequences say; `reliable` is False when a flag forbids to take the numbers at face value."""

    command: ClassVar[str] = "measure"
    pictures: ClassVar[tuple[int, float, float]] = (3, 11, 3.6)

    def advise(
        self,
        *,
        tokens: float | None = None,
        compute: float | None = None,
        eval_length: int | None = None,
        M: int | None = None,
        schedule: Schedule | str = "wsd",
    ) -> Advice:
        """How to split `tokens` (within `compute` N·P·M²·L, if given), tested at length `eval_length`.

        It uses the measured spectra (`.modes`), not the fitted law. Without compute the student has width M
        (by default a quarter of the modes, at most 128) and the given schedule; with it the plan chooses.
        """
        from seqlaw.answers.advice import advise  # which needs this class

        return advise(self, tokens=tokens, compute=compute, eval_length=eval_length, M=M, schedule=schedule)

    def save(self, path: str | Path, *, law: bool = False, source: str = "sequences") -> None:
        """Write a teacher file (.toml): the measured spectra, or with `law` the six numbers with intervals.

        `load_teacher` reads both to the last bit, `load_uncertain` the intervals too. `source` names the data
        in a comment. Where the sequences leave nothing to predict from, `InputError` says why, and nothing is
        written.
        """
        _save(self, path, law=law, source=source)

    def inputs(self) -> Mapping[str, Any]:
        return {"file": self.file, **self.columns.asked(), "centre": self.centre, "seed": self.seed}

    def fields(self) -> Mapping[str, Any]:
        lines = {name: {"exponent": slope, "scale": scale} for name, (slope, scale) in self.fitted.items()}
        return {
            "N": self.N,
            "P": self.P,
            "states": self.P,
            "D": self.D,
            **named(self, *NUMBERS),
            "regime": {**vars(self.regime), "fails": list(map(what_fails, self.regime.fails))},
            "fit": {"window": self.window, "r2": self.r2, "band": self.band, "line": lines},
            "features": self.seen,
            "reliable": self.reliable,
            "checks": [{**vars(each), "words": CHECKS[each.name]} for each in self.checks],
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        yield data_words(self)
        yield f"{regime_words(self.regime)}; {LOOKS[self.seen]}"
        rows = []
        for name in NUMBERS:
            estimate = getattr(self, name)
            cells = ["-" if x is None else x for x in (estimate.value, estimate.low, estimate.high)]
            fitted = f"{self._window(name)}, r2 {self.r2[name]:.3f}" if name in self.window else ""
            rows.append((name, *cells, fitted))
        if any(getattr(self, name).value is not None for name in NUMBERS):
            yield Table(rows=rows, header=("number", "value", "low", "high", "eigenvalues"))
            yield (
                f"low and high are the ends of the {100 * LEVEL:.0f} % interval; each fit used the "
                "eigenvalues named."
            )
        judged = [c for c in self.checks if c.holds is not None]
        failed = [f"{c.name} ({CHECKS[c.name]})" for c in judged if not c.holds]
        told = f"{len(failed)} of {len(judged)} checks of the theory fail: {'; '.join(failed)}."
        yield told if failed else f"The data pass the {len(judged)} checks of the theory that they allow."

    def more(self, side: Side) -> Iterable[Block]:
        holds = {True: "yes", False: "NO", None: ""}
        yield Table(
            rows=[
                (f"{c.name}: {CHECKS[c.name]}", "-" if c.value is None else c.value, holds[c.holds])
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
                **named(getattr(self, name), "value", "low", "high"),
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
def _save(found: Measurement, path: str | Path, *, law: bool = False, source: str = "sequences") -> None:
    """The numbers below comments; a file that is there already is replaced whole or left as it is."""
    field = "save_law" if law else "save_teacher"
    if stop := void(found.flags):
        raise InputError(field, f"needs sequences to predict from: {why_void(stop)}", source)
    comments = [
        f"Measured from {source!a}: {data_words(found)}",
        f"{regime_words(found.regime)}; {LOOKS[found.seen]}",
        *(f"! {text}" for text in sentences(found.flags, "python")),
    ]
    numbers = _law(found, source) if law else _spectra(found)
    text = "\n".join([*(f"# {comment}" for comment in comments), "", *numbers]) + "\n"
    path = output_path(path, field, ".toml")
    try:
        with replaced(path) as draft:
            draft.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(field, f"must be writable ({error.strerror})", str(path)) from None


def _law(found: Measurement, source: str) -> Iterator[str]:
    """The six numbers and their intervals."""
    if found.law is None:
        missing = [name for name in NUMBERS if getattr(found, name).value is None]
        why = f"these sequences give no {', '.join(missing)}"
        if not missing:
            why = f"rho = {found.rho.value:.4g} here, and only 0 < rho < 1 is stable"
        raise InputError("save_law", f"needs a power law: {why}", source)
    yield "# The fitted power law: the teacher of any command."
    yield from (f"{name} = {getattr(found.law.teacher, name)!r}" for name in NUMBERS)
    yield ""
    yield f"[intervals]  # {LEVEL:.0%}, cut to stable teachers: `seqlaw plan` plans over draws from them"
    yield from (f"{name} = [{low!r}, {high!r}]" for name, (low, high) in found.law.intervals.items())


def _spectra(found: Measurement) -> Iterator[str]:
    """The modes; the six numbers in comments."""
    modes = found.modes
    use = "To use it instead of the spectra, uncomment it and delete them."
    if found.teacher is None:
        use = "It defines no stable teacher."
    yield f"# The fitted power law, with {LEVEL:.0%} intervals. {use}"
    for name in NUMBERS:
        number = getattr(found, name)
        yield f"# {name} = {number.value!r}  # {number.low:.4g} to {number.high:.4g}"
    yield ""
    yield f"# The measured spectra, {modes.d} modes: transition, innovation and initial variances, corrected"
    yield "# for finite samples and continued by the law past the last that can be trusted."
    for name in ("a", "sigma_xi", "sigma_0"):
        values = "".join(f"  {value!r},\n" for value in getattr(modes, name).tolist())
        yield f"{name} = [\n{values}]"


measure = shown(Measurement, records.measure)
