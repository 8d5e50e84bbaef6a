"""Flags: what a reader must know beside a number, as records. Words are made in `answers.words` alone."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

ASSUMPTIONS = ("assumption-1", "assumption-2", "assumption-3")
"""The codes of what the theorem assumes and a setting breaks."""


@dataclass(frozen=True, kw_only=True)
class Where:
    """The points of a curve that a flag is about: their values along one size, of how many points."""

    axis: str
    places: tuple[float, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Flag:
    """A code, the numbers that its sentence needs, and where on a curve it holds (None: everywhere)."""

    code: str
    numbers: tuple[tuple[str, Any], ...] = ()
    where: Where | None = None

    def __getitem__(self, name: str) -> Any:
        return dict(self.numbers)[name]

    @property
    def kind(self) -> tuple[Any, ...]:
        """What makes two flags one on a curve: assumptions by their numbers too, others carry the point's."""
        return (self.code, self.numbers) if self.code in ASSUMPTIONS else (self.code,)

    def __str__(self) -> str:
        numbers = ", ".join(f"{name}={value}" for name, value in self.numbers)
        return f"{self.code}({numbers})"


def flag(code: str, **numbers: Any) -> Flag:
    """`flag("saturated", saturation=3.2)`."""
    return Flag(code=code, numbers=tuple(numbers.items()))


_BADNESS: dict[str, Callable[[Flag], float]] = {
    "interpolation-peak": lambda one: float(one["error"]),
    "saturated": lambda one: float(one["saturation"]),
    "frozen-filter": lambda one: -float(one["tokens"]),
    "tokens-left-over": lambda one: -float(one["used"]),
    "untrained": lambda one: -float(one["trained"]),
    "diverges": lambda one: float(one["gamma"] / one["gamma_max"]),
    "mean-not-median": lambda one: float(one["gamma"] / one["gamma_max"]),
}
"""How bad a flag is, by its code: of many points the worst one's are said, of other codes the first's."""


_SPANS = {"safeguard": "gamma", "optimizer-step": "gamma", "best-step": "gamma"}
"""Numbers that each point has its own of: of many points the range is kept, as `span`."""


def merge_flags(lists: Sequence[Iterable[Flag]], axis: str, values: Sequence[float]) -> tuple[Flag, ...]:
    """The flags of many points, one a kind: the worst of each, and at which values of the axis."""
    worst: dict[tuple[Any, ...], Flag] = {}
    spans: dict[tuple[Any, ...], list[Any]] = {}
    places: dict[tuple[Any, ...], list[float]] = {}
    for value, flags in zip(values, lists, strict=True):
        for kind, one in {one.kind: one for one in flags}.items():
            worst[kind] = max(worst.get(kind, one), one, key=_BADNESS.get(one.code, _alike))
            places.setdefault(kind, []).append(value)
            spans.setdefault(kind, []).append(dict(one.numbers).get(_SPANS.get(one.code, "")))
    for kind, found in spans.items():
        if None not in found:
            worst[kind] = replace(
                worst[kind], numbers=(*worst[kind].numbers, ("span", (min(found), max(found))))
            )
    return tuple(
        one
        if len(places[kind]) == len(values)
        else replace(one, where=Where(axis=axis, places=tuple(places[kind]), values=tuple(values)))
        for kind, one in worst.items()
    )


def _alike(one: Flag) -> float:
    return 0.0
