"""The explorer as users start it, for tests and benchmarks: a process, its address, and its end."""

import asyncio
import itertools
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx

SOURCE = Path(__file__).parents[1] / "src"

TEACHER = {"alpha": 1.8, "theta": 1.25, "r": 0.35, "rho": 0.55, "c_xi": 0.03, "c_0": 0.3}
QUESTION = {
    **TEACHER,
    "M": 32,
    "N": 2048,
    "P": 16,
    "d": 128,
    "schedule": "wsd",
    "L": 20000,
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
        address = line.split()[2].rstrip("/")
        for _ in range(300):  # the address is known before the first worker is ready
            with suppress(httpx.ConnectError):
                httpx.get(f"{address}/api/start")
                break
            time.sleep(0.1)
        yield address, process
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def resident(pid):
    """MiB of a process and its children (Linux)."""
    total = 0.0
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            fields = dict(line.split(":", 1) for line in status.read_text().splitlines())
        except (FileNotFoundError, ProcessLookupError):
            continue
        if pid in (int(fields["Pid"]), int(fields["PPid"])) and "VmRSS" in fields:
            total += int(fields["VmRSS"].split()[0]) / 1024
    return total


async def load(address, pid, clients, seconds):
    """What `clients` asking without pause are answered, and the memory each second."""
    statuses = Counter()
    memory = []
    end = time.monotonic() + seconds
    thetas = itertools.cycle([1.2, 1.3, 1.5, 2.0])
    limits = httpx.Limits(max_connections=clients)

    async def ask(client):
        while time.monotonic() < end:
            body = QUESTION | {"theta": next(thetas)}
            answer = await client.post("/api/curve", json=body | {"points": 8, "quick": True})
            statuses[answer.status_code] += 1
            if answer.status_code != 200:
                await asyncio.sleep(0.05)  # a refused client waits a moment, if not the second it was told

    async def watch():
        while time.monotonic() < end:
            memory.append(resident(pid))
            await asyncio.sleep(1)

    async with httpx.AsyncClient(base_url=address, limits=limits, timeout=60) as client:
        await asyncio.gather(watch(), *(ask(client) for _ in range(clients)))
    return statuses, memory
