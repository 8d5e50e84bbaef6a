"""Lengths that differ (a mixture in one training set) and lengths that change (phases of one run).

A mixture of N_k sequences of length P_k has T = Σ N_k P_k tokens, a share w_k = N_k P_k/T of each length, and
each token counts alike: whatever is an average over the tokens of one length is Σ_k w_k of those of P_k.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqlaw.model.checks import Array, InputError, items, real, whole
from seqlaw.model.teacher import LONGEST, Modes

LARGEST = 10**36
"""The largest N and finite d that are taken: beyond any use, and far from the end of floating point."""
MOST = 64
"""Different lengths of a mixture; a histogram of more is binned."""
_WHOLE = 1e-6
"""What shares may miss of 1."""
_RARE = 0.01
"""The share of the tokens that lengths too rare for one sequence may have."""
_SHOWN = 6
_THEN = " then "


@dataclass(frozen=True)
class Lengths:
    """Several lengths and their shares: of the tokens, or with `phases` of the steps, one after another.

    With phases the tokens follow the steps, so a share is one of both.

    >>> import seqlaw
    >>> mixture = seqlaw.Lengths((16, 1024), (0.7, 0.3))
    >>> str(mixture)
    '16:0.7,1024:0.3'
    """

    lengths: tuple[int, ...]
    shares: tuple[float, ...]
    phases: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.phases, (bool, np.bool_)):
            raise InputError("phases", "must be True or False", self.phases)
        field = self._field
        lengths = tuple(whole(field, P, most=LONGEST) for P in items(field, self.lengths))
        shares = tuple(real(field, share) for share in items(field, self.shares))
        if not lengths or len(lengths) != len(shares):
            raise InputError(field, "must have one share a length", f"{len(lengths)}, {len(shares)}")
        for P, share in zip(lengths, shares, strict=True):
            if share <= 0:
                rule = (
                    f"must have steps in every phase, the share of {P}"
                    if self.phases
                    else f"must have positive shares, that of {P}"
                )
                raise InputError(field, rule, share)
        total = math.fsum(shares)
        if abs(total - 1) > _WHOLE:
            raise InputError(field, "must have shares that add up to 1", float(f"{total:.6g}"))
        if not self.phases and len(set(lengths)) < len(lengths):
            raise InputError(field, "must name every length once", Counter(lengths).most_common(1)[0][0])
        if len(lengths) > MOST:
            raise InputError(field, f"must be at most {MOST} lengths (bin them)", len(lengths))
        if abs(total - 1) > 1e-12:  # else left alone, so that text and back is the same
            shares = tuple(share / total for share in shares)
        vars(self).update(lengths=lengths, shares=shares)

    @property
    def _field(self) -> str:
        return "phases" if self.phases else "lengths"

    def __str__(self) -> str:
        """`16:0.7,1024:0.3`; phases `2:0.9 then 4096:0.1`. `parse` reads it back."""
        pairs = [f"{P}:{share!r}" for P, share in self]
        return (_THEN if self.phases else ",").join(pairs)

    def __iter__(self) -> Any:
        return iter(zip(self.lengths, self.shares, strict=True))

    @property
    def words(self) -> str:
        """The same for people, shares to three digits: `2:0.9 → 4,096:0.1`, `2 + 16 equally`."""
        if len(self.lengths) > _SHOWN:
            low, high = min(self.lengths), max(self.lengths)
            return f"{len(self.lengths)} lengths, {low:,} to {high:,}, {self.mean:,.0f} on average"
        even = len(set(self.shares)) == 1
        pairs = [f"{P:,}" if even else f"{P:,}:{share:.3g}" for P, share in self]
        return (" → " if self.phases else " + ").join(pairs) + " equally" * even

    @property
    def longest(self) -> int:
        return max(self.lengths)

    @property
    def mean(self) -> float:
        """Tokens a sequence: 1/Σ w_k/P_k."""
        return 1 / math.fsum(share / P for P, share in self)

    @property
    def fewest(self) -> int:
        """The least number of sequences that has one of each length, but for those that may be left out."""
        left = _RARE if len(self.lengths) > _SHOWN else 0.0
        for each, share in sorted((self.mean * share / P, share) for P, share in self):
            left -= share
            if left <= 0:
                return max(math.ceil(0.5 / float(each)), len(self.lengths))
        raise AssertionError  # shares add up to 1

    def counted(self, N: int, *, field: str = "N") -> Counted:
        """N sequences in whole numbers of each length, and the shares that they then have.

        Of many lengths, as a histogram has, those too rare for one sequence are left out while they hold less
        than 1 % of the tokens; else they are refused.
        """
        N = whole(field, N, most=LARGEST)
        wanted = [N * self.mean * share / P for P, share in self]
        kept = [pair for pair, each in zip(self, wanted, strict=True) if each >= 0.5]
        total = math.fsum(share for _, share in kept)
        if len(kept) < len(wanted) and len(wanted) > _SHOWN and total > 1 - _RARE:
            lengths, shares = zip(*((P, share / total) for P, share in kept), strict=True)
            return replace(Lengths(lengths, shares).counted(N, field=field), given=self)
        if N < self.fewest:
            rule = f"must be at least {self.fewest} to hold a sequence of each length of {self.words}"
            raise InputError(field, rule, N)
        counts = [max(math.floor(each), 1) for each in wanted]
        if abs(left := N - sum(counts)) > len(counts):  # beyond what a float counts
            counts[counts.index(max(counts))] += left
        while (left := N - sum(counts)) != 0:  # a few at most
            gaps = [each - n for each, n in zip(wanted, counts, strict=True)]
            k = gaps.index(max(gaps)) if left > 0 else counts.index(max(counts))
            counts[k] += 1 if left > 0 else -1
        return self._with(counts)

    def batched(self, batch: int) -> Counted:
        """Sequences a step: of a mixture `batch` in all, in phases of the longest, with the same tokens."""
        if not self.phases:
            return self.counted(batch, field="batch")
        return self._with([max(1, round(batch * self.longest / P)) for P in self.lengths])

    def _with(self, counts: Sequence[int]) -> Counted:
        shares, tokens = self.shares, sum(n * P for n, P in zip(counts, self.lengths, strict=True))
        if not self.phases:
            shares = tuple(n * P / tokens for n, P in zip(counts, self.lengths, strict=True))
        return Counted(self.lengths, shares, self.phases, counts=tuple(counts), given=self)

    def steps(self, L: int) -> tuple[int, ...]:
        """The steps of each phase, which add up to L."""
        ends = [round(L * share) for share in np.cumsum(self.shares).tolist()]
        found = tuple(end - start for start, end in zip([0, *ends[:-1]], [*ends[:-1], L], strict=True))
        if min(found) < 1:
            raise InputError(
                "phases", f"must have steps in every phase, L = {L} leaves one without", self.words
            )
        return found


@dataclass(frozen=True, kw_only=True)
class Counted(Lengths):
    """Lengths with the whole number of sequences of each: in the data set, or in a step."""

    counts: tuple[int, ...]
    given: Lengths
    """The lengths with the shares that were asked for."""

    @property
    def tokens(self) -> int:
        return sum(n * P for n, P in zip(self.counts, self.lengths, strict=True))

    @property
    def mean(self) -> float:
        return self.tokens / sum(self.counts)


Length = int | Lengths
"""What a Setting calls P."""


@dataclass(frozen=True)
class Position:
    """One position of a sequence, p = 0, 1, …: the input is x_p, of covariance Σ_p, the target x_{p+1}."""

    p: int

    def __post_init__(self) -> None:
        vars(self).update(p=whole("position", self.p, least=0, most=LONGEST))


Test = Length | Position
"""Where a student is tested: a spectrum, the average H of a length's positions, or Σ_p of one."""


def parts(P: Length) -> tuple[tuple[int, float], ...]:
    """(P_k, w_k); of one length that and 1."""
    return tuple(P) if isinstance(P, Lengths) else ((P, 1.0),)


def mean_length(P: Length) -> float:
    """Tokens a sequence."""
    return P.mean if isinstance(P, Lengths) else P


def longest(P: Length) -> int:
    """The longest of the lengths."""
    return P.longest if isinstance(P, Lengths) else P


def words(P: Test) -> str:
    """A length, lengths or a position, for people."""
    if isinstance(P, Position):
        return f"position {P.p:,}"
    return P.words if isinstance(P, Lengths) else f"{P:,}"


def averaged(modes: Modes, P: Test) -> Array:
    """h = Σ_k w_k h_{P_k}; at a position σ_p."""
    if isinstance(P, Position):
        return modes.covariance(P.p)
    if not isinstance(P, Lengths):
        return modes.averaged(P)
    if P.phases:  # no method but that of phases may take them, by whatever door they came
        raise InputError("phases", "must be left out here", P.words)
    return np.asarray(np.array(P.shares) @ modes.averaged(np.array(P.lengths, dtype=np.float64)))


def averages(modes: Modes, lengths: Sequence[Test]) -> Array:
    """`averaged` of each, (len(lengths), d)."""
    if all(isinstance(P, (int, float)) for P in lengths):
        return modes.averaged(np.array(lengths, dtype=np.float64))
    return np.stack([averaged(modes, P) for P in lengths])


def one_or_many(P: object) -> Length:
    """A length as it is, several as they are; one given as a mixture or as one phase is that length."""
    if not isinstance(P, Lengths):
        return whole("P", P, most=LONGEST)
    return P.lengths[0] if len(P.lengths) == 1 else P


def parse(text: str, *, phases: bool = False) -> Lengths:
    """`16:0.7,1024:0.3`: lengths with their shares; `2:0.9 then 4096:0.1` for phases."""
    phases = phases or _THEN in text
    field = "phases" if phases else "lengths"
    pairs = [pair.partition(":") for pair in text.replace(_THEN, ",").split(",")]
    for P, colon, share in pairs:
        if not colon or not P.strip() or not share.strip():
            raise InputError(field, "must be written 16:0.7,1024:0.3 (length:share)", text)
    lengths = [whole(field, real(field, P)) for P, _, _ in pairs]
    return Lengths(tuple(lengths), tuple(real(field, share) for *_, share in pairs), phases)


def as_lengths(field: str, value: object) -> Lengths | None:
    """Several lengths as they are, or as text (`parse`); None as it is; else an error."""
    if value is None or isinstance(value, Lengths):
        return value
    if isinstance(value, str):
        return parse(value)
    raise InputError(field, "must be Lengths, or text such as 16:0.7,1024:0.3", value)


def documents(counts: Mapping[int, int], window: int | None = None) -> Lengths:
    """The mixture of documents of these lengths, cut to a context window where one is given.

    A document of ℓ tokens is ⌊ℓ/W⌋ sequences of W and one of the rest. More than 64 lengths are binned
    evenly in the logarithm; a bin counts at its mean length.
    """
    found = Counter[int]()
    for length, n in counts.items():
        whole_ones, rest = divmod(whole("lengths", length), window) if window else (0, int(length))
        for P, times in ((window or 0, whole_ones), (rest, 1)):
            if P and times and n:
                found[P] += times * _count(n)
    if not found:
        raise InputError("lengths", "must hold at least one sequence", dict(counts))
    low, high = min(found), max(found)
    fold = math.log(high / low) / (MOST - 1)
    sequences, tokens, shares = Counter[int](), Counter[int](), dict[int, float]()
    for P, n in found.items():
        place = P
        if len(found) > MOST:
            place = MOST if P == high else int(math.log(P / low) / fold)
        sequences[place] += n
        tokens[place] += n * P
    for place in sorted(tokens):
        P = round(tokens[place] / sequences[place]) if len(found) > MOST else place
        shares[P] = shares.get(P, 0.0) + tokens[place] / tokens.total()
    return Lengths(tuple(shares), tuple(shares.values()))


def _count(n: Any) -> int:
    return whole("lengths", n, least=0)


def histogram(rows: Iterable[Sequence[float]]) -> dict[int, int]:
    """Lengths with counts from rows of one number (a length) or two (a length and how often)."""
    found: dict[int, int] = {}
    for row in rows:
        if len(row) not in (1, 2) or any(math.isnan(number) for number in row):
            raise InputError(
                "lengths", "must have a length, or a length and a count, in every line", list(row)
            )
        P = whole("lengths", row[0], most=LONGEST)
        found[P] = found.get(P, 0) + (_count(row[1]) if len(row) == 2 else 1)
    return found
