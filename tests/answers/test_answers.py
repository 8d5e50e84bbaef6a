"""One contract for every answer: text, JSON, rows, picture and notebook, each defined once."""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import matplotlib
import nbformat
import numpy as np
import pytest
from matplotlib.figure import Figure
from nbclient import NotebookClient

import seqlaw
from conftest import python_path
from run_tables import run_table
from seqlaw.answers.ladder import ladder_curve
from seqlaw.answers.render import _aligned, _folded_table
from seqlaw.answers.words import sentences
from seqlaw.cli import main
from seqlaw.methods import trajectories
from seqlaw.model.flags import flag
from seqlaw.web.schema import Moving
from seqlaw.web.views import curve as curve_view

matplotlib.use("agg")
SOURCE = Path(seqlaw.__file__).parent
SETTING = seqlaw.Setting(
    teacher="regime2", M=16, N=256, P=8, d=64, schedule=seqlaw.WSD(gamma=0.1, L=500), eval_length=32
)
OPTIONS = ("-M", "16", "-N", "256", "-P", "8", "-d", "64", "-L", "500", "--eval-length", "32")
STATES = trajectories(seqlaw.PRESETS["regime2"].modes(24), 200, 12, seed=1)
BUDGET = seqlaw.Budget(compute=1e7, tokens=1e4)
UNCERTAIN = seqlaw.Uncertain(teacher="regime2", intervals={"alpha": (1.7, 1.9)})
BOUND = ("--compute", "1e7", "--tokens", "1e4", "-d", "64")
RUNS = run_table(0, rows=40)[0]
ASKED = {"loss": "loss", "terms": ["params", "tokens"], "without": "tokens", "budget": 1e21}
ANSWERS = {
    "risk": (lambda: seqlaw.risk(SETTING), ("risk", *OPTIONS)),
    "curve": (
        lambda: seqlaw.curve(SETTING, "N", [64, 128, 256]),
        ("curve", "--along", "N", "--from", "64", "--to", "256", "--points", "3", *OPTIONS),
    ),
    "overlaid": (
        lambda: seqlaw.curve(SETTING, "N", [64, 128, 256], sampled=2, sketches=2),
        (
            *("curve", "--along", "N", "--from", "64", "--to", "256", "--points", "3"),
            *("--sampled", "2", "--sketches", "2", *OPTIONS),
        ),
    ),
    "tradeoff": (
        lambda: seqlaw.tradeoff(SETTING, 4096, lengths=[2, 8, 32], eval_lengths=[16]),
        (
            *[
                "tradeoff",
                "--tokens",
                "4096",
                "--eval-length",
                "16",
                "--points",
                "3",
                "--max-P",
                "32",
                "-M",
                "16",
                "-d",
                "64",
                "-L",
                "500",
            ],
        ),
    ),
    "tradeoff with a mixture": (
        lambda: seqlaw.tradeoff(SETTING, 4096, lengths=[2, 32], eval_lengths=[16], mixture="2:0.5,32:0.5"),
        (
            *("tradeoff", "--tokens", "4096", "--eval-length", "16", "--points", "2", "--max-P", "32"),
            *("-M", "16", "-d", "64", "-L", "500", "--lengths", "2:0.5,32:0.5"),
        ),
    ),
    "ladder": (
        lambda: seqlaw.ladder(SETTING, 1e5, candidates=[2, 32], sketches=2),
        (
            *("ladder", "--tokens", "1e5", "--candidates", "2,32", "--sketches", "2"),
            *("--eval-length", "32", "-M", "16", "-d", "64", "-L", "500"),
        ),
    ),
    "ladder curve": (
        lambda: ladder_curve(SETTING, 1e5, candidates=[2, 32], shares=[0.2, 0.5], sketches=2),
        (
            *("ladder", "--shares", "0.2,0.5", "--tokens", "1e5", "--candidates", "2,32", "--sketches", "2"),
            *("--eval-length", "32", "-M", "16", "-d", "64", "-L", "500"),
        ),
    ),
    "plan": (lambda: seqlaw.plan("regime2", BUDGET, d=64), ("plan", *BOUND)),
    "plan of a mixture": (
        lambda: seqlaw.plan("regime2", BUDGET, d=64, lengths=seqlaw.Lengths((2, 32), (0.5, 0.5))),
        ("plan", *BOUND, "--lengths", "2:0.5,32:0.5"),
    ),
    "uncertain": (
        lambda: seqlaw.plan(UNCERTAIN, BUDGET, eval_length=16, draws=3),
        ("plan", *BOUND[:4], "--eval-length", "16", "--alpha", "1.7:1.9", "--draws", "3"),
    ),
    "rates": (lambda: seqlaw.rates(SETTING.but(eval_length=None)), ("rates", *OPTIONS[:-2])),
    "spectrum": (
        lambda: seqlaw.spectrum(SETTING.but(N=4096, eval_length=None), points=5),
        ("spectrum", "--points", "5", *OPTIONS[:2], *OPTIONS[4:-2]),
    ),
    "measure": (lambda: seqlaw.measure(STATES), ("measure", "states.npy")),
    "law": (
        lambda: seqlaw.fit_law(RUNS, bootstraps=20, **ASKED),
        (
            *(
                "law",
                "runs.csv",
                "--loss",
                "loss",
                "--term",
                "params",
                "--term",
                "tokens",
                "--bootstraps",
                "20",
            ),
            *("--without", "tokens", "--budget", "1e21"),
        ),
    ),
    "forecast": (lambda: seqlaw.forecast(STATES), ("forecast", "states.npy")),
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Every answer, computed once."""
    made = {name: make() for name, (make, _) in ANSWERS.items()}
    out = tmp_path_factory.mktemp("out")
    made["reproduce"] = seqlaw.reproduce(out, method="equivalent", panels="ad", quick=True)
    return made


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(one, marks=[pytest.mark.slow] * (one in ("uncertain", "plan of a mixture")))
        for one in ANSWERS
    ],
)
def test_text_and_json_are_those_of_the_command(name, answers, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    np.save("states.npy", STATES)
    RUNS.to_csv("runs.csv", index=False)
    command = ANSWERS[name][1]

    def printed(*more):
        with pytest.raises(SystemExit) as stop:
            main([*command, *more])
        assert stop.value.code == 0
        return capsys.readouterr().out

    # A plan's d was chosen here as there; what a measurement is of, and advice on it, only the command says.
    text = printed().rstrip("\n").replace(" (the default: d never limits M)", "")
    assert text.startswith(str(answers[name])[:200])
    shown, mine = json.loads(printed("--json")), answers[name].to_dict()
    assert {"command", "version", "inputs", "flags", "flag_records"} <= set(mine)
    assert [one["code"] for one in shown["flag_records"]] == [one["code"] for one in mine["flag_records"]]
    for field in set(mine) - {"inputs", "flags", "flag_records", "advice"}:
        assert shown[field] == mine[field], field


@pytest.mark.parametrize("name", [*ANSWERS, "reproduce"])
def test_an_answer_shows_itself(name, answers):
    answer = answers[name]
    json.dumps(answer.to_dict(), allow_nan=False)
    frame = answer.to_frame()
    assert len(frame) > 0
    page = answer._repr_html_()
    assert page.count("<table>") == page.count("</table>") > 0
    if answer.pictures[0]:
        axes = np.ravel(answer.plot())
        assert len(axes) == answer.pictures[0]
        assert all(place.has_data() for place in axes)
        figure = Figure()
        own = figure.subplots(1, answer.pictures[0], squeeze=False)[0]
        assert list(np.ravel(answer.plot(own))) == list(own)
        with pytest.raises(seqlaw.InputError, match=f"ax must be {answer.pictures[0]} axes"):
            answer.plot([*own, own[0]])
    else:
        for draw in (answer.plot, lambda: answer.save_plot("x.png")):
            with pytest.raises(seqlaw.InputError, match="has no picture"):
                draw()


@pytest.mark.parametrize(
    "name",
    [
        *("risk", "curve", "overlaid", "tradeoff", "tradeoff with a mixture", "ladder", "plan"),
        *("plan of a mixture", "uncertain", "rates", "spectrum"),
    ],
)
def test_frames_have_every_parameter(name, answers):
    frame = answers[name].to_frame()
    wanted = {
        "M",
        "N",
        "P",
        "L",
        "d",
        "gamma",
        "alpha",
        "theta",
        "r",
        "rho",
        "c_xi",
        "c_0",
        "batch",
        "lengths",
    }
    assert wanted <= set(frame)
    if name in ("risk", "curve", "overlaid", "plan"):
        assert {"reducible", "total"} <= set(frame)
    if name == "overlaid":
        assert frame["method"].tolist() == 3 * ["equivalent"] + 2 * ["sampled"]
        assert frame["se_reducible"].notna().tolist() == 3 * [False] + 2 * [True]


def test_sampled_points_lie_on_values_of_the_curve_with_both_ends():
    values = [2, 4, 8, 16, 32, 64, 128]
    found = seqlaw.curve(SETTING, "N", values, sampled=4, sketches=1)
    assert found.sampled.values == (2, 8, 32, 128)
    alone = seqlaw.curve(SETTING, "N", [2, 8, 32, 128], method="sampled", sketches=1)
    assert found.to_dict()["sampled"] == alone.to_dict()["rows"]
    assert seqlaw.curve(SETTING, "N", values, sampled=99, sketches=1).sampled.values == tuple(values)


@pytest.mark.parametrize("along", ["P", "R"])
def test_a_curve_of_no_values_is_refused(along):
    with pytest.raises(seqlaw.InputError, match="values must be at least one, got "):
        seqlaw.curve(SETTING, along, [])


def test_points_that_cannot_be_sampled_are_left_out_and_named():
    """A data set of more than a day; where no point is left it is an error, as d = inf is."""
    found = seqlaw.curve(SETTING, "P", [8, 16, 1e12], sampled=3, sketches=1, repetitions=1)
    assert found.sampled.values == (8, 16)
    (left,) = found.refused
    assert left.where.places == (1e12,)
    assert "warning: left out of the sampled points: P with N = 256" in " ".join(str(found).split())
    with pytest.raises(seqlaw.InputError, match="P with N = 256 and d = 64 would take"):
        seqlaw.curve(SETTING, "P", [1e12, 1e13], sampled=2)
    with pytest.raises(seqlaw.InputError, match="d must be finite for sampled points"):
        seqlaw.curve(replace(SETTING, d=np.inf), "N", [64, 128], sampled=2)


def test_the_picture_of_double_descent():
    """The peak at N·P = M, marked, with points on the curve; a bias of 1e-200 does not stretch the range."""

    schedule = seqlaw.Constant(gamma=0.1, L=10**7)
    setting = seqlaw.Setting(teacher="regime2", M=48, N=1, P=4, d=192, schedule=schedule)
    found = seqlaw.curve(setting, "N", [2, 4, 8, 12, 24, 64, 400], sampled=4, sketches=8)
    risks = [one.reducible for one in found]
    assert np.argmax(risks) == 3
    assert found.interpolation == 12
    # Sixteen data sets a point scatter by up to 6 %, and near the peak the law is good to 1.5/|N·P - M|.
    shown = [one.reducible for one in found.sampled]
    assert shown == pytest.approx(risks[::2], rel=0.2)
    figure = Figure()
    place = found.plot(figure.subplots())
    low, high = place.get_ylim()
    assert 1e-5 * min(risks) < low < min(risks) < max(risks) < high < 1e2 * max(risks)
    assert [text.get_text() for text in place.texts] == ["N·P = M"]
    words = [text.get_text() for text in place.get_legend().get_texts()]
    assert words == ["approx", "bias", "variance", "approx + bias + variance + cross", "sampled"]
    assert seqlaw.curve(setting, "P", [32, 64]).interpolation == 48
    assert seqlaw.curve(setting, "M", [8, 12]).interpolation is None  # 4 tokens
    assert seqlaw.curve(setting, "R", [8, 12]).interpolation is None


def test_a_flag_speaks_to_its_reader():
    saturated = [flag("saturated", saturation=3.0, check_d=64, same_d=True)]
    assert "--method exact" in sentences(saturated, "cli")[0]
    assert 'method="exact"' in sentences(saturated, "python")[0]
    assert "--" not in sentences(saturated, "python")[0]
    assert sentences([flag("of-my-own-method", size=3.5)], "cli") == ["of-my-own-method: size = 3.5"]


def strings(path):
    """The text of a module's names and constants, docstrings left out."""
    tree = ast.parse(path.read_text())
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                yield from (c.value for c in ast.walk(side) if isinstance(c, ast.Constant))
        if isinstance(node, ast.match_case):
            yield from (c.value for c in ast.walk(node.pattern) if isinstance(c, ast.Constant))


def test_nothing_outside_methods_branches_on_the_name_of_a_method():
    names = {"sampled", "exact", "equivalent"}
    for path in SOURCE.rglob("*.py"):
        if path.parent.name != "methods":
            assert not names & set(map(str, strings(path))), path


def test_nobody_reads_the_text_of_a_flag():
    """Neither Python nor the page: a flag is known by its code."""
    parsed = re.compile(r"flags?\w*\)?\.(startswith|split|partition|startsWith|includes)\(")
    for path in [*SOURCE.rglob("*.py"), *SOURCE.rglob("*.js")]:
        assert not parsed.search(path.read_text()), path


METHOD = '''
from seqlaw.methods.equivalent import equivalent_risks
from seqlaw.methods.method import Method
from dataclasses import replace


class Doubled(Method):
    """Twice the bias of the equivalent method."""

    name = "doubled"

    def risks(self, settings, draws, *, progress=None):
        return [replace(risk, method=self.name, bias=2 * risk.bias) for risk in equivalent_risks(settings)]
'''


@pytest.fixture
def doubled(tmp_path, monkeypatch):
    (tmp_path / "doubled_method.py").write_text(METHOD)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    return "doubled_method:Doubled"


def test_a_method_of_ones_own_works_everywhere(doubled, tmp_path, capsys):
    """In `risk`, `curve`, `sweep`, `reproduce` and the explorer, by its import path and nothing else."""
    plain = seqlaw.risk(SETTING)
    own = seqlaw.risk(SETTING, method=doubled)
    assert (own.method, own.bias, own.approx) == ("doubled", 2 * plain.bias, plain.approx)

    def run(*command):
        with pytest.raises(SystemExit) as stop:
            main([*command, "--json"])
        out, err = capsys.readouterr()
        assert stop.value.code == 0, err
        return json.loads(out)

    assert run("risk", "--method", doubled, *OPTIONS)["bias"] == own.bias
    ends = ("--along", "N", "--from", "64", "--to", "256", "--points", "3")
    curve = run("curve", "--method", doubled, *ends, *OPTIONS)
    # Points of one batch share their contour: the last digits may differ.
    assert [row["bias"] for row in curve["rows"]] == pytest.approx([own.bias] * 3, rel=1e-10)
    sizes = {"M": 16, "N": 256, "P": 8, "d": 64}
    tables = {"method": doubled, "sizes": sizes, "schedules": [{"L": 500}], "eval_lengths": 32}
    assert seqlaw.sweep(tables, tmp_path / "out").done == 1
    assert seqlaw.load(tmp_path / "out").frame["bias"].tolist() == [own.bias]
    assert seqlaw.sweep(tables, tmp_path / "out", dry_run=True).skipped == 1
    made = run("reproduce", "--method", doubled, "--quick", "--panels", "be", "--out", "paper")
    smooth = run("reproduce", "--method", "equivalent", "--quick", "--panels", "be", "--out", "paper")
    assert [row["slope"] for row in made["slopes"]] == pytest.approx([r["slope"] for r in smooth["slopes"]])
    rows = {row["method"]: row["bias"] for row in seqlaw.load(tmp_path / "paper").frame.to_dict("records")}
    assert set(rows) == {"equivalent", doubled}
    body = Moving(M=16, N=256, P=8, d=64, L=500, eval_length=32)
    shown = curve_view((body, doubled), lambda done, total: None)
    assert shown["point"]["bias"] == pytest.approx(own.bias, rel=1e-10)
    assert f"--method {doubled}" in shown["copy"]["command"]
    with pytest.raises(seqlaw.InputError, match="method must name a subclass of"):
        seqlaw.risk(SETTING, method="json:JSONEncoder")


@pytest.mark.slow
def test_every_answer_in_a_notebook(tmp_path, monkeypatch):
    """repr, frame and plot as a notebook shows them, and a sweep's bar as a line."""
    monkeypatch.setenv("PYTHONPATH", python_path(SOURCE.parent))
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    head = (
        "import seqlaw\nfrom seqlaw import *\nfrom seqlaw.methods import trajectories\n"
        "s = Setting(teacher='regime2', M=16, N=256, P=8, d=64, schedule=WSD(gamma=0.1, L=500))\n"
        "X = trajectories(PRESETS['regime2'].modes(24), 200, 12, seed=1)\n"
        "print(risk(s))"
    )
    calls = [
        "risk(s)", "curve(s, 'N', [64, 128, 256])", "tradeoff(s, 4096, lengths=[2, 8], eval_lengths=[16])",
        "plan('regime2', Budget(compute=1e7, tokens=1e4), d=64)", "rates(s)", "spectrum(s)",
        "measure(X)", "forecast(X)", "reproduce('paper', method='equivalent', panels='a', quick=True)",
    ]  # fmt: skip
    cells = [head, "sweep({'sizes': {'M': [4, 8], 'N': 9, 'P': 4, 'd': 16}}, 'out', progress=True)"]
    for call in calls:
        cells += [f"x = {call}\nx", "x.to_frame().shape", "x.plot() if x.pictures[0] else None"]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    (printed,) = notebook.cells[0].outputs  # one text, the answer first: rich shows no table by itself
    assert printed["text"].startswith("Reducible risk")
    assert "irreducible" in printed["text"]
    outputs = [
        {kind for output in cell.outputs for kind in output.get("data", {})} for cell in notebook.cells
    ]
    texts = [output.get("data", {}).get("text/plain", "") for output in notebook.cells[1].outputs]
    assert any("2/2 tasks" in text for text in texts)
    shown = outputs[2:]
    assert all("text/html" in kinds for kinds in shown[0::3])
    pictures = [
        kinds
        for call, kinds in zip(calls, shown[2::3], strict=True)
        if not call.startswith(("risk", "rates"))
    ]
    assert all("image/png" in kinds for kinds in pictures)


@pytest.mark.parametrize("batch", [None, 4], ids=["full batch", "mini-batches"])
@pytest.mark.parametrize("method", ["equivalent", "exact", "sampled"])
def test_the_header_has_the_horizon_that_the_safeguard_leaves(method, batch):
    once = {"N": None, "batch": batch} if batch else {"N": 50}
    schedule = seqlaw.WSD(gamma=20, L=300)
    setting = seqlaw.Setting(teacher="regime2", M=16, P=8, d=64, schedule=schedule, **once)
    found = seqlaw.risk(setting, method=method)
    assert 1400 < float(re.search(r"\(R=([\d.,]+)\)", str(found))[1].replace(",", "")) < 1700  # asked: 6000
    assert found.to_dict()["horizon"] == 6000


@pytest.mark.parametrize("header", [(), ("", "θ", "a long name"), ("", "θ")])
def test_a_table_that_fits_is_what_rich_makes_of_it(header):
    rows = [["two words", "1.5", "-2"], ["漢", "", "1e-30"], ["b"]]
    assert _aligned(header, rows) == _folded_table(header, rows)
    assert _aligned(header, [["word " * 30, "1", "2"]]) is None  # folded


@pytest.mark.parametrize("once", [{"N": 256}, {"batch": 4}], ids=["full batch", "mini-batches"])
def test_a_tuned_curve_along_positions_is_of_one_student(once):
    setting = seqlaw.Setting(teacher="regime2", M=8, P=8, d=32, schedule=seqlaw.WSD(gamma=0.1, L=50), **once)
    found = seqlaw.curve(setting, "position", [0, 3, 31], tune=True)
    [alone] = {one.setting.schedule.gamma for one in found}
    assert alone == seqlaw.risk(setting, tune=True).setting.schedule.gamma


def test_the_title_of_a_tuned_curve_has_no_horizon_of_the_step_that_was_not_taken():
    """Nor does it call a point outside the theorem for it: R = 0.8 here before the step is chosen."""
    setting = seqlaw.Setting(teacher="regime2", M=8, batch=4, P=8, d=32, schedule=seqlaw.WSD(gamma=0.1, L=8))
    page = str(seqlaw.curve(setting, "P", [4, 8], tune=True))
    assert "8 steps, the best step at each" in page
    assert "(R=" not in page
    assert "outside the theorem" not in page
    assert "outside the theorem" in str(seqlaw.curve(setting, "P", [4, 8]))
