"""Ten thousand settings across the commands: a number, a flag or a one-line error, and nothing else."""

import contextlib
import io
import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

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
    "--gamma": number(1e-6, 100),
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
# On the random rungs a setting is simulated: small sizes only.
SMALL = {
    "-M": size(1, 12),
    "-N": size(1, 60),
    "-P": size(1, 30),
    "-d": size(1, 40),
    "--sketches": st.sampled_from(["1", "2", "0"]),
    "--repetitions": st.sampled_from(["1", "2"]),
    "--eval-length": size(1, 10**18),
}
FEW = "-M 6 -d 24 -N 40 -P 6 --sketches=1 --repetitions=1 --jobs=1"  # unless chosen otherwise after it
COMMANDS = {
    "risk": TEACHER | SCHEDULE | SIZES,
    f"risk --rung exact {FEW}": TEACHER | SCHEDULE | SMALL,
    f"risk --rung sampled {FEW}": TEACHER | SCHEDULE | SMALL,
    "rates": TEACHER | SCHEDULE | SIZES,
    "spectrum": TEACHER
    | SCHEDULE
    | SIZES
    | {"--to": size(1, 10**15), "--points": st.sampled_from(["2", "9", "0"])},
    "curve": TEACHER
    | SCHEDULE
    | SIZES
    | {
        "--along": st.sampled_from(["M", "N", "P", "R", "Q"]),
        "--from": size(1, 100),
        "--to": size(2, 10**6),
        "--points": st.sampled_from(["2", "3", "5", "1"]),
    },
    "tradeoff": TEACHER
    | SCHEDULE
    | {
        "-M": SIZES["-M"],
        "-d": SIZES["-d"],
        "--tokens": size(2, 10**15),
        "--test": size(1, 10**6),
        "--longest": size(2, 10**6),
        "--points": st.sampled_from(["2", "4"]),
    },
}


@st.composite
def command_lines(draw, commands):
    words = draw(st.sampled_from(sorted(commands)))
    options = commands[words]
    chosen = draw(st.lists(st.sampled_from(sorted(options)), unique=True, max_size=8))
    line = words.split()
    for name in chosen:
        line.append(f"{name}={draw(options[name])}" if name.startswith("--") else name)
        if not name.startswith("--"):
            line.append(draw(options[name]))
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


quiet = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


@settings(quiet, max_examples=150)
@given(command_lines(COMMANDS))
def test_a_number_a_flag_or_one_line(line):
    check(line)


@pytest.mark.slow
@settings(quiet, max_examples=10_000)
@given(command_lines(COMMANDS))
def test_ten_thousand_settings(line):
    check(line)


PLANS = {
    "plan": TEACHER
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
    }
}


@pytest.mark.slow
@settings(quiet, max_examples=60)
@given(command_lines(PLANS))
def test_many_plans(line):
    check([*line, "--no-confirm"])
