"""The risk along one size, with the log–log slope of each term."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, overload

from seqlaw.answers.answer import Answer
from seqlaw.answers.render import Block, Note, Table
from seqlaw.answers.risk import Risk, drawn, uncertainty
from seqlaw.answers.style import COLOURS, MARKERS, Axes, mark, tidy
from seqlaw.answers.words import Side, describe_teacher, regime_words, sizes_words, tested_words
from seqlaw.fit import fit_power_law
from seqlaw.methods import ask
from seqlaw.methods.method import SHORT, Draws, Method, Progress, letters
from seqlaw.methods.one_pass.reuse import effective_reuse
from seqlaw.methods.terms import LEVEL, reach
from seqlaw.model.amount import amount
from seqlaw.model.checks import InputError, whole
from seqlaw.model.flags import Flag, flag, merge_flags
from seqlaw.model.lengths import Test
from seqlaw.model.setting import Setting
from seqlaw.model.signature import checked

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
    reuse: tuple[float, ...] | None = None
    """Along epochs with the best step at each: E, the fresh sequences that each is worth, over N."""
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
        """The parameters and terms of each point, as `--json` has them; along epochs E too."""
        more: list[dict[str, Any]] = [{}] * len(self)
        if self.along == "epochs":
            more = [{"E": one} for one in self.reuse or [None] * len(self)]
        return [one.point | extra for one, extra in zip(self.risks, more, strict=True)]

    @property
    def slopes(self) -> dict[str, dict[str, float] | None]:
        """The log–log slope of each term that is positive everywhere."""
        points = self.points
        return {name: slope(self.along, name, points) for name in SLOPES}

    @property
    def sentence(self) -> str:
        """Where the reducible risk goes from end to end, and where it turns."""
        if self.along == "epochs":
            return self._of_epochs()
        points, fit = [(row[self.along], row["reducible"]) for row in self.points], self.slopes["reducible"]
        (start, first), (stop, last) = points[0], points[-1]
        turns = [
            f"is {name} at {self.along} = {amount(x)} ({amount(y, 3)})"
            for name, (x, y) in {
                "largest": max(points, key=lambda point: point[1]),
                "least": min(points, key=lambda point: point[1]),
            }.items()
            if x not in (start, stop)
        ]
        way = "" if turns or fit is None else f", about as {self.along}^{fit['slope']:.2f}"
        goes = f"goes from {amount(first, 3)} to {amount(last, 3)}{way}"
        ends = f"{self.along} = {amount(start)} to {amount(stop)}"
        return f"From {ends} the reducible risk {' and '.join([goes, *turns])}."

    def _of_epochs(self) -> str:
        """What repeating is worth, and where it begins to hurt."""
        best = min(self.risks, key=lambda one: one.reducible)
        least, last = best.setting.epochs, self.risks[-1].setting.epochs
        N = amount(self.risks[0].setting.N)
        if least == last:
            hurts = f"up to {last} epochs repeating never hurts"
        else:
            hurts = f"repeating hurts beyond {least} epochs (reducible risk {amount(best.reducible, 3)})"
        if self.reuse is None:
            first, end = (amount(self.risks[k].reducible, 3) for k in (0, -1))
            return f"At this step {hurts}; {N} sequences go from {first} to {end}."
        fresh = self.reuse[-1] * self.risks[0].setting.N
        worth = amount(fresh, 3) if math.isfinite(fresh) else "more than 65,536 times as many"
        times = f" (E = {self.reuse[-1]:.2f})" if math.isfinite(fresh) else ""
        return f"Used {last} times, {N} sequences are worth {worth} fresh ones{times}; {hurts}."

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
        yield self.sentence
        yield describe_teacher(self.setting.teacher)
        following = ("L",) * (self.tokens is not None) + ("gamma",) * self.tune
        sizes = sizes_words(self.setting, (self.along, *following))
        if self.tokens is not None:
            sizes += f", {amount(self.tokens)} tokens"
        if self.tune:
            each = "its own length" if self.along == "position" else "each"
            sizes += f", the best step at {each}"
        shown = _SHOWN
        if self.along == "epochs":  # cross is in the variance
            shown = ("approx", "bias", "variance", "reducible", "total", *(("E",) if self.reuse else ()))
        at_position = self.setting.position is not None
        chosen = self.setting.test_length if at_position else self.setting.eval_length
        yield Table(
            rows=[(row[self.along], *_short(row, shown)) for row in self.points],
            header=(self.along, *shown),
            title=f"{regime_words(self.risks[0].setting)}, method {self.method}: {sizes}, "
            f"tested at {self._tested(chosen)}",
        )
        if self.sampled is not None:
            yield self._sampled_table(self.sampled)
        sign = "± " if self.se_is == "standard error" else ""
        if self.along == "P" and chosen is None:
            yield Note(
                "The test changes with P here. `tradeoff` compares lengths at equal tokens and a common test."
            )
        if not any(self.slopes.values()):
            return
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
            yield (
                "Curvature is how far a term is from a straight line on logarithmic axes, as an error of its "
                "slope."
            )

    def _tested(self, test: Test | None) -> str:
        """Where the students are tested."""
        return "each position" if self.along == "position" else tested_words(test)

    def _sampled_table(self, sampled: Curve) -> Table:
        """The sampled points, and their reducible risk over the curve's."""
        here = {row[self.along]: row["reducible"] for row in self.points}
        draws = sampled[0].draws
        return Table(
            rows=[
                (
                    row[self.along],
                    *_short(row, _MEASURED),
                    " ".join((*_short(row, ["reducible"]), uncertainty(one, "reducible"))),
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
        rows = [one.row() for one in (*self.risks, *(self.sampled or ()))]
        if self.reuse is None:
            return rows
        worth = [*self.reuse, *(None for _ in self.sampled or ())]
        return [dict(row) | {"E": E} for row, E in zip(rows, worth, strict=True)]

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
        tests = {one.eval_length for one in self.risks}
        tested = self._tested(tests.pop() if len(tests) == 1 else None)
        title = f"Regime {self.risks[0].regime}, {self.method} method, tested at {tested}"
        tidy(place, self.along, "risk", title)
        if self.along == "position":  # which begin at 0
            place.set_xscale("symlog", linthresh=1)
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
    """The log–log slope, where size and term are positive and finite everywhere."""
    pairs = [(row[along], row[name]) for row in rows if row[along] > 0 and 0 < row[name] < math.inf]
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
    """The risk along one size, with the log–log slope of each term.

    Parameters
    ----------
    setting
        The point that is varied.
    along
        M, N, P or R; b or epochs with a batch; `position`, where the students are tested.
    values
        The values of that size.
    method, sketches, repetitions, seed, workers, device, progress
        As in `risk`.
    sampled
        Measure about so many of the values, evenly spread and with both ends, on the sampled method too.
    tokens
        In one pass, fix batch·P·L: the steps follow.
    tune
        Take the step size of least risk at each value, of those that the safeguard allows.

    Returns
    -------
    Curve
        A sequence of `Risk`, with `.slopes`; along epochs with `tune` also `.reuse`, what repeating is worth.

    Examples
    --------
    >>> from seqlaw import Setting, curve
    >>> setting = Setting(teacher="regime2", M=8, N=64, P=4, d=32, schedule="wsd")
    >>> round(curve(setting, "M", [4, 8, 16]).slopes["approx"]["slope"], 1)
    -1.1
    """
    along, asked = SHORT.get(along, along), ask.method_of(method)
    settings = ask.along(setting, along, values, tokens=tokens)
    if along not in asked.varies:
        raise InputError("along", f"must be one of {letters(asked.varies)} on this method", along)
    draws = Draws(sketches=sketches, repetitions=repetitions, seed=seed, workers=workers, device=device)
    if sampled is not None and asked.name == SAMPLED_METHOD:
        raise InputError("sampled", "must be left out on the sampled method, whose points all are", sampled)
    chosen = [] if sampled is None else _spread(setting, values, sampled)
    found = drawn(settings, asked, draws, progress, tune=tune)
    answer = Curve(
        setting=setting, along=along, values=tuple(values), risks=tuple(found), tokens=tokens, tune=tune
    )
    if tune and along == "epochs":
        answer = replace(answer, reuse=tuple(effective_reuse([one.setting for one in found])))
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
