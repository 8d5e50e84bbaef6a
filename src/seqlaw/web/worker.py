"""A worker: a process that reads questions from its standard input and writes answers to its output.

Each question runs alone in its process, so that one BLAS thread means one, a hang can be killed, and the
server never waits for arithmetic. Frames are a length (4 bytes) and a pickle; both ends are this package.
"""

from __future__ import annotations

import os
import pickle
import signal
import struct
import sys
import warnings
from collections.abc import Callable
from typing import Any, BinaryIO

HEADER = struct.Struct(">I")
Progress = Callable[[int, int], None]


def pack(message: Any) -> bytes:
    """One frame."""
    data = pickle.dumps(message)
    return HEADER.pack(len(data)) + data


def _read(source: BinaryIO) -> Any:
    head = source.read(HEADER.size)
    if len(head) < HEADER.size:
        raise EOFError
    return pickle.loads(source.read(HEADER.unpack(head)[0]))


def answer(view: str, body: Any, progress: Progress) -> tuple[Any, ...]:
    """("answer", JSON) or ("refused", field, rule, value)."""
    import numpy as np

    from seqlaw.answers.spectrum import NO_NUMBER
    from seqlaw.model.checks import InputError
    from seqlaw.web.views import VIEWS, to_json

    try:
        with np.errstate(all="ignore"):
            return "answer", to_json(VIEWS[view](body, progress))
    except InputError as error:
        return "refused", error.field, error.rule, repr(error.value)
    except NO_NUMBER as error:
        # A setting accepts any stable teacher; at absurd exponents or scales double precision ends first.
        return "refused", "setting", f"cannot be computed in double precision ({error})", view


def main() -> None:
    """Serve until the input closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the server's to handle
    warnings.simplefilter("ignore")
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not land between frames

    def send(*message: Any) -> None:
        sink.write(pack(message))
        sink.flush()

    from seqlaw.model.threads import one_thread
    from seqlaw.web import views  # noqa: F401  # load the numerics before the first question

    with one_thread():
        send("ready")
        try:
            while True:
                view, body = _read(source)
                send(*answer(view, body, lambda done, total: send("progress", done, total)))
        except (EOFError, BrokenPipeError):
            sys.exit(0)


if __name__ == "__main__":
    main()
