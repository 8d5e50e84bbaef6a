"""Plain HTML: a page that needs nothing but itself, its tables, its pictures and its notation."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Sequence
from html import escape

PAGE = 8.6 * 72
"""Points: the width of the paper's figure. Narrower pictures are scaled alike: letters keep one size."""
LEAST = 46
"""rem: a picture as wide as the page is not shown smaller, or its letters could not be read."""
STYLE = """
:root { color-scheme: light }
body { font: 16px/1.55 system-ui, sans-serif; color: #1b1b1b }
body { max-width: 76rem; margin: 2.5rem auto; padding: 0 1.5rem }
h1 { font-size: 1.8rem; line-height: 1.2; margin-bottom: .3rem }
h2 { font-size: 1.3rem; margin-top: 2.8rem } h3 { font-size: 1.06rem; margin-top: 1.9rem }
p, li { max-width: 52rem } img { height: auto } figure { margin: 1.2rem 0 }
figcaption, .small { color: #4a4a4a; font-size: .88rem } figcaption, p.small { max-width: 64rem }
.beside { display: flex; flex-wrap: wrap; gap: 0 3rem; align-items: flex-start }
.beside > div { flex: 1 1 25rem } .beside > div > :first-child { margin-top: .4rem }
.beside:has(h2) { margin-top: 2.2rem } .beside + .scroll { margin-top: 1.6rem }
@media (max-width: 72rem) { .scroll { overflow-x: auto } .beside > div { max-width: 100% } }
table { border-collapse: collapse; font-size: .92rem; font-variant-numeric: tabular-nums; width: 100% }
th, td { padding: .28rem .7rem; text-align: right; border-bottom: 1px solid #e3e3e3; white-space: nowrap }
th { border-bottom: 1.5px solid #333; font-weight: 600 } tr.rule td { border-top: 2px solid #888 }
th.text, td.text { text-align: left } td.far { font-weight: 700; color: #a33c00 }
td .mark { display: block; font-size: .84rem; color: #4a4a4a } td.far .mark { color: inherit }
.verdict { background: #f3f6f9; border-left: 4px solid #0072B2; padding: .7rem 1rem; max-width: none }
table.even { table-layout: fixed; min-width: 62rem } .even th:first-child { width: 24% }
.even td, .even th { padding: .28rem .4rem } .even .text, .even .mark { white-space: normal }
.setup { border: 1px solid #d5dbe1; border-radius: 6px; padding: .2rem 1.2rem .4rem; margin: 1.4rem 0 }
.setup { font-size: .93rem } .setup h2 { margin-top: .8rem; margin-bottom: .2rem } .setup ul { margin-top: 0 }
code { font-size: .9em } sub, sup { line-height: 0; font-size: .75em }
"""

_GREEK = {"alpha": "α", "theta": "θ", "rho": "ρ", "gamma": "γ", "kappa": "κ", "xi": "ξ", "beta": "β"}
_SIGNS = {"<=": "≤", ">=": "≥", ">~": "≳", "<~": "≲", "||": "‖"} | _GREEK
_SIGN = re.compile(
    "|".join(rf"(?<![A-Za-z]){k}(?![A-Za-z])" if k.isalpha() else re.escape(k) for k in _SIGNS)
)
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


def page(title: str, sections: Iterable[str]) -> str:
    """One self-contained page; empty sections are left out."""
    body = "\n".join(section for section in sections if section)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def typeset(text: str) -> str:
    """Plain text as HTML: `c_0 M^-alpha <= 1.2e-05` with its signs, indices, powers, and sizes in italics."""
    text = escape(_SIGN.sub(lambda found: _SIGNS[found[0]], text), quote=False)
    for pattern, by in _STEPS:
        text = pattern.sub(by, text)
    return text


def prose(text: str, kind: str = "") -> str:
    """A paragraph."""
    return f"<p{f' class={kind}' if kind else ''}>{typeset(text)}</p>"


def bullets(items: Iterable[str]) -> str:
    """A list of sentences."""
    return f"<ul>{''.join(f'<li>{typeset(item)}</li>' for item in items)}</ul>"


def beside(*columns: str) -> str:
    """Columns side by side, or below each other where the window is narrow."""
    return f'<div class="beside">{"".join(f"<div>{column}</div>" for column in columns)}</div>'


def box(inner: str) -> str:
    """A frame around what a reader may skip or come back to."""
    return f'<section class="setup">{inner}</section>'


def table(
    header: Sequence[str],
    body: Iterable[Sequence[str]],
    *,
    words: int = 1,
    rules: Iterable[int | None] = (),
    far: Iterable[tuple[int, int]] = (),
    even: bool = False,
) -> str:
    """An HTML table; the first `words` columns are text, a rule goes above the rows in `rules`.

    `even` gives all columns but the first one width.

    What follows a line break in a cell stands below it in small print.
    """
    rules, far = set(rules), set(far)

    def cell(tag: str, text: str, row: int, column: int) -> str:
        kind = "text" if column < words else "far" if (row, column) in far else ""
        top, _, below = text.partition("\n")
        inner = typeset(top) + (f"<span class=mark>{typeset(below)}</span>" if below else "")
        return f"<{tag}{f' class={kind}' if kind else ''}>{inner}</{tag}>"

    head = "".join(cell("th", text, -1, k) for k, text in enumerate(header))
    lines = [
        f"<tr{' class=rule' if row in rules else ''}>"
        + "".join(cell("td", text, row, k) for k, text in enumerate(line))
        + "</tr>"
        for row, line in enumerate(body)
    ]
    top = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    kind = " class=even" if even else ""
    return f'<div class="scroll"><table{kind}>{top}<tbody>{"".join(lines)}</tbody></table></div>'


def picture(svg: bytes, caption: str, alt: str) -> str:
    """A picture inside the page with what it shows below; one of PAGE points is as wide as the page."""
    below = f"<figcaption>{typeset(caption)}</figcaption>" if caption else ""
    found = re.search(rb'viewBox="0 0 ([\d.]+)', svg)
    share = min(float(found[1]) / PAGE, 1.0) if found else 1.0
    address = "data:image/svg+xml;base64," + b64encode(svg).decode()
    size = f"width:{share:.0%};min-width:{LEAST * share:.1f}rem"  # a narrow window scrolls, as under a table
    image = f'<img src="{address}" alt="{escape(alt)}" style="{size}">'
    return f'<figure><div class="scroll">{image}</div>{below}</figure>'


def span(low: float, high: float) -> str:
    """A range of numbers, or the one number that it is."""
    texts = _short(low), _short(high)
    return texts[0] if texts[0] == texts[1] else f"{texts[0]}–{texts[1]}"


def _short(value: float) -> str:
    return f"{value:.2g}" if abs(value) < 10 else f"{value:.0f}" if abs(value) < 1000 else f"{value:,.0f}"
