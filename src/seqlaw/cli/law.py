"""`seqlaw law`: a law fitted to a table of training runs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from seqlaw.answers.render import Table
from seqlaw.cli.output import Output, print_json, say, show
from seqlaw.cli.rows import selected, table_of
from seqlaw.files import read_table
from seqlaw.lab.table import check_format, write_frame
from seqlaw.model.checks import InputError
from seqlaw.model.formula import Formula
from seqlaw.questions.data import Law
from seqlaw.runs.allocate import identifier
from seqlaw.runs.logs import is_log, read_any


def law(asked: Law, output: Output) -> None:
    """Read the table, fit, write the predictions, print."""
    path = Path(asked.file)
    log = is_log(path) or not path.is_dir()  # else a sweep's folder
    rows = read_any(asked.file, loss=asked.loss, take=asked.take) if log else table_of(asked.file, None)
    rows = selected(_with_columns(rows, asked.let), asked.where)
    if asked.columns:
        _show_columns(asked, rows, output)
        return
    if asked.cost is not None and asked.budget is None:
        raise InputError("cost", "needs --budget too", asked.cost)
    if asked.to is not None:
        if asked.predict is None:
            raise InputError("to", "needs --predict too", asked.to)
        check_format(asked.to)
    call = asked.call()
    ahead = asked.predict and _with_columns(read_table(asked.predict, field="predict"), asked.let)
    common = asked.common and read_any(asked.common, loss=asked.loss, take=asked.take, field="common")
    if common is not None:
        common = selected(_with_columns(common, asked.let), asked.where)
    answer = call.function(**{**call.arguments, "frame": rows, "predict": ahead, "common": common})
    if asked.to is not None:
        write_frame(answer.predict(ahead).to_frame(), asked.to)
    show(answer, asked, output)
    if asked.to is not None and not output.json:
        print(f"{len(answer.predictions)} predictions: {asked.to}")


def _show_columns(asked: Law, rows: Any, output: Output) -> None:
    """What was found: of each column how many runs have it, and from where to where it goes."""
    found = [{"column": str(name), "runs": int(rows[name].count()), **_range(rows[name])} for name in rows]
    if output.json:
        print_json(asked, {"file": asked.file}, {"n": len(rows), "columns": found})
        return
    say(f"{len(rows)} runs with {len(found)} columns.")
    rows = [["-" if cell is None else cell for cell in one.values()] for one in found]
    say(Table(rows, header=("column", "runs", "low", "high", "values")))


def _range(values: Any) -> dict[str, Any]:
    """The ends of a column of numbers, or the first few texts of others."""
    numbers = values.dtype.kind in "iuf" and values.count() > 0
    low, high = (float(values.min()), float(values.max())) if numbers else (None, None)
    texts = sorted(map(str, values.dropna().unique()))
    return {
        "low": low,
        "high": high,
        "values": "" if numbers else ", ".join(texts[:3]) + ", …" * (len(texts) > 3),
    }


def _with_columns(rows: Any, definitions: Sequence[str]) -> Any:
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
        used = {one: rows[names[one]].astype(float) for one in formula.used}  # whole numbers would overflow
        rows = rows.assign(**{name: formula(**used)})
    return rows
