"""`seqlaw law`: a law fitted to a table of training runs."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

import typer

from seqlaw.answers.law import fit_law
from seqlaw.cli.options import Json, Plot, Seed
from seqlaw.cli.output import show
from seqlaw.cli.rows import Where, selected, table_of
from seqlaw.files import read_table
from seqlaw.lab.table import check_format, write_frame
from seqlaw.model.checks import InputError, positive, real
from seqlaw.model.formula import Formula
from seqlaw.runs.allocate import DEFAULT_COST, identifier
from seqlaw.runs.form import PRESETS
from seqlaw.runs.law import BOOTSTRAPS, LEVEL


def law(
    file: Annotated[
        str,
        typer.Argument(metavar="FILE", help="A .csv or .parquet file, one row a run, or a sweep's folder."),
    ],
    loss: Annotated[str, typer.Option(help="Column of the loss.", metavar="COLUMN")],
    term: Annotated[
        list[str] | None,
        typer.Option(help="A term: a column, or columns joined by *; repeatable.", metavar="COLUMN"),
    ] = None,
    preset: Annotated[
        str | None, typer.Option(help=f"In place of terms: {', '.join(PRESETS)}.", metavar="NAME")
    ] = None,
    without: Annotated[
        str | None, typer.Option(help="Does this term, or column, matter?", metavar="TERM")
    ] = None,
    tested_at: Annotated[
        str | None, typer.Option(help="Column of the length that a run was tested at.", metavar="COLUMN")
    ] = None,
    groups: Annotated[
        str | None, typer.Option(help="Column whose values are redrawn together.", metavar="COLUMN")
    ] = None,
    form: Annotated[
        str, typer.Option(help="How terms are added: sum, or power-mean with q fitted.", metavar="FORM")
    ] = "sum",
    floor: Annotated[
        str | None, typer.Option(help="The floor E, where you know it.", metavar="VALUE")
    ] = None,
    where: Where = None,
    let: Annotated[
        list[str] | None,
        typer.Option(help="A new column, arithmetic in the others; repeatable.", metavar="NAME=FORMULA"),
    ] = None,
    predict: Annotated[
        str | None, typer.Option(help="A table of runs without a loss, to predict.", metavar="FILE")
    ] = None,
    to: Annotated[
        str | None,
        typer.Option(help="Write the predictions as a table: .parquet or .csv.", metavar="FILE"),
    ] = None,
    cost: Annotated[
        str | None,
        typer.Option(
            help=f"Cost of a run: arithmetic in columns, or a measured column.  [default: {DEFAULT_COST}]",
            metavar="FORMULA|COLUMN",
        ),
    ] = None,
    budget: Annotated[str | None, typer.Option(help="The best sizes at this cost.", metavar="NUMBER")] = None,
    bootstraps: Annotated[int, typer.Option(help="Redrawn tables for the intervals.")] = BOOTSTRAPS,
    level: Annotated[float, typer.Option(help="Confidence of the intervals.")] = LEVEL,
    seed: Seed = 0,
    plot: Plot = None,
    json: Json = False,
) -> None:
    """A law fitted to a table of training runs.

    loss = E + a power law for each term, with intervals; whether a column matters; the best sizes at a cost.

    Example: seqlaw law runs.csv --loss loss --term params --term tokens --term length --without length
    """
    if cost is not None and budget is None:
        raise InputError("cost", "needs --budget beside it", cost)
    if to is not None:
        if predict is None:
            raise InputError("to", "needs --predict beside it", to)
        check_format(to)
    rows = selected(_with_columns(table_of(file, None), let or []), where or [])
    ahead = None if predict is None else _with_columns(read_table(predict, field="predict"), let or [])
    answer = fit_law(
        rows,
        loss=loss,
        terms=term,
        preset=preset,
        without=without,
        tested_at=tested_at,
        groups=groups,
        form=form,
        floor=None if floor is None else real("floor", floor),
        cost=cost,
        budget=None if budget is None else positive("budget", budget),
        predict=ahead,
        bootstraps=bootstraps,
        level=level,
        seed=seed,
    )
    if to is not None:
        write_frame(answer.predict(ahead).to_frame(), to)
    given = {"file": file, "where": where or [], "let": let or [], "predict": predict, "to": to}
    show(replace(answer, asked={**answer.asked, **given}), as_json=json, plot=plot)
    if to is not None and not json:
        print(f"{len(answer.predictions)} predictions: {to}")


def _with_columns(rows: Any, definitions: list[str]) -> Any:
    """The table with the new columns, each in terms of those before it."""
    for definition in definitions:
        name, equals, text = definition.partition("=")
        name = name.strip()
        if not equals or not name.isidentifier():
            raise InputError("let", "must be NAME=FORMULA with a name of letters, digits and _", definition)
        if name in rows:
            raise InputError("let", f"must be a new name, {name} is a column", definition)
        names = {identifier(str(column)): column for column in rows}
        formula = Formula(text, tuple(names), field="let")
        for column in (names[one] for one in formula.used):
            if rows[column].dtype.kind not in "iuf":
                raise InputError("let", f"must speak of columns of numbers, {column} is none", definition)
        rows = rows.assign(**{name: formula(**{one: rows[names[one]] for one in formula.used})})
    return rows
