"""`seqlaw sweep`, `seqlaw export` and `seqlaw fit`: many runs, their rows, and the slopes in them."""

from __future__ import annotations

import dataclasses
import os
import shlex
import sys
from typing import Annotated, Any

import typer

from seqlaw.cli.options import Device, Jobs, Json, jobs_or_all
from seqlaw.cli.output import print_flags, print_json, print_table, print_text
from seqlaw.cli.progress import Progress, work_bar
from seqlaw.cli.rows import OPTION, Where, column_names, say_what_is_left, selected, table_of
from seqlaw.fit import fit_power_law
from seqlaw.lab.run import Summary
from seqlaw.lab.table import export as export_table
from seqlaw.model.checks import InputError, real
from seqlaw.model.device import cards
from seqlaw.model.flags import Flag, flag
from seqlaw.sweeping.cost import Estimate
from seqlaw.sweeping.file import load_sweep
from seqlaw.sweeping.run import rows_of
from seqlaw.sweeping.run import sweep as run_sweep

Software = Annotated[
    str | None,
    typer.Option(help="Rows of other software than this, as the folder names it, or `all`.", metavar="NAME"),
]


def sweep(
    file: Annotated[str, typer.Argument(metavar="FILE.toml", help="What to run: see docs/sweeps.md.")],
    out: Annotated[
        str, typer.Option(help="Folder of the results; what it holds is not run again.", metavar="DIR")
    ],
    engine: Annotated[
        str, typer.Option(help="local, or dask for a cluster that you run.", metavar="NAME")
    ] = "local",
    scheduler: Annotated[
        str | None, typer.Option(help="Address or scheduler file of the cluster.", metavar="ADDRESS|FILE")
    ] = None,
    jobs: Jobs = None,
    device: Device = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Check and count only.")] = False,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Try failed tasks again.")] = False,
    timeout: Annotated[
        float | None,
        typer.Option(help="End a task that takes longer, and record it as failed.", metavar="SECONDS"),
    ] = None,
    progress: Progress = "auto",
    json: Json = False,
) -> None:
    """Run a grid of questions, resumably.

    The same command again does only what is missing.

    Example: seqlaw sweep grid.toml --out results --jobs 4
    """
    asked = load_sweep(file)
    asked = asked if device is None else dataclasses.replace(asked, device=device)
    gpu = asked.device == "cuda"
    workers = cards() if gpu and jobs is None and scheduler is None else jobs_or_all(jobs)
    ahead: list[Estimate] = []
    with work_bar(progress) as bar:

        def announce(found: Estimate) -> None:
            ahead.append(found)
            if not json:
                print_text(_ahead(found, workers, "GPU" if gpu else "core"))
                if found.merged:
                    print_text(_merged(found))
                sys.stdout.flush()

        summary = run_sweep(
            asked,
            out,
            jobs=workers,
            engine=engine,
            scheduler=scheduler,
            dry_run=dry_run,
            timeout=timeout,
            retry_failed=retry_failed,
            resume=_command(file, out, engine, scheduler, device, timeout),
            announce=announce,
            progress=bar.progress,
            watch=bar.watch,
            notice=lambda line: print(f"seqlaw: {line}", file=sys.stderr),
        )
    if json:
        inputs = {"file": file, "out": out, "engine": engine, "jobs": workers, "seed": asked.seed}
        result = dataclasses.asdict(summary) | {"estimate": dataclasses.asdict(ahead[0]), "dry_run": dry_run}
        print_json("sweep", inputs, result)
    elif not dry_run:
        _report(summary, out)
    if summary.failed and not dry_run:
        raise typer.Exit(1)


def _ahead(found: Estimate, workers: int, place: str) -> str:
    tasks = f"{found.tasks} task{'s' if found.tasks > 1 else ''}"
    if not found.left:
        return f"{tasks}, nothing to do"
    return (
        f"{tasks}, {found.left} to do on {workers} {place}{'s' if workers > 1 else ''} with about "
        f"{found.memory / 2**30:.1f} GiB of memory; the largest: {found.largest}"
    )


def _merged(found: Estimate) -> str:
    one = found.merged == 1
    return (
        f"{found.merged} point{'' if one else 's'} of the grid {'is' if one else 'are'} the same as "
        f"{'another' if one else 'others'} (rounded sizes, a test length equal to P) and "
        f"{'is' if one else 'are'} run once"
    )


def _command(
    file: str, out: str, engine: str, scheduler: str | None, device: str | None, timeout: float | None
) -> str:
    """What to type to go on, from any folder."""
    more = [] if scheduler is None else ["--engine", engine, "--scheduler", scheduler]
    more += [] if device is None else ["--device", device]
    more += [] if timeout is None else ["--timeout", f"{timeout:g}"]
    return shlex.join(["seqlaw", "sweep", os.path.abspath(file), "--out", os.path.abspath(out), *more])


def _report(summary: Summary, out: str) -> None:
    print_text(
        f"{summary.done} done, {summary.skipped} recorded before, {summary.failed} failed "
        f"in {summary.seconds:.1f} s: {out}"
    )
    print_flags(others(summary.others))
    if summary.failed:
        reasons = rows_of(out, None).failures["error"].value_counts()
        print_flags(flag("failed", reason=reason, tasks=count) for reason, count in reasons.items())
        print_text("warning: failed tasks are not run again unless you say --retry-failed")


def others(found: dict[str, int]) -> list[Flag]:
    """What the folder holds of other code, which was not taken."""
    return [flag("software", name=name, tasks=count) for name, count in found.items()]


def export(
    folder: Annotated[str, typer.Argument(metavar="DIR", help="The folder of a sweep.")],
    to: Annotated[str, typer.Option(help="Where to: .parquet or .csv.", metavar="FILE")],
    software: Software = None,
    json: Json = False,
) -> None:
    """Write the rows of a sweep as one tidy table.

    A sweep that is not finished is exported as far as it is, and said to be unfinished.

    Example: seqlaw export results --to rows.parquet
    """
    rows = rows_of(folder, software)
    rows.require_rows(OPTION)
    count = export_table(rows, to)
    say_what_is_left(rows)
    if json:
        known = rows.standing
        standing = {name: getattr(known, name, None) for name in ("tasks", "finished", "failed")}
        resume = known.resume if known is not None and known.finished < known.tasks else None
        inputs = {"folder": folder, "software": software}
        found = {"path": to, "count": count, **standing, "resume": resume, "others": rows.others}
        print_json("export", inputs, found)
    else:
        print(f"{count} rows: {to}")


def fit(
    file: Annotated[
        str, typer.Argument(metavar="FILE", help="A .parquet or .csv file, or a sweep's folder.")
    ],
    x: Annotated[str, typer.Option(help="Column of the abscissa.", metavar="COLUMN")],
    y: Annotated[str, typer.Option(help="Column of the ordinate.", metavar="COLUMN")],
    where: Where = None,
    window: Annotated[str | None, typer.Option(help="Only x from A to B.", metavar="A:B")] = None,
    offset: Annotated[bool, typer.Option("--offset", help="Fit y = e + a x^-c instead of a x^-c.")] = False,
    level: Annotated[float, typer.Option(help="Confidence of the interval.")] = 0.95,
    software: Software = None,
    json: Json = False,
) -> None:
    """The log–log slope between two columns, with its interval.

    Example: seqlaw fit rows.parquet --x M --y approx --where regime=I
    """
    rows = selected(table_of(file, software), where or [])
    for name, column in (("x", x), ("y", y)):
        if column not in rows:
            raise InputError(name, f"must be a column ({column_names(rows)})", column)
        if rows[column].dtype.kind not in "iuf":
            raise InputError(name, "must be a column of numbers", column)
    found = fit_power_law(rows[x], rows[y], window=_window(window), level=level, offset=offset)
    flags = _repeated(rows[x], found.window)
    if json:
        inputs = {
            "file": file,
            "x": x,
            "y": y,
            "where": where or [],
            "offset": offset,
            "level": level,
            "software": software,
        }
        se_is = "curvature" if _certain(rows) else "standard error"
        print_json("fit", inputs, dataclasses.asdict(found) | {"se_is": se_is}, flags)
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
    print_table(lines, title=f"{y} against {x}")
    print_flags(flags)


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
