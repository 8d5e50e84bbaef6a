"""The documentation site: `make docs` builds it, offline and without a word from elsewhere."""

import os
import re
import subprocess
import sys

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import seqlaw

project = "seqlaw"
author = "The seqlaw developers"
copyright = author
version = release = seqlaw.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc"]
exclude_patterns = ["conf.py"]
myst_heading_anchors = 3

os.environ["MPLBACKEND"] = "module://matplotlib_inline.backend_inline"  # whatever the shell says
# Notebooks are Python scripts in the percent format; each build runs them, one error ends it.
nb_custom_formats = {".py": ["jupytext.reads", {"fmt": "py:percent"}]}
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_timeout = 120
nb_execution_raise_on_error = True
nb_merge_streams = True

default_role = "code"  # docstrings have `names` in single backticks
add_module_names = False
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
maximum_signature_line_length = 100

html_theme = "furo"
html_title = f"seqlaw {version}"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_copy_source = False
html_show_search_summary = False  # it is fetched, which pages opened from a folder may not do
html_show_sphinx = False
pygments_style = "friendly"
pygments_dark_style = "native"


def escaped(app, what, name, obj, options, lines):
    """Docstrings are plain text with `code` in backticks: |z| and p* are no markup."""
    lines[:] = [re.sub(r"(`[^`]*`)|([*|\\])|(_)(?!\w)", _escape, line) for line in lines]


def _escape(found):
    return found[1] or "\\" + found[0]


ARRAY = re.compile(
    r"~?(?:numpy\.)?ndarray\[tuple\[[^\]]*\], ~?(?:numpy\.)?dtype\[(?:[^\[\]]|\[[^\]]*\])*\]\]"
)
ARRAY_LIKE = re.compile(r"~?[\w.]*_Buffer \|.*?_NestedSequence\[~?[\w.]*complex \| bytes \| str\]")


def shortened(app, what, name, obj, options, signature, returns):
    """NumPy's array types by the names that the code has for them."""
    return tuple(
        text and ARRAY_LIKE.sub("ArrayLike", ARRAY.sub("ndarray", text)) for text in (signature, returns)
    )


class Commands(SphinxDirective):
    """The help of every command, from the command line itself."""

    def run(self):
        from seqlaw.cli.app import COMMANDS

        sections = []
        for name in COMMANDS:
            section = nodes.section(ids=[name], names=[name])
            section += nodes.title(text=f"seqlaw {name}")
            text = subprocess.run(
                [sys.executable, "-m", "seqlaw", name, "--help"],
                env={**os.environ, "TERMINAL_WIDTH": "100", "NO_COLOR": "1", "PYTHONIOENCODING": "utf-8"},
                capture_output=True,
                encoding="utf-8",
                check=True,
            ).stdout
            section += nodes.literal_block(text, text, language="text")
            sections.append(section)
        return sections


def setup(app):
    app.connect("autodoc-process-docstring", escaped)
    app.connect("autodoc-process-signature", shortened)
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True}
