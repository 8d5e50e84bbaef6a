"""Loaded by every Python of `make test-elsewhere`: what macOS or Windows do not have is taken away.

`fcntl` is kept for other libraries (dask's locket, filelock), which have their own way on Windows.
"""

import builtins
import multiprocessing.context
import os

del os.sched_getaffinity  # neither system has it
multiprocessing.context._concrete_contexts.pop("fork", None)  # Windows has none, and macOS does not take it
multiprocessing.set_start_method("spawn")
_import = builtins.__import__


def _without_fcntl(name, globals=None, *rest, **named):
    if name == "fcntl" and (globals or {}).get("__name__", "").split(".")[0] in ("seqlaw", "lab_tasks"):
        raise ModuleNotFoundError("No module named 'fcntl'", name="fcntl")
    return _import(name, globals, *rest, **named)


builtins.__import__ = _without_fcntl
