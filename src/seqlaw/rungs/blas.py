"""One BLAS thread: sums come in one order, so stored numbers do not depend on a machine's cores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """A context, or as `@one_thread()` a decorator, in which BLAS and LAPACK use one thread."""
    with threadpool_limits(limits=1, user_api="blas"):
        yield
