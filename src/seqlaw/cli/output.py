"""How results leave: an answer as one JSON document, as a page for people, as a picture."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import seqlaw
from seqlaw.answers.answer import Answer, record
from seqlaw.answers.render import Block, as_text
from seqlaw.answers.style import check_path
from seqlaw.answers.words import sentences
from seqlaw.files import plain
from seqlaw.model.flags import Flag
from seqlaw.questions.options import OUTPUT, option
from seqlaw.questions.question import Question


@dataclass(frozen=True, kw_only=True)
class Output:
    """How the answer leaves."""

    json: bool = option(False, "One JSON document on standard output.", OUTPUT)
    plot: str | None = option(None, "Draw a picture: png, pdf or svg.", OUTPUT, metavar="FILE")
    verbose: bool = option(False, "Print everything, beyond one screen.", OUTPUT)
    progress: str = option("auto", "auto: a bar on a terminal; plain: lines of text.", OUTPUT, metavar="NAME")

    def __post_init__(self) -> None:
        if self.plot is not None:
            check_path(self.plot)


def show(answer: Answer, question: Question, output: Output) -> None:
    """Print an answer, one JSON document or the page for people, and draw it into a file."""
    if output.plot is not None:
        answer.save_plot(output.plot)
    if output.json:
        asked = question.echo(answer.inputs())
        print(json.dumps(answer.to_dict("cli", asked), indent=2, allow_nan=False))
    else:
        print(answer.page("cli", verbose=output.verbose), end="")


def print_json(
    question: Question, inputs: Mapping[str, Any], result: Mapping[str, Any], flags: Iterable[Flag] = ()
) -> None:
    """The document of a command that has no answer of its own; infinity is null with a flag."""
    lost = list(flags)
    body = {
        "command": question.command,
        "version": seqlaw.__version__,
        "inputs": plain({**inputs, **question.echo(inputs)}, "inputs", lost),
        **plain(result, "", lost),
        "flags": sentences(lost, "cli"),
        "flag_records": [record(flag) for flag in lost],
    }
    print(json.dumps(body, indent=2, allow_nan=False))


def say(*blocks: Block) -> None:
    """Sentences, tables and flags, as every answer shows them."""
    print(as_text(blocks, "cli"), end="")


def warn(line: str) -> None:
    """A line about the work, on standard error."""
    print(f"seqlaw: {line}", file=sys.stderr)
