"""What a rung is in these experiments: the rows that it gives and what it is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from seqlaw.methods.ask import method_name, method_of
from seqlaw.methods.exact import SketchesOnly
from seqlaw.methods.method import Method

SMOOTH = "equivalent"
"""The rung that samples nothing: every run has it for comparison."""
POPULATION = SketchesOnly.name
"""Rows of sketches without data: approximation and bias of the rungs with sketches."""


@dataclass(frozen=True)
class Role:
    """The part that a rung plays."""

    rung: Method

    @property
    def name(self) -> str:
        """What tasks and rows know it by."""
        return POPULATION if isinstance(self.rung, SketchesOnly) else method_name(self.rung)

    @property
    def sketches(self) -> bool:
        """It draws sketches: a task for each, and error bars."""
        return "sketches" in self.rung.draws

    @property
    def repetitions(self) -> bool:
        """It draws data sets: a task for each, and a variance that can be laid over its expectation."""
        return "repetitions" in self.rung.draws

    @property
    def noisy(self) -> bool:
        """Its slopes scatter as the paper's do: a difference of the two then has the spread of two runs."""
        return self.repetitions or isinstance(self.rung, SketchesOnly)

    def rows(self, quantity: str) -> str:
        """Which rows give a quantity: approximation and bias are averages over sketches and need no data."""
        return POPULATION if self.rung.population and quantity != "variance" else self.name

    def needs(self, quantity: str) -> list[str]:
        """All rows that a panel of this quantity takes: a variance has its expectation's beside it."""
        return list(dict.fromkeys([self.rows(quantity), *[self.rung.expectation] * (quantity == "variance")]))


def role(rung: str) -> Role:
    """The part of a rung, by name or import path."""
    return Role(SketchesOnly() if rung == POPULATION else method_of(rung))
