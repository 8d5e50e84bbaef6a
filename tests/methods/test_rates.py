"""The theorem's numbers against its own piecewise form, and the conditions against hand counts."""

import dataclasses
import math

import numpy as np
import pytest

from seqlaw import PRESETS, WSD, BlockDecay, Explicit, InputError, Setting
from seqlaw.methods.rates import approx_guide, bias_guide, cutoff, guide_cutoff, rates

TWO = PRESETS["regime2"]


def at(teacher="regime2", *, M=512, N=65536, P=16, d=2048, R=1200.0):
    return Setting(teacher=teacher, M=M, N=N, P=P, d=d, schedule=WSD.from_horizon(R, 0.1))


def test_regime_one_is_the_printed_law():
    answer = rates(at("regime1"))
    assert answer.regime == "I"
    assert answer.exponents["approx"] == {"M": pytest.approx(-0.9), "P": 0.0}
    assert answer.exponents["bias"] == {"R": pytest.approx(-0.6), "P": 0.0}
    assert answer.exponents["variance"] == {"N": -1.0, "P": -1.0, "R": pytest.approx(1 / 1.5)}
    assert answer.values["approx"] == pytest.approx(512**-0.9)
    assert answer.values["bias"] == pytest.approx(1200**-0.6)
    assert answer.values["variance"] == pytest.approx(1.55 / 0.45 / (65536 * 16) * 1200 ** (1 / 1.5))
    assert "P_M" not in answer.crossovers


@pytest.mark.parametrize("P", [2, 8, 20, 100, 10**6])
def test_regime_two_takes_the_branch_that_holds(P):
    answer = rates(at(P=P))
    P_M, P_R = 512**0.55, 1200 ** (0.55 / 1.8)
    assert answer.crossovers["P_M"] == pytest.approx(P_M)
    assert answer.crossovers["P_R"] == pytest.approx(P_R)
    assert answer.exponents["approx"]["P"] == (-1.0 if P < P_M else 0.0)
    assert answer.exponents["bias"]["P"] == pytest.approx(-1 + 0.95 / 1.25 if P < P_R else 0.0)
    assert answer.exponents["variance"]["R"] == pytest.approx(1 / 1.25 if P < P_R else 1 / 1.8)


def test_exponents_are_the_slopes_of_the_values():
    """Away from a crossover, a small change of one size moves the value by its exponent."""
    for P in (3, 1000):
        base = at(P=P, R=5000.0)
        answer = rates(base)
        for name, size, change in [
            ("approx", "M", dataclasses.replace(base, M=520)),
            ("bias", "R", dataclasses.replace(base, schedule=WSD.from_horizon(5100.0, 0.1))),
            ("variance", "R", dataclasses.replace(base, schedule=WSD.from_horizon(5100.0, 0.1))),
            ("variance", "N", dataclasses.replace(base, N=66000)),
            *((name, "P", dataclasses.replace(base, P=P + 1)) for name in ("approx", "bias", "variance")),
        ]:
            x = {"M": 520 / 512, "R": 5100 / 5000, "N": 66000 / 65536, "P": (P + 1) / P}[size]
            slope = math.log(rates(change).values[name] / answer.values[name]) / math.log(x)
            assert slope == pytest.approx(answer.exponents[name][size], abs=1e-6)


def test_crossovers_are_where_the_branches_meet():
    alpha, theta = TWO.alpha, TWO.theta
    one_a, one_t = 1 - TWO.beta_alpha, 1 - TWO.beta_theta
    crossovers = rates(at()).crossovers
    M, P, R = 512.0, 16.0, 1200.0
    P_M, P_R, m_P, R_P = (crossovers[name] for name in ("P_M", "P_R", "m_P", "R_P"))
    assert M**one_t / P_M == pytest.approx(M**one_a)
    assert (R / P_R) ** (one_t / theta) / P_R == pytest.approx(R ** (one_a / alpha))
    assert m_P**-alpha == pytest.approx(m_P**-theta / P)
    assert R_P ** (1 / alpha) == pytest.approx((R_P / P) ** (1 / theta))


@pytest.mark.parametrize("log_R", np.linspace(0.5, 10, 12))
@pytest.mark.parametrize("log_P", np.linspace(0.4, 8, 9))
def test_piecewise_and_cutoff_forms_agree_in_order(log_R, log_P):
    """ℬ = κ^{1-2r}/R and 𝒱 = κ/(NP) with κ = max(R^{1/α}, (R/P)^{1/θ}) over 10 decades."""
    R, P = 10.0**log_R, float(round(10.0**log_P))
    M = 10**9
    answer = rates(at(M=M, d=10**10, P=int(P), R=R))
    R = at(R=R).schedule.horizon
    kappa = cutoff(TWO.alpha, TWO.theta, R, P)
    assert answer.values["bias"] == pytest.approx(kappa ** (1 - 2 * TWO.r) / R, rel=1e-9)
    assert answer.values["variance"] == pytest.approx(TWO.C_rho * kappa / (65536 * P), rel=1e-9)
    # The lemma's implicit definition, R(κ^-α + κ^-θ/P) = 1, is within a factor 2^{1/θ}.
    ratio = R * (kappa**-TWO.alpha + kappa**-TWO.theta / P)
    assert 1 <= ratio <= 2


def test_the_papers_guides():
    """MATH §8: slopes of the two guides on the paper's grids, and the bias ratios at P = 12."""
    lengths = [4, 6, 8, 12, 16, 24, 32, 48]
    slope = np.polyfit(np.log(lengths), np.log([approx_guide(TWO, 512, P) for P in lengths]), 1)[0]
    assert slope == pytest.approx(-0.950, abs=0.0005)
    guides = [bias_guide(TWO, 1200, P) for P in lengths[:6]]
    assert np.polyfit(np.log(lengths[:6]), np.log(guides), 1)[0] == pytest.approx(-0.185, abs=0.0005)
    kappa = guide_cutoff(TWO, 1200, 12)
    assert 1200 * (0.03 * kappa**-1.8 + 0.3 / 12 * kappa**-1.25) == pytest.approx(1)


def test_conditions():
    answer = rates(at(N=1000, P=2))
    by_name = {condition.name.split(":")[0]: condition for condition in answer.conditions}
    limit = 1 / (512**-1.8 + 512**-1.25 / 2)
    assert by_name["unsaturated"].needed == pytest.approx(limit)
    assert by_name["unsaturated"].ratio == pytest.approx(1200 / limit)
    assert by_name["unsaturated"].ratio_scaled == pytest.approx(1200 * (0.03 * 512**-1.8 + 0.15 * 512**-1.25))
    assert by_name["unsaturated"].holds is None
    assert by_name["samples"].needed == pytest.approx(TWO.C_rho * 1200 * 512)
    assert by_name["trajectories"].ratio == pytest.approx(1000 / (1200 * 512))
    assert by_name["stability"].holds
    assert "trajectories" not in {c.name.split(":")[0] for c in rates(at("regime1")).conditions}
    outside = rates(at(dataclasses.replace(TWO, theta=1.05)))
    broken = [condition.name for condition in outside.conditions if condition.holds is False]
    assert broken == ["smoothing: theta >= alpha - 2r"]
    assert outside.flags


def test_remainders():
    answer = rates(at(M=40, R=100.0))
    assert answer.remainder["epsilon_M"] == pytest.approx((40 + 100**2) * math.exp(-20), rel=1e-6)
    assert answer.remainder["omega_0"] == pytest.approx(min(1.0, 40**0.55 / 16))
    assert rates(at("regime1")).remainder["omega_0"] == pytest.approx(1 / 16)
    assert answer.remainder["d_eff"] == pytest.approx(min(40, answer.crossovers["kappa"]))


def test_a_saturated_variance_no_longer_grows_with_R():
    assert rates(at(M=8, R=1e6)).exponents["variance"] == {"N": -1.0, "P": -1.0, "R": 0.0, "M": 1.0}


def test_arrays_have_no_rates():
    modes = TWO.modes(50)
    point = Setting(teacher=modes, M=5, N=10, P=4, schedule=BlockDecay(gamma=0.1, L=100))
    with pytest.raises(InputError, match="power law"):
        rates(point)


def test_a_length_outside_the_paper_is_flagged():
    one = Setting(teacher="regime1", M=64, N=100, P=1, d=256, schedule="wsd")
    assert [flag.code for flag in rates(one).flags] == ["length"]
    assert not rates(dataclasses.replace(one, P=2)).flags


def test_schedules_of_ones_own_have_no_theorem():
    """A sum of steps of the order of √L is another horizon than R = γL."""
    own = Explicit(sizes=tuple(0.1 / np.sqrt(np.arange(1, 101))))
    setting = Setting(teacher="regime2", M=8, N=64, P=4, d=32, schedule=own)
    with pytest.raises(InputError, match="schedule must be one of wsd, block, constant, cosine here"):
        rates(setting)
