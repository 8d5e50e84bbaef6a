"""The application: what `seqlaw.cli.main` runs once everything is loaded."""

from __future__ import annotations

import itertools
import os
import sys
from typing import Annotated

import typer

import seqlaw
from seqlaw.answers.glossary import WORDS
from seqlaw.cli import register
from seqlaw.cli.options import option_of
from seqlaw.lab.errors import LabError
from seqlaw.model.checks import InputError, MissingLibrary, shown
from seqlaw.model.sketch import SingularProblem

# Words that the commands print.
_MET = ("method", "reducible", "cross", "cross-rest", "frozen filter", "horizon", "safeguard", "saturated")
app = typer.Typer(
    name="seqlaw",
    help="Linear RNN scaling laws: at your budget, longer sequences or more of them?\n\n"
    "Example: seqlaw tradeoff --tokens 1e7\n\n"
    "Each command has an example in its own help: seqlaw COMMAND --help",
    epilog="\n\n".join(f"{word}: {WORDS[word]}." for word in _MET),
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
RENAMED = {"--rung": "--method"}
"""Options of 0.2 that have another name now."""
# The parser's own error class, whichever click typer carries.
_UsageError: type[Exception] = typer.BadParameter.__mro__[1]


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
        register.register(app)
        code = app(args=given or ["--help"], standalone_mode=False)
    except InputError as error:
        _fail(f"{option_of(error.field)} {error.rule}{_got(error.value)}")
    except (SingularProblem, LabError, MissingLibrary) as error:
        _fail(str(error))
    except _UsageError as error:
        text = _elsewhere(error) or getattr(error, "format_message", error.__str__)()
        _fail(" ".join(text.split()).rstrip(".") + _typed(error, given))
    except MemoryError:
        _fail("these sizes do not fit in memory (the equivalent method takes any size)")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:  # a path that cannot be: a name too long, a folder that may not be read
        _fail(f"{error.strerror or 'cannot be read or written'}: {shown(error.filename or '', str)}")
    sys.exit(code if isinstance(code, int) else 0)


def _got(value: object) -> str:
    """The value of a refusal, if there is one: 10 as it was typed, although it was read as 10.0."""
    if value is None:
        return ""
    if value == "":
        return ", got nothing"
    return f", got {value:.15g}" if isinstance(value, float) else f", got {shown(value, str)}"


def _typed(error: Exception, given: list[str]) -> str:
    """What stood after an option whose value is refused."""
    words = [part for word in given for part in (word.split("=", 1) if word.startswith("--") else [word])]
    names = getattr(getattr(error, "param", None), "opts", ())
    refused = "Invalid value" in str(getattr(error, "format_message", str)())
    after = [value for name, value in itertools.pairwise(words) if refused and name in names]
    return f", got {shown(after[-1], str)}" if after else ""


def _elsewhere(error: Exception) -> str:
    """For an option that only other commands have: which."""
    if type(error).__name__ != "NoSuchOption":
        return ""
    option = getattr(error, "option_name", "")
    if option in RENAMED:
        return f"No such option: {option}; since 0.3 it is {RENAMED[option]}"
    commands = getattr(typer.main.get_command(app), "commands", {}).items()
    owners = [name for name, one in commands if any(option in p.opts + p.secondary_opts for p in one.params)]
    return f"No such option: {option} here; it belongs to {', '.join(owners)}" if owners else ""


def _fail(message: str) -> None:
    print(f"seqlaw: {message}", file=sys.stderr)
    sys.exit(2)
