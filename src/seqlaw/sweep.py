"""0.1's place of `sweep`, `load` and `export`, which are names of `seqlaw` itself.

Python binds a module of this name over the function `seqlaw.sweep`, so the module can be called as it.
"""

from __future__ import annotations

import sys
import types
import warnings
from typing import Any

from seqlaw.sweeping.file import Schedules, Sizes, Sweep, load_sweep
from seqlaw.sweeping.run import export, load, sweep

__all__ = ["Schedules", "Sizes", "Sweep", "export", "load", "load_sweep", "sweep"]

warnings.warn(
    "seqlaw.sweep is now a function only: import sweep, load and export from seqlaw",
    DeprecationWarning,
    stacklevel=2,
)


class _Callable(types.ModuleType):
    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return sweep(*arguments, **options)


sys.modules[__name__].__class__ = _Callable
