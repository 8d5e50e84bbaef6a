"""Generated settings across the commands: a number, a flag or a one-line error, and nothing else.

SEQLAW_EXAMPLES=10000 sets how many the slow tests try; `--hypothesis-seed` which.
"""

import contextlib
import io
import json
import math
import os

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from run_tables import run_table
from seqlaw.cli import main

# Mostly sensible numbers, sometimes the edges and what lies beyond them.
odd = st.sampled_from(["0", "-1", "nan", "inf", "1e300", "1e-300", "x", "", "0.5", "1e18", "-inf"])


def number(low, high):
    sensible = st.floats(low, high, allow_nan=False).map(repr)
    return st.one_of(sensible, sensible, sensible, sensible, sensible, odd)


def size(low, high):
    """Whole numbers, evenly spread over the logarithm."""
    spread = st.floats(math.log(low), math.log(high)).map(lambda u: str(round(math.exp(u))))
    return st.one_of(spread, spread, spread, spread, spread, odd)


def parts(longest):
    """Lengths and shares as `--lengths` and `--phases` take them, mostly with shares that sum to one."""
    length = size(1, longest)
    two = st.tuples(length, length, st.floats(0.01, 0.99)).map(
        lambda t: f"{t[0]}:{t[2]!r},{t[1]}:{1 - t[2]!r}"
    )
    any_two = st.tuples(length, number(0, 1), length, number(0, 1)).map(lambda t: "{}:{},{}:{}".format(*t))
    return st.one_of(two, two, two, length.map("{}:1".format), any_two, odd)


given_bare = st.none()  # an option that takes no value
TEACHER = {
    "--teacher": st.sampled_from(["regime1", "regime2", "regime2", "nothing"]),
    "--alpha": number(0, 4),
    "--theta": number(0, 4),
    "--r": number(0, 1),
    "--rho": number(0.01, 0.999999),
    "--c-xi": number(1e-6, 1e3),
    "--c-0": number(1e-6, 1e3),
}
SCHEDULE = {
    "--schedule": st.sampled_from(["wsd", "block", "constant", "cosine", "linear"]),
    "-L": size(1, 10**15),
    "-R": number(0.1, 1e9),
    "--gamma": st.one_of(number(1e-6, 100), number(1e-3, 1), st.just("best")),
    "--momentum": number(0, 0.9999),
    "--nesterov": given_bare,
    "--warmup": number(0.01, 0.9),
    "--decay": number(0.01, 0.9),
}
SIZES = {
    "-M": size(1, 48),
    "-N": size(1, 10**12),
    "-P": size(1, 10**18),
    "-d": st.one_of(size(1, 200), size(1, 10**15), st.just("inf")),
    "--eval-length": size(1, 10**18),
}
ONCE = {"--batch": size(1, 10**9), "--no-safeguard": given_bare, "--epochs": st.sampled_from(["1", "2", "0"])}
MIXED = {"--lengths": parts(10**6), "--phases": parts(10**6), "--window": size(1, 1000)}
# On the random methods a setting is simulated: small sizes only.
SMALL = {
    "-M": size(1, 12),
    "-N": size(1, 60),
    "-P": size(1, 30),
    "-d": size(1, 40),
    "--sketches": st.sampled_from(["1", "2", "0"]),
    "--repetitions": st.sampled_from(["1", "2"]),
    "--eval-length": size(1, 10**18),
}
FEW_SIZES = "-M 6 -d 24 --sketches=1 --repetitions=1 --jobs=1"  # unless chosen otherwise after it
FEW = f"{FEW_SIZES} -N 40 -P 6"
SMALL_ONCE = {name: SMALL[name] for name in ("-M", "-P", "-d", "--eval-length")} | {
    "--batch": size(1, 20),
    "-L": size(1, 300),
}
WITHOUT_L = {name: SCHEDULE[name] for name in SCHEDULE if name not in ("-L", "-R")}
SMALL_MIXED = {"--lengths": parts(30)}
ALONG = {
    "--along": st.sampled_from(["M", "N", "P", "R", "b", "Q"]),
    "--from": size(1, 100),
    "--to": size(2, 10**6),
    "--points": st.sampled_from(["2", "3", "5", "1"]),
}
SPLIT = {
    "-M": SIZES["-M"],
    "-d": SIZES["-d"],
    "--tokens": size(2, 10**15),
    "--eval-length": size(1, 10**6),
    "--max-P": size(2, 10**6),
    "--points": st.sampled_from(["2", "4"]),
    "--cost": st.sampled_from(["N*P*M**2*L", "N*P", "N*P**2", "N*Q", "N**2", "1/0"]),
}
LADDER = {
    "-M": size(1, 12),
    "-d": size(1, 40),
    "--tokens": size(2, 10**9),
    "--eval-length": size(1, 10**6),
    "--candidates": st.lists(size(1, 300), min_size=1, max_size=3).map(",".join),
    "--most-phases": st.sampled_from(["1", "2", "2", "3", "0"]),
    "--sketches": st.sampled_from(["1", "2", "0"]),
}
COLUMN = st.sampled_from(["params", "tokens", "length", "loss", "params", "tokens", "name", "one", "Q"])
LAW = {
    "--loss": COLUMN,
    "--term": st.one_of(COLUMN, st.tuples(COLUMN, COLUMN).map("*".join)),
    "--preset": st.sampled_from(["chinchilla", "seqlaw-1", "seqlaw-2", "nothing"]),
    "--without": COLUMN,
    "--tested-at": COLUMN,
    "--groups": COLUMN,
    "--where": st.tuples(COLUMN, st.sampled_from(["=", "<", "<=", ">", ">="]), number(0, 1e10)).map("".join),
    "--let": st.sampled_from(["x=params*tokens", "x=1/length", "x=loss/0", "x=name", "params=1", "x"]),
    "--predict": st.sampled_from(["runs.csv", "few.csv", "none.csv"]),
    "--cost": st.sampled_from(["6*params*tokens", "params", "tokens**2", "Q", "one"]),
    "--budget": number(1, 1e25),
    "--bootstraps": st.sampled_from(["20", "25", "0", "1"]),
    "--level": number(0.01, 0.999),
}
LENGTH_LIST = st.lists(size(1, 40), min_size=1, max_size=3).map(",".join)
SEQUENCES = {
    "--tokens": size(1, 10**9),
    "--eval-length": size(1, 100),
}
FORECAST = SEQUENCES | {
    "--lengths": LENGTH_LIST,
    "--student": st.sampled_from(["all", "pca", "sketch", "none"]),
    "-M": size(1, 8),
    "-L": size(1, 10**6),
    "--target-loss": number(1e-6, 10),
    "--window": size(1, 40),
    "--groups": COLUMN,
    "--sequence": st.sampled_from(["s", "t", "Q"]),
    "--time": st.sampled_from(["s", "t", "Q"]),
    "--leave-out": st.sampled_from(["s", "t", "Q"]),
    "--standardise": given_bare,
    "--drop-missing": given_bare,
}


def without(options, *names):
    """Options that a command does not have left out."""
    return {name: one for name, one in options.items() if name not in names}


COMMANDS = {
    "risk": TEACHER | SCHEDULE | SIZES | ONCE | MIXED,
    f"risk --method exact {FEW}": TEACHER | SCHEDULE | SMALL,
    f"risk --method sampled {FEW}": TEACHER | SCHEDULE | SMALL,
    "risk --batch 8": TEACHER | SCHEDULE | ONCE | {name: SIZES[name] for name in SIZES if name != "-N"},
    f"risk --method exact --batch 3 {FEW_SIZES} -P 6 -L 200": TEACHER | SCHEDULE | SMALL_ONCE,
    f"risk --method sampled --batch 3 {FEW_SIZES} -P 6 -L 200": TEACHER | WITHOUT_L | SMALL_ONCE,
    "risk --schedule constant --momentum 0.9": TEACHER | SCHEDULE | SIZES,
    f"risk --method exact --schedule constant --momentum 0.9 {FEW}": TEACHER | SCHEDULE | SMALL,
    f"risk --method sampled --schedule constant --momentum 0.9 {FEW}": TEACHER | SCHEDULE | SMALL,
    "risk --lengths 16:0.7,1024:0.3": TEACHER | SCHEDULE | {"--lengths": parts(10**6), "-N": SIZES["-N"]},
    "risk --lengths 16:0.7,1024:0.3 --batch 1000": TEACHER | SCHEDULE | ONCE | {"--lengths": parts(10**6)},
    f"risk --method sampled --lengths 2:0.7,8:0.3 -N 40 {FEW_SIZES}": TEACHER | SCHEDULE | SMALL_MIXED,
    f"risk --method exact --lengths 2:0.7,8:0.3 --batch 31 {FEW_SIZES}": TEACHER | SCHEDULE | SMALL_MIXED,
    f"risk --method exact --phases 2:0.9,8:0.1 -N 40 {FEW_SIZES}": TEACHER
    | SCHEDULE
    | {"--phases": parts(30), "-N": size(1, 60), "--eval-length": size(1, 10**6)},
    f"risk --method exact --phases 2:0.9,8:0.1 --batch 3 -L 200 {FEW_SIZES}": TEACHER
    | SCHEDULE
    | {"--phases": parts(30), "--batch": size(1, 60)},
    f"risk --method sampled --phases 2:0.9,8:0.1 --batch 3 -L 200 {FEW_SIZES}": TEACHER
    | WITHOUT_L
    | {"--phases": parts(30), "--batch": size(1, 60), "-L": size(1, 300)},
    "rates": without(TEACHER | SCHEDULE | SIZES, "--eval-length", "--warmup", "--decay"),
    "spectrum": without(TEACHER | SCHEDULE | SIZES, "-N", "--eval-length")
    | {"--to": size(1, 10**15), "--points": st.sampled_from(["2", "9", "0"])},
    "curve": TEACHER | SCHEDULE | SIZES | ALONG,
    "curve --batch 8": TEACHER | SCHEDULE | ONCE | MIXED | ALONG | {"--tokens": size(1, 10**15)},
    "curve --batch 8 --tokens 1e7 --along b": TEACHER | WITHOUT_L | ALONG,
    "tradeoff": TEACHER | SCHEDULE | SPLIT,
    "tradeoff --batch 4": TEACHER | WITHOUT_L | SPLIT | ONCE,
    "ladder -M 6 -d 24 --sketches 2 --candidates 2,16 --tokens 1e5 -L 1000": TEACHER | SCHEDULE | LADDER,
    "ladder -M 6 -d 24 --sketches 2 --candidates 2,16 --tokens 1e4 --batch 1": TEACHER
    | WITHOUT_L
    | LADDER
    | {"--batch": size(1, 30)},
    "law RUNS.csv --loss loss --term params --term tokens --bootstraps 20": LAW,
    "law RUNS.csv --loss loss --preset chinchilla --bootstraps 20": LAW,
    "fit RUNS.csv --x params --y loss": {"--x": COLUMN, "--y": COLUMN, "--where": LAW["--where"]},
    "measure ARRAY.npy": SEQUENCES | {"--compute": size(1, 10**20)},
    "forecast ARRAY.npy": FORECAST,
    "forecast ARRAY.npy --student sketch": FORECAST,
    "forecast table.csv --sequence s --time t": FORECAST,
}
NAMES = {
    "ARRAY": ("plain", "walk", "short", "few", "holes", "still", "huge", "tiny", "flat", "whole", "none"),
    "RUNS": ("runs", "few", "odd", "none"),
}


@pytest.fixture(scope="module", autouse=True)
def files(tmp_path_factory):
    """The tables and arrays that the lines name, in the folder where they run."""
    folder = tmp_path_factory.mktemp("files")
    random = np.random.default_rng(23)
    walk = np.cumsum(random.standard_normal((60, 16, 4)), axis=1) / 4
    holes = walk.copy()
    holes[3, 5, 1] = np.nan
    arrays = {
        "plain": random.standard_normal((60, 16, 4)),
        "walk": walk,
        "short": walk[:, :2],
        "few": walk[:3],
        "holes": holes,
        "still": np.ones((20, 8, 3)),
        "huge": 1e200 * walk,
        "tiny": 1e-200 * walk,
        "flat": walk[:, :, 0],
        "whole": (8 * walk).astype(int),
        "none": np.empty((0, 8, 3)),
    }
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    runs, _ = run_table(3, length=0.05)
    runs = runs.assign(one=1.0, name="run")
    runs.to_csv(folder / "runs.csv", index=False)
    runs[:4].to_csv(folder / "few.csv", index=False)
    runs[:0].to_csv(folder / "none.csv", index=False)
    runs.assign(loss=runs.loss - 2, tokens=runs.tokens.where(runs.index % 7 > 0)).to_csv(
        folder / "odd.csv", index=False
    )
    lines = (f"{i},{t},{walk[i, t, 0]},{walk[i, t, 1]}" for i in range(30) for t in range(16))
    (folder / "table.csv").write_text("\n".join(["s,t,a,b", *lines]))
    with contextlib.chdir(folder):
        yield


@st.composite
def command_lines(draw, commands):
    words = draw(st.sampled_from(sorted(commands)))
    options = commands[words]
    for kind, names in NAMES.items():
        words = words.replace(kind, draw(st.sampled_from(names))) if kind in words else words
    chosen = draw(st.lists(st.sampled_from(sorted(options)), unique=True, max_size=6))
    line = words.split()
    for name in chosen:
        value = draw(options[name])
        if value is None:
            line.append(name)
        else:
            line += [f"{name}={value}"] if name.startswith("--") else [name, value]
    return line


def check(line):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as stop:
        main([*line, "--json"])
    if stop.value.code == 0:
        assert err.getvalue() == ""
        answer = json.loads(out.getvalue(), parse_constant=lambda word: pytest.fail(f"{word} in the answer"))
        assert answer["version"]
    else:
        assert stop.value.code == 2
        assert out.getvalue() == ""
        assert err.getvalue().count("\n") == 1
        assert err.getvalue().startswith("seqlaw: ")
    return stop.value.code


def test_a_ladder_with_a_step_that_the_safeguard_cuts():
    """Found by the lines below: the tokens a dimension were counted with the step as it was given."""
    line = "ladder -M 6 -d 24 --sketches 2 --candidates 2,16 --tokens 1e5 -L 1000 --c-xi 0.5 --gamma 78"
    assert check(line.split()) == 0


def test_a_ladder_with_nothing_to_learn():
    """Found by the lines below: a transition of 1e-300 was a traceback, of 0 over 0."""
    line = "ladder -M 6 -d 24 --sketches 2 --candidates 2,16 --tokens 1e5 -L 1000 --rho=1e-300"
    assert check(line.split()) == 2


EXAMPLES = int(os.environ.get("SEQLAW_EXAMPLES", "1000"))
quiet = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


@settings(quiet, max_examples=60)
@given(command_lines(COMMANDS))
def test_a_number_a_flag_or_one_line(line):
    check(line)


@pytest.mark.slow
@pytest.mark.parametrize("words", sorted(COMMANDS))
def test_every_line_answers_before_options_are_drawn(words):
    """Otherwise the generated lines would be refused for one and the same reason."""
    for kind, names in NAMES.items():
        words = words.replace(kind, names[0])
    assert check(words.split()) == 0


@pytest.mark.slow
@settings(quiet, max_examples=EXAMPLES)
@given(command_lines(COMMANDS))
def test_thousands_of_settings(line):
    check(line)


PLAN = (
    TEACHER
    | {name: SCHEDULE[name] for name in ("--schedule", "--gamma")}
    | {
        "--compute": size(1, 10**30),
        "--tokens": size(1, 10**30),
        "--eval-length": size(1, 10**6),
        "-d": st.one_of(size(2, 500), st.just("inf")),
        "--max-M": size(1, 100),
        "--max-P": size(1, 1000),
        "--max-N": size(1, 10**6),
        "--max-L": size(1, 10**6),
        "--cost": SPLIT["--cost"],
    }
)
PLANS = {
    "plan": PLAN,
    "plan --alpha 1.7:1.9 --draws 3": {name: PLAN[name] for name in PLAN if name != "--alpha"},
    "plan --one-pass": {name: PLAN[name] for name in PLAN if name != "--gamma"},
    "plan --epochs best": {name: PLAN[name] for name in PLAN if name != "--gamma"},
}


@pytest.mark.slow
@settings(quiet, max_examples=40)
@given(command_lines(PLANS))
def test_many_plans(line):
    check([*line, "--no-confirm"])
