"""What every answer can do: show itself as text, JSON, rows, a picture and a notebook's table."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

import numpy as np

import seqlaw
from seqlaw.answers.render import Block, Flagged, as_html, as_text
from seqlaw.answers.style import new_figure, save
from seqlaw.answers.words import Side, sentences
from seqlaw.files import plain
from seqlaw.model.checks import InputError, MissingLibrary, needs
from seqlaw.model.flags import Flag

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Asked = ParamSpec("Asked")
Shown = TypeVar("Shown", bound="Answer")


class Answer(ABC):
    """How an answer looks, defined once; commands, explorer and notebooks read nothing else."""

    command: ClassVar[str]
    """Its name on the command line."""

    unsaid: ClassVar[frozenset[str]] = frozenset()
    """Codes of flags about what the page does not show; JSON has them."""

    def inputs(self) -> Mapping[str, Any]:
        """What was asked; a record that kept it has it as `asked`."""
        asked: Mapping[str, Any] = getattr(self, "asked", {})
        return asked

    @abstractmethod
    def fields(self) -> Mapping[str, Any]:
        """The fields of `--json`, without flags."""

    @abstractmethod
    def blocks(self, side: Side) -> Iterable[Block]:
        """What a person reads, the answer first, without flags: at most a screen."""

    def more(self, side: Side) -> Iterable[Block]:
        """What `verbose` adds below it."""
        return ()

    @abstractmethod
    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        """Tidy rows, every parameter a column."""

    pictures: ClassVar[tuple[int, float, float]] = (0, 0.0, 0.0)
    """How many axes `draw` takes side by side, and the inches of the whole; none without a picture."""

    def draw(self, axes: Sequence[Axes]) -> None:  # noqa: B027  # most answers have one, not all
        """The picture, on matplotlib's axes."""

    def decorate(self, figure: Figure) -> None:  # noqa: B027  # few need it
        """What stands around the axes of a figure that is this answer's alone."""

    def flagged(self) -> Sequence[Flag]:
        """The flags of the whole answer: those of its record."""
        found: Sequence[Flag] = getattr(self, "flags", ())
        return found

    def page(self, side: Side = "python", *, verbose: bool = False) -> str:
        """What the command prints; with `verbose` all there is to read."""
        return as_text(self._read(side, verbose), side)

    def _read(self, side: Side, verbose: bool = False) -> list[Block]:
        """What a person reads, with the flags that are about it."""
        more = self.more(side) if verbose else ()
        flags = (Flagged(one) for one in self.flagged() if one.code not in self.unsaid)
        return [*self.blocks(side), *more, *flags]

    def to_dict(self, side: Side = "python", asked: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The JSON document of the command; infinity is null with a flag.

        `asked` is what the question had beyond `inputs`.
        """
        lost: list[Flag] = []
        inputs = plain({**self.inputs(), **(asked or {})}, "inputs", lost)
        fields = plain(self.fields(), "", lost)
        flags = [*self.flagged(), *lost]
        return {
            "command": self.command,
            "version": seqlaw.__version__,
            "inputs": inputs,
            **fields,
            "flags": sentences(flags, side),
            "flag_records": [record(flag) for flag in flags],
        }

    def to_frame(self) -> pd.DataFrame:
        """The rows as a DataFrame."""
        from seqlaw.model.checks import library

        frame: pd.DataFrame = library("pandas").DataFrame.from_records(list(self.tidy_rows()))
        return frame

    def plot(self, ax: Any = None) -> Any:
        """Draw on the given axes (as many as the picture has), or on new ones; returns them."""
        count, width, height = self._picture()
        given = ax is not None
        axes = list(np.ravel(ax)) if given else list(_pyplot_axes(count, width, height))
        if len(axes) != count:
            raise InputError("ax", f"must be {count} axes", len(axes))
        self.draw(axes)
        if not given:
            self.decorate(axes[0].figure)
        return axes[0] if count == 1 else np.array(axes)

    def save_plot(self, path: str | Path) -> None:
        """Draw into a file: png, pdf or svg."""
        count, width, height = self._picture()
        figure, grid = new_figure(width, height, 1, count)
        self.draw(list(grid.flat))
        self.decorate(figure)
        save(figure, path)

    def _picture(self) -> tuple[int, float, float]:
        if not self.pictures[0]:
            raise InputError("plot", f"has no picture to draw of {self.command}", None)
        return self.pictures

    def __str__(self) -> str:
        return self.page("python").rstrip("\n")

    def _repr_html_(self) -> str:
        return as_html(self._read("python"))


def _pyplot_axes(count: int, width: float, height: float) -> Any:
    """New axes that a notebook shows and a script's `plt.show()` too."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise MissingLibrary(f"plot {needs('matplotlib', 'plot')}") from None
    _, grid = pyplot.subplots(1, count, figsize=(width, height), layout="constrained", squeeze=False)
    return grid.flat


def named(found: Any, *names: str) -> dict[str, Any]:
    """These fields of a record by name."""
    return {name: getattr(found, name) for name in names}


def fields_of(found: Any, **more: Any) -> dict[str, Any]:
    """The fields of the record that a lower package computed, and `more` that only the answer knows."""
    return named(found, *(f.name for f in fields(found))) | more


def shown(answer: Callable[..., Shown], ask: Callable[Asked, Any]) -> Callable[Asked, Shown]:
    """A room's question as a public function: the record that it finds comes back as an answer."""

    @wraps(ask)
    def call(*args: Asked.args, **kwargs: Asked.kwargs) -> Shown:
        return answer(**fields_of(ask(*args, **kwargs)))

    call.__annotations__ = {**ask.__annotations__, "return": answer}
    call.__module__ = answer.__module__
    return call


def record(flag: Flag) -> dict[str, Any]:
    """A flag as plain types."""
    where = None if flag.where is None else asdict(flag.where)
    found: dict[str, Any] = plain({"code": flag.code, "numbers": dict(flag.numbers), "where": where}, "", [])
    return found
