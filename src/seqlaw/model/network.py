"""The students beside the linear one: small sequence networks, named with their sizes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from seqlaw.model.checks import InputError, whole


class Sizes(NamedTuple):
    """Width of the hidden states, and layers."""

    hidden: int
    depth: int


NETWORKS = {"lru": Sizes(128, 1), "gru": Sizes(96, 1), "transformer": Sizes(96, 2)}
"""Each network's sizes where none are given; the linear student has none."""
LARGEST = 4096
_HEAD = 32
"""The width of an attention head, where it divides the hidden width."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """A linear recurrent unit with complex states, a GRU, or a causal transformer with rotary positions.

    >>> import seqlaw
    >>> seqlaw.Network(name="gru", hidden=32).sizes
    Sizes(hidden=32, depth=1)
    """

    name: str
    hidden: int | None = None
    depth: int | None = None

    def __post_init__(self) -> None:
        if self.name not in NETWORKS:
            raise InputError("network", f"must be one of linear, {', '.join(NETWORKS)}", self.name)
        for field, usual in NETWORKS[self.name]._asdict().items():
            given = getattr(self, field)
            most = LARGEST if field == "hidden" else 64
            vars(self)[field] = usual if given is None else whole(field, given, most=most)
        if self.name == "transformer" and self.sizes.hidden % 2:
            raise InputError(
                "hidden", "must be even for a transformer, whose positions are rotations", self.hidden
            )

    @property
    def sizes(self) -> Sizes:
        """Both, as they are."""
        return Sizes(int(self.hidden or 0), int(self.depth or 0))

    @property
    def heads(self) -> int:
        """Attention heads."""
        hidden = self.sizes.hidden
        return hidden // _HEAD if hidden % _HEAD == 0 else 1

    def parameters(self, M: int) -> int:
        """About how many numbers a student of M inputs and outputs has."""
        hidden, depth = self.sizes
        a_layer = {
            "lru": 2 * hidden * (2 * M + 1) + M * M,
            "gru": 3 * hidden * (hidden + M),
            "transformer": 12 * hidden**2,
        }
        return depth * a_layer[self.name] + 2 * hidden * M


def as_network(
    field: str, value: object, *, hidden: int | None = None, depth: int | None = None
) -> Network | None:
    """A network as it is or by its name and sizes; None for the linear student."""
    if value is None or value == "linear":
        for size, given in (("hidden", hidden), ("depth", depth)):
            if given is not None:
                raise InputError(size, "must be left out for the linear student", given)
        return None
    if isinstance(value, Network):
        return value
    if isinstance(value, str):
        return Network(name=value, hidden=hidden, depth=depth)
    raise InputError(field, f"must be one of linear, {', '.join(NETWORKS)}, or a Network", value)


def linear_only(network: Network | None) -> InputError | None:
    """The refusal of a method that knows linear students only; None for those."""
    if network is None:
        return None
    return InputError("network", "must be linear here (the trained method takes the others)", network.name)
