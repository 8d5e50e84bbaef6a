"""What a question walks through: modules crossed, and those entered again below themselves (A → B → A).

`python benchmarks/walk.py risk -M 32 -d 128` walks a command; `… slider` a move in the explorer.
"""

import contextlib
import io
import sys
from collections import Counter
from types import FrameType
from typing import Any


def walked(call: Any) -> tuple[list[str], Counter[str]]:
    """The modules of seqlaw that a call crosses, and its re-entries."""
    crossed, again = dict[str, None](), Counter[str]()

    def see(frame: FrameType, event: str, arg: object) -> None:
        module = str(frame.f_globals.get("__name__"))
        if event != "call" or not module.startswith("seqlaw"):
            return
        crossed[module] = None
        path, above = [module], frame.f_back
        while above is not None:
            name = str(above.f_globals.get("__name__"))
            if name.startswith("seqlaw") and name != path[-1]:
                path.append(name)
            if name == module and len(path) > 1:
                again[" > ".join(part.removeprefix("seqlaw.") for part in reversed(path))] += 1
                break
            above = above.f_back

    sys.setprofile(see)
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        call()
    sys.setprofile(None)
    return list(crossed), again


def slider() -> None:
    """One quick curve, as the explorer's worker computes it while a slider moves."""
    from seqlaw.web.schema import METHOD, Moving
    from seqlaw.web.worker import answer

    answer("curve", (Moving(M=64, N=4096, P=64, d=512, quick=True), METHOD), lambda done, total: None)


if __name__ == "__main__":
    from seqlaw.cli import main

    command = slider if sys.argv[1:] == ["slider"] else lambda: main(sys.argv[1:])
    walked(command)  # imports
    modules, again = walked(command)
    print(f"{len(modules)} modules: {' '.join(name.removeprefix('seqlaw.') for name in modules)}")
    for path, times in again.most_common():
        print(f"{times:6d}  {path}")
