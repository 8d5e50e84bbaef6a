"""What people read fits in the 80 columns of a terminal; in a pipe it is folded to 100."""

import itertools
import re

import numpy as np
import pytest

from seqlaw import PRESETS
from seqlaw.answers.render import WIDTH, Note, Table
from seqlaw.cli import main
from seqlaw.cli.output import say
from seqlaw.methods import trajectories

SMALL = "-M 16 -d 64 -N 256 -P 8 -L 500"
COMMANDS = [
    f"risk {SMALL}",
    f"risk {SMALL} --method sampled --eval-length 1000",
    "risk -L 1e7 -M 16",
    "risk -d inf -M 1e6 -N 1e12 -P 1e9 -L 1e12",
    f"curve {SMALL} --along P --to 1e6 --points 4",
    f"curve {SMALL} --along R --from 8 --to 4000 --points 4 --method exact",
    f"curve {SMALL} --along N --from 2 --to 1e6 --points 4 --sampled 3",
    "spectrum -d inf --to 1e12 --points 5",
    "rates",
    "rates --teacher regime1 -M 1e6 -d inf -N 1e12 -P 1e9 -R 1e9",
    "plan --compute 1e3 --tokens 1e3",
    "tradeoff --eval-length 16 --eval-length 256 --eval-length 4096 --points 4 --tokens 1e15",
]
NARROW = {
    "measure states.npy --tokens 1e6 --eval-length 512 --save-teacher t.toml --verbose": [6, 10],
    "forecast states.npy --target-loss 0.2 --verbose": [4, 4, 4],
    "measure noise.npy --tokens 1e4 --verbose": [6, 8],
    "sweep grid.toml --out results --jobs 1": [],
    "export results --to rows.csv": [],
    "fit rows.csv --x M --y approx --offset": [],
    "reproduce --panels ad --quick --replicate 2 --jobs 1 --out paper": [2, 2, 1],
}
"""Commands that fit in 80 columns, and the rows of their tables."""
GRID = """
method = "equivalent"
[sizes]
M = [4, 8, 16, 32]
N = 8
P = 8
d = 64
[[schedules]]
kind = "wsd"
L = 100
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("width")
    np.save(folder / "states.npy", trajectories(PRESETS["regime2"].modes(32), 400, 16, seed=1))
    np.save(folder / "noise.npy", np.random.default_rng(0).normal(size=(40, 6, 8)))
    (folder / "grid.toml").write_text(GRID)
    return folder


@pytest.fixture
def check(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)

    def call(command, columns=WIDTH):
        monkeypatch.setenv("COLUMNS", str(columns))
        with pytest.raises(SystemExit) as stop:
            main(command.split())
        out, err = capsys.readouterr()
        assert (stop.value.code, err) == (0, ""), command
        assert out
        wide = [line for line in out.splitlines() if len(line) > columns]
        assert not wide, command
        assert "…" not in out.replace("… ", ""), command  # a cell that was cut
        return out

    return call


@pytest.mark.slow
def test_no_line_of_any_command_is_wider(check):
    """Explore prints one short line; those below are narrower."""
    for command in COMMANDS:
        check(command, 80)


def tables(text):
    """The tables of an output: the lines from a header, above its rule, to the next empty line."""
    lines = text.splitlines()
    rules = [k for k, line in enumerate(lines) if line.startswith(" ──")]
    return [list(itertools.takewhile(str.strip, [lines[k - 1], *lines[k + 1 :]])) for k in rules]


def test_the_laboratory_fits_80_columns_with_one_line_a_row(check):
    """One test, since a sweep's rows are exported and then fitted."""
    for command, heights in NARROW.items():
        found = tables(check(command, 80))
        assert [len(rows) for _, *rows in found] == heights, command
        assert all(re.match(r" {2}\S", row) for table in found for row in table), command  # none is folded


@pytest.mark.parametrize(
    "command",
    [
        *("risk", "plan", "tradeoff", "curve", "spectrum", "rates"),
        "ladder -M 8 -d 32 -L 300 --sketches 2",
        "measure states.npy --tokens 1e6 --compute 1e12 --held-out",
        "forecast states.npy --target-loss 0.2",
    ],
)
def test_an_answer_fits_on_a_screen_of_40_lines(check, command):
    assert len(check(command).splitlines()) <= 40


@pytest.mark.slow
def test_no_line_of_a_large_plan_is_wider(check):
    check("plan --compute 1e24 --tokens 1e15 --teacher regime1 --eval-length 4096 --min-P 64", 80)
    check("measure states.npy --tokens 1e6 --compute 1e12 --eval-length 512", 80)


def test_a_table_folds_words_and_never_cuts_numbers(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    numbers = [f"{k}.123456789" for k in range(12)]
    say(Table([("words " * 30, *numbers[:3])], header=("first", "a", "b", "c")))
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= WIDTH
    assert out.count("words") == 30
    say(Table([("word", *numbers)]))
    assert capsys.readouterr().out.split() == ["word", *numbers]


def test_sentences_fold_to_the_terminal_and_paths_stay_whole(capsys, monkeypatch):
    path = "/" + "folder/" * 20
    for columns, widest in (("60", 60), ("300", WIDTH)):
        monkeypatch.setenv("COLUMNS", columns)
        say(Note("one two three " * 20))
        lines = capsys.readouterr().out.splitlines()
        assert widest - 6 < max(map(len, lines)) <= widest
        assert all(line.startswith("- " if k == 0 else "  ") for k, line in enumerate(lines))
        say(f"written to {path} just now")
        assert path in capsys.readouterr().out
