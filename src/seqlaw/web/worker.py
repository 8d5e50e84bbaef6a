"""A worker: a process that reads questions from its standard input and writes answers to its output.

Each question runs alone in its process, so that one BLAS thread means one, a hang can be killed, and the
server never waits for arithmetic.
"""

from __future__ import annotations

import traceback
import warnings
from collections.abc import Callable
from typing import Any

from seqlaw.model.helper_process import served

Progress = Callable[[int, int], None]


def answer(view: str, body: Any, progress: Progress) -> tuple[Any, ...]:
    """("answer", JSON), ("refused", field, rule, value), or ("failed",) after a fault of our own."""
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
    except Exception:
        traceback.print_exc()
        return ("failed",)


def main() -> None:
    """Serve until the input closes."""
    warnings.simplefilter("ignore")
    messages, send = served()

    from seqlaw.model.threads import one_thread
    from seqlaw.web import views  # noqa: F401  # load the numerics before the first question

    with one_thread():
        send("ready")
        for view, body in messages:
            send(*answer(view, body, lambda done, total: send("progress", done, total)))


if __name__ == "__main__":
    main()
