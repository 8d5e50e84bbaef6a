"""`seqlaw risk` and `seqlaw curve`: the five terms at one point and along one size."""

from __future__ import annotations

from typing import Annotated

import typer

from seqlaw.cli.options import Jobs, Json, Plot, Seed, SettingOptions, jobs_or_all, size, takes
from seqlaw.cli.output import (
    merge_flags,
    number,
    print_flags,
    print_json,
    print_table,
    print_text,
    progress_bar,
)
from seqlaw.fit import fit_power_law
from seqlaw.model.amount import amount
from seqlaw.model.assumptions import setting_flags
from seqlaw.model.checks import InputError, real
from seqlaw.model.setting import Setting
from seqlaw.plot import check_path
from seqlaw.rungs import ask
from seqlaw.rungs.rows import columns, with_sums
from seqlaw.rungs.terms import SUMS, TERMS

Rung = Annotated[str, typer.Option(help=f"One of {', '.join(ask.RUNGS)}.", metavar="NAME")]
Sketches = Annotated[int, typer.Option(help="Sketches to average over (random rungs).")]
Repetitions = Annotated[int, typer.Option(help="Data sets a sketch (sampled rung).")]


@takes(SettingOptions)
def risk(
    options: SettingOptions,
    rung: Rung = "equivalent",
    sketches: Sketches = 4,
    repetitions: Repetitions = 2,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: Json = False,
) -> None:
    """The five terms of the student's risk at one point.

    Example: seqlaw risk --teacher regime2 -M 64 -P 32 --eval-length 256
    """
    setting = options.build()
    with progress_bar("data sets") as progress:
        answer = ask.risk(
            setting,
            rung=rung,
            sketches=sketches,
            repetitions=repetitions,
            seed=seed,
            workers=jobs_or_all(jobs),
            progress=progress,
        )
    if json:
        names = ("rung", "regime", *TERMS, *SUMS, "steps", "horizon", "eval_length")
        rest = ("standard_error", "accuracy", "diagnostics", "flags")
        print_json(
            "risk",
            {"setting": setting, "sketches": sketches, "repetitions": repetitions, "seed": seed},
            {name: getattr(answer, name) for name in (*names, *rest)},
        )
        return
    rows = [
        (
            name,
            getattr(answer, name),
            _uncertainty(answer.standard_error.get(name), answer.accuracy.get(name)),
        )
        for name in (*TERMS, *SUMS)
    ]
    title = (
        f"{regime_words(setting)}, rung {answer.rung}: {_sizes(setting)}, "
        f"tested at length {amount(answer.eval_length)}"
    )
    print_text(options.describe(setting.teacher))
    print_table(rows, header=("term", "value", "uncertainty"), title=title)
    print_flags(answer.flags)


def regime_words(setting: Setting) -> str:
    """The regime, and whether an assumption of the theorem fails."""
    outside = any(flag.startswith("assumption") for flag in setting_flags(setting))
    return f"Regime {setting.regime}{' (outside the theorem, see below)' if outside else ''}"


def _sizes(setting: Setting, without: str = "") -> str:
    """The sizes that are not varied."""
    text = " ".join(f"{name}={amount(getattr(setting, name))}" for name in "MNPd" if name != without)
    horizon = setting.schedule.horizon
    R = amount(horizon) if horizon == int(horizon) else number(horizon)
    return text if without == "R" else f"{text}, {amount(setting.schedule.L)} steps (R={R})"


def _uncertainty(error: float | None, accuracy: str | None) -> str:
    return accuracy or "" if error is None else f"± {error:.2g}"


@takes(SettingOptions)
def curve(
    options: SettingOptions,
    along: Annotated[
        str, typer.Option(help=f"The size to vary: {', '.join(ask.AXES)}.", metavar="SIZE")
    ] = "P",
    start: Annotated[str, typer.Option("--from", help="First value.", metavar="NUMBER")] = "2",
    stop: Annotated[str, typer.Option("--to", help="Last value.", metavar="NUMBER")] = "4096",
    points: Annotated[int, typer.Option(help="How many values, evenly spaced in the logarithm.")] = 12,
    rung: Rung = "equivalent",
    sketches: Sketches = 4,
    repetitions: Repetitions = 2,
    seed: Seed = 0,
    jobs: Jobs = None,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """The terms along one size, with the log–log slope of each.

    Example: seqlaw curve --along M --from 12 --to 512 --teacher regime1
    """
    if plot is not None:
        check_path(plot)
    setting = options.build()
    values = spaced(along, start, stop, points)
    settings = _points(setting, along, values)
    with progress_bar("data sets") as progress:
        answers = ask.risks(
            settings,
            rung=rung,
            sketches=sketches,
            repetitions=repetitions,
            seed=seed,
            workers=jobs_or_all(jobs),
            progress=progress,
        )
    rows = [
        columns(point) | with_sums({name: getattr(answer, name) for name in TERMS})
        for point, answer in zip(settings, answers, strict=True)
    ]
    slopes = {name: _slope(along, name, rows) for name in ("approx", "bias", "variance", "reducible")}
    kind = ask.error_name(rung)
    flags = merge_flags([answer.flags for answer in answers], along, [row[along] for row in rows])
    if plot is not None:
        from seqlaw.plot import draw_curve

        draw_curve(rows, along, answers, plot)
    if json:
        errors = [dict(answer.standard_error) for answer in answers]
        print_json(
            "curve",
            {"setting": setting, "along": along, "values": values, "rung": rung, "sketches": sketches}
            | {"repetitions": repetitions, "seed": seed},
            {
                "rows": [row | {"standard_error": error} for row, error in zip(rows, errors, strict=True)],
                "slopes": slopes,
                "se_is": kind,
                "accuracy": dict(answers[0].accuracy),
                "flags": flags,
            },
        )
        return
    names = ("approx", "bias", "variance", "cross", "reducible", "total")
    where = "its own length" if setting.eval_length is None else f"length {amount(setting.test_length)}"
    print_text(options.describe(setting.teacher))
    print_table(
        [(row[along], *(row[name] for name in names)) for row in rows],
        header=(along, *names),
        title=f"{regime_words(setting)}, rung {rung}: {_sizes(setting, along)}, tested at {where}",
    )
    mark = "± " if kind == "standard error" else ""
    print_table(
        # A constant term has the slope of its rounding, 1e-15: that is 0.
        [
            (name, round(fit["slope"], 12) + 0.0, f"{mark}{round(fit['se'], 12):.2g}")
            for name, fit in slopes.items()
            if fit is not None
        ],
        header=("term", f"slope against {along}", kind),
    )
    if kind == "curvature":
        print_text("Curvature: how far from a straight line on logarithmic axes, as an error of its slope.")
    print_flags(flags)


def spaced(along: str, start: str, stop: str, points: int) -> list[float]:
    """The values of `ask.spaced` between two numbers as they were typed: sizes are whole, R is not."""
    read = real if along == "R" else size
    return ask.spaced(along, read("from", start), read("to", stop), points)


def _points(setting: Setting, along: str, values: list[float]) -> list[Setting]:
    """The settings along a size; where an end of the range is at fault, the error names the end."""
    if along in ask.AXES:
        for end, value in (("to", values[-1]), ("from", values[0])):
            try:
                ask.along(setting, along, [value])
            except InputError as error:
                raise InputError(end, error.rule, error.value) from None
    return ask.along(setting, along, values)


def _slope(along: str, name: str, rows: list[dict[str, float]]) -> dict[str, float] | None:
    """The log–log slope, where the term is positive everywhere."""
    pairs = [(row[along], row[name]) for row in rows if row[name] > 0]
    if len(pairs) < max(3, len(rows)):
        return None
    fit = fit_power_law([x for x, _ in pairs], [y for _, y in pairs])
    return {"slope": fit.slope, "se": fit.se, "r2": fit.r2}
