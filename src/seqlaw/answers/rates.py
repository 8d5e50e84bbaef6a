"""The theorem at one point."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from seqlaw.answers.answer import Answer, fields_of
from seqlaw.answers.render import Block, Table
from seqlaw.answers.risk import parameters
from seqlaw.answers.words import Side, describe_teacher, regime_words
from seqlaw.methods import rates as theorem
from seqlaw.model.amount import amount
from seqlaw.model.setting import Setting
from seqlaw.model.signature import checked

REMAINDER = {
    "d_eff": "learned dimensions, min(M, kappa)",
    "epsilon_M": "error of bias and variance from the sketch",
    "omega_0": "the initialization's share in mode M",
    "covariance_event": "bound on the sample covariance's relative error",
}
"""What the theorem's remainders are, in a few words each."""
STATEMENT = (
    "With probability at least 1 - exp(-Ω(M)) over the sketch: Approx = 𝒜, Bias = ℬ + O(ε_M), "
    "Var = 𝒱 + O(ε_M), |Cross| = O(√(ℬ𝒱) + ε_M), each up to constants free of M, N, P, L."
)


@dataclass(frozen=True, kw_only=True)
class Rates(Answer, theorem.Rates):
    """Theorem 1 at a point: exponents, crossovers, conditions, and values without constants."""

    setting: Setting
    command: ClassVar[str] = "rates"

    def inputs(self) -> Mapping[str, Any]:
        return {"setting": self.setting}

    def fields(self) -> Mapping[str, Any]:
        shown = {f.name: getattr(self, f.name) for f in fields(theorem.Rates) if f.name != "flags"}
        return shown | {"statement": STATEMENT}

    def blocks(self, side: Side) -> Iterable[Block]:
        orders = {
            name: " ".join(f"{size}^{e:.4g}" for size, e in powers.items() if e)
            for name, powers in self.exponents.items()
        }
        said = ", ".join(f"{name} goes as {order}" for name, order in orders.items())
        yield f"{regime_words(self.setting)}: {said}."
        yield describe_teacher(self.setting.teacher)
        yield Table(
            rows=[(name, order, self.values[name], self.guides[name]) for name, order in orders.items()],
            header=("term", "order here", "value without constants", "the paper's guide"),
        )
        crossovers = ", ".join(f"{name} = {amount(value, 4)}" for name, value in self.crossovers.items())
        yield f"Crossovers, with every constant set to 1: {crossovers}."
        yield Table(
            rows=[
                (c.name, *map(_short, (c.value, c.needed, c.ratio_scaled)), _HOLDS[c.holds])
                for c in self.conditions
            ],
            header=("condition", "value", "needed", "scaled", "holds"),
        )
        yield (
            "? means that the theorem does not give the constant. scaled is value over needed, with c_xi and "
            "c_0 included; these two also shift the crossovers."
        )
        if all(condition.holds is not False for condition in self.conditions):
            yield STATEMENT

    def more(self, side: Side) -> Iterable[Block]:
        yield f"beta_alpha = {self.beta_alpha:g}, beta_theta = {self.beta_theta:g}."
        yield Table(
            rows=[(f"{name}: {REMAINDER[name]}", value) for name, value in self.remainder.items()],
            header=("remainder, with every constant set to 1", "value"),
        )
        yield f"The cutoff kappa of the paper's guide is {amount(self.guides['kappa'], 4)}."

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
    """The theorem at a setting: the order of each term, where orders change, and which conditions hold.

    Parameters
    ----------
    setting
        A teacher with exponents, and the sizes. Regimes outside the theorem are computed as Regime II and
        flagged.

    Returns
    -------
    Rates
        `.exponents`, `.crossovers` and `.conditions`, with values at constants of one.

    Examples
    --------
    >>> from seqlaw import Setting, rates
    >>> setting = Setting(teacher="regime1", M=64, N=4096, P=8, d=256, schedule="wsd")
    >>> round(rates(setting).exponents["approx"]["M"], 2)
    -0.9
    """
    return Rates(**fields_of(theorem.rates(setting), setting=setting))
