"""The averaged covariance that a student trains on, mode by mode."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from seqlaw.answers.answer import Answer, fields_of
from seqlaw.answers.render import Block, Table
from seqlaw.answers.risk import parameters
from seqlaw.answers.style import COLOURS, Axes, mark, tidy
from seqlaw.answers.words import Side, describe_teacher
from seqlaw.methods.equivalent import equivalent_risk
from seqlaw.methods.rates import rates
from seqlaw.methods.spectrum import FARTHEST, averaged_spectrum
from seqlaw.methods.spectrum import AveragedSpectrum as Averaged
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.flags import Flag
from seqlaw.model.setting import Setting
from seqlaw.model.signature import checked
from seqlaw.model.teacher import Modes

NO_NUMBER = (ArithmeticError, ValueError, RuntimeError, np.linalg.LinAlgError)
"""What is raised where double precision ends (overflow, a logarithm of zero, a root not found), a trace
diverges or modes are arrays."""
_NAMES = ("j", "initial", "innovation", "total")


@dataclass(frozen=True, kw_only=True, eq=False)
class AveragedSpectrum(Answer, Averaged):
    """h_P with its two parts, where they cross, how far training reaches and how much it learns."""

    setting: Setting
    command: ClassVar[str] = "spectrum"
    pictures: ClassVar[tuple[int, float, float]] = (1, 5.2, 3.8)

    @cached_property
    def learned(self) -> float | None:
        """The dimensions that training learns, where the sums converge."""
        with suppress(*NO_NUMBER):
            return float(equivalent_risk(self.setting).diagnostics["learned_dimensions"])
        return None

    @cached_property
    def orders(self) -> dict[str, float]:
        """The theorem's crossovers, where the exponents allow them."""
        with suppress(*NO_NUMBER):
            return rates(self.setting).crossovers
        return {}

    @property
    def modes(self) -> list[dict[str, Any]]:
        """h_P and its parts at each mode."""
        columns = zip(self.j.astype(int), self.initial, self.innovation, self.total, strict=True)
        return [dict(zip(_NAMES, values, strict=True)) for values in columns]

    def inputs(self) -> Mapping[str, Any]:
        return {"setting": self.setting}

    def fields(self) -> Mapping[str, Any]:
        marks = {"crossing": self.crossing, "kappa": self.kappa, "M": self.setting.M}
        return {
            "rows": self.modes,
            "marks": marks | {"learned_dimensions": self.learned, "orders": self.orders},
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        setting = self.setting
        yield from self._words()
        yield describe_teacher(setting.teacher)
        yield Table(
            rows=[tuple(row.values()) for row in self.modes],
            header=("mode j", *_NAMES[1:3], "h_P"),
            title=f"Regime {setting.regime}: averaged covariance h_P at P={setting.P} (exact to rounding)",
        )

    def _words(self) -> Iterable[str]:
        """Where the parts cross, how far training reaches, and the theorem's orders of both."""
        setting, orders = self.setting, self.orders
        if self.crossing is not None:
            yield (
                f"The initial and the innovation part of h_P are equal at mode {self.crossing:.4g}"
                f"{self._order('m_P')}."
            )
        elif not isinstance(setting.teacher, Modes):
            yield (
                "The initial and the innovation part of h_P do not cross up to mode "
                f"{min(setting.d or 1, FARTHEST):g}."
            )
        if self.kappa is not None:
            R = setting.schedule.horizon
            words = (
                f"By the paper's guide at R = {R:g}, training learns the modes up to kappa = {self.kappa:.4g}"
            )
            yield f"{words}{self._order('kappa')}."
        if self.learned is not None:
            yield f"It learns {self.learned:.4g} dimensions (relative error about 1/M)."
        if "P_M" in orders:
            yield (
                "By the theorem, without constants, approx stops falling with P at "
                f"P_M = {orders['P_M']:.4g}, and bias stops depending on P at P_R = {orders['P_R']:.4g}."
            )

    def _order(self, name: str) -> str:
        value = self.orders.get(name)
        return "" if value is None else f" (the theorem, without constants: {name} = {value:.4g})"

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        return [parameters(self.setting) | row for row in self.modes]

    def flagged(self) -> Sequence[Flag]:
        return setting_flags(self.setting)

    def draw(self, axes: Sequence[Axes]) -> None:
        """h_P and its two parts, with the crossing (the paper's m_P), the cutoff κ and the width M marked."""
        (place,) = axes
        place.plot(self.j, self.initial, color=COLOURS["bias"], linestyle="--", label="initialization")
        place.plot(self.j, self.innovation, color=COLOURS["approx"], linestyle="-.", label="innovations")
        place.plot(self.j, self.total, color=COLOURS["reducible"], label="$h_P$, their sum")
        top = float(self.total.max())
        place.set_ylim(max(float(self.total.min()) / 30, top * 1e-14), top * 3)
        for name, mode in (("$m_P$", self.crossing), ("κ", self.kappa), ("$M$", float(self.setting.M))):
            if mode is not None and 1 <= mode <= self.j[-1]:
                mark(place, mode, name)
        title = f"Regime {self.setting.regime}: averaged covariance at P = {self.setting.P}"
        tidy(place, "mode j", "variance", title)
        place.legend(frameon=False, fontsize="small")


@checked
def spectrum(setting: Setting, *, points: int = 24, last: int | None = None) -> AveragedSpectrum:
    """The averaged covariance h_P that a student trains on, at modes evenly spaced in the logarithm.

    Parameters
    ----------
    setting
        The teacher and P, and M and the schedule for the marks.
    points
        About how many modes.
    last
        The last mode; by default 30 times as far as M, the crossing and κ lie, within d.

    Returns
    -------
    AveragedSpectrum
        `.j`, `.initial`, `.innovation` and `.total` as arrays, with `.crossing` and `.kappa`.

    Examples
    --------
    >>> from seqlaw import Setting, spectrum
    >>> setting = Setting(teacher="regime2", M=16, N=64, P=8, d=256, schedule="wsd")
    >>> spectrum(setting, points=3, last=100).j
    array([  1.,  10., 100.])
    """
    return AveragedSpectrum(
        **fields_of(averaged_spectrum(setting, points=points, last=last), setting=setting)
    )
