"""The finite-size optimum: whole (M, N, P, L) of least risk under the budgets, constants included.

The search uses splines of the frozen filter's risk: first over all that the budgets allow, then on closer
nodes. The finite-sample law decides between the last candidates. If it differs from the splines by more than
1 %, they are computed again with it. The flat range of a size ends where the least risk with that size fixed
is 1 % above the optimum.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from seqlaw.methods.equivalent import equivalent_risks
from seqlaw.methods.terms import Risk
from seqlaw.model.checks import InputError
from seqlaw.model.threads import one_thread
from seqlaw.planning.budget import SIZES, Allocation, Box, Search, limits
from seqlaw.planning.enumerated import Enumerated, all_triples
from seqlaw.planning.few_data import factors, polished, small, stated
from seqlaw.planning.interpolated import interpolated
from seqlaw.planning.landscape import Landscape

FLAT, TIED = 0.01, 0.001
"""The relative excess risk up to which sizes count as equally good, and up to which lengths are tied."""
_STRIDES = (0.05, 0.15, 0.4, 1.0, 2.5, 6.0, 12.0, 20.0)
_FAR = 0.05  # error of a landscape up to which one factor on its variance is enough to correct it
_CLOSE = 4e-3  # of a range's end, where the size is large: 0.06 % of the risk
_TIE = 0.02  # of an end that only says which lengths are tried
_ROUGH = 0.2  # of an end that only says where to look closer
_SHIFTS = (-0.03, -0.004, 0.004, 0.03)  # of the way between two sizes, round where the end should be
_FACTORS = {"M": (1.25, 2.5, 6.0, 15.0), "P": (2.0, 15.0, 1e3)}


@dataclass(frozen=True, kw_only=True)
class FinitePlan:
    """The best allocation with its terms, what other widths and lengths cost, and how flat it is."""

    best: Allocation
    """The choice: the least risk, or where lengths tie the one nearest the test (`TIED`)."""
    least: Allocation
    """The least risk itself."""
    risk: Risk
    isoflop: tuple[Allocation, ...]
    """The best allocation at each of several widths, under the same budgets."""
    by_length: tuple[Allocation, ...]
    """The best allocation at each of several lengths: what another P would cost."""
    flat: dict[str, tuple[int, int]]
    """The range of each size with a risk within 1 % of the least, the other sizes chosen again."""
    limits: dict[str, tuple[str | None, str | None]]
    """The limit that ends the range, if one does before 1 % is lost."""


def finite_plan(search: Search) -> FinitePlan:
    """The optimum, its profiles, and its terms from the accurate sums."""
    box = limits(search)
    with one_thread():
        ground = _landscape(search, box)
        if isinstance(ground, Enumerated):
            return _optimum(search, ground.with_law(), few=True)[0]
        found, missed = _optimum(search, ground)
        if FLAT < missed <= _FAR:  # few data: every variance times the law's factor at this optimum
            best = found.best
            [factor] = factors(search, [(best.M, best.N, best.P, best.L)]).tolist()
            found, missed = _optimum(search, ground, factor=factor)
        if missed > FLAT:  # still off: a factor for each (M, P, L), and the search again
            found, _ = _optimum(search, _landscape(search, box, few=True), few=True)
    return found


def _landscape(search: Search, box: Box, *, whole: bool = False, few: bool = False) -> Landscape:
    """All allocations where they are few, else splines over the box; `whole`: to the ends of every size.

    Of the frozen filter, or with `few` data of the law at any amount of them.
    """
    triples = all_triples(search, box)
    if triples is None:
        return interpolated(search, box, whole, few)
    return Enumerated(search, box, triples)


def _optimum(
    search: Search, ground: Landscape, *, few: bool = False, factor: float = 1.0
) -> tuple[FinitePlan, float]:
    """The optimum, and the relative error of the landscape's risk there.

    `few`: the landscape has the finite-sample law. `factor` multiplies its variance.
    """
    refine = few or factor != 1
    found = _optimum_on(search, ground.scaled(factor), refine=refine)
    if found is None:
        whole = _landscape(search, ground.box, whole=True, few=few)
        found = _optimum_on(search, whole.scaled(factor), refine=refine, complete=True)
    assert found is not None
    return found


def _optimum_on(
    search: Search, wide: Landscape, *, refine: bool, complete: bool = False
) -> tuple[FinitePlan, float] | None:
    """The optimum on a landscape and the landscape's relative error; None if a flat range leaves its nodes.

    `refine` improves the optimum by small moves under the law; a `complete` landscape reaches every size.
    """
    [first_guess] = wide.least()
    if first_guess is None:
        raise InputError("compute", "leaves no allocation under these limits", search.budget.compute)
    (low, _), (high, _) = flat_range(wide, wide, "P", first_guess, 2 * FLAT, tolerance=_ROUGH)
    close = wide.closer(first_guess, (low, high))
    least = close.least()[0] or first_guess
    ends = {size: flat_range(close, wide, size, least, FLAT) for size in SIZES}
    if not complete and any(_cut(wide, size, *ends[size]) for size in ("M", "L")):
        return None
    at_tied_length = _tied_length(close, wide, least)
    finalists = close.near(least)
    if at_tied_length is not None:
        finalists = [*close.near(at_tied_length, hold="P"), finalists[0]]
    middle = at_tied_length or least
    curves = {size: _curve(close, wide, size, middle, ends[size]) for size in ("M", "P")}
    *on_curves, guess, chosen = stated(search, [*curves["M"], *curves["P"], first_guess, least])
    error = abs(chosen.reducible / least.reducible - 1)
    if refine or small(least):
        finalists.append(polished(wide, chosen))
    # Where the spline was wrong, another allocation turns out better than the chosen one.
    finalists += [a for a in (*on_curves, guess) if a.reducible < chosen.reducible]
    risks = equivalent_risks([search.setting(a.M, a.N, a.P, a.L) for a in finalists])
    exact = [dataclasses.replace(a, reducible=r.reducible) for a, r in zip(finalists, risks, strict=True)]
    least = _thriftiest(exact)
    good = [a for a in exact if at_tied_length is not None and a.P == at_tied_length.P]
    good = [a for a in good if a.reducible <= least.reducible * (1 + TIED)]
    best = _thriftiest(good or [least])
    for size in SIZES:  # the choice among ties may lie in another piece of the range
        (bottom, _), (top, _) = ends[size]
        if not bottom <= getattr(best, size) <= top:
            more = flat_range(close, wide, size, best, FLAT)
            pairs = zip((min, max), ends[size], more, strict=True)
            low_end, high_end = (pick(one, two, key=lambda end: end[0]) for pick, one, two in pairs)
            ends[size] = low_end, high_end
    width = len(curves["M"])
    plan = FinitePlan(
        best=best,
        least=least,
        risk=risks[exact.index(best)],
        isoflop=_with(best, "M", on_curves[:width]),
        by_length=_with(best, "P", on_curves[width:]),
        flat={size: (low[0], high[0]) for size, (low, high) in ends.items()},
        limits={size: (low[1], high[1]) for size, (low, high) in ends.items()},
    )
    return plan, error


def _cut(wide: Landscape, size: str, low: End, high: End) -> bool:
    """Whether a range ends only because the landscape has no nodes beyond it."""
    return any(
        limit is None and not wide.reaches(size, round(end * (1 + 4 * _CLOSE * sign)) + sign)
        for (end, limit), sign in ((low, -1), (high, 1))
    )


def _thriftiest(choices: Sequence[Allocation]) -> Allocation:
    """The least risk; where several have it, to nine digits, the least compute."""
    least = min(choice.reducible for choice in choices)
    return min((c for c in choices if c.reducible <= least * (1 + 1e-9)), key=lambda c: c.compute)


End = tuple[int, str | None]
"""The end of a range, and the name of the budget's limit if that is what ends it."""


def flat_range(
    close: Landscape, wide: Landscape, size: str, best: Allocation, share: float, tolerance: float = _CLOSE
) -> tuple[End, End]:
    """How far a size can go each way before the least risk with it is `share` above the least of all.

    The ends are exact to the relative `tolerance`. N counts as a real number where another size is held.
    `wide` is asked where `close` does not reach.
    """
    level = best.reducible
    box = wide.box

    def excess(values: Sequence[int]) -> list[float]:
        found = least_with(close, wide, size, values, whole=size == "N")
        return [math.inf if a is None else a.reducible / level - 1 for a in found]

    sides = [_Side(getattr(best, size), edge) for edge in (box.low[size], box.high[size])]
    values = [side.strides() for side in sides]
    while any(values):
        risen = iter(excess([value for side in values for value in side]))
        for side, asked in zip(sides, values, strict=True):
            side.learn(asked, list(itertools.islice(risen, len(asked))), share)
        values = [side.next(share, tolerance) for side in sides]
    low, high = ((s.inside, None if s.outside else box.set_by[size][k]) for k, s in enumerate(sides))
    return low, high


def least_with(
    close: Landscape, wide: Landscape, size: str, values: Sequence[int], *, whole: bool = True
) -> list[Allocation | None]:
    """The best allocation with a size fixed at each value, from `close` where it has nodes, else `wide`."""
    near = [value for value in values if close.reaches(size, value)]
    far = [value for value in values if not close.reaches(size, value)]
    known = dict(zip(near, close.least(size, near, whole=whole), strict=True)) if near else {}
    known |= dict(zip(far, wide.least(size, far, whole=whole), strict=True)) if far else {}
    return [known[value] for value in values]


class _Side:
    """One side of a range: the last size within the share, the first beyond it, and their excess risks."""

    def __init__(self, here: int, edge: int) -> None:
        self.here, self.edge = here, edge
        self.inside, self.outside = here, 0
        self.below, self.above = 0.0, math.inf

    def strides(self) -> list[int]:
        """Sizes at growing distances, up to the edge."""
        reach = abs(math.log(self.edge / self.here))
        return _between(self.here, self.edge, [r for r in _STRIDES if r < reach] + [reach])

    def learn(self, values: Sequence[int], excess: Sequence[float], share: float) -> None:
        for value, lost in zip(values, excess, strict=True):
            if lost > share:
                self.outside, self.above = value, lost
                return
            self.inside, self.below = value, lost

    def next(self, share: float, close: float) -> list[int]:
        """The next sizes to try, around where a power law of the excess reaches `share`; none when done."""
        if not self.outside or abs(self.outside - self.inside) <= max(1, close * self.inside):
            return []
        near, far = (abs(math.log(size / self.here)) for size in (self.inside, self.outside))
        if near > 0 and 0 < self.below < self.above < math.inf:
            power = math.log(self.above / self.below) / math.log(far / near)
            place = (math.log(share / self.below) / power) / math.log(far / near)
        else:
            place = 0.5
        share_of_way = sorted({min(max(place + shift, 0.02), 0.98) for shift in _SHIFTS} | {0.5})
        path = (near + (far - near) * part for part in share_of_way)
        values = _between(self.here, self.outside, path)
        return [value for value in values if value not in (self.inside, self.outside)]


def _between(start: int, end: int, distances: Iterable[float]) -> list[int]:
    """Distinct whole numbers from start towards end at these distances in the logarithm, without start."""
    sign = 1 if end > start else -1
    values = []
    for distance in distances:
        value = round(start * math.exp(sign * distance))
        value = max(start + 1, min(value, end)) if sign > 0 else min(start - 1, max(value, end))
        if start != end and value not in values:
            values.append(value)
    return values


def _tied_length(close: Landscape, wide: Landscape, least: Allocation) -> Allocation | None:
    """The best allocation at the length nearest the test length, or at the shortest, among tied lengths."""
    (low, _), (high, _) = flat_range(close, wide, "P", least, TIED, tolerance=_TIE)
    if high < 2 * low:
        return None
    asked = close.search.eval_length
    spread = np.unique(np.round(np.geomspace(low, high, 12))).astype(int).tolist()
    if asked is not None:
        wanted = min(max(asked, low), high)
        spread = sorted({*spread, wanted}, key=lambda P: abs(math.log(P / wanted)))
    level = least.reducible * (1 + TIED)
    good = (a for a in least_with(close, wide, "P", spread) if a is not None and a.reducible <= level)
    return next(good, None)


def _curve(
    close: Landscape, wide: Landscape, size: str, best: Allocation, ends: Sequence[End]
) -> list[Allocation]:
    """The best allocations at multiples of the best size, at the ends of its flat range and where asked."""
    here, search, box = getattr(best, size), wide.search, wide.box
    values = {round(here * x) for f in _FACTORS[size] for x in (f, 1 / f)} | {end for end, _ in ends}
    if size == "P":  # the lengths that a reader will ask about
        asked = (search.eval_length, search.budget.max_P)
        values |= {int(P) for P in asked if P is not None and P < math.inf}
    values = {min(max(value, box.low[size]), box.high[size]) for value in values} - {here}
    return [a for a in least_with(close, wide, size, sorted(values)) if a is not None]


def _with(best: Allocation, size: str, others: Sequence[Allocation]) -> tuple[Allocation, ...]:
    """A curve with the choice among its points."""
    rest = [a for a in others if getattr(a, size) != getattr(best, size)]
    return tuple(sorted([*rest, best], key=lambda a: getattr(a, size)))
