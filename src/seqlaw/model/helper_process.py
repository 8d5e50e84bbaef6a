"""Processes that work for this one: how they are started, spoken to, and end with it.

Frames are a length (4 bytes) and a pickle; both ends are this package.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import queue
import signal
import struct
import sys
import threading
from collections.abc import Callable, Iterator
from typing import IO, Any

HEADER = struct.Struct(">I")


def command(module: str) -> list[str]:
    """The command of a helper. The current folder is no place of its modules: a stranger's may lie there."""
    return [sys.executable, "-P", "-m", module]


def pack(message: Any) -> bytes:
    """One frame."""
    data = pickle.dumps(message)
    return HEADER.pack(len(data)) + data


def unpack(source: IO[bytes]) -> Any:
    """The next frame; EOFError where there is none, or a part of one."""
    head = source.read(HEADER.size)
    if len(head) < HEADER.size:
        raise EOFError
    (length,) = HEADER.unpack(head)
    data = source.read(length)
    if len(data) < length:
        raise EOFError
    return pickle.loads(data)


def served() -> tuple[Iterator[Any], Callable[..., None]]:
    """In a helper: the messages from its standard input, and what sends one back.

    The process ends when its input does, whatever it is doing: nobody waits for the answer any more.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that it works for
    die_with_parent()
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not land between frames
    # On Windows a library that asks about its standard input while it loads would wait for the next frame.
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def listen() -> None:
        try:
            while True:
                messages.put(unpack(source))
        except (EOFError, OSError):
            os._exit(0)

    def send(*message: Any) -> None:
        try:
            sink.write(pack(message))
            sink.flush()
        except OSError:
            os._exit(0)

    threading.Thread(target=listen, daemon=True).start()
    return iter(messages.get, None), send


def die_with_parent() -> None:
    """Let the kernel end this process with its parent (Linux).

    A thread of Python's that waits for that cannot run during a long call that holds the interpreter lock.
    """
    if sys.platform == "linux":
        pr_set_pdeathsig = 1  # <sys/prctl.h>
        ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)
