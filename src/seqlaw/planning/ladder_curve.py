"""Two lengths against the share of the longer: one after the other, the other way round, and mixed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seqlaw.methods.terms import frozen_filter_flags
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import InputError, real, whole
from seqlaw.model.flags import Flag
from seqlaw.model.lengths import Length, Lengths
from seqlaw.model.setting import Setting
from seqlaw.model.signature import checked
from seqlaw.model.threads import one_thread
from seqlaw.planning.ladder import Choice, Sketches, asked, trial_of

SHARES = (0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8, 0.9, 0.98)
WAYS = ("short-to-long", "long-to-short", "mixed")
_ENDS = (0.02, 0.98)


@dataclass(frozen=True, kw_only=True)
class At(Choice):
    """One way (`name`) to train on both lengths; a length alone is `only`."""

    share: float
    """Of the longer length: of the steps in phases, of the tokens always."""


@dataclass(frozen=True, kw_only=True)
class LadderCurve:
    """The risk of each way at each share, over the better of the two lengths alone."""

    setting: Setting
    regime: str
    tokens: int
    eval_length: int
    candidates: tuple[int, int]
    shares: tuple[float, ...]
    sketches: int
    seed: int
    single: At
    """The better length alone."""
    rows: tuple[At, ...]
    """The two lengths alone first."""
    tokens_per_dimension: float | None
    tune: bool
    """Whether each row has its best step."""
    flags: tuple[Flag, ...]

    def curve(self, way: str) -> list[At]:
        return [row for row in self.rows if row.name == way]

    @property
    def best(self) -> At:
        """Short first, at the best of these shares."""
        return min(self.curve(WAYS[0]), key=lambda row: row.reducible)


@checked
@one_thread()
def ladder_curve(
    setting: Setting,
    tokens: float,
    *,
    candidates: Sequence[int] = (2, 4096),
    shares: Sequence[float] = SHARES,
    tune: bool = True,
    sketches: int = 4,
    seed: int = 0,
) -> LadderCurve:
    """Two lengths at each share of the longer, for so many tokens: short first, long first, and mixed.

    Parameters
    ----------
    setting
        As in `ladder`: the teacher, M, d, the schedule and the test length. With a batch it is one pass.
    tokens
        How many tokens each student sees.
    candidates
        The two lengths.
    shares
        The shares of the tokens that the longer one gets.
    tune
        Choose the step size too, as `ladder` does.
    sketches, seed
        How many sketches the comparison draws, and their seed.

    Returns
    -------
    LadderCurve
        `.rows`, one for each order and share. Ratios are to the better of the two lengths alone.

    Examples
    --------
    >>> from seqlaw import Setting
    >>> from seqlaw.answers.ladder import ladder_curve
    >>> student = Setting(teacher="regime2", M=8, N=1, P=2, d=32, eval_length=64, schedule="wsd")
    >>> found = ladder_curve(student, 1e6, candidates=[2, 64], shares=[0.5], sketches=2)
    >>> [row.name for row in found.rows]
    ['only', 'only', 'short-to-long', 'long-to-short', 'mixed']
    """
    budget, rising = asked(setting, tokens, candidates)
    if len(rising) != 2:
        raise InputError("candidates", "must be two lengths", list(candidates))
    low, high = _ENDS
    wanted = tuple(sorted({real("shares", share) for share in shares}))
    for share in wanted:
        if not low <= share <= high:
            raise InputError("shares", f"must be from {low} to {high}", share)
    if not wanted:
        raise InputError("shares", "must be at least one", list(shares))
    short, long = rising
    found: list[tuple[str, float, Length]] = [("only", 0.0, short), ("only", 1.0, long)]
    for share in wanted:
        first, last = round(1 - share, 10), share
        found += [
            ("short-to-long", share, Lengths((short, long), (first, last), True)),
            ("long-to-short", share, Lengths((long, short), (last, first), True)),
            ("mixed", share, Lengths((short, long), (first, last))),
        ]
    count = whole("sketches", sketches, least=2)
    benches = Sketches(setting, trial_of(setting, budget, long, 2), count, seed, tune=tune)
    alone, known = benches.compared(dict.fromkeys(lengths for *_, lengths in found), rising)
    rows = tuple(At(name=name, share=s, lengths=one, **known[one]) for name, s, one in found)
    least, flags = None, list(setting_flags(setting))
    if setting.batch is None:
        least = min(benches.tokens_per_dimension(row.lengths) for row in rows if row.name != "mixed")
        flags += frozen_filter_flags(least)
    assert setting.eval_length is not None
    return LadderCurve(
        setting=setting,
        regime=setting.regime,
        tokens=budget,
        eval_length=setting.eval_length,
        candidates=(short, long),
        shares=wanted,
        sketches=count,
        seed=seed,
        single=next(row for row in rows if row.lengths == alone),
        rows=rows,
        tokens_per_dimension=least,
        tune=tune,
        flags=tuple(flags),
    )
