"""The averaged spectrum as a question of its own: against the paper's sum, and as a command."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from seqlaw import PRESETS, WSD, InputError, Modes, Setting, Teacher, spectrum
from seqlaw.cli import main

SETTING = Setting(teacher=PRESETS["regime2"], M=64, N=4096, P=7, d=500, schedule=WSD(gamma=0.1, L=30000))


def naive(teacher, P, j):
    """h_P,j = (1/P) Σ_{p<P} [σ_0 a^{2p} + σ_ξ Σ_{q<p} a^{2q}], both parts, as the paper writes them."""
    a, xi, start = (
        teacher.rho * j**-teacher.r,
        teacher.c_xi * j**-teacher.alpha,
        teacher.c_0 * j**-teacher.theta,
    )
    initial = sum(start * a ** (2 * p) for p in range(P)) / P
    innovation = sum(xi * sum(a ** (2 * q) for q in range(p)) for p in range(P)) / P
    return initial, innovation


def test_both_parts_are_the_papers_sums():
    found = spectrum(SETTING, points=30)
    assert (found.j[0], found.j[-1]) == (1, 500)
    for j, initial, innovation in zip(found.j, found.initial, found.innovation, strict=True):
        # Seven terms, all positive: rounding only.
        assert (initial, innovation) == pytest.approx(naive(SETTING.teacher, 7, j), rel=1e-13)
    np.testing.assert_array_equal(found.total, found.initial + found.innovation)


def test_the_marks_are_where_they_say():
    found, teacher, R = spectrum(replace(SETTING, P=32)), SETTING.teacher, SETTING.schedule.horizon
    left, right = naive(teacher, 32, found.crossing)
    assert left == pytest.approx(right, rel=1e-10)  # bisection to 1e-12 of log j
    k = found.kappa
    assert R * (teacher.c_xi * k**-teacher.alpha + teacher.c_0 / 32 * k**-teacher.theta) == pytest.approx(1)


def test_measured_modes_are_shown_as_they_are():
    modes = Modes(a=[0.5, -0.2, 0.0], sigma_xi=[1, 2, 3], sigma_0=[3, 2, 1])
    setting = Setting(teacher=modes, M=2, N=10, P=4, schedule=SETTING.schedule)
    found = spectrum(setting, points=50)
    np.testing.assert_array_equal(found.j, [1, 2, 3])
    np.testing.assert_array_equal(found.total, modes.averaged(4))
    assert (found.crossing, found.kappa) == (None, None)


def test_the_last_of_several_crossings_is_found():
    """The initial part is heavier at j = 1, lighter from 2 on and heavier again in the tail."""
    teacher = Teacher(alpha=1.3, theta=1.2, r=0.4, rho=0.999, c_xi=0.03, c_0=1.4175)
    found = spectrum(replace(SETTING, teacher=teacher, P=64))
    left, right = naive(teacher, 64, found.crossing)
    assert left == pytest.approx(right, rel=1e-10)
    assert found.crossing > 10


def test_states_that_do_not_vary_are_refused():
    modes = Modes(a=[0.5, 0.2], sigma_xi=[0, 0], sigma_0=[0, 0])
    with pytest.raises(InputError, match="vary"):
        spectrum(Setting(teacher=modes, M=1, N=10, P=4, schedule=SETTING.schedule))


@pytest.mark.parametrize(("last", "points", "field"), [(501, 9, "to"), (0, 9, "to"), (9, 1, "points")])
def test_modes_that_are_not_there_are_refused(last, points, field):
    with pytest.raises(InputError) as refused:
        spectrum(SETTING, last=last, points=points)
    assert refused.value.field == field


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["spectrum", *arguments])
    assert ended.value.code == 0
    return capsys.readouterr().out


def test_the_command_prints_draws_and_gives_json(tmp_path, capsys):
    picture = tmp_path / "spectrum.svg"
    text = run(capsys, "-M", "64", "-P", "64", "-d", "500", "--points", "9", "--plot", str(picture))
    assert text.startswith("The initial and the innovation part of h_P are equal at mode 28.38 ")
    assert "Teacher regime2 (the default): alpha=1.8 theta=1.25 " in text
    assert "Regime II: averaged covariance h_P at P=64" in text
    assert "equal at mode 28.38" in text
    for words in ("m_P = 1923", "P_M = 9.849", "P_R = 11.55", "It learns 26.16 dimensions"):
        assert words in text  # 64^(1/0.55), 64^0.55, 3000^(0.55/1.8)
    assert picture.read_text().startswith("<?xml")
    answer = json.loads(run(capsys, "-P", "7", "-d", "inf", "--to", "1e9", "--points", "9", "--json"))
    assert answer["rows"][-1]["j"] == 10**9
    assert answer["rows"][-1]["total"] == pytest.approx(math.fsum(naive(SETTING.teacher, 7, 1e9)), rel=1e-12)
    assert answer["marks"]["orders"]["m_P"] == pytest.approx(7 ** (1 / 0.55))
    assert "do not cross up to mode 1024" in run(capsys, "--teacher", "regime1", "--points", "5")


def test_a_diverging_trace_still_has_a_spectrum(capsys):
    answer = json.loads(run(capsys, "--alpha", "0.5", "-d", "inf", "--points", "3", "--json"))
    assert answer["marks"]["learned_dimensions"] is None
    assert answer["marks"]["orders"] == {"kappa": pytest.approx(3000**2)}
