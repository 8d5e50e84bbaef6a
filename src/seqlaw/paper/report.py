"""One page for a reader of the paper: the figure, the tables, what agrees, what does not, and what is new."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from seqlaw.paper import pictures
from seqlaw.paper.beyond import (
    COMMON,
    common_tests,
    longer_or_more,
    noise_checks,
    schedule_curves,
    term_checks,
)
from seqlaw.paper.guides import FORMULAS
from seqlaw.paper.page import page, picture, span, table, words_of
from seqlaw.paper.panels import QUANTITIES
from seqlaw.paper.table import NAMES, grid, ratio_cells
from seqlaw.rungs.terms import TERMS

if TYPE_CHECKING:
    from seqlaw.paper.reproduce import Reproduction


def report(result: Reproduction, figure: Path) -> str:
    """The page, with its pictures inside."""
    sections = [
        _opening(result),
        picture(pictures.data_address(figure), _caption(result), "The six panels"),
        "<h2>The ten slopes</h2>",
        _slopes(result),
        _agreement(result),
        _verdicts(result),
        _conditions(result),
        _longer(),
        "<h2>Beyond the paper's panels</h2>",
        _noise(result),
        _schedules(result),
        _terms(result),
        _common(result),
        _colophon(result),
    ]
    return page("Linear RNN scaling laws, reproduced", sections)


def _opening(result: Reproduction) -> str:
    how = {
        "sampled": "Variances come from sampled data sets, approximation and bias from sampled sketches.",
        "exact": "No trajectory was sampled: variances are expectations in closed form for each sketch.",
        "equivalent": "Nothing was sampled: every number is a deterministic equivalent.",
    }[result.rung]
    size = "a smaller grid than the paper's" if result.quick else "the paper's full grids"
    judged = [abs(row.z) for row in result.slopes if row.z is not None]
    verdict = "On the smaller grid the slopes are not comparable with the paper's to the last digits."
    if judged:
        near, far = sum(z <= 2 for z in judged), sum(z > 3 for z in judged)
        verdict = (
            f"{near} of {len(judged)} slopes lie within two standard errors of the value that the paper "
            f"prints, {len(judged) - far} within three."
        )
    return (
        "<h1>Linear RNN scaling laws: the experiments, reproduced</h1>"
        f"<p>All series of the {len(result.panels)} panels on {size}. {how} "
        "As in the paper, each student is tested on sequences of the length that it was trained on, "
        "unless a section says otherwise.</p>"
        f'<p class="verdict"><strong>{verdict}</strong></p>'
    )


def _caption(result: Reproduction) -> str:
    return (
        "Solid: measured, averaged over the sketches. Bars: standard deviation over sketches (approximation, "
        "bias), standard error of sketch-level means (variance). Dashed: the paper's guides. In a variance "
        "panel the three sweeps pass through one point, and each size is shown relative to it."
    )


def _slopes(result: Reproduction) -> str:
    header, body = grid(result.slopes)
    flat = [f"{one.curve.slope:.3f}" for one in result.equivalent]
    header.insert(5, "No sampling")
    for line, text in zip(body, flat, strict=True):
        line.insert(5, text)
    rule = next((k for k, row in enumerate(result.slopes) if row.regime == "II"), None)
    far = {(k, 8) for k, row in enumerate(result.slopes) if row.z is not None and abs(row.z) > 2}
    note = (
        "± se: bootstrap over the sketches with their data sets. No sampling: the deterministic equivalent "
        "of the same grid. z: difference from the paper's slope over √(k·spread² + rounding²), where spread "
        "is the standard deviation of that slope over repetitions of the whole experiment and k counts the "
        "runs that are noisy (ours and the paper's, or the paper's alone)."
    )
    if result.replicates > 1:
        note += f" Replicates: the whole experiment with {result.replicates} seeds."
    guides = "".join(
        f"<li>Regime {regime}, {QUANTITIES[quantity]}: <code>{escape(formula)}</code></li>"
        for (regime, quantity), formula in FORMULAS.items()
    )
    return (
        table(header, body, words=2, rules={rule} - {0, None}, far=far)
        + f'<p class="small">{note}</p><details class="small"><summary>The guides</summary><ul>{guides}</ul>'
        "<p>Var of Regime II is not scaled. The others are known up to a factor: the mean ratio of measured "
        "to guide is 1, except for the bias of Regime II, which is 1 at its middle point.</p></details>"
    )


def _agreement(result: Reproduction) -> str:
    if not result.agreement:
        return ""
    clipped = f"{result.clipping:.1%} of the rows" if result.clipping else "none of the rows"
    return (
        "<h2>Measured over guide, Regime II</h2>"
        + table(["", "Here: mean [least, largest]", "Paper"], ratio_cells(result.agreement))
        + f"<p>The safeguard clipped the step size in {clipped} (paper: in none).</p>"
    )


def _verdicts(result: Reproduction) -> str:
    """What agrees and what does not, in sentences that the numbers make."""
    rows = {(row.regime, row.quantity, row.against): row for row in result.slopes}
    smooth = {one.curve.series.key: one.curve.slope for one in result.equivalent}
    agree: list[str] = []
    differ: list[str] = []
    for key, row in rows.items():
        name = f"{NAMES[row.quantity]} against {row.against}, Regime {row.regime}"
        if row.z is not None:
            digits = 3 if row.spread > 0.001 else 4
            text = (
                f"{name}: {row.slope:.{digits}f} here, {row.paper_slope:.3f} in the paper (z = {row.z:+.1f})."
            )
            if abs(row.z) > 2:
                text += f" Repeating the experiment moves this slope by {row.spread:g} only."
            (agree if abs(row.z) <= 2 else differ).append(text)
        gap = row.slope - row.guide
        if abs(gap) > 0.05 and abs(smooth[key] - row.guide) > 0.05:
            differ.append(
                f"{name}: the measured slope {row.slope:.3f} is not the guide's {row.guide:.3f}, here as in "
                f"the paper ({row.paper_slope:.3f}). The deterministic equivalent gives {smooth[key]:.3f} on "
                "this grid, so the gap is one of finite sizes and not of noise."
            )
    noisy = [row for row in rows.values() if row.quantity == "variance" and row.spread > 0.02]
    if noisy and not result.quick:
        span = f"{min(r.spread for r in noisy):.3f} to {max(r.spread for r in noisy):.3f}"
        differ.append(
            f"Variance slopes come from few data sets. Repeating the whole experiment moves them by {span} "
            "(one standard deviation), so the second digit of the paper's values is not reproducible."
        )
    parts = ["<h2>What agrees, and what does not</h2>"]
    for title, items in (("Agrees", agree), ("Differs, or needs care", differ)):
        if items:
            parts.append(
                f"<h3>{title}</h3><ul>{''.join(f'<li>{words_of(item)}</li>' for item in items)}</ul>"
            )
    return "".join(parts) if len(parts) > 1 else ""


_SIGNS = {"<=": "≤", ">=": "≥", ">~": "≳", "alpha": "α", "theta": "θ", "gamma": "γ", "||": "‖", "^-": "^−"}
_SIGNS |= {"C_rho": "C_ρ"}


def _conditions(result: Reproduction) -> str:
    """Conditions down, panels across: the range of value over needed, without and with the scales."""
    names = [panel.name for panel in result.panels]
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for one in result.conditions:
        name = one["condition"]
        for ascii_sign, sign in _SIGNS.items():
            name = name.replace(ascii_sign, sign)
        cells.setdefault((name, ""), {})[one["panel"]] = span(one["ratio_low"], one["ratio_high"])
        if one["scaled_low"] is not None:
            scaled = span(one["scaled_low"], one["scaled_high"])
            cells.setdefault((name, "… with c_ξ and c_0"), {})[one["panel"]] = scaled
    first = {name: place for place, (name, scales) in enumerate(cells) if not scales}
    order = sorted(cells, key=lambda key: (first[key[0]], key[1]))
    body = [[key[1] or key[0], *(cells[key].get(panel, "") for panel in names)] for key in order]
    return (
        "<h2>The theorem's conditions</h2><p>Conditions whose constants the theorem leaves unnamed, as "
        "ratios of value to need at constant one, over the points of each panel. A ratio on the wrong "
        "side of one means that the experiment runs outside what the theorem promises at that constant, "
        "not that it fails.</p>" + table(["Condition", *(f"({name})" for name in names)], body)
    )


def _longer() -> str:
    views = longer_or_more()
    lines = []
    for regime, view in views.items():
        for tested, (low, high) in view.best.items():
            where = "at its own length" if tested == "own" else f"at length {tested}"
            lines.append([regime, where, f"{low}" if low == high else f"{low} to {high}"])
    return (
        "<h2>Longer or more?</h2><p>The same tokens as a few long or many short trajectories. The paper "
        "scores a student on sequences of its own training length, so its curves in P change the test along "
        "with the training. With the test held fixed the answer turns round in both regimes here: in Regime "
        "I longer sequences win; in Regime II, at this horizon, shorter ones, because a strong start excites "
        "directions that long trajectories starve, and gradient descent learns them sooner.</p>"
        + picture(
            pictures.as_data(pictures.draw_tradeoffs(views)),
            "Equivalent rung; M = 128, d = 1024, block decay with L = 30000 and γ = 0.1.",
            "Reducible risk along P at a fixed number of tokens",
        )
        + table(["Regime", "Tested", "Best P (within 1 %)"], lines, words=2)
    )


def _noise(result: Reproduction) -> str:
    checks = noise_checks(result.series)
    if not checks:
        return ""
    body = []
    for check in checks:
        series = check.measured.curve.series
        exact, guide = check.over_exact, check.over_finite_filter
        body.append(
            [
                series.regime,
                f"along {series.against}",
                f"{exact.mean():.3f} [{exact.min():.3f}, {exact.max():.3f}]",
                f"{guide.mean():.3f} [{guide.min():.3f}, {guide.max():.3f}]",
                f"{np.median(check.error):.3f}" if np.isfinite(check.error).all() else "–",
            ]
        )
    return (
        "<h3>The variance, predicted without its lagged scores and with them</h3><p>The paper's "
        "finite-filter guide leaves out the covariances of scores at different positions. The exact rung "
        "keeps them, in closed form. Points of a sweep share their data, so they stray together.</p>"
        + picture(pictures.as_data(pictures.draw_noise(checks)), "", "Sampled variance over its predictions")
        + table(["Regime", "Sweep", "Over exact", "Over guide", "Error of a point"], body, words=2)
    )


def _schedules(result: Reproduction) -> str:
    curves = schedule_curves(result.panels)
    if not curves:
        return ""
    block = {curve.panel.name: curve for curve in curves if curve.name == "block decay"}
    body = []
    for curve in curves:
        ratio = curve.y / block[curve.panel.name].y
        body.append(
            [
                f"({curve.panel.name}) {QUANTITIES[curve.series.quantity]}",
                curve.name,
                f"{curve.sum_over_R:.2f} R",
                f"{curve.slope:.3f}",
                span(float(ratio.min()), float(ratio.max())),
            ]
        )
    return (
        "<h3>The theorem's schedule next to the experiments'</h3><p>The theorem is about warm-up, stable, "
        "decay (WSD); the experiments use block decay. At the same R their steps sum to 0.77 R and 2.0 R, "
        "so they train for different times. Matched in the sum of steps they are the same to the eye: "
        "the sum, not R, is what the filters see.</p>"
        + picture(
            pictures.as_data(pictures.draw_schedules(curves)),
            "Equivalent rung. In the legend: slopes.",
            "Bias and variance under both schedules",
        )
        + table(["Panel", "Schedule", "Sum of steps", "Slope in R", "Over block decay"], body, words=2)
    )


def _terms(result: Reproduction) -> str:
    checks = term_checks(result.rows, result.panels)
    if not checks:
        return ""
    lines = [
        *([name, *(f"{check.terms[name]:.4g}" for check in checks)] for name in TERMS),
        ["sum of the five", *(f"{check.total:.10g}" for check in checks)],
        ["risk of the trained B_L", *(f"{check.loss:.10g}" for check in checks)],
        ["largest gap over the reducible risk", *(f"{check.worst:.1e}" for check in checks)],
        ["mean |cross| / √(bias · variance)", *(f"{check.cross_share:.2f}" for check in checks)],
    ]
    return (
        "<h3>The risk itself, and its five terms</h3><p>Means at the point where the sweeps meet. The risk "
        "of the trained student is computed from its weights, without the split; the largest gap is over all "
        "data sets and points.</p>"
        + table(["", *(check.panel.title for check in checks)], lines, rules={len(TERMS)})
    )


def _common(result: Reproduction) -> str:
    tests = common_tests(result.panels)
    if not tests:
        return ""
    header = ["Series", "own length (paper)", *(f"at {length}" for length in COMMON)]
    body = [
        [f"({test.panel.name}) {QUANTITIES[test.series.quantity]} against P"]
        + [f"{slope + 0:.3f}".replace("-0.000", "0.000") for slope in test.slopes.values()]
        for test in tests
    ]
    return (
        "<h3>The curves in P, tested at a common length</h3><p>Slopes of the same series when every student "
        "of the series faces the same test. Approximation does not depend on the training length at all "
        "then; what falls with P in the paper's panels is in good part the test getting easier.</p>"
        + table(header, body)
        + '<p class="small">Equivalent rung.</p>'
    )


def _colophon(result: Reproduction) -> str:
    document = result.document()
    facts = {
        "rung": result.rung,
        "grid": document["grid"],
        "panels": ", ".join(panel.name for panel in result.panels),
        "seed": f"{result.seed}"
        + (f" to {result.seed + result.replicates - 1}" if result.replicates > 1 else ""),
        **document["versions"],
    }
    return (
        "<h2>How this page was made</h2>"
        + table(["", ""], [[name, value] for name, value in facts.items()], words=2)
        + '<p class="small">By <code>seqlaw reproduce</code>. The same seed and versions give the same bytes '
        "on one type of processor. Numbers behind the page: <code>table.json</code> and "
        "<code>rows.parquet</code>.</p>"
    )
