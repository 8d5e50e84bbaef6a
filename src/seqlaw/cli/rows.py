"""Which rows of a table a command takes: a file or a sweep's folder, and `--where`."""

from __future__ import annotations

import operator
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from seqlaw.files import read_table
from seqlaw.lab.errors import LabError
from seqlaw.lab.table import Table
from seqlaw.model.checks import InputError, real
from seqlaw.sweeping.file import OWN
from seqlaw.sweeping.run import rows_of

OPTION = "--software {}"
_ORDERS: dict[str, Callable[[Any, float], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}


def say_what_is_left(rows: Table) -> None:
    """On standard error: what is damaged, which tasks have no rows yet, and what other code recorded."""
    for line in filter(None, (rows.damage, rows.missing, rows.left_out(OPTION))):
        print(f"seqlaw: {line}", file=sys.stderr)


def table_of(file: str, software: str | None) -> Any:
    """The rows of a file or a folder, as a DataFrame."""
    if Path(file).is_dir():
        found = rows_of(file, software)
        found.require_rows(OPTION)
        say_what_is_left(found)
        return found.frame
    if software is not None:
        raise InputError("software", "goes with a sweep's folder, not with a file", software)
    return read_table(file)


def selected(rows: Any, conditions: Sequence[str]) -> Any:
    """The rows that meet every condition, COLUMN=VALUE or an order such as COLUMN<=VALUE."""
    for condition in conditions:
        column, sign, value = _split(condition)
        if column not in rows:
            raise InputError("where", f"must be COLUMN=VALUE with a column ({column_names(rows)})", condition)
        if not sign:
            known = f"{column} has {_some(rows[column])}"
            raise InputError("where", f"must be COLUMN=VALUE, and =VALUE is missing ({known})", condition)
        if sign in _ORDERS:
            if rows[column].dtype.kind not in "iuf":
                raise InputError("where", f"must compare a column of numbers, {column} is none", condition)
            found = rows[_ORDERS[sign](rows[column], real("where", value))]
        elif column == "eval_length" and value == OWN and "P" in rows:
            found = rows[rows[column] == rows["P"]]
        elif rows[column].dtype.kind in "iufb":
            found = rows[rows[column] == real("where", value)]
        else:
            found = rows[rows[column].astype(str) == value]
        if len(found) == 0 and len(rows):
            before = " and ".join(conditions[: conditions.index(condition)])
            raise LabError(
                f"no row{before and f' with {before}'} has {condition} (it has {_some(rows[column])})"
            )
        rows = found
    return rows


def _split(condition: str) -> tuple[str, str, str]:
    """Column, sign and value, cut at the first sign; no sign where there is none."""
    found = re.fullmatch(r"(.*?)\s*(<=|>=|<|>|=)\s*(.*)", condition)
    return (found[1], found[2], found[3]) if found else (condition, "", "")


def column_names(rows: Any) -> str:
    """The columns, for an error that names them."""
    return ", ".join(map(str, rows.columns))


def _some(values: Any, most: int = 8) -> str:
    """The values of a column as `--where` takes them; of many, the first few names or the ends of numbers."""
    known = sorted(values.dropna().unique().tolist(), key=lambda value: (isinstance(value, str), value))
    if len(known) > most and not isinstance(known[-1], str):
        return f"{known[0]:.4g} to {known[-1]:.4g}"
    texts = [str(value).removesuffix(".0") for value in known[:most]]
    return ", ".join(texts) + (", …" if len(known) > most else "")
