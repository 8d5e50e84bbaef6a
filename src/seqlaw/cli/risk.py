"""`seqlaw risk` and `seqlaw curve`: the five terms at one point and along one size."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Annotated, Any

import typer

from seqlaw.answers import curve as curves
from seqlaw.answers import risk as points
from seqlaw.answers.glossary import WORDS
from seqlaw.cli.options import Device, Jobs, Json, Plot, Seed, SettingOptions, jobs_or_all, size, takes
from seqlaw.cli.output import show
from seqlaw.cli.progress import Progress, progress_bar
from seqlaw.methods import ask
from seqlaw.methods.method import AXES, SHORT, letters
from seqlaw.methods.one_pass.tuning import tuned
from seqlaw.model.checks import InputError, positive, real, whole
from seqlaw.model.flags import flag
from seqlaw.model.setting import Setting


@dataclass(frozen=True, kw_only=True)
class MethodOptions:
    """Which method, and what it draws."""

    method: Annotated[
        str,
        typer.Option(
            help=f"{', '.join(ask.METHODS)}, or your own by import path. A method is {WORDS['method']}.",
            metavar="NAME|MODULE:NAME",
        ),
    ] = "equivalent"
    sketches: Annotated[int, typer.Option(help="Sketches to average over (random methods).")] = 4
    repetitions: Annotated[int, typer.Option(help="Data sets a sketch (sampled method).")] = 2
    seed: Seed = 0
    jobs: Jobs = None
    device: Device = None


@dataclass(frozen=True, kw_only=True)
class AskOptions(SettingOptions, MethodOptions):
    """A setting, and the method that answers."""

    progress: Progress = "auto"

    def how(self) -> dict[str, Any]:
        """The options of `risk` and `curve`."""
        names = ("method", "sketches", "repetitions", "seed", "device")
        return {name: getattr(self, name) for name in names} | {"workers": jobs_or_all(self.jobs)}


@takes(AskOptions)
def risk(options: AskOptions, json: Json = False) -> None:
    """The five terms of the student's risk at one point.

    Example: seqlaw risk --teacher regime2 -M 64 -P 32 --eval-length 256
    """
    setting = options.build()
    setting = tuned([setting])[0] if options.tune else setting
    with progress_bar("data sets", options.progress) as bar:
        answer = points.risk(setting, **options.how(), progress=bar)
    show(answer, as_json=json)


@takes(AskOptions)
def curve(
    options: AskOptions,
    along: Annotated[str, typer.Option(help=f"The size to vary: {letters()}.", metavar="SIZE")] = "P",
    start: Annotated[str, typer.Option("--from", help="First value.", metavar="NUMBER")] = "2",
    stop: Annotated[str, typer.Option("--to", help="Last value.", metavar="NUMBER")] = "4096",
    points: Annotated[int, typer.Option(help="How many values, evenly spaced in the logarithm.")] = 12,
    tokens: Annotated[
        str | None,
        typer.Option(help="One pass: tokens batch·P·L at every point; the steps follow.", metavar="NUMBER"),
    ] = None,
    sampled: Annotated[
        int | None,
        typer.Option(help="Points of the curve to sample too, laid over it.  [default: none]", metavar="INT"),
    ] = None,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """The terms along one size, with the log–log slope of each.

    Example: seqlaw curve --along M --from 12 --to 512 --teacher regime1
    """
    along, setting = SHORT.get(along, along), options.build()
    if tokens is not None and (options.steps or options.horizon):
        raise InputError("tokens", "set the steps: leave out -L/--steps and -R/--horizon", tokens)
    values = spaced(along, start, stop, points)
    spent = None if tokens is None else whole("tokens", positive("tokens", tokens))
    _check_ends(setting, along, values, spent)
    how = options.how() | {"tokens": spent, "tune": options.tune}
    with progress_bar("data sets", options.progress) as bar:
        answer = curves.curve(setting, along, values, **how, progress=bar, sampled=sampled)
    if len(values) < points:
        once = flag("coincide", points=points, values=len(values))
        answer = replace(answer, refused=(*answer.refused, once))
    show(answer, as_json=json, plot=plot)


def spaced(along: str, start: str, stop: str, points: int) -> list[float]:
    """The values of `ask.spaced` between two numbers as they were typed: sizes are whole, R is not."""
    read = real if along == "R" else size
    return ask.spaced(along, read("from", start), read("to", stop), points)


def _check_ends(setting: Setting, along: str, values: list[float], tokens: float | None) -> None:
    """Where an end of the range is at fault, the error names the end."""
    if along in AXES:
        for end, value in (("to", values[-1]), ("from", values[0])):
            try:
                ask.along(setting, along, [value], tokens=tokens)
            except InputError as error:
                if error.field in ("along", "tokens"):
                    raise
                raise InputError(end, error.rule, error.value) from None
