"""Plain HTML: a page that needs nothing but itself, its tables and its pictures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape

STYLE = """
:root { color-scheme: light }
body { font: 16px/1.55 system-ui, sans-serif; color: #1b1b1b }
body { max-width: 62rem; margin: 2.5rem auto; padding: 0 1.2rem }
h1 { font-size: 1.7rem; line-height: 1.2; margin-bottom: .3rem }
h2 { font-size: 1.25rem; margin-top: 2.6rem } h3 { font-size: 1.03rem; margin-top: 1.8rem }
p, li { max-width: 46rem } img { width: 100%; height: auto } figure { margin: 1rem 0 }
figcaption, .small { color: #555; font-size: .86rem; max-width: 52rem }
.scroll { overflow-x: auto }
table { border-collapse: collapse; font-size: .9rem; font-variant-numeric: tabular-nums }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #e3e3e3; white-space: nowrap }
th { border-bottom: 1.5px solid #333; font-weight: 600 } tr.rule td { border-top: 2px solid #888 }
th.text, td.text { text-align: left } td.far { font-weight: 700; color: #a33c00 }
.verdict { background: #f3f6f9; border-left: 4px solid #0072B2; padding: .7rem 1rem; max-width: 52rem }
code { font-size: .9em }
"""


def page(title: str, sections: Iterable[str]) -> str:
    """One self-contained page; empty sections are left out."""
    body = "\n".join(section for section in sections if section)
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{STYLE}</style></head>\n"
        f"<body>\n{body}\n</body></html>\n"
    )


def words_of(text: str) -> str:
    """Escaped text with a true minus before digits."""
    return escape(re.sub(r"(?<![\w^{])-(?=[\d.])", "−", text))


def table(
    header: Sequence[str],
    body: Iterable[Sequence[str]],
    *,
    words: int = 1,
    rules: Iterable[int | None] = (),
    far: Iterable[tuple[int, int]] = (),
) -> str:
    """An HTML table; the first `words` columns are text, a rule goes above the rows in `rules`."""
    rules, far = set(rules), set(far)

    def cell(tag: str, text: str, row: int, column: int) -> str:
        kind = "text" if column < words else "far" if (row, column) in far else ""
        return f"<{tag}{f' class={kind}' if kind else ''}>{words_of(text)}</{tag}>"

    head = "".join(cell("th", text, -1, k) for k, text in enumerate(header))
    lines = [
        f"<tr{' class=rule' if row in rules else ''}>"
        + "".join(cell("td", text, row, k) for k, text in enumerate(line))
        + "</tr>"
        for row, line in enumerate(body)
    ]
    top = f"<thead><tr>{head}</tr></thead>" if any(header) else ""
    return f'<div class="scroll"><table>{top}<tbody>{"".join(lines)}</tbody></table></div>'


def picture(address: str, caption: str, alt: str) -> str:
    """A picture (a data address) with what it shows below."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure><img src="{address}" alt="{escape(alt)}">{below}</figure>'


def span(low: float, high: float) -> str:
    """A range of numbers, or the one number that it is."""
    texts = _short(low), _short(high)
    return texts[0] if texts[0] == texts[1] else f"{texts[0]}–{texts[1]}"


def _short(value: float) -> str:
    return (
        f"{value:.2g}"
        if abs(value) < 10
        else f"{value:.0f}"
        if abs(value) < 1000
        else f"{value:,.0f}".replace(",", " ")
    )
