"""Where arrays live besides the host: a GPU through torch, and its stream of random numbers."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from seqlaw.model.arrays import is_host
from seqlaw.model.checks import InputError, library
from seqlaw.model.randomness import generator, named

DEVICES = ("cpu", "cuda", "torch")
"""`torch` is torch on the CPU: the same code as on a card, for those who have none."""
WORTH = 2**15
"""Numbers of a sketch from which its matrices are faster on a card than on one core (docs/scale.md)."""
WORKER = "SEQLAW_WORKER"
"""The environment variable that numbers the workers of a local cluster, which take a card each."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Device:
    """A device by its name, and torch's own word for it."""

    name: str
    where: Any
    torch: Any

    @property
    def card(self) -> str:
        """What the maker calls it."""
        return str(self.torch.cuda.get_device_name(self.where)) if self.name == "cuda" else "torch on the CPU"

    def array(self, values: Any) -> Any:
        """An array of doubles here; one that is here already as it is."""
        copied = is_host(values)  # or torch on the CPU would share NumPy's memory
        return self.torch.asarray(values, dtype=self.torch.float64, device=self.where, copy=copied or None)

    def stream(self, seed: int, *names: str | int) -> Stream:
        """The random numbers of one name, as `randomness.generator` has them on the host."""
        return Stream(self, seed, *names)

    def wait(self) -> None:
        """Until all that was asked for is done, for a clock."""
        if self.name == "cuda":
            self.torch.cuda.synchronize(self.where)


class Stream:
    """The two methods of NumPy's generators that are needed, with their results on a device.

    Another stream than the host's: the same seed gives the same bits on cards of one kind, and in law the
    same everywhere. The few χ² are drawn on the host.
    """

    def __init__(self, device: Device, seed: int, *names: str | int) -> None:
        self.device = device
        self._normals = device.torch.Generator(device=device.where)
        self._normals.manual_seed(int.from_bytes(named(seed, *names)[:8], "little"))
        self._host = generator(seed, *names)

    def standard_normal(self, size: tuple[int, ...] = (), *, out: Any = None) -> Any:
        """Independent normals, of a shape or in place."""
        if out is None:
            out = self.device.torch.empty(size, dtype=self.device.torch.float64, device=self.device.where)
        return out.normal_(generator=self._normals)

    def chisquare(self, df: Any) -> Any:
        """One χ² variable for each number of degrees of freedom."""
        return self.device.array(self._host.chisquare(df))


def device_name(name: str | None) -> str | None:
    """A device's name; None for the CPU, whose tasks and answers say nothing of it."""
    if name is not None and name not in DEVICES:
        raise InputError("device", "must be cuda or cpu", name)
    return None if name == "cpu" else name


def device_of(name: str | None) -> Device | None:
    """The device of a name, or None for the CPU; one line where torch or a card is missing."""
    if device_name(name) is None:
        return None
    torch = library("torch", "gpu")
    library("array_api_compat", "gpu")
    if name == "torch":
        return Device(name="torch", where=torch.device("cpu"), torch=torch)
    return Device(name="cuda", where=torch.device("cuda", _number() % cards()), torch=torch)


def cards() -> int:
    """How many cards torch sees; an error that says what to do where there are none."""
    torch = library("torch", "gpu")
    count = int(torch.cuda.device_count()) if torch.cuda.is_available() else 0
    if not count:
        rule = "needs an NVIDIA card and a torch with CUDA that sees it (without: leave it out)"
        raise InputError("device", rule, "cuda")
    return count


def _number() -> int:
    text = os.environ.get(WORKER, "")
    return int(text) if text.isdecimal() else 0


@contextmanager
def in_memory(device: Device | None) -> Iterator[None]:
    """A context in which a device that is full is one line."""
    if device is None:
        yield
        return
    try:
        yield
    except device.torch.OutOfMemoryError:
        rule = "has too little memory for this (take a smaller M or d, or the CPU)"
        raise InputError("device", rule, device.card) from None
