"""One sketch with its problem, noise and directions at every length, each computed once."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, TypeVar

import numpy as np

from seqlaw.methods.finite_sample.norm import EmpiricalNorm, empirical_norms
from seqlaw.methods.one_pass.noise import (
    Directions,
    StepNoise,
    channels,
    innovation_lags,
    sketch_directions,
    step_noise,
)
from seqlaw.methods.score import Score, lag_sums, leading_score, score
from seqlaw.methods.spectral_sum import Rule
from seqlaw.model.checks import Array
from seqlaw.model.device import Device
from seqlaw.model.lengths import Counted, Length, Lengths, Test, mean_length, parts
from seqlaw.model.sketch import Problem, gaussian_sketch, sketched_problem
from seqlaw.model.teacher import Modes

Made = TypeVar("Made")


class LagSums:
    """The lag sums K and J of each length (d × d) and their channels, which all sketches share.

    Those of a mixture are weighted sums over its lengths.
    """

    def __init__(self, modes: Modes) -> None:
        self.modes = modes
        self._sums: dict[int, tuple[Array, Array]] = {}
        self._channels: dict[int, tuple[Array, Array, Array]] = {}
        self._mixed: tuple[Length, tuple[Array, Array]] | None = None

    def lags(self, P: Length) -> tuple[Array, Array]:
        """K/P and J/P; of mixtures the latest is stored."""
        for length, _ in parts(P):
            if length not in self._sums:
                self._sums[length] = lag_sums(self.modes, length)
        if isinstance(P, int):
            return self._sums[P]
        if self._mixed is None or self._mixed[0] != P:
            K, J = (sum(share * self._sums[one][k] for one, share in parts(P)) for k in (0, 1))
            self._mixed = P, (np.asarray(K), np.asarray(J))
        return self._mixed[1]

    def channels(self, P: Length) -> tuple[Array, tuple[Array, Array]]:
        """φ, X and Y (`one_pass.noise`); a mixture has the rows of all its lengths."""
        scaled = []
        for length, share in parts(P):
            if length not in self._channels:
                self._channels[length] = channels(self.modes, length), *innovation_lags(self.modes, length)
            root = math.sqrt(share * length / mean_length(P))
            scaled.append([root * x for x in self._channels[length]])
        phi, X, Y = (np.concatenate(rows) for rows in zip(*scaled, strict=True))
        return phi, (X, Y)


class Workbench:
    """One sketch; what is asked at a length, or at a mixture of counted sequences, is computed once.

    Of mixtures given by shares only the latest is stored: a search tries many, each with several steps.
    `sums` are the lag sums that sketches share; with them the step noise is prepared for students that
    start in many places.
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
        self._made: dict[tuple[str, Test], Any] = {}
        self._latest: dict[str, tuple[Test, Any]] = {}

    def problem(self, P: Test) -> Problem:
        return self._once("problem", P, lambda: sketched_problem(self.modes, self.S, P))

    def score(self, P: Length) -> Score:

        def made() -> Score:
            return score(self.problem(P), None if self.sums is None else self.sums.lags(P))

        return self._once("score", P, made)

    def leading_score(self, P: Length) -> Array:
        assert self.sums is not None
        lags = self.sums.lags
        return self._once("leading score", P, lambda: leading_score(self.problem(P), *lags(P)))

    def step_noise(
        self, P: Length, problem: Problem | None = None, covariance: Array | None = None
    ) -> StepNoise:
        """The noise of a mini-batch step; the problem and the score's covariance may be known."""

        def made() -> StepNoise:
            if self.sums is None:
                return step_noise(self.problem(P))
            own = self.problem(P) if problem is None else problem
            known = self.score(P).covariance if covariance is None else covariance
            return step_noise(own, self.sums.channels(P), known, many_starts=True)

        return self._once("step noise", P, made)

    def nodes(self, P: Length) -> Directions:
        """The directions of a student that starts at 0."""
        return self._once("nodes", P, lambda: sketch_directions(self.problem(P), self.step_noise(P)))

    def empirical_norm(self, P: Length) -> EmpiricalNorm:
        rule = Rule(modes=self.modes, weights=np.ones(self.modes.d))
        return self._once("norm", P, lambda: empirical_norms(rule, [P])[P])

    def forget(self) -> None:
        """Drop the stored eigensystems of steps, which are many."""
        for (name, _), known in self._made.items():
            if name == "step noise" and known.products is not None:
                known.products.eigensystems.clear()

    def _once(self, name: str, P: Test, make: Callable[[], Made]) -> Made:
        if isinstance(P, Lengths) and not isinstance(P, Counted):
            if self._latest.get(name, (None,))[0] != P:
                self._latest[name] = P, make()
            latest: Made = self._latest[name][1]
            return latest
        if (name, P) not in self._made:
            self._made[name, P] = make()
        stored: Made = self._made[name, P]
        return stored
