"""The options that commands share, each written once, and how they become settings."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Annotated, Any, TypeVar

import typer

from seqlaw.answers.glossary import WORDS
from seqlaw.answers.style import check_path
from seqlaw.files import load_lengths, load_uncertain, make_schedule
from seqlaw.model.checks import InputError, real, whole
from seqlaw.model.lengths import Length, Lengths, parse
from seqlaw.model.schedule import GAMMA, STEPS, Schedule
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import MODES, NUMBERS, Modes, Teacher
from seqlaw.model.threads import cores
from seqlaw.model.uncertain import Uncertain, middles

OPTIONS = {
    "M": "-M/--width",
    "N": "-N/--trajectories",
    "P": "-P/--length",
    "d": "-d/--modes",
    "L": "-L/--steps",
    "R": "-R/--horizon",
    "kind": "--schedule",
    "beta": "--momentum",
    "file": "FILE",
    "X": "FILE",
    "safeguard": "--no-safeguard",
}
"""Fields whose option has another name; the rest are --field with dashes."""


def option_of(field: str) -> str:
    """The option that sets a field: Teacher.c_xi → --c-xi; what is in a file keeps its name."""
    owner, _, name = field.rpartition(".")
    if not name.isidentifier() or owner == "Modes" or ".toml" in field or ".npz" in field:
        return field
    return OPTIONS.get(name, "--" + name.replace("_", "-"))


def size(field: str, text: str, *, infinite: bool = False) -> float:
    """A whole number written 4096, 4_096 or 1e9; `inf` where the command allows it."""
    if infinite and text.strip().lower() in ("inf", "infinity"):
        return math.inf
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise InputError(field, "must be a number", text) from None
    if number.is_finite() and number == number.to_integral_value() and number.adjusted() < 50:
        return whole(field, int(number))  # 1e30 is 10^30, not the nearest binary number
    return whole(field, float(number))


def interval(field: str, text: str) -> tuple[float, float]:
    """Two numbers written 1.7:1.9."""
    low, colon, high = text.partition(":")
    if not colon or ":" in high:
        raise InputError(field, "must be a number or an interval such as 1.7:1.9", text)
    return real(field, low), real(field, high)


Seed = Annotated[int, typer.Option(help="Seed of every random number.")]
Cost = Annotated[
    str, typer.Option(help="Compute of a run: arithmetic in M, N, P, L, linear in N.", metavar="FORMULA")
]
Json = Annotated[bool, typer.Option("--json", help="One JSON document on standard output.")]
Plot = Annotated[
    str | None,
    typer.Option(
        help="Draw a picture: png, pdf or svg.",
        metavar="FILE",
        callback=lambda path: path and str(check_path(path)),
    ),
]
Jobs = Annotated[int | None, typer.Option(help="Cores to use.  [default: all]")]
Device = Annotated[
    str | None, typer.Option(help="cuda for a GPU (exact, sampled).  [default: cpu]", metavar="cpu|cuda")
]


Width = Annotated[
    str | None,
    typer.Option(
        "--width",
        "-M",
        help="Width M of the student.  [default: 128, at most a quarter of the modes]",
        metavar="INT",
    ),
]
ModeCount = Annotated[
    str | None,
    typer.Option("--modes", "-d", help=f"Latent dimensions d.  [default: {MODES}]", metavar="INT|inf"),
]

Mixture = Annotated[
    str | None,
    typer.Option(
        help="A mixture: `16:0.7,1024:0.3`, shares of the tokens, or a file of lengths.",
        metavar="P:SHARE,…|FILE",
    ),
]
Window = Annotated[
    str | None, typer.Option(help="Context window that cuts the documents of the file.", metavar="INT")
]


def load_mixture(lengths: str | None, window: str | None) -> Lengths | None:
    """The mixture of --lengths, cut by --window."""
    if lengths is None:
        if window is not None:
            raise InputError("window", "goes with a file of lengths", window)
        return None
    return load_lengths(lengths, None if window is None else int(size("window", window)))


def modes_or_default(modes: str | None, teacher: Teacher | Modes) -> float | None:
    """d as it was given; else 1024 for a power law, and what the arrays have for arrays."""
    if modes is None:
        return None if isinstance(teacher, Modes) else MODES
    return size("d", modes, infinite=True)


def width_or_default(width: str | None, teacher: Teacher | Modes, d: float | None) -> int:
    """M as it was given; else 128, or a quarter of the modes if that is less."""
    if width is not None:
        return int(size("M", width))
    modes = teacher.d if isinstance(teacher, Modes) else d or MODES
    return int(min(128, max(1, modes / 4)))


def jobs_or_all(jobs: int | None) -> int:
    """The number of workers: all cores unless told."""
    return cores() if jobs is None else whole("jobs", jobs)


@dataclass(frozen=True, kw_only=True)
class TeacherOptions:
    """Which teacher."""

    teacher: Annotated[
        str, typer.Option(help="A preset (regime1, regime2), or a TOML/NPZ file.", metavar="NAME|FILE")
    ] = "regime2"
    alpha: Annotated[
        str | None, typer.Option(help="Exponent of the innovation spectrum.", metavar="NUMBER")
    ] = None
    theta: Annotated[str | None, typer.Option(help="Exponent of the initial spectrum.", metavar="NUMBER")] = (
        None
    )
    r: Annotated[str | None, typer.Option("--r", help="Exponent of the transition.", metavar="NUMBER")] = None
    rho: Annotated[str | None, typer.Option(help="Largest transition eigenvalue.", metavar="NUMBER")] = None
    c_xi: Annotated[str | None, typer.Option(help="Scale of the innovations.", metavar="NUMBER")] = None
    c_0: Annotated[
        str | None, typer.Option("--c-0", help="Scale of the initial states.", metavar="NUMBER")
    ] = None

    def build_teacher(self, rule: str = "must be one number here; plan takes intervals") -> Teacher | Modes:
        """The teacher; of a file with intervals that in the middle. `rule` is broken by LOW:HIGH."""
        for name, text in self._given().items():
            if ":" in text:
                raise InputError(name, rule, text)
        found = self.build_uncertain()
        return found.teacher if isinstance(found, Uncertain) else found

    def build_uncertain(self) -> Teacher | Modes | Uncertain:
        """The teacher, uncertain where a number is written LOW:HIGH or the file has an interval of it."""
        found, given = load_uncertain(self.teacher), self._given()
        if isinstance(found, Modes):
            for name, text in given.items():
                raise InputError(name, "cannot change a teacher given as arrays", text)
            return found
        teacher, known = (found.teacher, found.intervals) if isinstance(found, Uncertain) else (found, {})
        intervals = {name: pair for name, pair in known.items() if name not in given}
        spans = {name: interval(name, text) for name, text in given.items() if ":" in text}
        numbers = {name: real(name, text) for name, text in given.items() if name not in spans}
        teacher = dataclasses.replace(teacher, **numbers, **(middles(spans) if spans else {}))
        return Uncertain(teacher=teacher, intervals=intervals | spans) if intervals or spans else teacher

    def _given(self) -> dict[str, str]:
        """The numbers that were given, as they were typed."""
        texts = {name: getattr(self, name) for name in NUMBERS}
        return {name: text for name, text in texts.items() if text is not None}


@dataclass(frozen=True, kw_only=True)
class KindOptions:
    """Which kind of schedule."""

    schedule: Annotated[
        str, typer.Option(help="wsd, block, constant, cosine, or your own by import path.", metavar="NAME")
    ] = "wsd"
    gamma: Annotated[
        str, typer.Option(help="Peak step size; in one pass also `best`.", metavar="NUMBER|best")
    ] = str(GAMMA)
    warmup: Annotated[float | None, typer.Option(help="wsd: warm-up fraction.  [default: 0.1]")] = None
    decay: Annotated[
        float | None,
        typer.Option(help="wsd: fraction at the end that decays, exponentially.  [default: 0.2]"),
    ] = None

    @property
    def tune(self) -> bool:
        """Whether the step is to be the best one."""
        return self.gamma.strip().lower() == "best"

    def build_kind(self, L: float | None = 10**6, R: float | None = None) -> Schedule:
        """The schedule with L steps or horizon R; a plan chooses its own L, and who tunes γ its step."""
        gamma = GAMMA if self.tune else real("gamma", self.gamma)
        return make_schedule(self.schedule, gamma=gamma, L=L, R=R, shape=self.shape())

    def shape(self) -> dict[str, float | None]:
        """The fields beside the peak step and the steps."""
        return {"warmup": self.warmup, "decay": self.decay}


@dataclass(frozen=True, kw_only=True)
class PlainScheduleOptions(KindOptions):
    """A kind of schedule without momentum, and its steps or its horizon."""

    steps: Annotated[
        str | None, typer.Option("--steps", "-L", help=f"Steps L.  [default: {STEPS}]", metavar="INT")
    ] = None
    horizon: Annotated[
        float | None, typer.Option("--horizon", "-R", help=f"Instead of steps: {WORDS['horizon']}.")
    ] = None

    def build_schedule(self) -> Schedule:
        if self.horizon is None:
            return self.build_kind(L=size("L", self.steps or str(STEPS)))
        if self.steps is not None:
            raise InputError("R", "cannot be given together with -L/--steps", self.horizon)
        return self.build_kind(L=None, R=self.horizon)


@dataclass(frozen=True, kw_only=True)
class ScheduleOptions(PlainScheduleOptions):
    """A schedule, with momentum if wanted."""

    momentum: Annotated[float | None, typer.Option(help="constant: momentum such as 0.9, heavy ball.")] = None
    nesterov: Annotated[bool, typer.Option("--nesterov", help="Nesterov's momentum instead.")] = False

    def shape(self) -> dict[str, float | None]:
        return super().shape() | {"beta": self.momentum, "nesterov": self.nesterov or None}


@dataclass(frozen=True, kw_only=True)
class SizeOptions:
    """The four sizes and where the student is tested."""

    width: Width = None
    trajectories: Annotated[
        str | None,
        typer.Option(
            "--trajectories",
            "-N",
            help="Training trajectories N.  [default: 4096; with a batch it is batch · L]",
            metavar="INT",
        ),
    ] = None
    length: Annotated[
        str | None, typer.Option("--length", "-P", help="Trajectory length P.  [default: 64]", metavar="INT")
    ] = None
    lengths: Mixture = None
    window: Window = None
    phases: Annotated[
        str | None,
        typer.Option(
            help="Lengths that change instead: `2:0.9,4096:0.1`, shares of the steps.", metavar="P:SHARE,…"
        ),
    ] = None
    modes: ModeCount = None
    eval_length: Annotated[
        str | None,
        typer.Option(help="Length P' of the test sequences.  [default: P, as in the paper]", metavar="INT"),
    ] = None

    def build_length(self) -> Length:
        """P, a mixture, or phases."""
        given = {name: getattr(self, name) for name in ("length", "lengths", "phases")}
        named = [name for name, text in given.items() if text is not None]
        if len(named) > 1:
            raise InputError(named[1], f"cannot be given together with --{named[0]}", given[named[1]])
        mixture = load_mixture(self.lengths, self.window)
        if mixture is not None:
            return mixture
        if self.phases is not None:
            return parse(self.phases, phases=True)
        return int(size("P", self.length or "64"))


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """One pass."""

    batch: Annotated[
        str | None,
        typer.Option(
            help="Fresh trajectories a step (one pass).  [default: all N, every step]", metavar="INT"
        ),
    ] = None
    epochs: Annotated[
        int,
        typer.Option(
            help="How often each sequence is used; shuffled anew each time (sampled method beyond 1)."
        ),
    ] = 1
    safeguard: Annotated[
        bool,
        typer.Option(
            "--safeguard/--no-safeguard", help=f"With it {WORDS['safeguard']}. Without it: one pass only."
        ),
    ] = True

    def one_pass(self) -> dict[str, Any]:
        """The fields of a Setting."""
        batch = None if self.batch is None else int(size("batch", self.batch))
        return {"batch": batch, "epochs": self.epochs, "safeguard": self.safeguard}


@dataclass(frozen=True, kw_only=True)
class SettingOptions(SizeOptions, BatchOptions, ScheduleOptions, TeacherOptions):
    """Everything that makes a Setting."""

    def build(self) -> Setting:
        teacher, one_pass = self.build_teacher(), self.one_pass()
        if self.tune and one_pass["batch"] is None:
            raise InputError("gamma", "can be best in one pass only (give --batch)", self.gamma)
        default = "4096" if one_pass["batch"] is None else None
        given, d = self.trajectories or default, modes_or_default(self.modes, teacher)
        return Setting(
            teacher=teacher,
            M=width_or_default(self.width, teacher, d),
            N=None if given is None else int(size("N", given)),
            P=self.build_length(),
            d=d,
            schedule=self.build_schedule(),
            eval_length=None if self.eval_length is None else int(size("eval_length", self.eval_length)),
            **one_pass,
        )


F = TypeVar("F", bound=Callable[..., None])


def takes(options: type[Any]) -> Callable[[F], F]:
    """Mark a command as one that gets a dataclass of options, its first argument (see `cli.register`)."""

    def mark(command: F) -> F:
        command.__dict__["takes"] = options
        return command

    return mark
