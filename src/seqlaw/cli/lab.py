"""`seqlaw sweep`, `seqlaw export` and `seqlaw fit`: many runs, their rows, and the slopes in them."""

from __future__ import annotations

import dataclasses
import os
import sys
from typing import Any

import typer

from seqlaw.answers.answer import named
from seqlaw.answers.render import Flagged, Table
from seqlaw.cli.output import Output, print_json, say, show, warn
from seqlaw.cli.progress import work_bar
from seqlaw.cli.rows import OPTION, column_names, say_what_is_left, selected, table_of
from seqlaw.fit import fit_power_law
from seqlaw.lab.run import Summary
from seqlaw.model.checks import InputError, real
from seqlaw.model.flags import Flag, flag
from seqlaw.questions.data import Fit
from seqlaw.questions.lab import Export, Reproduce, Sweep
from seqlaw.sweeping.file import load_sweep
from seqlaw.sweeping.run import Estimate, rows_of
from seqlaw.sweeping.run import sweep as run_sweep


def reproduce(question: Reproduce, output: Output) -> None:
    """Run the panels that are missing, and print the slopes."""
    call = question.call()
    with work_bar(output.progress) as bar:
        answer = call.function(**call.arguments, progress=bar.progress, step=bar.step, notice=warn)
    show(answer, question, output)


def sweep(question: Sweep, output: Output) -> None:
    """Run what is missing, and say what was done."""
    asked = load_sweep(question.file)
    asked = asked if question.device is None else dataclasses.replace(asked, device=question.device)
    gpu = asked.device == "cuda"
    workers = question.workers(asked.device if question.scheduler is None else None)
    ahead: list[Estimate] = []
    with work_bar(output.progress) as bar:

        def announce(found: Estimate) -> None:
            ahead.append(found)
            if not output.json:
                say(_ahead(found, workers, "GPU" if gpu else "core"))
                if found.merged:
                    say(_merged(found))
                sys.stdout.flush()

        call = question.passed(run_sweep, source=asked, jobs=workers, resume=_resuming(question))
        summary = run_sweep(
            **call.arguments, announce=announce, progress=bar.progress, watch=bar.watch, notice=warn
        )
    if output.json:
        inputs = named(question, "file", "out", "engine") | {"jobs": workers, "seed": asked.seed}
        result = named(summary, *(each.name for each in dataclasses.fields(Summary)))
        result |= {"estimate": dataclasses.asdict(ahead[0]), "dry_run": question.dry_run}
        print_json(question, inputs, result)
    elif not question.dry_run:
        _report(summary, question.out)
    if summary.failed and not question.dry_run:
        raise typer.Exit(1)


def _ahead(found: Estimate, workers: int, place: str) -> str:
    tasks = f"{found.tasks} task{'s' if found.tasks > 1 else ''}"
    if not found.left:
        return f"{tasks}, nothing to do"
    places = f"{workers} {place}{'s' if workers > 1 else ''}"
    return f"{tasks}, {found.left} to do on {places}; the largest: {found.largest}"


def _merged(found: Estimate) -> str:
    one = found.merged == 1
    return (
        f"{found.merged} point{'' if one else 's'} of the grid {'is' if one else 'are'} the same as "
        f"{'another' if one else 'others'} (rounded sizes, a test length equal to P) and "
        f"{'is' if one else 'are'} run once"
    )


def _resuming(question: Sweep) -> str:
    """What to type to go on, from any folder."""
    kept = dataclasses.replace(
        question,
        file=os.path.abspath(question.file),
        out=os.path.abspath(question.out),
        jobs=None,
        dry_run=False,
        retry_failed=False,
    )
    return kept.line()


def _report(summary: Summary, out: str) -> None:
    say(
        f"{summary.done} done, {summary.skipped} recorded before, {summary.failed} failed "
        f"in {summary.seconds:.1f} s: {out}"
    )
    say(*map(Flagged, others(summary.others)))
    if summary.failed:
        reasons = rows_of(out, None).failures["error"].value_counts()
        say(*(Flagged(flag("failed", reason=reason, tasks=count)) for reason, count in reasons.items()))
        say("warning: failed tasks are not run again unless you say --retry-failed")


def others(found: dict[str, int]) -> list[Flag]:
    """What the folder holds of other code, which was not taken."""
    return [flag("software", name=name, tasks=count) for name, count in found.items()]


def export(question: Export, output: Output) -> None:
    """Write the table, and say what it lacks."""
    rows = rows_of(question.folder, question.software)
    rows.require_rows(OPTION)
    count = rows.export(question.to)
    say_what_is_left(rows)
    if output.json:
        known = rows.standing
        standing = {name: getattr(known, name, None) for name in ("tasks", "finished", "failed")}
        resume = known.resume if known is not None and known.finished < known.tasks else None
        inputs = named(question, "folder", "software")
        found = {"path": question.to, "count": count, **standing, "resume": resume, "others": rows.others}
        print_json(question, inputs, found)
    else:
        print(f"{count} rows: {question.to}")


def fit(question: Fit, output: Output) -> None:
    """Select the rows, fit, print."""
    x, y, level, offset = question.x, question.y, question.level, question.offset
    rows = selected(table_of(question.file, question.software), question.where)
    for name, column in (("x", x), ("y", y)):
        if column not in rows:
            raise InputError(name, f"must be a column ({column_names(rows)})", column)
        if rows[column].dtype.kind not in "iuf":
            raise InputError(name, "must be a column of numbers", column)
    found = fit_power_law(rows[x], rows[y], window=_window(question.window), level=level, offset=offset)
    flags = _repeated(rows[x], found.window)
    if output.json:
        inputs = named(question, "file", "x", "y", "where", "offset", "level", "software")
        se_is = "curvature" if _certain(rows) else "standard error"
        print_json(question, inputs, dataclasses.asdict(found) | {"se_is": se_is}, flags)
        return
    certain = _certain(rows)
    lines: list[tuple[Any, ...]] = [
        ("slope", found.slope, f"{'curvature' if certain else '±'} {found.se:.2g}"),
        (f"{level:.0%} {'range of straight lines' if certain else 'interval'}", found.low, found.high),
        ("scale", found.scale, ""),
    ]
    if offset:
        error = "at zero" if found.offset_se is None else f"± {found.offset_se:.2g}"
        lines.append(("offset", found.offset, error))
    lines += [("r2", found.r2, ""), ("points", found.n, ""), ("window", *found.window)]
    say(Table(lines, title=f"{y} against {x}"))
    say(*map(Flagged, flags))


def _certain(rows: Any) -> bool:
    """Whether a method's rows have no standard errors: beside a line then lies curvature, not chance."""
    errors = [name for name in rows if str(name).startswith("se_")]
    return "method" in rows and not rows[errors].notna().any(axis=None)


def _repeated(x: Any, window: tuple[float, float]) -> list[Flag]:
    """A flag where the grid varies something else too: its rows would count as independent points."""
    used = x[x.between(*window)]
    if used.nunique() == len(used):
        return []
    return [flag("repeated", rows=len(used), values=used.nunique(), column=str(x.name))]


def _window(text: str | None) -> tuple[float, float] | None:
    if text is None:
        return None
    low, colon, high = text.partition(":")
    if not colon:
        raise InputError("window", "must be A:B", text)
    ends = real("window", low), real("window", high)
    if ends[0] >= ends[1]:
        raise InputError("window", "must be A:B with A below B", text)
    return ends
