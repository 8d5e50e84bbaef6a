"""What is said of how a user's sequences were read."""

from __future__ import annotations

from collections.abc import Callable

from seqlaw.answers.words import Side, option
from seqlaw.model.amount import amount
from seqlaw.model.flags import Flag

READ: dict[str, Callable[[Flag, Side], str]] = {
    "blocks": lambda f, s: (
        f"one recording was cut into windows of {amount(f['states'])} states; {f['blocks']} blocks of "
        f"{f['windows']} windows, with one left out between two, count as independent. This is wrong if the "
        "recording has a memory longer than a window"
    ),
    "clock": lambda f, s: (
        f"of {f['of']} features these rise steadily, as clocks and counters do, and every fit learns that: "
        f"{', '.join(f['columns'])}. Name the column of time with {option('time', s)}, that of the sequence "
        f"with {option('sequence', s)}, and leave out others with {option('leave_out', s)}"
    ),
    "repeated-numbers": lambda f, s: (
        f"{amount(f['sequences'])} of {amount(f['of'])} sequences lie in several separate stretches of rows, "
        "and each was joined to one. If numbers start anew for every subject or file, give each sequence a "
        f"number of its own for {option('sequence', s)}"
    ),
    "files": lambda f, s: (
        f"the {amount(f['sequences'])} sequences of {amount(f['files'])} files count as independent. If a "
        f"file is one subject or session, make each file a group ({option('groups', s)} file)"
    ),
    "gaps": lambda f, s: (
        f"{amount(f['steps'])} of {amount(f['of'])} steps of time are longer than the usual one (up to "
        f"{f['largest']:.3g} times), but each counts as one step. If states are missing there, cut the "
        "sequences or fill the gaps"
    ),
    "shorter": lambda f, s: (
        f"{amount(f['sequences'])} of {amount(f['of'])} sequences are shorter than {amount(f['P'])} and left "
        "out"
    ),
    "dropped": lambda f, s: (
        f"{amount(f['sequences'])} of {amount(f['of'])} sequences have missing values and are left out"
    ),
    "missing": lambda f, s: (
        f"{amount(f['states'])} of {amount(f['of'])} states have missing values and are left out; windows "
        "are cut from the stretches between them"
    ),
}
"""Words of flags that a measurement and a forecast share, by code."""
