"""How each method is called and drawn beside others, apart from its numbers: a new word makes none old."""

from __future__ import annotations

from dataclasses import dataclass

from seqlaw.methods.ask import method_of
from seqlaw.methods.method import Method


@dataclass(frozen=True, kw_only=True)
class Caption:
    """A method in a report's words, and its line where it is laid over another method's figure."""

    opening: str
    """A sentence about all numbers of a page."""
    solid: str
    """What a solid line of it is, in a caption …"""
    key: str
    """… and in the key of a figure."""
    dashes: tuple[float, ...] = (2, 1, 2, 3)
    """On and off, in widths of the line …"""
    dashed: str = "mixed dashes"
    """… and in words."""


_CAPTIONS = {
    "sampled": Caption(
        opening="Variances come from sampled data sets, approximation and bias from sampled sketches.",
        solid="Solid: measured, averaged over the sketches.",
        key="measured, mean over sketches",
        dashes=(1, 1),
        dashed="dotted",
    ),
    "exact": Caption(
        opening="No trajectory was sampled: variances are expectations in closed form for each sketch.",
        solid="Solid: averaged over the sketches, and in closed form over the trajectories.",
        key="exact method, mean over sketches",
        dashes=(9, 2.5),
        dashed="long dashes",
    ),
    "equivalent": Caption(
        opening="Nothing was sampled: every number is a deterministic equivalent.",
        solid="Solid: deterministic equivalent.",
        key="equivalent method, nothing sampled",
        dashes=(5, 1.5, 1, 1.5),
        dashed="dash-dotted",
    ),
    "trained": Caption(
        opening="Students were trained step by step, and approximation comes from sampled sketches.",
        solid="Solid: trained students, averaged over the sketches.",
        key="trained, mean over sketches",
        dashes=(3, 1, 1, 1, 1, 1),
        dashed="dashes and two dots",
    ),
}


def caption_of(given: str | Method) -> Caption:
    """A method's own `caption` where it has one, else ours, else one made of its name."""
    method = method_of(given)
    name = method.name
    generic = Caption(
        opening=f"Every number is the {name} method's.", solid=f"Solid: {name} method.", key=f"{name} method"
    )
    return getattr(method, "caption", _CAPTIONS.get(name, generic))
