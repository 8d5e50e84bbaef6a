"""Momentum: the closed filters against the recursion, contours, methods, sweeps and the command line."""

import json
import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest

from rows_of import exact_risks, exact_rows, population_rows, sampled_rows
from seqlaw import Budget, Constant, InputError, Setting, load, plan, risk, sweep
from seqlaw.cli import main
from seqlaw.files import make_schedule
from seqlaw.methods.contours import contour, is_long
from seqlaw.methods.equivalent import equivalent_risks
from seqlaw.model import Momentum
from seqlaw.sweeping.codec import setting_of, task_of
from seqlaw.sweeping.file import load_sweep


def recursion(schedule, s):
    """ψ_L and g_L of one eigenvalue, one step at a time as the method is written, in 50 digits."""
    with mpmath.workdps(50):
        s, gamma, beta = mpmath.mpmathify(s), mpmath.mpf(schedule.gamma), mpmath.mpf(schedule.beta)
        found = []
        for start, target in ((1, 0), (0, 1)):  # gradient s·w - target; from 1 to 0, or from 0 with input 1
            before = w = mpmath.mpf(start)
            for _ in range(schedule.L):
                ahead = w + beta * (w - before)
                before, w = w, ahead - gamma * (s * (ahead if schedule.nesterov else w) - target)
            found.append(complex(w))
        return found


def critical(beta, nesterov):
    """γs of critical damping."""
    return ((1 - beta) / (1 + beta if nesterov else 1 + math.sqrt(beta))) ** 2


@pytest.mark.parametrize("nesterov", [False, True], ids=["heavy-ball", "nesterov"])
@pytest.mark.parametrize(("beta", "L"), [(0.3, 1), (0.9, 40), (0.99, 700), (0.997, 5), (0.997, 4000)])
def test_filters_are_those_of_the_recursion(beta, L, nesterov):
    """Real and complex s, critical damping and its neighbours: 1e-10 is asked, 1e-12 is there."""
    schedule, at = Momentum(gamma=0.1, L=L, beta=beta, nesterov=nesterov), critical(beta, nesterov)
    real = [1e-12, at * (1 - 1e-9), at, at * (1 + 1e-6), 3 * at, 0.5]
    other = [1e-9j, 0.7 + 0.3j, at * (1 + 1e-6j), (1 - beta) * (0.2 + 0.3j), -0.3 * (1 - beta) / L]
    for x in real if L > 1000 else real + other:
        psi, g = recursion(schedule, x / 0.1)
        got = schedule.residual(x / 0.1), schedule.response(x / 0.1)
        assert np.iscomplexobj(got[0]) == np.iscomplexobj(got[1]) == isinstance(x, complex)
        assert abs(got[0] - psi) <= 1e-12 * max(1, abs(psi))
        assert abs(got[1] - g) <= 2e-12 * abs(g)


@pytest.mark.slow
@pytest.mark.parametrize("nesterov", [False, True], ids=["heavy-ball", "nesterov"])
@pytest.mark.parametrize(
    ("beta", "L"),
    [(beta, L) for beta in (0.5, 0.9, 0.99, 0.997) for L in (2, 30, 1000)]
    + [(0.99, 10_000), (0.997, 10_000)],
)
def test_filters_are_those_of_the_recursion_everywhere(beta, L, nesterov):
    schedule, at = Momentum(gamma=0.1, L=L, beta=beta, nesterov=nesterov), critical(beta, nesterov)
    rng = np.random.default_rng(L)
    near = at * (1 + 10.0 ** rng.uniform(-14, 0, 3) * np.exp(2j * math.pi * rng.random(3)))
    inside = (1 - beta) * rng.random(3) + 0.7j * (1 - beta) * rng.random(3)
    for x in [*rng.random(3) * 0.9, *10.0 ** rng.uniform(-14, 0, 3) * 0.9, at, *near, *inside]:
        psi, g = recursion(schedule, x / 0.1)
        assert abs(schedule.residual(x / 0.1) - psi) <= 1e-11 * max(1, abs(psi))
        assert abs(schedule.response(x / 0.1) - g) <= 1e-11 * abs(g)


@pytest.mark.parametrize(("beta", "L"), [(0.0, 7), (0.9, 3), (0.9, 5000), (1 - 1e-4, 300), (0.997, 334)])
def test_the_horizon_is_the_response_at_zero_and_inverts(beta, L):
    schedule = Momentum(gamma=0.2, L=L, beta=beta)
    with mpmath.workdps(40):
        rest = 1 - mpmath.mpf(schedule.beta)
        wanted = 0.2 * float(mpmath.fsum((1 - (1 - rest) ** t) / rest for t in range(1, L + 1)))
    assert schedule.total == pytest.approx(wanted, rel=1e-14)
    assert schedule.horizon == schedule.total == float(schedule.response(0.0))
    assert schedule.response(1e-13) == pytest.approx(schedule.total, rel=1e-8)
    assert replace(schedule, L=1).with_horizon(schedule.total).L == L
    assert Momentum.from_horizon(schedule.total * 1.0001, 0.2, beta=beta).L == L + 1
    assert make_schedule("constant", gamma=0.2, R=schedule.total, shape={"beta": beta}) == schedule


def test_without_momentum_it_is_the_constant_schedule():
    s = np.array([0.0, 1e-9, 0.3, 4.0])
    plain = Constant(gamma=0.1, L=77)
    for nesterov in (False, True):
        none, little = (Momentum(gamma=0.1, L=77, beta=beta, nesterov=nesterov) for beta in (0, 1e-12))
        np.testing.assert_array_equal(none.response(s), plain.response(s))
        np.testing.assert_allclose(little.response(s), plain.response(s), rtol=1e-10)


@pytest.mark.parametrize("nesterov", [False, True], ids=["heavy-ball", "nesterov"])
def test_the_larger_root_is_the_one_that_is_raised(nesterov):
    """Where the principal square root is the other: after many steps its powers would be no numbers."""
    s = np.array([7 + 3j, 7 - 3j, 5 + 0.1j])
    schedule = Momentum(gamma=0.1, L=20_000, beta=0.5, nesterov=nesterov)
    np.testing.assert_allclose(s * schedule.response(s), 1, rtol=1e-14)


def test_the_residual_turns_negative():
    schedule = Momentum(gamma=0.1, L=60, beta=0.9)
    s = np.linspace(0, 5, 400)
    assert schedule.residual(s).min() < -0.01
    np.testing.assert_allclose(s * schedule.response(s), 1 - schedule.residual(s), atol=1e-14)


@pytest.mark.parametrize("nesterov", [False, True], ids=["heavy-ball", "nesterov"])
@pytest.mark.parametrize(("beta", "L"), [(0.9, 20), (0.9, 999), (0.9, 1000), (0.98, 400), (0.997, 66_800)])
@pytest.mark.parametrize("power", [1, 2])
def test_contours_are_sums_over_real_eigenvalues(beta, L, nesterov, power):
    """A hyperbola from L(1-β) = 100 on, an ellipse below: at most 1e-12 of F(0).

    But ψ itself, half as near to nothing as ψ² where the hyperbola ends, to 4e-11 at 100, to 1e-14 at 200.
    """
    schedule, edge = Momentum(gamma=0.1, L=L, beta=beta, nesterov=nesterov), 4.0
    assert is_long(schedule) == (L * (1 - beta) > 99.99)
    j = np.arange(1, 300.0)
    mu, c = edge * j**-1.6, edge * j**-2.3
    path = contour([schedule], np.array([edge * 1.05]))
    F = (c / (mu - np.append(0, path.z[0])[:, None])).sum(axis=1)
    got = path.weights(path.residuals([schedule]) ** power, vanishes=False).of(F[None])[0, 0]
    wanted = (c / mu * schedule.residual(mu) ** power).sum()
    rough = power == 1 and 100 <= round(L * (1 - beta)) < 200
    assert abs(got - wanted) <= (1e-10 if rough else 1e-12) * (c / mu).sum()


def at(schedule, **sizes):
    given = {"teacher": "regime1", "M": 48, "N": 4096, "P": 8, "d": 192} | sizes
    return Setting(schedule=schedule, **given)


@pytest.mark.parametrize("schedule", [
    Momentum(gamma=0.1, L=3000, beta=0.9), Momentum(gamma=0.1, L=300, beta=0.98, nesterov=True),
])  # fmt: skip
def test_the_equivalent_is_the_mean_over_sketches(schedule):
    """Bias over 60 sketches, on both contours: 1/M of it, or 4 standard errors."""
    setting = at(schedule)
    [found] = equivalent_risks([setting], frozen=True)
    biases = [row["bias"] for row in population_rows([setting], sketches=60)]
    error = np.std(biases) / math.sqrt(len(biases))
    assert abs(np.mean(biases) - found.bias) <= max(4 * error, found.bias / 48)
    moved = replace(setting, eval_length=64)
    biases = [row["bias"] for row in population_rows([moved], sketches=60)]
    [found] = equivalent_risks([moved], frozen=True)
    error = np.std(biases) / math.sqrt(len(biases))
    assert abs(np.mean(biases) - found.bias) <= max(4 * error, found.bias / 48)


def test_many_schedules_of_one_spectrum_are_answered_one_by_one():
    """Rays, which serve many schedules at once, are not for momentum."""
    settings = [at(Momentum(gamma=0.1, L=L, beta=0.9)) for L in range(900, 1800, 100)]
    together = equivalent_risks(settings, frozen=True)
    for one, alone in zip(together, (equivalent_risks([s], frozen=True)[0] for s in settings), strict=True):
        assert one.bias == pytest.approx(alone.bias, rel=1e-9)


def test_what_no_contour_takes_is_refused_with_the_way_out():
    setting = at(Momentum(gamma=0.1, L=3000, beta=0.99), N=64, M=12, d=48)
    with pytest.raises(
        InputError, match=r"beta must be at most 1 - 100/L, L = 3000, on the equivalent method"
    ):
        risk(setting)
    with pytest.raises(InputError, match="the exact method takes any"):
        equivalent_risks([setting])
    assert risk(setting, method="exact", sketches=2).bias > 0
    wide = replace(setting, M=72, d=90)  # where what the data change is carried over from the equivalent
    frozen, known = exact_risks([wide, replace(wide, schedule=Constant(gamma=0.1, L=500))])
    assert "cross" in {flag.code for flag in frozen.flags}
    assert "cross" not in {flag.code for flag in known.flags}
    few = at(Momentum(gamma=0.5, L=3000, beta=0.997), teacher="regime2", M=16, N=4, P=4, d=64)
    assert {"cross", "frozen-filter"} <= {flag.code for flag in exact_risks([few])[0].flags}
    with pytest.raises(InputError, match=r"plain descent with gamma/\(1 - beta\)"):
        plan("regime1", Budget(compute=1e12, tokens=1e6), schedule=setting.schedule)


def test_a_fixed_momentum_is_a_longer_step():
    """β multiplies R by 1/(1-β) and does nothing else: the risk at the same R, and its best over R."""
    for nesterov in (False, True):
        fast = Momentum(gamma=0.1, L=10_000, beta=0.9, nesterov=nesterov)
        pair = equivalent_risks([at(fast), at(Constant.from_horizon(fast.horizon, 0.1))])
        assert pair[0].bias == pytest.approx(pair[1].bias, rel=0.01)
        assert pair[0].variance == pytest.approx(pair[1].variance, rel=0.01)
    R = np.geomspace(100, 1e4, 15)
    best = []
    for first in (Constant(gamma=0.1, L=1), Momentum(gamma=0.1, L=1, beta=0.9)):
        settings = [at(first.with_horizon(r), M=128, d=1024, N=1000, P=16) for r in R]
        best.append(min(one.bias + one.variance for one in equivalent_risks(settings, frozen=True)))
    assert best[1] == pytest.approx(best[0], rel=2e-3)


def test_momentum_that_grows_with_the_steps_doubles_the_exponents():
    """β = 1 - c/L makes R ~ γL²/c: -0.65 and 0.68 become -1.28 and 1.38 here (Regime I)."""
    L = np.array([100, 200, 400, 800])

    def slopes(schedules):
        settings = [at(one, M=1024, d=math.inf, N=10**12, P=16) for one in schedules]
        found = equivalent_risks(settings, frozen=True)
        terms = np.log([[one.bias, one.variance] for one in found])
        return np.polyfit(np.log(L), terms, 1)[0]

    fast = slopes([Momentum(gamma=0.1, L=int(n), beta=1 - 8 / n) for n in L])
    slow = slopes([Constant(gamma=0.1, L=int(50 * n)) for n in L])
    np.testing.assert_allclose(fast / slow, 2, atol=0.06)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", [
    Momentum(gamma=0.1, L=60, beta=0.9),
    Momentum(gamma=0.1, L=2000, beta=0.9, nesterov=True),
    Momentum(gamma=0.1, L=400, beta=0.98),
], ids=["ellipse", "hyperbola", "few"])  # fmt: skip
def test_the_law_at_any_amount_of_data_is_the_sampled_mean(schedule):
    """N·P = 4M: the frozen filter alone is far off. Same sketches; 4 standard errors, or 3 % at M = 32."""
    setting = at(schedule, M=32, N=32, P=4, d=128)
    law = exact_rows([setting], sketches=4)
    seen = sampled_rows([setting], sketches=4, repetitions=100)
    assert not any(row["frozen"] for row in law)
    for name in ("bias", "variance"):
        values = np.array([row[name] for row in seen]).reshape(4, 100)
        error = math.sqrt(np.mean(values.var(axis=1, ddof=1)) / 400)
        wanted = np.mean([row[name] for row in law])
        assert abs(values.mean() - wanted) <= max(4 * error, 0.03 * wanted)


TOML = {
    "method": "exact",
    "sketches": 1,
    "teachers": ["regime1"],
    "sizes": {"M": 8, "N": 64, "P": 4, "d": 24},
    "schedules": [
        {"kind": "constant", "L": [50, 500], "beta": [0, 0.9], "nesterov": True},
        {"kind": "momentum", "R": 40, "beta": 0.5},
    ],
}


def test_sweeps_know_momentum(tmp_path):
    tasks = load_sweep(TOML).tasks
    assert [(task["schedule"], task["L"], task["beta"], task["nesterov"]) for task in tasks] == [
        *(("momentum", L, beta, True) for L in (50, 500) for beta in (0.0, 0.9)),
        ("momentum", 201, 0.5, False),
    ]
    for task in tasks:
        assert setting_of(task_of(setting_of(task))) == setting_of(task)
    sweep(TOML, tmp_path)
    frame = load(tmp_path).frame
    assert sorted(frame["beta"]) == [0, 0, 0.5, 0.9, 0.9]
    assert frame["R"][frame["beta"] == 0.5].item() == pytest.approx(40, abs=0.1)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Momentum(gamma=0.1, L=5, beta=1.0), r"Momentum.beta must lie in \[0, 1\)"),
        (lambda: Momentum(gamma=0.1, L=5, beta=1 - 1e-9), "must be at most 1 - 1e-05/L"),
        (lambda: Momentum(gamma=0.1, L=5, beta=0.5, nesterov="yes"), "nesterov must be True or False"),
        (lambda: make_schedule("wsd", gamma=0.1, L=50, shape={"beta": 0.9}), "constant schedule only"),
        (lambda: make_schedule("constant", gamma=0.1, L=50, shape={"nesterov": True}), "with momentum only"),
        (lambda: Setting(teacher="regime1", M=2, N=2, P=2, d=9, schedule="momentum"), "beta"),
    ],
)
def test_refusals(make, words):
    with pytest.raises(InputError, match=words):
        make()


def test_the_command_line(capsys):
    def ask(*options):
        with pytest.raises(SystemExit) as stop:
            main(["risk", "-M", "16", "-d", "64", "-L", "1200", *options])
        out, err = capsys.readouterr()
        return stop.value.code, out, err

    code, out, _ = ask("--schedule", "constant", "--momentum", "0.9", "--nesterov", "--json")
    answer = json.loads(out)
    assert code == 0
    wanted = {"kind": "momentum", "gamma": 0.1, "L": 1200, "beta": 0.9, "nesterov": True}
    assert answer["inputs"]["setting"]["schedule"] == wanted
    assert answer["horizon"] == pytest.approx(1191)
    for options, line in [
        (("--momentum", "0.9"), "--momentum goes with the constant schedule only, got 0.9"),
        (("--schedule", "constant", "--nesterov"), "--nesterov goes with momentum only (beta; --momentum"),
        (
            ("--schedule", "constant", "--momentum", "0.99"),
            "--momentum must be at most 1 - 100/L, L = 1200, on",
        ),
        (("--schedule", "constant", "--momentum", "1"), "--momentum must lie in [0, 1), got 1"),
    ]:
        code, out, err = ask(*options)
        assert (code, out) == (2, "")
        assert err.startswith(f"seqlaw: {line}")
        assert err.count("\n") == 1


def test_the_explorer_copies_momentum(capsys):
    pytest.importorskip("fastapi")
    from seqlaw.questions.risk import Curve

    schedule = {"schedule": "constant", "L": 1200, "momentum": 0.9, "nesterov": True}
    sizes = {"M": 16, "N": 64, "P": 8, "d": 64, "points": 2, "stop": 4}
    copied = Curve(teacher="regime1", **schedule, **sizes).copies()
    assert "--schedule constant -L 1200 --momentum 0.9 --nesterov" in copied["command"]
    found = {}
    exec(copied["python"], found)
    assert len(found["answer"]) == 2
    capsys.readouterr()
