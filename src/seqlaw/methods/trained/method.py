"""The trained method: a student of any network and optimizer, trained by mini-batches step after step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from seqlaw.methods.drawn import by_setting, indices, summarise
from seqlaw.methods.method import Draws, Method, Progress
from seqlaw.methods.one_pass import descent
from seqlaw.methods.one_pass.step import stepped
from seqlaw.methods.terms import Risk, Row, columns, with_sums
from seqlaw.methods.trained.training import Key, Student, beyond_linear, trained
from seqlaw.methods.workbench import Workbench
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import InputError, library
from seqlaw.model.device import device_of, in_memory
from seqlaw.model.flags import flag
from seqlaw.model.preconditioned import refused
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import weighted_square

_TOGETHER = 16  # students side by side
_TUNING = -1
"""The sketch that steps are tuned on, which no count draws: rows are not made of what chose their step."""
STEPS = 2.0 ** -np.arange(3, 11)
"""Peak steps that are tried for optimizers whose steps have a size of their own."""
OF_STABLE = 2.0 ** np.arange(1, -6, -1)
"""Those of plain descent on a network, in units of 1/‖G‖, half of what a linear student bears."""


class _Step(NamedTuple):
    """A peak step; whether it was tuned, and whether it is an end of those tried."""

    size: float
    tuned: bool = False
    edge: bool = False


class Trained(Method):
    """Students trained with torch: a linear one, or a small network; one pass, or epochs."""

    name: ClassVar[str] = "trained"
    mixtures: ClassVar[bool] = True
    one_pass: ClassVar[bool] = True
    phases: ClassVar[bool] = True
    optimizers: ClassVar[bool] = True
    networks: ClassVar[bool] = True
    draws: ClassVar[tuple[str, ...]] = ("sketches", "repetitions")
    population: ClassVar[bool] = True
    expectation: ClassVar[str] = "exact"

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        found = by_setting(settings, self.rows(settings, draws, progress))
        return [_risk(setting, rows) for setting, rows in found]

    def rows(self, settings: Sequence[Setting], draws: Draws, progress: Progress | None = None) -> list[Row]:
        """One row for each setting, sketch and repetition; settings that differ in their test train once.

        `progress(done, total)` counts students. A row depends on its seed, sketch and repetition alone.
        """
        for setting in settings:
            if (refusal := self.refuses(setting)) is not None:
                raise refusal
        groups: dict[tuple[Setting, _Step | None], list[int]] = {}
        with in_memory(device_of(draws.device)):
            for k, one in enumerate(settings):
                groups.setdefault(
                    (_untested(one), _step(_tuned_on(one), draws.seed, draws.device)), []
                ).append(k)
            keys = [
                (draws.seed, sketch, repetition)
                for sketch in indices("sketches", draws.sketches)
                for repetition in indices("repetitions", draws.repetitions)
            ]
            rows, done, total = list[Row](), 0, len(keys) * len(groups)
            for (training, step), members in groups.items():
                for first in range(0, len(keys), _TOGETHER):
                    part = keys[first : first + _TOGETHER]
                    rows += _rows(training, [(k, settings[k]) for k in members], part, step, draws.device)
                    done += len(part)
                    if progress is not None:
                        progress(done, total)
        return sorted(rows, key=lambda row: (row["point"], row["sketch"], row["repetition"]))

    def work(self, settings: Sequence[Setting], draws: Draws) -> float:
        """Also some 10^9 products a second, three for each parameter and token, and the tuning."""
        runs = draws.count("sketches") * draws.count("repetitions") + len(STEPS)
        return super().work(settings, draws) + 3e-9 * runs * sum(
            float(one.tokens) * one.epochs * ((one.d or 0) + _parameters(one)) for one in settings
        )

    def refuses(self, setting: Setting) -> InputError | None:
        if (refusal := super().refuses(setting)) is not None:
            return refusal
        if setting.batch is None:
            rule = "must be given on this method, which trains by mini-batches"
            return InputError("batch", rule, None)
        if not setting.schedule.entire or setting.schedule.weight_decay:
            return refused(setting.schedule, "must be left out on this method")
        return descent.too_large(setting)


def _parameters(setting: Setting) -> int:
    return setting.M**2 if setting.network is None else setting.network.parameters(setting.M)


def _untested(setting: Setting) -> Setting:
    """The training alone."""
    return setting.but(eval_length=None, position=None)


def _tuned_on(setting: Setting) -> Setting:
    """The setting that chooses the step: of all positions the same, tested at the training length."""
    return setting.but(position=None)


def _benches(setting: Setting, keys: Sequence[Key]) -> dict[int, Workbench]:
    """One a sketch, by its number."""
    return {
        sketch: Workbench(setting.modes, setting.M, sketch=sketch, seed=seed)
        for seed, sketch in dict.fromkeys(key[:2] for key in keys)
    }


def _scale(setting: Setting, bench: Workbench) -> float:
    """The root mean square of what a student sees, over entries and positions."""
    problem = bench.problem(setting.stages[0].P)
    return math.sqrt(float(problem.eigenvalues.sum()) / setting.M)


def _where(device: str | None) -> tuple[Any, Any]:
    """Torch, and its word for the device."""
    torch, found = library("torch", "gpu"), device_of(device)
    return torch, torch.device("cpu") if found is None else found.where


def _given(setting: Setting, bench: Workbench, step: _Step | None) -> float:
    """A peak step in the units of scaled inputs; plain descent of a linear student has the schedule's."""
    if step is not None:
        return step.size
    safe = stepped(setting, [bench.nodes(P) for P, *_ in setting.stages])
    return safe.schedule.gamma * _scale(setting, bench) ** 2


def _rows(
    training: Setting,
    members: Sequence[tuple[int, Setting]],
    keys: Sequence[Key],
    step: _Step | None,
    device: str | None,
) -> list[Row]:
    """Train once, test as each member asks."""
    torch, where = _where(device)
    benches = _benches(training, keys)
    students = [
        Student(
            key=key,
            S=benches[key[1]].S,
            scale=_scale(training, benches[key[1]]),
            step=_given(training, benches[key[1]], step),
        )
        for key in keys
    ]
    flat, rows = trained(torch, where, training, students), []
    for point, one in members:
        tests = [benches[key[1]].problem(one.test_length) for key in keys]
        beyond = beyond_linear(torch, where, one, students, flat, tests)
        for student, test, more in zip(students, tests, beyond, strict=True):
            terms = {"irreducible": test.irreducible, "approx": test.approx, "bias": 0.0, "variance": 0.0}
            row = with_sums(terms | {"cross": more})
            untrained = test.approx + weighted_square(test.B_star, test.G) / 2
            about = {
                "gamma": student.step if step is not None else student.step / student.scale**2,
                "tuned": float(step is not None and step.tuned),
                "edge": float(step is not None and step.edge),
                "diverged": float(not row["reducible"] <= untrained),
            }
            _, sketch, repetition = student.key
            named = {"method": Trained.name, "point": point, "sketch": sketch, "repetition": repetition}
            rows.append(named | columns(one) | row | about)
    return rows


@lru_cache(maxsize=1024)  # the tests of one training share their step
def _step(setting: Setting, seed: int, device: str | None) -> _Step | None:
    """The step as given, or the best of a list on a sketch apart; None for the schedule's own.

    All steps are tried at once on the same data.
    """
    if setting.optimizer is None and setting.network is None:
        return None
    if setting.optimizer is not None and setting.optimizer.step is not None:
        return _Step(setting.optimizer.step)
    torch, where = _where(device)
    key = (seed, _TUNING, 0)
    [bench] = _benches(setting, [key]).values()
    scale = _scale(setting, bench)
    tried = STEPS
    if setting.optimizer is None:
        norm = float(bench.problem(setting.stages[0].P).eigenvalues[-1])
        tried = OF_STABLE * scale**2 / norm
    students = [Student(key=key, S=bench.S, scale=scale, step=float(step)) for step in tried]
    flat = trained(torch, where, setting, students)
    test = bench.problem(setting.test_length)
    beyond = beyond_linear(torch, where, setting, students, flat, [test] * len(students))
    best = int(np.argmin(beyond))
    return _Step(float(tried[best]), tuned=True, edge=best in (0, len(tried) - 1))


def _risk(setting: Setting, rows: Sequence[Row]) -> Risk:
    flags, first = [*setting_flags(setting), flag("trained-rest")], rows[0]
    if setting.optimizer is not None or setting.network is not None:
        name = "sgd" if setting.optimizer is None else setting.optimizer.name
        about = {"tuned": bool(first["tuned"]), "edge": bool(first["edge"]), "sketches": 1}
        flags.append(flag("optimizer-step", optimizer=name, gamma=first["gamma"], **about))
    if diverged := sum(row["diverged"] for row in rows):
        flags.append(flag("optimizer-diverged", diverged=diverged, rows=len(rows), gamma=first["gamma"]))
    if setting.epochs > 1:
        flags.append(flag("epochs", epochs=setting.epochs))
    assumed = ("bias", "variance")
    return summarise(Trained.name, setting, rows, diagnostics=("gamma",), flags=flags, assumed=assumed)
