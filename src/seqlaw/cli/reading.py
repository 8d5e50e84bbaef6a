"""The options that say how a user's sequences are read, each written once."""

from __future__ import annotations

from typing import Annotated, Any

import typer

Files = Annotated[
    list[str],
    typer.Argument(
        metavar="FILE...",
        help="Sequences: .npy, .npz, .zarr, .mat, .jsonl, .csv or .parquet; several files, or a folder.",
    ),
]
SequenceColumn = Annotated[
    str | None, typer.Option(help="Column that tells sequences apart.", metavar="COLUMN")
]
TimeColumn = Annotated[str | None, typer.Option(help="Column that orders states.", metavar="COLUMN")]
Features = Annotated[
    str | None, typer.Option(help="Columns of features, such as x,y,z.  [default: the rest]", metavar="LIST")
]
LeaveOut = Annotated[
    list[str] | None, typer.Option(help="Column that is no feature; may be repeated.", metavar="COLUMN")
]


def source_of(files: list[str]) -> Any:
    """One file or folder as it is, several as a list."""
    return files[0] if len(files) == 1 else files


def columns_of(
    sequence: str | None, time: str | None, features: str | None, leave_out: list[str] | None
) -> dict[str, Any]:
    """The arguments of `measure` and `forecast` that name columns."""
    names = () if features is None else tuple(name.strip() for name in features.split(","))
    return {"sequence": sequence, "time": time, "features": names, "leave_out": tuple(leave_out or ())}
