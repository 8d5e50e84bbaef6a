"""The search for the best one pass: the same tables as for the full batch, of the risk at the best step.

In one pass the tokens are b·P·L. For given (M, P, L) the batch b is as large as the budgets allow; it takes
the place of N in the full-batch search. The risk along M has a kink at the widest student that can see all
tokens, so each side of the kink has a table of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from seqlaw.methods import accuracy
from seqlaw.methods.one_pass.quick import tuned_surface
from seqlaw.methods.spectral_sum import sum_rule
from seqlaw.model.checks import Array
from seqlaw.planning.budget import Allocation, Box, Budget, Search, limits
from seqlaw.planning.interpolated import Interpolated
from seqlaw.planning.landscape import Landscape
from seqlaw.planning.nodes import length_nodes, spaced, step_counts, width_nodes

_COARSE, _WIDE, _CLOSE = (2.6, 2.6, 2.0), (1.2, 2.0, 0.9), (0.35, 0.5, 0.5)
"""Of M, P and L: e-folds from node to node, over all sizes, over those of interest and round the best."""
_REACH = {
    _WIDE: ((4.0, 2.6), (40.0, 40.0), (7.0, 4.0)),
    _CLOSE: ((0.7, 0.7), (1.0, 1.0), (1.0, 1.0)),
}
"""How many e-folds nodes go below and above the best so far. Far lengths take narrow students, few steps."""


class Run(NamedTuple):
    """One way to spend the budget, at its best step."""

    M: int
    P: int
    batch: int
    L: int
    gamma: float
    reducible: float


@dataclass(frozen=True, kw_only=True)
class PassBudget(Budget):
    """The ceilings for one pass, N being the batch: tokens N·P·L, sequences N·L."""

    sequences: float

    def __post_init__(self) -> None:
        """The ceilings are those of a Budget, which has checked them."""

    def most_sequences(self, M: Any, P: Any, L: Any) -> Array:
        room = np.minimum(self.tokens / (P * np.asarray(L, dtype=float)), self.sequences / L)
        return np.asarray(np.minimum(super().most_sequences(M, P, L), room * (1 + 1e-13)))

    def most_steps(self, M: Any, P: Any, N: Any) -> Array:
        room = np.minimum(self.tokens / (np.asarray(P, dtype=float) * N), self.sequences / N)
        return np.asarray(np.minimum(super().most_steps(M, P, N), np.floor(room * (1 + 1e-13))))

    def allows(self, M: int, N: int, P: int, L: int) -> bool:
        return super().allows(M, N, P, L) and N * P * L <= self.tokens and N * L <= self.sequences


def pass_search(search: Search) -> Search:
    """The same search with the batch in the place of N."""
    budget, least = search.budget, search.least_steps
    given: dict[str, Any] = {field.name: getattr(budget, field.name) for field in fields(Budget)}
    given["max_L"] = min(budget.max_L, budget.tokens // budget.shortest, budget.max_N)
    given["max_P"] = min(budget.max_P, budget.tokens // least)
    given["max_M"] = min(budget.max_M, 10**6)
    return replace(search, budget=PassBudget(**given | {"max_N": math.inf}, sequences=budget.max_N))


class Tuned(Interpolated):
    """A spline of the log risk, which has N in it already."""

    def risk(self, M: Array, P: Array, L: Array, N: Array) -> Array:
        return np.where(N >= 1, np.exp(self.logs_at(M, P, L)[..., 0]), np.inf)

    def at_nodes(self, N: int | None = None, least: float = 1.0) -> Array:
        return self.fixed

    def holds(self, M: int) -> bool:
        """Whether a width lies between its nodes."""
        return bool(self.nodes["M"][0] <= M <= self.nodes["M"][-1])

    def _feasible(self, logs: Array, held: dict[str, Array]) -> tuple[Array, Array, Array, Array]:
        """Allocations that spend the whole budget: for each batch the steps that are left."""
        M, N, P, L = super()._feasible(logs, held)
        if "N" not in held:
            return M, N, P, L
        batch = held["N"][:, None] + 0 * M
        L = self.search.budget.most_steps(M, P, batch)
        return M, np.where(L >= self.box.low["L"], batch, 0), P, np.maximum(L, self.box.low["L"])


class Passes(Landscape):
    """The tables on both sides of the kink."""

    def __init__(self, search: Search, box: Box, nodes: dict[str, Array]) -> None:
        super().__init__(search, box)
        budget = search.budget
        kink = float(min(max(math.isqrt(int(budget.compute / budget.tokens)), 1), box.high["M"]))
        widths, (low, high) = nodes["M"], (nodes["M"][0], nodes["M"][-1])
        if low < kink < high:
            widths = np.union1d(widths, [kink])
        sides = [widths[widths <= kink], widths[widths >= kink]] if low < kink < high else [widths]
        self.nodes = nodes | {"M": widths}
        M, P = (x.ravel() for x in np.meshgrid(widths, nodes["P"], indexing="ij"))
        room = budget.most_sequences(M[:, None], P[:, None], nodes["L"])
        found = _surface(search, M, P, nodes["L"], room)
        shape = (widths.size, nodes["P"].size, nodes["L"].size)
        risk = found[0].reshape(shape)
        feasible = np.where(room.reshape(shape) >= 1, risk, np.inf)
        self.tables = []
        for side in sides:
            at = np.isin(widths, side)
            table = Tuned(search, box, self.nodes | {"M": side}, risk[at], risk[at])
            table.node_risks = feasible[at]
            self.tables.append(table)

    def least(
        self, size: str | None = None, values: Sequence[int] = (0,), *, whole: bool = True
    ) -> list[Allocation | None]:
        found: list[list[Allocation | None]] = []
        for table in self.tables:
            # A width is looked up on its own side of the kink alone: beyond its nodes a table knows nothing.
            known = [value for value in values if size != "M" or table.holds(value)]
            rows = dict(zip(known, table.least(size, known, whole=whole), strict=True)) if known else {}
            found.append([rows.get(value) for value in values])
        return self._best(found)

    def least_batch(self, batches: Sequence[int], P: int) -> list[Allocation | None]:
        """The best with this batch and length."""
        held = {"N": np.array(batches, dtype=float), "P": np.full(len(batches), float(P))}
        found = []
        for table in self.tables:
            centre = np.array([table._best_node("P", P)] * len(batches))
            rows = table._descend(held, centre)
            found.append([table.allocation(row[:4], row[4]) if np.isfinite(row[4]) else None for row in rows])
        return self._best(found)

    def _best(self, found: Sequence[Sequence[Allocation | None]]) -> list[Allocation | None]:
        every = [[one for one in column if one is not None] for column in zip(*found, strict=True)]
        return [min(column, key=lambda one: one.reducible) if column else None for column in every]

    def scaled(self, factor: float) -> Landscape:
        return self

    def near(self, best: Allocation, hold: str | None = None) -> list[Allocation]:
        return [best]

    def covers(self, one: Allocation) -> bool:
        """Whether width and steps are well within the nodes, or where the budgets end: not extrapolated."""
        sizes = {"M": one.M, "L": one.L}
        return all(
            value > self.nodes[size][0] or self.nodes[size][0] <= self.box.low[size]
            for size, value in sizes.items()
        )

    def reaches(self, size: str, value: int) -> bool:
        return size not in self.nodes or self.nodes[size][0] <= value <= self.nodes[size][-1]


def runs_of(search: Search, found: Sequence[Allocation | None]) -> list[Run]:
    """The runs with their best steps and risks computed at their sizes, without interpolation."""
    rows = [one for one in found if one is not None]
    if not rows:
        return []
    M, P, batch, L = np.array([(one.M, one.P, one.N, one.L) for one in rows], dtype=float).T
    steps = np.unique(L)
    only = np.where(L[:, None] == steps, batch[:, None], 0.0)
    risk, step = _surface(search, M, P, steps, only)
    at = np.arange(len(rows)), np.searchsorted(steps, L)
    known = zip(rows, step[at].tolist(), risk[at].tolist(), strict=True)
    return [Run(one.M, one.P, one.N, one.L, gamma, value) for one, gamma, value in known]


def _surface(search: Search, M: Array, P: Array, steps: Array, batch: Array) -> tuple[Array, Array]:
    setting = search.setting(1, 1, int(P.min()), int(steps.min()))
    rule = sum_rule(setting, accuracy.search.double, widest=float(M.max()))
    return tuned_surface(rule, M, P, steps, search.schedule, batch, search.eval_length)


def wide_and_close(search: Search) -> tuple[Passes, Passes, Allocation] | None:
    """Tables over the region of interest and around its best, and that best; None if nothing is feasible."""
    box = limits(search)
    guess: Allocation | None = None
    tables: list[Passes] = []
    for folds in (_COARSE, _WIDE, _CLOSE):
        tables.append(Passes(search, box, _nodes(search, box, folds, guess)))
        [found] = tables[-1].least()
        if found is None:
            return None
        guess = found
    assert guess is not None
    return tables[1], tables[2], guess


def _nodes(
    search: Search, box: Box, folds: tuple[float, float, float], guess: Allocation | None
) -> dict[str, Array]:
    low, high = dict(box.low), dict(box.high)
    if guess is not None:
        for size, (below, above) in zip("MPL", _REACH[folds], strict=True):
            here = getattr(guess, size)
            low[size] = max(low[size], math.floor(here * math.exp(-below)))
            high[size] = min(high[size], math.ceil(here * math.exp(above)))
    M, P, L = folds
    if folds is _WIDE:
        low["L"] = max(box.low["L"], min(low["L"], int(high["L"] * math.exp(-9))))
    return {
        "M": width_nodes(search, low["M"], high["M"], M),
        "P": length_nodes(low["P"], high["P"], P, near=min(P, 0.9)),
        "L": step_counts(search, low["L"], high["L"], L),
    } | ({"P": spaced(low["P"], high["P"], P)} if folds is _COARSE else {})
