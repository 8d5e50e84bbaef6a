"""The command line as a user meets it: fields, one-line errors, exit codes."""

import inspect
import io
import json
import math
import re
import subprocess
import sys

import numpy as np
import pytest

import seqlaw
from seqlaw.answers.words import percent_words, sentences
from seqlaw.cli import main
from seqlaw.cli.app import COMMANDS, question_of
from seqlaw.cli.progress import progress_bar
from seqlaw.lab import progress
from seqlaw.methods.ask import METHODS
from seqlaw.model.amount import amount
from seqlaw.model.flags import flag, merge_flags


@pytest.fixture
def run(capsys):
    """Run a command; returns (exit code, standard output, standard error)."""

    def call(*arguments):
        with pytest.raises(SystemExit) as stop:
            main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    return call


@pytest.fixture
def fields(run):
    def call(*arguments):
        code, out, err = run(*arguments, "--json")
        assert (code, err) == (0, "")
        return json.loads(out)

    return call


SMALL = ("-M", 16, "-d", 64, "-N", 256, "-P", 8, "-L", 500)
SPECTRUM = tuple(word for k, word in enumerate(SMALL) if k not in (4, 5))  # which has no N
RISK = {
    "method", "regime", "irreducible", "approx", "bias", "variance", "cross", "reducible", "total", "steps",
    "horizon", "eval_length", "standard_error", "accuracy", "flags",
}  # fmt: skip


@pytest.mark.parametrize("method", ["sampled", "exact", "equivalent"])
def test_risk(fields, method):
    answer = fields("risk", "--method", method, *SMALL, "--seed", 3)
    assert set(answer) >= RISK
    assert answer["method"] == method
    assert answer["inputs"]["seed"] == 3
    assert answer["version"] == seqlaw.__version__
    parts = sum(answer[name] for name in ("irreducible", "approx", "bias", "variance", "cross"))
    assert answer["total"] == pytest.approx(parts, rel=1e-12)
    assert bool(answer["standard_error"]) == (method != "equivalent")
    assert answer["eval_length"] == 8
    assert fields("risk", "--method", method, *SMALL, "--seed", 3) == answer


def test_risk_is_the_python_call(fields):
    answer = fields(
        "risk", *SMALL, "--schedule", "block", "--eval-length", 50, "--teacher", "regime1", "--rho", 0.7
    )
    teacher = seqlaw.Teacher(alpha=1.5, theta=2.5, r=0.2, rho=0.7, c_xi=0.05, c_0=0.01)
    schedule = seqlaw.BlockDecay(gamma=0.1, L=500)
    setting = seqlaw.Setting(teacher=teacher, M=16, N=256, P=8, d=64, schedule=schedule, eval_length=50)
    wanted = seqlaw.risk(setting, method="equivalent")
    assert (answer["approx"], answer["bias"], answer["variance"]) == (
        wanted.approx,
        wanted.bias,
        wanted.variance,
    )


def test_every_command_runs_with_no_option(run):
    for command in ("risk", "curve", "rates", "plan", "tradeoff"):
        code, out, err = run(command)
        assert (code, err) == (0, ""), command
        assert out


def test_infinity_is_null_with_a_flag(fields):
    answer = fields("risk", "-d", "inf", "-M", "1e6")
    assert answer["inputs"]["setting"]["d"] is None
    assert any("infinite" in flag for flag in answer["flags"])


@pytest.mark.parametrize("along", ["M", "N", "P", "R"])
def test_curve(fields, along):
    answer = fields("curve", "--along", along, "--from", 8, "--to", 40, "--points", 4, *SMALL)
    rows = answer["rows"]
    assert len(rows) == 4
    assert set(rows[0]) >= {
        "M",
        "N",
        "P",
        "R",
        "L",
        "approx",
        "bias",
        "variance",
        "cross",
        "reducible",
        "total",
    }
    assert [rows[0][along], rows[-1][along]] == pytest.approx([8, 40], rel=0.02)
    if along == "N":
        assert answer["slopes"]["variance"]["slope"] == pytest.approx(-1, abs=0.1)  # 8 to 40 sequences
    if along == "P":
        assert [row["eval_length"] for row in rows] == [row["P"] for row in rows]


def test_the_default_width_fits_into_few_modes(fields):
    """128 is not used along M, and was refused as more than d."""
    found = fields("curve", "--along", "M", "--from", 6, "--to", 24, "-d", 96)
    assert [found["rows"][k]["M"] for k in (0, -1)] == [6, 24]
    assert fields("risk", "-d", 96)["inputs"]["setting"]["M"] == 24
    assert fields("risk", "-d", "inf")["inputs"]["setting"]["M"] == 128


def test_a_chosen_test_length_stays_along_p(fields):
    """Also where it equals the P that the setting happens to have."""
    options = ("curve", "--along", "P", "--from", 2, "--to", 64, "--points", 3, "-M", 16, "-d", 64, "-L", 500)
    rows = fields(*options, "-P", 64, "--eval-length", 64)["rows"]
    assert [row["eval_length"] for row in rows] == [64, 64, 64]


def test_flags_of_many_points_are_counted_once_a_point(fields):
    options = ("--alpha", 0.9, "--theta", 0.5, "--r", 0.1, "--from", 2, "--to", 8, "--points", 3)
    flags = fields("curve", *options, "-M", 8, "-d", 32)["flags"]
    assert len([flag for flag in flags if flag.startswith("assumption-2")]) == 3
    assert not any("of 3 points" in flag for flag in flags if flag.startswith("assumption"))


def test_flags_name_their_points():
    def said(lists, values):
        return sentences(merge_flags(lists, "P", values), "cli")

    a, b = [flag("untrained", trained=k / 10) for k in (1, 2, 3)], flag("length")
    words = "training is too short to compute the variance accurately (sum(gamma) * ||G|| = 0.1)"
    length = "length: the paper takes P >= 2, got P = 1"
    assert said([[a[0]], [], [a[1], b], [a[2]], [b]], [2, 4, 8, 16, 32]) == [
        f"untrained: {words} (at P = 2, 8 to 16: 3 of 5 points)",
        f"{length} (at P = 8, 32: 2 of 5 points)",
    ]
    # Two tests of the same lengths: flagged at each length, but not in each test.
    assert said([[b], [b], [], [b]], [2, 4, 2, 4]) == [f"{length} (at P = 2 to 4: 3 of 4 points)"]
    assert said([[b], [b]], [2, 4]) == [length]
    # The worst point's numbers are said, not the first's.
    peak = [[flag("interpolation-peak", tokens=40, M=48, error=error)] for error in (0.21, 0.97, 0.4)]
    assert "may be off by 97 %" in said(peak, [10, 12, 14])[0]
    few = [[flag("frozen-filter", tokens=tokens)] for tokens in (9, 2)]
    assert said(few, [10, 12])[0].startswith("frozen-filter: only 2 effective tokens")


def test_an_error_is_never_shown_as_zero():
    assert percent_words(0.0721, 0.0018) == "7.2 % ± 0.2 %"
    assert percent_words(0.00112, 0.00003) == "0.112 % ± 0.003 %"
    assert percent_words(0.2, 0.0) == "20.0 % ± 0.0 %"  # one that is


def slopes(out):
    """The header and the rows of the table of slopes, cell by cell."""
    lines = out[out.index("slope against") :].splitlines()
    rows = [re.split(r"  +", line.strip()) for line in lines if re.match(r"  [a-z]", line)]
    return re.split(r"  +", lines[0].strip()), {row[0]: row[1:] for row in rows}


def test_the_slope_of_a_constant_is_zero(run):
    """approx does not depend on N: what is fitted to its rounding, about 1e-15, is not shown."""
    _, out, _ = run("curve", "--along", "N", "-d", "inf")
    assert slopes(out)[1]["approx"] == ["0", "0"]


def test_points_that_round_to_the_same_size_are_counted(run):
    words = "note: 12 points were asked for; rounded to whole numbers they are 7 [coincide]"
    asked = ["curve", "--along", "P", "--from", "2", "--to", "8", "-d", "64", "-M", "8"]
    assert words in " ".join(run(*asked)[1].split())
    assert "coincide" not in run(*asked, "--points", "3")[1]


def test_a_curve_without_chance_has_curvature_and_one_with_it_standard_errors(run, fields):
    """What is left beside a line is not a statistical error where nothing was drawn."""
    options = ("curve", "--along", "P", "--from", 2, "--to", 8, "--points", 3, *SMALL)
    for method, name, mark in (("equivalent", "curvature", ""), ("sampled", "standard error", "± ")):
        answer = fields(*options, "--method", method)
        assert answer["se_is"] == name
        assert set(answer["slopes"]["variance"]) == {"slope", "se", "r2"}
        _, out, _ = run(*options, "--method", method)
        header, rows = slopes(out)
        assert header == ["slope against P", name]
        bias = answer["slopes"]["bias"]
        assert rows["bias"] == [amount(bias["slope"], 5), f"{mark}{bias['se']:.2g}"]
        assert ("a straight line on logarithmic axes" in " ".join(out.split())) == (name == "curvature")


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [
        (0, None, "0"),
        (352336, None, "352,336"),
        (1e9, None, "1e9"),
        (1.2346e15, None, "1.23e15"),
        (1234.5, None, "1,234"),
        (0.312, None, "0.312"),
        (math.inf, None, "inf"),
        (12345678, 5, "1.2346e7"),
        (-0.0123456, 5, "-0.012346"),
        (123456.7, 5, "123,457"),
        (1e6, 5, "1e6"),
        (123.4, 2, "123"),
        ("I", 5, "I"),
    ],
)
def test_numbers_are_written_for_people(value, digits, text):
    assert amount(value, digits) == text


def test_curve_on_the_sampled_method_with_a_picture(fields, tmp_path):
    picture = tmp_path / "curve.svg"
    options = ("curve", "--along", "N", "--from", 200, "--to", 800, "--points", 3, "--method", "sampled")
    answer = fields(*options, *SMALL, "--plot", picture)
    assert answer["rows"][0]["standard_error"]["variance"] > 0
    first = picture.read_bytes()
    fields(*options, *SMALL, "--plot", picture)
    assert picture.read_bytes() == first


def test_rates(fields):
    answer = fields("rates", *SMALL)
    assert set(answer) >= {
        "regime", "beta_alpha", "beta_theta", "exponents", "crossovers", "conditions", "values",
    }  # fmt: skip
    assert set(answer["crossovers"]) == {"P_M", "P_R", "m_P", "R_P", "kappa"}
    assert set(answer["conditions"][0]) >= {"name", "value", "needed", "ratio", "holds"}
    assert set(answer["exponents"]["variance"]) == {"N", "P", "R"}


def test_plan(fields, tmp_path):
    answer = fields("plan", "--compute", "1e9", "--tokens", "1e6", "-d", 256, "--plot", tmp_path / "plan.png")
    assert set(answer) >= {"regime", "phase", "K", "tau", "corollary", "program", "finite", "notes"}
    assert set(answer["corollary"]) == {"M", "N", "P", "L", "exponents"}
    assert set(answer["program"]) == {"paper", "proved", "free"}
    assert set(answer["program"]["free"]) >= {"M", "N", "P", "R", "risk", "ranges"}
    finite = answer["finite"]
    assert set(finite) >= {"M", "N", "P", "L", "compute", "tokens", "terms", "flat"}
    assert finite["compute"] == finite["N"] * finite["P"] * finite["M"] ** 2 * finite["L"] <= 1e9
    assert answer["inputs"]["budget"]["min_P"] == 1
    floored = fields("plan", "--compute", "1e9", "--tokens", "1e6", "-d", 256, "--min-P", finite["P"] + 100)
    assert floored["finite"]["P"] >= finite["P"] + 100 == floored["inputs"]["budget"]["min_P"]
    in_flops = fields("plan", "--compute", "4e9", "--tokens", "1e6", "-d", 256, "--flops")
    assert in_flops["finite"]["M"] == finite["M"]
    assert in_flops["flops"]["factor"] == 4


@pytest.mark.slow
def test_a_plan_says_which_d_and_why(run):
    small = ("plan", "--compute", "1e3", "--tokens", "1e3")
    for more, words in (
        ((), "d = inf (the default: d never limits M)"),
        (("-d", 64), "d = 64"),
        (("-d", "inf"), "d = inf"),
    ):
        assert f"\nRegime II, {words}, tested at its own length\n" in run(*small, *more)[1]


def test_a_plan_begins_with_the_answer(run, fields):
    valley = ("plan", "--compute", "1e18", "--tokens", "1e9", "--eval-length", 2048, "--teacher", "regime1")
    valley = (*valley, "--gamma", 0.1)
    text = run(*valley)[1]
    lines = " ".join(text.split())
    assert re.match(
        r"Train M = 46\d on about 2,0\d0 sequences of length 2,048 for 1\.1 million steps\. Any P from 3\d "
        r"to 5\.4 million costs about 1 % more at most\. The remaining 996 million tokens are left unused: "
        r"at this compute budget they would not lower the risk\. Reducible risk [\d.]+e-\d+ "
        r"\(relative error about .+?\): "
        r"approx \d+ %, bias \d+ %, variance \d+ %\. Teacher",
        lines,
    )
    assert "powers of K" not in text
    rates = run(*valley, "--verbose")[1]
    assert "powers of K" in rates
    assert "sample conditions" in rates
    answer = fields(*valley)
    assert lines.startswith(answer["answer"])
    assert answer["finite"]["limits"]["N"] == ["one", None]
    assert answer["finite"]["least"]["reducible"] <= answer["finite"]["reducible"]
    assert answer["program"]["free"] is not None


def test_costs_of_ones_own(run, fields):
    """A cost that grows with P makes long sequences dearer; the paper's, written out, changes nothing."""
    small = ("plan", "--compute", "1e12", "--tokens", "1e6", "-d", 256)
    paper = fields(*small)["finite"]
    assert fields(*small, "--cost", "M*M*(N*P*L)")["finite"] == paper
    dear = fields(*small, "--cost", "N*P*L*M**2*(1 + P/100)")["finite"]
    assert dear["compute"] <= 1e12
    assert dear["P"] < paper["P"]
    rows = fields("tradeoff", "--tokens", 1000, "--cost", "N*P*L*M**2 + 10*L", "--points", 2)["rows"]
    assert rows[0]["compute"] == 500 * 2 * 30000 * 128**2 + 10 * 30000
    limited = fields("tradeoff", "--tokens", 1000, "--compute", 3e11, "--points", 2)["rows"]
    assert [row["N"] for row in limited[:2]] == [305, 1]  # 3e11 // (P * 30000 * 128**2)
    for command, words in (
        ("plan --cost N**2*P*L*M", "--cost must be linear in N"),
        ("plan --cost M*P*L", "--cost must be positive, finite and grow with each of M, N, P, L"),
        ("plan --cost __import__('os')", "--cost may hold + - * / ** and parentheses only"),
        ("plan --cost N*P*L*M+(0-2)**0.5", "--cost must be real at every size"),
        ("plan --cost N*P*L*M**2*(1-P/1e7)", "--cost must be positive, finite and grow"),
        ("plan --theta 0.9:1.4", "--theta must be above 1 at both ends, or d finite"),
        ("plan --alpha 1.7:1.9 --draws 1", "--draws must be at least 2"),
        ("tradeoff --cost N*Q", "--cost may contain M, N, P, L, not Q"),
        ("tradeoff --compute 10", "--compute must allow one sequence of length 2"),
        ("plan --flops --cost N*P*L*M", "--flops goes with the paper's cost"),
    ):
        code, _, error = run(*command.split())
        assert code == 2
        assert words in error.replace("\n", " ")


def test_tradeoff(fields, tmp_path):
    answer = fields(
        "tradeoff",
        "-M",
        16,
        "-d",
        64,
        "-L",
        500,
        "--tokens",
        5000,
        "--eval-length",
        7,
        "--plot",
        tmp_path / "t.png",
        "--points",
        4,
    )
    assert set(answer["rows"][0]) >= {"P", "N", "eval_length", "approx", "bias", "variance", "reducible"}
    assert set(answer["best"]) == {"own", "7"}
    assert (tmp_path / "t.png").stat().st_size > 10_000


def test_teacher_files(fields, run, tmp_path):
    toml = tmp_path / "teacher.toml"
    toml.write_text("alpha = 1.8\ntheta = 1.25\nr = 0.35\nrho = 0.55\nc_xi = 0.03\nc_0 = 0.3\n")
    preset, own = (fields("risk", *SMALL, "--teacher", source) for source in ("regime2", toml))
    assert own["total"] == preset["total"]
    modes = seqlaw.PRESETS["regime2"].modes(64)
    arrays = tmp_path / "modes.npz"
    np.savez(arrays, a=modes.a, sigma_xi=modes.sigma_xi, sigma_0=modes.sigma_0)
    measured = fields("risk", "-M", 16, "-N", 256, "-P", 8, "-L", 500, "--teacher", arrays)
    assert measured["total"] == pytest.approx(preset["total"], rel=1e-9)
    assert measured["regime"] == "unknown"
    assert run("risk", "--teacher", arrays, "--rho", 0.3)[0] == 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("risk -M abc", "-M/--width must be a number, got abc"),
        ("risk -M 0", "-M/--width must be at least 1"),
        ("risk -M 5000", "-M/--width must be at most d = 1024"),
        ("risk --rho 1.2", "--rho must lie in (0, 1), got 1.2"),
        ("risk --rho x", "--rho"),
        ("risk --c-xi -1", "--c-xi must be positive"),
        ("risk --alpha nan", "--alpha must be finite"),
        ("risk --method foo", f"--method must be one of {', '.join(METHODS)}"),
        ("risk --method rates", "(the theorem: seqlaw rates), got rates"),
        ("risk --teacher nope", "--teacher must be one of"),
        ("risk --teacher nope.toml", "must exist, got nope.toml"),
        ("risk -L 3", "-L/--steps must leave room for each phase"),
        ("risk -R 10 -L 10", "-R/--horizon cannot be given together"),
        ("risk -R -1", "-R/--horizon must be positive"),
        ("risk --gamma 0", "--gamma must be positive"),
        ("risk --schedule line", "--schedule must be one of wsd, block, constant, cosine"),
        ("risk --schedule block --warmup 0.2", "--warmup goes with the wsd schedule only"),
        (
            "risk -d inf --method exact",
            "-d/--modes must be finite on this method (for inf: equivalent",
        ),
        ("risk -d inf --theta 1.0 --alpha 1.2", "-d/--modes = inf needs theta > 1"),
        ("risk -d inf --alpha 1", "-d/--modes = inf needs alpha > 1"),
        ("risk -d inf --alpha 1.001", "-d/--modes = inf needs alpha of at least"),
        ("risk --seed -1", "--seed must be at least 0"),
        ("risk --sketches 0 --method exact", "--sketches must be at least 1"),
        ("risk -P 0", "-P/--length must be at least 1"),
        ("risk --eval-length 1.5", "--eval-length must be a whole number"),
        ("risk --nope", "No such option"),
        ("risk -M", "Option '-M' requires an argument"),
        ("risk --seed 3.5", "got 3.5"),
        ("risk --seed=x", "got x"),
        ("risk --decay 5e-324", "-L/--steps must leave room for each phase"),
        ("curve --no-confirm", "No such option: --no-confirm here; it belongs to plan"),
        ("risk extra", "unexpected extra argument"),
        ("nothing", "No such command"),
        ("curve --along Q", "--along must be one of M, N, P, R"),
        ("curve --from 10 --to 5", "--to must be above the start, which must be positive, got 5"),
        ("curve --along M --to 5000", "--to must be at most d = 1024, got 5000"),
        ("curve --along R --from 0.05 --to 10", "--from asks for 1 steps"),
        ("curve --points 1", "--points must be at least 2"),
        ("curve --sampled 1", "--sampled must be at least 2, got 1"),
        ("curve --sampled 4 -d inf", "-d/--modes must be finite for sampled points, got inf"),
        ("curve --plot x.gif", "--plot must end in one of .png, .pdf, .svg"),
        ("plan --compute much", "--compute must be a number"),
        ("plan --compute -5", "--compute must be positive"),
        ("plan --compute 5", "--compute must allow"),
        ("plan --tokens 1", "--tokens must allow"),
        ("plan --max-P 1", "--max-P must allow"),
        ("plan --min-P 20 --max-P 10", "--min-P must be at most --max-P = 10, got 20"),
        ("plan --theta 0.9", "= inf needs theta > 1: the trace of a covariance diverges (try -d 1024)"),
        ("plan --min-P 1e10", "--min-P must be at most the tokens"),
        ("plan --max-L 2", "--max-L must allow"),
        ("risk -R 0.05", "-R/--horizon asks for 1 steps"),
        ("risk --method sampled -P 1e12", "-P/--length with N = 4096"),
        ("risk --method exact -d 1e12", "-d/--modes must be at most"),
        ("risk --gamma 1e-320", "--gamma must lie between"),
        ("rates --theta 1000", "--theta must be at most 20"),
        ("tradeoff -N 5", "No such option: -N here; it belongs to risk, curve, rates"),
        ("plan --max-M 0", "--max-M must be at least 1"),
        ("plan -L 100", "No such option: -L"),
        ("ladder --momentum 0.9", "it belongs to tradeoff, risk, curve, spectrum, rates"),
        ("tradeoff --tokens 0", "--tokens must be positive"),
        ("tradeoff --min-P 80 --max-P 64", "--min-P must be at most --max-P, 64, got 80"),
        ("tradeoff --min-P 80 --tokens 64", "--min-P must be at most the tokens, 64, got 80"),
        ("tradeoff --eval-length 0", "--eval-length must be at least 1"),
        ("tradeoff --test 16", "No such option: --test; since 0.3 it is --eval-length"),
        ("tradeoff --shortest 8", "No such option: --shortest; since 0.3 it is --min-P"),
        ("ladder --map", "No such option: --map; since 0.3 it is examples/phase_diagram.py"),
        ("risk --rung exact", "No such option: --rung; since 0.3 it is --method"),
        ("rates --theta -1", "--theta must not be negative"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(run, arguments, words):
    code, out, err = run(*arguments.split())
    assert code == 2
    assert out == ""
    assert err.count("\n") == 1
    assert words in err


@pytest.mark.parametrize(
    ("library", "extra", "command"),
    [
        ("matplotlib", "plot", "tradeoff --plot x.png --points 2"),
        ("uvicorn", "web", "explore --no-open"),
        ("pandas", "lab", "fit rows.csv --x M --y approx"),
        ("zarr", "measure", "measure states.zarr"),
    ],
)
def test_a_missing_extra_is_one_line_that_serves_an_index_and_a_checkout(
    run, monkeypatch, tmp_path, library, extra, command
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "states.zarr").mkdir()
    monkeypatch.setitem(sys.modules, library, None)
    code, out, err = run(*command.split())
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f" needs {library}: pip install 'seqlaw[{extra}]' " in err
    assert f"(from a checkout: pip install '.[{extra}]')" in err


PRINTED = "alpha=1.8 theta=1.25 r=0.35 rho=0.55 c_xi=0.03 c_0=0.3"


@pytest.mark.parametrize(
    "command",
    [
        ("risk", *SMALL),
        ("curve", *SMALL, "--points", 2, "--to", 8),
        ("tradeoff", "-M", 16, "-d", 64, "-L", 500, "--points", 2),
    ],
    ids=lambda command: command[0],
)
def test_the_page_says_which_teacher(run, command):
    assert f"Teacher regime2 (the default): {PRINTED}\n" in run(*command)[1]
    assert "Teacher regime1: alpha=1.5 theta=2.5 r=0.2 " in run(*command, "--teacher", "regime1")[1]
    assert f"Teacher: {PRINTED.replace('0.55', '0.5')}\n" in run(*command, "--rho", 0.5)[1]


def test_the_first_line_is_the_answer(run):
    risk = " ".join(run("risk", *SMALL)[1].split())
    assert re.match(r"Reducible risk 0\.001\d+ \(relative error about 0\.\d+\): approx \d+ %, bias", risk)
    split = " ".join(run("tradeoff", "--gamma", 0.1, "--eval-length", 4096)[1].split())
    assert re.match(
        r"Tested at length 4,096, more and shorter sequences win: P = 2 is best; P = 4,096 has 7\.7\d times "
        r"its reducible risk\. Each tested at its own length, as in the paper, fewer and longer sequences "
        r"win: P = 2,048 to 4,096 is best; P = 2 has 8\.9\d times",
        split,
    )
    assert "cross" not in split  # a page of sums says nothing of their parts


def test_a_step_that_differs_along_a_curve_is_given_as_a_range(run):
    split = " ".join(run("tradeoff", "--eval-length", 64, "--gamma", 100, "--points", 3)[1].split())
    assert "the step size is reduced to 2.33 to 11.5, the largest that the safeguard allows" in split
    point = " ".join(run("risk", "-P", 2, "--gamma", 100)[1].split())
    assert "the step size is reduced to 2.33, the largest" in point


@pytest.mark.parametrize(
    "command", ["risk", "tradeoff --tokens 1000", "curve --points 3 --to 64", "spectrum"]
)
def test_arrays_need_no_width(fields, tmp_path, command):
    """128 is wider than 24 modes: a quarter of them is taken."""
    np.savez(tmp_path / "m.npz", a=np.full(24, 0.5), sigma_xi=np.ones(24), sigma_0=np.ones(24))
    inputs = fields(*command.split(), "--teacher", tmp_path / "m.npz")["inputs"]
    sizes = inputs.get("setting", inputs)  # a tradeoff has no one setting
    assert (sizes["M"], sizes["d"]) == (6, 24)


def test_a_tradeoff_knows_the_names_of_a_plan(fields):
    answer = fields("tradeoff", "--min-P", 4, "--max-P", 64, "--eval-length", 128, "--points", 3)
    assert answer["inputs"]["lengths"] == [4, 16, 64]
    assert list(answer["best"]) == ["own", "128"]


def test_the_page_counts_the_modes_of_arrays(run, tmp_path):
    modes = seqlaw.PRESETS["regime2"].modes(64)
    np.savez(tmp_path / "mine.npz", a=modes.a, sigma_xi=modes.sigma_xi, sigma_0=modes.sigma_0)
    _, out, _ = run("risk", "-M", 16, "-L", 500, "--teacher", tmp_path / "mine.npz")
    assert "\nTeacher: 64 modes from mine.npz\n" in out


@pytest.mark.slow
def test_a_plan_gives_the_fractions_that_it_used(fields):
    small = ("plan", "--compute", "1e3", "--tokens", "1e3", "-d", 64)
    used = [fields(*small, *more)["inputs"] for more in ((), ("--decay", 0.3), ("--schedule", "block"))]
    assert [(i["warmup"], i["decay"]) for i in used] == [(0.1, 0.2), (0.1, 0.3), (None, None)]


def test_tradeoff_between_two_lengths(fields):
    answer = fields("tradeoff", "-M", 16, "-d", 64, "-L", 500, "--min-P", 8, "--max-P", 64, "--points", 4)
    assert answer["inputs"]["lengths"] == [8, 16, 32, 64]


def test_a_spectrum_says_what_it_is_of(run):
    _, out, _ = run("spectrum", *SPECTRUM)
    assert "Regime II: averaged covariance h_P at P=8 (exact to rounding)" in out.splitlines()


def test_rates_keeps_the_remainder_apart(run):
    _, out, _ = run("rates", *SMALL, "--verbose")
    crossovers, remainder = out.split("remainder")[:2]
    for name in ("d_eff", "epsilon_M", "omega_0", "covariance_event"):
        assert f"{name}: " in remainder
        assert name not in crossovers


def test_a_bar_waits_for_its_total(monkeypatch):
    stream = io.StringIO()
    stream.isatty = lambda: True
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("TERM", "xterm")
    with progress_bar("data sets", "auto"):
        pass
    assert "data sets" not in stream.getvalue()
    with progress_bar("data sets", "auto") as tell:
        tell(1, 4)
    assert "1/4" in stream.getvalue()


SAMPLED = ("risk", "--method", "sampled", "-M", "4", "-d", "16", "-N", "20", "-P", "4", "-L", "50")


def test_plain_progress_is_lines_on_standard_error(run):
    """The first data set and the last; between them a line every ten seconds, which these do not take."""
    code, out, err = run(*SAMPLED, "--sketches", "2", "--repetitions", "2", "--progress", "plain", "--json")
    assert code == 0
    assert json.loads(out)["method"] == "sampled"
    assert err == "seqlaw: 1/4 data sets, about 1 s left\nseqlaw: 4/4 data sets\n"
    assert run(*SAMPLED)[2] == ""  # a pipe stays silent unless asked
    refused = "seqlaw: --progress must be auto or plain, got loud\n"
    assert run("risk", "--progress", "loud") == (2, "", refused)


def test_plain_lines_are_far_apart(monkeypatch, capsys):
    now = iter([0.0, 3.0, 9.9, 10.0, 12.0, 15.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(now))
    draw = progress.plain_lines()
    for share in (0.1, 0.2, 0.3, 0.4, None, 1.0):
        draw(share, f"{share}", lambda: "some left")
    assert capsys.readouterr().err.splitlines() == [
        "seqlaw: 0.1, some left", "seqlaw: 0.4, some left", "seqlaw: None", "seqlaw: 1.0",
    ]  # fmt: skip


def test_broken_teacher_files(run, tmp_path):
    empty, renamed, still = tmp_path / "empty.npz", tmp_path / "renamed.npz", tmp_path / "still.npz"
    empty.write_bytes(b"")
    np.save(tmp_path / "x.npy", np.ones(3))
    (tmp_path / "x.npy").rename(renamed)
    np.savez(still, a=np.full(8, 0.5), sigma_xi=np.zeros(8), sigma_0=np.zeros(8))
    unknown = tmp_path / "unknown.toml"
    unknown.write_text("alpha = 1.8\ntheta = 1.25\nr = 0.35\nrho = 0.55\nc_xi = 0.03\nc_0 = 0.3\nfoo = 1\n")
    for path, words in (
        (empty, "NPZ"),
        (renamed, "NPZ"),
        (still, "must have a mode that varies"),
        (unknown, "unknown.toml.foo"),
    ):
        code, _, err = run("risk", "-M", 4, "--teacher", path)
        assert (code, err.count("\n")) == (2, 1)
        assert words in err


def test_version_and_help(run):
    assert "Commands:" in run()[1]
    assert run("--version")[1] == f"seqlaw {seqlaw.__version__}\n"
    code, out, _ = run("plan", "--help")
    assert code == 0
    assert "Example: seqlaw plan" in out


def test_help_is_readable_at_80_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    root = run("--help")[1]
    assert len(root.splitlines()) <= 40  # one screen
    listed = root.split("Commands:\n")[1].split("\n\n", 1)[0].splitlines()
    assert not any(line.endswith("...") for line in listed)  # each sentence is whole
    assert "Example: seqlaw" in root
    for name, line in (line.split(maxsplit=1) for line in listed):
        text = run(name, "--help")[1]
        said = " ".join(text.split())
        assert line in said  # the list has the first line of each
        assert f"Example: seqlaw {name}" in said
        assert max(map(len, text.splitlines())) <= 80
        assert not re.search(r"--\S+ <(str|list|bool)", text)  # what kind of word is said


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_of_commands_has_the_first_line_of_each(name):
    """The list is written out, so that `--help` loads nothing."""
    question = question_of(name)
    assert inspect.getdoc(question).splitlines()[0] == COMMANDS[name][2]
    assert question.command == name
    assert question.example.startswith(f"seqlaw {name}")


def test_help_loads_nothing_that_computes():
    code = (
        "import sys; from seqlaw.cli import main\ntry: main(['--help'])\n"
        "except SystemExit: print({'numpy', 'scipy', 'pandas', 'pydantic'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.endswith("set()\n")


def test_as_a_process():
    done = subprocess.run(
        [sys.executable, "-m", "seqlaw", "risk", "-M", "9999"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert done.stderr == "seqlaw: -M/--width must be at most d = 1024, got 9999\n"


@pytest.mark.parametrize("command", ["risk", "curve --points 3", "rates", "tradeoff --points 3"])
def test_a_failed_assumption_is_said_first(run, command):
    """The statement of the theorem is not printed where it does not hold."""
    _, out, _ = run(*command.split(), "--alpha", 0.5)
    assert "Regime I (outside the theorem, see below)" in out
    assert "With probability" not in out
    inside = run(*command.split())[1]
    assert "outside the theorem" not in inside
    assert ("With probability" in inside) == (command == "rates")
