"""The array-API seam: matrix code takes its functions from the namespace of its arrays.

NumPy's arrays name NumPy, so nothing changes there; another library's would name their own.
"""

from __future__ import annotations

from typing import Any


def namespace(array: Any) -> Any:
    """The module whose functions take this array."""
    return array.__array_namespace__()
