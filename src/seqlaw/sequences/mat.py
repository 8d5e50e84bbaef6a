"""MATLAB's files, read in a process of their own: SciPy's reader crashes on some damaged ones.

Run as a script, `mat.py FILE OUT` writes the arrays of FILE to OUT, an .npz archive. A cell array, which
holds ragged sequences, is written cell by cell as name/0, name/1, … A struct, and a cell that holds cells,
are written as empty arrays: they do not stand in the way of the data beside them, and are refused as data.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

ROOM = 2**30
"""Bytes of memory beside twice the file's size: 1 GiB (no limit on Windows and macOS)."""
_VERSION, _DAMAGED = 3, 4  # exit codes


def load_mat(path: Path) -> dict[str, Any] | None:
    """The arrays of a file, a cell array as a list; None where it is of another version than up to 7."""
    size = path.stat().st_size
    # One thread: those of a linear algebra library would take the room. -P: nothing beside FILE is imported.
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "arrays.npz"
        done = subprocess.run(
            [sys.executable, "-P", __file__, str(path.absolute()), str(out)],
            env=environment,
            capture_output=True,
            timeout=20 + size / 1e7,
            check=False,
        )
        if done.returncode == _VERSION:
            return None
        if done.returncode != 0:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise ValueError(said[-1] if said and done.returncode == _DAMAGED else "the reader crashed")
        with np.load(out, allow_pickle=False) as archive:
            found: dict[str, Any] = {}
            for key in archive.files:
                name, cell, _ = key.partition("/")
                if cell:
                    found.setdefault(name, []).append(archive[key])
                else:
                    found[name] = archive[key]
            return found


def _convert(source: str, out: str) -> int:
    from scipy.io import loadmat
    from scipy.io.matlab import MatReadError

    try:
        import resource

        most = ROOM + 2 * os.path.getsize(source) + 2**29  # the last for the libraries
        limits = [n for n in resource.getrlimit(resource.RLIMIT_AS) if n != resource.RLIM_INFINITY]
        most = min([most, *limits])
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    except (ImportError, ValueError, OSError):  # Windows; macOS, which has the limit and refuses to set it
        pass
    try:
        held = {name: np.asarray(value) for name, value in loadmat(source).items() if name[:2] != "__"}
        with zipfile.ZipFile(out, "w") as archive:
            for name, value in held.items():
                if value.dtype == object or (value.dtype.hasobject and value.size > 1):
                    for k, cell in enumerate(value.ravel()):
                        _write(archive, f"{name}/{k}", np.asarray(cell))
                else:
                    _write(archive, name, value)
    except (MatReadError, NotImplementedError):
        return _VERSION
    except Exception as error:  # a damaged file raises almost anything
        print(f"{type(error).__name__}: {error}".splitlines()[0], file=sys.stderr)
        return _DAMAGED
    return 0


def _write(archive: zipfile.ZipFile, name: str, array: Any) -> None:
    """As `np.savez`, for which a name may not be that of an argument."""
    with archive.open(f"{name}.npy", "w", force_zip64=True) as member:
        plain = np.empty(0) if array.dtype.hasobject else array
        np.lib.format.write_array(member, plain, allow_pickle=False)


if __name__ == "__main__":
    sys.exit(_convert(*sys.argv[1:]))
