"""The paper's six experiments as data: grids, numbers of sketches and repetitions, and what it printed.

Sections "Experiments" and "Additional Experimental Details". Ten series, one for each row of its slope table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from seqlaw.model.checks import InputError
from seqlaw.model.schedule import BlockDecay
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import PRESETS

GAMMA = 0.1
TEACHERS = {"I": PRESETS["regime1"], "II": PRESETS["regime2"]}


class Quantity(NamedTuple):
    """What a panel shows."""

    word: str
    title: str
    short: str
    """In tables."""
    conditions: tuple[str, ...]
    """Those of the theorem that have a meaning where there is no training, no data, or both …"""
    idle: tuple[str, ...] = ()
    """… and the columns that have none."""


_TRAINED = ("unsaturated", "horizon", "step size", "ambient")
QUANTITIES = {
    "approx": Quantity(
        "approximation", "approximation", "Approx", ("ambient",), ("N", "schedule", "gamma", "L", "R", "bias")
    ),
    "bias": Quantity("bias", "GD bias", "Bias", _TRAINED, ("N",)),
    "variance": Quantity("variance", "GD variance", "Var", (*_TRAINED, "samples", "trajectories")),
}


class Printed(NamedTuple):
    """What the paper printed of a series, and what a repetition of the whole experiment gives here."""

    slope: float
    guide: float
    mean: float
    """Mean of the slope over many repetitions of the whole experiment."""
    spread: float
    """Standard deviation of the slope over those repetitions."""
    ratio: tuple[float, float, float] | None = None
    """The paper's "Checkpoint agreement", Regime II: mean, least and largest ratio of measured to guide."""
    noise: float = math.nan
    """Of a variance: the standard deviation, over many data sets, of the ratio of sampled to exact variance
    averaged over the points of the sweep, to two digits (150 data sets on the smaller grid of Regime I, 240
    on the full one of Regime II). The few of one run do not show it well: six of Regime I gave 0.04 along R.
    """


PRINTED = {
    ("I", "approx", "M"): Printed(-0.962, -0.900, -0.960, 0.005),
    ("I", "bias", "R"): Printed(-0.718, -0.600, -0.7187, 0.0008),
    ("I", "variance", "N"): Printed(-1.008, -1.000, -1.002, 0.064, noise=0.13),
    ("I", "variance", "P"): Printed(-1.066, -1.000, -0.999, 0.075, noise=0.13),
    ("I", "variance", "R"): Printed(0.733, 0.667, 0.714, 0.047, noise=0.26),
    ("II", "approx", "P"): Printed(-0.949, -0.950, -0.9497, 0.0002, (1.000, 0.996, 1.003)),
    ("II", "bias", "P"): Printed(-0.200, -0.185, -0.2013, 0.0009, (0.987, 0.953, 1.006)),
    ("II", "variance", "N"): Printed(-0.986, -1.000, -0.991, 0.029, (1.037, 0.980, 1.088), 0.11),
    ("II", "variance", "P"): Printed(-1.253, -1.250, -1.250, 0.024, (0.983, 0.966, 1.001), 0.13),
    ("II", "variance", "R"): Printed(0.388, 0.359, 0.363, 0.014, (1.030, 1.000, 1.053), 0.15),
}
"""(regime, quantity, against) → the paper's tables, with the spreads that a comparison needs."""


@dataclass(frozen=True, kw_only=True)
class Series:
    """One curve: a quantity against one size."""

    regime: str
    quantity: str
    against: str
    settings: tuple[Setting, ...]

    @property
    def key(self) -> tuple[str, str, str]:
        return self.regime, self.quantity, self.against

    @property
    def printed(self) -> Printed:
        return PRINTED[self.key]

    @property
    def x(self) -> list[float]:
        return [size(setting, self.against) for setting in self.settings]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """One panel of the figure: series that share sketches and, where there are any, data sets."""

    name: str
    series: tuple[Series, ...]
    sketches: int
    repetitions: int = 1
    reference: Setting | None = None
    """Where the series of a variance panel meet."""

    @property
    def regime(self) -> str:
        return self.series[0].regime

    @property
    def quantity(self) -> str:
        return self.series[0].quantity

    @property
    def title(self) -> str:
        return f"({self.name}) Regime {self.regime}: {QUANTITIES[self.quantity].title}"

    @property
    def settings(self) -> list[Setting]:
        """The points of all series, each once."""
        return list(dict.fromkeys(setting for series in self.series for setting in series.settings))


def size(setting: Setting, name: str) -> float:
    """M, N, P, or the horizon R of the schedule."""
    return float(setting.schedule.horizon if name == "R" else getattr(setting, name))


ENDLESS = 10**15
"""N of the panels without data: approximation and bias are the population's, which more data tend to."""


def paper_panels() -> dict[str, Panel]:
    """The six panels on the paper's full grids, by letter."""
    return {
        "a": _population("a", "approx", "I", "M", 8, d=768, P=4096, M=[12, 16, 24, 32, 48, 64, 96, 128]),
        "b": _population("b", "bias", "I", "R", 3, M=512, d=2048, P=4096, L=[4000 * 2**k for k in range(10)]),
        "c": _variance(
            "c",
            "I",
            sketches=3,
            at=_setting("I", M=20, d=128, N=4096, P=4096, L=64000),
            N=[1024, 1536, 2048, 3072, 4096],
            P=[1024, 1536, 2048, 3072, 4096],
            L=[500, 1000, 2000, 3000, 4000, 6000, 8000, 16000, 32000, 64000],
        ),
        "d": _population("d", "approx", "II", "P", 8, M=512, d=2048, P=[4, 6, 8, 12, 16, 24, 32, 48]),
        "e": _population("e", "bias", "II", "P", 5, M=1024, d=2048, L=142397, P=[4, 6, 8, 12, 16, 24]),
        "f": _variance(
            "f",
            "II",
            sketches=8,
            at=_setting("II", M=40, d=128, N=65536, P=40, L=302909),
            N=[16384, 24576, 32768, 49152, 65536, 98304, 131072],
            P=[8, 12, 16, 24, 32, 40],
            L=[168485, 248461, 358079, 498539, 670813, 875698, 1113868],
        ),
    }


def quick_panels() -> dict[str, Panel]:
    """The same panels with fewer points, sketches and data: seconds, and slopes near the paper's."""
    full = paper_panels()
    return full | {
        "a": replace(full["a"], sketches=3),
        "b": replace(full["b"], sketches=1),
        "c": _variance(
            "c",
            "I",
            sketches=3,
            repetitions=1,
            at=_setting("I", M=20, d=128, N=512, P=512, L=64000),
            N=[128, 192, 256, 384, 512],
            P=[128, 192, 256, 384, 512],
            L=[500, 1000, 2000, 4000, 8000, 16000, 32000, 64000],
        ),
        "d": _thinned(full["d"]),
        "e": _thinned(full["e"]),
        "f": replace(full["f"], sketches=4, repetitions=1),
    }


def select(panels: dict[str, Panel], names: Sequence[str] | None) -> list[Panel]:
    """The panels of these letters, in the order of the figure; all if none are named."""
    for name in names or ():
        if name not in panels:
            raise InputError("panels", f"must be letters of {''.join(panels)}", name)
    if names is not None and not names:
        raise InputError("panels", "must name at least one panel", names)
    return [panel for name, panel in panels.items() if names is None or name in names]


def _setting(regime: str, *, M: int, d: int, P: int, L: int, N: int = ENDLESS) -> Setting:
    return Setting(teacher=TEACHERS[regime], M=M, N=N, P=P, d=d, schedule=BlockDecay(gamma=GAMMA, L=L))


def _population(
    name: str,
    quantity: str,
    regime: str,
    against: str,
    sketches: int,
    *,
    d: int,
    L: int | list[int] = 64000,
    **sizes: Any,  # one of them a list: the axis
) -> Panel:
    """Panels without data: approximation (no training either, so L does not matter) and population bias."""
    grid = sizes | {"L": L}
    axis = "L" if against == "R" else against
    values = grid.pop(axis)
    settings = tuple(_setting(regime, d=d, **(grid | {axis: value})) for value in values)
    series = Series(regime=regime, quantity=quantity, against=against, settings=settings)
    return Panel(name=name, series=(series,), sketches=sketches)


def _variance(
    name: str, regime: str, *, sketches: int, at: Setting, repetitions: int = 2, **sweeps: list[int]
) -> Panel:
    """Three sweeps through one point: N, P (nested samples) and L (shared moments)."""
    axes = {
        "N": [at.but(N=N) for N in sweeps["N"]],
        "P": [replace(at, P=P, eval_length=None) for P in sweeps["P"]],
        "R": [replace(at, schedule=at.schedule.with_steps(L)) for L in sweeps["L"]],
    }
    return Panel(
        name=name,
        series=tuple(
            Series(regime=regime, quantity="variance", against=against, settings=tuple(settings))
            for against, settings in axes.items()
        ),
        sketches=sketches,
        repetitions=repetitions,
        reference=at,
    )


def _thinned(panel: Panel) -> Panel:
    """Every second point, one sketch."""
    series = tuple(replace(series, settings=series.settings[::2]) for series in panel.series)
    return replace(panel, series=series, sketches=1)
