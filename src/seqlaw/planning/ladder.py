"""The best length, the best mixture of lengths and the best ladder (lengths in phases) for so many tokens.

Shares are chosen on some sketches, and what is chosen is compared on others: a gain is not the best of many
draws. The single length that they are compared with is the best on those others, so that a gain is rather too
small. All students have the same tokens, steps and schedule; the full batch is to leading order in the data.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any, NamedTuple

import numpy as np

from seqlaw.methods.terms import frozen_error, frozen_filter_flags, reach
from seqlaw.methods.workbench import LagSums
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import Array, InputError, positive, whole
from seqlaw.model.flags import Flag
from seqlaw.model.lengths import Length, Lengths
from seqlaw.model.optimizer import plain_only
from seqlaw.model.pattern_search import pattern_search
from seqlaw.model.preconditioned import refused
from seqlaw.model.setting import Setting, as_setting
from seqlaw.model.signature import checked
from seqlaw.model.teacher import LONGEST
from seqlaw.model.threads import one_thread
from seqlaw.planning.trials import Bench, Runs, Trial

CANDIDATES = (2, 16, 128, 4096)
CHOOSING = 3
"""Sketches on which shares are chosen."""
LARGEST = 4096
"""Modes: the sums over lags are held as d×d."""
_LEAST, _FINEST, _MOVED = 0.02, 0.02, 0.16
"""The smallest share, how finely shares are chosen, and what is first moved from one to another."""
_DEPTHS = (1.0, 0.5, 0.25)
"""Log₂ of the factors between steps that are compared. 2^⅛ off the bottom of a flat valley costs little."""
_PARTS = ("approx", "bias", "variance")


@dataclass(frozen=True, kw_only=True)
class Choice:
    """Lengths that were tried: the mean of the reducible risk over sketches, its terms and standard error."""

    name: str
    lengths: Length
    approx: float
    bias: float
    variance: float
    error: float
    against: float
    """Paired by sketch, over the best single length."""
    against_error: float
    gammas: tuple[float, ...]
    """The peak step size of each phase, the mean over sketches."""

    @property
    def reducible(self) -> float:
        return self.approx + self.bias + self.variance


class Step(NamedTuple):
    """The factor, one for all phases, between the best step and the largest that each phase allows."""

    factor: float
    half: float
    """The relative increase of the risk at half of it, on the sketches that choose."""


@dataclass(frozen=True, kw_only=True)
class Ladder:
    """The best single length, mixture and ladder, and presets beside them."""

    setting: Setting
    """The student; its N and P do not matter."""
    regime: str
    tokens: int
    eval_length: int
    candidates: tuple[int, ...]
    most_phases: int
    sketches: int
    seed: int
    singles: tuple[Choice, ...]
    single: Choice
    mixture: Choice
    ladder: Choice
    presets: tuple[Choice, ...]
    tokens_per_dimension: float | None
    """The least of any phase, full batch."""
    step: Step | None
    """How far the ladder's step lies below the largest, and what others cost; None for a given step."""
    flags: tuple[Flag, ...]

    @property
    def gain(self) -> float:
        """What the ladder takes off the best single length's risk."""
        return 1 - self.ladder.against

    @property
    def gain_error(self) -> float:
        """Its standard error over sketches."""
        return self.ladder.against_error

    @property
    def helps(self) -> bool:
        """Whether the gain is more than chance explains in 19 of 20 cases."""
        return self.gain > reach(self.sketches, 0.95) * self.gain_error and self.gain > 0

    def steps(self, L: int) -> tuple[int, ...]:
        """Of each phase of the ladder."""
        lengths = self.ladder.lengths
        return lengths.steps(L) if isinstance(lengths, Lengths) else (L,)


def presets(candidates: Sequence[int]) -> dict[str, Length]:
    """`short-to-long` and `mixed` have the same tokens of each length, `long-only` has the longest alone."""
    rising = tuple(sorted(candidates))
    even = (1 / len(rising),) * len(rising)
    if len(rising) == 1:
        return {"long-only": rising[0]}
    return {
        "short-to-long": Lengths(rising, even, True),
        "mixed": Lengths(rising, even),
        "long-only": rising[-1],
    }


def distinct(candidates: Sequence[int]) -> tuple[int, ...]:
    """The candidates, rising; each once."""
    rising = tuple(sorted(whole("candidates", P, most=LONGEST) for P in candidates))
    if len(set(rising)) < len(rising):
        raise InputError("candidates", "must name every length once", list(candidates))
    return rising


def asked(setting: Setting, tokens: float, candidates: Sequence[int]) -> tuple[int, tuple[int, ...]]:
    """The tokens and the rising candidates, checked with the setting."""
    as_setting("setting", setting)
    budget = whole("tokens", positive("tokens", tokens), least=2)
    rising = distinct(candidates)
    if len(rising) < 2:
        raise InputError("candidates", "must be two lengths or more", list(candidates))
    if rising[-1] > budget:
        raise InputError("candidates", f"must be lengths of at most the tokens, {budget}", list(candidates))
    if setting.eval_length is None:
        raise InputError("eval_length", "must be given: lengths that differ need one test", None)
    if setting.epochs > 1:
        raise InputError("epochs", "must be 1 with several lengths", setting.epochs)
    require_phases(setting)
    return budget, rising


def require_phases(setting: Setting) -> None:
    """Refuse what phases cannot have."""
    if (refusal := plain_only(setting.optimizer)) is not None:
        raise refusal
    if setting.schedule.memory:
        raise InputError("momentum", "must be left out with phases", getattr(setting.schedule, "beta", None))
    if setting.schedule.plain is not setting.schedule:
        raise refused(setting.schedule, "must be left out here: ladders are of plain descent")
    if setting.modes.d > LARGEST:
        raise InputError("d", f"must be at most {LARGEST} here: sums over pairs of modes are held", setting.d)


@checked
@one_thread()
def ladder(
    setting: Setting,
    tokens: float,
    *,
    candidates: Sequence[int] = CANDIDATES,
    most_phases: int = 2,
    tune: bool = True,
    sketches: int = 8,
    seed: int = 0,
) -> Ladder:
    """The best length, mixture of lengths and ladder (lengths in phases) for so many tokens.

    Parameters
    ----------
    setting
        The teacher, M, d, the schedule and the test length, which must be chosen; its N and P do not matter.
        A batch, which counts sequences of the longest candidate, makes it a single pass: all students have
        those tokens a step, and the steps follow.
    tokens
        How many tokens each student sees.
    candidates
        The lengths to choose from.
    most_phases
        How many phases a ladder may have.
    tune
        Choose the step size too. Each phase takes the largest step that its length allows, times a factor of
        at most 1 that all phases share. Otherwise it is the schedule's.
    sketches, seed
        How many sketches the comparison draws, and their seed.

    Returns
    -------
    Ladder
        `.single`, `.mixture` and `.ladder` are the best of each kind; `.helps` says whether the ladder's
        `.gain` over the best single length is more than chance.

    Examples
    --------
    >>> from seqlaw import Setting, ladder
    >>> student = Setting(teacher="regime2", M=8, N=1, P=2, d=32, eval_length=64, schedule="wsd")
    >>> ladder(student, 1e6, candidates=[2, 64], sketches=2).single.lengths
    64
    """
    budget, rising = asked(setting, tokens, candidates)
    most = whole("most_phases", most_phases, most=6)
    count, trial = whole("sketches", sketches, least=2), trial_of(setting, budget, rising[-1], most)
    search = Sketches(setting, trial, count, seed, tune=tune)
    alone = min(rising, key=search.quick)
    best: dict[str, Length] = {
        name: search.best(rising, most, phases=name == "ladder", beside=alone)
        for name in ("mixture", "ladder")
    }
    beside = presets(rising)
    tried = dict.fromkeys([*rising, *best.values(), *beside.values()])
    single, known = search.compared(tried, rising)
    found = {"single": single} | {k: single if one == alone else one for k, one in best.items()} | beside

    def choice(name: str) -> Choice:
        return Choice(name=name, lengths=found[name], **known[found[name]])

    least, flags = None, list(setting_flags(setting))
    if setting.batch is None:
        least = min(search.tokens_per_dimension(one) for one in (single, found["ladder"]))
        flags += frozen_filter_flags(least)
    assert setting.eval_length is not None
    return Ladder(
        setting=setting,
        regime=setting.regime,
        tokens=budget,
        eval_length=setting.eval_length,
        candidates=rising,
        most_phases=most,
        sketches=count,
        seed=seed,
        singles=tuple(Choice(name=str(P), lengths=P, **known[P]) for P in rising),
        single=choice("single"),
        mixture=choice("mixture"),
        ladder=choice("ladder"),
        presets=tuple(choice(name) for name in presets(rising)),
        tokens_per_dimension=least,
        step=search.step(found["ladder"]) if tune else None,
        flags=tuple(flags),
    )


def trial_of(setting: Setting, tokens: int, longest: int, phases: int) -> Trial:
    """How all students are trained, with steps for the smallest share of so many phases."""
    found = _trial(setting, tokens, longest)
    if found.schedule.L < phases / _LEAST:
        raise InputError("L", f"must be at least {math.ceil(phases / _LEAST)} for phases", found.schedule.L)
    return found


def _trial(setting: Setting, tokens: int, longest: int) -> Trial:
    if setting.batch is None:
        return Trial(setting.schedule, tokens, None)
    step = setting.batch * longest
    if tokens < step * setting.schedule.least_steps():
        rule = (
            f"must be at least {step * setting.schedule.least_steps()} for this batch of the longest length"
        )
        raise InputError("tokens", rule, tokens)
    return Trial(setting.schedule.with_steps(tokens // step), tokens, step)


class Sketches:
    """The sketches: some to choose on, others to compare on."""

    def __init__(self, setting: Setting, trial: Trial, count: int, seed: int, *, tune: bool) -> None:
        assert setting.eval_length is not None
        sums = LagSums(setting.modes)
        self.trial, self.test, self.runs = trial, setting.eval_length, Runs(trial.schedule)
        # One pass is dear: one sketch chooses.
        choosing = CHOOSING if trial.step_tokens is None else 1
        benches = [Bench(sums, setting.M, sketch=k, seed=seed) for k in range(count + choosing)]
        self.comparing, self.choosing = benches[:count], benches[count:]
        self.tune = tune
        self._quick: dict[tuple[Length, float | None], float] = {}
        self._depths: dict[Length, float] = {}

    def _terms(self, bench: Bench, lengths: Length, depth: float | None, *, quick: bool) -> dict[str, float]:
        trial = self.trial._replace(depth=depth)
        return bench.trained(lengths, trial, self.runs, quick=quick).terms(bench.problem(self.test))

    def quick(self, lengths: Length) -> float:
        """The reducible risk on the sketches that choose."""
        return self._at(lengths, self.depth(lengths))

    def _at(self, lengths: Length, depth: float | None) -> float:
        if (lengths, depth) not in self._quick:
            terms = [self._terms(bench, lengths, depth, quick=True) for bench in self.choosing]
            self._quick[lengths, depth] = float(np.mean([sum(one[name] for name in _PARTS) for one in terms]))
        return self._quick[lengths, depth]

    def depth(self, lengths: Length, near: float = 0.0) -> float | None:
        """Of the best step, found by ever smaller moves from `near`; None for a given step."""
        if not self.tune:
            return None
        if lengths not in self._depths:
            best = near
            for move in _DEPTHS:
                while True:
                    tried = [depth for depth in (best, best - move, best + move) if depth >= 0]
                    lowest = min(tried, key=lambda depth: self._at(lengths, depth))
                    if lowest == best:
                        break
                    best = lowest
            self._depths[lengths] = best
        return self._depths[lengths]

    def step(self, lengths: Length) -> Step:
        """The best step, and what half of it costs."""
        depth = self.depth(lengths)
        assert depth is not None
        return Step(2.0**-depth, self._at(lengths, depth + 1) / self._at(lengths, depth) - 1)

    def best(self, candidates: Sequence[int], most: int, *, phases: bool, beside: int) -> Length:
        """The best mixture or ladder of at most so many lengths; one alone, `beside`, where none beats it."""
        best: Length = beside
        pairs = permutations(candidates, 2) if phases else combinations(candidates, 2)
        tried = [Lengths(pair, (0.5, 0.5), phases) for pair in pairs] if most > 1 else []
        for count in range(2, most + 1):
            if not tried:
                break
            top = min((self._shares(one) for one in tried), key=self.quick)
            best = top if self.quick(top) < self.quick(best) else best
            tried = _longer(top, candidates) if count < most else []
        return best

    def _shares(self, start: Lengths) -> Lengths:
        """The best shares of these lengths, by moving less and less from one to another."""
        pairs = list(permutations(range(len(start.shares)), 2))
        moves = np.array(
            [[(k == taker) - (k == giver) for k in range(len(start.shares))] for giver, taker in pairs]
        )

        depth = self.depth(start)

        def risk(_: Any, shares: Array) -> Array:
            tried = [_with_shares(start, one) for one in shares[0].tolist()]
            return np.array([[math.inf if one is None else self._at(one, depth) for one in tried]])

        found, _ = pattern_search(risk, np.array([start.shares]), moves, step=_MOVED, finest=_FINEST / 1.01)
        best = _with_shares(start, found[0].tolist())
        assert best is not None
        self.depth(best, near=depth or 0.0)
        return best

    def compared(
        self, tried: Iterable[Length], singles: Sequence[int]
    ) -> tuple[int, dict[Length, dict[str, Any]]]:
        """The best single length on the other sketches; means over these, and ratios to it, paired."""
        terms: dict[Length, list[dict[str, float]]] = {one: [] for one in tried}
        for bench in self.comparing:  # one after the other, for what they keep
            for one, rows in terms.items():
                rows.append(self._terms(bench, one, self.depth(one), quick=False))
            bench.forget()
        risk = {
            one: np.array([sum(row[name] for name in _PARTS) for row in rows]) for one, rows in terms.items()
        }
        single = min(singles, key=lambda P: float(risk[P].mean()))
        if not risk[single].all():
            raise InputError("teacher", "must leave something to learn", f"a risk of 0 at length {single}")
        root = math.sqrt(len(self.comparing))
        found: dict[Length, dict[str, Any]] = {}
        for one, rows in terms.items():
            ratio = risk[one] / risk[single]
            found[one] = {name: float(np.mean([row[name] for row in rows])) for name in _PARTS} | {
                "error": float(risk[one].std(ddof=1)) / root,
                "against": float(ratio.mean()),
                "against_error": float(ratio.std(ddof=1)) / root,
                "gammas": self._peaks(one),
            }
        return single, found

    def tokens_per_dimension(self, lengths: Length) -> float:
        trial = self.trial._replace(depth=self.depth(lengths))
        return self.comparing[0].tokens_per_dimension(lengths, trial, self.runs)

    def _peaks(self, lengths: Length) -> tuple[float, ...]:
        trial = self.trial._replace(depth=self.depth(lengths))
        scales = np.mean([bench.scales(lengths, trial) for bench in self.comparing], axis=0)
        return tuple((trial.schedule.gamma * scales).tolist())


def _with_shares(lengths: Lengths, shares: Sequence[float]) -> Lengths | None:
    """The same lengths with other shares; None where one is too small."""
    if min(shares) < _LEAST - 1e-9:
        return None
    return Lengths(lengths.lengths, tuple(round(share, 4) for share in shares), lengths.phases)


def _longer(lengths: Lengths, candidates: Sequence[int]) -> list[Lengths]:
    """With a fifth of the steps or tokens at one more length; of a ladder at any place."""
    found = []
    for place in range(len(lengths.lengths) + 1) if lengths.phases else (len(lengths.lengths),):
        for P in candidates:
            near = lengths.lengths[max(place - 1, 0) : place + 1] if lengths.phases else lengths.lengths
            if P in near:
                continue
            shares = [round(0.8 * share, 4) for share in lengths.shares]
            shares.insert(place, round(1 - sum(shares), 4))
            found.append(
                Lengths(
                    (*lengths.lengths[:place], P, *lengths.lengths[place:]), tuple(shares), lengths.phases
                )
            )
    return found


def accuracy(found: Ladder) -> dict[str, str]:
    """What is known of the numbers."""
    stated = {"gain": f"± {found.gain_error:.1g} over {found.sketches} sketches, paired"}
    if found.tokens_per_dimension is not None:
        error = frozen_error(found.tokens_per_dimension)
        stated["reducible"] = (
            f"bias + variance to leading order in the data, relative error about {error:.1g}"
        )
    return stated
