"""The risk at one point and along one size; the theorem and the spectrum at a point."""

from __future__ import annotations

from dataclasses import dataclass, replace

from seqlaw.answers.answer import Answer
from seqlaw.answers.curve import Curve as CurveAnswer
from seqlaw.answers.curve import curve
from seqlaw.answers.rates import rates
from seqlaw.answers.risk import risk
from seqlaw.answers.spectrum import spectrum
from seqlaw.methods import ask
from seqlaw.methods.method import AXES, SHORT, letters
from seqlaw.model.checks import InputError, whole
from seqlaw.model.flags import flag
from seqlaw.model.setting import Setting
from seqlaw.questions.groups import OfMethod, OfMomentum, OfSetting, OfShape, OfSteps, OfStudent
from seqlaw.questions.options import RANGE, Slider, like, option
from seqlaw.questions.question import Call, Progress


@dataclass(frozen=True, kw_only=True)
class Risk(OfMethod, OfSetting):
    """The five terms of the student's risk at one point."""

    command = "risk"
    example = "seqlaw risk --teacher regime2 -M 64 -P 32 --eval-length 256"
    unit = "data sets"

    def call(self) -> Call:
        return self.passed(risk, setting=self.setting(), workers=self.cores(), tune=self.tune)


@dataclass(frozen=True, kw_only=True)
class Curve(OfMethod, OfSetting):
    """The terms along one size, with the log–log slope of each."""

    command = "curve"
    example = "seqlaw curve --along M --from 12 --to 512 --teacher regime1"
    unit = "data sets"
    pictured = True

    along: str = option(
        "P", f"The size to vary: {letters()}.", RANGE, metavar="SIZE",
        choices=("M", "N", "P", "R", "b", "epochs", "position"),
    )  # fmt: skip
    start: float = option(2.0, "First value.", RANGE, names="--from")
    stop: float = option(4096.0, "Last value.", RANGE, names="--to")
    points: int = option(12, "How many values, evenly spaced in the logarithm.", RANGE, words="points")
    tokens: int | None = option(
        None, "One pass: tokens batch·P·L at every point; the steps follow.", RANGE, words="tokens b·P·L",
        slider=Slider(100, 1e12),
    )  # fmt: skip
    sampled: int | None = option(
        None, "Also sample this many points of the curve.", RANGE, unless="none", web=False
    )

    def call(self) -> Call:
        setting, values = self.setting(), self.values()
        if self.tokens is not None and (self.L or self.R):
            raise InputError("tokens", "set the steps: leave out -L/--steps and -R/--horizon", self.tokens)
        if self.tokens is not None and self.batch is not None and self.N is not None:
            raise InputError("tokens", "set the sequences: leave out -N/--trajectories", self.tokens)
        self._check_ends(setting, values)
        return self.passed(curve, setting=setting, values=values, workers=self.cores(), tune=self.tune)

    def ask(self, progress: Progress | None = None) -> Answer:
        found = super().ask(progress)
        values = self.values()
        if len(values) < self.points and isinstance(found, CurveAnswer):
            once = flag("coincide", points=self.points, values=len(values))
            return replace(found, refused=(*found.refused, once))
        return found

    def values(self) -> list[float]:
        """Evenly spaced in the logarithm, positions in that of p + 1; all are whole but R."""
        axis = SHORT.get(self.along, self.along)
        least = 0 if axis == "position" else 1
        if axis != "R":
            for name in ("start", "stop"):
                whole(name, getattr(self, name), least=least)
        if axis != "position" and not 0 < self.start < self.stop:
            raise InputError("stop", "must be above the start, which must be positive", self.stop)
        return ask.spaced(axis, self.start, self.stop, self.points)

    def _check_ends(self, setting: Setting, values: list[float]) -> None:
        """Where an end of the range is at fault, the error names the end."""
        if SHORT.get(self.along, self.along) not in AXES:
            return
        for end, value in (("stop", values[-1]), ("start", values[0])):
            try:
                ask.along(setting, self.along, [value], tokens=self.tokens)
            except InputError as error:
                if error.field in ("along", "tokens"):
                    raise
                raise InputError(end, error.rule, error.value) from None


@dataclass(frozen=True, kw_only=True)
class Spectrum(OfMomentum, OfShape, OfSteps, OfStudent):
    """The averaged spectrum h_P and its two parts, mode by mode.

    Initialization, innovations, where they cross, how far training reaches (kappa) and how many dimensions it
    learns.
    """

    command = "spectrum"
    example = "seqlaw spectrum --teacher regime2 -P 64 -d inf --to 1e4"
    pictured = True

    P: int = like(OfSetting, "P", 64, unless="")
    last: int | None = option(
        None, "Last mode.", RANGE, names="--to", unless="30 times beyond M, the crossing and kappa"
    )
    points: int = option(24, "How many modes, evenly spaced in the logarithm.", RANGE)

    def setting(self) -> Setting:
        return self.build(self.build_schedule(), N=4096)  # N has no part in it

    def call(self) -> Call:
        return self.passed(spectrum, setting=self.setting())


@dataclass(frozen=True, kw_only=True)
class Rates(OfMomentum, OfSteps, OfStudent):
    """The theorem at one point: exponents, crossovers, conditions."""

    command = "rates"
    example = "seqlaw rates --teacher regime2 -M 512 -N 65536 -P 16 -R 1200"
    verbose = True

    N: int = like(OfSetting, "N", 4096, unless="")
    P: int = like(OfSetting, "P", 64, unless="")
    nesterov: bool = False  # no option: the horizon is the heavy ball's

    def call(self) -> Call:
        return self.passed(rates, setting=self.build(self.build_schedule()))
