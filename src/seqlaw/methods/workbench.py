"""One sketch, and what its problems at all lengths share, computed once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from seqlaw.methods.finite_sample.norm import Rise, rises
from seqlaw.methods.one_pass.directions import (
    Directions,
    Ground,
    channels,
    directions_of,
    ground,
    grounded,
    innovation_lags,
    keep,
)
from seqlaw.methods.score import Score, lag_sums, score
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model.checks import Array
from seqlaw.model.device import Device
from seqlaw.model.lengths import Counted, Length, Lengths, mean_length, parts
from seqlaw.model.sketch import Problem, gaussian_sketch, sketched_problem
from seqlaw.model.teacher import Modes

_KEPT = 2**21  # numbers that a length may keep for its starts
Made = TypeVar("Made")


class LagSums:
    """The lag sums of each length, d×d, and their channels: no sketch changes them, a mixture adds them."""

    def __init__(self, modes: Modes) -> None:
        self.modes = modes
        self._sums: dict[int, tuple[Array, Array]] = {}
        self._channels: dict[int, tuple[Array, Array, Array]] = {}

    def lags(self, P: Length) -> tuple[Array, Array]:
        """K/P and J/P."""
        for length, _ in parts(P):
            if length not in self._sums:
                self._sums[length] = lag_sums(self.modes, length)
        if isinstance(P, int):
            return self._sums[P]
        K, J = (sum(share * self._sums[one][k] for one, share in parts(P)) for k in (0, 1))
        return np.asarray(K), np.asarray(J)

    def channels(self, P: Length) -> tuple[Array, tuple[Array, Array]]:
        """φ, and J as a product (`one_pass.directions`); a mixture's lie side by side."""
        found = []
        for length, share in parts(P):
            if length not in self._channels:
                self._channels[length] = channels(self.modes, length), *innovation_lags(self.modes, length)
            root = math.sqrt(share * length / mean_length(P))
            found.append([root * x for x in self._channels[length]])
        phi, X, Y = (np.concatenate(rows) for rows in zip(*found, strict=True))
        return phi, (X, Y)


class Workbench:
    """One sketch. Lengths with whole numbers of sequences are kept; shares that are only tried are not.

    With `sums`, which sketches share, the grounds are made for many starts.
    """

    def __init__(
        self,
        modes: Modes,
        M: int,
        *,
        sketch: int,
        seed: int,
        device: Device | None = None,
        sums: LagSums | None = None,
    ) -> None:
        self.modes, self.sums = modes, sums
        self.S = gaussian_sketch(M, modes.d, seed=seed, index=sketch, device=device)
        self._made: dict[tuple[str, Length], Any] = {}

    def problem(self, P: Length) -> Problem:
        return self._once("problem", P, lambda: sketched_problem(self.modes, self.S, P))

    def score(self, P: Length) -> Score:

        def made() -> Score:
            return score(self.problem(P), None if self.sums is None else self.sums.lags(P))

        return self._once("score", P, made)

    def ground(self, P: Length, problem: Problem | None = None, noise: Array | None = None) -> Ground:
        """What a stage of mini-batches needs; of shares that are tried, from their problem and score."""

        def made() -> Ground:
            if self.sums is None:
                return ground(self.problem(P))
            mine = self.problem(P) if problem is None else problem
            covariance = self.score(P).covariance if noise is None else noise
            found = grounded(mine, *self.sums.channels(P), covariance)
            small = 2 * (len(found.phi) + len(found.lags[0])) * mine.M**2 <= _KEPT
            return keep(mine, found) if small else found

        return self._once("ground", P, made)

    def nodes(self, P: Length) -> Directions:
        """Of a student at rest."""
        return self._once("nodes", P, lambda: directions_of(self.problem(P), self.ground(P)))

    def rise(self, P: Length) -> Rise:
        rule = Rule(modes=self.modes, weights=np.ones(self.modes.d))
        return self._once("rise", P, lambda: rises(rule, [P])[P])

    def forget(self) -> None:
        """The eigensystems of steps, which are many."""
        for (name, _), known in self._made.items():
            if name == "ground" and known.kept is not None:
                known.kept.turned.clear()

    def _once(self, name: str, P: Length, make: Callable[[], Made]) -> Made:
        if isinstance(P, Lengths) and not isinstance(P, Counted):
            return make()
        if (name, P) not in self._made:
            self._made[name, P] = make()
        found: Made = self._made[name, P]
        return found
