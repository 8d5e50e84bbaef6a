"""A rung, its one-pass counterpart and the one for phases under one name: each setting goes to its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import chain

from seqlaw.methods.method import Cost, Draws, Method, Progress, one_length_only
from seqlaw.methods.rows import Row
from seqlaw.methods.terms import Risk
from seqlaw.model.checks import InputError
from seqlaw.model.device import in_memory
from seqlaw.model.flags import flag
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import LARGEST_SHARED


class Both(Method):
    """`full` answers settings without a batch, `one_pass` those with one, `phased` those with phases."""

    def __init__(self, full: Method, one_pass: Method, phased: Method | None = None) -> None:
        self.full, self.batched, self.phased = full, one_pass, phased
        names = ("name", "draws", "varies", "infinite", "population", "expectation")
        vars(self).update({name: getattr(full, name) for name in names})

    def _parts(self, settings: Sequence[Setting]) -> Iterator[tuple[Method, list[int]]]:
        parts: dict[Method, list[int]] = {}
        for k, one in enumerate(settings):
            parts.setdefault(self._for(one), []).append(k)
        yield from parts.items()

    def _for(self, setting: Setting) -> Method:
        if self.phased is not None and setting.lengths is not None and setting.lengths.phases:
            return self.phased
        return self.full if setting.batch is None else self.batched

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        self._check(settings, draws)
        found: dict[int, Risk] = {}
        for rung, part in self._parts(settings):
            with in_memory(draws.device):
                answers = rung.risks([settings[k] for k in part], draws, progress=progress)
            found |= dict(zip(part, answers, strict=True))
        return [self._told(settings[k], found[k], draws) for k in range(len(settings))]

    def _check(self, settings: Sequence[Setting], draws: Draws) -> None:
        """Here too, for the rungs of phases know of no device, and before torch is asked for."""
        if self.draws:
            one_length_only(settings, draws.device)

    def _told(self, setting: Setting, risk: Risk, draws: Draws) -> Risk:
        """With a word on random numbers that are not the CPU's: data, and large sketches."""
        if draws.device is None or not self.draws:
            return risk
        if "repetitions" not in self.draws and setting.M * setting.modes.d <= LARGEST_SHARED:
            return risk
        return replace(risk, flags=(*risk.flags, flag("device-stream")))

    def quick(self, settings: Sequence[Setting]) -> list[Risk]:
        found: dict[int, Risk] = {}
        for rung, part in self._parts(settings):
            found |= dict(zip(part, rung.quick([settings[k] for k in part]), strict=True))
        return [found[k] for k in range(len(settings))]

    def rows(self, settings: Sequence[Setting], draws: Draws) -> list[Row]:
        self._check(settings, draws)
        parts = (
            [row | {"point": part[row["point"]]} for row in rung.rows([settings[k] for k in part], draws)]
            for rung, part in self._parts(settings)
        )
        with in_memory(draws.device):
            # Stable: the rows of a point stay in the order of their sketches and repetitions.
            return sorted(chain.from_iterable(parts), key=lambda row: int(row["point"]))

    def cost(self, settings: Sequence[Setting], draws: Draws) -> Cost:
        costs = [rung.cost([settings[k] for k in part], draws) for rung, part in self._parts(settings)]
        return Cost(seconds=sum(one.seconds for one in costs), memory=max(one.memory for one in costs))

    def refuses(self, setting: Setting) -> InputError | None:
        return self._for(setting).refuses(setting)
