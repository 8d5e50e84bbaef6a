"""Students trained with torch: linear ones beside the law, networks beside what each must do."""

import importlib.util
import math
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from conftest import ROOT, python_path
from rows_of import exact_rows
from seqlaw import WSD, Adam, Constant, InputError, Muon, Network, Setting, Teacher, curve, risk, tradeoff
from seqlaw.cli import main
from seqlaw.lab.store import FILE
from seqlaw.methods import METHODS, Draws
from seqlaw.methods.trained import networks, training
from seqlaw.model.checks import MissingLibrary
from seqlaw.model.lengths import Lengths
from seqlaw.sweeping.codec import setting_of, task_of
from seqlaw.sweeping.file import Sizes, Sweep
from seqlaw.sweeping.run import load
from seqlaw.sweeping.task import risk_rows

needs_torch = pytest.mark.skipif(
    importlib.util.find_spec("torch") is None, reason="torch is not installed (the extra gpu)"
)
TEACHER = Teacher(alpha=1.6, theta=1.3, r=0.3, rho=0.6, c_xi=0.2, c_0=0.5)
SMALL = {"teacher": TEACHER, "M": 4, "d": 12, "P": 4, "batch": 16, "schedule": WSD(gamma=0.3, L=30)}
NETWORKS = {name: Network(name=name, hidden=8, depth=2) for name in ("lru", "gru", "transformer")}
STEP = Adam(step=0.01)
APART = {**os.environ, "PYTHONPATH": python_path(ROOT / "src")}
"""Where a program of its own finds this package."""


def rows(*settings, sketches=2, repetitions=2, seed=0):
    draws = Draws(sketches=sketches, repetitions=repetitions, seed=seed)
    return METHODS["trained"].rows(list(settings), draws)


def reducible(found):
    return [row["reducible"] for row in found]


SIX = {
    "regime1": {"teacher": "regime1", "M": 8, "d": 32, "P": 8},
    "regime2": {"teacher": "regime2", "M": 8, "d": 32, "P": 8},
    "wide": {"teacher": "regime2", "M": 24, "d": 32, "P": 2, "batch": 24},
    "tested long": {"teacher": "regime2", "M": 8, "d": 64, "P": 2, "eval_length": 64},
    "mixture": {"teacher": TEACHER, "M": 6, "d": 24, "P": "2:0.5,16:0.5"},
    "phases": {"teacher": TEACHER, "M": 6, "d": 24, "P": Lengths((2, 16), (0.5, 0.5), phases=True)},
}


@needs_torch
@pytest.mark.parametrize("name", SIX)
def test_a_linear_student_by_descent_follows_the_law(name):
    """On the same sketches: within three standard errors of 24 runs, and 1e-3, the error of the law."""
    more = {"batch": 12, "schedule": Constant(gamma=0.2, L=120)} | SIX[name]
    asked = Setting(**more)
    law = {row["sketch"]: row for row in exact_rows([asked], sketches=2)}
    found = rows(asked, repetitions=12)
    over = np.array([row["reducible"] - law[row["sketch"]]["reducible"] for row in found])
    error = over.std(ddof=1) / math.sqrt(len(over))
    stated = 1e-3 * np.mean([row["bias"] + row["variance"] for row in law.values()])
    assert abs(over.mean()) <= 3 * error + stated
    assert [row["approx"] for row in found] == [law[row["sketch"]]["approx"] for row in found]


@needs_torch
def test_epochs_of_a_linear_student_are_those_of_the_sampled_method():
    """Other data of the same law: the means of 32 runs each, within four standard errors of both."""
    asked = Setting(**SMALL | {"batch": 8, "schedule": Constant(gamma=0.3, L=60)}, epochs=3)
    own = np.array(reducible(rows(asked, sketches=1, repetitions=32)))
    draws = Draws(sketches=1, repetitions=32)
    other = np.array(reducible(METHODS["sampled"].rows([asked], draws)))
    error = math.hypot(own.std(ddof=1), other.std(ddof=1)) / math.sqrt(32)
    assert abs(own.mean() - other.mean()) < 4 * error


@needs_torch
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_begin_at_nothing_and_learn(name):
    """Before training they predict zero, whose excess over the best linear student is half of ‖B*‖²_G."""
    asked = Setting(**SMALL, network=NETWORKS[name], optimizer=Adam(step=1e-12))
    [first] = rows(asked, sketches=1, repetitions=1)
    law = risk(
        asked.but(network=None, optimizer=None, schedule=Constant(gamma=1e-9, L=1)),
        method="exact",
        sketches=1,
    )
    assert first["reducible"] == pytest.approx(law.reducible, rel=0.02)  # of 2^16 test tokens
    [learned] = rows(
        asked.but(optimizer=Adam(step=0.02), schedule=WSD(gamma=1, L=200)), sketches=1, repetitions=1
    )
    assert learned["reducible"] < 0.5 * first["reducible"]


@needs_torch
@pytest.mark.parametrize("name", NETWORKS)
def test_no_prediction_sees_what_comes_later(name):
    import torch

    from seqlaw.methods.trained.networks import predict, shapes, start, unpacked

    network, rng = NETWORKS[name], np.random.default_rng(0)
    count = len(start(network, 4, rng))
    flat = torch.tensor(0.3 * rng.standard_normal((3, count)))
    U = torch.tensor(rng.standard_normal((3, 5, 9, 4)))
    own = unpacked(flat, shapes(network, 4))
    whole = predict(torch, network, own, U)
    begun = predict(torch, network, own, U[:, :, :6])
    assert torch.allclose(whole[:, :, :6], begun, rtol=1e-9, atol=1e-12)
    changed = U.clone()
    changed[1] += 1.0  # one student's data are no other's
    moved = predict(torch, network, own, changed)
    assert torch.equal(moved[0], whole[0]) or torch.allclose(moved[0], whole[0], rtol=1e-12)
    assert not torch.allclose(moved[1], whole[1])


@needs_torch
def test_a_recurrent_unit_is_its_recursion():
    """The doubling sums beside a loop over positions, in double precision."""
    import torch

    from seqlaw.methods.trained.networks import predict, shapes, start, unpacked

    network, rng = Network(name="lru", hidden=5), np.random.default_rng(1)
    flat = torch.tensor(rng.standard_normal((1, len(start(network, 3, rng)))))
    own = unpacked(flat, shapes(network, 3))
    U = rng.standard_normal((7, 3))
    size, turn, into, read, skip = (own[f"{x}0"][0].numpy() for x in ("decay", "turn", "in", "read", "skip"))
    lam = np.exp(-np.exp(size) + 1j * turn)
    state, expected = np.zeros(5, complex), []
    for u in U:
        state = lam * state + np.sqrt(1 - abs(lam) ** 2) * ((into[:5] + 1j * into[5:]) @ u)
        expected.append(read @ np.concatenate([state.real, state.imag]) + skip @ u)
    found = predict(torch, network, own, torch.tensor(U)[None, None])[0, 0]
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-10)


@needs_torch
@pytest.mark.parametrize("name", [None, *NETWORKS])
def test_a_student_is_the_same_alone_and_among_others(name):
    """Stacked runs share products of matrices only: single precision over thirty steps."""
    asked = Setting(**SMALL, network=NETWORKS.get(name), optimizer=STEP)
    together = {(row["sketch"], row["repetition"]): row for row in rows(asked)}
    [alone] = rows(asked, sketches=[1], repetitions=[1])
    assert alone["reducible"] == pytest.approx(together[1, 1]["reducible"], rel=1e-3)
    assert len({row["reducible"] for row in together.values()}) == 4


@needs_torch
@pytest.mark.parametrize("name", [None, "gru"])
def test_positions_of_one_student_average_to_its_length(name):
    """Each is measured on test sequences of its own, but for the linear student, which is exact."""
    asked = Setting(**SMALL, network=NETWORKS.get(name), optimizer=STEP)
    length, *each = rows(asked, *(asked.but(position=p) for p in range(4)), sketches=1, repetitions=1)
    assert np.mean(reducible(each)) == pytest.approx(length["reducible"], rel=1e-9 if name is None else 0.03)


@needs_torch
def test_steps_are_tuned_on_a_sketch_apart_and_named():
    asked = Setting(**SMALL | {"schedule": WSD(gamma=1, L=60)}, optimizer="adam")
    found = risk(asked, method="trained", sketches=2, repetitions=1)
    [step] = [one for one in found.flags if one.code == "optimizer-step"]
    assert step["tuned"]
    assert step["gamma"] == found.diagnostics["gamma"]
    assert "another sketch" in str(found)
    given = risk(asked.but(optimizer=Adam(step=step["gamma"])), method="trained", sketches=2, repetitions=1)
    assert given.reducible == found.reducible
    assert found.reducible == pytest.approx(found.approx + found.cross, rel=1e-12)
    worse = risk(asked.but(optimizer=Adam(step=1e-5)), method="trained", sketches=2, repetitions=1)
    assert found.reducible < worse.reducible


@needs_torch
@pytest.mark.parametrize("P", ["2:0.5,8:0.5", Lengths((2, 8), (0.5, 0.5), phases=True)])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_learn_from_mixtures_and_phases(name, P):
    """A hundred steps of sequences of both lengths, against a student that stays where it starts."""
    more = {"batch": 32, "eval_length": 8, "schedule": WSD(gamma=1, L=100)}
    asked = Setting(**SMALL | more | {"P": P}, network=NETWORKS[name], optimizer=Adam(step=0.01))
    learned, first = rows(asked, asked.but(optimizer=Adam(step=1e-12)), repetitions=1, sketches=1)
    assert learned["reducible"] < 0.3 * first["reducible"]


def test_mixtures_do_not_come_round():
    with pytest.raises(InputError, match="epochs must be 1 with several lengths"):
        Setting(**SMALL | {"P": "2:0.5,8:0.5"}, epochs=2)


def test_a_sweep_of_mixtures_may_have_a_card_on_this_method_alone():
    sizes = Sizes(M=4, d=12, P=["2:0.5,8:0.5"], batch=6)
    assert len(Sweep(sizes=sizes, method="trained", device="cuda").tasks) == 1
    with pytest.raises(InputError, match="device must be cpu"):
        Sweep(sizes=sizes, method="sampled", device="cuda")


@needs_torch
@pytest.mark.parametrize("optimizer", [None, Muon(step=0.02)])
def test_networks_take_every_optimizer(optimizer):
    asked = Setting(
        **SMALL | {"schedule": WSD(gamma=0.1, L=60)}, network=NETWORKS["gru"], optimizer=optimizer
    )
    [found] = rows(asked, sketches=1, repetitions=1)
    [untrained] = rows(asked.but(optimizer=Adam(step=1e-12)), sketches=1, repetitions=1)
    assert found["reducible"] < untrained["reducible"]


@needs_torch
@pytest.mark.parametrize("name", [None, "gru", "transformer"])
def test_a_student_that_diverges_is_a_warning(name):
    asked = Setting(**SMALL, network=NETWORKS.get(name), optimizer=Adam(step=1e30))
    found = risk(asked, method="trained", sketches=1, repetitions=2)
    assert found.reducible == math.inf
    assert "optimizer-diverged" in [one.code for one in found.flags]
    assert "2 of 2 runs" in str(found)


@needs_torch
def test_a_slope_that_overflows_reaches_no_other_student():
    """Without gates, h_p = tanh(2 h_{p-1}) stays at zero, and its slope grows as 2^p."""
    import torch

    network, H, M, P = Network(name="gru", hidden=16), 16, 4, 512
    rng = np.random.default_rng(0)
    flat = torch.tensor(np.stack([networks.start(network, M, rng)] * 2), dtype=torch.float32)
    wild = {name: one[1] for name, one in networks.unpacked(flat, networks.shapes(network, M)).items()}
    wild["back0"][2 * H :], wild["in0"][2 * H :] = 2 * torch.eye(H), 0
    wild["bias0"][:H], wild["bias0"][H : 2 * H] = 30, -30
    flat[:, -M * H :] = 1  # the predictions, which start at zero and let nothing reach the states
    U = torch.tensor(rng.standard_normal((2, 3, P + 1, M)), dtype=torch.float32)
    both = training._slope(torch, network, flat.clone(), [U])
    alone = training._slope(torch, network, flat[:1].clone(), [U[:1]])
    assert not torch.isfinite(both[1]).all()
    torch.testing.assert_close(both[:1], alone)  # its tolerance for single precision


@needs_torch
@pytest.mark.parametrize("more", [{}, {"optimizer": "adam"}, {"N": 48, "epochs": 3, "optimizer": STEP}])
def test_progress_counts_the_tokens_of_tuning_and_training(more):
    asked = Setting(**{"N": None} | SMALL | {"schedule": WSD(gamma=0.3, L=9)} | more)
    told = []
    draws = Draws(sketches=2, repetitions=1)
    METHODS["trained"].risks([asked, asked.but(eval_length=8)], draws, progress=lambda *now: told.append(now))
    tried = 8 if more.get("optimizer") == "adam" else 0
    each = 9 * 16 * 4
    totals = {each * (2 * groups + tried) for groups in (1, 2)}  # each test may have its own step
    assert told[-1][0] == told[-1][1]
    assert told[-1][1] in totals
    assert [done for done, _ in told] == sorted({done for done, _ in told})
    assert len(told) >= 9


MEMORY = """
import resource
from seqlaw import WSD, Setting
from seqlaw.methods import METHODS, Draws
from seqlaw.methods.trained import networks, training
for L in (20, 2000):
    asked = Setting(teacher="regime2", M=8, d=64, P=16, batch=64, schedule=WSD(gamma=0.3, L=L))
    METHODS["trained"].rows([asked], Draws(sketches=1, repetitions=4))
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@needs_torch
@pytest.mark.skipif(sys.platform != "linux", reason="counts the peak in KiB, as Linux does")
def test_memory_does_not_grow_with_the_steps():
    """2000 steps see 2.2e9 bytes of states and 0.28e9 bytes of inputs; the peak may move by 5e7."""
    line = [sys.executable, "-c", MEMORY]
    found = subprocess.run(line, env=APART, capture_output=True, text=True, check=True)
    short, long = map(int, found.stdout.split())
    assert long - short < 5e7 / 1024


SWEEP = """
method = "trained"
sketches = 1
repetitions = 1
[sizes]
M = 4
d = 12
P = [2, 3, 4, 5, 6, 7, 8, 9]
batch = 8
[[schedules]]
L = 1500
"""


@needs_torch
@pytest.mark.skipif(sys.platform == "win32", reason="sends Ctrl-C as POSIX does")
def test_ctrl_c_keeps_the_finished_runs_and_the_same_command_goes_on(tmp_path):
    (tmp_path / "grid.toml").write_text(SWEEP)
    program = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
    program += "from seqlaw.cli import main; main()"
    line = [sys.executable, "-c", program, "sweep", "grid.toml", "--out", "out", "--jobs", "1", "--json"]
    piped = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(line, cwd=tmp_path, env=APART, **piped) as driver:
        while not ((tmp_path / "out" / FILE).exists() and len(load(tmp_path / "out").frame)):
            assert driver.poll() is None, driver.communicate()[1]
            time.sleep(0.02)
        driver.send_signal(signal.SIGINT)
        _, errors = driver.communicate(timeout=60)
    kept = load(tmp_path / "out").frame
    assert driver.returncode == 130
    assert 0 < len(kept) < 8
    assert errors == f"seqlaw: stopped: {len(kept)} of 8 tasks kept; the same command goes on\n"
    done = subprocess.run(line, cwd=tmp_path, env=APART, capture_output=True, text=True, check=True)
    assert f'"skipped": {len(kept)}' in done.stdout
    whole = load(tmp_path / "out").frame
    assert len(whole) == 8
    merged = kept.merge(whole, on="P")
    assert list(merged["reducible_x"]) == list(merged["reducible_y"])


@needs_torch
def test_a_curve_and_a_task_of_a_sweep():
    asked = Setting(**SMALL, network=NETWORKS["lru"], optimizer=STEP)
    found = curve(asked, "position", [0, 3], method="trained", sketches=1, repetitions=1)
    assert [row["network"] for row in found.points] == ["lru", "lru"]
    assert setting_of(task_of(asked)) == asked.but(eval_length=4)
    task = task_of(asked) | {"method": "trained", "sketches": 1, "repetitions": 1}
    assert risk_rows(task, 0)[0]["reducible"] == pytest.approx(
        risk(asked, method="trained", sketches=1, repetitions=1).reducible
    )


@needs_torch
def test_a_tradeoff_trains_at_each_length_and_names_the_steps():
    student = Setting(**SMALL | {"P": 2, "schedule": WSD(gamma=0.3, L=10)}, network=NETWORKS["lru"])
    student = student.but(optimizer=Adam(step=0.01))
    asked = {"lengths": [2, 8], "eval_lengths": [8], "method": "trained", "sketches": 2, "repetitions": 1}
    found = tradeoff(student, 3000, **asked)
    one = student.but(P=8, eval_length=8, schedule=student.schedule.with_steps(3000 // (16 * 8)))
    alone = risk(one, method="trained", sketches=2, repetitions=1)
    last = found.curve("8")[1]
    assert (last.reducible, last.gamma) == (alone.reducible, 0.01)
    assert last.standard_error == alone.standard_error["reducible"]
    assert found.curve("own")[1].reducible == last.reducible
    assert "lru, adam, method trained" in str(found)
    assert "±" in str(found)


def test_a_tradeoff_refuses_what_its_method_does_not_take():
    student = Setting(**SMALL, network="gru")
    with pytest.raises(InputError, match="network must be linear here"):
        tradeoff(student, 2000)
    with pytest.raises(InputError, match="batch must be given on this method"):
        tradeoff(Setting(**SMALL | {"batch": None, "N": 4}), 2000, method="trained")


def test_a_sweep_file_names_network_and_optimizer():
    tables = {"sizes": {"M": 4, "batch": 8, "P": 4, "d": 12}, "method": "trained", "optimizer": "adam"}
    [task] = Sweep(**tables | {"sizes": Sizes(**tables["sizes"])}, network="gru", hidden=8).tasks
    assert setting_of(task).network == Network(name="gru", hidden=8)
    assert setting_of(task).optimizer == Adam()
    with pytest.raises(InputError, match="network must be linear here"):
        Sweep(sizes=Sizes(**tables["sizes"]), network="gru")
    with pytest.raises(InputError, match="optimizer must be sgd here"):
        Sweep(sizes=Sizes(**tables["sizes"]), optimizer="adam")


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"batch": None, "N": 16}, "batch must be given on this method"),
        ({"precondition": 0.5}, "precondition must be left out"),
        ({"d": math.inf, "teacher": "regime2"}, "d must be finite"),
    ],
)
def test_what_it_does_not_take_is_one_line(more, line):
    with pytest.raises(InputError, match=line):
        risk(Setting(**SMALL | more), method="trained")


@pytest.mark.parametrize("method", ["sampled", "exact", "equivalent"])
def test_other_methods_take_linear_students_only(method):
    with pytest.raises(InputError, match="network must be linear here"):
        risk(Setting(**SMALL, network="gru"), method=method)


@pytest.mark.parametrize(
    ("more", "line"),
    [
        ({"network": "mamba"}, "network must be one of linear, lru"),
        ({"network": 3}, "network must be one of"),
    ],
)
def test_unknown_networks_are_refused(more, line):
    with pytest.raises(InputError, match=line):
        Setting(**SMALL, **more)


def test_without_torch_one_line_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(MissingLibrary, match=r"seqlaw\[gpu\]"):
        risk(Setting(**SMALL), method="trained")


def test_without_torch_the_commands_end_with_this_line_and_record_nothing(monkeypatch, tmp_path, capsys):
    monkeypatch.setitem(sys.modules, "torch", None)
    (tmp_path / "grid.toml").write_text(SWEEP)
    asked = ["--method", "trained", "-M", "4", "-d", "12", "--batch", "8", "-L", "30"]
    sweep = ["sweep", str(tmp_path / "grid.toml"), "--out", str(tmp_path / "out")]
    for line in (["risk", *asked], ["curve", *asked, "--to", "8"], sweep):
        with pytest.raises(SystemExit) as stop:
            main(line)
        assert stop.value.code == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "pip install 'seqlaw[gpu]'" in error
    assert not (tmp_path / "out").exists()
