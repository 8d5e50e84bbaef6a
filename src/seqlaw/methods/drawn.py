"""What the methods that draw share: rows first, their means after; and the cost of their sketches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

from seqlaw.methods.method import (
    Cost,
    Draws,
    Method,
    Progress,
    card_cost,
    one_length_only,
    sketch_memory,
)
from seqlaw.methods.rows import Row, families, summaries
from seqlaw.methods.terms import Risk
from seqlaw.model.device import WORTH, in_memory
from seqlaw.model.flags import flag
from seqlaw.model.lengths import parts
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import LARGEST_SHARED


class Drawn(Method):
    """Means over what is drawn."""

    @abstractmethod
    def drawn_rows(
        self, settings: Sequence[Setting], draws: Draws, progress: Progress | None = None
    ) -> list[Row]:
        """One measurement a row, in the order of the settings."""

    @abstractmethod
    def summary(self, setting: Setting, rows: Sequence[Row]) -> Risk:
        """The risk of a setting from its rows."""

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        found = summaries(settings, self._rows(settings, draws, progress), self.summary)
        return [self._told(*one, draws) for one in zip(settings, found, strict=True)]

    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        return self._rows(settings, draws, None)

    def _rows(self, settings: Sequence[Setting], draws: Draws, progress: Progress | None) -> list[Row]:
        one_length_only(settings, draws.device)  # before torch is asked for
        with in_memory(draws.device):
            return self.drawn_rows(settings, draws, progress)

    def _told(self, setting: Setting, risk: Risk, draws: Draws) -> Risk:
        """With a word on random numbers that are not the CPU's: data, and large sketches."""
        if draws.device is None:
            return risk
        if "repetitions" not in self.draws and setting.M * setting.modes.d <= LARGEST_SHARED:
            return risk
        return replace(risk, flags=(*risk.flags, flag("device-stream")))


def sketches_cost(
    settings: Sequence[Setting],
    draws: Draws,
    core: Callable[[int, float, set[int]], float],
    each: tuple[float, float],
) -> Cost:
    """`Cost` of settings that share sketches: `core` seconds of (M, d, lengths) a sketch, `each` a setting.

    On a card what `card_cost` says; `each` has the seconds on a core and there.
    """
    seconds, memory = 0.0, 0.0
    for family in families(settings):
        M, d = settings[family[0]].M, float(settings[family[0]].d or 0)
        lengths = {P for index in family for P, _ in parts(settings[index].P)}
        if draws.device and M * d >= WORTH:
            there = card_cost(M, d, len(lengths))
            one, held = there.seconds + each[1] * len(family), there.memory
        else:
            one, held = core(M, d, lengths) + each[0] * len(family), sketch_memory(M, d, len(family))
        seconds, memory = seconds + draws.count("sketches") * one, max(memory, held)
    return Cost(seconds=seconds, memory=memory)
