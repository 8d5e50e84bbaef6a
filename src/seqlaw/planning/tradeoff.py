"""Longer or more: the risk along P at a fixed number of tokens, tested at the own length and at common ones.

The paper scores a student trained at length P on sequences of the same length, so its curves in P change the
test along with the training. A common test length keeps the test fixed, and can turn the answer round.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from seqlaw.methods import ask
from seqlaw.methods.best_step import Best, tuned
from seqlaw.methods.method import Draws, Method, Progress
from seqlaw.methods.one_pass.tuning import with_tokens
from seqlaw.methods.terms import Risk
from seqlaw.model.checks import InputError, positive, whole
from seqlaw.model.flags import Flag, flag
from seqlaw.model.lengths import Lengths, as_lengths, longest, words
from seqlaw.model.setting import Setting, as_setting
from seqlaw.model.signature import checked
from seqlaw.model.teacher import Modes, Teacher, as_teacher
from seqlaw.planning.budget import PAPER_COST, Budget
from seqlaw.planning.mixed import mixed

OWN = "own"
_LEFT_OVER = 0.005  # of the tokens: risks differ by as little


@dataclass(frozen=True, kw_only=True)
class Split:
    """One way to split the tokens, and the risk at one test length."""

    P: int
    N: int
    L: int
    gamma: float
    tested: str
    """"own", or the common test length."""
    eval_length: int
    compute: float
    """Of the cost formula."""
    approx: float
    bias: float
    variance: float
    cross: float
    standard_error: float | None = None
    """Of the reducible risk, on methods that draw."""

    @property
    def reducible(self) -> float:
        return self.approx + self.bias + self.variance + self.cross


@dataclass(frozen=True, kw_only=True)
class Held:
    """A mixture with the same tokens at one test; its own test is the mixture itself."""

    tested: str
    setting: Setting
    risk: Risk
    compute: float
    best: Split
    """The best single length at this test."""
    ratio: float
    """Its risk over the mixture's."""
    error: float
    """Of the ratio, from the stated accuracy of both."""


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """Which split of the tokens wins at one test length."""

    tested: str
    """"own", or the common test length."""
    kind: str
    """"single" (one split only), "level" (the difference is negligible), "shorter", "longer" (the best range
    reaches the shortest, the longest), "middle", or "ends" (both ends win over the middle)."""
    best: int
    worst: int
    """The lengths P of least and of largest risk."""
    ratio: float
    """Of the largest reducible risk to the least."""
    low: int
    high: int
    """The range of P around the best whose risk cannot be told from the least one; of "ends" the two ends."""


@dataclass(frozen=True, kw_only=True)
class Tradeoff:
    """The curves, and for each test length the range of P around the best that lies within 1 % of it."""

    setting: Setting
    """The student whose tokens were split; its N, P and test length do not matter."""
    regime: str
    tokens: int
    compute: float | None
    cost: str
    rows: tuple[Split, ...]
    best: dict[str, tuple[int, int]]
    flags: tuple[tuple[Flag, ...], ...]
    """Of each row."""
    mixture: Lengths | None = None
    held: tuple[Held, ...] = ()
    """The mixture at each test."""
    tune: bool = True
    """Whether each row has its best step."""
    method: str = "equivalent"
    draws: Draws | None = None
    """What the method drew; None where it draws nothing."""
    beside: tuple[Tradeoff, ...] = ()
    """The same with other teachers, for a picture."""

    def curve(self, tested: str | int) -> list[Split]:
        """The rows at one test: "own", or a common test length."""
        found = [row for row in self.rows if row.tested == str(tested)]
        if not found:
            raise InputError("tested", f"must be one of {', '.join(self.best)}", tested)
        return found

    def near(self, tested: str, margin: float = 0.01) -> list[int]:
        """The lengths within a share of the best at one test, in order."""
        return _near(self.curve(tested), margin)

    def verdict(self, tested: str, margin: float = 0.01) -> Verdict:
        """Which lengths win at one test, where risks less than `margin` apart count as one."""
        curve = self.curve(tested)
        best, worst = (choose(curve, key=lambda row: row.reducible) for choose in (min, max))
        ratio = worst.reducible / best.reducible if best.reducible > 0 else 1.0
        ends = min(row.P for row in curve), max(row.P for row in curve)
        low, high = around(curve, margin)
        if set(ends) <= set(self.near(tested, margin)):
            low, high = ends
        kind = "level" if ratio <= 1 + margin else _KINDS[low == ends[0], high == ends[1]]
        if len(curve) == 1:
            kind = "single"
        return Verdict(tested=tested, kind=kind, best=best.P, worst=worst.P, ratio=ratio, low=low, high=high)


_KINDS = {
    (True, True): "ends",
    (True, False): "shorter",
    (False, True): "longer",
    (False, False): "middle",
}
"""Of a best range, by whether it reaches the shortest and the longest length."""


def split_lengths(
    setting: Setting, tokens: int, points: int = 13, *, least: int = 2, most: int | None = None
) -> list[int]:
    """Lengths from `least` to `most`, evenly spaced in the logarithm, of which whole numbers fill the tokens.

    To 4096 unless given, or to all tokens, or in one pass to the longest that leaves the schedule its steps;
    from there on where `least` is beyond. Ends that are given stay as they are.
    """
    each, steps = (setting.batch, setting.schedule.least_steps()) if setting.batch else (1, 1)
    usual = min(4096, tokens // (each * steps))
    top = max(least, min(tokens, most or (usual if usual > least else 16 * least)))

    def filled(P: int) -> int:
        """P, or where it leaves tokens over the nearest that does not, with as many sequences or one more."""
        count = max(steps, tokens // (each * P))
        if each * count * P >= (1 - _LEFT_OVER) * tokens:
            return P
        near = [Q for n in (count, count + 1) if least <= (Q := tokens // (each * n)) <= (most or Q)]
        return min(near, key=lambda Q: abs(math.log(Q / P)), default=P)

    inner = [filled(int(P)) for P in np.round(np.geomspace(least, top, points))[1:-1]]
    return sorted({least, *inner, top if most else filled(top)})


def usable(setting: Setting, tokens: int, compute: float | None, cost: str) -> int:
    """Tokens within a ceiling on the compute of the full batch."""
    if compute is None or setting.batch:
        return tokens
    spent = Budget(compute=compute, tokens=tokens, cost=cost)
    return max(2, 2 * int(spent.most_sequences(setting.M, 2, setting.schedule.L)))


@checked
def tradeoff(
    setting: Setting,
    tokens: float,
    *,
    lengths: Sequence[int] | None = None,
    eval_lengths: Sequence[int] = (16, 4096),
    compute: float | None = None,
    cost: str = PAPER_COST,
    tune: bool = True,
    mixture: Lengths | str | None = None,
    compare: Sequence[Teacher | Modes | str] = (),
    method: str | Method = "equivalent",
    sketches: int = 4,
    repetitions: int = 2,
    seed: int = 0,
    workers: int = 1,
    device: str | None = None,
    progress: Progress | None = None,
) -> Tradeoff:
    """Longer or more: the risk of one student at N·P ≈ tokens for each length, N = ⌊tokens/P⌋.

    Parameters
    ----------
    setting
        The teacher, M, d and the schedule; its own N, P and test length do not matter, nor its peak step if
        the step is tuned. With a batch it is a single pass, and the steps follow from the tokens.
    tokens
        How many tokens are split.
    lengths
        The training lengths; by default about a dozen from 2 to 4096.
    eval_lengths
        Common test lengths, beside the test of each student at its own length as in the paper.
    compute, cost
        A ceiling on the compute, counted by the formula `cost`: N is no more than it allows.
    tune
        Take the best step size at each length and test. Otherwise all have the schedule's, which compares
        step sizes too: longer sequences often allow larger steps. Networks, and optimizers other than plain
        descent, tune theirs in any case.
    mixture
        A mixture of lengths with the same tokens, compared with the best single length at each test.
    compare
        Other teachers whose curves the picture shows beside these.
    method, sketches, repetitions, seed, workers, device, progress
        As in `risk`.

    Returns
    -------
    Tradeoff
        `.best` has the best range of P at each test, `.rows` the risk of each length.

    Examples
    --------
    >>> from seqlaw import Setting, tradeoff
    >>> student = Setting(teacher="regime2", M=16, N=1, P=2, d=64, schedule="wsd")
    >>> tradeoff(student, 1e5, lengths=[2, 32], eval_lengths=[32]).best
    {'own': (32, 32), '32': (2, 32)}
    """
    if (position := as_setting("setting", setting).position) is not None:
        raise InputError("position", "must be left out here, where eval_lengths are the tests", position)
    asked_of = ask.method_of(method)
    ask.require_answerable(asked_of, [setting])
    mixture = as_lengths("mixture", mixture)
    others = [replace(setting, teacher=as_teacher("compare", one)) for one in compare]
    budget = whole("tokens", positive("tokens", tokens), least=2)
    if lengths is None:
        lengths = split_lengths(setting, usable(setting, budget, compute, cost))
    lengths = [whole("P", P) for P in lengths]
    if not lengths:
        raise InputError("lengths", "must hold a length", "none")
    if max(lengths) > budget:
        raise InputError("P", f"must be at most the tokens, {budget}", max(lengths))
    spent = Budget(compute=1e32 if compute is None else compute, tokens=budget, cost=cost)
    split = (
        _one_pass(setting, budget, lengths, compute)
        if setting.batch
        else _all_at_once(setting, spent, lengths)
    )
    tests = {OWN: None} | {str(whole("eval_length", P)): int(P) for P in eval_lengths}
    plan = [
        (P, name, replace(split[P], eval_length=P_test)) for name, P_test in tests.items() for P in lengths
    ]
    asked = [one for *_, one in plan]
    if mixture is not None:
        budgeted = mixed(spent, mixture)
        beside = _of_mixture(setting, budgeted)
        asked += [replace(beside, eval_length=P_test) for P_test in tests.values()]
    draws = Draws(sketches=sketches, repetitions=repetitions, seed=seed, workers=workers, device=device)
    own_step = setting.optimizer is not None or setting.network is not None
    best_steps = tuned(asked, rough=True) if tune and not own_step else [Best(one) for one in asked]
    asked = [one.setting for one in best_steps]
    found = ask.risks(asked, method=asked_of, draws=draws, progress=progress)
    risks = [one.told(risk) for one, risk in zip(best_steps, found, strict=True)]
    rows = tuple(
        Split(
            P=P,
            N=one.N,
            L=one.schedule.L,
            gamma=risk.diagnostics["gamma"] if own_step else one.schedule.gamma,
            tested=name,
            eval_length=longest(one.P if name == OWN else int(name)),
            compute=spent.formula(M=setting.M, N=one.batch or one.N, P=P, L=one.schedule.L),
            approx=risk.approx,
            bias=risk.bias,
            variance=risk.variance,
            cross=risk.cross,
            standard_error=risk.standard_error.get("reducible"),
        )
        for (P, name, _), one, risk in zip(plan, asked, risks, strict=False)  # the mixture's come last
    )
    flags = [risk.flags for risk in risks[: len(plan)]]
    if compute is None:
        flags = [(*own, *_left_over(row, budget)) for own, row in zip(flags, rows, strict=True)]
    held = () if mixture is None else _held(rows, asked, risks, budgeted)
    best = {name: around([row for row in rows if row.tested == name]) for name in tests}
    same: dict[str, Any] = {
        "lengths": lengths,
        "eval_lengths": eval_lengths,
        "compute": compute,
        "cost": cost,
        "tune": tune,
        "method": asked_of,
        **{name: getattr(draws, name) for name in ("sketches", "repetitions", "seed", "workers", "device")},
    }
    return Tradeoff(
        setting=setting,
        regime=setting.regime,
        tokens=budget,
        compute=compute,
        cost=cost,
        rows=rows,
        best=best,
        flags=tuple(flags),
        mixture=mixture,
        held=held,
        tune=tune,
        method=ask.method_name(asked_of),
        draws=draws if asked_of.draws else None,
        beside=tuple(tradeoff(one, tokens, **same) for one in others),
    )


def _near(curve: Sequence[Split], margin: float) -> list[int]:
    least = min(row.reducible for row in curve)
    return sorted(row.P for row in curve if row.reducible <= least + margin * abs(least))


def around(curve: Sequence[Split], margin: float = 0.01) -> tuple[int, int]:
    """The range of lengths around the best, all of them within this share of it.

    Others may be as good beyond a worse one: the tokens are not always filled by whole sequences.
    """
    near = _near(curve, margin)
    lengths = sorted(row.P for row in curve)
    low = high = lengths.index(min(curve, key=lambda row: row.reducible).P)
    while low > 0 and lengths[low - 1] in near:
        low -= 1
    while high + 1 < len(lengths) and lengths[high + 1] in near:
        high += 1
    return lengths[low], lengths[high]


def _held(
    rows: Sequence[Split], asked: Sequence[Setting], risks: Sequence[Risk], budget: Budget
) -> tuple[Held, ...]:
    """The mixture's questions come after those of the rows, one a test."""
    found = []
    tests = dict.fromkeys(row.tested for row in rows)
    for name, one, risk in zip(tests, asked[len(rows) :], risks[len(rows) :], strict=True):
        k = min((k for k, row in enumerate(rows) if row.tested == name), key=lambda k: rows[k].reducible)
        ratio = rows[k].reducible / risk.reducible
        errors = [_relative_error(each, one.M) for each in (risk, risks[k])]
        found.append(
            Held(
                tested=name,
                setting=one,
                risk=risk,
                compute=budget.spent(M=one.M, N=one.batch or one.N, P=int(budget.min_P), L=one.schedule.L),
                best=rows[k],
                ratio=ratio,
                error=ratio * math.hypot(*errors),
            )
        )
    return tuple(found)


def _relative_error(risk: Risk, M: int) -> float:
    """Of the reducible risk: by chance, else of the law."""
    if "reducible" in risk.standard_error:
        return risk.standard_error["reducible"] / risk.reducible
    return risk.diagnostics.get("error", 3 / M)


def _of_mixture(setting: Setting, budget: Budget) -> Setting:
    """As many sequences of the mixture, or in one pass steps, as the budget allows."""
    P, L, M = int(budget.min_P), setting.schedule.L, setting.M
    lengths = budget.trained_on(P)
    if setting.batch is not None:
        return with_tokens(replace(setting, P=lengths), budget.tokens)
    N = int(budget.most_sequences(M, P, L))
    while N >= budget.fewest and not budget.allows(M, N, P, L):  # whole sequences are more than their share
        N -= max(1, N // 10**4)
    if N < budget.fewest:
        rule = f"must allow {budget.fewest} sequences of {words(lengths)}"
        raise InputError("compute", rule, budget.compute)
    return setting.but(P=lengths, N=N)


def _left_over(row: Split, tokens: int) -> tuple[Flag, ...]:
    """A flag where whole sequences leave so many tokens over that the comparison is not at equal tokens."""
    used = row.N * row.P
    return (flag("tokens-left-over", used=used, tokens=tokens),) if used < 0.98 * tokens else ()


def _all_at_once(setting: Setting, spent: Budget, lengths: Sequence[int]) -> dict[int, Setting]:
    """The full-batch settings, by length: as many sequences as the budgets allow."""
    L = setting.schedule.L
    counts = {P: int(spent.most_sequences(setting.M, P, L)) for P in lengths}
    short = [P for P in lengths if counts[P] < 1]
    if short:
        raise InputError("compute", f"must allow one sequence of length {short[0]}", spent.compute)
    return {P: setting.but(P=P, N=counts[P]) for P in lengths}


def _one_pass(
    setting: Setting, tokens: int, lengths: Sequence[int], compute: float | None
) -> dict[int, Setting]:
    """The one-pass settings, by length: as many steps as the tokens allow."""
    if compute is not None:
        raise InputError("compute", "follows from the tokens in one pass, tokens · M²: leave it out", compute)
    return {P: with_tokens(replace(setting, P=P), tokens) for P in lengths}
