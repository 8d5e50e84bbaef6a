"""`seqlaw ladder`: lengths that change."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Annotated

import typer

from seqlaw.answers.ladder import ladder as best_ladder
from seqlaw.answers.ladder_curve import ladder_curve
from seqlaw.answers.ladder_map import ladder_map
from seqlaw.cli.options import (
    Json,
    PlainScheduleOptions,
    Plot,
    Seed,
    TeacherOptions,
    size,
    takes,
)
from seqlaw.cli.output import show
from seqlaw.model.checks import InputError, positive, real, whole
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import Modes
from seqlaw.planning.ladder import CANDIDATES
from seqlaw.planning.ladder_map import HORIZONS, TESTS

_WIDTH, _MODES = 96, 768


def _listing(numbers: Iterable[int]) -> str:
    return ",".join(map(str, numbers))


@dataclasses.dataclass(frozen=True, kw_only=True)
class LadderOptions(PlainScheduleOptions, TeacherOptions):
    """A student whose lengths are what is asked for."""

    width: Annotated[
        str | None,
        typer.Option("--width", "-M", help=f"Width M of the student.  [default: {_WIDTH}]", metavar="INT"),
    ] = None
    modes: Annotated[
        str | None,
        typer.Option("--modes", "-d", help=f"Latent dimensions d.  [default: {_MODES}]", metavar="INT"),
    ] = None
    batch: Annotated[
        str | None,
        typer.Option(
            help="One pass: sequences a step at the longest candidate; the others have as many tokens.",
            metavar="INT",
        ),
    ] = None


@takes(LadderOptions)
def ladder(
    options: LadderOptions,
    tokens: Annotated[str, typer.Option(help="Tokens to train on.", metavar="NUMBER")] = "16777216",
    test: Annotated[
        list[str] | None,
        typer.Option(
            "--test",
            "--eval-length",
            help="Length of the test sequences; with --map may be repeated.  [default: 4096]",
            metavar="INT",
        ),
    ] = None,
    candidates: Annotated[
        str | None,
        typer.Option(
            help=f"Lengths to choose from.  [default: {_listing(CANDIDATES)}, with --shares 2,4096]",
            metavar="P,P,…",
        ),
    ] = None,
    most_phases: Annotated[int, typer.Option(help="Phases of a ladder, lengths of a mixture, at most.")] = 2,
    sketches: Annotated[
        int | None, typer.Option(help="Sketches to average over.  [default: 8, in a map or curve 4]")
    ] = None,
    diagram: Annotated[
        bool,
        typer.Option("--map", help="The phase diagram instead: two phases over horizons and test lengths."),
    ] = False,
    shares: Annotated[
        str | None,
        typer.Option(
            help="The curve instead: two candidates, at these shares of the longer.", metavar="SHARE,…"
        ),
    ] = None,
    horizons: Annotated[
        str | None,
        typer.Option(help="Map: numbers of steps.  [default: seven from 1e3 to 1e7]", metavar="L,L,…"),
    ] = None,
    seed: Seed = 0,
    json: Json = False,
    plot: Plot = None,
) -> None:
    """Lengths that change: the best length, mixture and ladder.

    A ladder is lengths in phases: short first and long last, say. All have the same tokens, steps and
    schedule, and one test. With --map the phase diagram, by default tested at 16, 128 and 4096; its picture
    has the other preset beside a preset. With --shares two candidates, short first, long first and mixed.

    Example: seqlaw ladder --tokens 1e8 --eval-length 1024 --candidates 2,32,1024
    """
    if options.tune:
        raise InputError("gamma", "must be a number here: one step serves all lengths", options.gamma)
    teacher, tests = options.build_teacher(), [int(size("test", text)) for text in test or ()]
    if len(tests) > 1 and not diagram:
        raise InputError("test", "can be repeated with --map only", len(tests))
    setting = Setting(
        teacher=teacher,
        M=int(size("M", options.width)) if options.width else _width(teacher),
        d=None if isinstance(teacher, Modes) else size("d", options.modes or str(_MODES)),
        N=1 if options.batch is None else None,
        batch=None if options.batch is None else int(size("batch", options.batch)),
        P=2,
        schedule=options.build_schedule(),
        eval_length=tests[0] if tests else 4096,
    )
    budget = whole("tokens", positive("tokens", tokens), least=2)
    lengths = _listed("candidates", candidates or ("2,4096" if shares else _listing(CANDIDATES)))
    if diagram:
        if shares is not None:
            raise InputError("shares", "cannot be given with --map", shares)
        steps = HORIZONS if horizons is None else _listed("horizons", horizons)
        shown = ladder_map(
            setting,
            budget,
            candidates=lengths,
            horizons=steps,
            tests=tests or TESTS,
            sketches=4 if sketches is None else sketches,
            seed=seed,
        )
        show(shown, as_json=json, plot=plot)
        return
    if horizons is not None:
        raise InputError("horizons", "go with --map", horizons)
    if setting.batch is not None and (options.steps or options.horizon):
        raise InputError(
            "tokens", "set the steps with --batch: leave out -L/--steps and -R/--horizon", tokens
        )
    if shares is not None:
        curve = ladder_curve(
            setting,
            budget,
            candidates=lengths,
            shares=[real("shares", part) for part in shares.split(",")],
            sketches=4 if sketches is None else sketches,
            seed=seed,
        )
        show(curve, as_json=json, plot=plot)
        return
    answer = best_ladder(
        setting,
        budget,
        candidates=lengths,
        most_phases=most_phases,
        sketches=8 if sketches is None else sketches,
        seed=seed,
    )
    show(answer, as_json=json, plot=plot)


def _listed(field: str, text: str) -> list[int]:
    return [int(size(field, part)) for part in text.split(",")]


def _width(teacher: object) -> int:
    return min(_WIDTH, max(1, teacher.d // 4)) if isinstance(teacher, Modes) else _WIDTH
