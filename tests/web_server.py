"""The explorer as users start it, for tests and benchmarks: a process, its address, and its end."""

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src"

TEACHER = {"alpha": 1.8, "theta": 1.25, "r": 0.35, "rho": 0.55, "c_xi": 0.03, "c_0": 0.3}
QUESTION = {
    "teacher": TEACHER,
    "M": 32,
    "N": 2048,
    "P": 16,
    "d": 128,
    "schedule": {"kind": "wsd", "L": 20000},
}


def environment():
    """This checkout, one BLAS thread."""
    path = os.pathsep.join(filter(None, [str(SOURCE), os.environ.get("PYTHONPATH")]))
    return os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@contextmanager
def explorer(*options):
    """`seqlaw explore` on a free port: yields (address, process) and stops it with Ctrl-C."""
    process = subprocess.Popen(
        [sys.executable, "-m", "seqlaw", "explore", "--no-open", "--port", "0", *options],
        stdout=subprocess.PIPE,
        text=True,
        env=environment(),
    )
    try:
        line = process.stdout.readline()
        assert line.startswith("seqlaw explorer: http://127.0.0.1:"), line
        yield line.split()[2].rstrip("/"), process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()
