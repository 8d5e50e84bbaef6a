"""The risk along one size, with the log–log slope of each term."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, overload

from seqlaw.answers.answer import Answer
from seqlaw.answers.blocks import Block, Sentence, Table
from seqlaw.answers.risk import Risk, drawn
from seqlaw.answers.style import COLOURS, MARKERS, mark, tidy
from seqlaw.answers.words import Side, describe_teacher, regime_words, sizes_words, tested_words
from seqlaw.fit import fit_power_law
from seqlaw.methods import ask
from seqlaw.methods.method import SHORT, Draws, Method, Progress, letters
from seqlaw.methods.one_pass.tuning import tuned
from seqlaw.methods.terms import LEVEL, reach
from seqlaw.model.amount import amount
from seqlaw.model.checks import InputError, checked, whole
from seqlaw.model.flags import Flag, flag, merge_flags
from seqlaw.model.setting import Setting

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SAMPLED_METHOD = "sampled"
"""The method of the points that are laid over a curve."""
SLOPES = ("approx", "bias", "variance", "reducible")
"""The terms whose slopes are given."""
MARK = "N·P = M"
"""Where a saturated student just interpolates its data: the peak of the risk lies near it."""
_SHOWN = ("approx", "bias", "variance", "cross", "reducible", "total")
_MEASURED = ("bias", "variance", "cross")
"""The columns of the sampled points; approx needs no data."""
_LEGIBLE = 1e-4
"""The lowest that a picture reaches, of the least reducible risk: a bias may fall to 1e-200."""


@dataclass(frozen=True, kw_only=True)
class Curve(Answer, Sequence[Risk]):
    """Risks along one size; also a sequence of them."""

    setting: Setting
    """The one that is varied."""
    along: str
    values: tuple[float, ...]
    risks: tuple[Risk, ...]
    sampled: Curve | None = None
    """Some of its points on the sampled method, laid over it."""
    refused: tuple[Flag, ...] = ()
    """What was left out: of those by the sampled method, of the points asked for where sizes coincide."""
    tokens: float | None = None
    """In one pass: batch·P·L at every point, if that was asked for."""
    tune: bool = False
    """Whether each point has its best step."""
    command: ClassVar[str] = "curve"
    pictures: ClassVar[tuple[int, float, float]] = (1, 5.2, 4.0)

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
    def method(self) -> str:
        return self.risks[0].method

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
        """What lies beside the line: chance where the method draws, else curvature."""
        return "standard error" if self.risks[0].standard_error else "curvature"

    def inputs(self) -> Mapping[str, Any]:
        method = {"method": self.method, **self.risks[0].draws.inputs()}
        asked = {"setting": self.setting, "along": self.along, "values": self.values, **method}
        fixed = {"tokens": self.tokens, "tune": self.tune}
        return asked | {"sampled": () if self.sampled is None else self.sampled.values} | fixed

    def fields(self) -> Mapping[str, Any]:
        errors = [dict(one.standard_error) for one in self.risks]
        return {
            "rows": [row | {"standard_error": error} for row, error in zip(self.points, errors, strict=True)],
            "slopes": self.slopes,
            "se_is": self.se_is,
            "accuracy": self.risks[0].stated,
            "sampled": [] if self.sampled is None else self.sampled.fields()["rows"],
        }

    def blocks(self, side: Side) -> Iterable[Block]:
        yield Sentence(describe_teacher(self.setting.teacher))
        following = ("L",) * (self.tokens is not None) + ("gamma",) * self.tune
        sizes = sizes_words(self.setting, (self.along, *following))
        if self.tokens is not None:
            sizes += f", {amount(self.tokens)} tokens"
        if self.tune:
            sizes += ", the best step at each"
        yield Table(
            rows=[(row[self.along], *_short(row, _SHOWN)) for row in self.points],
            header=(self.along, *_SHOWN),
            title=f"{regime_words(self.setting)}, method {self.method}: {sizes}, "
            f"tested at {tested_words(self.setting.eval_length)}",
        )
        if self.sampled is not None:
            yield self._sampled_table(self.sampled)
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

    def _sampled_table(self, sampled: Curve) -> Table:
        """The sampled points, and their reducible risk over the curve's."""
        here = {row[self.along]: row["reducible"] for row in self.points}
        draws = sampled[0].draws
        return Table(
            rows=[
                (
                    row[self.along],
                    *_short(row, _MEASURED),
                    " ".join((*_short(row, ["reducible"]), one.uncertainty("reducible"))),
                    f"{row['reducible'] / here[row[self.along]]:.3f}",
                )
                for row, one in zip(sampled.points, sampled, strict=True)
            ],
            header=(self.along, *_MEASURED, "reducible", "over curve"),
            title=f"Sampled points: {draws.count('sketches')} sketches × "
            f"{draws.count('repetitions')} data sets, ± standard error"
            + (
                f" ({100 * LEVEL:.0f} % intervals: {reach(sampled[0].drawn):.2g} of them)"
                if sampled[0].drawn
                else ""
            ),
        )

    def tidy_rows(self) -> Sequence[Mapping[str, Any]]:
        return [one.row() for one in (*self.risks, *(self.sampled or ()))]

    def flagged(self) -> Sequence[Flag]:
        values = [row[self.along] for row in self.points]
        own = merge_flags([one.flags for one in self.risks], self.along, values)
        more = [*self.refused, *(() if self.sampled is None else self.sampled.flagged())]
        kinds = {one.kind for one in own}
        return [*own, *(one for one in more if one.kind not in kinds)]

    @property
    def interpolation(self) -> float | None:
        """Where on the curve N·P = M, the tokens as many as the dimensions; None outside its range."""
        if self.setting.batch is not None:
            return None
        M, N, P = (float(getattr(self.setting, name)) for name in "MNP")
        at = {"M": N * P, "N": M / P, "P": M / N}.get(self.along, math.inf)
        return at if min(self.values) <= at <= max(self.values) else None

    def draw(self, axes: Sequence[Axes]) -> None:
        """The reducible terms along the size, error bars where there are any, and the sampled points."""
        (place,) = axes
        if self.sampled is None:
            self._draw_terms(place)
        else:
            self._draw_terms(place, marker="")
            points: dict[str, Any] = {"linestyle": "none", "markerfacecolor": "white"}
            self.sampled._draw_terms(place, label="", zorder=3, **points)
            place.plot([], [], color="0.4", marker="o", markersize=3.5, label="sampled", **points)
        if self.interpolation is not None:
            mark(place, self.interpolation, MARK, side="right")  # the bias falls to the foot on the other
        lengths = {one.eval_length for one in self.risks}
        tested = tested_words(lengths.pop() if len(lengths) == 1 else None)
        title = f"Regime {self.risks[0].regime}, {self.method} method, tested at {tested}"
        tidy(place, self.along, "risk", title)
        _keep_legible(place, _LEGIBLE * min(one.reducible for one in self.risks))
        # Under the axes: a curve with a peak leaves no corner free.
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.14)}
        place.legend(**below, ncols=2 if self.sampled is None else 3, frameon=False, fontsize="small")

    def _draw_terms(self, place: Axes, **look: Any) -> None:
        """Each term where it is positive, with error bars where the method has them."""
        x = [row[self.along] for row in self.points]
        for marker, (name, colour) in zip(MARKERS, COLOURS.items(), strict=False):
            y = [row[name] if row[name] > 0 else math.nan for row in self.points]
            errors = [one.standard_error.get(name, 0.0) for one in self.risks]
            label = "approx + bias + variance + cross" if name == "reducible" else name
            style: dict[str, Any] = {
                "color": colour,
                "marker": marker,
                "markersize": 3.5,
                "label": label,
            } | look
            if any(errors):
                place.errorbar(x, y, yerr=errors, capsize=2, **style)
            else:
                place.plot(x, y, **style)


def _short(row: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Terms of a row in four digits: six of them and a size fit in 80 columns."""
    return [amount(row[name], 4) for name in names]


def _keep_legible(place: Axes, low: float) -> None:
    """A range of risks that starts no lower."""
    if place.get_ylim()[0] < low:
        high = float(place.dataLim.intervaly[1])
        place.set_ylim(low, high * (high / low) ** 0.05)


def slope(along: str, name: str, rows: Sequence[Mapping[str, Any]]) -> dict[str, float] | None:
    """The log–log slope, where the term is positive and finite everywhere."""
    pairs = [(row[along], row[name]) for row in rows if 0 < row[name] < math.inf]
    if len(pairs) < max(3, len(rows)):
        return None
    fit = fit_power_law([x for x, _ in pairs], [y for _, y in pairs])
    return {"slope": fit.slope, "se": fit.se, "r2": fit.r2}


@checked
def curve(
    setting: Setting,
    along: str,
    values: Sequence[float],
    *,
    method: str | Method = "equivalent",
    sketches: int = 4,
    repetitions: int = 2,
    seed: int = 0,
    workers: int = 1,
    device: str | None = None,
    progress: Progress | None = None,
    sampled: int | None = None,
    tokens: float | None = None,
    tune: bool = False,
) -> Curve:
    """The risk along one size (M, N, P or R; in one pass b) on a method, as `risks` has it.

    About `sampled` of the values, evenly spread and with both ends, are measured on the sampled method too.
    In one pass `tokens` fixes batch·P·L, so that the steps follow, and `tune` takes the best step at each.
    """
    along, asked = SHORT.get(along, along), ask.method_of(method)
    settings = ask.along(setting, along, values, tokens=tokens)
    if along not in asked.varies:
        raise InputError("along", f"must be one of {letters(asked.varies)} on this method", along)
    draws = Draws(sketches=sketches, repetitions=repetitions, seed=seed, workers=workers, device=device)
    if sampled is not None and asked.name == SAMPLED_METHOD:
        raise InputError("sampled", "must be left out on the sampled method, whose points all are", sampled)
    chosen = [] if sampled is None else _spread(setting, values, sampled)
    settings = tuned(settings) if tune else settings
    found = drawn(settings, asked, draws, progress)
    answer = Curve(
        setting=setting, along=along, values=tuple(values), risks=tuple(found), tokens=tokens, tune=tune
    )
    return answer if sampled is None else _overlaid(answer, chosen, draws, progress)


def _spread(setting: Setting, values: Sequence[float], count: int) -> list[float]:
    """About `count` of the values, evenly spread, both ends among them."""
    if setting.d == math.inf:
        raise InputError("d", "must be finite for sampled points", math.inf)
    last, steps = len(values) - 1, whole("sampled", count, least=2) - 1
    return [values[k] for k in dict.fromkeys(round(last * step / steps) for step in range(steps + 1))]


def _overlaid(answer: Curve, chosen: Sequence[float], draws: Draws, progress: Progress | None) -> Curve:
    """The curve with these points of it sampled, but for those that the sampled method refuses."""
    method, known = ask.method_of(SAMPLED_METHOD), dict(zip(answer.values, answer.risks, strict=True))
    settings = [known[value].setting for value in chosen]
    refusals = [method.refuses(setting) for setting in settings]
    flags = [[] if one is None else [flag("not-sampled", of=one.field, rule=one.rule)] for one in refusals]
    kept = [k for k, one in enumerate(refusals) if one is None]
    if not kept:
        ask.require_answerable(method, settings)
    found = drawn([settings[k] for k in kept], method, draws, progress)
    sampled = replace(answer, values=tuple(chosen[k] for k in kept), risks=tuple(found))
    return replace(answer, sampled=sampled, refused=merge_flags(flags, answer.along, chosen))
