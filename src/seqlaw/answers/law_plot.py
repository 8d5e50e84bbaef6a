"""The three pictures of a law: curves of equal cost, residuals, and the largest runs predicted."""

from __future__ import annotations

from typing import Any

import numpy as np

from seqlaw.answers.style import SERIES, Axes, few_ticks, tidy
from seqlaw.model.amount import amount
from seqlaw.model.checks import Array
from seqlaw.model.randomness import generator
from seqlaw.runs.ask import Law

_DOTS: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 2.5}


def draw_law(law: Law, place: Axes) -> None:
    """Loss against a size at equal cost, or along a size alone where no cost shares a budget among two."""
    cost = law.cost
    if cost is None or len(cost.free) < 2:
        _along(law, place)
        return
    name = cost.free[0]
    place.plot(law.runs.columns[name], law.runs.loss, color="0.75", zorder=1, label="runs", **_DOTS)
    spent = cost.of({**cost.fixed, **law.runs.columns})
    low, high = np.quantile(spent, [0.02, 0.98])
    budgets = np.geomspace(low, high, 4).tolist()
    if law.allocation is not None:
        budgets.append(law.allocation.budget)
    middle = law.fitted.middle
    x = np.geomspace(law.runs.columns[name].min() / 3, law.runs.columns[name].max() * 3, 200)
    if law.allocation is not None:
        x = np.geomspace(x[0], max(x[-1], 10 * law.allocation.sizes[name].value), 200)
    top = 1.15 * law.runs.loss.max()
    for k, budget in enumerate(budgets):
        own = law.allocation is not None and k == len(budgets) - 1
        values = {n: np.full(x.size, cost.fixed.get(n, middle[n])) for n in law.fitted.form.columns}
        if law.allocation is not None:
            values |= {n: np.full(x.size, one.value) for n, one in law.allocation.sizes.items()}
        values[name] = x
        values[cost.last] = cost.solve({n: values[n] for n in cost.free[:-1]}, budget)
        loss = _loss(law, values)
        shown = loss < top
        if not shown.any():
            continue
        colour = "#000000" if own else SERIES[k % 4]
        place.plot(x[shown], loss[shown], color=colour, linewidth=1.4, label=amount(budget))
        best = int(np.nanargmin(loss))
        if not own and 0 < best < x.size - 1:
            place.plot(x[best], loss[best], color=colour, marker="v", markersize=6)
    if law.allocation is not None:
        best_size, value = law.allocation.sizes[name], law.allocation.loss
        ends = [[best_size.value - (best_size.low or 0)], [(best_size.high or 0) - best_size.value]]
        rise = [[value.value - (value.low or 0)], [(value.high or 0) - value.value]]
        place.errorbar(
            [best_size.value], [value.value], xerr=ends, yerr=rise, color="#000000", marker="v", ms=6
        )
    tidy(place, name, law.loss, f"at equal {cost.text}")
    few_ticks(place)
    place.legend(frameon=False, fontsize=7)


def _loss(law: Law, values: dict[str, Array]) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(np.exp(law.fitted.log_loss(values)[0]))


def _along(law: Law, place: Axes) -> None:
    """The loss along the first column, the others in the middle, ten times beyond the largest run."""
    name = law.fitted.form.columns[0]
    own = law.runs.columns[name]
    x = np.geomspace(own.min(), 10 * own.max(), 100)
    values = {n: np.full(x.size, middle) for n, middle in law.fitted.middle.items()} | {name: x}
    drawn = law.fitted.log_loss(values, law.draws)
    if law.drift is not None:
        drawn = drawn + law.drift.errors(
            np.maximum(x / own.max(), 1), len(drawn), generator(law.seed, "plot")
        )
    low, high = np.quantile(np.exp(drawn), [(1 - law.level) / 2, (1 + law.level) / 2], axis=0)
    place.plot(own, law.runs.loss, color="0.75", label="runs", **_DOTS)
    place.fill_between(x, low, high, color=SERIES[0], alpha=0.2, linewidth=0)
    place.plot(
        x, _loss(law, values), color=SERIES[0], linewidth=1.4, label="the law, other columns in the middle"
    )
    place.axvline(own.max(), color="0.6", linewidth=0.8, linestyle=":")
    tidy(place, name, law.loss, "beyond the dotted line no run was seen")
    few_ticks(place)
    place.legend(frameon=False, fontsize=7)


def draw_residuals(law: Law, place: Axes) -> None:
    """What the law leaves over, in per cent, against the predicted loss; runs of a flag are named."""
    rest = 100 * np.expm1(law.fitted.rest(law.runs))
    predicted = np.exp(law.fitted.log_loss(law.runs.columns)[0])
    place.plot(predicted, rest, color=SERIES[0], **_DOTS)
    named = {
        int(row) for one in law.flags if one.code == "influential" for row in str(one["rows"]).split(", ")
    }
    for k in np.flatnonzero(np.isin(law.runs.rows, list(named))):
        place.plot(predicted[k], rest[k], color=SERIES[1], marker="s", markersize=5, linestyle="none")
        place.annotate(
            str(law.runs.rows[k]), (predicted[k], rest[k]), (4, 3), textcoords="offset points", fontsize=7
        )
    place.axhspan(-100 * law.scatter, 100 * law.scatter, color="0.93", zorder=0)
    place.axhline(0, color="0.6", linewidth=0.8)
    title = "residuals, per cent" + (
        f" (row {'numbers' if len(named) > 1 else 'number'}: influential)" if named else ""
    )
    tidy(place, f"predicted {law.loss}", "measured over predicted - 1, %", title)
    place.set_yscale("linear")
    _plain_x(place)


def draw_extrapolation(law: Law, place: Axes) -> None:
    """Measured against predicted, for the largest runs and a law that has not seen them."""
    found = law.extrapolation
    if found is None:
        place.set_axis_off()
        place.text(0.5, 0.5, "too few runs to leave the largest out", ha="center", transform=place.transAxes)
        place.plot([], [])
        return
    predicted, measured = np.array(found.predicted), np.array(found.measured)
    ends = np.array([min(predicted.min(), measured.min()), max(predicted.max(), measured.max())])
    place.plot(ends, ends, color="0.6", linewidth=0.8)
    place.plot(predicted, measured, color=SERIES[2], **(_DOTS | {"markersize": 3.5}))
    title = f"the largest {measured.size} runs, from the others: off by {100 * found.error:.2g} %"
    tidy(place, f"predicted {law.loss}", f"measured {law.loss}", title)
    few_ticks(place)
    _plain_x(place)


def _plain_x(place: Axes) -> None:
    """A loss spans less than a decade: its ticks are plain numbers."""
    from matplotlib import ticker

    place.set_xscale("linear")
    place.xaxis.set_major_locator(ticker.MaxNLocator(5))
