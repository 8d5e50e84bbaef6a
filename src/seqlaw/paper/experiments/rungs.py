"""What a rung is in these experiments: the rows that it gives, what it is compared with, and its words.

Everything in the paper's room that depends on the name of a rung stands here. A worker runs none of it.
"""

from __future__ import annotations

from dataclasses import dataclass

SMOOTH = "equivalent"
"""The rung that samples nothing: every run has it for comparison."""
POPULATION = "population"
"""Rows of sketches without data, not a rung to ask for: approximation and bias of the rungs with sketches."""

Dashes = tuple[int, tuple[float, ...]]


@dataclass(frozen=True, kw_only=True)
class Role:
    """The part that a rung plays; the defaults are those of a rung that nobody has described."""

    name: str
    sketches: bool = False
    """It draws sketches: a task for each, and error bars."""
    repetitions: bool = False
    """It draws data sets: a task for each, and a variance that can be laid over its expectation."""
    noisy: bool = False
    """Its slopes scatter as the paper's do: a difference of the two then has the spread of two runs."""
    expectation: str = SMOOTH
    """The rung whose rows are the mean of this one's, and carry the paper's finite-filter guide."""
    opening: str = ""
    """A sentence about all numbers of a page."""
    solid: str = ""
    """The solid lines of the figure, in its caption and in its key."""
    key: str = ""
    dashes: Dashes = (0, (2, 1, 2, 3))
    """Laid over the figure of another rung, in the colour of the curve."""

    def rows(self, quantity: str) -> str:
        """Which rows give a quantity: approximation and bias are averages over sketches and need no data."""
        return POPULATION if self.sketches and quantity != "variance" else self.name

    def needs(self, quantity: str) -> list[str]:
        """All rows that a panel of this quantity takes: a variance has its expectation's beside it."""
        return list(dict.fromkeys([self.rows(quantity), *[self.expectation] * (quantity == "variance")]))


_ROLES = (
    Role(
        name="sampled",
        sketches=True,
        repetitions=True,
        noisy=True,
        expectation="exact",
        opening="Variances come from sampled data sets, approximation and bias from sampled sketches.",
        solid="Solid: measured, averaged over the sketches.",
        key="measured, mean over sketches",
        dashes=(0, (1, 1)),
    ),
    Role(
        name="exact",
        sketches=True,
        expectation="exact",
        opening="No trajectory was sampled: variances are expectations in closed form for each sketch.",
        solid="Solid: averaged over the sketches, and in closed form over the trajectories.",
        key="exact rung, mean over sketches",
        dashes=(0, (9, 2.5)),
    ),
    Role(
        name="equivalent",
        opening="Nothing was sampled: every number is a deterministic equivalent.",
        solid="Solid: deterministic equivalent.",
        key="equivalent rung, nothing sampled",
        dashes=(0, (5, 1.5, 1, 1.5)),
    ),
    Role(name=POPULATION, sketches=True, noisy=True),
)


def role(rung: str) -> Role:
    """The part of a rung; one that is not in the table has rows of its own for every panel."""
    return next((one for one in _ROLES if one.name == rung), None) or Role(
        name=rung,
        opening=f"Every number is the {rung} rung's.",
        solid=f"Solid: {rung} rung.",
        key=f"{rung} rung",
    )
