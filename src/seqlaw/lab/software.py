"""Which code made a number: a package's version, and a fingerprint of the source that a task runs.

A changed formula must never return an old number, so the fingerprint is of the source itself: the module of a
task's function, and all that it imports of its own package, of seqlaw and of the user's other files (not of
the libraries), without comments and docstrings. A wheel, a checkout and an editable installation of the same
files have the same fingerprint. Nothing is imported to read it. Files that the code reads, and modules that
it imports by a computed name, are not seen; a run can name them (`depends_print`).
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib.util
import io
import marshal
import os
import re
import site
import sys
import sysconfig
import tokenize
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any

import seqlaw
from seqlaw.lab.errors import StoreError
from seqlaw.lab.grid import Task
from seqlaw.model.extension import IMPORT_PATH

CODE = ("schedule", "method")
"""The parameters of a task that may name code of the user's, `mymodule:Linear`."""
LARGEST = 2**32
"""Bytes of a file that a run may depend on."""
_HOME = seqlaw.__name__
_PLACES = ("stdlib", "platstdlib", "purelib", "platlib")
_LIBRARIES = {
    Path(path).resolve() for path in (*map(sysconfig.get_path, _PLACES), site.getusersitepackages())
}
_PLAIN = (int, float, complex, bool, str, bytes, type(None))
_prints: dict[str, str] = {}  # fingerprints, computed once a process
_read: dict[Path, tuple[str, bytes]] = {}  # the files behind this process's fingerprints: module, source
_checked: set[Path] = set()  # those of which it is known that the module was loaded from this source


def function_path(function: Callable[..., Any]) -> str:
    """`module:name` of a task's function."""
    inner = _unwrapped(function)
    return f"{inner.__module__}:{inner.__qualname__}"


def software(function: Callable[..., Any], task: Task | None = None, depends: str = "") -> str:
    """`0.2.0+1f0c2a7b9d3e`: the version and the fingerprint of what a function runs, then `with_named`.

    `depends` is what `depends_print` says of the files that it depends on.
    """
    own = software_of(function_path(function))
    if not own or function is not _unwrapped(function):
        own = _joined(_unwrapped(function).__module__, _digest([_print(function, set())]))
    return with_named(own + depends, task)


def software_of(path: str, task: Task | None = None, depends: str = "") -> str:
    """The same for the function of this path; empty where its module has no source (a notebook's)."""
    module, _, name = path.partition(":")
    found = fingerprint(module)
    own = _joined(module, _digest([found.encode(), name.encode()])) + depends
    return with_named(own, task) if found else ""


def with_named(own: str, task: Task | None) -> str:
    """`own+mymodule.5d4e…` where the task names code of the user's (`mymodule:Linear`), else `own`."""
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
    """The first 48 bits of the SHA-256 of a module's source and of what it imports; empty without a file."""
    if module not in _prints:
        sources = _sources(module)
        if module not in sources:
            return ""  # and asked again: it may be found later
        parts = (f"{name}\0{len(text)}\0".encode() + text for name, text in sorted(sources.items()))
        _prints[module] = _digest(parts)
    return _prints[module]


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

    What was loaded is compared with what is on disk by content: clocks may be wrong.
    """
    for path, (module, text) in _read.items():
        loaded = sys.modules.get(module)
        if loaded is None:
            continue
        same = path.exists() and path.read_bytes().replace(b"\r\n", b"\n") == text
        if same and path not in _checked and _is_loaded_from(loaded, text, path):
            _checked.add(path)
        if not same or path not in _checked:
            raise StoreError(
                f"{path} has changed since it was loaded here: start Python again, or the numbers of the old "
                "code would be recorded as the new code's"
            )


def _is_loaded_from(module: ModuleType, source: bytes, path: Path) -> bool:
    """Whether a loaded module's functions and plain numbers, and the file that its import compiled, are
    those of this source."""
    if type(getattr(module, "__loader__", None)) is not SourceFileLoader:
        return True  # not plain source: another loader may change it (pytest's does)
    try:
        compiled = compile(source, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    known, left = {compiled}, [compiled]
    while left:
        inner = [one for one in left.pop().co_consts if isinstance(one, CodeType)]
        known.update(inner)
        left += inner
    if not all(code in known for code in _own_codes(module)):
        return False
    for name, value in _numbers(ast.parse(source)).items():
        now = vars(module).get(name, value)
        if type(now) in _PLAIN and now != value:
            return False
    cached = _compiled_by_import(module)
    return cached is None or cached == compiled


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


def _numbers(tree: ast.Module) -> dict[str, Any]:
    """The constants that a source binds once, at its top: K = 1.0."""
    found: dict[str, Any] = {}
    bound = [name for node in ast.walk(tree) for name in _bound(node)]
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        for target in targets:
            if isinstance(target, ast.Name) and isinstance(value, ast.Constant) and target.id[:2] != "__":
                found[target.id] = value.value
    return {name: value for name, value in found.items() if bound.count(name) == 1 and "*" not in bound}


def _bound(node: ast.AST) -> Iterable[str]:
    """The names that a node binds, in whatever scope; `*` for all of another module's."""
    if isinstance(node, ast.Name):
        return [node.id] if isinstance(node.ctx, ast.Store) else []
    if isinstance(node, ast.alias):
        return [node.asname or node.name.partition(".")[0]]
    # Functions, classes and handlers of errors have a name, and what a `match` captures a name or a rest.
    return filter(None, (getattr(node, "name", None), getattr(node, "rest", None)))


def _compiled_by_import(module: ModuleType) -> CodeType | None:
    """What the import of a module compiled; None where nobody knows.

    That is where compiled files are not written: an old one may lie there.
    """
    cached = getattr(module, "__cached__", None)
    if cached is None or sys.dont_write_bytecode or not os.access(cached, os.W_OK):
        return None
    try:
        code = marshal.loads(Path(cached).read_bytes()[16:])
    except (EOFError, ValueError, TypeError):
        return None
    return code if isinstance(code, CodeType) else None


def _sources(module: str) -> dict[str, bytes]:
    """The source of a module, of its packages and, in turn, of what it imports, by name.

    Of the package `seqlaw` only the names that are asked for count: all of it would bring every page along.
    """
    own = module.partition(".")[0]
    found: dict[str, bytes] = {}
    left = [module]
    while left:
        name = left.pop()
        if name in found or name == _HOME or not _is_followed(name, own):
            continue
        spec = _spec(name)
        if spec is None:
            continue
        left += [name.rpartition(".")[0]] if "." in name else []
        if spec.origin is None or not hasattr(spec.loader, "get_data"):
            continue  # a folder without __init__.py, or no source
        found[name] = _text(spec)
        if spec.origin.endswith(".py"):
            try:
                tree = ast.parse(found[name], spec.origin)
            except (SyntaxError, ValueError) as error:
                why = f"{spec.origin}, which the results depend on, is not valid Python"
                raise StoreError(f"{why} ({str(error).splitlines()[0]})") from None
            left += _imported(spec, tree)
            found[name] = _without_words(found[name], tree)
    return found


def _is_followed(name: str, own: str) -> bool:
    """A module of the function's own package, of seqlaw, or in a file that is no library.

    The outermost package with a file decides: one folder without `__init__.py` may hold both kinds.
    """
    if name.partition(".")[0] in (own, _HOME):
        return True
    outer = (name[: dot.start()] for dot in re.finditer(r"\.|$", name))
    spec = next((spec for spec in map(_spec, outer) if spec is None or spec.origin is not None), None)
    if spec is None or spec.origin is None or not spec.has_location:
        return False
    return not any(library in Path(spec.origin).resolve().parents for library in _LIBRARIES)


def _spec(name: str) -> ModuleSpec | None:
    """Where a module is, without importing it; None for what is no module, or has no file.

    `__main__` is the script where there is one; in a notebook its file would be the kernel's.
    """
    if name == "__main__":
        file = getattr(sys.modules[name], "__file__", None)
        script = file is not None and getattr(sys.modules[name], "__spec__", None) is None
        return importlib.util.spec_from_file_location(name, file) if script and file else None
    loaded = getattr(sys.modules.get(name), "__spec__", None)
    if loaded is not None:
        found: ModuleSpec = loaded
        return found
    parent = name.rpartition(".")[0]
    inside = _spec(parent) if parent else None
    if parent and (inside is None or inside.submodule_search_locations is None):
        return None
    path = inside.submodule_search_locations if inside is not None else None
    try:
        spec = next(filter(None, (finder.find_spec(name, path) for finder in sys.meta_path)), None)
        if spec is not None and spec.submodule_search_locations is not None:
            spec.submodule_search_locations = list(spec.submodule_search_locations)
    except KeyError:  # a folder without __init__.py asks for its parent, which is not imported
        spec = ModuleSpec(name, None, is_package=True)
        folders = [os.path.join(place, name.rpartition(".")[2]) for place in path or ()]
        spec.submodule_search_locations = [folder for folder in folders if os.path.isdir(folder)]
    return spec


def _text(spec: ModuleSpec) -> bytes:
    path = Path(str(spec.origin))
    text: bytes = spec.loader.get_data(str(path))  # type: ignore[union-attr]  # checked by the caller
    text = text.replace(b"\r\n", b"\n")
    if path.exists():  # not inside a zip
        if _read.get(path, ("", text))[1] != text:
            _checked.discard(path)  # what was loaded is older than this text
        _read[path] = (spec.name, text)
    return text


def _without_words(source: bytes, tree: ast.Module) -> bytes:
    """A source without comments and docstrings, cut out of the text: trees differ between Pythons."""
    lines = source.split(b"\n")
    texts = (node for node in ast.walk(tree) if isinstance(node, ast.Expr))
    cuts = [
        (one.lineno, one.col_offset, one.end_lineno or 0, one.end_col_offset or 0)
        for one in texts
        if isinstance(one.value, ast.Constant) and isinstance(one.value.value, str)
    ]
    for token in tokenize.tokenize(io.BytesIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, before = token.start[0], len(lines[token.start[0] - 1].decode()[: token.start[1]].encode())
            cuts.append((row, before, row, len(lines[row - 1])))
    for row, start, last, end in sorted(cuts, reverse=True):
        left = lines[row - 1][:start].rstrip() + lines[last - 1][end:]
        lines[row - 1 : last] = [left] if left else []
    return b"\n".join(lines)


def _imported(spec: ModuleSpec, tree: ast.Module) -> Iterator[str]:
    """Every module that a source may import, lazily or not; names of objects are among them."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield from _public().values() if alias.name == _HOME else [alias.name]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = importlib.util.resolve_name("." * node.level + base, spec.parent)
            names = [alias.name for alias in node.names]
            if base == _HOME:
                yield from (_public().get(name, f"{_HOME}.{name}") for name in names)
                continue
            yield base
            yield from (f"{base}.{name}" for name in names)


@functools.cache
def _public() -> dict[str, str]:
    """The public names of seqlaw, each with the module that it comes from."""
    spec = _spec(f"{_HOME}.public")
    assert spec is not None
    nodes = ast.walk(ast.parse(_text(spec)))
    froms = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return {alias.name: node.module or "" for node in froms for alias in node.names}


def _unwrapped(function: Callable[..., Any]) -> Any:
    return _unwrapped(function.func) if isinstance(function, functools.partial) else function


def _print(value: Any, seen: set[int]) -> bytes:
    """What a value is, as far as it decides what a function without a file computes (a notebook's)."""
    if id(value) in seen:
        return b""
    seen.add(id(value))
    if isinstance(value, functools.partial):
        inside = (value.func, value.args, *sorted(value.keywords.items()))
        return b"".join(_print(one, seen) for one in inside)
    if isinstance(value, ModuleType):
        return _module_print(value.__name__)
    module = getattr(value, "__module__", None)
    if isinstance(value, (FunctionType, type)) and module not in (None, "__main__"):
        return f"{module}.{value.__qualname__}.".encode() + _module_print(str(module))
    if isinstance(value, FunctionType):
        cells = [cell.cell_contents for cell in value.__closure__ or ()]
        reached = [value.__globals__.get(name) for name in sorted(_names(value.__code__))]
        parts = [value.__defaults__, value.__kwdefaults__, *cells, *reached]
        return _code_print(value.__code__) + b"".join(_print(one, seen) for one in parts)
    if isinstance(value, type):
        return b"".join(_print(one, seen) for _, one in sorted(vars(value).items()) if callable(one))
    if isinstance(value, (set, frozenset)):
        return repr(sorted(map(repr, value))).encode()
    return repr(value).encode()


def _module_print(name: str) -> bytes:
    """A module by name, with the source of what is no library."""
    if name == _HOME:
        return repr(sorted(map(fingerprint, set(_public().values())))).encode()
    return f"{name}.{fingerprint(name) if _is_followed(name, _HOME) else ''}".encode()


def _names(code: CodeType) -> set[str]:
    inner = [_names(one) for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*inner)


def _code_print(code: CodeType) -> bytes:
    consts = [_code_print(one) if isinstance(one, CodeType) else _print(one, set()) for one in code.co_consts]
    return b"".join([code.co_code, repr(code.co_names).encode(), *consts])


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()[:12]
