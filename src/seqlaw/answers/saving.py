"""A measurement as a teacher file: its numbers as TOML, and in comments what they are worth."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from seqlaw.answers.measurement_words import LOOKS, data_words, regime_words, why_void
from seqlaw.answers.words import sentences
from seqlaw.files import output_path
from seqlaw.model.checks import InputError
from seqlaw.model.signature import checked
from seqlaw.model.stored import replaced
from seqlaw.model.teacher import NUMBERS
from seqlaw.sequences.exponents import LEVEL
from seqlaw.sequences.findings import void
from seqlaw.sequences.measure import Measurement

FIELD, LAW = "save_teacher", "save_law"
"""What asks for the spectra, and what asks for the six numbers."""


@checked
def save(found: Measurement, path: str | Path, *, law: bool = False, source: str = "sequences") -> None:
    """Write `found.modes`, or with `law` the six numbers and their intervals, below comments as TOML.

    `load_teacher` reads the modes back to the last bit, `load_uncertain` the intervals. Where the sequences
    leave nothing to predict from, or there is no such law, nothing is written. A file that is there already
    is replaced whole or left as it is.
    """
    field = LAW if law else FIELD
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
        raise InputError(LAW, f"needs a power law: {why}", source)
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
