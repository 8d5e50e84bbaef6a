"""What stands around every view: the regime's badge, and the flags as a reader of the page is told them."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from seqlaw.answers.rates import rates
from seqlaw.answers.spectrum import NO_NUMBER
from seqlaw.answers.words import REMARKS, sentence, words_alone
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.flags import Flag
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Teacher

Answer = dict[str, Any]
_SENTENCES = {
    "I": "θ ≥ α: innovations rule the spectrum. To leading order only the number of tokens counts, "
    "not how they are cut.",
    "II": "α − 2r ≤ θ < α: the initialization has the heavier tail. Longer sequences wash it out.",
}
_ONCE = "The theorem trains on the full batch, one pass on fresh sequences in every step."


def words(flag: Flag) -> str:
    """A flag as a reader of the page is told it, who has the commands to copy."""
    return sentence(flag, "cli")


def badge(setting: Setting) -> Answer:
    """The regime, each condition of the theorem with its value, and the assumptions that are broken."""
    teacher, flags = setting.teacher, setting_flags(setting)
    assert isinstance(teacher, Teacher)
    answer: Answer = {
        "regime": teacher.regime,
        "covered": not flags,
        "sentence": _broken(flags) if flags else _SENTENCES[teacher.regime],
        "theta": teacher.theta,
        "alpha": teacher.alpha,
        "edge": teacher.alpha - 2 * teacher.r,
        "conditions": [],
        "exponents": {},
        "flags": [words(flag) for flag in flags],
    }
    if setting.batch is not None:
        return answer | {"sentence": f"{answer['sentence']} {_ONCE}"}
    with suppress(*NO_NUMBER):  # no exponents there: the flags say which assumption breaks
        law = rates(setting)
        answer |= {"conditions": law.conditions, "exponents": law.exponents}
    return answer


def _broken(flags: Sequence[Flag]) -> str:
    """The sentence of a badge outside the theorem: what it needs and what it got."""
    needs = "; ".join(words_alone(flag, "cli") for flag in flags)
    return f"{needs[0].upper()}{needs[1:]}. The numbers are computed anyway."


def told(flags: Sequence[Flag]) -> Answer:
    """Flags for the reader: warnings, and apart from them what is true of a method everywhere."""
    return {
        "flags": [words(flag) for flag in flags if flag.code not in REMARKS],
        "remarks": [words(flag) for flag in flags if flag.code in REMARKS],
    }
