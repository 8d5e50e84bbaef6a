"""A measurement as a teacher file: the spectra that the advice uses, and in comments what they are worth."""

from __future__ import annotations

import contextlib
import os
from dataclasses import fields
from pathlib import Path

from seqlaw.sequences.measure import LEVEL, Measurement
from seqlaw.sequences.verdict import LOOKS, data_words, refusal, regime_words
from seqlaw.model.checks import InputError
from seqlaw.model.teacher import Teacher

_FIELD = "save_teacher"


def check_teacher_path(path: str | Path) -> Path:
    """A path that a teacher file can be written to."""
    path = Path(path)
    if path.suffix != ".toml":
        raise InputError(_FIELD, "must end in .toml", str(path))
    if not path.parent.is_dir():
        raise InputError(_FIELD, "must lie in an existing folder", str(path))
    return path


def save_teacher(found: Measurement, path: str | Path, *, source: str = "sequences") -> None:
    """Write `found.modes` to a TOML file that `load_teacher` reads back to the last bit.

    Where the sequences leave nothing to predict from, and `advise` gives no advice, nothing is written. A
    file that is there already is replaced whole or left as it is.
    """
    path = check_teacher_path(path)
    refused = refusal(found.findings, found.N)
    if refused is not None:
        raise InputError(_FIELD, f"needs sequences to predict from: {refused[0]}", source)
    draft = path.with_name(path.name + ".part")
    try:
        draft.write_text(_text(found, source), encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        raise InputError(_FIELD, f"must be writable ({error.strerror})", str(path)) from None
    finally:
        with contextlib.suppress(OSError):  # gone where all went well, impossible where it could not be made
            draft.unlink()


def _text(found: Measurement, source: str) -> str:
    modes = found.modes
    use = "To use it instead of the spectra, uncomment it and delete them."
    if found.teacher is None:
        use = "It defines no stable teacher."
    lines = [
        f"# Measured from {source!a}: {data_words(found)}",
        f"# {regime_words(found.regime)}; {LOOKS[found.seen]}",
        *(f"# ! {flag}" for flag in found.flags),
        "",
        f"# The fitted power law, with {LEVEL:.0%} intervals. {use}",
    ]
    for field in fields(Teacher):
        law = getattr(found, field.name)
        lines.append(f"# {field.name} = {law.value!r}  # {law.low:.4g} to {law.high:.4g}")
    lines += [
        "",
        f"# The measured spectra, {modes.d} modes: transition, innovation and initial variances, corrected",
        "# for finite samples and continued by the law past the last that can be trusted.",
    ]
    for name in ("a", "sigma_xi", "sigma_0"):
        values = "".join(f"  {value!r},\n" for value in getattr(modes, name).tolist())
        lines.append(f"{name} = [\n{values}]")
    return "\n".join(lines) + "\n"
