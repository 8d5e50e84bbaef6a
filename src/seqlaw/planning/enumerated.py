"""All allocations, where they are few."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from copy import copy

import numpy as np

from seqlaw.methods.equivalent import equivalent_risks
from seqlaw.planning.budget import Allocation, Box, Search
from seqlaw.planning.few_data import factors
from seqlaw.planning.landscape import Landscape

_FEW = 3000  # allocations that are simply all looked at
_LOWEST = 0.7  # of the frozen filter's risk, that the law's was ever seen at


class Enumerated(Landscape):
    """All allocations, where they are few; N is then always whole."""

    def __init__(self, search: Search, box: Box, triples: list[tuple[int, int, int]]) -> None:
        super().__init__(search, box)
        self.M, self.P, self.L = np.array(triples, dtype=float).T
        self.most = np.floor(search.budget.most_sequences(self.M, self.P, self.L))
        # A mixture has the shares of its whole numbers: of the N that is asked about.
        counts = (
            np.maximum(self.most, search.budget.fewest) if search.budget.fewest > 1 else np.ones(len(triples))
        )
        settings = [search.setting(M, int(N), P, L) for (M, P, L), N in zip(triples, counts, strict=True)]
        risks = equivalent_risks(settings, quick=True, frozen=True)
        self.fixed = np.array([risk.approx + risk.bias for risk in risks])
        self.variance = counts * np.array([risk.variance for risk in risks])

    def with_law(self) -> Enumerated:
        """With the finite-sample law where that can be the least: it lowers a risk by 30 % or less."""
        sizes = [
            (int(M), max(int(N), self.search.budget.fewest), int(P), int(L))
            for M, N, P, L in zip(self.M, self.most, self.P, self.L, strict=True)
        ]
        risk = np.where(self.most >= 1, self.fixed + self.variance / np.maximum(self.most, 1), np.inf)
        best = int(np.argmin(risk))
        known = self.fixed[best] + factors(self.search, [sizes[best]])[0] * (risk[best] - self.fixed[best])
        worth = np.flatnonzero(risk <= known / _LOWEST)
        found = copy(self)
        found.variance = self.variance.copy()
        found.variance[worth] = self.variance[worth] * factors(self.search, [sizes[k] for k in worth])
        return found

    def least(
        self, size: str | None = None, values: Sequence[int] = (0,), *, whole: bool = True
    ) -> list[Allocation | None]:
        return [next(iter(self._ranked(size, value)), None) for value in values]

    def scaled(self, factor: float) -> Landscape:
        found = copy(self)
        found.variance = factor * self.variance
        return found

    def near(self, best: Allocation, hold: str | None = None) -> list[Allocation]:
        return list(itertools.islice(self._ranked(hold, getattr(best, hold) if hold else 0), 12))

    def _ranked(self, size: str | None, value: int) -> Iterable[Allocation]:
        """The best first."""
        N = np.where(value <= self.most, value, 0) if size == "N" else self.most
        held = N >= 1
        if size in ("M", "P", "L"):
            held &= getattr(self, size) == value
        risk = np.where(held, self.fixed + self.variance / np.maximum(N, 1), np.inf)
        for k in np.argsort(risk, kind="stable")[: held.sum()]:
            found = self.allocation((self.M[k], N[k], self.P[k], self.L[k]), risk[k])
            if found is not None:
                yield found


def all_triples(search: Search, box: Box) -> list[tuple[int, int, int]] | None:
    """Every (M, P, L) at which at least one sequence fits the budgets; None if they are many."""
    triples: list[tuple[int, int, int]] = []
    for M in range(1, box.high["M"] + 1):
        for P in range(box.low["P"], box.high["P"] + 1):
            most = int(search.budget.most_steps(M, P, search.budget.fewest))
            if most < box.low["L"]:
                break  # nor is a longer one within reach
            triples += [(M, P, L) for L in range(box.low["L"], min(most, _FEW + box.low["L"]) + 1)]
            if len(triples) > _FEW:
                return None
    return triples
