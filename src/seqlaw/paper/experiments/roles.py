"""What a method is in these experiments: the rows that it gives and what it is compared with."""

from __future__ import annotations

from dataclasses import dataclass

from seqlaw.methods.ask import method_name, method_of
from seqlaw.methods.exact import SketchesOnly
from seqlaw.methods.method import Method

SMOOTH = "equivalent"
"""The method that samples nothing: every run has it for comparison."""
POPULATION = SketchesOnly.name
"""Rows of sketches without data: approximation and bias of the methods with sketches."""


@dataclass(frozen=True)
class Role:
    """The part that a method plays."""

    method: Method

    @property
    def name(self) -> str:
        """What tasks and rows know it by."""
        return POPULATION if isinstance(self.method, SketchesOnly) else method_name(self.method)

    @property
    def sketches(self) -> bool:
        """It draws sketches: a task for each, and error bars."""
        return "sketches" in self.method.draws

    @property
    def repetitions(self) -> bool:
        """It draws data sets: a task for each, and a variance that can be laid over its expectation."""
        return "repetitions" in self.method.draws

    @property
    def noisy(self) -> bool:
        """Its slopes scatter as the paper's do: a difference of the two then has the spread of two runs."""
        return self.repetitions or isinstance(self.method, SketchesOnly)

    def rows(self, quantity: str) -> str:
        """Which rows give a quantity: approximation and bias are averages over sketches and need no data."""
        return POPULATION if self.method.population and quantity != "variance" else self.name

    def needs(self, quantity: str) -> list[str]:
        """All rows that a panel of this quantity takes: a variance has its expectation's beside it."""
        return list(
            dict.fromkeys([self.rows(quantity), *[self.method.expectation] * (quantity == "variance")])
        )


def role(method: str) -> Role:
    """The part of a method, by name or import path."""
    return Role(SketchesOnly() if method == POPULATION else method_of(method))
