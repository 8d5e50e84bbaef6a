"""A question as a command: its fields become options, grouped, and its answer is printed."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, fields
from typing import Annotated, Any

import typer

from seqlaw.cli.output import Output, show
from seqlaw.cli.progress import progress_bar
from seqlaw.questions.options import FLAG, OUTPUT, Option, options_of
from seqlaw.questions.question import Question

Runner = Callable[[Any, Output], None]


def answer(question: Question, output: Output) -> None:
    """Ask, and print the answer."""
    with progress_bar(question.counted(), output.progress) as bar:
        found = question.ask(bar)
    written = question.write(found)
    show(found, question, output)
    for line in () if output.json else written:
        print(line)


def build(question: type[Question], run: Runner = answer) -> Any:
    """The command that reads a question and runs it."""

    def command(**values: Any) -> None:
        values.pop("help")
        output = {name: values.pop(name, None) for name in leaving}
        leaves = Output(**{name: value for name, value in output.items() if value is not None})
        run(question.read(values), leaves)

    offered = {"plot": question.pictured, "verbose": question.verbose, "progress": bool(question.unit)}
    leaving = {name: one for name, one in options_of(Output).items() if offered.get(name, question.prints)}
    defaults = {f.name: f.default for f in fields(Output)} | question.defaults()
    options = question.options() | leaving
    parameters = [_parameter(name, one, defaults[name]) for name, one in options.items()]
    # What must be given comes first: Python wants it so.
    parameters.sort(key=lambda one: one.default is not inspect.Parameter.empty)
    command.__signature__ = inspect.Signature([*parameters, _help()])  # type: ignore[attr-defined]
    command.__annotations__ = {}
    app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")
    words = [" ".join(part.split()) for part in str(inspect.getdoc(question)).split("\n\n")]
    text = "\n\n".join([*words, f"Example: {question.example}"])
    app.command(name=question.command, help=_escaped(text), add_help_option=False)(command)
    return typer.main.get_command(app)


def _escaped(text: str) -> str:
    """Without meaning to rich, which would take [default: 4] for a style."""
    return text.replace("[", "\\[")


def _parameter(name: str, one: Option, default: Any) -> inspect.Parameter:
    """One option, read as text: the question's own kinds read what it means."""
    switch = one.kind is FLAG
    none = default is None or default is MISSING or default == ()
    shown = one.unless or ("" if none or switch else one.kind.write(default))
    more: dict[str, Any] = {
        "help": _escaped(one.help + (f" [default: {shown}]" if shown else "")),
        "metavar": " " if switch else one.metavar or one.kind.metavar,
        "show_default": False,
        "rich_help_panel": one.panel,
    }
    if switch:
        return _keyword(name, bool, default, typer.Option(one.names, **more))
    kind: Any = list[str] if one.repeated else str
    if not one.names.startswith("-"):
        return _keyword(
            name,
            kind,
            inspect.Parameter.empty,
            typer.Argument(**more | {"metavar": one.names, "rich_help_panel": None}),
        )
    names = sorted(one.names.split("/"), key=len, reverse=True)
    option = typer.Option(*names, **more)
    if default is MISSING:
        return _keyword(name, kind, inspect.Parameter.empty, option)
    return _keyword(name, kind | None, None, option)


def _keyword(name: str, kind: Any, default: Any, option: Any) -> inspect.Parameter:
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, option]
    )


def _help() -> inspect.Parameter:
    def show_help(context: typer.Context, wanted: bool) -> None:
        if wanted:
            typer.echo(context.get_help())
            raise typer.Exit

    option = typer.Option(
        "--help", "-h", help="Show this message.", is_eager=True, expose_value=False, callback=show_help,
        metavar=" ", show_default=False, rich_help_panel=OUTPUT,
    )  # fmt: skip
    return _keyword("help", bool, False, option)
