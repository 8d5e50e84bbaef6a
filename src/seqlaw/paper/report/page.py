"""One page for a reader of the paper, which needs nothing but itself: tables and pictures in a template."""

from __future__ import annotations

import re
from base64 import b64encode
from dataclasses import dataclass
from html import escape, unescape
from typing import TYPE_CHECKING, Any

from seqlaw.answers.glossary import WORDS, signs
from seqlaw.answers.methods import caption_of
from seqlaw.paper.experiments import checks
from seqlaw.paper.experiments.panels import GAMMA, QUANTITIES
from seqlaw.paper.experiments.roles import role
from seqlaw.paper.experiments.slopes import FORMULAS
from seqlaw.paper.report import figures, tables
from seqlaw.paper.report.verdicts import headline, verdicts

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

    from seqlaw.paper.answer import Reproduction

PAGE = 8.6 * 72
"""Points: the width of the paper's figure. Narrower pictures are scaled alike: letters keep one size."""
USED = ("horizon", "sketch", "guide", "method", "deterministic equivalent", "safeguard", "reducible", "cross")
"""Words of the house that every such page has."""
LEAST = 46
"""rem: a picture as wide as the page is not shown smaller, or its letters could not be read."""

_ITALIC = r"<i>\g<0></i>"
_STEPS = tuple(
    (re.compile(pattern), by)
    for pattern, by in (
        (r"(?<=\d)e-0*(\d+)", r"·10^{-\1}"),
        (r"(?<=\d)e\+?0*(\d+)", r"·10^{\1}"),
        (r"(?<![A-Za-z])-(?=[\d.α-ω])|(?<= )-(?= )", "−"),
        (r"(?<=\w) = (?=\S)", "\u00a0=\u00a0"),
        (r"(?<!\w)(\w)_(\w+)", r"\1<sub>\2</sub>"),
        # Letters stand alone, multiplied, or before an index; (c) and (d) are panels.
        (
            r"(?<![A-Za-z])(?:NP|RM|[GMNPRLgjknrz]|[A-Za-z](?=<sub>)|(?<!\()[cd]|[cd](?!\)))(?![A-Za-z])",
            _ITALIC,
        ),
        (r"\^\{([^}]*)\}|\^(−?\w+)", r"<sup>\1\2</sup>"),
    )
)
"""Notation of plain text as HTML: signs, indices, powers, and the paper's letters in italics."""


@dataclass(frozen=True)
class Picture:
    """An SVG inside a page."""

    svg: bytes

    @property
    def address(self) -> str:
        return "data:image/svg+xml;base64," + b64encode(self.svg).decode()

    @property
    def size(self) -> str:
        """One of PAGE points is as wide as the page; a narrow window scrolls, as under a table."""
        found = re.search(rb'viewBox="0 0 ([\d.]+)', self.svg)
        share = min(float(found[1]) / PAGE, 1.0) if found else 1.0
        return f"width:{share:.0%};min-width:{LEAST * share:.1f}rem"


def environment() -> Environment:
    """The templates of this folder, with the filter `typeset`."""
    from jinja2 import Environment, PackageLoader
    from markupsafe import Markup

    found = Environment(
        loader=PackageLoader("seqlaw.paper.report", ""),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    found.filters["typeset"] = lambda html: Markup(typeset_html(html))
    return found


def page(result: Reproduction, figure: bytes) -> str:
    """The page, with its pictures inside; a section is left out where it has nothing to show."""
    agree, differ = verdicts(result)
    views = checks.longer_or_more()
    noise = checks.noise_checks(result.rows, result.series)
    curves = checks.schedule_curves(result.panels)
    terms = checks.term_checks(result.rows, result.panels)
    common = checks.common_tests(result.panels)
    template = environment().get_template("page.html.j2")
    return template.render(
        result=result,
        role=role(result.method),
        caption=caption_of(result.method),
        letters=[f"({panel.name})" for panel in result.panels],
        headline=headline(result),
        gamma=GAMMA,
        words={word: WORDS[word] for word in USED},
        teachers=tables.teachers(result.panels),
        sizes=tables.sizes(result.panels, result.method),
        figure=Picture(figure),
        slopes=tables.slopes(result),
        ratios=tables.ratios(result.agreement),
        guides={f"Regime {name}, {QUANTITIES[kind].title}": text for (name, kind), text in FORMULAS.items()},
        verdicts={"Agrees": agree, "Differs, or needs care": differ},
        named=tables.named(result.panels),
        unnamed=tables.unnamed(result),
        tokens=checks.TOKENS,
        student=checks.LONGER,
        longer=_shown(tables.longer(views), figures.draw_tradeoffs(views)),
        noise=_shown(tables.noise(noise), figures.draw_noise(noise)) if noise else None,
        schedules=_shown(tables.schedules(curves), figures.draw_schedules(curves)) if curves else None,
        terms=tables.terms(terms) if terms else None,
        common=tables.common(common) if common else None,
        colophon=tables.colophon(result),
    )


def _shown(table: tables.Table, figure: Figure) -> dict[str, Any]:
    return {"table": table, "picture": Picture(figures.as_svg(figure))}


def typeset(text: str) -> str:
    """`c_0 M^-alpha <= 1.2e-05` with its signs, indices, powers, and sizes in italics."""
    text = escape(signs(text), quote=False)
    for pattern, by in _STEPS:
        text = pattern.sub(by, text)
    return text


def typeset_html(html: str) -> str:
    """HTML whose text, but not its tags, is typeset."""
    return "".join(
        part if part.startswith("<") or part.isspace() else typeset(unescape(re.sub(r"\s+", " ", part)))
        for part in re.split(r"(<[^>]*>)", html)
    )
