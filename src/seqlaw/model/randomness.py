"""Named randomness: a generator is a function of what it is for, never of what was drawn before."""

from __future__ import annotations

import hashlib
import json

import numpy as np

from seqlaw.model.checks import whole


def named(seed: int, *names: str | int) -> bytes:
    """256 bits that are a seed's and a name's own."""
    key = json.dumps([whole("seed", seed, least=0), *names], separators=(",", ":"))
    return hashlib.sha256(key.encode()).digest()


def generator(seed: int, *names: str | int) -> np.random.Generator:
    """The generator of one stream, e.g. `generator(0, "sketch", M, d, k)`.

    Streams of different names are independent and do not depend on the number of workers, on the
    order of the tasks, or on which other tasks there are.
    """
    return np.random.Generator(np.random.PCG64(int.from_bytes(named(seed, *names), "little")))
