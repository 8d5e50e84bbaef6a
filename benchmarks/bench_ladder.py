"""`seqlaw ladder` as it is without options (M = 96, four lengths, two phases), full batch and one pass."""

from __future__ import annotations

import contextlib
import io
import time

from timing import report

from seqlaw.cli import main


def seconds(*arguments: str) -> float:
    began = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main(["ladder", *arguments])
    return time.perf_counter() - began


if __name__ == "__main__":
    report("the default ladder, seconds", seconds(), "< 20")
    report("1e8 tokens in one pass, seconds", seconds("--batch", "1", "--tokens", "1e8"), "(not asked)")
