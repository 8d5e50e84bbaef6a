"""The answer on every method: the five terms of the risk (Proposition 1), as a record and as a tidy row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from scipy.special import stdtrit

from seqlaw.model.flags import Flag, flag
from seqlaw.model.lengths import Test
from seqlaw.model.momentum import Momentum
from seqlaw.model.network import Network
from seqlaw.model.optimizer import Optimizer
from seqlaw.model.schedule import kind_name
from seqlaw.model.setting import Setting

TERMS = ("irreducible", "approx", "bias", "variance", "cross")
SUMS = ("reducible", "total")
Row = dict[str, Any]
"""One measurement: parameters, terms, diagnostics."""

FEWEST_TOKENS = 8.0
"""Effective tokens per learned dimension below which the frozen filter is flagged.

Measured on 504 settings (both regimes and c_0 = 3; M = 16, 48; P = 1, 4, 32; NP/M from 1 to 128; L from
300 to 10^8; 72 data sets each): sampled bias + variance + cross over this method's bias + variance was at
most 1.02 above 256, 1.15 above 16, 1.20 above 8, 1.38 above 4, 2.2 above 2, and up to 700 below.
"""


LEVEL = 0.9
"""Of the intervals that random methods state."""

_CHECKABLE = 2**13
"""Modes that the exact method takes within a minute or so."""


def reach(count: int, level: float = LEVEL) -> float:
    """How many standard errors the mean of `count` values may be off, by Student's t."""
    return float(stdtrit(count - 1, (1 + level) / 2))


def saturation_flags(setting: Setting, saturation: float) -> list[Flag]:
    """The flag of Σγ κ(0) > 1, with the d at which `exact` can look at sketches: its own, 8M, or none."""
    if saturation <= 1:
        return []
    same = setting.d is not None and setting.d <= _CHECKABLE
    d = setting.d if same else 8 * setting.M if 8 * setting.M <= _CHECKABLE else None
    return [flag("saturated", saturation=saturation, check_d=d, same_d=same)]


def safeguard_flags(share: float, **more: float) -> list[Flag]:
    """The flag of the safeguard, where it acts on more than one data set in twenty."""
    return [flag("safeguard", share=share, **more)] if share > 0.05 else []


def frozen_error(tokens_per_dimension: float, norm_variance: float = 0.0) -> float:
    """About what the frozen filter understates bias + variance by, above the threshold.

    It leaves out the cross term and what the data change in the bias, both of the order of the variance.
    `norm_variance` is the relative variance of ‖Ĝ‖, summed over phases, which counts where sequences are few.
    Chosen on 130 random settings with phases (docs/lengths-theory.md has how often they hold).
    """
    return 2.5 / tokens_per_dimension + 0.5 * norm_variance


def frozen_filter_flags(tokens_per_dimension: float) -> list[Flag]:
    """The flag of the methods that freeze the filter at G, where data are too few for that."""
    if tokens_per_dimension >= FEWEST_TOKENS:
        return []
    return [flag("frozen-filter", tokens=tokens_per_dimension)]


_SAID = {
    "about": "relative error about {symbol}{error:.2g}",
    "above": "relative error above {symbol}{error:.2g} (saturated)",
    "size": "error about {error:.1g}",
    "zero": "exactly 0",
    "exact": "exact",
    "low": "may be much too low, see frozen-filter",
    "frozen": "as for plentiful data (cross-rest)",
    "rest": "the remainder (cross-rest)",
    "unknown": "not known",
    "with cross": "the rest, cross included",
    "in variance": "in the variance",
}


@dataclass(frozen=True)
class Promise:
    """What a method promises of a number: a kind, and its error where there is one; `str` says it."""

    kind: str
    error: float = math.nan
    symbol: str = ""
    """The error as a formula, with its sign of equality."""
    besides: bool = False
    """Beside the standard error of what is drawn."""

    def __str__(self) -> str:
        return _SAID[self.kind].format(error=self.error, symbol=self.symbol) + " besides" * self.besides


@dataclass(frozen=True, kw_only=True)
class Risk:
    """irreducible + approx + bias + variance + cross, with what is known about their accuracy."""

    method: str
    regime: str
    irreducible: float
    approx: float
    bias: float
    variance: float
    cross: float
    steps: int
    horizon: float
    eval_length: Test
    """The length of the test sequences, or a position of them."""
    standard_error: Mapping[str, float] = field(default_factory=dict)
    drawn: int = 0
    """Independent means that the standard errors come from: sketches, or data sets of one sketch."""
    accuracy: Mapping[str, Promise] = field(default_factory=dict)
    diagnostics: Mapping[str, float] = field(default_factory=dict)
    """What the method measured besides the terms, e.g. the clipping rate."""
    flags: tuple[Flag, ...] = ()

    @property
    def reducible(self) -> float:
        """approx + bias + variance + cross."""
        return self.approx + self.bias + self.variance + self.cross

    @property
    def total(self) -> float:
        """irreducible + reducible = L_M(B_L)."""
        return self.irreducible + self.reducible

    @property
    def stated(self) -> dict[str, str]:
        """The accuracy of each number, in words."""
        return {name: str(one) for name, one in self.accuracy.items()}

    @property
    def intervals(self) -> dict[str, tuple[float, float]]:
        """The 90 % interval of each number that has a standard error."""
        return {
            name: (
                getattr(self, name) - reach(self.drawn) * error,
                getattr(self, name) + reach(self.drawn) * error,
            )
            for name, error in self.standard_error.items()
        }


def columns(setting: Setting) -> Row:
    """The parameters of a setting as columns; `R` is the horizon of the schedule before any safeguard."""
    schedule, plain = setting.schedule, setting.schedule.plain
    return {
        "regime": setting.regime,
        "M": setting.M,
        "N": setting.N,
        "P": None if setting.lengths else setting.P,
        "d": setting.d,
        "schedule": kind_name(schedule),
        "gamma": schedule.gamma,
        "L": schedule.L,
        "R": schedule.horizon,
        **schedule.additions,
        **({"beta": plain.beta, "nesterov": plain.nesterov} if isinstance(plain, Momentum) else {}),
        **({} if setting.optimizer is None else optimizer_columns(setting.optimizer)),
        **({} if setting.network is None else network_columns(setting.network)),
        "eval_length": test if isinstance(test := setting.test_length, int) else None,
        **({} if setting.position is None else {"position": setting.position}),
        "batch": setting.batch,
        "epochs": setting.epochs,
        "safeguard": setting.safeguard,
        "lengths": None if setting.lengths is None else str(setting.lengths),
    }


def optimizer_columns(optimizer: Optimizer) -> Row:
    """An optimizer by name and numbers; its step is `gamma`, None where it is tuned."""
    numbers = {f.name: getattr(optimizer, f.name) for f in fields(optimizer)}
    return {"optimizer": optimizer.name, "gamma": numbers.pop("step")} | numbers


def network_columns(network: Network) -> Row:
    """A network by name and sizes."""
    return {"network": network.name, "hidden": network.hidden, "depth": network.depth}


def with_sums(terms: Mapping[str, float]) -> Row:
    """The five terms with `reducible` = approx + bias + variance + cross and `total`."""
    reducible = terms["approx"] + terms["bias"] + terms["variance"] + terms["cross"]
    return {
        **{name: terms[name] for name in TERMS},
        "reducible": reducible,
        "total": terms["irreducible"] + reducible,
    }
