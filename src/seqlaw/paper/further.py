"""The report's sections that go beyond the paper's panels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqlaw.paper import pictures
from seqlaw.paper.beyond import (
    COMMON,
    LONGER,
    TOKENS,
    common_tests,
    longer_or_more,
    noise_checks,
    schedule_curves,
    term_checks,
)
from seqlaw.paper.page import beside, picture, prose, span, table
from seqlaw.paper.panels import QUANTITIES
from seqlaw.rungs.terms import TERMS

if TYPE_CHECKING:
    from seqlaw.paper.reproduce import Reproduction


def longer() -> str:
    """Longer or more, tested at the own length and at common ones."""
    views = longer_or_more()
    lines = []
    for regime, view in views.items():
        for tested, (low, high) in view.best.items():
            where = "at its own length" if tested == "own" else f"at length {int(tested):,}"
            lines.append([regime, where, f"{low:,}" if low == high else f"{low:,} to {high:,}"])
    words = prose(
        "The same tokens as a few long or many short trajectories. The paper scores a student on sequences "
        "of its own training length, so its curves in P change the test along with the training. With the "
        "test held fixed the answer turns round in both regimes here: in Regime I longer sequences win; in "
        "Regime II, at this horizon, shorter ones, because a strong start excites directions that long "
        "trajectories starve, and gradient descent learns them sooner."
    )
    schedule = LONGER["schedule"]
    return (
        "<h2>Longer or more?</h2>"
        + beside(words, table(["Regime", "Tested", "Best P (within 1 %)"], lines, words=2, rules={3}))
        + picture(
            pictures.as_svg(pictures.draw_tradeoffs(views)),
            f"Both regimes: {TOKENS:,} tokens at every point (N = {TOKENS:,}/P), M = {LONGER['M']}, "
            f"d = {LONGER['d']:,}, block decay with L = {schedule.L:,} and γ = {schedule.gamma}, which is "
            f"R = {schedule.horizon:,.0f}. Equivalent rung, as in the first figure of the README.",
            "Reducible risk along P at a fixed number of tokens",
        )
    )


def noise(result: Reproduction) -> str:
    """The sampled variance over its predictions, with an error for each curve as a whole."""
    checks = noise_checks(result.rows, result.series)
    if not checks:
        return ""
    body, off = [], set()
    for row, check in enumerate(checks):
        series, points = check.measured.curve.series, check.over_exact.mean(axis=0)
        z = (check.mean - 1) / check.expected_error
        if abs(z) > 2:
            off.add((row, 7))
        body.append(
            [
                series.regime,
                f"along {series.against}",
                f"{len(check.over_exact)}",
                f"{points.min():.3f} to {points.max():.3f}",
                f"{check.mean:.3f}",
                f"{check.expected_error:.3f}",
                "–" if check.mean_error is None else f"{check.mean_error:.3f}",
                f"{_verdict(z)} ({round(z, 1) + 0:+.1f})",
                f"{check.over_finite_filter.mean():.3f}",
            ]
        )
    header = ["Regime", "Sweep", "Data sets", "Its points", "Mean of the curve", "± expected", "± this run"]
    header += ["(mean - 1) / expected", "Mean over guide"]
    rule = next((k for k, line in enumerate(body) if line[0] == "II"), None)
    return (
        "<h3>The sampled variance over the exact rung</h3>"
        + beside(
            prose(
                "The paper's finite-filter guide leaves out the covariances of scores at different "
                "positions. The exact rung keeps them, in closed form. Shown is the sampled variance of each "
                "data set over the exact rung's for the same sketch, so that the sketch cancels: 1 where the "
                "closed form is right, but for the noise of the data."
            ),
            prose(
                "All points of a sweep come from the same few data sets, nested in N and P and the very "
                "same along R, and the three sweeps meet in one point. So a curve lies high or low as a "
                "whole: the scatter of its points is not its error, and the curves of a panel are not tests "
                "apart."
            ),
        )
        + picture(
            pictures.as_svg(pictures.draw_noise(checks)),
            "Solid: mean over the data sets, over the exact rung. Bars: standard error of that one point "
            "over the data sets of this run; the bars of a curve are not independent of each other.",
            "Sampled variance over its predictions",
        )
        + table(header, body, words=2, rules={rule} - {0, None}, far=off)
        + prose(
            "A data set (one for each sketch and repetition) is what is independent, so each gives one "
            "number: its ratio averaged over the points. ± this run: standard error of the mean of these "
            "numbers. So few of them can agree by chance, and their own error is then far too small. "
            "± expected: the standard deviation of that number over 150 data sets of "
            "Regime I (on the quick grid) and 240 of Regime II (on the paper's), divided "
            "by the root of how many there are here. The verdict uses this one: agrees within 2 errors, "
            "doubtful within 3 (chance does that once in twenty times), off beyond.",
            "small",
        )
    )


def _verdict(z: float) -> str:
    return "agrees" if abs(z) <= 2 else "doubtful" if abs(z) <= 3 else "off"


def schedules(result: Reproduction) -> str:
    """WSD, which the theorem is about, next to the experiments' block decay."""
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
    words = prose(
        "The theorem is about warm-up, stable, decay (WSD); the experiments use block decay. At the same R "
        "their steps sum to 0.77 R and 2.0 R, so they train for different times. Matched in the sum of "
        "steps they are the same to the eye: the sum, not R, is what the filters see."
    )
    header = ["Panel", "Schedule", "Sum of steps", "Slope in R", "Over block decay"]
    return (
        "<h3>The theorem's schedule next to the experiments'</h3>"
        + beside(words, table(header, body, words=2, rules=range(3, len(body), 3)))
        + picture(
            pictures.as_svg(pictures.draw_schedules(curves)),
            "Equivalent rung. In the legend: slopes.",
            "Bias and variance under both schedules",
        )
    )


def terms(result: Reproduction) -> str:
    """The risk from the weights next to the sum of its terms."""
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
    words = prose(
        "Means at the point where the sweeps meet. The risk of the trained student is computed from its "
        "weights, without the split; the largest gap is over all data sets and points."
    )
    header = ["", *(check.panel.title for check in checks)]
    return "<h3>The risk itself, and its five terms</h3>" + beside(
        words, table(header, lines, rules={len(TERMS)})
    )


def common(result: Reproduction) -> str:
    """The slopes in P when every student faces the same test."""
    tests = common_tests(result.panels)
    if not tests:
        return ""
    header = ["Series", "own length (paper)", *(f"at {length:,}" for length in COMMON)]
    body = [
        [f"({test.panel.name}) {QUANTITIES[test.series.quantity]} against P"]
        + [f"{slope + 0:.3f}".replace("-0.000", "0.000") for slope in test.slopes.values()]
        for test in tests
    ]
    words = prose(
        "Slopes of the same series when every student of the series faces the same test (equivalent rung). "
        "Approximation does not depend on the training length at all then; what falls with P in the paper's "
        "Regime II panels is in good part the test getting easier."
    )
    return "<h3>The curves in <i>P</i>, tested at a common length</h3>" + beside(words, table(header, body))
