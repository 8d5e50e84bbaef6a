"""A measurement as a teacher file: the spectra that the advice uses, and in comments what they are worth."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable
from pathlib import Path

from seqlaw.model.checks import InputError
from seqlaw.model.teacher import NUMBERS
from seqlaw.model.uncertain import Uncertain
from seqlaw.sequences.exponents import LEVEL
from seqlaw.sequences.measure import Measurement

FIELD, LAW = "save_teacher", "save_law"
"""What asks for the spectra, and what asks for the six numbers."""


def check_teacher_path(path: str | Path, *, field: str = FIELD) -> Path:
    """A path that a teacher file can be written to."""
    path = Path(path)
    if path.suffix != ".toml":
        raise InputError(field, "must end in .toml", str(path))
    if not path.parent.is_dir():
        raise InputError(field, "must lie in an existing folder", str(path))
    return path


def write_teacher(found: Measurement, path: str | Path, *, comments: Iterable[str] = ()) -> None:
    """The modes as TOML below comments; a file that is there already is replaced whole or left as it is."""
    _replace(path, _text(found, comments), FIELD)


def write_law(law: Uncertain, path: str | Path, *, comments: Iterable[str] = ()) -> None:
    """The six numbers and their intervals, likewise."""
    lines = [f"# {comment}" for comment in comments]
    lines += ["", "# The fitted power law: the teacher of any command."]
    lines += [f"{name} = {getattr(law.teacher, name)!r}" for name in NUMBERS]
    lines += [
        "",
        f"[intervals]  # {LEVEL:.0%}, cut to stable teachers: `seqlaw plan` plans over draws from them",
    ]
    lines += [f"{name} = [{low!r}, {high!r}]" for name, (low, high) in law.intervals.items()]
    _replace(path, "\n".join(lines) + "\n", LAW)


def _replace(path: str | Path, text: str, field: str) -> None:
    path = check_teacher_path(path, field=field)
    draft = path.with_name(path.name + ".part")
    try:
        draft.write_text(text, encoding="utf-8")
        os.replace(draft, path)
    except OSError as error:
        raise InputError(field, f"must be writable ({error.strerror})", str(path)) from None
    finally:
        with contextlib.suppress(OSError):  # gone where all went well, impossible where it could not be made
            draft.unlink()


def _text(found: Measurement, comments: Iterable[str]) -> str:
    modes = found.modes
    use = "To use it instead of the spectra, uncomment it and delete them."
    if found.teacher is None:
        use = "It defines no stable teacher."
    lines = [f"# {comment}" for comment in comments]
    lines += ["", f"# The fitted power law, with {LEVEL:.0%} intervals. {use}"]
    for name in NUMBERS:
        law = getattr(found, name)
        lines.append(f"# {name} = {law.value!r}  # {law.low:.4g} to {law.high:.4g}")
    lines += [
        "",
        f"# The measured spectra, {modes.d} modes: transition, innovation and initial variances, corrected",
        "# for finite samples and continued by the law past the last that can be trusted.",
    ]
    for name in ("a", "sigma_xi", "sigma_0"):
        values = "".join(f"  {value!r},\n" for value in getattr(modes, name).tolist())
        lines.append(f"{name} = [\n{values}]")
    return "\n".join(lines) + "\n"
