"""The tables of the page as plain data: cells of text, and which of them stand out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from seqlaw.methods.terms import TERMS
from seqlaw.model.setting import Setting
from seqlaw.model.teacher import NUMBERS
from seqlaw.paper.experiments.checks import COMMON, NoiseCheck, ScheduleCurve, TermCheck
from seqlaw.paper.experiments.conditions import named_conditions
from seqlaw.paper.experiments.panels import QUANTITIES, TEACHERS, Panel, size
from seqlaw.paper.experiments.roles import role
from seqlaw.paper.experiments.slopes import Agreement
from seqlaw.paper.report.formats import grid, ratio_cells, span
from seqlaw.paper.report.verdicts import FAR
from seqlaw.planning.tradeoff import OWN, Tradeoff

if TYPE_CHECKING:
    from seqlaw.paper.answer import Reproduction


@dataclass(frozen=True)
class Table:
    """Text in cells; what follows a line break in one stands below it in small print."""

    header: Sequence[str]
    body: Sequence[Sequence[str]]
    words: int = 1
    """How many columns at the left are text."""
    rules: Iterable[int] = ()
    """Rows with a rule above."""
    far: Iterable[tuple[int, int]] = ()
    """(row, column) of cells that stand out."""
    even: bool = False
    """All columns but the first have one width."""


def teachers(panels: Sequence[Panel]) -> Table:
    """The numbers of each regime's teacher."""
    regimes = dict.fromkeys(panel.regime for panel in panels)
    return Table(
        ["Teacher", *NUMBERS],
        [[f"Regime {name}", *(f"{getattr(TEACHERS[name], n):g}" for n in NUMBERS)] for name in regimes],
    )


def sizes(panels: Sequence[Panel], method: str) -> Table:
    """A line a panel: a fixed size as a number, a swept one as a range, the meeting point below."""
    drawn, body = role(method), []
    for panel in panels:
        idle = QUANTITIES[panel.quantity].idle
        data = drawn.repetitions and panel.quantity == "variance"
        counts = f"{panel.sketches}" if drawn.sketches else "–", f"{panel.repetitions}" if data else "–"
        body.append([panel.title, *("–" if n in idle else _swept(panel, n) for n in "MdNPLR"), *counts])
    return Table(["Panel", "M", "d", "N", "P", "L", "R", "sketches", "repetitions"], body)


def _swept(panel: Panel, name: str) -> str:
    values = [_size(setting, name) for setting in panel.settings]
    low, high = min(values), max(values)
    if low == high or panel.reference is None:
        return span(low, high)
    at = _size(panel.reference, name)
    return f"{span(low, high)}\nelse {span(at, at)}"


def _size(setting: Setting, name: str) -> float:
    return float(setting.schedule.L) if name == "L" else size(setting, name)


def slopes(result: Reproduction) -> Table:
    """The slope table with a column for what is left without sampling."""
    header, body = grid(result.slopes)
    header.insert(5, "No sampling")
    for line, one in zip(body, result.smooth, strict=True):
        line.insert(5, f"{one.curve.slope:.3f}")
    far = {(k, 8) for k, row in enumerate(result.slopes) if row.z is not None and abs(row.z) > FAR}
    return Table(header, body, words=2, rules=_changes(row.regime for row in result.slopes), far=far)


def _changes(regimes: Iterable[str]) -> set[int]:
    """The rows where another regime begins."""
    return {k for k, (above, here) in enumerate(pairwise(regimes), 1) if above != here}


def ratios(agreement: Mapping[str, Agreement]) -> Table:
    """Measured over guide in Regime II."""
    return Table(["", "Here: mean [least, largest]", "Paper"], ratio_cells(agreement))


def named(panels: Sequence[Panel]) -> Table:
    """A mark for each condition that names all its constants."""
    regimes = named_conditions(panels)
    first = next(iter(regimes.values()))
    body = [[name, *(_mark(found[name], "holds", "fails") for found in regimes.values())] for name in first]
    far = {(k, j) for k, name in enumerate(first) for j, of in enumerate(regimes.values(), 1) if not of[name]}
    return Table(["Condition", *(f"Regime {regime}" for regime in regimes)], body, far=far)


_UNNAMED = {
    "ambient": "constant C_amb, not named",
    "unsaturated": "constant c, not named",
    "horizon": "constant of ≳, not named",
    "step size": "constant c_γ, not named; here with ‖G‖ = 1, then with its order h_1",
    "samples": "constant of ≳, not named",
    "trajectories": "constant of ≳, not named",
}


def unnamed(result: Reproduction) -> Table:
    """For the other conditions the range of value over needed, without and with the teacher's scales."""
    names = [panel.name for panel in result.panels]
    found: dict[str, dict[str, Mapping[str, Any]]] = {}
    for one in result.conditions:
        found.setdefault(one["condition"], {})[one["panel"]] = one
    body: list[list[str]] = []
    far = set()
    for condition, panels in found.items():
        kind = next(iter(panels.values()))["kind"]
        titles = {"": f"{condition}\n{_UNNAMED[kind]}", "scaled_": "… with the scales c_ξ and c_0"}
        for scale, title in titles.items():
            cells = {name: one for name, one in panels.items() if one[f"{scale}fails"] is not None}
            if cells:
                far |= {(len(body), 1 + names.index(n)) for n, one in cells.items() if one[f"{scale}fails"]}
                body.append([title, *(_range(cells[n], scale) if n in cells else "" for n in names)])
    return Table(["Condition", *(f"({name})" for name in names)], body, far=far, even=True)


def _range(one: Mapping[str, Any], scale: str) -> str:
    fails, points = one[f"{scale}fails"], one["points"]
    at = "fails" if fails == points else f"fails at {fails} of {points}"
    ends = f"{scale or 'ratio_'}low", f"{scale or 'ratio_'}high"
    return f"{span(one[ends[0]], one[ends[1]])}\n{_mark(not fails, 'holds', at)}"


def _mark(holds: bool, yes: str, no: str) -> str:
    return f"✓ {yes}" if holds else f"✗ {no}"


def longer(views: Mapping[str, Tradeoff]) -> Table:
    """The best P of a fixed number of tokens, by the length of the test."""
    body, regimes = [], [regime for regime, view in views.items() for _ in view.best]
    for regime, view in views.items():
        for tested, (low, high) in view.best.items():
            where = "at its own length" if tested == OWN else f"at length {int(tested):,}"
            body.append([regime, where, f"{low:,}" if low == high else f"{low:,} to {high:,}"])
    return Table(["Regime", "Tested", "Best P (within 1 %)"], body, words=2, rules=_changes(regimes))


def noise(checks: Sequence[NoiseCheck]) -> Table:
    """The sampled variance over the exact method, with an error for each curve as a whole."""
    body, off = [], set()
    for row, check in enumerate(checks):
        series, points = check.measured.curve.series, check.over_exact.mean(axis=0)
        z = (check.mean - 1) / check.expected_error
        if abs(z) > 2:
            off.add((row, 7))
        said = "agrees" if abs(z) <= 2 else "doubtful" if abs(z) <= 3 else "off"
        body.append(
            [
                series.regime,
                f"along {series.against}",
                f"{len(check.over_exact)}",
                f"{points.min():.3f} to {points.max():.3f}",
                f"{check.mean:.3f}",
                f"{check.expected_error:.3f}",
                "–" if check.mean_error is None else f"{check.mean_error:.3f}",
                f"{said} ({round(z, 1) + 0:+.1f})",
                f"{check.over_finite_filter.mean():.3f}",
            ]
        )
    header = ["Regime", "Sweep", "Data sets", "Its points", "Mean of the curve", "± expected", "± this run"]
    header += ["(mean - 1) / expected", "Mean over guide"]
    rules = _changes(check.measured.panel.regime for check in checks)
    return Table(header, body, words=2, rules=rules, far=off)


def schedules(curves: Sequence[ScheduleCurve]) -> Table:
    """WSD, which the theorem is about, next to the experiments' block decay."""
    block = {curve.panel.name: curve for curve in curves if curve.name == "block decay"}
    body = []
    for curve in curves:
        ratio = curve.y / block[curve.panel.name].y
        body.append(
            [
                f"({curve.panel.name}) {QUANTITIES[curve.panel.quantity].title}",
                curve.name,
                f"{curve.sum_over_R:.2f} R",
                f"{curve.slope:.3f}",
                span(float(ratio.min()), float(ratio.max())),
            ]
        )
    header = ["Panel", "Schedule", "Sum of steps", "Slope in R", "Over block decay"]
    return Table(header, body, words=2, rules=range(3, len(body), 3))


def terms(checks: Sequence[TermCheck]) -> Table:
    """The risk from the weights next to the sum of its terms."""
    body = [
        *([name, *(f"{check.means[name]:.4g}" for check in checks)] for name in TERMS),
        ["sum of the five", *(f"{check.means['total']:.10g}" for check in checks)],
        ["risk of the trained B_L", *(f"{check.means['loss']:.10g}" for check in checks)],
        ["largest gap over the reducible risk", *(f"{check.worst:.1e}" for check in checks)],
        ["mean |cross| / √(bias · variance)", *(f"{check.cross_share:.2f}" for check in checks)],
    ]
    return Table(["", *(check.panel.title for check in checks)], body, rules={len(TERMS)})


def common(tests: Sequence[tuple[Panel, dict[str, float]]]) -> Table:
    """The slopes in P when every student faces the same test."""
    body = [
        [f"({panel.name}) {QUANTITIES[panel.quantity].title} against P"]
        + [f"{slope:.3f}".replace("-0.000", "0.000") for slope in slopes.values()]
        for panel, slopes in tests
    ]
    return Table(["Series", "own length (paper)", *(f"at {length:,}" for length in COMMON)], body)


def colophon(result: Reproduction) -> Table:
    """How the page was made."""
    document, seeds = result.document(), [f"{result.seed}"]
    if result.replicates > 1:
        seeds.append(f"{result.seed + result.replicates - 1}")
    facts = {
        "method": result.method,
        "grid": document["grid"],
        "panels": " ".join(f"({panel.name})" for panel in result.panels),
        "seed": " to ".join(seeds),
        **document["versions"],
    }
    return Table(["", ""], list(facts.items()), words=2)
