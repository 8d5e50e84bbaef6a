"""seqlaw: a laboratory for linear RNN scaling laws. When do longer sequences beat more sequences?

The public names, and nothing else: `seqlaw.public` imports them. `risk` and `curve` answer on any method;
`rates`, `plan` and `tradeoff` are the theorem, an allocation, and longer or more; `sweep` runs many
questions; the rest builds and inspects. They are loaded when the first is asked for, NumPy and SciPy with
them: a bare `import seqlaw` is so light that the command line can catch Ctrl-C from its first moment on.
"""

from typing import TYPE_CHECKING

__version__ = "0.3.0"

if TYPE_CHECKING:
    from seqlaw.public import *  # noqa: F403  # the list is there, once
else:

    def __getattr__(name):
        """A public name, or a submodule that these have loaded."""
        if name == "__all__" or not name.startswith("__"):
            from importlib import import_module

            public = import_module("seqlaw.public")
            globals().update({known: getattr(public, known) for known in ("__all__", *public.__all__)})
            if name in globals():
                return globals()[name]
            from seqlaw.renamed import NAMES

            if name in NAMES:  # no AttributeError, which `from seqlaw import` would say in other words
                raise ImportError(f"seqlaw has no {name}; since 0.3 it is {NAMES[name]}")
        raise AttributeError(f"module 'seqlaw' has no attribute {name!r}")

    def __dir__():
        return sorted({*globals(), *__getattr__("__all__")})
