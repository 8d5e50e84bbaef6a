"""The trained method: a student of any network and optimizer, trained by mini-batches step after step."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

import numpy as np

from seqlaw.methods.drawn import by_setting, indices, summarise
from seqlaw.methods.method import Draws, Method, Progress
from seqlaw.methods.one_pass import descent
from seqlaw.methods.one_pass.step import stepped
from seqlaw.methods.terms import Risk, Row, columns, with_sums
from seqlaw.methods.trained.training import Key, Student, Tell, beyond_linear, train
from seqlaw.methods.workbench import Workbench
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import Array, InputError
from seqlaw.model.device import Device, device_of, in_memory
from seqlaw.model.flags import flag
from seqlaw.model.preconditioned import refused
from seqlaw.model.setting import Setting
from seqlaw.model.sketch import weighted_square

_TOGETHER, _MOST_HELD = 16, 2**27
"""Students side by side, and numbers of the sequences that they hold together."""
_TUNING = -1
"""The sketch that steps are tuned on, which no count draws: rows are not made of what chose their step."""
STEPS = 2.0 ** -np.arange(3, 11)
"""Peak steps that are tried for optimizers whose steps have a size of their own."""
OF_STABLE = 2.0 ** np.arange(1, -6, -1)
"""Those of plain descent on a network, in units of 1/‖G‖, half of what a linear student bears."""


class _Step(NamedTuple):
    """A peak step for scaled inputs; whether it was tuned, and whether it is an end of those tried."""

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
    lengths_on_card: ClassVar[bool] = True
    draws: ClassVar[tuple[str, ...]] = ("sketches", "repetitions")
    library: ClassVar[tuple[str, str] | None] = ("torch", "gpu")
    counts: ClassVar[str] = "tokens"
    population: ClassVar[bool] = True
    expectation: ClassVar[str] = "exact"

    def risks(
        self, settings: Sequence[Setting], draws: Draws, *, progress: Progress | None = None
    ) -> list[Risk]:
        found = by_setting(settings, self.rows(settings, draws, progress))
        return [_risk(setting, rows) for setting, rows in found]

    def rows(self, settings: Sequence[Setting], draws: Draws, progress: Progress | None = None) -> list[Row]:
        """One row for each setting, sketch and repetition; settings that differ in their test train once.

        `progress(done, total)` counts tokens. A row depends on its seed, sketch and repetition alone.
        """
        trainings: dict[Setting, list[int]] = {}
        for point, one in enumerate(settings):
            if (refusal := self.refuses(one)) is not None:
                raise refusal
            trainings.setdefault(one.but(eval_length=None, position=None), []).append(point)
        keys = [
            (draws.seed, sketch, repetition)
            for sketch in indices("sketches", draws.sketches)
            for repetition in indices("repetitions", draws.repetitions)
        ]
        device, rows = device_of(draws.device or "torch"), list[Row]()
        assert device is not None
        seen = _Seen(progress, sum(_tokens(one) * (len(_tried(one)) + len(keys)) for one in trainings))
        with in_memory(device):
            for training, points in trainings.items():
                steps = _steps(device, training, [settings[point] for point in points], draws.seed, seen)
                by_step: dict[_Step | None, list[int]] = {}
                for point, step in zip(points, steps, strict=True):
                    by_step.setdefault(step, []).append(point)
                seen.total += (len(by_step) - 1) * _tokens(training) * len(keys)
                together = max(1, min(_TOGETHER, int(_MOST_HELD // descent.held(training))))
                for step, members in by_step.items():
                    asked = [(point, settings[point]) for point in members]
                    for first in range(0, len(keys), together):
                        part = keys[first : first + together]
                        rows += _rows(device, training, asked, part, step, seen)
        return sorted(rows, key=lambda row: (row["point"], row["sketch"], row["repetition"]))

    def work(self, settings: Sequence[Setting], draws: Draws) -> float:
        """Also 10^9 products in three seconds, one for each parameter and token, and a millisecond a step."""
        runs, found = draws.count("sketches") * draws.count("repetitions"), super().work(settings, draws)
        for one in settings:
            all_runs, size = (
                runs + len(_tried(one)),
                one.network.parameters(one.M) if one.network else one.M**2,
            )
            found += 3e-9 * all_runs * _tokens(one) * ((one.d or 0) + size)
            found += 1e-3 * math.ceil(all_runs / _TOGETHER) * one.schedule.L
        return found

    def refuses(self, setting: Setting) -> InputError | None:
        if (refusal := super().refuses(setting)) is not None:
            return refusal
        if setting.batch is None:
            rule = "must be given on this method, which trains by mini-batches"
            return InputError("batch", rule, None)
        if not setting.schedule.entire or setting.schedule.weight_decay:
            return refused(setting.schedule, "must be left out on this method")
        return descent.too_large(setting)


class _Seen:
    """The tokens seen so far, told about a hundred times."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self.progress, self.total, self.done, self.told = progress, total, 0, 0

    def __call__(self, tokens: int) -> None:
        self.done += tokens
        if self.progress is not None and (self.done - self.told) * 100 >= self.total:
            self.told = self.done
            self.progress(self.done, self.total)


def _tokens(training: Setting) -> int:
    """All that one student sees."""
    return int(training.tokens) * training.epochs


def _scale(training: Setting, bench: Workbench) -> float:
    """The root mean square of what a student sees, over entries and positions."""
    problem = bench.problem(training.stages[0].P)
    return math.sqrt(float(problem.eigenvalues.sum()) / training.M)


def _tried(training: Setting) -> Array:
    """The peak steps to choose from, in their units; none where the schedule or the optimizer has its own."""
    if training.optimizer is None:
        return OF_STABLE if training.network is not None else STEPS[:0]
    return STEPS if training.optimizer.step is None else STEPS[:0]


def _steps(
    device: Device, training: Setting, tests: Sequence[Setting], seed: int, tell: Tell
) -> list[_Step | None]:
    """The step for each test, as given or the best of a list on a sketch apart; None for the schedule's own.

    All steps are tried at once on the same data. All positions share the step of the training length.
    """
    if not len(tried := _tried(training)):
        given = None if training.optimizer is None else training.optimizer.step
        return [None if given is None else _Step(given)] * len(tests)
    bench = Workbench(training.modes, training.M, sketch=_TUNING, seed=seed)
    scale = _scale(training, bench)
    if training.optimizer is None:
        tried = tried * scale**2 / float(bench.problem(training.stages[0].P).eigenvalues[-1])
    students = [Student(key=(seed, _TUNING, 0), S=bench.S, scale=scale, step=size) for size in tried.tolist()]
    flat, found = train(device, training, students, tell), dict[Setting, _Step]()
    tests = [one.but(position=None) for one in tests]
    for one in dict.fromkeys(tests):
        problems = [bench.problem(one.test_length)] * len(tried)
        best = int(np.argmin(beyond_linear(device, one, students, flat, problems)))
        found[one] = _Step(students[best].step, tuned=True, edge=best in (0, len(tried) - 1))
    return [found[one] for one in tests]


def _rows(
    device: Device,
    training: Setting,
    asked: Sequence[tuple[int, Setting]],
    keys: Sequence[Key],
    step: _Step | None,
    tell: Tell,
) -> list[Row]:
    """Train once, test as each of those asked (by point) is tested."""
    benches = {
        sketch: Workbench(training.modes, training.M, sketch=sketch, seed=seed)
        for seed, sketch in dict.fromkeys(key[:2] for key in keys)
    }
    students = []
    for key in keys:
        bench = benches[key[1]]
        scale, own = _scale(training, bench), None if step is None else step.size
        if own is None:
            safe = stepped(training, [bench.nodes(P) for P, *_ in training.stages])
            own = safe.schedule.gamma * scale**2
        students.append(Student(key=key, S=bench.S, scale=scale, step=own))
    flat, rows = train(device, training, students, tell), []
    for point, one in asked:
        tests = [benches[key[1]].problem(one.test_length) for key in keys]
        beyond = beyond_linear(device, one, students, flat, tests)
        for student, test, more in zip(students, tests, beyond, strict=True):
            terms = {"irreducible": test.irreducible, "approx": test.approx, "bias": 0.0, "variance": 0.0}
            row = with_sums(terms | {"cross": more})
            untrained = test.approx + weighted_square(test.B_star, test.G) / 2
            about = {
                "gamma": student.step / student.scale**2 if step is None else step.size,
                "tuned": float(step is not None and step.tuned),
                "edge": float(step is not None and step.edge),
                "diverged": float(not row["reducible"] <= untrained),
            }
            _, sketch, repetition = student.key
            named = {"method": Trained.name, "point": point, "sketch": sketch, "repetition": repetition}
            rows.append(named | columns(one) | row | about)
    return rows


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
