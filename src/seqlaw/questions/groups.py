"""Options that questions share: the teacher, the student and its data, the training, the method."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from seqlaw.answers.glossary import WORDS
from seqlaw.files import load_lengths, load_uncertain, make_schedule
from seqlaw.methods.ask import METHODS
from seqlaw.model.checks import InputError
from seqlaw.model.lengths import Length, Lengths, parse
from seqlaw.model.network import NETWORKS, as_network
from seqlaw.model.optimizer import OPTIMIZERS
from seqlaw.model.schedule import GAMMA, SCHEDULES, STEPS, Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import MODES, NUMBERS, PRESETS, Modes, Teacher
from seqlaw.model.threads import cores
from seqlaw.model.uncertain import Uncertain, middles
from seqlaw.questions.options import (
    COUNT,
    INTERVAL,
    METHOD,
    POSITIVE,
    SIZE_OR_INF,
    STEP,
    STUDENT,
    TEACHER,
    TRAINING,
    Interval,
    Slider,
    like,
    option,
)
from seqlaw.questions.question import Question

SETTING = inspect.signature(Setting).parameters
"""What a setting is made of: a field of this name goes into it as it is."""
_EXPONENT = Slider(0.5, 4, 0.01)
_SCALE = Slider(1e-4, 10)
_FRACTION = Slider(0.01, 0.9, 0.01)


def _number(help: str, words: str, slider: Slider) -> Any:
    """One of the six numbers of a power law."""
    return option(None, help, TEACHER, metavar="NUMBER", words=words, slider=slider)


@dataclass(frozen=True, kw_only=True)
class OfTeacher(Question):
    """Which teacher."""

    teacher: str = option(
        "regime2", "regime1, regime2, or your file: .toml with the six numbers below, .toml or .npz with the "
        "arrays a, sigma_xi and sigma_0.", TEACHER, metavar="NAME|FILE", choices=tuple(PRESETS),
    )  # fmt: skip
    alpha: Interval = _number("Exponent of the innovation spectrum.", "innovation exponent", _EXPONENT)
    theta: Interval = _number("Exponent of the initial spectrum.", "initial exponent", _EXPONENT)
    r: Interval = _number("Exponent of the transition.", "transition exponent", Slider(0, 1, 0.01))
    rho: Interval = _number("Largest transition eigenvalue.", "largest transition", Slider(0.01, 0.99, 0.01))
    c_xi: Interval = _number("Scale of the innovations.", "innovation scale", _SCALE)
    c_0: Interval = _number("Scale of the initial states.", "initial scale", _SCALE)

    def build_teacher(self, rule: str = "must be one number here; plan takes intervals") -> Teacher | Modes:
        """The teacher; of a file with intervals that in the middle. `rule` is broken by LOW:HIGH."""
        for name, value in self._numbers().items():
            if isinstance(value, tuple):
                raise InputError(name, rule, INTERVAL.write(value))
        found = self.build_uncertain()
        return found.teacher if isinstance(found, Uncertain) else found

    def build_uncertain(self) -> Teacher | Modes | Uncertain:
        """The teacher, uncertain where a number is an interval or the file has an interval of it."""
        found, given = load_uncertain(self.teacher), self._numbers()
        if isinstance(found, Modes):
            for name, value in given.items():
                raise InputError(name, "cannot change a teacher given as arrays", INTERVAL.write(value))
            return found
        teacher, known = (found.teacher, found.intervals) if isinstance(found, Uncertain) else (found, {})
        intervals = {name: pair for name, pair in known.items() if name not in given}
        spans = {name: value for name, value in given.items() if isinstance(value, tuple)}
        numbers = {name: value for name, value in given.items() if name not in spans}
        teacher = replace(teacher, **numbers, **(middles(spans) if spans else {}))
        return Uncertain(teacher=teacher, intervals=intervals | spans) if intervals or spans else teacher

    def _numbers(self) -> dict[str, Any]:
        """The numbers that were given."""
        return {name: getattr(self, name) for name in NUMBERS if getattr(self, name) is not None}

    def plainly(self) -> Self:
        """A teacher that is a preset by its name, and numbers that are the preset's left out."""
        short = super().plainly()
        for name, preset in PRESETS.items():
            if self.teacher in PRESETS and self.build_uncertain() == preset:
                alone: dict[str, Any] = {"teacher": name, **dict.fromkeys(NUMBERS)}
                return replace(short, **alone)
        same = [
            name for name in NUMBERS if getattr(PRESETS.get(self.teacher), name, None) == getattr(self, name)
        ]
        unsaid: dict[str, Any] = dict.fromkeys(same)
        return replace(short, **unsaid)


@dataclass(frozen=True, kw_only=True)
class OfKind(Question):
    """Which kind of learning-rate schedule, and its peak step."""

    schedule: str = option(
        "wsd", f"{', '.join(SCHEDULES)}, or your own by import path.", TRAINING, metavar="NAME",
        choices=tuple(SCHEDULES), words="schedule",
    )  # fmt: skip
    gamma: float | str = option(
        GAMMA, "Peak step size.", TRAINING, kind=POSITIVE, words="peak step", slider=Slider(1e-3, 1)
    )

    @property
    def tune(self) -> bool:
        """Whether the step is to be the best one."""
        return bool(self.gamma == "best")

    def build_schedule(self, L: float | None = 10**6, R: float | None = None) -> Schedule:
        """The schedule with L steps or horizon R; a plan chooses its own L, and who tunes γ its step."""
        gamma = GAMMA if isinstance(self.gamma, str) else self.gamma
        return make_schedule(self.schedule, gamma=gamma, L=L, R=R, shape=self.shape())

    def shape(self) -> dict[str, float | None]:
        """The fields beside the peak step and the steps."""
        return {}


@dataclass(frozen=True, kw_only=True)
class OfShape(OfKind):
    """How a wsd schedule rises and falls."""

    warmup: float | None = option(
        None, "wsd: warm-up fraction.", TRAINING, unless="0.1", words="warm-up fraction", slider=_FRACTION
    )
    decay: float | None = option(
        None, "wsd: last fraction of the steps, with exponential decay.", TRAINING, unless="0.2",
        words="decay fraction", slider=_FRACTION,
    )  # fmt: skip

    def shape(self) -> dict[str, float | None]:
        return super().shape() | {"warmup": self.warmup, "decay": self.decay}


@dataclass(frozen=True, kw_only=True)
class OfSteps(OfKind):
    """A kind of schedule, and its steps or its horizon."""

    L: int | None = option(
        None, "Steps L.", TRAINING, names="-L/--steps", unless=str(STEPS), words="steps",
        slider=Slider(10, 1e9),
    )  # fmt: skip
    R: float | None = option(
        None, f"Instead of steps: {WORDS['horizon']}.", TRAINING, names="-R/--horizon", words="horizon",
        slider=Slider(1, 1e8),
    )  # fmt: skip

    def build_schedule(self, L: float | None = None, R: float | None = None) -> Schedule:
        if self.R is None:
            return super().build_schedule(L=STEPS if self.L is None else self.L)
        if self.tune:
            raise InputError("gamma", "must be a number with -R/--horizon, whose steps it sets", self.gamma)
        if self.L is not None:
            raise InputError("R", "cannot be given together with -L/--steps", self.R)
        return super().build_schedule(L=None, R=self.R)


@dataclass(frozen=True, kw_only=True)
class OfMomentum(OfKind):
    """Momentum of the constant schedule."""

    momentum: float | None = option(
        None, "constant: momentum such as 0.9, heavy ball.", TRAINING, words="momentum",
        slider=Slider(0, 0.99, 0.01, left="", placeholder="none"),
    )  # fmt: skip
    nesterov: bool = option(False, "Nesterov's momentum instead.", TRAINING, words="Nesterov's")

    def shape(self) -> dict[str, float | None]:
        return super().shape() | {"beta": self.momentum, "nesterov": self.nesterov or None}


@dataclass(frozen=True, kw_only=True)
class OfBatch(Question):
    """Mini-batches in place of the full batch."""

    batch: int | None = option(
        None, "Train once through the data: so many fresh sequences a step.", TRAINING,
        unless="all N, every step", words="sequences a step", slider=Slider(1, 1e6),
    )  # fmt: skip
    epochs: int = option(
        1, "With a batch: how often each of the N sequences is used.", TRAINING,
        words="epochs of the mini-batches", slider=Slider(1, 64),
    )  # fmt: skip
    safeguard: bool = option(
        True, "With a batch: reduce a step that would diverge.", TRAINING,
        names="--safeguard/--no-safeguard", words="as given, without the safeguard",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class OfStudent(OfTeacher):
    """A student's width and modes, in a teacher."""

    M: int | None = option(
        None, "Width M of the student.", STUDENT, names="-M/--width",
        unless="128, at most a quarter of the modes", words="width", slider=Slider(1, 1e5),
    )  # fmt: skip
    d: float | None = option(
        None, "Latent dimensions d.", STUDENT, names="-d/--modes", kind=SIZE_OR_INF, unless=str(MODES),
        words="latent modes", slider=Slider(16, 1e6, right="inf"),
    )  # fmt: skip

    def sizes(self, teacher: Teacher | Modes) -> dict[str, Any]:
        """M and d: as given, or 128 of 1024, fewer where there are few modes."""
        d = self.d if self.d is not None or isinstance(teacher, Modes) else MODES
        known = teacher.d if isinstance(teacher, Modes) else d or MODES
        return {"d": d, "M": int(min(128, max(1, known / 4))) if self.M is None else self.M}

    def build(self, schedule: Schedule, **more: Any) -> Setting:
        """The setting: every field that a setting has too, and `more`."""
        teacher = self.build_teacher()
        same = {f.name: getattr(self, f.name) for f in fields(self) if f.name in SETTING}
        return Setting(**same | {"teacher": teacher, "schedule": schedule} | self.sizes(teacher) | more)


@dataclass(frozen=True, kw_only=True)
class OfPower(Question):
    """A preconditioner."""

    precondition: float = option(
        0.0, "Multiply gradients by G^-p, G the data's covariance: p from 0 to 0.9.", TRAINING,
        words="preconditioner's power p", slider=Slider(0, 0.9, 0.05),
    )  # fmt: skip


def _of_network(name: str, help: str) -> Any:
    """The option of a network's width or depth."""
    usual = ", ".join(f"{kind} {getattr(sizes, name)}" for kind, sizes in NETWORKS.items())
    return option(None, help, STUDENT, unless=usual, web=False)


@dataclass(frozen=True, kw_only=True)
class OfSetting(OfPower, OfMomentum, OfShape, OfBatch, OfSteps, OfStudent):
    """Everything that makes a Setting."""

    gamma: float | str = like(
        OfKind, "gamma", GAMMA, help="Peak step size, or `best`: the one of least risk.", kind=STEP
    )
    N: int | None = option(
        None, "Training trajectories N.", STUDENT, names="-N/--trajectories",
        unless="4096; with a batch it sets the steps, L = epochs · N/batch", words="trajectories",
        slider=Slider(1, 1e9),
    )  # fmt: skip
    P: int | None = option(
        None, "Trajectory length P.", STUDENT, names="-P/--length", unless="64", words="length",
        slider=Slider(2, 1e6),
    )  # fmt: skip
    eval_length: int | None = option(
        None, "Length P' of the test sequences.", STUDENT, unless="P, as in the paper", words="test length",
        slider=Slider(2, 1e6, left="", placeholder="own length"),
    )  # fmt: skip
    position: int | None = option(
        None, "Test one position p of sequences instead: 0 is the first.", STUDENT, kind=COUNT, web=False
    )
    lengths: str | None = option(
        None, "A mixture: `16:0.7,1024:0.3`, shares of the tokens, or a file of lengths.", STUDENT,
        metavar="P:SHARE,…|FILE", web=False,
    )  # fmt: skip
    window: int | None = option(
        None, "Context window that cuts the documents of the file.", STUDENT, web=False
    )
    phases: str | None = option(
        None, "Lengths that change: `2:0.9,4096:0.1`, shares of the steps.", STUDENT, metavar="P:SHARE,…",
        web=False,
    )  # fmt: skip

    weight_decay: float = option(0.0, "Weight decay.", TRAINING, web=False)
    optimizer: str | None = option(
        None, f"sgd, {', '.join(OPTIMIZERS)} (sampled, trained).", TRAINING, metavar="NAME", unless="sgd",
        web=False,
    )  # fmt: skip

    network: str | None = option(
        None, f"The student: linear, {', '.join(NETWORKS)} (trained method).", STUDENT, metavar="NAME",
        unless="linear", web=False,
    )  # fmt: skip
    hidden: int | None = _of_network("hidden", "Hidden width of the network.")
    depth: int | None = _of_network("depth", "Layers of the network.")

    def build_length(self) -> Length:
        """P, a mixture, or phases."""
        given = {"length": self.P, "lengths": self.lengths, "phases": self.phases}
        named = [name for name, value in given.items() if value is not None]
        if len(named) > 1:
            raise InputError(named[1], f"cannot be given together with --{named[0]}", given[named[1]])
        several = load_mixture(self.lengths, self.window)
        if several is not None:
            return several
        if self.phases is not None:
            return parse(self.phases, phases=True)
        return 64 if self.P is None else self.P

    def setting(self) -> Setting:
        if self.N is not None and self.batch is not None and (self.L, self.R) != (None, None):
            raise InputError("N", "cannot be given with a batch and steps: L = epochs · N/batch", self.N)
        N = 4096 if self.N is None and self.batch is None else self.N
        network = as_network("network", self.network, hidden=self.hidden, depth=self.depth)
        return self.build(self.build_schedule(), N=N, P=self.build_length(), lengths=None, network=network)


def load_mixture(lengths: str | None, window: int | None) -> Lengths | None:
    """The mixture of --lengths, cut by --window."""
    if lengths is None:
        if window is not None:
            raise InputError("window", "goes with a file of lengths", window)
        return None
    return load_lengths(lengths, window)


@dataclass(frozen=True, kw_only=True)
class OfMethod(Question):
    """Which method, and what it draws."""

    method: str = option(
        "equivalent", f"{', '.join(METHODS)}, or your own by import path.", METHOD,
        metavar="NAME|MODULE:NAME", web=False,
    )  # fmt: skip
    sketches: int = option(4, "Sketches to average over (random methods).", METHOD, words="sketches")
    repetitions: int = option(2, "Data sets a sketch (sampled method).", METHOD, words="data sets a sketch")
    seed: int = option(0, "Seed of every random number.", METHOD, kind=COUNT, words="seed")
    workers: int | None = option(
        None, "Cores to use.", METHOD, names="--jobs", unless="all", web=False, echo=False
    )
    device: str | None = option(
        None, "cuda for a GPU (exact, sampled, trained).", METHOD, metavar="cpu|cuda", unless="cpu", web=False
    )

    def cores(self) -> int:
        """The number of workers: all cores unless told."""
        return self.workers or cores()

    def counted(self) -> str:
        return METHODS[self.method].counts if self.method in METHODS else self.unit
