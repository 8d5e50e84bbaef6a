"""Splines of the risk over all that a budget allows, and the least of it with one size held.

approx + bias and the variance of one trajectory are smooth in (log M, log P, log L), and for each (M, P) all
L come from one solve (`methods.rays`): they are tabulated on a few nodes and interpolated by SciPy's
tensor-product splines.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from seqlaw.methods import accuracy
from seqlaw.methods.rays import surface
from seqlaw.methods.spectral_sum import sum_rule
from seqlaw.model.checks import Array
from seqlaw.planning.budget import SIZES, Allocation, Box, Search
from seqlaw.planning.few_data import factors_on
from seqlaw.planning.landscape import Landscape
from seqlaw.planning.nodes import (
    coordinate,
    joined,
    length_nodes,
    spaced,
    spread,
    step_counts,
    width_at,
    width_nodes,
)

_AXES = ("M", "P", "L")
_MANY_SEQUENCES = 2000  # above which rounding N to whole sequences does not show
_FINALISTS, _CLOSE_CALL = 2, 5e-4  # how many are told apart by the accurate sums, and within what
_GRIDS = {0: (1, 0.1), 1: (9, 0.25), 2: (7, 0.33), 3: (5, 0.45)}
"""Points along each of so many free sizes, and how much finer the next grid is."""
_FINEST = np.array([0.03, 0.075, 0.06])  # grid, in log M, log P, log L: 1e-5 of the risk
_TINY = 1e-300


class Interpolated(Landscape):
    """Splines of log(approx + bias) and log(variance of one trajectory) in (log M, log P, log L)."""

    def __init__(
        self,
        search: Search,
        box: Box,
        nodes: dict[str, Array],
        fixed: Array,
        variance: Array,
        *,
        few: bool = False,
        factor: float = 1.0,
    ) -> None:
        super().__init__(search, box)
        self.few, self.factor = few, factor
        from scipy.interpolate import NdBSpline, make_interp_spline  # slow to import

        self.nodes, self.fixed, self.variance = nodes, fixed, variance
        self.logs = {axis: np.log(nodes[axis]) for axis in _AXES}
        coefficients = np.log(np.maximum(np.stack([fixed, variance], axis=-1), _TINY))
        knots, degrees = [], []
        for place, axis in enumerate(_AXES):
            x = coordinate(axis, nodes[axis], search.widest)
            if x.size == 1:  # a size without a choice
                x, coefficients = np.append(x, x + 1), np.repeat(coefficients, 2, axis=place)
            degree = min(3, x.size - 1)
            along = make_interp_spline(x, np.moveaxis(coefficients, place, 0), k=degree)
            coefficients = np.moveaxis(along.c, 0, place)
            knots.append(along.t)
            degrees.append(degree)
        self.spline = NdBSpline(tuple(knots), coefficients, k=tuple(degrees))

    @cached_property
    def _ends(self) -> dict[str, tuple[float, float]]:
        places = {axis: coordinate(axis, self.nodes[axis], self.search.widest) for axis in _AXES}
        return {axis: (float(x[0]), float(x[-1])) for axis, x in places.items()}

    def logs_at(self, M: Array, P: Array, L: Array) -> Array:
        """The logarithms at these sizes, (…, 2); those of the nearest node outside the nodes."""
        wide = self.search.widest
        where = [
            np.clip(coordinate(axis, x, wide), *self._ends[axis])
            for axis, x in zip(_AXES, (M, P, L), strict=True)
        ]
        # Between a term of 1e-300 and its neighbours a spline may swing anywhere: large is enough to say.
        return np.asarray(np.minimum(self.spline(np.stack(where, axis=-1)), 300.0))

    def risk(self, M: Array, P: Array, L: Array, N: Array) -> Array:
        """Interpolated; infinite where N < 1, and outside the nodes."""
        fixed, variance = np.moveaxis(np.exp(self.logs_at(M, P, L)), -1, 0)
        known = N >= self.search.budget.fewest
        for axis, x in zip(_AXES, (M, P, L), strict=True):
            known &= (x >= self.nodes[axis][0]) & (x <= self.nodes[axis][-1])
        return np.where(known, fixed + variance / np.maximum(N, 1), np.inf)

    def least(
        self, size: str | None = None, values: Sequence[int] = (0,), *, whole: bool = True
    ) -> list[Allocation | None]:
        held = {} if size is None else {size: np.array(values, dtype=float)}
        rows = self._descend(held, np.array([self._best_node(size, value) for value in values]))
        if whole and size != "N":
            rows = self._whole(rows, held)
        return [self.allocation(row[:4], row[4]) if np.isfinite(row[4]) else None for row in rows]

    def _whole(self, rows: Array, held: dict[str, Array]) -> Array:
        """The best allocation with N rounded down or up to a whole number."""
        counts: list[int] = []
        origin: list[int] = []
        for k, N in enumerate(rows[:, 1]):
            if np.isfinite(rows[k, 4]):
                below = math.floor(N)
                few = {1, *range(max(1, below - 1), below + 3)} if N < 8 else {below, below + 1}
                counts += sorted(few) if N < _MANY_SEQUENCES else [below]
                origin += [k] * (len(counts) - len(origin))
        if not counts:
            return rows
        found = self._descend(
            {size: values[origin] for size, values in held.items()} | {"N": np.array(counts, dtype=float)},
            np.log(rows[origin][:, [0, 2, 3]]),
        )
        best = np.full_like(rows, np.inf)
        for k, row in zip(origin, found, strict=True):
            if row[4] < best[k, 4]:
                best[k] = row
        return best

    def _descend(self, held: dict[str, Array], centre: Array) -> Array:
        """Ever finer grids of whole M, P, L round the best so far: rows of M, N, P, L and the risk."""
        wide = np.array([np.diff(self.logs[axis]).max(initial=0.1) for axis in _AXES])
        free = np.array([axis not in held for axis in _AXES])
        points, shrink = _GRIDS[int(free.sum())]
        finest = _FINEST if held.keys() - {"N"} else _FINEST / 12  # the optimum itself
        best = np.full((centre.shape[0], 5), np.inf)
        rows = np.arange(centre.shape[0])
        while True:
            steps = [np.linspace(-w, w, points if f else 1) for w, f in zip(wide, free, strict=True)]
            grid = np.stack(np.meshgrid(*steps, indexing="ij"), axis=-1).reshape(1, -1, 3)
            M, N, P, L = sizes = self._feasible(centre[:, None, :] + grid, held)
            risks = self.risk(M, P, L, N)
            first = np.argmin(risks, axis=1)
            found = np.stack([*(x[rows, first] for x in sizes), risks[rows, first]], axis=1)
            best = np.where((found[:, 4] < best[:, 4])[:, None], found, best)
            if np.all(wide[free] < finest[free]):
                return best
            known = np.isfinite(best[:, 4])
            centre[known] = np.log(best[known][:, [0, 2, 3]])
            wide = wide * shrink

    def _feasible(self, logs: Array, held: dict[str, Array]) -> tuple[Array, Array, Array, Array]:
        """M, N, P, L at each of these places, whole but for N, the steps cut to what the compute allows."""
        budget, box = self.search.budget, self.box
        M, P, L = (
            held[axis][:, None] + 0 * logs[..., k]  # a large one would not survive its logarithm
            if axis in held
            else np.clip(np.round(np.exp(logs[..., k])), *self._bounds(axis))
            for k, axis in enumerate(_AXES)
        )
        N = held["N"][:, None] + 0 * M if "N" in held else None
        if N is not None and "P" not in held:
            P = np.minimum(P, np.maximum(np.floor(budget.tokens / N), box.low["P"]))
        if "L" not in held:
            most = budget.most_steps(M, P, budget.fewest if N is None else N)
            L = np.minimum(L, np.maximum(most, box.low["L"]))
        room = budget.most_sequences(M, P, L)
        return M, room if N is None else np.where(N <= np.floor(room), N, 0), P, L

    def _best_node(self, size: str | None, value: int) -> Array:
        """The place of the best node, near the held value."""
        risk = self.at_nodes(value) if size == "N" else self.node_risks
        if size in _AXES:
            place = _AXES.index(size)
            at = int(np.argmin(np.abs(self.logs[size] - math.log(value))))
            risk = np.where(np.indices(risk.shape, sparse=True)[place] == at, risk, np.inf)
        where = np.unravel_index(int(np.argmin(risk)), risk.shape)  # the cheapest where none is feasible
        return np.array([self.logs[axis][k] for axis, k in zip(_AXES, where, strict=True)])

    def _bounds(self, axis: str) -> tuple[float, float]:
        """The part of the box with nodes: without widths and small step counts far from the best."""
        return max(self.box.low[axis], self.nodes[axis][0]), min(self.box.high[axis], self.nodes[axis][-1])

    @cached_property
    def node_risks(self) -> Array:
        return self.at_nodes()

    @cached_property
    def _room(self) -> Array:
        """The largest N, as a real number, that the budgets allow at each node."""
        M, P, L = np.meshgrid(*(self.nodes[axis] for axis in _AXES), indexing="ij", sparse=True)
        return self.search.budget.most_sequences(M, P, L)

    def at_nodes(self, N: int | None = None, least: float = 1.0) -> Array:
        """The risk at the nodes with real N, infinite where that is below `least`."""
        count = self._room if N is None else np.where(N <= self._room, N, 0.0)
        return np.where(count >= least, self.fixed + self.variance / np.maximum(count, least), np.inf)

    def closer(self, guess: Allocation, lengths: tuple[int, int]) -> Landscape:
        """On closer nodes."""
        box, (low, high), wide = self.box, lengths, self.search.widest
        here, widths = coordinate("M", np.array([float(guess.M)]), wide), (box.low["M"], box.high["M"])
        sure = (
            np.array([])
            if guess.N >= 8
            else spread(guess.P, 0.7, 5, max(box.low["P"], low // 2), box.high["P"])
        )
        nodes = {
            "M": np.unique(np.clip(np.round(width_at(here + np.linspace(-0.5, 0.5, 5), wide)), *widths)),
            "P": joined(length_nodes(max(box.low["P"], low // 2), min(box.high["P"], 2 * high), 1.6), sure),
            "L": joined(self.nodes["L"], spread(guess.L, 0.9, 7, box.low["L"], box.high["L"])),
        }
        return _table(self.search, box, nodes, self.few, self.factor)

    def scaled(self, factor: float) -> Landscape:
        if factor == 1:
            return self
        made = (self.search, self.box, self.nodes, self.fixed, factor * self.variance)
        return Interpolated(*made, few=self.few, factor=factor * self.factor)

    def near(self, best: Allocation, hold: str | None = None) -> list[Allocation]:
        """This allocation and its neighbours in M, N and P, with the steps that the compute leaves."""
        budget, box = self.search.budget, self.box
        spent = best.compute >= 0.98 * budget.compute
        rows = []
        lengths = [best.P] if hold == "P" else _around(best.P)
        for M, N, P in itertools.product(_around(best.M), _around(best.N), lengths):
            L = int(min(budget.most_steps(M, P, N), math.inf if spent else best.L))
            inside = all(box.low[s] <= x <= box.high[s] for s, x in zip(SIZES, (M, N, P, L), strict=True))
            if inside and budget.allows(M, N, P, L) and (M, N, P) != (best.M, best.N, best.P):
                rows.append((M, N, P, L))
        found: list[Allocation | None] = []
        if hold is None and best.N < 8:  # few sequences: half as many, twice as long, can be as good
            found += self.least("N", sorted({1, best.N - 1, best.N + 1} - {0, best.N}))
        if rows:
            M, N, P, L = np.array(rows, dtype=float).T
            risks = self.risk(M, P, L, N)
            found += [
                self.allocation((M[k], N[k], P[k], L[k]), risks[k]) for k in np.argsort(risks)[:_FINALISTS]
            ]
        close = [a for a in found if a is not None and a.reducible < best.reducible * (1 + _CLOSE_CALL)]
        return [best, *sorted(close, key=lambda a: a.reducible)[:_FINALISTS]]

    def reaches(self, size: str, value: int) -> bool:
        return size not in _AXES or self.nodes[size][0] <= value <= self.nodes[size][-1]


def _around(size: int) -> list[int]:
    """The neighbours of a small size; a large one is not worth them."""
    return list(range(max(1, size - 2), size + 3)) if size < 100 else [size]


def interpolated(search: Search, box: Box, whole: bool, few: bool) -> Interpolated:
    """Fine nodes near the optimum that coarse nodes over the whole box find."""
    coarse = {
        "M": width_nodes(search, box.low["M"], box.high["M"], 3.5),
        "P": spaced(box.low["P"], box.high["P"], 5.0),
        "L": step_counts(search, max(box.low["L"], min(200, box.high["L"] // 50)), box.high["L"], 1.4),
    }
    risk = _table(search, box, coarse, few).at_nodes(least=0.1)
    worth = risk.min(axis=(0, 2), keepdims=True) < 10 * risk.min()  # the lengths that are of interest
    good = (risk <= risk.min(axis=(0, 2), keepdims=True)) & worth & np.isfinite(risk)
    low, high = (np.where(np.any(good, axis=(1, 2)), coarse["M"], fill) for fill in (np.inf, 0.0))
    shortest = np.where(np.any(good, axis=(0, 1)), coarse["L"], np.inf).min()
    first, last = (box.low["M"], box.high["M"]) if whole else (int(low.min() / 20), int(20 * high.max()))
    first, last = max(box.low["M"], first), min(box.high["M"], last)
    fewest = box.low["L"] if whole else max(box.low["L"], int(shortest / 100))
    fine = {
        # A width more is much to a narrow student.
        "M": joined(width_nodes(search, first, last, 1.2), np.arange(first, min(last, 8) + 1, dtype=float)),
        "P": length_nodes(box.low["P"], box.high["P"], 2.2),
        "L": step_counts(search, fewest, box.high["L"], 0.65),
    }
    return _table(search, box, fine, few)


def _table(search: Search, box: Box, nodes: dict[str, Array], few: bool, factor: float = 1.0) -> Interpolated:
    known, key = search.tables, b"|".join(nodes[axis].tobytes() for axis in _AXES)
    if key not in known:
        M, P = (x.ravel() for x in np.meshgrid(nodes["M"], nodes["P"], indexing="ij"))
        known[key] = _terms(search, M, P, nodes["L"])
    shape = [nodes[axis].size for axis in _AXES]
    fixed, variance = (x.reshape(shape) for x in known[key])
    if few:
        grid = np.meshgrid(*(nodes[axis] for axis in _AXES), indexing="ij", sparse=True)
        room = search.budget.most_sequences(*grid)
        variance = variance * factors_on(search, nodes, room, fixed + variance / np.maximum(room, 1))
    return Interpolated(search, box, nodes, fixed, factor * variance, few=few, factor=factor)


def _terms(search: Search, M: Array, P: Array, L: Array) -> tuple[Array, Array]:
    """approx + bias, and the variance of one trajectory, at points (M, P) × L."""
    setting = search.setting(1, search.budget.fewest, int(P.min()), int(L.min()))
    rule = sum_rule(setting, accuracy.search.sums, widest=float(M.max()))
    schedules = [search.schedule.with_steps(int(steps)) for steps in L]
    lengths = [search.budget.trained_on(length) for length in P.astype(int).tolist()]
    fixed, variance = surface(rule, M, lengths, schedules, search.eval_length)
    return fixed[0], variance[0]
