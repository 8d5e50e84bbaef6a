"""Plain text as HTML with its notation: signs, indices, powers, and the paper's letters in italics."""

from __future__ import annotations

import re
from html import escape, unescape

from seqlaw.answers.glossary import signs
from seqlaw.model.amount import amount

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


def span(low: float, high: float) -> str:
    """A range of numbers, or the one number that it is."""
    texts = amount(low, 2), amount(high, 2)
    return texts[0] if texts[0] == texts[1] else f"{texts[0]}–{texts[1]}"
