"""The risk at one point, and at many: the five terms with what is known of their accuracy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from seqlaw.answers.answer import Answer, fields_of
from seqlaw.answers.blocks import Block, Note, Sentence, Table
from seqlaw.answers.words import Side, describe_teacher, regime_words, sizes_words, tested_words
from seqlaw.methods import ask, terms
from seqlaw.methods.method import Draws, Method, Progress
from seqlaw.methods.one_pass.tuning import WASTED, critical_tokens
from seqlaw.methods.rows import columns, with_sums
from seqlaw.methods.terms import LEVEL, SUMS, TERMS, reach
from seqlaw.model.amount import amount
from seqlaw.model.checks import checked
from seqlaw.model.schedule import Explicit
from seqlaw.model.setting import Setting
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
        batch = (
            {} if self.setting.batch is None else {"batch": self.setting.batch, "tokens": self.setting.tokens}
        )
        names = ("method", "regime", *TERMS, *SUMS, "steps", "horizon", "eval_length")
        fields = {name: getattr(self, name) for name in (*names, "standard_error", "intervals")}
        return batch | fields | {"accuracy": self.stated, "diagnostics": self.diagnostics}

    def blocks(self, side: Side) -> Iterable[Block]:
        yield Sentence(headline(self, self.uncertainty("reducible")))
        yield Sentence(describe_teacher(self.setting.teacher))
        yield Table(
            rows=[(name, getattr(self, name), self.uncertainty(name)) for name in (*TERMS, *SUMS)],
            header=("term", "value", "uncertainty"),
            title=f"{regime_words(self.setting)}, method {self.method}: {sizes_words(self.setting)}, "
            f"tested at {tested_words(self.eval_length)}",
        )
        if self.standard_error:
            yield Note(chance_words(self))
        if (critical := self.diagnostics.get("critical_tokens", math.inf)) < math.inf:
            here = self.setting.step_tokens
            yield Note(
                f"{amount(here)} tokens a step; with {amount(self.setting.tokens)} in all, beyond about "
                f"{two_digits(critical)} a step bias + variance are {DEARER}"
            )

    def uncertainty(self, name: str) -> str:
        """A term's standard error, or its stated accuracy, in a few words."""
        error, stated = self.standard_error.get(name), self.stated.get(name, "")
        chance = "" if error is None else f"± {error:.2g}"
        return "; ".join(text for text in (chance, stated) if text)

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        return [self.row()]

    def row(self) -> dict[str, Any]:
        """All parameters, terms and errors."""
        errors = {f"se_{name}": error for name, error in self.standard_error.items()}
        return {"method": self.method} | parameters(self.setting) | self.point | errors

    @property
    def point(self) -> dict[str, Any]:
        """The sizes and terms, as `--json` has them along a curve."""
        return columns(self.setting) | with_sums({name: getattr(self, name) for name in TERMS})


def headline(risk: terms.Risk, error: str) -> str:
    """The reducible risk with its error, what it consists of, and the total, in one line."""
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


@checked
def risks(
    settings: Sequence[Setting],
    *,
    method: str | Method = "equivalent",
    sketches: int = 4,
    repetitions: int = 2,
    seed: int = 0,
    workers: int = 1,
    device: str | None = None,
    progress: Progress | None = None,
) -> list[Risk]:
    """The risk of each setting on a method; settings that can share work do.

    `sampled` draws sketches and trajectories, on `workers` threads, and tells `progress`; `exact` draws
    sketches only; `equivalent` draws nothing and ignores the options of the others. `device="cuda"` takes a
    GPU (docs/scale.md). A method of your own is a `seqlaw.methods.method.Method`, or its import path.
    """
    draws = Draws(sketches=sketches, repetitions=repetitions, seed=seed, workers=workers, device=device)
    return drawn(settings, method, draws, progress)


def drawn(
    settings: Sequence[Setting], method: str | Method, draws: Draws, progress: Progress | None
) -> list[Risk]:
    """What `risks`, `risk` and `curve` have in common."""
    return answered(settings, ask.risks(settings, method=method, draws=draws, progress=progress), draws)


def answered(settings: Sequence[Setting], found: Sequence[terms.Risk], draws: Draws) -> list[Risk]:
    """What a method found, as answers."""
    return [
        Risk(**fields_of(one, setting=setting, draws=draws))
        for setting, one in zip(settings, found, strict=True)
    ]


@checked
def risk(
    setting: Setting,
    *,
    method: str | Method = "equivalent",
    sketches: int = 4,
    repetitions: int = 2,
    seed: int = 0,
    workers: int = 1,
    device: str | None = None,
    progress: Progress | None = None,
) -> Risk:
    """The risk of one setting on a method, as `risks` has it."""
    draws = Draws(sketches=sketches, repetitions=repetitions, seed=seed, workers=workers, device=device)
    found = drawn([setting], method, draws, progress)[0]
    fixed = isinstance(setting.schedule, Explicit)  # no other batch has such steps
    if setting.batch is None or setting.epochs > 1 or setting.lengths is not None or fixed:
        return found
    more = {"critical_tokens": critical_tokens(setting)}
    return replace(found, diagnostics={**found.diagnostics, **more})
