"""One page for a reader of the paper: the figure, the tables, what agrees, what does not, and what is new."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seqlaw.paper import further
from seqlaw.paper.guides import FORMULAS
from seqlaw.paper.page import beside, bullets, page, picture, prose, span, table, typeset
from seqlaw.paper.panels import QUANTITIES
from seqlaw.paper.setup import setup
from seqlaw.paper.table import grid, named_conditions, ratio_cells
from seqlaw.paper.verdicts import FAR, verdicts

if TYPE_CHECKING:
    from seqlaw.paper.reproduce import Reproduction


def report(result: Reproduction, figure: Path) -> str:
    """The page, with its pictures inside."""
    beyond = [
        further.noise(result),
        further.schedules(result),
        further.terms(result),
        further.common(result),
    ]
    sections = [
        _opening(result),
        setup(result),
        picture(figure.read_bytes(), _caption(result), "The six panels"),
        f"<h2>The {'ten ' if len(result.slopes) == 10 else ''}slopes</h2>",
        _slopes(result),
        _agreement(result),
        _verdicts(result),
        _conditions(result),
        further.longer(),
        "<h2>Beyond the paper's panels</h2>" if any(beyond) else "",
        *beyond,
        _colophon(result),
    ]
    return page("Linear RNN scaling laws, reproduced", sections)


def _opening(result: Reproduction) -> str:
    how = {
        "sampled": "Variances come from sampled data sets, approximation and bias from sampled sketches.",
        "exact": "No trajectory was sampled: variances are expectations in closed form for each sketch.",
        "equivalent": "Nothing was sampled: every number is a deterministic equivalent.",
    }[result.rung]
    letters = ", ".join(f"({panel.name})" for panel in result.panels)
    named = "All six panels" if len(result.panels) == 6 else f"Of the six panels: {letters},"
    size = "a smaller grid than the paper's" if result.quick else "the paper's full grids"
    judged = [abs(row.z) for row in result.slopes if row.z is not None]
    verdict = "On the smaller grid the slopes are not comparable with the paper's to the last digits."
    if judged:
        near, beyond = sum(z <= FAR for z in judged), sum(z > 3 for z in judged)
        rest = "all" if not beyond else f"all but {beyond}"
        verdict = (
            f"{near} of {len(judged)} slopes are as close to the paper's as chance lets two runs of one "
            f"experiment be: within two standard deviations (|z| ≤ 2 in the table of slopes); {rest} lie "
            "within three."
        )
    return (
        "<h1>Linear RNN scaling laws: the experiments, reproduced</h1>"
        + prose(
            f"{named} on {size}. {how} As in the paper, each student is tested on sequences of the length "
            "that it was trained on, unless a section says otherwise."
        )
        + f"<p class=verdict><strong>{typeset(verdict)}</strong></p>"
    )


def _caption(result: Reproduction) -> str:
    solid = {
        "sampled": "Solid: measured, averaged over the sketches.",
        "exact": "Solid: averaged over the sketches, and in closed form over the trajectories.",
        "equivalent": "Solid: deterministic equivalent.",
    }[result.rung]
    bars = (
        " Bars: standard deviation over sketches (approximation, bias), standard error of sketch-level means "
        "(variance)."
    )
    return (
        solid
        + (bars if result.rung != "equivalent" else "")
        + " Short black dashes: the paper's guides. In a variance panel the three sweeps pass through one "
        "point, and each size is shown relative to it."
    )


def _slopes(result: Reproduction) -> str:
    header, body = grid(result.slopes)
    flat = [f"{one.curve.slope:.3f}" for one in result.equivalent]
    header.insert(5, "No sampling")
    for line, text in zip(body, flat, strict=True):
        line.insert(5, text)
    rule = next((k for k, row in enumerate(result.slopes) if row.regime == "II"), None)
    far = {(k, 8) for k, row in enumerate(result.slopes) if row.z is not None and abs(row.z) > FAR}
    note = (
        "± se: bootstrap over the sketches with their data sets. No sampling: the deterministic equivalent "
        "of the same grid. z: difference from the paper's slope over √(k·spread² + rounding²), where spread "
        "is the standard deviation of that slope over repetitions of the whole experiment and k counts the "
        "runs that are noisy (ours and the paper's, or the paper's alone)."
    )
    if result.replicates > 1:
        note += f" Replicates: the whole experiment with {result.replicates} seeds."
    return table(header, body, words=2, rules={rule} - {0, None}, far=far) + prose(note, "small")


def _agreement(result: Reproduction) -> str:
    """Measured over guide beside what the guides are."""
    guides = bullets(
        f"Regime {regime}, {QUANTITIES[quantity]}: {formula}"
        for (regime, quantity), formula in FORMULAS.items()
    )
    scales = prose(
        "Var of Regime II is not scaled. The others are known up to a factor: the mean ratio of measured to "
        "guide is 1, except for the bias of Regime II, which is 1 at its middle point.",
        "small",
    )
    right = "<h2>The guides</h2>" + guides + scales
    if not result.agreement:
        return right
    clipped = f"{result.clipping:.1%} of the rows" if result.clipping else "none of the rows"
    left = (
        "<h2>Measured over guide, Regime II</h2>"
        + table(["", "Here: mean [least, largest]", "Paper"], ratio_cells(result.agreement))
        + prose(f"The safeguard clipped the step size in {clipped} (paper: in none).", "small")
    )
    return beside(left, right)


def _verdicts(result: Reproduction) -> str:
    """What agrees and what does not, in sentences that the numbers make."""
    agree, differ = verdicts(result)
    columns = [
        f"<h3>{title}</h3>{bullets(items)}"
        for title, items in (("Agrees", agree), ("Differs, or needs care", differ))
        if items
    ]
    said = (
        beside(*columns)
        if columns
        else "<p>Nothing is compared: the slopes of a smaller grid are others.</p>"
    )
    return f"<h2>What agrees, and what does not</h2>{said}"


_UNNAMED = {
    "ambient": "constant C_amb, not named",
    "unsaturated": "constant c, not named",
    "horizon": "constant of ≳, not named",
    "step size": "constant c_γ, not named; here with ‖G‖ = 1, then with its order h_1",
    "samples": "constant of ≳, not named",
    "trajectories": "constant of ≳, not named",
}


def _conditions(result: Reproduction) -> str:
    """A mark for each condition that names its constants, the range of value over needed for the others."""
    named = named_conditions(result.panels)
    first = next(iter(named.values()))
    marks = [
        [name, *(f"{_mark(found[name])} {'holds' if found[name] else 'fails'}" for found in named.values())]
        for name in first
    ]
    wrong = {
        (row, 1 + k) for k, one in enumerate(named.values()) for row, n in enumerate(first) if not one[n]
    }
    names = [panel.name for panel in result.panels]
    cells: dict[tuple[str, bool], dict[str, tuple[str, bool]]] = {}
    for one in result.conditions:
        for scales in (False, True):
            kind = "scaled" if scales else "ratio"
            fails = one["scaled_fails" if scales else "fails"]
            if fails is not None:
                text = span(one[f"{kind}_low"], one[f"{kind}_high"])
                line = cells.setdefault((one["condition"], scales), {})
                line[one["panel"]] = f"{text}\n{_mark(not fails)} {_extent(fails, one['points'])}", fails > 0
    order = {name: place for place, (name, scales) in enumerate(cells) if not scales}
    lines = sorted(cells, key=lambda key: (order[key[0]], key[1]))
    body = [
        [
            "… with the scales c_ξ and c_0" if scales else f"{name}\n{_UNNAMED[name.partition(':')[0]]}",
            *(cells[name, scales].get(panel, ("", False))[0] for panel in names),
        ]
        for name, scales in lines
    ]
    far = {
        (row, 1 + column)
        for row, key in enumerate(lines)
        for column, panel in enumerate(names)
        if cells[key].get(panel, ("", False))[1]
    }
    return (
        "<h2>The theorem's conditions</h2>"
        + beside(
            "<h3>With every constant named</h3>"
            + table(["Condition", *(f"Regime {regime}" for regime in named)], marks, far=wrong),
            "<h3>With constants that the theorem leaves unnamed</h3>"
            + prose(
                "Below: value over need at the points of each panel, with every unnamed constant taken as "
                "one. The conditions are orders of magnitude, so most are given twice, without and with the "
                "scales c_ξ and c_0 of the teacher."
            )
            + prose(
                "✓ holds: every point is on the right side of one. ✗ fails: no point is; ✗ fails at k of n: "
                "k of its n points are not. Such an experiment is outside what the theorem promises at that "
                "constant; another may cover it. Empty: the condition plays no part in that panel."
            ),
        )
        + table(["Condition", *(f"({name})" for name in names)], body, far=far, even=True)
    )


def _mark(holds: bool) -> str:
    return "✓" if holds else "✗"


def _extent(fails: int, points: int) -> str:
    if not fails:
        return "holds"
    return "fails" if fails == points else f"fails at {fails} of {points}"


def _colophon(result: Reproduction) -> str:
    document = result.document()
    facts = {
        "rung": result.rung,
        "grid": document["grid"],
        "panels": " ".join(f"({panel.name})" for panel in result.panels),
        "seed": f"{result.seed}"
        + (f" to {result.seed + result.replicates - 1}" if result.replicates > 1 else ""),
        **document["versions"],
    }
    words = (
        "<p>By <code>seqlaw reproduce</code>. The same seed and versions give the same bytes on one type of "
        "processor. Numbers behind the page: <code>table.json</code> and <code>rows.parquet</code>.</p>"
    )
    lines = [[name, value] for name, value in facts.items()]
    return "<h2>How this page was made</h2>" + beside(words, table(["", ""], lines, words=2))
