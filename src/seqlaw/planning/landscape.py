"""The risk of every allocation that a budget allows: what a search asks of its ground.

At fixed (M, P, L) the frozen filter's risk is approx + bias + variance₁/N, so N is as large as the budgets
allow (with the law too, but for students at the interpolation peak, which no plan is near).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

from seqlaw.planning.budget import Allocation, Box, Search


class Landscape(ABC):
    """The risk of every allocation in the box, and the least of them with one size held."""

    def __init__(self, search: Search, box: Box) -> None:
        self.search, self.box = search, box

    @abstractmethod
    def least(
        self, size: str | None = None, values: Sequence[int] = (0,), *, whole: bool = True
    ) -> list[Allocation | None]:
        """The best allocation with this size held at each of the values (None: none is feasible).

        Not `whole`: N counts as a real number of at least 1, so that what is said of the other sizes is not
        about how many sequences happen to fill the budgets.
        """

    @abstractmethod
    def scaled(self, factor: float) -> Landscape:
        """The same with every variance multiplied by one factor, an approximation for few data."""

    def closer(self, guess: Allocation, lengths: tuple[int, int]) -> Landscape:
        """The same, more accurate round a guess and for these lengths."""
        return self

    @abstractmethod
    def near(self, best: Allocation, hold: str | None = None) -> list[Allocation]:
        """This allocation and neighbours that may be as good; the accurate sums decide between them."""

    def reaches(self, size: str, value: int) -> bool:
        """Whether this size is looked at here."""
        return True

    def allocation(self, sizes: Sequence[float], risk: float) -> Allocation | None:
        """The allocation in whole numbers, one step or sequence smaller where rounding exceeds a budget."""
        M, N, P, L = (int(x) for x in sizes)
        budget = self.search.budget
        N, L = budget.in_whole(M, N, P, L)
        fewer = [(N, L), (N, L - max(1, int(1e-12 * L))), (N - max(1, int(1e-12 * N)), L)]
        fits = [(n, steps) for n, steps in fewer if steps >= self.search.least_steps]
        N, L = next((pair for pair in fits if budget.allows(M, pair[0], P, pair[1])), (0, 0))
        if N == 0:
            return None
        compute = budget.spent(M=M, N=N, P=P, L=L)
        tokens = budget.tokens_of(N, P)
        return Allocation(M=M, N=N, P=P, L=L, compute=compute, reducible=float(risk), tokens=tokens)
