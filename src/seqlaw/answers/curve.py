"""The risk along one size, with the log–log slope of each term."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, overload

from seqlaw.answers.answer import Answer
from seqlaw.answers.blocks import Block, Sentence, Table
from seqlaw.answers.risk import Risk, drawn
from seqlaw.answers.style import COLOURS, MARKERS, tidy
from seqlaw.answers.words import Side, describe_teacher, regime_words, sizes_words, tested_words
from seqlaw.fit import fit_power_law
from seqlaw.model.checks import InputError
from seqlaw.model.flags import Flag, merge_flags
from seqlaw.model.setting import Setting
from seqlaw.rungs import ask
from seqlaw.rungs.rung import Draws, Progress, Rung

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SLOPES = ("approx", "bias", "variance", "reducible")
"""The terms whose slopes are given."""
_SHOWN = ("approx", "bias", "variance", "cross", "reducible", "total")


@dataclass(frozen=True, kw_only=True)
class Curve(Answer, Sequence[Risk]):
    """Risks along one size; also a sequence of them."""

    setting: Setting
    """The one that is varied."""
    along: str
    values: tuple[float, ...]
    risks: tuple[Risk, ...]
    command: ClassVar[str] = "curve"
    pictures: ClassVar[tuple[int, float, float]] = (1, 5.2, 3.8)

    @overload
    def __getitem__(self, index: int) -> Risk: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Risk]: ...
    def __getitem__(self, index: int | slice) -> Risk | Sequence[Risk]:
        return self.risks[index]

    def __len__(self) -> int:
        return len(self.risks)

    def __iter__(self) -> Iterator[Risk]:
        return iter(self.risks)

    @property
    def rung(self) -> str:
        return self.risks[0].rung

    @property
    def points(self) -> list[dict[str, Any]]:
        """The parameters and terms of each point, as `--json` has them."""
        return [one.point for one in self.risks]

    @property
    def slopes(self) -> dict[str, dict[str, float] | None]:
        """The log–log slope of each term that is positive everywhere."""
        points = self.points
        return {name: slope(self.along, name, points) for name in SLOPES}

    @property
    def se_is(self) -> str:
        """What lies beside the line: chance where the rung draws, else curvature."""
        return "standard error" if self.risks[0].standard_error else "curvature"

    def inputs(self) -> Mapping[str, Any]:
        rung = {"rung": self.rung, **self.risks[0].draws.inputs()}
        return {"setting": self.setting, "along": self.along, "values": self.values, **rung}

    def fields(self) -> Mapping[str, Any]:
        errors = [dict(one.standard_error) for one in self.risks]
        return {
            "rows": [row | {"standard_error": error} for row, error in zip(self.points, errors, strict=True)],
            "slopes": self.slopes,
            "se_is": self.se_is,
            "accuracy": dict(self.risks[0].accuracy),
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        yield Sentence(describe_teacher(self.setting.teacher))
        sizes = sizes_words(self.setting, (self.along,))
        yield Table(
            rows=[(row[self.along], *(row[name] for name in _SHOWN)) for row in self.points],
            header=(self.along, *_SHOWN),
            title=f"{regime_words(self.setting)}, rung {self.rung}: {sizes}, "
            f"tested at {tested_words(self.setting.eval_length)}",
        )
        sign = "± " if self.se_is == "standard error" else ""
        yield Table(
            # A constant term has the slope of its rounding, 1e-15: that is 0.
            rows=[
                (name, round(fit["slope"], 12) + 0.0, f"{sign}{round(fit['se'], 12):.2g}")
                for name, fit in self.slopes.items()
                if fit is not None
            ],
            header=("term", f"slope against {self.along}", self.se_is),
        )
        if not sign:
            yield Sentence(
                "curvature: how far from a straight line on logarithmic axes, as an error of its slope."
            )

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        return [one.row() for one in self.risks]

    def flagged(self) -> Sequence[Flag]:
        values = [row[self.along] for row in self.points]
        return merge_flags([one.flags for one in self.risks], self.along, values)

    def draw(self, axes: Sequence[Axes]) -> None:
        """The reducible terms along the size, with error bars where the rung has them."""
        (place,), points = axes, self.points
        x = [row[self.along] for row in points]
        for marker, (name, colour) in zip(MARKERS, COLOURS.items(), strict=False):
            y = [row[name] for row in points]
            errors = [one.standard_error.get(name, 0.0) for one in self.risks]
            label = "approx + bias + variance" if name == "reducible" else name
            style: dict[str, Any] = {"color": colour, "marker": marker, "markersize": 3.5, "label": label}
            if any(errors):
                place.errorbar(x, y, yerr=errors, capsize=2, **style)
            else:
                place.plot(x, y, **style)
        lengths = {one.eval_length for one in self.risks}
        tested = f"{lengths.pop()}" if len(lengths) == 1 else "its own length"
        title = f"Regime {self.risks[0].regime}, {self.rung} rung, tested at length {tested}"
        tidy(place, self.along, "risk", title)
        place.legend(frameon=False, fontsize="small")


def slope(along: str, name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """The log–log slope, where the term is positive everywhere."""
    pairs = [(row[along], row[name]) for row in rows if row[name] > 0]
    if len(pairs) < max(3, len(rows)):
        return None
    fit = fit_power_law([x for x, _ in pairs], [y for _, y in pairs])
    return {"slope": fit.slope, "se": fit.se, "r2": fit.r2}


def curve(
    setting: Setting,
    along: str,
    values: Sequence[float],
    *,
    rung: str | Rung = "equivalent",
    sketches: int = 4,
    repetitions: int = 2,
    seed: int = 0,
    workers: int = 1,
    progress: Progress | None = None,
) -> Curve:
    """The risk along one size (M, N, P or R) on a rung, as `risks` has it."""
    settings, asked = ask.along(setting, along, values), ask.rung_of(rung)
    if along not in asked.varies:
        raise InputError("along", f"must be one of {', '.join(asked.varies)} on this rung", along)
    draws = Draws(sketches=sketches, repetitions=repetitions, seed=seed, workers=workers)
    found = drawn(settings, asked, draws, progress)
    return Curve(setting=setting, along=along, values=tuple(values), risks=tuple(found))
