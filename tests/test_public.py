"""The public names as a Python user meets them: names for teachers and schedules, explicit signatures."""

import doctest
import importlib
import inspect
import os
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import seqlaw
import seqlaw.model
from seqlaw import PRESETS, WSD, BlockDecay, Budget, Explicit, InputError, Modes, Setting
from seqlaw.answers.advice import advise
from seqlaw.methods import trajectories
from seqlaw.model import descend
from seqlaw.model.schedule import SCHEDULES
from seqlaw.planning.corollary import corollary
from seqlaw.planning.program import program
from seqlaw.renamed import NAMES

SOURCE = Path(seqlaw.__file__).parent.parent
SIZES = {"M": 8, "N": 64, "P": 4, "d": 32}
SMALL = Budget(compute=1e4, tokens=1e3)
TEACHERS = "must be one of regime1, regime2, a Teacher or Modes"

SCHEDULE_PATHS = f"must be one of {', '.join(SCHEDULES)} or an import path like mymodule:Name"
SCHEDULE_NAMES = f"must be one of {', '.join(SCHEDULES)}, or a Schedule"


@pytest.mark.parametrize("name", PRESETS)
def test_a_presets_name_is_a_teacher_wherever_one_is_taken(name):
    teacher = PRESETS[name]
    named, given = (Setting(teacher=one, schedule=WSD(gamma=0.1, L=100), **SIZES) for one in (name, teacher))
    assert named == given
    assert named.teacher is teacher
    assert replace(given, teacher="regime1").teacher is PRESETS["regime1"]
    assert seqlaw.model.teacher_flags(name) == seqlaw.model.teacher_flags(teacher)
    assert corollary(name, 0.5) == corollary(teacher, 0.5)
    assert program(name, 0.5, "free") == program(teacher, 0.5, "free")
    plans = [seqlaw.plan(one, SMALL, d=32) for one in (name, teacher)]
    assert plans[0] == plans[1]
    assert plans[0].regime == teacher.regime
    words = [advise(one, tokens=1000).words for one in (name, teacher)]
    assert words[0] == words[1]


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_schedules_name_is_a_schedule_with_the_defaults_of_the_commands(name):
    """γ = 0.1 and L = 30000, as `seqlaw risk` takes them."""
    schedule = SCHEDULES[name](gamma=0.1, L=30000)
    assert Setting(teacher="regime2", schedule=name, **SIZES).schedule == schedule
    assert seqlaw.plan("regime2", SMALL, d=32, schedule=name) == seqlaw.plan(
        "regime2", SMALL, d=32, schedule=schedule
    )
    G, C = np.diag([0.5, 0.1]), np.eye(2)
    np.testing.assert_array_equal(descend(G, C, name)[0], descend(G, C, schedule)[0])


@pytest.mark.parametrize("wrong", ["regime3", None, 1.8, {"alpha": 1.8}, "teacher.toml"])
def test_another_teacher_is_refused_at_once(wrong):
    rule = re.escape(f"{TEACHERS}, got {wrong!r}")
    for field, call in (
        ("Setting.teacher", lambda: Setting(teacher=wrong, schedule="wsd", **SIZES)),
        ("teacher", lambda: seqlaw.plan(wrong, SMALL)),
        ("teacher", lambda: corollary(wrong, 0.5)),
        ("teacher", lambda: program(wrong, 0.5, "free")),
        ("teacher", lambda: seqlaw.model.teacher_flags(wrong)),
    ):
        with pytest.raises(InputError, match=f"^{field} {rule}$"):
            call()


@pytest.mark.parametrize("wrong", ["line", None, 0.1, [0.1, 0.1], WSD])
def test_another_schedule_is_refused_at_once(wrong):
    rule = SCHEDULE_PATHS if isinstance(wrong, str) else SCHEDULE_NAMES
    rule = re.escape(f"{rule}, got {wrong!r}")
    with pytest.raises(InputError, match=f"^Setting.schedule {rule}$"):
        Setting(teacher="regime1", schedule=wrong, **SIZES)
    with pytest.raises(InputError, match=f"^schedule {rule}$"):
        descend(np.eye(2), np.eye(2), wrong)
    if wrong is not None:  # a plan's own default
        with pytest.raises(InputError, match=f"^schedule {rule}$"):
            seqlaw.plan("regime1", SMALL, schedule=wrong)


def test_a_setting_keeps_what_is_not_a_name():
    modes = PRESETS["regime2"].modes(32)
    steps = Explicit(sizes=[0.1, 0.05])
    setting = Setting(teacher=modes, M=8, N=64, P=4, schedule=steps)
    assert setting.teacher is modes
    assert setting.schedule is steps
    assert setting.d == 32


def test_arrays_have_neither_corollary_nor_program():
    modes = Modes(a=[0.5], sigma_xi=[1.0], sigma_0=[1.0])
    for call in (
        lambda: corollary(modes, 0.5),
        lambda: program(modes, 0.5, "free"),
    ):
        with pytest.raises(InputError, match=r"^teacher must be a power law"):
            call()


def test_an_unknown_program_is_refused():
    with pytest.raises(InputError, match=r"^setting must be one of paper, proved, free, got 'fre'$"):
        program("regime1", 0.5, "fre")


FUNCTIONS = [name for name in seqlaw.__all__ if inspect.isfunction(getattr(seqlaw, name))]
MADE = [
    name
    for name in seqlaw.__all__
    if inspect.isclass(kind := getattr(seqlaw, name))
    and kind.__module__.startswith(("seqlaw.model.", "seqlaw.planning."))
    and not issubclass(kind, Exception)
    and not inspect.isabstract(kind)
]
"""Records that a user makes; an answer is made by its function."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_signatures_are_explicit(name):
    """`help()` and completion are the first documentation: no **options, and a type for every parameter."""
    signature = inspect.signature(getattr(seqlaw, name))
    for parameter in signature.parameters.values():
        assert parameter.kind is not inspect.Parameter.VAR_KEYWORD, parameter
        assert parameter.annotation is not inspect.Parameter.empty, parameter
    assert signature.return_annotation is not inspect.Signature.empty


@pytest.mark.parametrize("name", [*FUNCTIONS, *MADE])
def test_the_example_of_a_docstring_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    function = getattr(seqlaw, name)
    for part in ("Parameters", "Returns", ">>>") if name in FUNCTIONS else (">>>",):
        assert part in function.__doc__, part
    options = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    runner = doctest.DocTestRunner(optionflags=options, verbose=False)
    example = doctest.DocTestParser().get_doctest(function.__doc__, {"seqlaw": seqlaw}, name, None, 0)
    said = []
    runner.run(example, out=said.append)
    assert runner.failures == 0, "".join(said)


def test_there_are_functions_to_look_at():
    assert {"risk", "curve", "plan", "tradeoff", "sweep", "measure"} <= set(FUNCTIONS)
    assert {"Setting", "Teacher", "Lengths", "WSD", "Budget", "Adam"} <= set(MADE)


@pytest.mark.parametrize("kind", [seqlaw.Setting, seqlaw.Schedule, *SCHEDULES.values()])
def test_constructors_are_explicit_too(kind):
    makers = [getattr(kind, name) for name in ("from_horizon", "with_horizon") if hasattr(kind, name)]
    for maker in (kind, *makers):
        kinds = {parameter.kind for parameter in inspect.signature(maker).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds, maker


def test_one_point_and_a_curve_take_the_options_of_risk():
    options = {
        name: (parameter.default, parameter.annotation)
        for name, parameter in inspect.signature(seqlaw.risk).parameters.items()
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert options
    setting = Setting(teacher="regime2", schedule=BlockDecay(gamma=0.1, L=100), **SIZES)
    how = {"method": "sampled", "sketches": 2, "repetitions": 3, "seed": 5}
    [alone] = seqlaw.risk([setting], **how)
    assert seqlaw.risk(setting, **how) == alone
    assert list(seqlaw.curve(setting, "N", [64], **how)) == [alone]
    own = inspect.signature(seqlaw.curve).parameters
    assert {name: (own[name].default, own[name].annotation) for name in options} == options


def test_the_fractions_of_a_wsd_go_with_its_horizon():
    assert WSD.from_horizon(30, 0.1, warmup=0.3, decay=0.4) == WSD(gamma=0.1, L=300, warmup=0.3, decay=0.4)
    assert WSD(gamma=0.1, L=9, warmup=0.3, decay=0.4).with_horizon(30) == WSD.from_horizon(
        30, 0.1, warmup=0.3, decay=0.4
    )


def python(code, **environment):
    """Run code in a new interpreter; returns the process."""
    return subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": str(SOURCE)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("first", ["seqlaw", "seqlaw.cli.lab", "seqlaw.planning.plan"])
def test_a_module_hides_no_public_name(first):
    code = f"import {first}, seqlaw, inspect; from seqlaw import sweep; "
    code += "print(inspect.isfunction(seqlaw.sweep), seqlaw.sweep is sweep); "
    code += "print([n for n in seqlaw.__all__ if inspect.ismodule(getattr(seqlaw, n))])"
    done = python(code)
    assert (done.stdout, done.stderr) == ("True True\n[]\n", "")


def test_a_bare_import_is_light_and_knows_its_names():
    code = "import sys, seqlaw; print({'numpy', 'typer'} & set(sys.modules), seqlaw.__version__); "
    code += "print(set(seqlaw.__all__) <= set(dir(seqlaw)), seqlaw.model.teacher.PRESETS is seqlaw.PRESETS); "
    code += "from seqlaw import *; print(set(seqlaw.__all__) <= set(globals()))"
    done = python(code)
    assert (done.stdout, done.stderr) == (f"set() {seqlaw.__version__}\nTrue True\nTrue\n", "")


def test_there_is_nothing_else():
    with pytest.raises(AttributeError, match=r"^module 'seqlaw' has no attribute 'nothing'$"):
        _ = seqlaw.nothing
    with pytest.raises(ImportError, match=r"^cannot import name 'nothing' from 'seqlaw'"):
        from seqlaw import nothing  # noqa: F401
    assert not hasattr(seqlaw, "__wrapped__")  # which inspect and doctest ask of everything


ENTRIES = {
    "module": ["-m", "seqlaw", "risk"],
    "console script": ["-c", "import sys; from seqlaw.cli import main; sys.exit(main(['risk']))"],
}


@pytest.mark.parametrize("library", ["numpy", "scipy", "typer"])
@pytest.mark.parametrize("entry", ENTRIES)
def test_ctrl_c_while_libraries_load_is_silent(tmp_path, entry, library):
    """A library that is interrupted as it loads: exit code 130, as later, and no traceback."""
    (tmp_path / f"{library}.py").write_text(
        "import os, signal, time\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # a job in the background ignores it
        "os.kill(os.getpid(), signal.SIGINT)\ntime.sleep(60)\n"
    )
    done = subprocess.run(
        [sys.executable, *ENTRIES[entry]],
        env=os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), str(SOURCE)])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


_SETTING = seqlaw.Setting(teacher="regime2", M=8, N=50, P=4, d=64, schedule="wsd")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: seqlaw.risk("regime2"), "setting must be a Setting or a list of settings, got 'regime2'"),
        (lambda: seqlaw.rates("regime2"), "setting must be a Setting"),
        (lambda: seqlaw.spectrum("regime2"), "setting must be a Setting"),
        (lambda: seqlaw.tradeoff("regime2", 100), "setting must be a Setting"),
        (lambda: seqlaw.curve("regime2", "P", [2, 4]), "setting must be a Setting"),
        (lambda: seqlaw.plan("regime1", {"compute": 1}), "budget must be a Budget"),
        (lambda: seqlaw.risk([_SETTING, 2]), "setting must be a Setting or a list of settings"),
        (lambda: seqlaw.curve(_SETTING, "N", 5), "values must be a list of numbers, got 5"),
        (lambda: seqlaw.curve(_SETTING, "N", "123"), "values must be a list of numbers, got '123'"),
        (lambda: seqlaw.fit_law({"loss": [1]}, loss="loss"), "file must be a DataFrame, or a .parquet or"),
        (
            lambda: seqlaw.ladder(_SETTING, 1e6, candidates="2,8"),
            "candidates must be a list of whole numbers",
        ),
        (lambda: trajectories("regime1", 3, 3), "modes must be Modes"),
        (lambda: seqlaw.sweep({}, "out", progress=3), "progress must be True or False or a function"),
        (
            lambda: Setting(teacher="regime2", schedule="seqlaw:Explicit", **SIZES),
            "Setting.schedule must name a",
        ),
        (
            lambda: Setting(teacher="regime2", schedule="wsd", batch=3, **SIZES),
            "N must be whole batches of 3",
        ),
    ],
)
def test_what_is_not_taken_is_refused_at_the_door(call, words):
    with pytest.raises(InputError, match=f"^{words}"):
        call()


def test_an_old_name_is_one_line_with_the_new_one():
    with pytest.raises(
        ImportError, match=r"^seqlaw has no plan_one_pass; since 0.3 it is plan\(…, one_pass=True\)$"
    ):
        from seqlaw import plan_one_pass  # noqa: F401
    for name, place in NAMES.items():
        with pytest.raises(ImportError, match=f"^seqlaw has no {name}; "):
            getattr(seqlaw, name)
        if place.startswith("seqlaw."):
            room, _, known = place.rpartition(".")
            assert hasattr(importlib.import_module(room), known), place


def test_about_forty_names_are_public():
    """A new one has a place here only if users need it; else it stays in its module."""
    assert 35 <= len(seqlaw.__all__) <= 50


def test_the_key_of_a_stream_holds_names_and_numbers():
    modes = PRESETS["regime1"].modes(2)
    with pytest.raises(InputError, match="key must hold names and whole numbers"):
        trajectories(modes, 1, 1, key=np.array([1, 2]))
    trajectories(modes, 1, 1, key=("mine", 2))
