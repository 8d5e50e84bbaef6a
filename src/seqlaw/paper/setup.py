"""What was run, in one box: the teachers, the sizes of every panel, and the words that the page uses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seqlaw.model.setting import Setting
from seqlaw.paper.page import beside, box, bullets, prose, span, table
from seqlaw.paper.panels import GAMMA, TEACHERS, Panel, size

if TYPE_CHECKING:
    from seqlaw.paper.reproduce import Reproduction

_NUMBERS = ("alpha", "theta", "r", "rho", "c_xi", "c_0")
_WORDS = (
    "M: width of the student, the number of features that it sees and predicts.",
    "N: number of training sequences; P: length of each, in transitions. NP are the tokens.",
    "R: horizon of training; for block decay R = γ⌊L/ln L⌋, about half the sum of the L step sizes.",
    "Sketch: the random Gaussian map from the d latent directions to the student's M features.",
    "Guide: the curve that the paper draws beside its measurements, a rate or a finite formula.",
    "Safeguard: γ is lowered where the largest eigenvalue of the data's covariance would make γ‖G‖ exceed ½.",
    "Deterministic equivalent: the risk averaged over sketches and data in closed form, nothing sampled.",
)


def setup(result: Reproduction) -> str:
    """The box at the top of the page."""
    regimes = dict.fromkeys(panel.regime for panel in result.panels)
    teachers = table(
        ["Teacher", *_NUMBERS],
        [[f"Regime {name}", *(f"{getattr(TEACHERS[name], n):g}" for n in _NUMBERS)] for name in regimes],
    )
    law = prose(
        "In latent direction j: transition rho j^{−r}, innovation variance c_xi j^-alpha, initial variance "
        f"c_0 j^-theta. Full-batch gradient descent from 0, block decay from gamma = {GAMMA:g}.",
        "small",
    )
    header = ["Panel", "M", "d", "N", "P", "L", "R", "sketches", "repetitions"]
    sizes = table(header, [_line(panel, result.rung) for panel in result.panels])
    note = prose(
        "A range is swept; where several are, one at a time, from the values below. –: plays no part, or "
        "was not sampled (population quantities need no data, approximation no training).",
        "small",
    )
    return box("<h2>Setup</h2>" + beside(teachers + law, bullets(_WORDS)) + sizes + note)


def _line(panel: Panel, rung: str) -> list[str]:
    """One panel: a number where a size is fixed, its range where it is swept, the meeting point below."""
    data = panel.quantity == "variance"
    idle = {"approx": "NLR", "bias": "N", "variance": ""}[panel.quantity]
    counts = (
        f"{panel.sketches}" if rung != "equivalent" else "–",
        f"{panel.repetitions}" if rung == "sampled" and data else "–",
    )
    return [panel.title, *("–" if name in idle else _cell(panel, name) for name in "MdNPLR"), *counts]


def _cell(panel: Panel, name: str) -> str:
    values = [_size(setting, name) for setting in panel.settings]
    low, high = min(values), max(values)
    if low == high or panel.reference is None:
        return span(low, high)
    at = _size(panel.reference, name)
    return f"{span(low, high)}\nelse {span(at, at)}"


def _size(setting: Setting, name: str) -> float:
    return float(setting.schedule.L) if name == "L" else size(setting, name)
