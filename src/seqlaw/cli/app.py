"""The application: what `seqlaw.cli.main` runs. A command is loaded when it is asked for."""

from __future__ import annotations

import importlib
import itertools
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

import seqlaw
from seqlaw.renamed import OPTIONS

_ASK = "command:answer"
COMMANDS = {
    "plan": ("planning:Plan", _ASK, "The best allocation of a budget."),
    "tradeoff": ("planning:Tradeoff", _ASK, "Longer or more: the risk along P at a fixed number of tokens."),
    "ladder": ("planning:Ladder", _ASK, "Lengths that change: the best length, mixture and ladder."),
    "risk": ("risk:Risk", _ASK, "The five terms of the student's risk at one point."),
    "curve": ("risk:Curve", _ASK, "The terms along one size, with the log–log slope of each."),
    "spectrum": ("risk:Spectrum", _ASK, "The averaged spectrum h_P and its two parts, mode by mode."),
    "rates": ("risk:Rates", _ASK, "The theorem at one point: exponents, crossovers, conditions."),
    "measure": ("data:Measure", "measure:measure", "Exponents, regime and advice from real sequences."),
    "forecast": ("data:Forecast", _ASK, "Longer or more of your own sequences: the held-out loss."),
    "law": ("data:Law", "law:law", "A law fitted to a table of training runs."),
    "fit": ("data:Fit", "lab:fit", "The log–log slope between two columns, with its interval."),
    "sweep": ("lab:Sweep", "lab:sweep", "Run a grid of questions, resumably."),
    "export": ("lab:Export", "lab:export", "Write the rows of a sweep as one tidy table."),
    "reproduce": ("lab:Reproduce", "lab:reproduce", "The paper's six panels and ten slopes, with a report."),
    "explore": ("explore", "explore:explore", "Explore the law in a browser."),
}
"""Name → question, what runs it, and its first line; all but the line is loaded when it is wanted."""


def _load(room: str, path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(f"seqlaw.{room}.{module}"), name)


def question_of(command: str) -> Any:
    """The question that a command reads."""
    return (
        _load("cli", "explore:Explore") if command == "explore" else _load("questions", COMMANDS[command][0])
    )


def command_of(name: str) -> Any:
    """A command, ready to be run."""
    from seqlaw.cli.command import build

    return build(question_of(name), _load("cli", COMMANDS[name][1]))


class Commands(TyperGroup):
    """The commands, each loaded alone: `seqlaw --help` imports nothing that computes."""

    def list_commands(self, ctx: Any) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        return command_of(cmd_name) if cmd_name in COMMANDS else None

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (*_, line) in COMMANDS.items()])


app = typer.Typer(
    name="seqlaw",
    cls=Commands,
    help="Linear RNN scaling laws: at your budget, longer sequences or more of them?\n\n"
    "Example: seqlaw tradeoff --tokens 1e7\n\n"
    "Each command has an example in its own help: seqlaw COMMAND --help",
    epilog="What the words mean: docs/notation.md",
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"seqlaw {seqlaw.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    pass


def run(arguments: list[str] | None = None) -> None:
    """Run a command and exit; every error of the user is one line."""
    given = sys.argv[1:] if arguments is None else arguments
    if "" not in sys.path:
        sys.path.append("")  # so that `--schedule mymodule:Name` finds a module that lies here
    try:
        code = app(args=given or ["--help"], standalone_mode=False)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except Exception as error:
        message = _told(error, given)
        if message is None:
            raise
        print(f"seqlaw: {message}", file=sys.stderr)
        sys.exit(2)
    sys.exit(code if isinstance(code, int) else 0)


def _told(error: Exception, given: list[str]) -> str | None:
    """An error of the user's in one line; None for one of ours."""
    from seqlaw.model.checks import InputError, SeqlawError, shown

    if isinstance(error, InputError):
        return f"{option_of(error.field, given[0])} {error.rule}{_got(error.value)}"
    if isinstance(error, SeqlawError):
        return str(error)
    if isinstance(error, MemoryError):
        return "these sizes do not fit in memory (the equivalent method takes any size)"
    if isinstance(error, OSError):  # a path that cannot be: a name too long, a folder that may not be read
        return f"{error.strerror or 'cannot be read or written'}: {shown(error.filename or '', str)}"
    if isinstance(error, typer.BadParameter.__mro__[1]):  # the parser's, whichever click typer carries
        text = _elsewhere(error) or getattr(error, "format_message", error.__str__)()
        return " ".join(text.split()).rstrip(".") + _typed(error, given)
    return None


_INSIDE = {"kind": "schedule", "beta": "momentum", "X": "file", "source": "file"}
"""Fields of the records that a question builds, where its own field has another name."""


def option_of(field: str, command: str) -> str:
    """The option that sets a field: Teacher.c_xi → --c-xi; what is in a file keeps its name."""
    owner, _, name = field.rpartition(".")
    if not name.isidentifier() or owner == "Modes" or ".toml" in field or ".npz" in field:
        return field
    name = _INSIDE.get(name, name)
    if command in COMMANDS:
        question = question_of(command)
        one = question.options().get(name)
        if one is not None:
            return str(one.named(question.defaults()[name]))
    return "--" + name.replace("_", "-")


def _got(value: object) -> str:
    """The value of a refusal, if there is one: 10 as it was typed, although it was read as 10.0."""
    from seqlaw.model.checks import shown

    if value is None:
        return ""
    if value == "":
        return ", got nothing"
    return f", got {value:.15g}" if isinstance(value, float) else f", got {shown(value, str)}"


def _typed(error: Exception, given: list[str]) -> str:
    """What stood after an option whose value is refused."""
    from seqlaw.model.checks import shown

    words = [part for word in given for part in (word.split("=", 1) if word.startswith("--") else [word])]
    names = getattr(getattr(error, "param", None), "opts", ())
    refused = "Invalid value" in str(getattr(error, "format_message", str)())
    after = [value for name, value in itertools.pairwise(words) if refused and name in names]
    return f", got {shown(after[-1], str)}" if after else ""


def _elsewhere(error: Exception) -> str:
    """For an option that had another name, or that only other commands have: which."""
    if type(error).__name__ != "NoSuchOption":
        return ""
    option = getattr(error, "option_name", "")
    if option in OPTIONS:
        return f"No such option: {option}; since 0.3 it is {OPTIONS[option]}"
    owners = [
        name
        for name in COMMANDS
        if any(option in one.names.split("/") for one in question_of(name).options().values())
    ]
    return f"No such option: {option} here; it belongs to {', '.join(owners)}" if owners else ""
