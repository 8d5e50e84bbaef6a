"""The slope table and the agreement with the guides as text: cells, Markdown, CSV, JSON, LaTeX."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from seqlaw.model.amount import amount
from seqlaw.paper.experiments.panels import QUANTITIES
from seqlaw.paper.experiments.slopes import Agreement, SlopeRow

HEADER = ("Regime", "Quantity", "Slope", "± se", "Guide", "Paper", "Paper's guide", "z")


def slope_text(row: SlopeRow) -> str:
    """The slope with the digits that repeating the experiment leaves alone."""
    return f"{row.slope:.{3 if row.spread > 0.001 else 4}f}"


def cells(row: SlopeRow) -> list[str]:
    """A row as the table prints it."""
    return [
        row.regime,
        f"{QUANTITIES[row.quantity].short} vs. {row.against}",
        slope_text(row),
        "–" if row.slope_se is None else f"{row.slope_se:.2g}",
        f"{row.guide:.3f}",
        f"{row.paper_slope:.3f}",
        f"{row.paper_guide:.3f}",
        "–" if row.z is None else f"{row.z:+.1f}",
    ]


def grid(table: Sequence[SlopeRow]) -> tuple[list[str], list[list[str]]]:
    """Header and cells; the replicates add two columns."""
    header, body = list(HEADER), [cells(row) for row in table]
    if any(row.replicate_mean is not None for row in table):
        header += ["Replicates' mean", "spread"]
        for line, row in zip(body, table, strict=True):
            line += [f"{row.replicate_mean:.4f}", f"{row.replicate_spread:.2g}"]
    return header, body


def as_markdown(table: Sequence[SlopeRow], ratios: Mapping[str, Agreement]) -> str:
    """The tables for people."""
    header, body = grid(table)
    text = _markdown(header, body)
    if ratios:
        text += "\nRegime II, measured over guide: mean [least, largest]\n\n"
        text += _markdown(["", "Here", "Paper"], ratio_cells(ratios))
    return text


def ratio_cells(ratios: Mapping[str, Agreement]) -> list[list[str]]:
    """The agreement table as text."""
    lines = []
    for one in ratios.values():
        title = f"{QUANTITIES[one.series.quantity].word} along {one.series.against}"
        here = f"{one.mean:.3f} [{one.low:.3f}, {one.high:.3f}]"
        there = f"{one.paper_mean:.3f} [{one.paper_low:.3f}, {one.paper_high:.3f}]"
        lines.append([title, here, there])
    return lines


def _markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *body]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def as_csv(table: Sequence[SlopeRow]) -> str:
    """All fields, one row a slope."""
    out = io.StringIO()
    writer = csv.DictWriter(out, fieldnames=list(asdict(table[0])), lineterminator="\n")
    writer.writeheader()
    writer.writerows(asdict(row) for row in table)
    return out.getvalue()


def as_json(result: Mapping[str, Any]) -> str:
    """A document of plain types."""
    return json.dumps(result, indent=2, allow_nan=False, ensure_ascii=False) + "\n"


def as_tex(table: Sequence[SlopeRow]) -> str:
    """A booktabs table like the paper's, with its two columns beside ours."""
    lines = [r"\begin{tabular}{llcccccc}", r"  \toprule"]
    lines += [r"  Regime & Quantity & Slope & s.e. & Guide & Paper & Paper's guide & $z$ \\", r"  \midrule"]
    before = table[0].regime
    for row in table:
        if row.regime != before:
            lines.append(r"  \midrule")
            before = row.regime
        regime, _, *numbers = cells(row)
        name = rf"\(\operatorname{{{QUANTITIES[row.quantity].short}}}\) vs.\ \({row.against}\)"
        numbers = [rf"\({text}\)" if text != "–" else "--" for text in numbers]
        lines.append("  " + " & ".join([regime, name, *numbers]) + r" \\")
    return "\n".join([*lines, r"  \bottomrule", r"\end{tabular}", ""])


def span(low: float, high: float) -> str:
    """A range of numbers, or the one number that it is."""
    texts = amount(low, 2), amount(high, 2)
    return texts[0] if texts[0] == texts[1] else f"{texts[0]}–{texts[1]}"
