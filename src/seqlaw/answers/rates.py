"""The theorem at one point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from seqlaw.answers.answer import Answer, fields_of
from seqlaw.answers.blocks import Block, Sentence, Table
from seqlaw.answers.risk import parameters
from seqlaw.answers.words import Side, describe_teacher, regime_words
from seqlaw.methods import rates as theorem
from seqlaw.model.amount import amount
from seqlaw.model.checks import checked
from seqlaw.model.setting import Setting

REMAINDER = {
    "d_eff": "learned dimensions, min(M, kappa)",
    "epsilon_M": "error of bias and variance from the sketch",
    "omega_0": "the initialization's share in mode M",
    "covariance_event": "bound on the sample covariance's relative error",
}
"""What the theorem's remainders are, in a few words each."""


@dataclass(frozen=True, kw_only=True)
class Rates(Answer, theorem.Rates):
    """Theorem 1 at a point: exponents, crossovers, conditions, and values without constants."""

    setting: Setting
    command: ClassVar[str] = "rates"

    def inputs(self) -> Mapping[str, Any]:
        return {"setting": self.setting}

    def fields(self) -> Mapping[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(theorem.Rates) if f.name != "flags"}

    def blocks(self, side: Side) -> Iterable[Block]:
        yield Sentence(describe_teacher(self.setting.teacher))
        yield Sentence(
            f"{regime_words(self.setting)}: beta_alpha = {self.beta_alpha:g}, "
            f"beta_theta = {self.beta_theta:g}"
        )
        yield Table(
            rows=[
                (name, " ".join(f"{s}^{e:.4g}" for s, e in powers.items()), self.values[name])
                for name, powers in self.exponents.items()
            ],
            header=("term", "order here", "value without constants"),
        )
        yield Table(rows=list(self.crossovers.items()), header=("crossover", "value"))
        yield Table(
            rows=[(f"{name}: {REMAINDER[name]}", value) for name, value in self.remainder.items()],
            header=("remainder, at constants of one", "value"),
        )
        yield Table(rows=list(self.guides.items()), header=("the paper's guide, with scales", "value"))
        yield Table(
            rows=[
                (c.name, *map(_short, (c.value, c.needed, c.ratio_scaled)), _HOLDS[c.holds])
                for c in self.conditions
            ],
            header=("condition", "value", "needed", "scaled", "holds"),
        )
        yield Sentence(
            "?: up to a constant that the theorem does not name; scaled: value over needed, with c_xi and "
            "c_0. Orders and crossovers are at constants of one: c_xi and c_0 move where a branch begins."
        )
        if all(condition.holds is not False for condition in self.conditions):
            yield Sentence(self.statement)

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """One row a term: its order, its value without constants and the paper's guide."""
        return [
            parameters(self.setting)
            | {"term": name, "value": self.values[name], "guide": self.guides[name]}
            | {f"power_of_{size}": power for size, power in powers.items()}
            for name, powers in self.exponents.items()
        ]


_HOLDS = {True: "yes", False: "NO", None: "?"}


def _short(value: float | None) -> str:
    return "" if value is None else amount(value, 4)


@checked
def rates(setting: Setting) -> Rates:
    """The theorem's statement at a setting; regimes outside it are computed as Regime II and flagged."""
    return Rates(**fields_of(theorem.rates(setting), setting=setting))
