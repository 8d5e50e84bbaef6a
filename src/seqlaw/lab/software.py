"""Which code made a number: a package's version, and a fingerprint of the source that a task runs.

A changed formula must never return an old number, so the fingerprint is of the source itself: the module of a
task's function and all that it imports of its own package and of seqlaw. Comments count too: a task run once
too often costs little. A wheel, a checkout and an editable installation of the same files have the same one.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import importlib.util
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType
from typing import Any

import seqlaw
from seqlaw.lab.errors import StoreError
from seqlaw.lab.grid import Task
from seqlaw.model.extension import IMPORT_PATH

_read: dict[Path, float] = {}  # the files behind this process's fingerprints, and when each was written


def software(function: Callable[..., Any], task: Task | None = None) -> str:
    """`0.2.0+1f0c2a7b9d3e`: the version and the fingerprint of what a function runs, then as `with_named`."""
    module = function.__module__
    return with_named(_joined(module, fingerprint(module) or _code_print(function.__code__)), task)


def software_of(module: str, task: Task | None = None) -> str:
    """The same for a function of this module; empty where the module has no source (a notebook's)."""
    found = fingerprint(module)
    return with_named(_joined(module, found), task) if found else ""


def with_named(own: str, task: Task | None) -> str:
    """`own+mymodule.5d4e…` where the task names code of the user's (`mymodule:Linear`), else `own`."""
    named = named_modules(task)
    return "+".join([own, *(f"{name}.{fingerprint(name)}" for name in sorted(named))]) if named else own


def _joined(module: str, source: str) -> str:
    package = importlib.import_module(module.partition(".")[0])
    return f"{getattr(package, '__version__', '')}+{source}"


def named_modules(value: dict[str, Any] | list[Any] | None) -> set[str]:
    """The modules that a task names: every text `module:Name` in it is code that it runs."""
    named = set[str]()
    for one in value.values() if isinstance(value, dict) else value or ():
        kind = type(one)  # most values are numbers, and a sweep has up to a million
        if kind is str and ":" in one:
            found = IMPORT_PATH.fullmatch(one)
            named |= {found["module"]} if found else set()
        elif kind is list or kind is dict:
            named |= named_modules(one)
    return named


@functools.cache
def fingerprint(module: str) -> str:
    """The first 48 bits of the SHA-256 of a module's source and of what it imports; empty without a file."""
    sources = _sources(module)
    if module not in sources:
        return ""
    return _digest(f"{name}\0{len(text)}\0".encode() + text for name, text in sorted(sources.items()))


def require_unchanged() -> None:
    """Refuse to record numbers of code that was edited after this process had loaded it."""
    for path, written in _read.items():
        if path.stat().st_mtime != written:
            raise StoreError(
                f"{path} has changed since it was loaded here: start Python again, or the numbers of the old "
                "code would be recorded as the new code's"
            )


def _sources(module: str) -> dict[str, bytes]:
    """The source of a module and, in turn, of what it imports of its own package and of seqlaw, by name.

    The package `seqlaw` itself is left out: it lists public names, and would bring all of them along.
    """
    packages = {module.partition(".")[0], seqlaw.__name__}
    found: dict[str, bytes] = {}
    left = [module]
    while left:
        name = left.pop()
        spec = None if name in found or name == seqlaw.__name__ else _spec(name)
        if spec is None or spec.origin is None or not hasattr(spec.loader, "get_data"):
            continue
        found[name] = _text(Path(spec.origin), spec)
        if spec.origin.endswith(".py"):
            left += [other for other in _imported(spec, found[name]) if other.partition(".")[0] in packages]
    return found


def _spec(name: str) -> ModuleSpec | None:
    """Where a module is; None for what is no module (a name imported from one) or has no file.

    `__main__` counts as one without: in a notebook its file is the kernel's.
    """
    try:
        return None if name == "__main__" else importlib.util.find_spec(name)
    except (ImportError, ValueError):  # its parent is no package, or was made by hand
        return None


def _text(path: Path, spec: ModuleSpec) -> bytes:
    text: bytes = spec.loader.get_data(str(path))  # type: ignore[union-attr]  # checked by the caller
    if path.exists():  # not inside a zip
        _read[path] = path.stat().st_mtime
        if spec.name.startswith(seqlaw.__name__ + ".") and _read[path] > seqlaw._loaded:
            _read[path] = -1.0  # `require_unchanged` will say so
    return text.replace(b"\r\n", b"\n")


def _imported(spec: ModuleSpec, source: bytes) -> Iterator[str]:
    """Every module that a source may import, lazily or not; names of objects are among them."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = importlib.util.resolve_name("." * node.level + base, spec.parent)
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _code_print(code: CodeType) -> str:
    """The fingerprint of a function without a file (of a notebook, say): of its code alone."""
    return _digest([code.co_code, repr(code.co_names).encode(), *map(_constant, code.co_consts)])


def _constant(value: Any) -> bytes:
    if isinstance(value, CodeType):
        return _code_print(value).encode()
    return repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value).encode()


def _digest(parts: Any) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:12]
