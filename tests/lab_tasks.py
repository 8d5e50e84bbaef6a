"""Toy tasks for the lab: cheap, seeded, and each able to misbehave in its own way."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

__version__ = "7.0"  # the lab takes a function's version from its package


def walk(task: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Three numbers that depend on task and seed to the last bit; logs each execution where WALK_LOG says."""
    if "WALK_LOG" in os.environ:
        with Path(os.environ["WALK_LOG"]).open("a") as log:  # one short append: atomic among processes
            log.write(f"{task['i']}\n")
    time.sleep(task.get("sleep", 0))
    steps = np.random.default_rng([seed, task["i"]]).standard_normal(1000)
    return [{"t": t, "value": (steps[:t] @ steps[:t]) ** 0.5} for t in (10, 100, 1000)]


def spin(task: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """A fixed amount of computing."""
    total = 0
    for k in range(task["loops"]):
        total ^= k * k
    return [{"total": total}]


def moody(task: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Raises, exits or kills its process, as the task says."""
    mood = task.get("mood", "good")
    if mood == "raise":
        raise ValueError("a bad\nmood")
    if mood == "exit":
        raise SystemExit(3)
    if mood == "fork":
        subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"], check=False)
    if mood == "stuck":
        return stuck(task, seed)
    if mood == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    return walk(task, seed)


def stuck(task: dict[str, Any], seed: int) -> list[dict[str, Any]]:
    """Holds the interpreter lock for minutes, so that no Python thread of its process runs."""
    Path(task["log"]).touch()
    return [{"total": sum(range(10**11))}]
