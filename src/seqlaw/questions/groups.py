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
from seqlaw.planning.budget import PAPER_COST
from seqlaw.questions.options import (
    BUDGET,
    COUNT,
    FLAG,
    INTERVAL,
    METHOD,
    NUMBER,
    POSITIVE,
    SIZE,
    SIZE_OR_INF,
    STEP,
    STUDENT,
    TEACHER,
    TEXT,
    TRAINING,
    Slider,
    option,
)
from seqlaw.questions.question import Question

SETTING = inspect.signature(Setting).parameters
"""What a setting is made of: a field of this name goes into it as it is."""
Interval = float | tuple[float, float] | None
_EXPONENT = Slider(low=0.5, high=4, step=0.01)
_SCALE = Slider(low=1e-4, high=10)
_FRACTION = Slider(low=0.01, high=0.9, step=0.01)


def of_teacher(name: str, help: str, words: str, slider: Slider) -> Any:
    """One of the six numbers of a power law."""
    return option(
        None,
        f"--{name.replace('_', '-')}",
        help,
        INTERVAL,
        TEACHER,
        metavar="NUMBER",
        words=words,
        slider=slider,
    )


@dataclass(frozen=True, kw_only=True)
class OfTeacher(Question):
    """Which teacher."""

    teacher: str = option(
        "regime2", "--teacher",
        "regime1, regime2, or your file: .toml with the six numbers below, .toml or .npz with the arrays a, "
        "sigma_xi and sigma_0.", TEXT, TEACHER,
        metavar="NAME|FILE", choices=tuple(PRESETS),
    )  # fmt: skip
    alpha: Interval = of_teacher(
        "alpha", "Exponent of the innovation spectrum.", "innovation exponent", _EXPONENT
    )
    theta: Interval = of_teacher("theta", "Exponent of the initial spectrum.", "initial exponent", _EXPONENT)
    r: Interval = of_teacher(
        "r", "Exponent of the transition.", "transition exponent", Slider(low=0, high=1, step=0.01)
    )
    rho: Interval = of_teacher(
        "rho", "Largest transition eigenvalue.", "largest transition", Slider(low=0.01, high=0.99, step=0.01)
    )
    c_xi: Interval = of_teacher("c_xi", "Scale of the innovations.", "innovation scale", _SCALE)
    c_0: Interval = of_teacher("c_0", "Scale of the initial states.", "initial scale", _SCALE)

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


def peak_step(default: float | str, *, best: bool = True) -> Any:
    """The option of the peak step size; `best` may be its value."""
    help = "Peak step size, or `best`: the one of least risk." if best else "Peak step size."
    kind, slider = STEP if best else POSITIVE, Slider(low=1e-3, high=1)
    return option(default, "--gamma", help, kind, TRAINING, words="peak step", slider=slider)


@dataclass(frozen=True, kw_only=True)
class OfKind(Question):
    """Which kind of learning-rate schedule, and its peak step."""

    schedule: str = option(
        "wsd", "--schedule", f"{', '.join(SCHEDULES)}, or your own by import path.", TEXT, TRAINING,
        metavar="NAME", choices=tuple(SCHEDULES), words="schedule",
    )  # fmt: skip
    gamma: float | str = peak_step(GAMMA, best=False)

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
        None, "--warmup", "wsd: warm-up fraction.", NUMBER, TRAINING,
        unless="0.1", words="warm-up fraction", slider=_FRACTION,
    )  # fmt: skip
    decay: float | None = option(
        None, "--decay", "wsd: last fraction of the steps, with exponential decay.", NUMBER, TRAINING,
        unless="0.2", words="decay fraction", slider=_FRACTION,
    )  # fmt: skip

    def shape(self) -> dict[str, float | None]:
        return super().shape() | {"warmup": self.warmup, "decay": self.decay}


@dataclass(frozen=True, kw_only=True)
class OfSteps(OfKind):
    """A kind of schedule, and its steps or its horizon."""

    L: int | None = option(
        None, "-L/--steps", "Steps L.", SIZE, TRAINING,
        unless=str(STEPS), words="steps", slider=Slider(low=10, high=1e9),
    )  # fmt: skip
    R: float | None = option(
        None, "-R/--horizon", f"Instead of steps: {WORDS['horizon']}.", NUMBER, TRAINING,
        words="horizon", slider=Slider(low=1, high=1e8),
    )  # fmt: skip

    def build_schedule(self, L: float | None = None, R: float | None = None) -> Schedule:
        if self.R is None:
            return super().build_schedule(L=STEPS if self.L is None else self.L)
        if self.L is not None:
            raise InputError("R", "cannot be given together with -L/--steps", self.R)
        return super().build_schedule(L=None, R=self.R)


@dataclass(frozen=True, kw_only=True)
class OfMomentum(OfKind):
    """Momentum of the constant schedule."""

    momentum: float | None = option(
        None, "--momentum", "constant: momentum such as 0.9, heavy ball.", NUMBER, TRAINING,
        words="momentum", slider=Slider(low=0, high=0.99, step=0.01, left="", placeholder="none"),
    )  # fmt: skip
    nesterov: bool = option(
        False, "--nesterov", "Nesterov's momentum instead.", FLAG, TRAINING, words="Nesterov's"
    )

    def shape(self) -> dict[str, float | None]:
        return super().shape() | {"beta": self.momentum, "nesterov": self.nesterov or None}


def batch(help: str) -> Any:
    """The option of the mini-batch."""
    more = {"unless": "all N, every step", "words": "sequences a step", "slider": Slider(low=1, high=1e6)}
    return option(None, "--batch", help, SIZE, TRAINING, **more)


@dataclass(frozen=True, kw_only=True)
class OfBatch(Question):
    """Mini-batches in place of the full batch."""

    batch: int | None = batch("Train once through the data: so many fresh sequences a step.")
    epochs: int = option(
        1, "--epochs", "With a batch: how often each of the N sequences is used.", SIZE, TRAINING,
        words="epochs of the mini-batches",
    )  # fmt: skip
    safeguard: bool = option(
        True, "--safeguard/--no-safeguard", "With a batch: reduce a step that would diverge.", FLAG, TRAINING,
        words="as given, without the safeguard",
    )  # fmt: skip


def width(default: str, **more: Any) -> Any:
    """The option of the width."""
    more = {"words": "width", "slider": Slider(low=1, high=1e5)} | more
    return option(None, "-M/--width", "Width M of the student.", SIZE, STUDENT, unless=default, **more)


def trajectories(default: int | None = 4096, **more: Any) -> Any:
    """The option of the number of trajectories."""
    more = {"words": "trajectories", "slider": Slider(low=1, high=1e9)} | more
    return option(default, "-N/--trajectories", "Training trajectories N.", SIZE, STUDENT, **more)


def length(default: int | None = 64, **more: Any) -> Any:
    """The option of the training length."""
    more = {"words": "length", "slider": Slider(low=2, high=1e6)} | more
    return option(default, "-P/--length", "Trajectory length P.", SIZE, STUDENT, **more)


def modes(default: str, **more: Any) -> Any:
    """The option of the latent dimensions."""
    more = {"words": "latent modes", "slider": Slider(low=16, high=1e6, right="inf")} | more
    return option(None, "-d/--modes", "Latent dimensions d.", SIZE_OR_INF, STUDENT, unless=default, **more)


def test_length(default: str, **more: Any) -> Any:
    """The option of the test length."""
    slider = Slider(low=2, high=1e6, left="", placeholder="own length")
    more = {"words": "test length", "slider": slider} | more
    help = "Length P' of the test sequences."
    return option(None, "--eval-length", help, SIZE, STUDENT, unless=default, **more)


def mixture(help: str = "A mixture: `16:0.7,1024:0.3`, shares of the tokens, or a file of lengths.") -> Any:
    """The option of several lengths."""
    return option(None, "--lengths", help, TEXT, STUDENT, metavar="P:SHARE,…|FILE", web=False)


def window() -> Any:
    """The option of the context window."""
    return option(
        None, "--window", "Context window that cuts the documents of the file.", SIZE, STUDENT, web=False
    )


def optimizer() -> Any:
    """The option of the optimizer."""
    return option(
        None, "--optimizer", f"sgd, {', '.join(OPTIMIZERS)} (sampled, trained).", TEXT, TRAINING,
        metavar="NAME", unless="sgd", web=False,
    )  # fmt: skip


def network() -> Any:
    """The option of the kind of student."""
    return option(
        None, "--network", f"The student: linear, {', '.join(NETWORKS)} (trained method).", TEXT, STUDENT,
        metavar="NAME", unless="linear", web=False,
    )  # fmt: skip


def network_size(name: str, help: str) -> Any:
    """The option of a network's width or depth."""
    usual = ", ".join(f"{kind} {getattr(sizes, name)}" for kind, sizes in NETWORKS.items())
    return option(None, f"--{name}", help, SIZE, STUDENT, unless=usual, web=False)


@dataclass(frozen=True, kw_only=True)
class OfStudent(OfTeacher):
    """A student's width and modes, in a teacher."""

    M: int | None = width("128, at most a quarter of the modes")
    d: float | None = modes(str(MODES))

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
        0.0, "--precondition", "Multiply gradients by G^-p, G the data's covariance: p from 0 to 0.9.",
        NUMBER, TRAINING,
        words="preconditioner's power p", slider=Slider(low=0, high=0.9, step=0.05),
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class OfSetting(OfPower, OfMomentum, OfShape, OfBatch, OfSteps, OfStudent):
    """Everything that makes a Setting."""

    gamma: float | str = peak_step(GAMMA)
    N: int | None = trajectories(None, unless="4096; with a batch it sets the steps, L = epochs · N/batch")
    P: int | None = length(None, unless="64")
    eval_length: int | None = test_length("P, as in the paper")
    position: int | None = option(
        None, "--position", "Test one position p of sequences instead: 0 is the first.", COUNT, STUDENT,
        web=False,
    )  # fmt: skip
    lengths: str | None = mixture()
    window: int | None = window()
    phases: str | None = option(
        None, "--phases", "Lengths that change: `2:0.9,4096:0.1`, shares of the steps.", TEXT, STUDENT,
        metavar="P:SHARE,…", web=False,
    )  # fmt: skip

    weight_decay: float = option(0.0, "--weight-decay", "Weight decay.", NUMBER, TRAINING, web=False)
    optimizer: str | None = optimizer()
    network: str | None = network()
    hidden: int | None = network_size("hidden", "Hidden width of the network.")
    depth: int | None = network_size("depth", "Layers of the network.")

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
        if self.tune and self.R is not None:
            raise InputError("gamma", "must be a number with -R/--horizon, whose steps it sets", self.gamma)
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


def seed(**more: Any) -> Any:
    """The option of the seed."""
    return option(0, "--seed", "Seed of every random number.", COUNT, METHOD, words="seed", **more)


@dataclass(frozen=True, kw_only=True)
class OfMethod(Question):
    """Which method, and what it draws."""

    method: str = option(
        "equivalent", "--method", f"{', '.join(METHODS)}, or your own by import path.", TEXT, METHOD,
        metavar="NAME|MODULE:NAME", web=False,
    )  # fmt: skip
    sketches: int = option(
        4, "--sketches", "Sketches to average over (random methods).", SIZE, METHOD, words="sketches"
    )
    repetitions: int = option(
        2, "--repetitions", "Data sets a sketch (sampled method).", SIZE, METHOD, words="data sets a sketch"
    )
    seed: int = seed()
    workers: int | None = option(
        None, "--jobs", "Cores to use.", SIZE, METHOD, unless="all", web=False, echo=False
    )
    device: str | None = option(
        None, "--device", "cuda for a GPU (exact, sampled, trained).", TEXT, METHOD,
        metavar="cpu|cuda", unless="cpu", web=False,
    )  # fmt: skip

    def cores(self) -> int:
        """The number of workers: all cores unless told."""
        return self.workers or cores()


def cost(**more: Any) -> Any:
    """The option of the cost of a run."""
    help = "Compute of a run: arithmetic in M, N, P, L, linear in N."
    return option(PAPER_COST, "--cost", help, TEXT, BUDGET, metavar="FORMULA", **more)
