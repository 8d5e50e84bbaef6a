"""Which code made a number: a package's version, and a fingerprint of the source behind a task.

A row of other code must never be taken for a row of this code, so the fingerprint is a hash of source files:
of seqlaw's numeric packages for its own tasks, and for code of the user's of the file or package that a task
names with all that these import (not libraries). Nothing is imported to read them. Files that the code reads,
and modules that it imports by a computed name, are not seen; a run can name them (`depends_print`).
"""

from __future__ import annotations

import ast
import dis
import functools
import hashlib
import importlib.util
import itertools
import marshal
import os
import re
import site
import sys
import sysconfig
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import SourceFileLoader
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import seqlaw
from seqlaw.lab.errors import StoreError
from seqlaw.lab.grid import Task
from seqlaw.model.extension import IMPORT_PATH

CODE = ("schedule", "method")
"""The parameters of a task that may name code of the user's, `mymodule:Linear`."""
NUMERIC = ("methods", "model", "paper/experiments/task.py", "sweeping/codec.py", "sweeping/task.py")
"""Where the numbers of seqlaw's own tasks come from. A test checks that their imports stay inside."""
LARGEST = 2**32
"""Bytes of a file that a run may depend on."""
_HOME = seqlaw.__name__
_PLACES = ("stdlib", "platstdlib", "purelib", "platlib")
_LIBRARIES = {
    Path(path).resolve()
    for path in (*map(sysconfig.get_path, _PLACES), *site.getsitepackages(), site.getusersitepackages())
}
_PLAIN = (int, float, complex, bool, str, bytes, type(None))
_prints: dict[str, str] = {}  # fingerprints, computed once per process
_read: dict[Path, bytes] = {}  # the sources behind them, as first read
_checked: set[Path] = set()  # those of which the loaded module was found to be made


def function_path(function: Callable[..., Any]) -> str:
    """`module:name` of a task's function."""
    inner = _unwrapped(function)
    return f"{inner.__module__}:{inner.__qualname__}"


def software(function: Callable[..., Any], task: Task | None = None, depends: str = "") -> str:
    """`0.3.0+1f0c2a7b9d3e`: the version and the fingerprint of what a function runs, then `with_named`.

    `depends` is the result of `depends_print`.
    """
    own = software_of(function_path(function))
    if not own or function is not _unwrapped(function):
        own = _joined(_unwrapped(function).__module__, _digest([_print(function, set())]))
    return with_named(own + depends, task)


def software_of(path: str) -> str:
    """Version and fingerprint for the function of this path; empty if it has no file (a notebook's)."""
    module, _, name = path.partition(":")
    found = fingerprint(module)
    return _joined(module, _digest([found.encode(), name.encode()])) if found else ""


def with_named(own: str, task: Task | None) -> str:
    """`own+mymodule.5d4e…` if the task names code of the user's (`mymodule:Linear`), else `own`."""
    named = named_modules(task)
    return "+".join([own, *(f"{name}.{fingerprint(name)}" for name in sorted(named))]) if named else own


def named_modules(task: Task | None) -> set[str]:
    """The modules of the user's that a task, or one of its points, names."""
    named = set[str]()
    for one in [task or {}, *(task or {}).get("points", ())]:
        for name in CODE:
            if (text := one.get(name)) and (found := IMPORT_PATH.fullmatch(str(text))):
                named.add(found["module"])
    return named


def _joined(module: str, source: str) -> str:
    package = sys.modules.get(module.partition(".")[0])
    return f"{getattr(package, '__version__', '')}+{source}"


def fingerprint(module: str) -> str:
    """48 bits of the SHA-256 of the sources behind a module; empty if it has no file."""
    top = module.partition(".")[0]
    return _hashed("numeric" if top == _HOME else top, _numeric() if top == _HOME else _reached(top))


def _hashed(name: str, sources: Iterator[tuple[str, bytes]]) -> str:
    if name not in _prints:
        found = sorted(dict(sources).items())
        if not found:
            return ""  # and asked again: it may be found later
        _prints[name] = _digest(f"{path}\0{len(text)}\0".encode() + text for path, text in found)
    return _prints[name]


def _numeric() -> Iterator[tuple[str, bytes]]:
    """The sources of seqlaw's numeric packages, by name."""
    for part in NUMERIC:
        yield from _sources(files(_HOME) / part, part)


def _reached(top: str) -> Iterator[tuple[str, bytes]]:
    """The sources of a top-level module or package, and in turn of all that these import, by name."""
    left, seen = [top], {top}
    while left:
        name = left.pop()
        for place in _places(name):
            for path, text in _sources(place, name):
                yield path, text
                new = set(_imported(text)) - seen if path.endswith(".py") else set()
                left, seen = [*left, *new], seen | new


def _places(top: str) -> list[Traversable]:
    """The file or folders of a top-level module; none of a library, nor of what is built in.

    `__main__` is the script if there is one; in a notebook its file would be the kernel's.
    """
    if top == _HOME:
        return [files(_HOME)]
    if top == "__main__":
        main = sys.modules["__main__"]
        file = getattr(main, "__file__", None) if getattr(main, "__spec__", None) is None else None
        return [Path(file)] if file else []
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return []
    folders = None if spec is None else spec.submodule_search_locations
    if spec is None or (folders is None and not spec.has_location):
        return []
    return [Path(place) for place in folders or [str(spec.origin)] if not _is_library(Path(place))]


def _is_library(path: Path) -> bool:
    return not _LIBRARIES.isdisjoint(path.resolve().parents)


def _sources(place: Traversable, name: str) -> Iterator[tuple[str, bytes]]:
    """The source files at or below a place, by name; line ends as on Unix."""
    if place.is_dir():
        for one in place.iterdir():
            if one.name != "__pycache__" and (one.is_dir() or one.name.endswith((".py", ".so", ".pyd"))):
                yield from _sources(one, f"{name}/{one.name}")
    elif place.is_file():
        text = place.read_bytes().replace(b"\r\n", b"\n")
        if isinstance(place, Path):  # not inside a zip
            _read.setdefault(place, text)
        yield name if "." in name else f"{name}{place.name[place.name.find('.') :]}", text


def _imported(source: bytes) -> Iterator[str]:
    """The top-level modules that a source may import, at once or later; none if it is not valid Python."""
    try:
        nodes = list(ast.walk(ast.parse(source)))
    except (SyntaxError, ValueError):
        return
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level and node.module:
            yield node.module.partition(".")[0]


def depends_print(files: Iterable[str]) -> str:
    """`+depends:5d4e…`, the content of files that the numbers depend on; empty for none."""
    names = sorted(files)
    parts = (f"{Path(name).name}\0".encode() + hashlib.sha256(_content(name)).digest() for name in names)
    return f"+depends:{_digest(parts)}" if names else ""


def _content(name: str) -> bytes:
    if not os.path.isfile(name):  # nor a pipe, which would be waited for
        raise StoreError(f"{name} is not there, which the results depend on")
    if os.path.getsize(name) > LARGEST:
        raise StoreError(f"{name} is larger than {LARGEST // 2**30} GiB, which is too much to depend on")
    try:
        return Path(name).read_bytes()
    except OSError as error:
        why = error.strerror or error
        raise StoreError(f"{name}, which the results depend on, cannot be read ({why})") from None


def without_depends(name: str) -> str:
    """The software without the content of files, which only the driver looks at."""
    return re.sub(r"\+depends:\w+", "", name)


def require_unchanged() -> None:
    """Refuse to record numbers of code that was edited after this process had loaded it.

    The loaded code is compared with the file by content: clocks may be wrong.
    """
    loaded = {getattr(module, "__file__", None): module for module in list(sys.modules.values())}
    for path, text in _read.items():
        module = loaded.get(str(path))
        if module is None:
            continue
        same = path.exists() and path.read_bytes().replace(b"\r\n", b"\n") == text
        if same and path not in _checked and _is_loaded_from(module, text, path):
            _checked.add(path)
        if not same or path not in _checked:
            raise StoreError(
                f"{path} has changed since it was loaded here: start Python again, or the numbers of the old "
                "code would be recorded as the new code's"
            )


def _is_loaded_from(module: ModuleType, source: bytes, path: Path) -> bool:
    """Whether a loaded module has the functions and constants of this source, and its import compiled it."""
    if type(getattr(module, "__loader__", None)) is not SourceFileLoader:
        return True  # not plain source: another loader may change it (pytest's does)
    try:
        compiled = compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    known = set(_codes(compiled))
    if not all(code in known for code in _own_codes(module)):
        return False
    for name, value in _constants(compiled).items():
        now = vars(module).get(name, value)
        if type(now) in _PLAIN and now != value:
            return False
    cached = _compiled_by_import(module)
    return cached is None or cached == compiled


def _codes(code: CodeType) -> Iterator[CodeType]:
    """A code object and all that lie inside."""
    yield code
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _codes(inner)


def _own_codes(module: ModuleType) -> Iterator[CodeType]:
    """The code of the functions and methods that a module's file has defined."""
    values = list(vars(module).values())
    for kind in [one for one in values if isinstance(one, type) and one.__module__ == module.__name__]:
        values += vars(kind).values()
    for value in values:
        for name in ("__func__", "func", "fget", "py_func", "__wrapped__"):
            inner = getattr(value, name, None) if not isinstance(value, type) else None
            value = inner if isinstance(inner, FunctionType) else value
        if isinstance(value, FunctionType) and value.__code__.co_filename == getattr(module, "__file__", ""):
            yield value.__code__


def _constants(code: CodeType) -> dict[str, Any]:
    """What a module's code binds to a constant, K = 1.0, and binds once, in whatever scope."""
    if any(("*",) in one.co_consts for one in _codes(code)):  # from … import * may bind anything
        return {}
    stores = ("STORE_NAME", "STORE_GLOBAL")
    steps = [step for one in _codes(code) for step in dis.get_instructions(one)]
    bound = Counter(step.argval for step in steps if step.opname in stores)
    pairs = itertools.pairwise(dis.get_instructions(code))
    found = {to.argval: of.argval for of, to in pairs if of.opname[:6] == "LOAD_C" and to.opname in stores}
    return {name: value for name, value in found.items() if bound[name] == 1 and name[:2] != "__"}


def _compiled_by_import(module: ModuleType) -> CodeType | None:
    """What the import of a module compiled; None if unknown.

    It is unknown if compiled files are not written: an old one may lie there.
    """
    cached = getattr(module, "__cached__", None)
    if cached is None or sys.dont_write_bytecode or not os.access(cached, os.W_OK):
        return None
    try:
        code = marshal.loads(Path(cached).read_bytes()[16:])
    except (EOFError, ValueError, TypeError):
        return None
    return code if isinstance(code, CodeType) else None


def _unwrapped(function: Callable[..., Any]) -> Any:
    return _unwrapped(function.func) if isinstance(function, functools.partial) else function


def _print(value: Any, seen: set[int]) -> bytes:
    """What decides what a function without a file (a notebook's) computes: its code and what that reaches."""
    if id(value) in seen:
        return b""
    seen.add(id(value))
    if isinstance(value, functools.partial):
        return _print([value.func, value.args, *sorted(value.keywords.items())], seen)
    if isinstance(value, (list, tuple)):
        return b"".join(_print(one, seen) for one in value)
    if isinstance(value, (set, frozenset)):
        return repr(sorted(map(repr, value))).encode()
    module = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    if isinstance(value, (ModuleType, FunctionType, type)) and module not in (None, "__main__"):
        top = str(module).partition(".")[0]
        return f"{module}.{value.__name__}.{_hashed(top, _reached(top))}".encode()
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        names = {name for code in _codes(value.__code__) for name in code.co_names}
        reached = [value.__globals__.get(name) for name in sorted(names)]
        parts = [value.__defaults__, value.__kwdefaults__, *cells, *reached]
        return _code_print(value.__code__) + _print(parts, seen)
    if isinstance(value, type):
        return _print([one for _, one in sorted(vars(value).items()) if callable(one)], seen)
    return repr(value).encode()


def _code_print(code: CodeType) -> bytes:
    consts = [_code_print(one) if isinstance(one, CodeType) else _print(one, set()) for one in code.co_consts]
    return b"".join([code.co_code, repr(code.co_names).encode(), *consts])


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:12]
