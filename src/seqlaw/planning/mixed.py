"""A budget for sequences of a mixture of lengths: the search chooses M, N and L, the mixture is given.

The search still has a P, since its boxes have four sizes. It is held at the mean length, and costs and tokens
are computed from the mixture instead.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

from seqlaw.model.checks import InputError
from seqlaw.model.formula import Formula
from seqlaw.model.lengths import Length, Lengths
from seqlaw.planning.budget import Budget

_SPENT = 0.98  # of the steps that the compute allows: from there on L counts as spending all compute


@dataclass(frozen=True)
class _Averaged(Formula):
    """The cost of N sequences of a mixture: Σ_k (N_k/N) cost(P_k), exact for the part that is linear in N.

    The part that does not grow with N is averaged in the same way.
    """

    lengths: Lengths | None = None

    def parts(self, values: Any) -> tuple[Any, Any]:
        assert self.lengths is not None
        by_length = [
            (share * self.lengths.mean / P, super(_Averaged, self).parts({**values, "P": P}))
            for P, share in self.lengths
        ]
        constant, slope = (sum(weight * part[k] for weight, part in by_length) for k in (0, 1))
        return constant, slope


@dataclass(frozen=True, kw_only=True)
class MixedBudget(Budget):
    """A Budget for sequences of a mixture of lengths."""

    lengths: Lengths

    def __post_init__(self) -> None:
        """The ceilings are those of a Budget, which has checked them."""

    @cached_property
    def formula(self) -> Formula:
        plain = super().formula
        return _Averaged(plain.text, plain.names, plain.linear, plain.field, self.lengths)

    @property
    def fewest(self) -> int:
        return self.lengths.fewest

    def trained_on(self, P: int) -> Length:
        return self.lengths

    def tokens_each(self, P: Any) -> Any:
        return self.lengths.mean

    def tokens_of(self, N: int, P: int) -> int:
        return self.lengths.counted(N).tokens

    def _counted(self, N: int) -> MixedBudget:
        return replace(self, lengths=self.lengths.counted(N))

    def spent(self, M: int, N: int, P: int, L: int) -> float:
        return float(self._counted(N).formula(M=M, N=N, P=P, L=L))

    def in_whole(self, M: int, N: int, P: int, L: int) -> tuple[int, int]:
        """N lowered until whole sequences of each length fit the tokens, and the steps compute allows."""
        N = min(N, int(self.tokens / self.lengths.mean))
        while N > self.fewest and (excess := self.tokens_of(N, P) - self.tokens) > 0:
            N -= max(1, int(excess / self.lengths.mean))
        if N < self.fewest:
            return 0, L
        most = int(self._counted(N).most_steps(M, P, N))
        spends = L >= _SPENT * self.most_steps(M, P, N)
        return N, most if spends else min(L, most)


def mixed(budget: Budget, lengths: Lengths) -> Budget:
    """The budget for sequences of a mixture; a mixture of one length is a Budget with P fixed."""
    if not isinstance(lengths, Lengths) or lengths.phases:
        raise InputError("lengths", "must be a mixture of lengths", getattr(lengths, "words", lengths))
    ceilings: dict[str, Any] = {field.name: getattr(budget, field.name) for field in fields(Budget)}
    P = lengths.lengths[0] if len(lengths.lengths) == 1 else max(2, round(lengths.mean))
    ceilings |= {"min_P": P, "max_P": P}
    if len(lengths.lengths) == 1:
        return Budget(**ceilings)
    found = MixedBudget(**ceilings, lengths=lengths)
    if found.tokens_of(found.fewest, P) > budget.tokens:
        rule = f"must hold {found.fewest} sequences, the fewest of {lengths.words}"
        raise InputError("tokens", rule, budget.tokens)
    return found
