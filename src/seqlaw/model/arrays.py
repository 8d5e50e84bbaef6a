"""The array-API seam: matrix code takes its functions from the namespace of its arrays.

NumPy's arrays name NumPy, and SciPy decomposes them, so nothing changes there; torch's go through
`array_api_compat`. What is O(M) or has no array-API name is done on the host and put back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import linalg


def is_host(array: Any) -> bool:
    """Whether it is no array of another library."""
    return not hasattr(array, "numpy")


def namespace(array: Any) -> Any:
    """The module whose functions take this array."""
    if is_host(array):
        return np
    import array_api_compat

    return array_api_compat.array_namespace(array)


def host(array: Any) -> Any:
    """The same numbers as a NumPy array."""
    return array if is_host(array) else array.cpu().numpy()


def like(array: Any, values: Any) -> Any:
    """NumPy's `values` where `array` is."""
    return values if is_host(array) else namespace(array).asarray(values, device=array.device, copy=True)


def zeros(array: Any, *shape: int) -> Any:
    """Zeros where `array` is."""
    return namespace(array).zeros(shape, dtype=array.dtype, device=array.device)


def on_host(function: Callable[[Any], Any], array: Any) -> Any:
    """A function of NumPy vectors (a schedule's filter, say) on an array that may be elsewhere."""
    return like(array, function(host(array)))


def eigh(G: Any) -> tuple[Any, Any]:
    """Ascending eigenvalues and eigenvectors of a symmetric matrix."""
    if is_host(G):
        return linalg.eigh(G, driver="evd", check_finite=False)  # type: ignore[no-any-return]  # NumPy's or torch's
    return namespace(G).linalg.eigh(G)  # type: ignore[no-any-return]  # NumPy's or torch's


def ends(G: Any) -> tuple[float, float]:
    """The least and the largest eigenvalue of a symmetric matrix."""
    if is_host(G):
        values = linalg.eigh(G, eigvals_only=True, check_finite=False)
    else:
        values = namespace(G).linalg.eigvalsh(G)
    return float(values[0]), float(values[-1])


def cholesky(W: Any) -> Any:
    """R with W = RᵀR, upper triangular."""
    if is_host(W):
        return linalg.cholesky(W, lower=False, check_finite=False)
    return namespace(W).linalg.cholesky(W, upper=True)


def plus_product(z: Any, x: Any, y: Any) -> Any:
    """z + x·y, in one pass through memory where the library has that; numbers may stand for arrays."""
    if any(isinstance(one, float) or is_host(one) for one in (x, y, z)):
        return z + x * y
    return namespace(z).addcmul(z, x, y)


def root(x: Any) -> Any:
    """√x, entry by entry."""
    return np.sqrt(x) if is_host(x) else x.sqrt()


def frobenius(X: Any) -> Any:
    """‖X‖_F of each of many matrices, … × 1 × 1, at least the least number."""
    if is_host(X):
        return np.maximum(np.linalg.norm(X, axis=(-2, -1), keepdims=True), np.finfo(float).tiny)
    return X.norm(dim=(-2, -1), keepdim=True).clamp_min(float(np.finfo(np.float32).tiny))


def squares(x: Any) -> Any:
    """Σ x², of another library as its array of no dimension: a number would wait for the device."""
    return float(np.vdot(x, x)) if is_host(x) else (x * x).sum()
