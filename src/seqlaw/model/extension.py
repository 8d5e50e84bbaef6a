"""Code of the user's, named by its import path: `mymodule:Linear`."""

from __future__ import annotations

import importlib
import re
from typing import Any

from seqlaw.model.checks import InputError

IMPORT_PATH = re.compile(r"(?P<module>[A-Za-z_][\w.]*):(?P<name>[A-Za-z_]\w*)")


def import_object(field: str, path: str) -> Any:
    """What `module:Name` names; the module is looked for where Python looks for modules."""
    found = IMPORT_PATH.fullmatch(path)
    if found is None:
        raise InputError(field, "must be an import path like mymodule:Name", path)
    if found["module"] == "__main__":
        raise InputError(field, "must lie in a module of its own, which workers can import", path)
    try:
        module = importlib.import_module(found["module"])
    except (Exception, SystemExit) as error:  # whatever the user's module raises
        kind = "" if isinstance(error, ImportError) else f"{type(error).__name__}: "
        raise InputError(field, f"must name a module that can be imported ({kind}{error})", path) from None
    if not hasattr(module, found["name"]):
        raise InputError(field, f"must name something that {found['module']} has", path)
    return getattr(module, found["name"])


def path_of(kind: type[Any]) -> str:
    """The import path of a class."""
    return f"{kind.__module__}:{kind.__qualname__}"
