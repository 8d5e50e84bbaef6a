"""The risk at one point, and at many: the five terms with what is known of their accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypedDict, Unpack, overload

from seqlaw.answers.answer import Answer, fields_of, named
from seqlaw.answers.render import Block, Note, Table
from seqlaw.answers.words import Side, describe_teacher, regime_words, sizes_words, tested_words
from seqlaw.methods import ask, terms
from seqlaw.methods.best_step import Best, tuned
from seqlaw.methods.method import Draws, Method, Progress
from seqlaw.methods.one_pass.tuning import WASTED, critical_tokens
from seqlaw.methods.terms import LEVEL, SUMS, TERMS, columns, reach, with_sums
from seqlaw.model.amount import amount
from seqlaw.model.checks import InputError, is_list
from seqlaw.model.schedule import Explicit
from seqlaw.model.setting import Setting
from seqlaw.model.signature import checked
from seqlaw.model.teacher import NUMBERS


@dataclass(frozen=True, kw_only=True)
class Risk(Answer, terms.Risk):
    """irreducible + approx + bias + variance + cross at one setting, with their accuracy."""

    setting: Setting
    draws: Draws
    command: ClassVar[str] = "risk"

    def inputs(self) -> Mapping[str, Any]:
        return {"setting": self.setting, **self.draws.inputs()}

    def fields(self) -> Mapping[str, Any]:
        batch = {} if self.setting.batch is None else named(self.setting, "batch", "tokens")
        fields = named(self, "method", "regime", *TERMS, *SUMS, "steps", "horizon", "eval_length")
        fields |= named(self, "standard_error", "intervals")
        if self.setting.position is not None:
            fields |= {"eval_length": None, "position": self.setting.position}
        return batch | fields | {"accuracy": self.stated, "diagnostics": self.diagnostics}

    def blocks(self, side: Side) -> Iterable[Block]:
        yield headline(self)
        yield describe_teacher(self.setting.teacher)
        taken = self.setting  # with the step size that the safeguard left, if it acted
        acted = any(one.code in ("safeguard", "one-pass-safeguard") for one in self.flags)
        if acted and "gamma" in self.diagnostics:
            taken = replace(taken, schedule=taken.schedule.scaled(self.diagnostics["gamma"]))
        title = f"{regime_words(self.setting)}, method {self.method}: {sizes_words(taken)}, "
        yield terms_table(self, title + f"tested at {tested_words(self.eval_length)}")
        if self.standard_error:
            yield Note(chance_words(self))
        if (critical := self.diagnostics.get("critical_tokens", math.inf)) < math.inf:
            here = self.setting.step_tokens
            yield Note(
                f"{amount(here)} tokens a step; with {amount(self.setting.tokens)} in all, beyond about "
                f"{two_digits(critical)} a step bias + variance are {DEARER}"
            )

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        return [self.row()]

    def row(self) -> dict[str, Any]:
        """All parameters, terms and errors."""
        errors = {f"se_{name}": error for name, error in self.standard_error.items()}
        return {"method": self.method} | parameters(self.setting) | self.point | errors

    @property
    def point(self) -> dict[str, Any]:
        """The sizes and terms, as `--json` has them along a curve."""
        return columns(self.setting) | with_sums(named(self, *TERMS))


def uncertainty(risk: terms.Risk, name: str) -> str:
    """A term's standard error, or its stated accuracy, in a few words."""
    error, stated = risk.standard_error.get(name), risk.stated.get(name, "")
    chance = "" if error is None else f"± {error:.2g}"
    return "; ".join(text for text in (chance, stated) if text)


def terms_table(risk: terms.Risk, title: str = "") -> Table:
    """Every term and sum with what is known of its accuracy."""
    rows = [(name, getattr(risk, name), uncertainty(risk, name)) for name in (*TERMS, *SUMS)]
    return Table(rows=rows, header=("term", "value", "uncertainty"), title=title)


def headline(risk: terms.Risk) -> str:
    """The reducible risk with its error, and what it consists of, in one line."""
    error = uncertainty(risk, "reducible")
    parts = {name: getattr(risk, name) / risk.reducible if risk.reducible else 0.0 for name in TERMS[1:]}
    shares = ", ".join(f"{name} {100 * x:.0f}\u00a0%" for name, x in parts.items() if abs(x) >= 0.005)
    known = f" ({error})" if error else ""
    made_of = f": {shares}" if shares else ""
    return f"Reducible risk {amount(risk.reducible, 4)}{known}{made_of}."


def chance_words(risk: terms.Risk) -> str:
    """What ± means, of so few draws."""
    return (
        f"± is the standard error of {risk.drawn} independent draws; {100 * LEVEL:.0f} % intervals reach "
        f"{reach(risk.drawn):.2g} of them on either side (Student's t)"
    )


DEARER = f"{100 * (WASTED - 1):.0f} % above their best"
"""What the critical tokens a step cost."""


def two_digits(value: float) -> str:
    """A rough number for people."""
    return amount(float(f"{value:.2g}"))


def parameters(setting: Setting) -> dict[str, Any]:
    """Every parameter of a setting as a column, the teacher's six numbers among them where it has them."""
    return {name: getattr(setting.teacher, name, None) for name in NUMBERS} | columns(setting)


def drawn(
    settings: Sequence[Setting],
    method: str | Method,
    draws: Draws,
    progress: Progress | None,
    *,
    tune: bool = False,
) -> list[Risk]:
    """What `risk` and `curve` have in common; `tune` takes the best step of each."""
    best = tuned(settings) if tune else [Best(one) for one in settings]
    asked = [one.setting for one in best]
    found = ask.risks(asked, method=method, draws=draws, progress=progress)
    return answered(asked, [one.told(risk) for one, risk in zip(best, found, strict=True)], draws)


def answered(settings: Sequence[Setting], found: Sequence[terms.Risk], draws: Draws) -> list[Risk]:
    """What a method found, as answers."""
    return [
        Risk(**fields_of(one, setting=setting, draws=draws))
        for setting, one in zip(settings, found, strict=True)
    ]


class _Asked(TypedDict, total=False):
    """What `risk` takes beside the setting, for its overloads."""

    method: str | Method
    sketches: int
    repetitions: int
    seed: int
    workers: int
    device: str | None
    progress: Progress | None
    tune: bool


@overload
def risk(setting: Setting, **asked: Unpack[_Asked]) -> Risk: ...
@overload
def risk(setting: Sequence[Setting], **asked: Unpack[_Asked]) -> list[Risk]: ...
@checked
def risk(
    setting: Setting | Sequence[Setting],
    *,
    method: str | Method = "equivalent",
    sketches: int = 4,
    repetitions: int = 2,
    seed: int = 0,
    workers: int = 1,
    device: str | None = None,
    progress: Progress | None = None,
    tune: bool = False,
) -> Risk | list[Risk]:
    """The risk of a setting, or of each in a list: its five terms, their sums, and how accurate they are.

    Parameters
    ----------
    setting
        The teacher, the sizes, the schedule and the test length. Settings in a list share the work that they
        have in common.
    method
        "sampled" draws sketches and trajectories, "exact" draws sketches only, "equivalent" draws nothing. A
        method of your own is a `seqlaw.methods.Method`, or its import path.
    sketches, repetitions, seed
        How many sketches, how many data sets for each, and the seed of both.
    workers
        Threads of the sampled method.
    device
        "cuda" takes a GPU.
    progress
        Called with what is done and what there is to do.
    tune
        Take the step size of least risk among those that the safeguard allows, in place of the schedule's.

    Returns
    -------
    Risk, or a list of Risk
        One for a setting, a list in the same order for a list. `.reducible`, `.total` and each term;
        `.standard_error` where the method draws, else `.stated`. With a batch, one setting also has
        `.diagnostics["critical_tokens"]`, which a list leaves out.

    Examples
    --------
    >>> from seqlaw import Setting, risk
    >>> sizes = {"teacher": "regime2", "N": 64, "P": 4, "d": 32, "schedule": "wsd"}
    >>> round(risk(Setting(M=8, **sizes)).approx, 4)
    0.0007
    >>> [round(one.approx, 4) for one in risk([Setting(M=M, **sizes) for M in (4, 8)])]
    [0.0013, 0.0007]
    """
    draws = Draws(sketches=sketches, repetitions=repetitions, seed=seed, workers=workers, device=device)
    if isinstance(setting, Setting):
        return _with_critical_tokens(drawn([setting], method, draws, progress, tune=tune)[0])
    if not is_list(setting) or not all(isinstance(one, Setting) for one in setting):
        raise InputError("setting", "must be a Setting or a list of settings", setting)
    return drawn(setting, method, draws, progress, tune=tune)


def _with_critical_tokens(found: Risk) -> Risk:
    """In one pass: how many tokens a step may see before a larger batch is a waste."""
    setting = found.setting
    fixed = isinstance(setting.schedule, Explicit)  # no other batch has such steps
    plain = setting.lengths is None and setting.optimizer is None
    if setting.batch is None or setting.epochs > 1 or not plain or fixed:
        return found
    more = {"critical_tokens": critical_tokens(setting)}
    return replace(found, diagnostics={**found.diagnostics, **more})
